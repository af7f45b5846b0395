//! What the driver of a release sees: files, rendering, provider and objects.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::provider_kind;
use crds::labels;
use jiff::SignedDuration;
use planning::digest::digest_of_everything;
use planning::object_key::{GroupKind, ObjectKey, ObjectRef};
use planning::objects::{Intent, Inventoried, KindScope, ObjectObserved, Rendering, Seen, Standing, key_of};
use planning::outage::Outage;
use planning::release::{Assets, Claim, Member, Provider, ReleaseObserved, Word, holder, standing};
use planning::waves::wave_of;

use crate::world::api::{NAMESPACE, ReleaseObject};
use crate::world::live::{Body, Live, label};
use crate::world::marks::mark;
use crate::world::{Files, Flaw, World};

/// When a source that is silent is asked again.
const NEXT_TRY: SignedDuration = SignedDuration::from_mins(15);

/// Stands for a digest; nobody looks inside.
pub(super) fn body_digest(body: &Body) -> String {
    format!("{body:?}")
}

/// Other bytes than those that were applied are not rendered.
fn is_moved(assets: &Assets, release: &ReleaseObject) -> bool {
    let applied = release.status.resources.iter().any(|row| !row.digest.is_empty());
    applied
        && match (assets, &release.status.assets) {
            (Assets::Ready { digest, .. }, Some(pinned)) => *digest != pinned.digest,
            _ => false,
        }
}

fn version(key: &ObjectKey) -> String {
    if key.group.ends_with("cluster.x-k8s.io") {
        "v1beta1"
    } else {
        "v1"
    }
    .to_owned()
}

fn scope(key: &ObjectKey, served: bool) -> KindScope {
    match (served, key.namespace.is_empty()) {
        (false, _) => KindScope::Unknown,
        (true, false) => KindScope::Namespaced,
        (true, true) => KindScope::ClusterWide,
    }
}

pub(super) fn has_generation(key: &ObjectKey) -> bool {
    !matches!(key.kind.as_str(), "ConfigMap" | "Secret")
}

impl World {
    pub(crate) fn observe_release(&mut self, tag: &str) -> Option<ReleaseObserved> {
        let release = self.api.releases.get(tag)?.clone();
        let assets = self.assets(tag, &release);
        let rendering = self.rendering(tag, &release, &assets);
        let objects = self.objects_of(tag, &release, &rendering);
        Some(ReleaseObserved {
            tag: tag.to_owned(),
            namespace: NAMESPACE.to_owned(),
            uid: release.uid.clone(),
            generation: release.generation,
            deleting: release.deleting,
            finalizer: release.finalizer,
            group_kinds: release.group_kinds.clone(),
            unlisted: BTreeSet::new(),
            paused: release.annotations.contains_key(labels::PAUSED),
            requested_at: release.annotations.get(labels::REQUESTED_AT).cloned(),
            approved_prune: release.annotations.get(labels::APPROVE_PRUNE).cloned(),
            used_by: (release.deleting && self.has_listed()).then(|| self.api.users_of(tag)),
            provider: self.provider(&release),
            unwatched: BTreeMap::new(),
            forbidden: BTreeSet::new(),
            // The world shows at once what was written.
            controlled: None,
            spec: release.spec,
            status: release.status,
            status_written_at: self.process.release_status_written_at.get(tag).copied(),
            assets,
            rendering,
            objects,
        })
    }

    fn assets(&mut self, tag: &str, release: &ReleaseObject) -> Assets {
        let in_use = self.has_listed() && !self.api.users_of(tag).is_empty();
        if release.deleting && !in_use || release.annotations.contains_key(labels::PAUSED) {
            return Assets::NotRead;
        }
        let digest_of = |files: &Files| digest_of_everything(&(tag, files.revision));
        let pinned = release.status.assets.as_ref().map(|assets| &assets.digest);
        let kept = self.source.keeps && pinned.is_some() && self.store.get(tag).map(digest_of).as_ref() == pinned;
        let mut moved_to = None;
        if self.source.outage.is_none()
            && let Some(files) = self.source.releases.get(tag)
        {
            if kept {
                moved_to = Some(digest_of(files)).filter(|digest| Some(digest) != pinned);
            } else {
                self.store.insert(tag.to_owned(), files.clone());
            }
        }
        match self.store.get(tag) {
            None => Assets::Missing {
                message: self
                    .source
                    .outage
                    .clone()
                    .unwrap_or_else(|| format!("there is no release {tag} at the source")),
                withdrawn: self.source.outage.is_none(),
                outage: self.source.silent_since.map(|since| Outage {
                    since,
                    attempts: 1,
                    next: since.saturating_add(NEXT_TRY).ok(),
                }),
            },
            Some(Files {
                flaw: Some(Flaw::Files(message)),
                ..
            }) => Assets::Broken {
                message: message.clone(),
            },
            Some(files) => Assets::Ready {
                digest: digest_of(files),
                moved_to,
                size: 1 << 20,
                source: "directory /releases".to_owned(),
                kubernetes_version: files.kubernetes_version.clone(),
                verified_by: None,
                warning: None,
            },
        }
    }

