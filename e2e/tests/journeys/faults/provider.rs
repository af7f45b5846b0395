//! Providers prepare something (node images) before a release can be used: they bring kinds of their own, and report in a status.

use anyhow::{Context, Result};
use crds::{
    ClusterStack, ClusterStackRelease, PROVIDER_GROUP,
    conditions::{Condition, ConditionType, find},
};
use e2e::{
    Journey,
    audit::AuditEvent,
    eventually,
    journey::{SOON, status},
};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::journey;

const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1";
const TEMPLATE: &str = "images";

/// A provider whose release kind has this name. A kind is there for the whole control plane, so each journey has its own.
struct Provider<'a> {
    journey: &'a Journey,
    kind: &'static str,
}

impl Provider<'_> {
    /// Installs the kind of the provider's objects and the kind of their templates.
    async fn install(&self) -> Result<()> {
        for kind in [self.kind.to_owned(), format!("{}Template", self.kind)] {
            let plural = format!("{}s", kind.to_lowercase());
            let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.{PROVIDER_GROUP}") },
                "spec": {
                    "group": PROVIDER_GROUP, "scope": "Namespaced",
                    "names": { "kind": kind, "plural": plural },
                    "versions": [{
                        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                        "schema": { "openAPIV3Schema": {
                            "type": "object", "properties": { "spec": anything, "status": anything },
                        } },
                    }],
                },
            });
            self.journey.apply_for_all(crd).await?;
        }
        Ok(())
    }

    /// Applies the template of the provider's objects; right after the kind, the API server may not serve it yet.
    async fn template(&self, spec: Value) -> Result<()> {
        let template = json!({
            "apiVersion": API_VERSION, "kind": format!("{}Template", self.kind), "metadata": { "name": TEMPLATE },
            "spec": { "template": { "spec": spec } },
        });
        eventually(SOON, "the template's kind to be served", async || {
            self.journey
                .apply(template.clone())
                .await
                .map_err(|error| format!("{error:#}"))
        })
        .await
        .map(drop)
    }

    /// A stack of version v1 with this provider. Its labels and annotations are for the provider too.
    async fn stack(&self) -> Result<()> {
        let stack = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
            "metadata": {
                "name": "harbor",
                "labels": { "example.com/region": "north" },
                "annotations": {
                    "example.com/cloud": "north-1",
                    "kubectl.kubernetes.io/last-applied-configuration": "{\"kind\":\"ClusterStack\"}",
                },
            },
            "spec": {
                "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "autoSubscribe": false, "versions": ["v1"],
                "providerRef": { "apiVersion": API_VERSION, "kind": format!("{}Template", self.kind), "name": TEMPLATE },
            },
        });
        self.journey.apply(stack).await.map(drop)
    }

    fn objects(&self) -> Api<DynamicObject> {
        self.journey.objects(API_VERSION, self.kind)
    }

    /// The provider's object of a release, once it has this spec.
    async fn object(&self, tag: &str, spec: &Value) -> Result<DynamicObject> {
        eventually(SOON, format!("the provider's object to say {spec}"), async || {
            let object = self.objects().get(tag).await?;
            anyhow::ensure!(object.data["spec"] == *spec, "it says {}", object.data["spec"]);
            Ok::<_, anyhow::Error>(object)
        })
        .await
    }

    /// What the provider's controller reports.
    async fn reports(&self, tag: &str, status: Value) -> Result<()> {
        let patch = json!({ "status": status });
        let patched = self
            .objects()
            .patch_status(tag, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.map(drop).context("failed to report")
    }
}

fn provider_condition(release: &ClusterStackRelease) -> Option<Condition> {
    find(
        &status(release).conditions,
        ConditionType::ProviderClusterStackReleaseReady,
    )
    .cloned()
}

/// Whether a release waits for its provider for this reason, with these words in the message.
fn waits(release: &ClusterStackRelease, reason: &str, words: &str) -> bool {
    provider_condition(release).is_some_and(|condition| {
        condition.reason.as_deref() == Some(reason) && condition.message.is_some_and(|message| message.contains(words))
    }) && !status(release).ready
}

