//! Changes to the source of the stack `shim-quay` that make further releases of it.

use anyhow::Result;
use e2e::releases::StackSource;

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