    fn rendering(&self, tag: &str, release: &ReleaseObject, assets: &Assets) -> Rendering {
        let (Assets::Ready { .. }, Some(files)) = (assets, self.store.get(tag)) else {
            return Rendering::NotRendered;
        };
        if is_moved(assets, release) {
            return Rendering::NotRendered;
        }
        if let Some(Flaw::Chart(message)) = &files.flaw {
            return Rendering::Failed {
                message: message.clone(),
                transient: None,
            };
        }
        let intent = |key: &ObjectKey, body: &Body| Intent {
            object: ObjectRef {
                version: version(key),
                key: key.clone(),
            },
            digest: body_digest(body),
            wave: wave_of(&key.group_kind()),
        };
        Rendering::Rendered {
            intents: files
                .objects
                .iter()
                .map(|(key, body)| (key.clone(), intent(key, body)))
                .collect(),
        }
    }

    fn provider(&self, release: &ReleaseObject) -> Provider {
        let Some(reference) = &release.spec.provider_ref else {
            return Provider::NotWanted;
        };
        let Some(kind) = provider_kind(reference) else {
            return Provider::Foreign;
        };
        let group_kind = GroupKind::new(crds::PROVIDER_GROUP, kind);
        if !self.api.served.contains(&group_kind) {
            return Provider::KindMissing {
                kind: group_kind.to_string(),
            };
        }
        if !self.has_listed() {
            return Provider::NotListed(self.unlisted());
        }
        let name = reference.name.clone().unwrap_or_default();
        self.api
            .providers
            .get(&name)
            .map_or(Provider::Missing, |provider| Provider::Found {
                uid: name.clone(),
                ready: provider.ready,
                controlled: provider.controller.as_ref() == Some(&release.uid),
                foreign_controller: provider
                    .controller
                    .clone()
                    .filter(|controller| *controller != release.uid),
                phase: None,
                message: provider.message.clone(),
                progress: provider.progress.clone(),
            })
    }

    fn objects_of(
        &mut self,
        tag: &str,
        release: &ReleaseObject,
        rendering: &Rendering,
    ) -> BTreeMap<ObjectKey, ObjectObserved> {
        let mut keys: BTreeSet<ObjectKey> = release.status.resources.iter().map(key_of).collect();
        if let Rendering::Rendered { intents } = rendering {
            keys.extend(intents.keys().cloned());
        }
        let listed = self.has_listed();
        let ours = mark(tag);
        let is_ours = |live: &Live| live.is_marked() && live.value(&label(labels::PART_OF)) == Some(&ours);
        keys.extend(
            self.api
                .objects
                .iter()
                .filter(|(_, live)| listed && is_ours(live))
                .map(|(key, _)| key.clone()),
        );
        let mut objects = BTreeMap::new();
        for key in keys {
            let served = self.api.served.contains(&key.group_kind());
            let live = self.api.objects.get(&key).filter(|live| listed && live.is_marked());
            let seen = live.map(|live| Seen {
                uid: live.uid.clone(),
                trigger: live.trigger(has_generation(&key)),
                resource_version: live.resource_version.to_string(),
                ours: is_ours(live),
                deleting: live.deleting,
            });
            let shown = live.map(|live| live.resource_version);
            let remembered = self.process.objects.entry((tag.to_owned(), key.clone())).or_default();
            if remembered.read_at != shown {
                // The watch has told of a change.
                remembered.memory.read = None;
                remembered.read_at = shown;
            }
            let memory = remembered.memory.clone();
            objects.insert(
                key.clone(),
                ObjectObserved {
                    version: version(&key),
                    served,
                    scope: scope(&key, served),
                    watched: listed,
                    seen,
                    memory,
                    ..ObjectObserved::default()
                },
            );
        }
        self.share(tag, rendering, &mut objects);
        objects
    }

    /// Whether a release is there and is not to go, or has to wait for Clusters.
    pub(crate) fn stays(&self, tag: &str) -> bool {
        let release = self.api.releases.get(tag);
        release.is_some_and(|release| !release.deleting || !self.api.users_of(tag).is_empty())
    }

    /// How the release `other` stands to the release `tag`.
    pub(crate) fn standing(&self, tag: &str, other: &str) -> Standing {
        let stack_of = |tag| self.api.releases.get(tag).and_then(|release| release.owner.as_ref());
        let member = |tag| Member {
            namespace: NAMESPACE,
            stack: stack_of(tag).map(|(name, _)| name.as_str()),
            release: tag,
        };
        standing(member(tag), member(other))
    }

    /// Other releases that stay and name the same objects, or hold them.
    fn share(&self, tag: &str, rendering: &Rendering, objects: &mut BTreeMap<ObjectKey, ObjectObserved>) {
        let named = |tag: &str, key: &ObjectKey| {
            let release = self.api.releases.get(tag);
            release.map_or(Inventoried::No, |release| {
                let row = release.status.resources.iter().find(|row| key_of(row) == *key);
                Inventoried::of(row)
            })
        };
        let stays = |(other, _): &(&String, &ReleaseObject)| *other != tag && self.stays(other);
        for (key, object) in objects.iter_mut() {
            let live = self.api.objects.get(key);
            let others = self.api.releases.iter().filter(stays);
            let claims: Vec<Claim<'_>> = others
                .map(|(other, release)| Claim {
                    namespace: None,
                    release: other,
                    standing: self.standing(tag, other),
                    marked: live.is_some_and(|live| live.value(&label(labels::PART_OF)) == Some(&mark(other))),
                    word: match named(other, key) {
                        Inventoried::No if release.status.observed_generation.is_none() => Word::Awaited,
                        said => Word::Given(said),
                    },
                })
                .collect();
            if !matches!(rendering, Rendering::Rendered { intents } if intents.contains_key(key)) {
                object.shared = claims.iter().any(Claim::names_it);
            }
            object.holder = holder(claims, matches!(named(tag, key), Inventoried::Applied(_)));
        }
    }
}