/// The condition of a stack about its provider's objects: reason and message.
fn synced(stack: &ClusterStack) -> Option<(String, String)> {
    let conditions = stack.status.as_ref()?.conditions.as_slice();
    let condition = find(conditions, ConditionType::ProviderClusterStackReleasesSynced)?;
    Some((condition.reason.clone()?, condition.message.clone()?))
}

/// Since when a stack and its release wait for their provider.
fn since(stack: &ClusterStack, release: &ClusterStackRelease) -> Result<[Timestamp; 2]> {
    let conditions = stack.status.as_ref().map(|status| status.conditions.as_slice());
    let synced = find(
        conditions.unwrap_or_default(),
        ConditionType::ProviderClusterStackReleasesSynced,
    );
    let synced = synced.context("the stack tells nothing")?;
    let provided = provider_condition(release).context("the release tells nothing")?;
    Ok([synced.last_transition_time.0, provided.last_transition_time.0])
}

/// Waits until a stack and its release tell what is missing, and again after a restart: they do so since when they did before.
async fn since_when_is_told_also_after_a_restart(
    journey: &mut Journey,
    tag: &str,
    missing: impl Fn(&ClusterStack) -> bool,
    waits_for_it: impl Fn(&ClusterStackRelease) -> bool,
) -> Result<()> {
    let release = journey.until_release(tag, "waiting for it", &waits_for_it).await?;
    let stack = journey.until_stack("harbor", "told of it", &missing).await?;
    let before = since(&stack, &release)?;
    // Times are told to the second.
    eventually(SOON, "another second", async || {
        let latest = before.iter().max().copied().unwrap_or_default();
        anyhow::ensure!(Timestamp::now().as_second() > latest.as_second(), "it is {latest}");
        Ok(())
    })
    .await?;
    journey.restart_operator().await?;
    let stack = journey.ask_stack("harbor", "look").await?;
    let release = journey.ask_release(tag, "look").await?;
    anyhow::ensure!(missing(&stack) && waits_for_it(&release), "{stack:#?} {release:#?}");
    assert_eq!(since(&stack, &release)?, before);
    Ok(())
}

#[test]
fn a4_f25_a_release_is_usable_while_its_provider_says_so_and_repeats_its_words() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "PontoonRelease",
        };
        provider.install().await?;
        provider.template(json!({ "images": ["ubuntu"] })).await?;
        provider.stack().await?;
        provider.object(&tag, &json!({ "images": ["ubuntu"] })).await?;
        let release = journey
            .until_release(&tag, "waiting for the provider", |release| {
                waits(release, "ProcessOngoing", "not ready yet")
            })
            .await?;
        assert!(status(&release).resources.is_empty(), "{release:#?}");
        provider.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        journey.usable("harbor", "v1").await?;
        let objects = journey.inventory(&tag).await?;
        // The cloud lost an image: no Cluster can be made from this release now, but those there are keep their class.
        provider
            .reports(
                &tag,
                json!({ "ready": false, "phase": "Importing", "message": "image ubuntu is gone" }),
            )
            .await?;
        journey
            .until_release(&tag, "told what the provider says", |release| {
                waits(release, "ProcessOngoing", "Importing, image ubuntu is gone")
            })
            .await?;
        journey.usable("harbor", "").await?;
        assert_eq!(journey.inventory(&tag).await?, objects);
        provider.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a4_a_silent_provider_is_told_with_since_when_also_after_a_restart() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "MuteRelease",
        };
        provider.install().await?;
        provider.template(json!({ "images": ["ubuntu"] })).await?;
        provider.stack().await?;
        let is_silent = |release: &ClusterStackRelease| {
            waits(release, "ProcessOngoing", "its operator has said nothing of it so far")
        };
        let release = journey.until_release(&tag, "waiting for a word", is_silent).await?;
        let since = provider_condition(&release)
            .context("no condition")?
            .last_transition_time;
        journey.restart_operator().await?;
        journey.ask_stack("harbor", "look").await?;
        let release = journey.until_release(&tag, "waiting as before", is_silent).await?;
        let condition = provider_condition(&release).context("no condition")?;
        assert_eq!(condition.last_transition_time, since);
        Ok(())
    })
}

