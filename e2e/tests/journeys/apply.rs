//! Objects are written: in which order, in whose name, and what is said of those that cannot be.

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStackRelease,
    cluster_stack_release::ClusterStackReleaseStatus,
    conditions::{self, ConditionType},
    labels,
    resource::{Resource, SyncStatus},
};
use e2e::{
    Journey,
    audit::AuditEvent,
    eventually,
    journey::{SOON, USER, status},
    releases::StackSource,
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::journey;

/// A stack with one further template in its class chart, published as version 1; the answer is its tag.
pub(crate) fn publish_with(journey: &Journey, template: &str) -> Result<String> {
    let source = StackSource::harbor("v1")?;
    source.write("cluster-class/templates/further.yaml", template)?;
    journey.releases.publish_stack(&source.path(), "v1")
}

/// The row of an object.
pub(crate) fn row<'a>(status: &'a ClusterStackReleaseStatus, kind: &str, name: &str) -> Result<&'a Resource> {
    let row = status.resources.iter().find(|row| row.kind == kind && row.name == name);
    row.with_context(|| format!("no row of {kind} {name}: {:#?}", status.resources))
}

/// Reason and message of a condition.
pub(crate) fn said(status: &ClusterStackReleaseStatus, kind: ConditionType) -> (String, String) {
    let condition = conditions::find(&status.conditions, kind).cloned();
    condition.map_or_else(Default::default, |condition| {
        (
            condition.reason.unwrap_or_default(),
            condition.message.unwrap_or_default(),
        )
    })
}

#[test]
fn an_object_that_is_refused_stops_no_other_and_shows_the_words_of_the_api_server() -> Result<()> {
    journey(async |journey| {
        let refused = "\
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
metadata:
  name: refused
spec: { template: { spec: { customImage: { of: the wrong type } } } }
";
        let tag = publish_with(journey, refused)?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let words = match journey.apply(serde_yaml::from_str(refused)?).await {
            Ok(_) => anyhow::bail!("the API server takes it"),
            Err(error) => match error.downcast::<kube::Error>()? {
                kube::Error::Api(answer) => answer.message,
                other => return Err(other.into()),
            },
        };
        let others_are_there = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            rows.len() == 8 && rows.iter().filter(|row| row.status == Some(SyncStatus::Synced)).count() == 7
        };
        let release = journey
            .until_release(&tag, "all others there", others_are_there)
            .await?;
        let status = status(&release);
        let row = row(&status, "DockerMachineTemplate", "refused")?;
        ensure!(
            row.status == Some(SyncStatus::NotSynced) && row.error.contains(&words),
            "{words}: {row:#?}"
        );
        let (reason, message) = said(&status, ConditionType::HelmChartApplied);
        ensure!(
            reason == "FailedToApplyObjects" && message.contains(&words),
            "{reason}: {message}"
        );
        assert!(!status.ready);
        let stack = journey.usable("harbor", "").await?;
        let summary = stack.status.map(|status| status.summary).unwrap_or_default();
        ensure!(summary.len() == 1 && !summary[0].ready, "{summary:#?}");
        Ok(())
    })
}

#[test]
fn an_object_of_somebody_else_is_not_forced_but_shown_with_its_manager() -> Result<()> {
    journey(async |journey| {
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: claimed\ndata: { color: ours }\n";
        let tag = publish_with(journey, template)?;
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "claimed" },
            "data": { "color": "theirs", "size": "theirs too" },
        });
        let before = journey.apply(theirs).await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let shown = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            let row = rows.iter().find(|row| row.name == "claimed");
            row.is_some_and(|row| row.error.contains(USER) && row.error.contains(".data.color"))
        };
        let release = journey.until_release(&tag, "the conflict shown", shown).await?;
        assert!(!status(&release).ready);
        let maps = journey.objects("v1", "ConfigMap");
        assert_eq!(maps.get("claimed").await?.resource_version(), before.resource_version());
        // They give the field up, and keep the other.
        let given_up = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "claimed" }, "data": { "size": "theirs too" },
        });
        journey.apply(given_up).await?;
        journey.release_ready(&tag).await?;
        let data = maps.get("claimed").await?.data["data"].clone();
        assert_eq!(data, json!({ "color": "ours", "size": "theirs too" }));
        Ok(())
    })
}

/// A kind of the journey's own.
pub(crate) fn crate_kind(journey: &Journey) -> Value {
    let group = format!("{}.example.com", journey.namespace);
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("crates.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": "Crate", "plural": "crates" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": anything },
            }],
        },
    })
}

pub(crate) const CRATE: &str = "
apiVersion: {{ .Release.Namespace }}.example.com/v1
kind: Crate
metadata:
  name: apples
