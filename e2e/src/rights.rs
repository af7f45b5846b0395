//! Holds what operators ask the API server for against the rights that they are given, and notes it for a comparison over all test programs: so
//! the roles of the operators have no right too few, and none too many.

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use crds::{
    GROUP, PROVIDER_GROUP,
    manifests::{OPERATOR_RIGHTS, OperatorRight, PROVIDER_OPERATOR_RIGHTS, VERBS_OF_OBJECTS},
};

use crate::{AuditEvent, audit::ObjectReference};

/// The folder into which each test program notes what its operators asked for; without it nothing is noted.
const FOLDER: &str = "STACKWRIGHT_CALLS";

/// How provider operators call themselves, whoever they are.
pub const PROVIDER_OPERATOR: &str = "stackwright-provider-operator";

/// Groups and plurals of what no chart of a test brings, besides our kinds and the providers'.
const OF_NO_CHART: [(&str, &str); 2] = [("cluster.x-k8s.io", "clusters"), ("coordination.k8s.io", "leases")];

/// What only clusters of tests are made of: those of the shim, and those in memory. The roles name what is usual there, and whoever runs the operator gives
/// it one of its own for other kinds: to list and to watch them.
const OF_TESTS: [(&str, &str); 3] = [
    ("controlplane.cluster.x-k8s.io", "shimcontrolplanes"),
    ("infrastructure.cluster.x-k8s.io", "devclusters"),
    ("infrastructure.cluster.x-k8s.io", "shimclusters"),
];

/// Whose rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorName {
    /// That of stacks and releases.
    Core,
    /// That of node images.
    Provider,
}

impl OperatorName {
    /// Where its rights stand.
    const fn table(self) -> &'static str {
        match self {
            Self::Core => "crds/src/manifests/operator.rs",
            Self::Provider => "crds/src/manifests/provider_operator.rs",
        }
    }

    /// Everything that its roles allow, and whether a request of our tests has to have it.
    fn permissions(self) -> Vec<(Permission, bool)> {
        match self {
            Self::Core => permissions(self, OPERATOR_RIGHTS),
            Self::Provider => permissions(self, PROVIDER_OPERATOR_RIGHTS),
        }
    }
}

/// One right with one of its verbs: what a rule of a role allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    operator: OperatorName,
    group: &'static str,
    resources: &'static [&'static str],
    verb: &'static str,
}

impl Permission {
    /// As it stands in a note: one line.
    fn line(&self) -> String {
        format!("{:?}: {} {}", self.operator, self.words(), self.group)
    }

    fn words(&self) -> String {
        format!("{} {}", self.verb, self.resources.join(","))
    }

    fn covers(&self, verb: &str, group: &str, resource: &str) -> bool {
        self.verb == verb && self.group == group && (self.resources == ["*"] || self.resources.contains(&resource))
    }
}

fn permissions<Role>(operator: OperatorName, rights: &[OperatorRight<Role>]) -> Vec<(Permission, bool)> {
    let of_right = |right: &OperatorRight<Role>| {
        let unseen = right.unseen.iter().map(|(verb, _)| (*verb, false));
        let verbs = right.verbs.iter().map(|verb| (*verb, true)).chain(unseen);
        let (group, resources) = (right.group, right.resources);
        let permission = |(verb, is_needed)| {
            let permission = Permission {
                operator,
                group,
                resources,
                verb,
            };
            (permission, is_needed)
        };
        verbs.map(permission).collect::<Vec<_>>()
    };
    rights.iter().flat_map(of_right).collect()
}

/// Refuses requests that no right of this operator covers, and notes by which rights the others were covered.
pub fn hold_against_rights<'a>(operator: OperatorName, events: impl IntoIterator<Item = &'a AuditEvent>) -> Result<()> {
    note(&used(operator, events)?)
}