#[test]
fn a4_progress_of_a_provider_is_repeated_and_moves_without_a_storm_of_writes() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "CraneRelease",
        };
        provider.install().await?;
        provider.template(json!({ "images": ["ubuntu"] })).await?;
        provider.stack().await?;
        provider.object(&tag, &json!({ "images": ["ubuntu"] })).await?;
        let imported = |done: u32| {
            let progress = json!({ "done": done, "total": 1000, "unit": "MiB" });
            json!({ "ready": false, "phase": "Importing", "message": "image\nubuntu", "progress": progress })
        };
        let tells = async |done: u32| {
            let words = format!("Importing, image ubuntu, {} % ({done} of 1000 MiB)", done / 10);
            let is_told = |release: &ClusterStackRelease| waits(release, "ProcessOngoing", &words);
            journey.until_release(&tag, &words, is_told).await
        };
        provider.reports(&tag, imported(100)).await?;
        tells(100).await?;

        let (seen, began) = (journey.mark().await?, Timestamp::now());
        for done in 101..=600 {
            provider.reports(&tag, imported(done)).await?;
        }
        tells(600).await?;
        let took = Timestamp::now().duration_since(began).as_secs();
        let of_release = |event: &AuditEvent| {
            let object = event.object.as_ref();
            object.is_some_and(|object| object.resource == "clusterstackreleases" && object.name == tag)
        };
        let ours = journey.requests_since(seen).await?.writes().filter(of_release);
        let most = usize::try_from(took / 5)? + 2;
        assert!(ours.len() <= most, "{} writes in {took} seconds: {ours:#?}", ours.len());

        provider.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a_switch_to_another_provider_reaches_releases_that_are_there_and_what_the_old_one_made_goes_with_them() -> Result<()>
{
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let (old, new) = (
            Provider {
                journey,
                kind: "FerryRelease",
            },
            Provider {
                journey,
                kind: "TankerRelease",
            },
        );
        for provider in [&old, &new] {
            provider.install().await?;
            provider.template(json!({ "images": [provider.kind] })).await?;
        }
        old.stack().await?;
        old.object(&tag, &json!({ "images": ["FerryRelease"] })).await?;
        old.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;

        new.stack().await?;
        new.object(&tag, &json!({ "images": ["TankerRelease"] })).await?;
        let waits_for_new = |release: &ClusterStackRelease| waits(release, "ProcessOngoing", "not ready yet");
        journey
            .until_release(&tag, "waiting for the new provider", waits_for_new)
            .await?;
        new.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        // Machines may run from its images: only the end of the release ends it.
        old.objects().get(&tag).await.context("the old provider's object")?;
        journey.delete::<ClusterStack>("harbor").await?;
        for provider in [&old, &new] {
            eventually(SOON, format!("the {} to be gone", provider.kind), async || {
                let found = provider.objects().get_opt(&tag).await?;
                anyhow::ensure!(found.is_none(), "{found:?}");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        Ok(())
    })
}

#[test]
fn a4_f26_the_providers_object_follows_its_template_and_takes_no_annotation_of_kubectl_along() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "BargeRelease",
        };
        provider.install().await?;
        provider.template(json!({ "images": ["ubuntu"] })).await?;
        provider.stack().await?;
        let object = provider.object(&tag, &json!({ "images": ["ubuntu"] })).await?;
        assert_eq!(
            object.labels().get("example.com/region").map(String::as_str),
            Some("north")
        );
        assert_eq!(
            object.annotations().get("example.com/cloud").map(String::as_str),
            Some("north-1")
        );
        assert!(
            !object
                .annotations()
                .contains_key("kubectl.kubernetes.io/last-applied-configuration"),
            "{object:#?}"
        );
        let release = journey.api::<ClusterStackRelease>().get(&tag).await?;
        let [owner] = object.owner_references() else {
            anyhow::bail!("one owner expected: {object:#?}")
        };
        assert_eq!(
            (owner.kind.as_str(), owner.controller),
            ("ClusterStackRelease", Some(true))
        );
        assert_eq!(Some(&owner.uid), release.metadata.uid.as_ref());

        provider.template(json!({ "images": ["ubuntu", "flatcar"] })).await?;
        provider
            .object(&tag, &json!({ "images": ["ubuntu", "flatcar"] }))
            .await?;
        provider.objects().delete(&tag, &DeleteParams::default()).await?;
        let again = provider
            .object(&tag, &json!({ "images": ["ubuntu", "flatcar"] }))
            .await?;
        assert_ne!(again.metadata.uid, object.metadata.uid);
        Ok(())
    })
}