";

#[test]
fn a_kind_that_is_missing_is_waited_for_and_the_wait_ends_by_itself() -> Result<()> {
    journey(async |journey| {
        let tag = publish_with(journey, CRATE)?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let missing =
            |release: &ClusterStackRelease| said(&status(release), ConditionType::HelmChartApplied).0 == "KindNotFound";
        let release = journey.until_release(&tag, "waiting for the kind", missing).await?;
        let kind = format!("Crate.{}.example.com", journey.namespace);
        let row = row(&status(&release), "Crate", "apples")?.clone();
        assert_eq!(row.status, Some(SyncStatus::NotSynced));
        assert_eq!(row.error, format!("the API server does not serve the kind {kind}"));
        let (reason, message) = said(&status(&release), ConditionType::Reconciling);
        assert_eq!(
            (reason.as_str(), message),
            (
                "Progressing",
                format!("waits until the API server serves the kind {kind}")
            )
        );
        journey.apply_for_all(crate_kind(journey)).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

/// So many objects of a kind that nothing serves.
fn crates(number: usize) -> String {
    format!(
        "{{{{- range $number := until {number} }}}}\n---\napiVersion: {{{{ $.Release.Namespace }}}}.example.com/v1\nkind: Crate\nmetadata:\n  \
         name: a-crate-with-a-name-of-some-fifty-letters-{{{{ $number }}}}\n{{{{- end }}}}\n"
    )
}

#[test]
fn the_inventory_of_a_large_release_is_stored_and_that_of_a_larger_one_refused_before_anything_is_applied() -> Result<()>
{
    journey(async |journey| {
        let large = publish_with(journey, &crates(2_000))?;
        let source = StackSource::harbor("v2")?;
        source.write("cluster-class/templates/further.yaml", &crates(6_000))?;
        let larger = journey.releases.publish_stack(&source.path(), "v2")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        let told = |release: &ClusterStackRelease| {
            let (reason, message) = said(&status(release), ConditionType::HelmChartApplied);
            reason == "KindNotFound" && message.contains("(2000 objects)")
        };
        let release = journey.until_release(&large, "waiting for the kind", told).await?;
        assert!(status(&release).resources.len() > 2_000);
        let refused = |release: &ClusterStackRelease| {
            let (_, message) = said(&status(release), ConditionType::HelmChartTemplated);
            message.contains("at most 896 KiB fit")
        };
        let release = journey.until_release(&larger, "refused", refused).await?;
        let (reason, message) = said(&status(&release), ConditionType::Stalled);
        assert_eq!(reason, "RenderFailed", "{message}");
        assert!(status(&release).resources.is_empty());
        assert!(
            journey
                .objects("cluster.x-k8s.io/v1beta1", "ClusterClass")
                .get_opt(&larger)
                .await?
                .is_none()
        );
        Ok(())
    })
}

/// One object of each wave, unordered, and one of a kind that the same chart brings.
const WAVES: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: {{ .Release.Namespace }}
webhooks: []
---
apiVersion: {{ .Release.Namespace }}.example.com/v1
kind: Crate
metadata:
  name: apples
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: worker
---
apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Release.Namespace }}-extra
---
";

/// Whether an object of a release was written by apply.
fn is_apply(event: &AuditEvent) -> bool {
    let of_a_release = event
        .object
        .as_ref()
        .is_some_and(|object| object.api_group != crds::GROUP);
    event.verb == "patch" && !event.dry_run && of_a_release
}

#[test]
fn objects_are_applied_wave_by_wave_after_the_inventory_names_them_all() -> Result<()> {
    journey(async |journey| {
        let kind = serde_yaml::to_string(&crate_kind(journey))?;
        let tag = publish_with(journey, &format!("{WAVES}{kind}"))?;
        let mark = journey.mark().await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let events = journey.requests_since(mark).await?;
        let inventory = events.iter().position(|event| {
            let object = event.object.as_ref();
            object.is_some_and(|object| object.subresource == "status" && object.name == tag)
        });
        let inventory = inventory.context("no status was written")?;
        let first = events.iter().position(is_apply);
        ensure!(
            Some(inventory) < first,
            "the inventory was request {inventory}, the first object {first:?}"
        );
        let waves = [
            &["customresourcedefinitions"][..],
            &["namespaces"],
            &["serviceaccounts"],
            &["configmaps"],
            &["clusterclasses", "crates", "dockermachinetemplates"],
            &["validatingwebhookconfigurations"],
        ];
        let mut order = Vec::new();
        for event in events.filter(is_apply) {
            ensure!(event.code < 300, "refused: {event:?}");
            let resource = event.object.unwrap_or_default().resource;
            order.extend(waves.iter().position(|wave| wave.contains(&resource.as_str())));
        }
        ensure!(
            order.is_sorted() && order.contains(&0) && order.contains(&5),
            "{order:?}"
        );
        Ok(())
    })
}

#[test]
fn the_status_is_replaced_as_a_whole_so_what_others_wrote_into_it_goes() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let mark = journey.mark().await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        let mut conditions = serde_json::to_value(&status(&release).conditions)?;
        let foreign = json!({ "type": "Foreign", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        conditions.as_array_mut().context("conditions")?.push(foreign);
        let patch = json!({ "status": { "conditions": conditions, "ready": false, "kubernetesVersion": "v0.0.0" } });
        let releases = journey.api::<ClusterStackRelease>();
        releases
            .patch_status(&tag, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        let restored = |now: &ClusterStackRelease| status(now) == status(&release);
        journey.until_release(&tag, "the status as it was", restored).await?;
        let events = journey.requests_since(mark).await?;
        let verbs = events.iter().filter(|event| {
            event
                .object
                .as_ref()
                .is_some_and(|object| object.subresource == "status")
        });
        assert!(
            verbs.clone().count() > 2 && verbs.clone().all(|event| event.verb == "update"),
            "{:#?}",
            verbs.collect::<Vec<_>>()
        );
        Ok(())
    })
}

/// What a request said, if it said anything.
fn body(event: &AuditEvent) -> Result<Value> {
    Ok(serde_json::from_str(event.body.as_deref().unwrap_or("null"))?)
}

#[test]
fn only_the_object_that_was_read_is_deleted_and_only_the_status_that_was_read_is_replaced() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let inventory = journey.inventory(&tag).await?;
        let uids: Vec<_> = inventory.values().flatten().filter_map(ResourceExt::uid).collect();
        let mark = journey.mark().await?;
        journey.delete::<ClusterStackRelease>(&tag).await?;
        // The stack lists it still, and makes it again.
        let again =
            |release: &ClusterStackRelease| status(release).ready && release.metadata.deletion_timestamp.is_none();
        journey.until_release(&tag, "made again", again).await?;
        let events = journey.requests_since(mark).await?;
        let deletions = events.clone().filter(|event| event.verb == "delete");
        let mut deleted = Vec::new();
        for event in &*deletions {
            let uid = body(event)?
                .pointer("/preconditions/uid")
                .and_then(Value::as_str)
                .map(str::to_owned);
            deleted.push(uid.with_context(|| format!("without a precondition: {event:?}"))?);
        }
        ensure!(
            deleted.len() == uids.len() && uids.iter().all(|uid| deleted.contains(uid)),
            "{deleted:?} {uids:?}"
        );
        let statuses = events.filter(|event| {
            event
                .object
                .as_ref()
                .is_some_and(|object| object.subresource == "status")
        });
        for event in &*statuses {
            let version = body(event)?.pointer("/metadata/resourceVersion").cloned();
            ensure!(
                version.is_some_and(|version| version.is_string()),
                "whatever it is now: {event:?}"
            );
        }
        ensure!(!statuses.is_empty(), "no status was written");
        Ok(())
    })
}

