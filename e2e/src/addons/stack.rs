//! A stack whose add-ons come in two stages, whose second version has other objects, and which takes all of them away before the end. What it brings to a workload
//! cluster is named after the Cluster, so that many Clusters can share one API server.

use std::{collections::BTreeSet, path::PathBuf, sync::LazyLock};

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::{
    Journey,
    releases::{Releases, StackSource, harbor_tag},
};

/// The versions of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// With which Clusters begin.
    First,
    /// To which they go.
    Second,
}

impl Version {
    const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// As the stack lists it.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "v1",
            Self::Second => "v2",
        }
    }

    /// The name of its class.
    pub fn class(self) -> String {
        harbor_tag(self.name())
    }

    /// Kind and name, without that of the Cluster, of what it brings.
    pub fn objects(self) -> BTreeSet<String> {
        let own: &[&str] = match self {
            Self::First => &["ConfigMap settings"],
            Self::Second => &["ConfigMap routes", "ConfigMap more"],
        };
        let both = ["ServiceAccount agent", "Secret keys", "ConfigMap note", "Role reader"];
        both.iter().chain(own).map(ToString::to_string).collect()
    }
}

/// The names of what the first version has and the second has not.
pub const DROPPED: &str = "settings";
/// The name of the Secret of which everything is drawn at random.
pub const KEYS: &str = "keys";
/// The name of the chart with the note, which has the value `words`.
pub const NOTING: &str = "welcome";

/// A condition that holds from the beginning: it only has to be asked for.
fn active_namespace(name: &str) -> String {
    format!(
        r#"      objects:
      - key: system
        apiVersion: v1
        kind: Namespace
        name: {name}
      conditions: system.status.phase == "Active""#
    )
}

/// Creation and upgrade have the same stages.
fn stages() -> String {
    let [system, default] = ["kube-system", "default"].map(active_namespace);
    format!(
        r"apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1
clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1
addonStages:
  AfterControlPlaneInitialized:
  - name: network
    action: apply
    waitForPostCondition:
{system}
  - name: welcome
    action: apply
    waitForPreCondition:
{default}
  BeforeClusterUpgrade:
  - name: network
    action: apply
  AfterClusterUpgrade:
  - name: welcome
    action: apply
    waitForPreCondition:
{default}
  BeforeClusterDelete:
  - name: welcome
    action: delete
  - name: network
    action: delete
"
    )
}

const VALUES: &str = r"values: |
  cluster: {{ .Cluster.metadata.name | quote }}
  home: {{ .Cluster.metadata.namespace | quote }}
  kubernetes: {{ .ControlPlane.spec.version | quote }}
";

const DEFAULTS: &str = "cluster: unnamed\nhome: default\nkubernetes: unknown\nwords: none\n";

const NETWORK: &str = r#"apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Values.cluster }}-agent
  namespace: {{ .Values.home }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.cluster }}-settings
  namespace: {{ .Values.home }}
data:
  kubernetes: {{ .Values.kubernetes | quote }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Values.cluster }}-keys
  namespace: {{ .Values.home }}
data:
  password: {{ randAlphaNum 32 | b64enc | quote }}
  key: {{ genPrivateKey "ecdsa" | b64enc | quote }}
"#;

const WELCOME: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.cluster }}-note
  namespace: {{ .Values.home }}
data:
  addons: << .ClusterAddonVersion >>
  words: {{ .Values.words | quote }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .Values.cluster }}-reader
  namespace: {{ .Values.home }}
rules:
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: ["{{ .Values.cluster }}-note"]
  verbs: [get]
"#;

const MORE: &str = r"---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.cluster }}-more
  namespace: {{ .Values.home }}
data:
  more: more
";

/// Those of both besides the list of stages.
const FILES: [(&str, &str); 6] = [
    ("cluster-addon/network/overwrite.yaml", VALUES),
    ("cluster-addon/network/values.yaml", DEFAULTS),
    (AGENT, NETWORK),
    ("cluster-addon/welcome/overwrite.yaml", VALUES),
    ("cluster-addon/welcome/values.yaml", DEFAULTS),
    (NOTE, WELCOME),
];
const AGENT: &str = "cluster-addon/network/templates/agent.yaml";
const NOTE: &str = "cluster-addon/welcome/templates/note.yaml";

/// Both, packed once for all journeys.
static PACKED: LazyLock<Result<(tempfile::TempDir, [PathBuf; 2])>> = LazyLock::new(|| {
    let folder = tempfile::tempdir()?;
    let releases = Releases::at(folder.path())?;
    let mut packed = Vec::new();
    for version in Version::BOTH {
        let source = StackSource::harbor("v1")?;
        source.write("clusteraddon.yaml", &stages())?;
        for (path, text) in FILES {
            source.write(path, text)?;
        }
        if version == Version::Second {
            source.replace(AGENT, "-settings", "-routes")?;
            source.write(NOTE, &format!("{WELCOME}{MORE}"))?;
        }
        let tag = releases.publish_stack(&source.path(), version.name())?;
        packed.push(releases.folder_of(&tag));
    }
    let packed: [PathBuf; 2] = packed.try_into().map_err(|_| anyhow!("there are two versions"))?;
    Ok((folder, packed))
});

/// Puts both where the operator of a journey finds them.
pub fn publish(journey: &Journey) -> Result<()> {
    let (_, packed) = PACKED.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    packed.iter().try_for_each(|release| journey.releases.publish(release))
}

/// Waits until both can be used.
pub async fn subscribe(journey: &Journey) -> Result<()> {
    let versions = Version::BOTH.map(Version::name);
    journey.stack("harbor", json!({ "versions": versions })).await?;
    for version in Version::BOTH {
        journey.release_ready(&version.class()).await?;
    }
    Ok(())
}
