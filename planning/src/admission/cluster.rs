//! Clusters that take one of our classes, change it, or change their Kubernetes version.

use crds::names::{KubernetesMinor, NameError, ReleaseTag};
use serde_json::Value;

use super::verdict::{Fault, Refusal, Verdict};
use crate::topology::Topology;

/// A request that creates or changes a Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterChange {
    name: String,
    /// What it was; `None` also when it had no class.
    before: Option<Topology>,
    /// What it is to be; `None` where no rule applies.
    after: Option<Topology>,
}

/// Where a release is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasePlace {
    /// Namespace of the class, and of the release that brings it.
    pub namespace: String,
    /// Its tag, which is its name.
    pub tag: ReleaseTag,
}

/// What was found of the release that brings a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseSight {
    /// It is there.
    Found {
        /// `status.kubernetesVersion`.
        kubernetes_version: Option<String>,
        /// Whether it is being deleted, and its class with it.
        deleting: bool,
    },
    /// It is not there.
    Missing,
    /// Nobody can tell.
    Unread {
        /// Why, for people.
        error: String,
    },
}

impl ClusterChange {
    /// Reads a request: the Cluster as it was, unless it is created, and as it is to be.
    ///
    /// No rule applies to a Cluster that is being deleted (whose finalizers go by updates), nor to an update that leaves class and
    /// version as they are, nor to Clusters that neither have nor had a class of ours.
    pub fn of(name: &str, namespace: &str, before: Option<&Value>, after: &Value) -> Self {
        let before = before.and_then(|before| Topology::of(before, namespace));
        let deleting = after
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(Value::is_string);
        let after = Topology::of(after, namespace).filter(|after| {
            let ours = |topology: &Topology| topology.class_name().is_ok();
            let changes = before.as_ref().is_none_or(|before| differ(before, after));
            !deleting && changes && (ours(after) || before.as_ref().is_some_and(ours))
        });
        Self {
            name: name.to_owned(),
            before,
            after,
        }
    }

    /// The release that [`Self::verdict`] wants to be looked at, if it wants one.
    pub fn release(&self) -> Option<ReleasePlace> {
        self.after.as_ref().and_then(place_of)
    }

    /// Whether the request may pass. `release` is what was seen of [`Self::release`].
    ///
    /// A release that cannot be seen is a warning, because the class may come later; how a class may change is looked at all the same.
    pub fn verdict(&self, release: Option<&ReleaseSight>) -> Verdict {
        let Some(after) = &self.after else {
            return Verdict::allow();
        };
        let seen = match (release, self.release()) {
            (Some(release), Some(place)) => version_rule(after, &place, release),
            _ => Verdict::allow(),
        };
        let before = self.before.as_ref().filter(|before| before.class != after.class);
        let judged = match before {
            Some(before) if seen.refusal.is_none() => class_rules(&self.name, before, after, seen),
            _ => seen,
        };
        match (release, self.release()) {
            // What is refused anyway is refused in the words that people know.
            (Some(ReleaseSight::Found { deleting: true, .. }), Some(place))
                if judged.refusal.is_none() && self.takes_class_of(&place) =>
            {
                judged.refused(class_goes(after, &place))
            }
            _ => judged,
        }
    }

    /// Whether it has not had this class before. Who has it may go on with it: the release waits for them.
    fn takes_class_of(&self, place: &ReleasePlace) -> bool {
        self.before.as_ref().and_then(place_of).as_ref() != Some(place)
    }
}

fn place_of(topology: &Topology) -> Option<ReleasePlace> {
    Some(ReleasePlace {
        namespace: topology.class_namespace.clone(),
        tag: topology.class_name().ok()?.into(),
    })
}

fn differ(before: &Topology, after: &Topology) -> bool {
    // The same class in the other spelling is the same class.
    let said = |topology: &Topology| {
        let Topology {
            class,
            class_namespace,
            version,
            spelling: _,
        } = topology.clone();
        (class, class_namespace, version)
    };
    said(before) != said(after)
}