#[test]
fn every_object_carries_the_mark_of_its_release_and_the_release_the_kinds_of_its_objects() -> Result<()> {
    journey(async |journey| {
        let template = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: idle
spec:
  replicas: 0
  selector: { matchLabels: { app: idle } }
  template:
    metadata: { labels: { app: idle } }
    spec: { containers: [{ name: idle, image: registry.example.com/idle }] }
";
        let tag = publish_with(journey, template)?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let all = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            rows.len() == 8 && rows.iter().all(|row| row.status == Some(SyncStatus::Synced))
        };
        let release = journey.until_release(&tag, "all objects there", all).await?;
        let mark = labels::part_of("ClusterStackRelease", &journey.namespace, &tag);
        let inventory = journey.inventory(&tag).await?;
        assert_eq!(inventory.len(), 8);
        for (name, object) in inventory {
            let object = object.with_context(|| format!("{name} is not there"))?;
            assert_eq!(object.labels().get(labels::PART_OF), Some(&mark), "{name}");
            assert_eq!(
                object.labels().get(labels::INSTANCE).map(String::as_str),
                Some(labels::INSTANCE_OWNED)
            );
            // Pods carry the label of the contract only: another would roll them when the release changes.
            if let Some(pods) = object
                .data
                .pointer("/spec/template/metadata/labels")
                .filter(|_| name.starts_with("Deployment"))
            {
                assert_eq!(
                    *pods,
                    json!({ "app": "idle", labels::INSTANCE: labels::INSTANCE_OWNED })
                );
            }
        }
        let kinds = release
            .annotations()
            .get(labels::CONTAINS_GROUP_KINDS)
            .map(String::as_str);
        let expected = "ClusterClass.cluster.x-k8s.io,Deployment.apps,DockerClusterTemplate.infrastructure.cluster.x-k8s.io,\
            DockerMachineTemplate.infrastructure.cluster.x-k8s.io,KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io,\
            KubeadmControlPlaneTemplate.controlplane.cluster.x-k8s.io";
        assert_eq!(kinds, Some(expected));
        Ok(())
    })
}

