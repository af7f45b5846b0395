//! Who sends the same bytes beside the operator: `curl -T`, or a writer of ours where this machine has no `curl`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use e2e::cloud::Cloud;
use http::Method;
use openstack_lab::client::{Client, whole};
use tokio::{process::Command, time::timeout};
use url::Url;

const DEADLINE: Duration = Duration::from_mins(10);
const CURL: &str = "curl";

/// Sends bytes that do not have to be looked at.
pub(super) enum Writer {
    /// `curl -T` of this file.
    Curl(PathBuf),
    /// These bytes from the memory of this process, which cannot take more than a minute.
    Own(Bytes),
}

impl Writer {
    /// `file` is where curl reads the bytes.
    pub(super) async fn of(bytes: &Bytes, file: &Path) -> Result<Self> {
        let version = Command::new(CURL).arg("--version").stdin(Stdio::null()).output().await;
        if version.is_err() {
            return Ok(Self::Own(bytes.clone()));
        }
        tokio::fs::write(file, bytes)
            .await
            .with_context(|| format!("failed to write {}", file.display()))?;
        Ok(Self::Curl(file.to_owned()))
    }

    /// For the table.
    pub(super) fn told(&self) -> &'static str {
        match self {
            Self::Curl(_) => "curl -T",
            Self::Own(_) => "a plain writer (this machine has no curl)",
        }
    }

    /// Sends them to a record that is empty.
    pub(super) async fn send(&self, cloud: &Cloud, id: &str) -> Result<()> {
        let url = cloud.url(&format!("/v2/images/{id}/file"));
        let kind = "application/octet-stream";
        match self {
            Self::Curl(file) => {
                let mut curl = Command::new(CURL);
                curl.args(["--silent", "--show-error", "--fail", "-T"]).arg(file);
                curl.args(["-H", &format!("Content-Type: {kind}"), "-H"]);
                curl.arg(format!("X-Auth-Token: {}", cloud.token())).arg(&url);
                let running = curl.stdin(Stdio::null()).kill_on_drop(true).output();
                let Ok(ended) = timeout(DEADLINE, running).await else {
                    bail!("curl did not end within {DEADLINE:?}")
                };
                let ended = ended.context("failed to run curl")?;
                let said = String::from_utf8_lossy(&ended.stderr);
                ensure!(ended.status.success(), "curl failed: {said}");
            }
            Self::Own(bytes) => {
                let length = bytes.len().to_string();
                let headers = [
                    ("x-auth-token", cloud.token()),
                    ("content-type", kind),
                    ("content-length", length.as_str()),
                ];
                let url = Url::parse(&url).context("the URL of the image service")?;
                let reply = Client::new(None)?
                    .send(Method::PUT, &url, &headers, whole(bytes.clone()))
                    .await?;
                ensure!(reply.status.is_success(), "the bytes are refused: {}", reply.text());
            }
        }
        Ok(())
    }
}