/// The Kubernetes version has to be the one that the release was made for, to the letter.
fn version_rule(after: &Topology, place: &ReleasePlace, release: &ReleaseSight) -> Verdict {
    let unseen = |why: &str| {
        Verdict::warn(format!(
            "cannot validate clusterClass and Kubernetes version. Getting clusterStackRelease object failed: {why}"
        ))
    };
    let Topology { class, version, .. } = after;
    let wanted = match release {
        ReleaseSight::Found { kubernetes_version, .. } => kubernetes_version.as_deref().unwrap_or_default(),
        ReleaseSight::Missing => {
            let plural = format!("clusterstackreleases.{}", crds::GROUP);
            let tag = place.tag.to_string();
            return unseen(&format!("clusterclass does not exist: {plural} {tag:?} not found"));
        }
        ReleaseSight::Unread { error } => {
            return unseen(&format!(
                "failed to get ClusterStackRelease - cannot validate Kubernetes version: {error}"
            ));
        }
    };
    if wanted.is_empty() {
        let namespace = &place.namespace;
        return Verdict::warn(format!(
            "no Kubernetes version set in status of clusterStackRelease object. Cannot validate Kubernetes version. \
             Check out the ClusterStackReleaseObject {namespace}/{class} manually"
        ));
    }
    if version == wanted {
        return Verdict::allow();
    }
    let fault = Fault {
        field: "spec.topology.version",
        value: version,
        detail: format!("clusterClass {class} expects Kubernetes version {wanted}, but got {version}"),
    };
    Verdict::allow().refused(Refusal::forbidden(fault.to_string()))
}

/// The Go operator has no such rule: there a Cluster that comes while a release is being deleted loses its class.
fn class_goes(after: &Topology, place: &ReleasePlace) -> Refusal {
    let ReleasePlace { namespace, tag } = place;
    let class = &after.class;
    let fault = Fault {
        field: after.spelling.field(),
        value: class,
        detail: format!(
            "clusterClass {class} comes from clusterStackRelease {namespace}/{tag}, which is being deleted. Take a class of another release, \
             or try again when this one has been deleted and is there anew"
        ),
    };
    Refusal::forbidden(fault.to_string())
}

/// From which class a Cluster may go to which.
fn class_rules(name: &str, before: &Topology, after: &Topology, seen: Verdict) -> Verdict {
    let parsed = [before, after].map(|topology| topology.class_name().map_err(|error| (topology, error)));
    let (old, new): (ReleaseTag, ReleaseTag) = match parsed {
        [Ok(old), Ok(new)] => (old.into(), new.into()),
        [Err((topology, error)), _] | [_, Err((topology, error))] => {
            return seen.refused(no_class_of_ours(topology, &error));
        }
    };
    let mut details = Vec::new();
    if old.provider() != new.provider() {
        details.push(format!(
            "provider name must not change. Got {}, want {}",
            new.provider(),
            old.provider()
        ));
    }
    if old.name() != new.name() {
        details.push(format!(
            "cluster stack name must not change. Got {}, want {}",
            new.name(),
            old.name()
        ));
    }
    let (from, to) = (old.kubernetes_minor(), new.kubernetes_minor());
    let steps = i64::from(to.minor()) - i64::from(from.minor());
    if from.major() != to.major() || !(0..=1).contains(&steps) {
        let next = u64::from(from.minor()) + 1;
        details.push(format!(
            "kubernetes version must be the same or higher by one. Got {}, want {} or {}-{next}",
            dashed(to),
            dashed(from),
            from.major()
        ));
    }
    let fault = |detail| Fault {
        field: after.spelling.field(),
        value: &after.class,
        detail,
    };
    let faults: Vec<Fault<'_>> = details.into_iter().map(fault).collect();
    if faults.is_empty() {
        return tell_of_the_way_back(&old, &new, seen);
    }
    seen.refused(Refusal::invalid("Cluster.cluster.x-k8s.io", name, &faults))
}

/// Going back is somebody's right, and seldom what a stack was made for.
fn tell_of_the_way_back(old: &ReleaseTag, new: &ReleaseTag, mut seen: Verdict) -> Verdict {
    let stable = [old, new].iter().all(|tag| tag.version().channel().is_stable());
    if stable && old.stem() == new.stem() && new.version() < old.version() {
        seen.warnings.push(format!(
            "cluster stack version goes back. Got {}, had {}",
            new.version(),
            old.version()
        ));
    }
    seen
}

fn no_class_of_ours(topology: &Topology, error: &NameError) -> Refusal {
    Refusal::forbidden(format!(
        "expected a clusterclass of form <provider>-<clusterStackName>-<kubernetesVersion>-<clusterStackVersion> but got {}: {error}",
        topology.class
    ))
}

fn dashed(version: KubernetesMinor) -> String {
    format!("{}-{}", version.major(), version.minor())
}