fn used<'a>(operator: OperatorName, events: impl IntoIterator<Item = &'a AuditEvent>) -> Result<BTreeSet<Permission>> {
    let (mut used, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    let may = operator.permissions();
    for event in events {
        let Some(object) = &event.object else { continue };
        match permission(&may, verb(event), object) {
            Some(permission) => drop(used.insert(permission)),
            // Only the core operator touches what charts bring, and looks at what clusters are made of.
            None if operator == OperatorName::Core
                && (is_about_an_object_of_a_release(event, object) || is_a_look_at_a_part(event, object)) => {}
            None => drop(wrong.insert(format!("{} {}", event.verb, event.request_uri))),
        }
    }
    ensure!(
        wrong.is_empty(),
        "the operator asks for what its roles do not allow ({}): {wrong:#?}",
        operator.table()
    );
    Ok(used)
}

/// A read of one object from the past is a list of one on its way through the fault proxy.
fn verb(event: &AuditEvent) -> &str {
    let is_of_the_past = |uri: &str| uri.contains("resourceVersionMatch=Exact&fieldSelector=metadata.name%3D");
    if event.verb == "list" && is_of_the_past(&event.request_uri) {
        "get"
    } else {
        &event.verb
    }
}

fn permission(may: &[(Permission, bool)], verb: &str, object: &ObjectReference) -> Option<Permission> {
    let resource = match object.subresource.as_str() {
        "" => object.resource.clone(),
        subresource => format!("{}/{subresource}", object.resource),
    };
    let mut may = may.iter().map(|(permission, _)| permission);
    may.find(|permission| permission.covers(verb, &object.api_group, &resource))
        .cloned()
}

/// Charts of tests bring kinds that the roles do not name. Of such a kind only what carries the mark of a release may be listed: of Secrets and
/// everything else that others have the operator must not even know. What no chart brings has to be covered by a right.
fn is_about_an_object_of_a_release(event: &AuditEvent, object: &ObjectReference) -> bool {
    let is_one_of_many =
        !matches!(event.verb.as_str(), "list" | "watch") || event.request_uri.contains("labelSelector=");
    let is_of_no_chart = [GROUP, PROVIDER_GROUP].contains(&object.api_group.as_str())
        || OF_NO_CHART.contains(&(object.api_group.as_str(), object.resource.as_str()));
    !is_of_no_chart
        && object.subresource.is_empty()
        && VERBS_OF_OBJECTS.contains(&event.verb.as_str())
        && is_one_of_many
}

fn is_a_look_at_a_part(event: &AuditEvent, object: &ObjectReference) -> bool {
    let is_of_tests = OF_TESTS.contains(&(object.api_group.as_str(), object.resource.as_str()));
    is_of_tests && object.subresource.is_empty() && matches!(event.verb.as_str(), "list" | "watch")
}

fn note(used: &BTreeSet<Permission>) -> Result<()> {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return Ok(());
    };
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let path = folder.join(std::process::id().to_string());
    let lines: String = used
        .iter()
        .flat_map(|permission| [permission.line(), "\n".to_owned()])
        .collect();
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("failed to open {}", path.display()))?;
    // In one piece: journeys of one process end at the same time.
    file.write_all(lines.as_bytes())
        .with_context(|| format!("failed to write {}", path.display()))
}

/// What this operator did not ask for in any test program although its roles allow it; `None` where nothing was noted, because only some programs ran.
pub fn never_asked_for(operator: OperatorName) -> Result<Option<Vec<String>>> {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return Ok(None);
    };
    let noted = noted(&folder)?;
    let needed = operator.permissions().into_iter().filter(|(_, is_needed)| *is_needed);
    let lines = needed.map(|(permission, _)| permission.line());
    Ok(Some(lines.filter(|line| !noted.contains(line)).collect()))
}

fn noted(folder: &Path) -> Result<BTreeSet<String>> {
    let mut lines = BTreeSet::new();
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        lines.extend(text.lines().map(str::to_owned));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn event(verb: &str, uri: &str, group: &str, resource: &str, subresource: &str) -> AuditEvent {
        AuditEvent {
            verb: verb.to_owned(),
            user: "operator".to_owned(),
            user_agent: "core-operator".to_owned(),
            object: Some(ObjectReference {
                api_group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                ..ObjectReference::default()
            }),
            code: 200,
            request_uri: uri.to_owned(),
            dry_run: false,
            received: Timestamp::UNIX_EPOCH,
            answered: Timestamp::UNIX_EPOCH,
            body: None,
        }
    }

    #[test]
    fn only_what_a_right_covers_or_a_release_brings_is_asked_for() {
        for allowed in [
            event("update", "", GROUP, "clusterstacks", "status"),
            event("patch", "", PROVIDER_GROUP, "tenderreleases", ""),
            event("get", "", "", "secrets", ""),
            event("list", "?labelSelector=part-of", "", "secrets", ""),
            event("patch", "", "apps", "deployments", ""),
            event(
                "watch",
                "?watch=true",
                "controlplane.cluster.x-k8s.io",
                "shimcontrolplanes",
                "",
            ),
        ] {
            used(OperatorName::Core, [&allowed]).expect("a right");
        }
        for refused in [
            event("update", "", GROUP, "clusterstacks", ""),
            event("deletecollection", "", "apps", "deployments", ""),
            event("create", "", "", "serviceaccounts", "token"),
            event("impersonate", "", "", "users", ""),
            event("patch", "", "cluster.x-k8s.io", "clusters", ""),
            event(
                "list",
                "?limit=50",
                "controlplane.cluster.x-k8s.io",
                "othercontrolplanes",
                "",
            ),
            event("delete", "", PROVIDER_GROUP, "tenderreleases", ""),
            event("delete", "", "coordination.k8s.io", "leases", ""),
        ] {
            let error = used(OperatorName::Core, [&refused]).expect_err("no right");
            assert!(error.to_string().contains("what its roles do not allow"), "{error}");
        }
    }

    #[test]
    fn the_operator_of_providers_asks_for_what_its_own_roles_allow_and_nothing_else() {
        for allowed in [
            event("update", "", PROVIDER_GROUP, "openstacknodeimagereleases", "status"),
            event("get", "", GROUP, "clusterstackreleases", ""),
            event("get", "", "", "secrets", ""),
        ] {
            used(OperatorName::Provider, [&allowed]).expect("a right");
        }
        for refused in [
            event("patch", "", PROVIDER_GROUP, "tenderreleases", ""),
            event("list", "?labelSelector=part-of", "", "secrets", ""),
            event("list", "", GROUP, "clusterstackreleases", ""),
            event("patch", "", "apps", "deployments", ""),
            event("update", "", "batch", "jobs", ""),
        ] {
            let error = used(OperatorName::Provider, [&refused]).expect_err("no right");
            assert!(error.to_string().contains("provider_operator.rs"), "{error}");
        }
    }
}