#[test]
fn a4_a_missing_template_is_explained_and_taken_when_it_is_there() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "DredgerRelease",
        };
        provider.install().await?;
        provider.stack().await?;
        let missing = |stack: &ClusterStack| {
            synced(stack).is_some_and(|(reason, message)| {
                reason == "ProviderTemplateNotFound" && message.contains("provider template could not be found")
            })
        };
        let waits_for_it = |release: &ClusterStackRelease| waits(release, "ProcessOngoing", "does not exist yet");
        since_when_is_told_also_after_a_restart(journey, &tag, missing, waits_for_it).await?;
        let provider = Provider {
            journey,
            kind: "DredgerRelease",
        };
        provider.template(json!({ "images": [] })).await?;
        provider.object(&tag, &json!({ "images": [] })).await?;
        journey
            .until_stack("harbor", "told that it is there", |stack| synced(stack).is_none())
            .await?;
        provider.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a4_a_missing_kind_is_waited_for_and_noticed_when_it_is_there() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "TenderRelease",
        };
        provider.stack().await?;
        let missing = |stack: &ClusterStack| {
            synced(stack).is_some_and(|(reason, message)| {
                reason == "KindNotFound"
                    && message.contains("TenderReleaseTemplate.infrastructure.clusterstack.x-k8s.io")
            })
        };
        let waits_for_it = |release: &ClusterStackRelease| {
            waits(
                release,
                "KindNotFound",
                "TenderRelease.infrastructure.clusterstack.x-k8s.io",
            )
        };
        since_when_is_told_also_after_a_restart(journey, &tag, missing, waits_for_it).await?;
        let provider = Provider {
            journey,
            kind: "TenderRelease",
        };
        provider.install().await?;
        provider.template(json!({ "images": [] })).await?;
        provider.object(&tag, &json!({ "images": [] })).await?;
        provider.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a4_an_object_that_somebody_else_controls_is_left_to_them_and_they_are_named() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "LighterRelease",
        };
        provider.install().await?;
        provider.template(json!({ "images": ["ours"] })).await?;
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "somebody" } });
        let somebody = journey.apply(map).await?;
        let theirs = json!({
            "apiVersion": API_VERSION, "kind": provider.kind,
            "metadata": { "name": tag, "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": somebody.metadata.uid, "controller": true,
            }] },
            "spec": { "images": ["theirs"] },
        });
        let theirs = journey.apply(theirs).await?;
        provider.stack().await?;
        journey
            .until_release(&tag, "told who controls it", |release| {
                waits(release, "ForeignOwner", "ConfigMap somebody")
            })
            .await?;
        let seen = journey.mark().await?;
        for word in ["one", "two", "three"] {
            journey.ask_stack("harbor", word).await?;
        }
        let of_the_kind = |event: &AuditEvent| event.object.as_ref().is_some_and(|object| object.name == tag);
        let writes = journey.requests_since(seen).await?.writes().filter(of_the_kind);
        assert!(writes.is_empty(), "{writes:#?}");
        assert_eq!(
            provider.objects().get(&tag).await?.resource_version(),
            theirs.resource_version()
        );
        // They let it go, and it becomes the release's.
        let patch = json!({ "metadata": { "ownerReferences": null } });
        provider
            .objects()
            .patch(&tag, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        provider.object(&tag, &json!({ "images": ["ours"] })).await?;
        provider.reports(&tag, json!({ "ready": true })).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a_release_becomes_the_owner_only_of_the_object_that_is_named_like_it() -> Result<()> {
    journey(async |journey| {
        let [tag, other] = ["v1", "v2"].map(|version| journey.releases.publish_harbor(version, version));
        let (tag, other) = (tag?, other?);
        journey.operate().await?;
        let provider = Provider {
            journey,
            kind: "HopperRelease",
        };
        provider.install().await?;
        provider.template(json!({})).await?;
        // Two releases written by hand: one refers to an object that is not its own.
        for (release, object) in [(&other, "somebodys"), (&tag, tag.as_str())] {
            let object = json!({ "apiVersion": API_VERSION, "kind": provider.kind, "metadata": { "name": object } });
            let found = journey.apply(object).await?;
            let name = found.name_any();
            provider.reports(&name, json!({ "ready": true })).await?;
            let reference = json!({ "apiVersion": API_VERSION, "kind": provider.kind, "name": name });
            let release = json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
                "metadata": { "name": release }, "spec": { "providerRef": reference },
            });
            journey.apply(release).await?;
        }
        let owners = async |name: &str| {
            let object = provider.objects().get(name).await?;
            Ok::<_, anyhow::Error>(object.owner_references().len())
        };
        journey.release_ready(&other).await?;
        journey.release_ready(&tag).await?;
        assert_eq!((owners("somebodys").await?, owners(&tag).await?), (0, 1));
        journey.delete::<ClusterStackRelease>(&other).await?;
        journey.gone::<ClusterStackRelease>(&other).await?;
        provider.objects().get("somebodys").await?;
        Ok(())
    })
}

