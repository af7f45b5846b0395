//! A real OCI registry with TLS and a password, filled by the real oras.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Lab, Process, authority::Authority, eventually, journey::SOON, releases::Releases};

/// Who may push and pull.
pub const USER: &str = "harbor";
/// With this.
pub const PASSWORD: &str = "canary-password";
/// The Secret that stacks name.
const SECRET: &str = "registry";
/// The line of htpasswd for these two.
const HTPASSWD: &str = "harbor:$2a$04$HLvPmkNFrKNLYULm7jOU8.27ZONvsrdHdKdsFHRktrGCi19ncGLGu\n";

/// A registry as a process of its own. Dropped, it is killed.
#[derive(Debug)]
pub struct Registry {
    program: PathBuf,
    folder: PathBuf,
    host: String,
    process: Option<Process>,
}

impl Registry {
    /// Starts an empty one, which keeps everything in this folder.
    pub async fn start(lab: &Lab, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let authority = Authority::new()?;
        let pair = authority.sign()?;
        write(&folder.join("ca.crt"), &authority.pem)?;
        write(&folder.join("server.crt"), &pair.certificate)?;
        write(&folder.join("server.key"), &pair.key)?;
        write(&folder.join("htpasswd"), HTPASSWD)?;
        let mut registry = Self {
            program: lab.outside()?.to_owned(),
            folder: folder.to_owned(),
            host: "127.0.0.1:0".to_owned(),
            process: None,
        };
        registry.resume(lab).await?;
        Ok(registry)
    }

    /// Starts it again where it was, with what it had.
    pub async fn resume(&mut self, lab: &Lab) -> Result<()> {
        let configuration = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\nstorage: {{filesystem: {{rootdirectory: storage}}}}\n\
             http: {{addr: '{}', secret: e2e, tls: {{certificate: server.crt, key: server.key}}}}\n\
             auth: {{htpasswd: {{realm: e2e, path: htpasswd}}}}\n",
            self.host
        );
        write(&self.folder.join("config.yml"), &configuration)?;
        let log = self.folder.join("registry.log");
        // The address is read from what this start says.
        let _ = fs::remove_file(&log);
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("OTEL_TRACES_EXPORTER", "none");
        command.args(["registry", "serve", "config.yml"]);
        let process = Process::start(lab, "registry", &command, &log)?;
        let listening = async || {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let host = said.split_once("listening on ").and_then(|(_, rest)| {
                let (host, _) = rest.split_once([',', '"', '\n'])?;
                Some(host.to_owned())
            });
            host.ok_or("it does not listen yet")
        };
        self.host = eventually(SOON, "the registry to listen", listening).await?;
        self.process = Some(process);
        Ok(())
    }

    /// Ends it; what it has stays.
    pub async fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill9().await.map(drop),
            None => Ok(()),
        }
    }

    /// The file with the certificate of its authority.
    pub fn authority_file(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The certificate of its authority, in PEM.
    pub fn authority(&self) -> Result<String> {
        fs::read_to_string(self.authority_file()).context("failed to read the authority of the registry")
    }

    /// The name of a repository as stacks write it.
    pub fn repository(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    /// The Secret that stacks name in [`Registry::source`], with this password.
    pub fn secret(&self, password: &str) -> Result<Value> {
        let values = json!({ "username": USER, "password": password, "ca.crt": self.authority()? });
        Ok(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET }, "stringData": values }))
    }

    /// A repository as the source of a stack.
    pub fn source(&self, name: &str) -> Value {
        let reference = json!({ "name": SECRET });
        json!({ "oci": {
            "repository": self.repository(name),
            "credentialsSecretRef": reference,
            "caSecretRef": reference,
        } })
    }

    /// Packs a release of `harbor` and pushes it; what operators of the journey read as a directory does not have it. The answer is the tag.
    pub fn publish(&self, releases: &Releases, (source, version): (&str, &str), name: &str) -> Result<String> {
        let tag = releases.publish_harbor(source, version)?;
        self.push(&releases.folder_of(&tag), name, &tag)?;
        releases.unpublish(&tag)?;
        Ok(tag)
    }

    /// The Secret by which Pods pull from here, with the certificate of the authority beside it.
    pub fn pull_secret(&self, name: &str) -> Result<Value> {
        let logins = json!({ "auths": { &self.host: { "username": USER, "password": PASSWORD } } });
        let values = json!({ ".dockerconfigjson": logins.to_string(), "ca.crt": self.authority()? });
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": { "name": name }, "stringData": values,
        }))
    }

    /// The digest of what a tag of a repository stands for, as the registry has it on its disk.
    pub fn digest(&self, name: &str, tag: &str) -> Result<String> {
        let link = self.kept(name).join("_manifests/tags").join(tag).join("current/link");
        fs::read_to_string(&link).with_context(|| format!("failed to read {}", link.display()))
    }

    /// Takes a repository out of the registry with all that is in it, or puts it back.
    pub fn offer(&self, name: &str, is_offered: bool) -> Result<()> {
        let (here, away) = (self.kept(name), self.folder.join("away").join(name));
        fs::create_dir_all(away.parent().context("a repository has a folder")?)?;
        let (from, to) = if is_offered { (away, here) } else { (here, away) };
        fs::rename(&from, &to).with_context(|| format!("failed to move {}", from.display()))
    }

    fn kept(&self, name: &str) -> PathBuf {
        self.folder.join("storage/docker/registry/v2/repositories").join(name)
    }

    /// Pushes the files of a release as publishers do, under its tag.
    pub fn push(&self, release: &Path, name: &str, tag: &str) -> Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(release).with_context(|| format!("failed to list {}", release.display()))? {
            files.push(entry.context("failed to list a release")?.file_name());
        }
        files.sort();
        let output = Command::new(&self.program)
            .current_dir(release)
            // Whoever runs the test may have passwords of his own.
            .env("HOME", &self.folder)
            .env("DOCKER_CONFIG", &self.folder)
            .args(["oras", "push", "--artifact-type=application/vnd.scs.cluster-stacks.v1"])
            .arg("--ca-file")
            .arg(self.folder.join("ca.crt"))
            .args(["--username", USER, "--password", PASSWORD])
            .arg(format!("{}:{tag}", self.repository(name)))
            .args(files)
            .output()
            .context("failed to start oras")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "oras push: {said}");
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
