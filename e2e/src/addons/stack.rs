//! A stack whose add-ons come in two stages, are upgraded at three moments, are other objects from the second version on, and all go before the end. What it brings
//! to a workload cluster is named after the Cluster, so that many Clusters can share one API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use anyhow::Result;
use serde_json::json;

use crate::{
    Journey,
    releases::{Releases, StackSource, harbor_tag},
};

/// The versions of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// With which Clusters begin.
    First,
    /// To which they go.
    Second,
    /// The same for another Kubernetes version.
    Third,
    /// One that comes after it, for that Kubernetes version too.
    Fourth,
}

impl Version {
    /// Those that every journey has.
    pub(super) const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// As the stack lists it.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "v1",
            Self::Second => "v2",
            Self::Third => "v3",
            Self::Fourth => "v4",
        }
    }

    /// The Kubernetes version that it is for.
    pub fn kubernetes(self) -> &'static str {
        match self {
            Self::First | Self::Second => "v1.34.0",
            Self::Third | Self::Fourth => "v1.34.1",
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
            Self::Second | Self::Third | Self::Fourth => &["ConfigMap routes", "ConfigMap more"],
        };
        let both = ["ServiceAccount agent", "Secret keys", "ConfigMap note", "Role reader"];
        both.iter().chain(own).map(ToString::to_string).collect()
    }
}

/// The name of what the first version has and no other has.
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

/// Creation and upgrade have the same charts; an upgrade has a stage at each moment at which every minor of Cluster API waits.
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
  AfterControlPlaneUpgrade:
  - name: welcome
    action: apply
    waitForPreCondition:
{default}
  AfterClusterUpgrade:
  - name: network
    action: apply
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

/// Those of all besides the list of stages.
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

/// What is packed so far, and the folders that it is in.
static PACKED: Mutex<BTreeMap<Version, (tempfile::TempDir, PathBuf)>> = Mutex::new(BTreeMap::new());

/// The files of a version, packed once for all journeys that have it.
fn packed(version: Version) -> Result<PathBuf> {
    let mut packed = PACKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, release)) = packed.get(&version) {
        return Ok(release.clone());
    }
    let source = StackSource::harbor("v1")?;
    source.write("clusteraddon.yaml", &stages())?;
    for (path, text) in FILES {
        source.write(path, text)?;
    }
    if version > Version::First {
        source.replace(AGENT, "-settings", "-routes")?;
        source.write(NOTE, &format!("{WELCOME}{MORE}"))?;
    }
    source.replace("csctl.yaml", Version::First.kubernetes(), version.kubernetes())?;
    let folder = tempfile::tempdir()?;
    let releases = Releases::at(folder.path())?;
    let tag = releases.publish_stack(&source.path(), version.name())?;
    let release = releases.folder_of(&tag);
    packed.insert(version, (folder, release.clone()));
    Ok(release)
}

/// Puts versions where the operator of a journey finds them.
pub fn publish(journey: &Journey, versions: &[Version]) -> Result<()> {
    let mut versions = versions.iter();
    versions.try_for_each(|version| journey.releases.publish(&packed(*version)?))
}

/// Waits until both that every journey has can be used.
pub async fn subscribe(journey: &Journey) -> Result<()> {
    subscribe_to(journey, &Version::BOTH).await
}

/// The same for versions that are published.
pub async fn subscribe_to(journey: &Journey, versions: &[Version]) -> Result<()> {
    let names: Vec<&str> = versions.iter().map(|version| version.name()).collect();
    journey.stack("harbor", json!({ "versions": names })).await?;
    for version in versions {
        journey.release_ready(&version.class()).await?;
    }
    Ok(())
}
