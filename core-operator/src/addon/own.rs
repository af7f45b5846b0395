//! A ClusterAddon as the owner of its objects: what is asked of it, and what is written to it itself, and to what belongs to it alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::cluster_addon::ClusterAddon;
use crds::conditions::Reason;
use crds::labels;
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use operator_kit::events::EventType;
use operator_kit::failure::{chain, words_of};
use operator_kit::finalizer::{FinalizerError, Marking, mark};
use operator_kit::object::ObjectKey;
use operator_kit::takeover::{Rename, take_over};
use planning::addon::{AddonAction, AddonPlan};
use planning::objects::{Intent, OwnerKind};
use serde_json::json;

use super::made::owner;
use super::observe::{Found, Subject};
use super::presence::{PresenceError, delete, let_go};
use super::seen::{is_cluster, owner_uid};
use super::status::{api, write_status};
use crate::lanes::Unrendered;
use crate::objects::{Bodies, Failed, Intents, Owner, Unprepared, lock};

/// What is said of a ClusterAddon that the API server took and did not keep as it was sent.
const MARK_NOT_KEPT: &str = "the API server took the ClusterAddon and dropped or changed its finalizer or its annotations: stop the policy \
    that changes them";

/// What is said when the memo of a ClusterAddon is written anew though there was one.
const MEMO_LOST: &str = "what the charts drew at random is gone or is another than it was, so it is drawn anew: passwords, keys and certificates in the \
    cluster change";

/// A ClusterAddon as one pass over its objects has it.
pub(super) struct AddonOwner<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) found: &'a Found,
    pub(super) plan: &'a AddonPlan,
}

impl AddonOwner<'_> {
    /// What the plan wants, each object as the chart that is meant wants it.
    pub(super) fn wanted(&self) -> BTreeMap<ObjectKey, Intent> {
        let charts = self.plan.charts.iter();
        let wanted = charts.filter_map(|(key, chart)| {
            let intent = self.found.observed.intents_of(chart)?.get(key)?;
            Some((key.clone(), intent.clone()))
        });
        wanted.collect()
    }
}

impl Owner for AddonOwner<'_> {
    type Object = ClusterAddon;
    type Action = AddonAction;

    fn kind(&self) -> OwnerKind {
        OwnerKind::Addon
    }

    fn told(&self, words: &str) -> String {
        self.found.hidden.without(words)
    }

    fn namespace_of<'k>(&'k self, key: &'k ObjectKey) -> &'k str {
        &key.namespace
    }

    async fn still_wanted(&self, addon: &ClusterAddon) -> Result<(), Failed> {
        let api = api(self.subject.context, &addon.namespace().unwrap_or_default());
        let found = api.get_metadata_opt(&addon.name_any()).await;
        let found = found.map_err(|error| Failed(words_of(&error)))?;
        let there = found.filter(|found| found.metadata.uid == addon.metadata.uid);
        // What a cluster needs before it can go is applied while both go.
        let is_cluster_going = || {
            self.found
                .observed
                .cluster
                .as_ref()
                .is_some_and(|cluster| cluster.deleting.is_some())
        };
        match there {
            None => Err(Failed("the ClusterAddon is gone".to_owned())),
            Some(found) if found.metadata.deletion_timestamp.is_some() && !is_cluster_going() => {
                Err(Failed("the ClusterAddon is being deleted".to_owned()))
            }
            Some(_) => Ok(()),
        }
    }

    async fn perform(&self, addon: &ClusterAddon, action: &AddonAction) -> Result<Option<ClusterAddon>, Failed> {
        let Subject { context, addons, .. } = self.subject;
        match action {
            AddonAction::SetOwner { name, uid } => self.set_owner(addon, name, uid).await.map(Some),
            AddonAction::Mark { group_kinds } => {
                let kinds = group_kinds.iter().map(|kind| (kind.group.as_str(), kind.kind.as_str()));
                let kinds = labels::format_group_kinds(kinds);
                self.mark(addon, &[(labels::CONTAINS_GROUP_KINDS, &kinds)])
                    .await
                    .map(Some)
            }
            AddonAction::SetMarks { marks } => {
                let marks: Vec<(&str, &str)> = marks
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                self.mark(addon, &marks).await.map(Some)
            }
            AddonAction::RecordMemo { anew, .. } => self.record_memo(addon, *anew).await.map(|()| None),
            AddonAction::RecordInventory { status } => {
                let written = write_status(context, addon, status).await.map_err(Failed)?;
                lock(&self.subject.memory.own).status_written_at = Some(context.now());
                Ok(Some(written))
            }
            AddonAction::Delete { .. } => gone(delete(context, addons, addon).await),
            AddonAction::RemoveFinalizer => gone(let_go(context, addons, addon).await),
        }
    }

    fn note(&self, newer: &ClusterAddon) {
        self.subject.addons.objects.note(newer.clone());
    }

    /// Rendered again here, the charts that the plan means.
    async fn bodies(&self, addon: &ClusterAddon) -> Result<Option<Bodies>, Unprepared> {
        let (Some(usable), Some(cluster)) = (&self.found.usable, &self.found.observed.cluster) else {
            return Ok(None);
        };
        let release = (usable, &self.found.policy);
        let work = self
            .subject
            .chart_work(addon, &cluster.name, release, self.found.place.as_ref());
        let memory = Arc::clone(&lock(&self.subject.memory.own).charts);
        let mut memory = memory.lock().await;
        let (mut rendered, mut wanted) = (BTreeMap::<&str, Intents>::new(), Intents::default());
        for (key, chart) in &self.plan.charts {
            if !rendered.contains_key(chart.as_str()) {
                let bodies = match work.bodies(&mut memory, chart).await {
                    Ok(bodies) => bodies,
                    Err(Unrendered::Awaited) => return Err(Unprepared::Awaited),
                    Err(Unrendered::Failed(failed)) => return Ok(Some(Err(failed.message))),
                };
                rendered.insert(chart, bodies);
            }
            let of_chart = rendered.get_mut(chart.as_str());
            let found = of_chart.and_then(|of| of.planned.remove(key).zip(of.bodies.remove(key)));
            if let Some((planned, body)) = found {
                wanted.planned.insert(key.clone(), planned);
                wanted.bodies.insert(key.clone(), body);
            }
        }
        Ok(Some(Ok(Arc::new(wanted))))
    }

    /// Of an owner in another API server nobody knows here whether it is there: what it made is left to it.
    async fn is_elsewhere(&self, _: &ObjectKey, _: &str) -> Result<bool, String> {
        Ok(true)
    }

    async fn take_over_status(&self, addon: &ClusterAddon) -> Result<(), String> {
        let status = [Rename {
            from: labels::PREDECESSOR_STATUS_FIELD_MANAGER,
            operation: "Update",
            subresource: Some("status"),
            to: labels::STATUS_FIELD_MANAGER,
        }];
        let (namespace, name) = (addon.namespace().unwrap_or_default(), addon.name_any());
        let own = ObjectKey::new(crds::GROUP, "ClusterAddon", namespace, name);
        let management = &self.subject.context.management;
        let taken = take_over(&management.client, &management.discovery, &own, &status).await;
        taken.map(drop).map_err(|error| chain(&error))
    }
}