#[test]
fn an_object_that_cannot_be_taken_under_control_is_told_in_an_event() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let provider = Provider {
            journey,
            kind: "LaunchRelease",
        };
        provider.install().await?;
        provider.template(json!({})).await?;
        // Somebody's policy, as there are many: no owners here.
        let name = format!("no-owners-{}", journey.namespace);
        let resources = json!([{
            "apiGroups": [PROVIDER_GROUP], "apiVersions": ["*"], "operations": ["*"], "resources": ["launchreleases"],
        }]);
        journey
            .apply_for_all(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
                "spec": {
                    "matchConstraints": { "resourceRules": resources },
                    "validations": [{ "expression": "!has(object.metadata.ownerReferences)", "message": "no owners here" }],
                },
            }))
            .await?;
        journey
            .apply_for_all(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": name },
                "spec": { "policyName": name, "validationActions": ["Deny"] },
            }))
            .await?;
        let owned = json!({
            "apiVersion": API_VERSION, "kind": provider.kind,
            "metadata": { "name": "probe", "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y" }] },
        });
        eventually(SOON, "the policy to be in force", async || {
            match journey.apply(owned.clone()).await {
                Err(error) if format!("{error:#}").contains("no owners here") => Ok(()),
                answered => Err(format!("{answered:?}")),
            }
        })
        .await?;
        journey
            .apply(json!({ "apiVersion": API_VERSION, "kind": provider.kind, "metadata": { "name": tag } }))
            .await?;
        journey
            .apply(json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "metadata": { "name": tag },
                "spec": { "providerRef": { "apiVersion": API_VERSION, "kind": provider.kind, "name": tag } },
            }))
            .await?;
        journey.operate().await?;
        let events: Api<Event> = journey.api();
        eventually(SOON, "the event", async || {
            let events = events.list(&ListParams::default()).await?.items;
            let told = |event: &&Event| event.reason.as_deref() == Some("ProviderNotControlled");
            let event = events.iter().find(told).context("nothing is told")?;
            let note = event.note.as_deref().unwrap_or_default();
            anyhow::ensure!(note.contains("no owners here"), "{note}");
            Ok(())
        })
        .await
    })
}
