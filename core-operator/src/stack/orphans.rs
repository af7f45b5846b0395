//! Looks at what the Go operator left behind of a stack, and takes it away once that was allowed.

use std::collections::{BTreeMap, BTreeSet};

use crds::{ClusterStack, ClusterStackRelease, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt};
use operator_kit::delete::Version;
use operator_kit::failure::{chain, words_of};
use operator_kit::object::ObjectKey;
use planning::objects::key_of;
use planning::stack::{Leftover, templates_of};
use serde_json::json;

use crate::context::Context;
use crate::leftovers;
use crate::objects::is_predecessors;

/// The classes of a stack that nobody has taken over, by name; `None` until all are known.
pub(super) fn observe(context: &Context, stack: &ClusterStack, namespace: &str) -> Option<BTreeMap<String, Leftover>> {
    let Ok(stem) = stack.spec.stem() else {
        return Some(BTreeMap::new());
    };
    let classes = context.leftovers.of(namespace, &stem)?;
    if classes.is_empty() {
        return Some(BTreeMap::new());
    }
    let held = inventories(context, namespace);
    let leftover = |(name, class): (String, leftovers::LeftBehind)| {
        let leftover = Leftover {
            uid: class.uid,
            deleting: class.deleting,
            held: class.templates.intersection(&held).cloned().collect(),
            templates: class.templates,
        };
        (name, leftover)
    };
    Some(classes.into_iter().map(leftover).collect())
}

/// Every object that a release of a namespace has in its inventory. Rows of the Go operator may name no namespace.
fn inventories(context: &Context, namespace: &str) -> BTreeSet<ObjectKey> {
    let mut keys = BTreeSet::new();
    for release in context.releases.select(namespace, |_| true) {
        let rows = release.status.iter().flat_map(|status| &status.resources);
        keys.extend(rows.map(key_of).map(|key| {
            if key.namespace.is_empty() {
                ObjectKey::new(key.group, key.kind, namespace, key.name)
            } else {
                key
            }
        }));
    }
    keys
}

/// A ClusterClass that may go, as the plan names it.
pub(super) struct Doomed<'a> {
    pub(super) class: &'a str,
    pub(super) tag: &'a str,
    pub(super) uid: &'a str,
    pub(super) templates: &'a BTreeSet<ObjectKey>,
}

/// Deletes a class, if what the plan rests on is still so. Its templates go with it as its dependents, so that none is left when this process ends
/// in between. A class that shares one with what stays is not deleted.
pub(super) async fn remove(context: &Context, namespace: &str, doomed: &Doomed<'_>) -> Result<(), String> {
    let kind = leftovers::kind();
    let served = context.management.discovery.resolve_kind(&kind).await;
    if served.map_err(|error| chain(&error))?.is_none() {
        return Err("the API server does not serve ClusterClasses now".to_owned());
    }
    let key = ObjectKey::new(kind.group, kind.kind, namespace, doomed.class);
    let Some(class) = look(context, &key).await? else {
        context.leftovers.note_deleted(doomed.uid);
        return Ok(());
    };
    if class.uid().as_deref() != Some(doomed.uid) || !is_predecessors(&class) {
        return Err("it is another one by now".to_owned());
    }
    not_kept(&class)?;
    // Cluster API, too, makes templates dependents of the classes that name them: one that has to stay would go with its class.
    if let Some(kept) = templates_of(&class.data, namespace).difference(doomed.templates).next() {
        return Err(format!("{} {}, which it names, has to stay", kept.kind, kept.name));
    }
    for template in doomed.templates {
        make_dependent(context, template, &class).await?;
    }
    not_needed(context, namespace, doomed.tag).await?;
    let version = class.resource_version().unwrap_or_default();
    let version = Version {
        uid: doomed.uid,
        resource_version: &version,
    };
    match context.management.delete(&key, version).await {
        Ok(_) => {
            tracing::info!(
                namespace,
                class = doomed.class,
                "a ClusterClass without a release was deleted"
            );
            context.leftovers.note_deleted(doomed.uid);
            Ok(())
        }
        Err(error) => Err(chain(&error)),
    }
}

/// Asks the API server whether somebody needs a class by now. A deletion cannot be taken back, and the watches that the plan rests on may be behind.
async fn not_needed(context: &Context, namespace: &str, tag: &str) -> Result<(), String> {
    let releases: Api<ClusterStackRelease> = Api::namespaced(context.management.client.clone(), namespace);
    let release = releases.get_metadata_opt(tag).await;
    if release.map_err(|error| words_of(&error))?.is_some() {
        return Err(format!("there is a release {tag} by now"));
    }
    if let Ok(tag) = tag.parse() {
        let users = context.clusters.users_now(namespace, &tag).await;
        if let Some(user) = users.map_err(|error| chain(&*error))?.first() {
            return Err(format!("it is in use by now: {user}"));
        }
    }
    Ok(())
}

/// Refuses what somebody has marked to be kept.
fn not_kept(object: &DynamicObject) -> Result<(), String> {
    let policy = object.annotations().get(labels::RESOURCE_POLICY).map(String::as_str);
    if policy != Some(labels::RESOURCE_POLICY_KEEP) {
        return Ok(());
    }
    let kind = object
        .types
        .as_ref()
        .map(|types| types.kind.as_str())
        .unwrap_or_default();
    let mark = format!("{}: {}", labels::RESOURCE_POLICY, labels::RESOURCE_POLICY_KEEP);
    Err(format!(
        "{kind} {} is to be kept by its annotation {mark}",
        object.name_any()
    ))
}

/// Makes a template go with its class; refuses where somebody has taken it over, because Cluster API may have made it go already.
async fn make_dependent(context: &Context, key: &ObjectKey, class: &DynamicObject) -> Result<(), String> {
    let Some(template) = look(context, key).await? else {
        return Ok(());
    };
    if !is_predecessors(&template) {
        return Err(format!("{} {}, which it names, is somebody else's", key.kind, key.name));
    }
    not_kept(&template)?;
    let owner = OwnerReference {
        api_version: class
            .types
            .as_ref()
            .map(|types| types.api_version.clone())
            .unwrap_or_default(),
        kind: leftovers::kind().kind,
        name: class.name_any(),
        uid: class.uid().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let mut owners = template.owner_references().to_vec();
    if owners.iter().any(|other| other.uid == owner.uid) {
        return Ok(());
    }
    owners.push(owner);
    let management = &context.management;
    let kind = key.group_kind();
    let resolved = management.crds.resolve_kind(&management.discovery, &kind).await;
    let Some(resolved) = resolved.map_err(|error| chain(&error))? else {
        return Ok(());
    };
    let patch = json!({"metadata": {"resourceVersion": template.resource_version(), "ownerReferences": owners}});
    let params = PatchParams {
        field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api = resolved.api(&management.client, Some(&key.namespace));
    match api.patch_metadata(&key.name, &params, &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(words_of(&error)),
    }
}

async fn look(context: &Context, key: &ObjectKey) -> Result<Option<DynamicObject>, String> {
    let found = context.management.read(key).await;
    found.map_err(|error| chain(&error))
}