impl AddonOwner<'_> {
    /// Puts our finalizer on it, and these annotations.
    async fn mark(&self, addon: &ClusterAddon, noted: &[(&str, &str)]) -> Result<ClusterAddon, Failed> {
        let api = api(self.subject.context, &addon.namespace().unwrap_or_default());
        let marked = mark(&api, addon, labels::ADDON_FINALIZER, noted, labels::FIELD_MANAGER).await;
        match marked.map_err(unwritten)? {
            Marking::Kept(marked) => Ok(*marked),
            Marking::Changed(marked) => {
                self.subject.addons.objects.note(*marked);
                Err(Failed(MARK_NOT_KEPT.to_owned()))
            }
        }
    }

    /// Makes its Cluster its owner: without one it would stay when that goes.
    async fn set_owner(&self, addon: &ClusterAddon, name: &str, uid: &str) -> Result<ClusterAddon, Failed> {
        let context = self.subject.context;
        let version = context
            .clusters
            .api_version()
            .await
            .map_err(|error| Failed(chain(&error)))?;
        let Some(api_version) = version else {
            return Err(Failed("the API server does not serve Clusters any more".to_owned()));
        };
        let mut owners: Vec<_> = addon
            .owner_references()
            .iter()
            .filter(|owner| !is_cluster(owner))
            .cloned()
            .collect();
        owners.push(owner(name, uid, &api_version));
        let patch = json!({ "metadata": { "resourceVersion": addon.resource_version(), "ownerReferences": owners } });
        let params = PatchParams {
            field_manager: Some(labels::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = api(context, &addon.namespace().unwrap_or_default());
        let patched = api.patch(&addon.name_any(), &params, &Patch::Merge(patch)).await;
        let patched = patched.map_err(|error| Failed(words_of(&error)))?;
        if owner_uid(&patched) == Some(uid) {
            return Ok(patched);
        }
        self.subject.addons.objects.note(patched);
        let message =
            "the API server took the owner of the ClusterAddon and dropped it: stop the policy that changes it";
        Err(Failed(message.to_owned()))
    }

    async fn record_memo(&self, addon: &ClusterAddon, anew: bool) -> Result<(), Failed> {
        let context = self.subject.context;
        let memory = Arc::clone(&lock(&self.subject.memory.own).charts);
        let recorded = memory.lock().await.record(&context.management, addon).await;
        recorded.map_err(|error| Failed(chain(&error)))?;
        if anew {
            let about = addon.object_ref(&());
            tracing::warn!(namespace = about.namespace, name = about.name, "{MEMO_LOST}");
            context
                .events
                .publish(about, EventType::Warning, Reason::MemoLost, MEMO_LOST);
        }
        Ok(())
    }
}

fn gone(done: Result<(), PresenceError>) -> Result<Option<ClusterAddon>, Failed> {
    done.map(|()| None).map_err(|error| Failed(error.words()))
}

/// What the API server says to it.
fn unwritten(error: FinalizerError) -> Failed {
    let FinalizerError::Patch { source, .. } = error;
    Failed(words_of(&source))
}
