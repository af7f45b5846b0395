//! Holds what operators ask the API server for against the rights that they are given, and notes it for a comparison over all test programs: so
//! the operator's roles have no right too few, and none too many.

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use crds::{
    GROUP, PROVIDER_GROUP,
    manifests::{OPERATOR_RIGHTS, OperatorRight, VERBS_OF_OBJECTS},
};

use crate::{AuditEvent, audit::ObjectReference};

/// The folder into which each test program notes what its operators asked for; without it nothing is noted.
const FOLDER: &str = "STACKWRIGHT_CALLS";

/// Groups and plurals of what no chart of a test brings, besides our kinds and the providers'.
const OF_NO_CHART: [(&str, &str); 2] = [("cluster.x-k8s.io", "clusters"), ("coordination.k8s.io", "leases")];

/// One right with one of its verbs: what a rule of a role allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    group: &'static str,
    resources: &'static [&'static str],
    verb: &'static str,
}

impl Permission {
    /// As it stands in a note: one line.
    fn line(&self) -> String {
        format!("{} {} {}", self.verb, self.resources.join(","), self.group)
    }
}

/// Refuses requests that no right covers, and notes by which rights the others were covered.
pub fn hold_against_rights<'a>(events: impl IntoIterator<Item = &'a AuditEvent>) -> Result<()> {
    note(&used(events)?)
}

fn used<'a>(events: impl IntoIterator<Item = &'a AuditEvent>) -> Result<BTreeSet<Permission>> {
    let (mut used, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        let Some(object) = &event.object else { continue };
        match permission(verb(event), object) {
            Some(permission) => drop(used.insert(permission)),
            None if is_about_an_object_of_a_release(event, object) => {}
            None => drop(wrong.insert(format!("{} {}", event.verb, event.request_uri))),
        }
    }
    ensure!(
        wrong.is_empty(),
        "the operator asks for what its roles do not allow (crds/src/manifests/operator.rs): {wrong:#?}"
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

fn permission(verb: &str, object: &ObjectReference) -> Option<Permission> {
    let resource = match object.subresource.as_str() {
        "" => object.resource.clone(),
        subresource => format!("{}/{subresource}", object.resource),
    };
    let covers = |right: &&OperatorRight| {
        right.group == object.api_group && (right.resources == ["*"] || right.resources.contains(&resource.as_str()))
    };
    let rights = OPERATOR_RIGHTS.iter().filter(covers);
    rights
        .flat_map(|right| {
            let unseen = right.unseen.iter().map(|(verb, _)| verb);
            right.verbs.iter().chain(unseen).map(move |verb| (right, *verb))
        })
        .find(|(_, allowed)| *allowed == verb)
        .map(|(right, verb)| Permission {
            group: right.group,
            resources: right.resources,
            verb,
        })
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

/// What no operator of any test program asked for although its roles allow it; `None` where nothing was noted, because only some programs ran.
pub fn never_asked_for() -> Result<Option<Vec<String>>> {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return Ok(None);
    };
    let noted = noted(&folder)?;
    let permissions = OPERATOR_RIGHTS.iter().flat_map(|right| {
        right.verbs.iter().map(|verb| Permission {
            group: right.group,
            resources: right.resources,
            verb,
        })
    });
    let lines = permissions.map(|permission| permission.line());
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
        ] {
            used([&allowed]).expect("a right");
        }
        for refused in [
            event("update", "", GROUP, "clusterstacks", ""),
            event("deletecollection", "", "apps", "deployments", ""),
            event("list", "?limit=500", "", "secrets", ""),
            event("create", "", "", "serviceaccounts", "token"),
            event("impersonate", "", "", "users", ""),
            event("patch", "", "cluster.x-k8s.io", "clusters", ""),
            event("delete", "", PROVIDER_GROUP, "tenderreleases", ""),
            event("delete", "", "coordination.k8s.io", "leases", ""),
        ] {
            let error = used([&refused]).expect_err("no right");
            assert!(error.to_string().contains("what its roles do not allow"), "{error}");
        }
    }
}