#[test]
fn a_kind_that_goes_makes_its_release_unready_until_it_is_back() -> Result<()> {
    journey(async |journey| {
        let tag = publish_with(journey, CRATE)?;
        journey.apply_for_all(crate_kind(journey)).await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let definitions = kube::Api::<kube::api::DynamicObject>::all_with(
            journey.client.clone(),
            &kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
                "apiextensions.k8s.io",
                "v1",
                "CustomResourceDefinition",
            )),
        );
        definitions
            .delete(
                &format!("crates.{}.example.com", journey.namespace),
                &DeleteParams::default(),
            )
            .await?;
        let missing = |release: &ClusterStackRelease| {
            !status(release).ready && said(&status(release), ConditionType::HelmChartApplied).0 == "KindNotFound"
        };
        journey.until_release(&tag, "unready without the kind", missing).await?;
        eventually(SOON, "the kind to be accepted again", async || {
            journey.apply_for_all(crate_kind(journey)).await
        })
        .await?;
        journey.release_ready(&tag).await?;
        let group = format!("{}.example.com/v1", journey.namespace);
        journey.objects(&group, "Crate").get("apples").await?;
        Ok(())
    })
}

#[test]
fn objects_are_rendered_by_the_helm_that_the_stack_names() -> Result<()> {
    journey(async |journey| {
        let template = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: rendered
data:
  helm: {{ .Capabilities.HelmVersion.Version }}
  values: {{ typeOf .Values }}
  chart: {{ kindOf .Chart }}
";
        let tag = publish_with(journey, template)?;
        journey.operate().await?;
        let spec = json!({ "versions": ["v1"], "helmProfile": "v4.3" });
        journey.stack("harbor", spec).await?;
        let is_written = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            rows.len() == 8 && rows.iter().all(|row| row.status == Some(SyncStatus::Synced))
        };
        journey.until_release(&tag, "all objects there", is_written).await?;
        let rendered = journey.objects("v1", "ConfigMap").get("rendered").await?;
        // The default says "v3.19.0", "chartutil.Values" and "struct".
        let expected = json!({ "helm": "v4.3.1", "values": "common.Values", "chart": "map" });
        assert_eq!(rendered.data["data"], expected);
        Ok(())
    })
}

/// The Go operator reads discovery anew for each object that it applies, and keeps all Secrets of the management cluster in memory.
#[test]
fn f34_discovery_is_read_for_all_objects_together_and_secrets_are_neither_listed_nor_watched() -> Result<()> {
    const RELEASES: usize = 6;
    // On a control plane of its own: a kind that another journey brings would be a reason to read again.
    e2e::journey::journey(async |here| {
        here.elsewhere(async |journey| {
            let versions: Vec<String> = (1..=RELEASES).map(|number| format!("v{number}")).collect();
            for version in &versions {
                journey.releases.publish_harbor("v1", version)?;
            }
            let start = journey.mark().await?;
            journey.operate().await?;
            journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
            journey.usable("harbor", "v1").await?;
            // The definitions of this control plane are new: the operator reads until the API server serves what they say. That is over now.
            let settled = journey.mark().await?;
            journey.stack("harbor", json!({ "versions": versions })).await?;
            journey.usable("harbor", &versions.join(", ")).await?;
            let asked = journey.requests_since(settled).await?;
            let path = |event: &AuditEvent| event.request_uri.split('?').next().unwrap_or_default().to_owned();
            let is_discovery = |event: &AuditEvent| event.object.is_none() && path(event).starts_with("/api");
            let discovery = asked.clone().filter(is_discovery);
            let applied = asked.filter(|event| event.verb == "patch");
            ensure!(applied.len() >= 4 * (RELEASES - 1), "{applied:#?}");
            // Both lists once more where something came late; one reading for each release would be ten requests.
            ensure!(discovery.len() <= 2, "{discovery:#?}");
            let secrets = |event: &AuditEvent| event.object.as_ref().is_some_and(|object| object.resource == "secrets");
            let secrets = journey.requests_since(start).await?.filter(secrets);
            ensure!(secrets.is_empty(), "{secrets:#?}");
            Ok(())
        })
        .await
    })
}
