//! The deletion of stacks and releases that Clusters use.

use std::collections::{BTreeMap, BTreeSet};

use crds::ClusterStackSpec;
use crds::names::{ReleaseTag, StackVersion};

use super::verdict::{Refusal, Verdict};

/// What is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InUse {
    /// A ClusterStack.
    Stack,
    /// A ClusterStackRelease.
    Release,
}

/// Which Clusters (`namespace/name`) use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Users {
    /// These.
    Known(BTreeSet<String>),
    /// Nobody can tell.
    Unknown {
        /// Why, for people.
        error: String,
    },
}

/// By release tag the Clusters (`namespace/name`) that use its class, wherever they live.
type Used = BTreeMap<ReleaseTag, BTreeSet<String>>;

/// The Clusters that use a stack: those with a class of its provider, name and Kubernetes version, and of a version that its channel
/// follows or that it lists.
pub fn users_of_stack(spec: &ClusterStackSpec, used: &Used) -> BTreeSet<String> {
    // What cannot be parsed has no releases.
    let (Ok(stem), Ok(channel)) = (spec.stem(), spec.parsed_channel()) else {
        return BTreeSet::new();
    };
    let lists = |version: &StackVersion| {
        let mut versions = spec.versions.iter();
        versions.any(|listed| listed.parse::<StackVersion>().as_ref() == Ok(version))
    };
    let of_the_stack = |tag: &ReleaseTag| {
        let version = tag.version();
        *tag.stem() == stem && (channel.follows(version.channel()) || lists(version))
    };
    let used = used.iter().filter(|(tag, _)| of_the_stack(tag));
    used.flat_map(|(_, clusters)| clusters.iter().cloned()).collect()
}

/// The Clusters that use the release with this name.
pub fn users_of_release(name: &str, used: &Used) -> BTreeSet<String> {
    // No class belongs to a name that is no tag.
    let tag = name.parse::<ReleaseTag>().ok();
    tag.and_then(|tag| used.get(&tag).cloned()).unwrap_or_default()
}

/// Whether an object of this namespace may be deleted. Clusters of other namespaces are named with theirs.
pub fn deletion(of: InUse, namespace: &str, users: &Users) -> Verdict {
    let (kind, word) = match of {
        InUse::Stack => ("ClusterStack", "clusterstack"),
        InUse::Release => ("ClusterStackRelease", "clusterstackrelease"),
    };
    match users {
        Users::Unknown { error } => Verdict::warn(format!(
            "cannot validate whether {word} is still in use. Watch out for potentially orphaned resources: \
             failed to list clusters: {error}"
        )),
        Users::Known(clusters) if clusters.is_empty() => Verdict::allow(),
        Users::Known(clusters) => {
            let own = format!("{namespace}/");
            let names: Vec<&str> = clusters
                .iter()
                .map(|cluster| cluster.strip_prefix(&own).unwrap_or(cluster))
                .collect();
            let names = names.join(", ");
            Verdict::allow().refused(Refusal::bad_request(format!(
                "can't delete {kind} as there are clusters using it: [{names:?}]"
            )))
        }
    }
}
