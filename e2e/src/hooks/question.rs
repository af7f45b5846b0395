//! The other side of it: calls as a manager of Cluster API makes them of whoever answers hooks.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::{Client, api::DynamicObject};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{API, Answer, Hook};

/// How long a manager waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A call about one Cluster, which may be made again and again.
#[derive(Clone, Debug)]
pub struct Question {
    path: String,
    body: Vec<u8>,
}

impl Question {
    /// About a Cluster as it is now, on its way from one Kubernetes version to another. Managers leave its status out since 1.11.
    pub fn about(cluster: &DynamicObject, hook: Hook, [from, to]: [&str; 2]) -> Result<Self> {
        let mut cluster = cluster.clone();
        cluster.metadata.managed_fields = None;
        if let Some(data) = cluster.data.as_object_mut() {
            data.remove("status");
        }
        let request = json!({
            "apiVersion": API, "kind": format!("{}Request", hook.name()),
            "cluster": serde_json::to_value(cluster).context("failed to write a Cluster as JSON")?,
            "fromKubernetesVersion": from, "toKubernetesVersion": to, "kubernetesVersion": to,
        });
        Ok(Self {
            path: format!("/{API}/{}/{}", hook.name().to_lowercase(), hook.dashed()),
            body: request.to_string().into_bytes(),
        })
    }

    /// Makes it once.
    pub async fn ask(&self, client: &Client) -> Result<Answer> {
        let path = &self.path;
        let request = http::Request::post(path).body(self.body.clone());
        let request = request.with_context(|| format!("{path} is no path"))?;
        let answered = timeout(PATIENCE, client.request_text(request)).await;
        let answered = answered.with_context(|| format!("no answer to {path} within {PATIENCE:?}"))?;
        let text = answered.with_context(|| format!("failed to call {path}"))?;
        read(&serde_json::from_str(&text).context("the answer is no JSON")?)
    }
}

fn read(said: &Value) -> Result<Answer> {
    let message = said["message"].as_str().unwrap_or_default().to_owned();
    let seconds = said["retryAfterSeconds"].as_u64().unwrap_or_default();
    Ok(match said["status"].as_str() {
        Some("Success") if seconds == 0 => Answer::Proceed,
        Some("Success") => Answer::Wait {
            seconds: u32::try_from(seconds).context("nobody waits for so long")?,
            message,
        },
        Some("Failure") => Answer::Fail(message),
        _ => bail!("a hook was answered with {said}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_a_manager_reads_it() -> Result<()> {
        let said = |status: &str, seconds: u32| json!({ "status": status, "retryAfterSeconds": seconds, "message": "a stage is left" });
        let message = || "a stage is left".to_owned();
        assert_eq!(read(&said("Success", 0))?, Answer::Proceed);
        let wait = Answer::Wait {
            seconds: 5,
            message: message(),
        };
        assert_eq!(read(&said("Success", 5))?, wait);
        assert_eq!(read(&said("Failure", 5))?, Answer::Fail(message()));
        assert!(read(&json!({})).is_err());
        Ok(())
    }
}
