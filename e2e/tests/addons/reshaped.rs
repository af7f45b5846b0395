//! Changes to the source of the stack `shim-quay` that make further releases of it.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use crds::ClusterAddonStatus;
use e2e::releases::StackSource;
use kube::Client;
use serde_json::json;

use crate::stack::{self, Expected, Form};

/// The list of stages.
pub(crate) const STAGES: &str = "clusteraddon.yaml";
/// The objects of the network, and of the lighthouse.
pub(crate) const AGENT: &str = "cluster-addon/network/templates/agent.yaml";
pub(crate) const NOTE: &str = "cluster-addon/lighthouse/templates/note.yaml";

/// The Service of the lighthouse, as it stands in [`NOTE`] of `v2`.
pub(crate) const SERVICE: &str = "---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-lighthouse
  namespace: quay
spec:
  clusterIP: None
  selector:
    app: {{ .Release.Name }}-lighthouse
";

/// A file of the lighthouse, and what is in it: a ConfigMap that stays when nobody wants it any more.
pub(crate) const LOGBOOK: &str = "cluster-addon/lighthouse/templates/logbook.yaml";
pub(crate) const KEPT: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-logbook
  namespace: quay
  annotations:
    helm.sh/resource-policy: keep
data:
  entries: none
";
const NAME_OF_LOGBOOK: &str = "cluster-addon-logbook";

/// What comes of that.
pub(crate) fn logbook() -> Expected {
    let holds = json!({ "data": { "entries": "none" } });
    Expected::new(("v1", "ConfigMap"), ("quay", NAME_OF_LOGBOOK), "lighthouse", holds)
}

/// The form of the logbook, which is there.
pub(crate) async fn form_of_logbook(client: &Client) -> Result<BTreeMap<String, Form>> {
    stack::forms(client, &[logbook()]).await
}

/// Whether the status says nothing of the logbook.
pub(crate) fn is_forgotten(status: &ClusterAddonStatus) -> bool {
    status.resources.iter().all(|row| row.name != NAME_OF_LOGBOOK)
}

/// The logbook is as it was, and nobody looks after it any more.
pub(crate) async fn is_left(
    client: &Client,
    status: &ClusterAddonStatus,
    before: &BTreeMap<String, Form>,
) -> Result<()> {
    ensure!(is_forgotten(status), "{:#?}", status.resources);
    let now = form_of_logbook(client).await?;
    ensure!(now == *before, "{now:?} instead of {before:?}");
    Ok(())
}

/// Adds a chart without objects.
pub(crate) fn add_chart(source: &StackSource, name: &str) -> Result<()> {
    let chart =
        format!("apiVersion: v2\nname: {name}\ndescription: Brings little\ntype: application\nversion: 0.1.0\n");
    let path = format!("cluster-addon/{name}/Chart.yaml");
    source.write(&path, &chart).map(drop)
}

/// Adds a ConfigMap or Secret to a chart, `cluster-addon-NAME`, whose data says its name; without a namespace it is where charts are by themselves.
pub(crate) fn add_object(source: &StackSource, chart: &str, kind: &str, namespace: &str, name: &str) -> Result<()> {
    let data = if kind == "Secret" { "stringData" } else { "data" };
    let place = if namespace.is_empty() {
        String::new()
    } else {
        format!("  namespace: {namespace}\n")
    };
    let object = format!(
        "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {{{{ .Release.Name }}}}-{name}\n{place}{data}:\n  name: {name}\n"
    );
    let path = format!("cluster-addon/{chart}/templates/{name}.yaml");
    source.write(&path, &object).map(drop)
}

/// Adds a stage before each in the list that applies this one.
pub(crate) fn add_stage(source: &StackSource, name: &str, before: &str) -> Result<()> {
    let stage = |name: &str| format!("  - name: {name}\n    action: apply\n");
    let (added, there) = (stage(name), stage(before));
    source.replace(STAGES, &there, &format!("{added}{there}")).map(drop)
}
