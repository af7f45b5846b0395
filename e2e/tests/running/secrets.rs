//! What a chart puts into Secrets stays there, also when the API server refuses them and quotes what it found.

use anyhow::{Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{Ended, Operator, journey::journey, releases::StackSource};
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use serde_json::json;

use crate::{STACK, subscribe, traces::Collector};

const SECRETS: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: number
stringData:
  password: 86753097
---
apiVersion: v1
kind: Secret
metadata:
  name: list
stringData: [marathon490]
---
apiVersion: v1
kind: Secret
metadata:
  name: type
type: kubernetes.io/dockerconfigjson
stringData:
  .dockerconfigjson: salamis480
---
apiVersion: v1
kind: Secret
metadata:
  name: taken
stringData:
  password: plataea479
";

/// What is in the Secrets, and in the one that was there before; encoded too.
const VALUES: [&str; 8] = [
    "86753097",
    "marathon490",
    "salamis480",
    "c2FsYW1pczQ4MA",
    "plataea479",
    "cGxhdGFlYTQ3OQ",
    "mycale479",
    "bXljYWxlNDc5",
];

/// What is told instead.
const WORDS: [&str; 4] = [
    ".stringData.password: expected string",
    ".stringData: expected map",
    "Secret \\\"type\\\" is invalid: data[.dockerconfigjson]: Invalid value",
    "conflicts with the release at",
];

#[test]
fn secrets_that_are_refused_are_told_without_their_values() -> Result<()> {
    journey(async |journey| {
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/secrets.yaml", SECRETS)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        let taken = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "taken" },
            "data": { "password": "bXljYWxlNDc5" }, "stringData": { "password": "mycale479" },
        });
        journey.apply(taken).await?;
        let collector = Collector::start().await?;
        let mut options = journey.options.clone();
        options.flags = vec!["--log-level=trace".into(), collector.flag().into()];
        let mut operator = Operator::start(journey.lab(), &options)?;
        operator.ready().await?;
        subscribe(journey).await?;
        let release = journey
            .until_release(&tag, "told what is wrong with the Secrets", |release| {
                let rows = json!(release.status.as_ref().map(|status| &status.resources)).to_string();
                WORDS.iter().all(|words| rows.contains(words))
            })
            .await?;
        let stack = journey
            .until::<ClusterStack>(STACK, "told what is wrong with its release", |stack| {
                json!(stack.status).to_string().contains("Secret")
            })
            .await?;
        let events = journey.api::<Event>().list(&ListParams::default()).await?;
        ensure!(!events.items.is_empty(), "no event");
        let release = journey
            .api::<ClusterStackRelease>()
            .get(&release.metadata.name.unwrap_or_default())
            .await?;
        let log = std::fs::read_to_string(operator.log())?;
        let metrics = operator.metrics_page().await?;
        ensure!(operator.stop().await? == Ended::Status(0));
        let traces = collector.text();
        ensure!(
            traces.contains("apply Secret"),
            "nothing is told of the Secrets: {traces}"
        );
        let places = [
            ("release", json!(release).to_string()),
            ("stack", json!(stack).to_string()),
            ("events", json!(events.items).to_string()),
            ("log", log),
            ("metrics", metrics),
            ("traces", traces),
        ];
        for (place, text) in places {
            for value in VALUES {
                let line = text.lines().find(|line| line.contains(value));
                ensure!(line.is_none(), "{value} is in the {place}: {line:?}");
            }
        }
        Ok(())
    })
}
