//! What is known of the world at one moment, and what it amounts to: a row for the stack, each release and each object, and
//! answers to what an act waits for. Pure: changes come in, with their times.

mod images;
mod jobs;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionStatus, ConditionType, Reason, Severity, find},
    labels,
    names::ReleaseTag,
    resource::{Resource, SyncStatus},
};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{ResourceExt, api::ObjectMeta};

use super::{
    text::short,
    watches::{Change, Image, What},
};

/// The state of what is no longer there.
pub(super) const GONE: &str = "gone";

/// Kind and name.
pub(super) type Id = (String, String);

/// How good a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Busy,
    Bad,
}

/// One line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// 0 for the stack, 1 for releases, 2 for objects.
    pub(super) depth: usize,
    pub(super) id: Id,
    pub(super) tone: Tone,
    /// One or two words.
    pub(super) state: String,
    /// Why, or what else is worth knowing.
    pub(super) note: String,
    /// It is about a node image or the Job that brings it, not about an object that the release was rendered into.
    pub(super) is_image: bool,
    /// How much of it is done, where that is to be drawn.
    pub(super) percent: Option<u8>,
}

/// What happened since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Objects that were there for the first time, or again.
    pub(super) applied: usize,
    pub(super) repaired: usize,
    pub(super) removed: usize,
}

/// An applied object that is there.
#[derive(Clone, Debug)]
struct Live {
    uid: String,
    generation: Option<i64>,
    part_of: String,
    deleting: bool,
    /// The intruder owns fields of it.
    intruded: bool,
}

/// What becomes of an object that an intruder was announced for.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Expected,
    Deleted(Instant),
    Edited(Instant),
    Repaired { deleted: bool, after: Duration },
}

pub(super) struct Picture {
    namespace: String,
    /// The field manager of those who damage objects.
    intruder: &'static str,
    stack: Option<ClusterStack>,
    releases: BTreeMap<String, ClusterStackRelease>,
    objects: BTreeMap<Id, Live>,
    images: BTreeMap<String, Image>,
    jobs: BTreeMap<String, Job>,
    pods: BTreeMap<String, Pod>,
    damage: BTreeMap<Id, Damage>,
    tally: Tally,
}

impl Picture {
    pub(super) fn of(namespace: &str, intruder: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            intruder,
            stack: None,
            releases: BTreeMap::new(),
            objects: BTreeMap::new(),
            images: BTreeMap::new(),
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            damage: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn take(&mut self, Change { at, what }: Change) {
        match what {
            What::Stack(stack) => self.stack = Some(*stack),
            What::StackGone => self.stack = None,
            What::Release(release) => {
                let name = release.metadata.name.clone().unwrap_or_default();
                self.releases.insert(name, *release);
            }
            What::ReleaseGone(name) => {
                self.releases.remove(&name);
            }
            What::Image(image) => self.take_image(*image),
            What::ImageGone(name) => drop(self.images.remove(&name)),
            What::Job(job) => drop(self.jobs.insert(job.name_any(), *job)),
            What::JobGone(name) => drop(self.jobs.remove(&name)),
            What::Pod(pod) => drop(self.pods.insert(pod.name_any(), *pod)),
            What::PodGone(name) => drop(self.pods.remove(&name)),
            What::Object(kind, metadata) => self.take_object(kind, *metadata, at),
            What::ObjectGone(kind, name) => {
                let id = (kind, name);
                let was_there = self.objects.remove(&id).is_some();
                match self.damage.get_mut(&id) {
                    // Somebody else's doing: it is counted when it is repaired.
                    Some(damage @ (Damage::Expected | Damage::Edited(_) | Damage::Deleted(_))) => {
                        *damage = Damage::Deleted(at);
                    }
                    Some(Damage::Repaired { .. }) | None => self.tally.removed += usize::from(was_there),
                }
            }
        }
    }

    fn take_object(&mut self, kind: String, metadata: ObjectMeta, at: Instant) {
        let id = (kind, metadata.name.clone().unwrap_or_default());
        let live = self.live(metadata);
        let is_new = self.objects.get(&id).is_none_or(|before| before.uid != live.uid);
        if is_new && !matches!(self.damage.get(&id), Some(Damage::Deleted(_))) {
            self.tally.applied += 1;
        }
        if let Some(damage) = self.damage.get_mut(&id) {
            let repaired = match *damage {
                Damage::Expected if live.intruded => {
                    *damage = Damage::Edited(at);
                    None
                }
                Damage::Deleted(since) => Some((true, since)),
                Damage::Edited(since) if !live.intruded => Some((false, since)),
                Damage::Expected | Damage::Edited(_) | Damage::Repaired { .. } => None,
            };
            if let Some((deleted, since)) = repaired {
                let after = at - since;
                *damage = Damage::Repaired { deleted, after };
                self.tally.repaired += 1;
            }
        }
        self.objects.insert(id, live);
    }

    fn live(&self, metadata: ObjectMeta) -> Live {
        let label = metadata.labels.as_ref().and_then(|all| all.get(labels::PART_OF));
        let mut managers = metadata.managed_fields.iter().flatten();
        Live {
            part_of: label.cloned().unwrap_or_default(),
            intruded: managers.any(|entry| entry.manager.as_deref() == Some(self.intruder)),
            uid: metadata.uid.unwrap_or_default(),
            generation: metadata.generation,
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }

    /// From now on, what the intruder does to this object is damage.
    pub(super) fn expect_damage(&mut self, id: &Id) {
        self.damage.insert(id.clone(), Damage::Expected);
    }

    /// Forgets which objects were damaged.
    pub(super) fn turn_the_page(&mut self) {
        self.damage.clear();
    }

    /// How long an object was damaged, once it is no more.
    pub(super) fn repaired_after(&self, id: &Id) -> Option<Duration> {
        match self.damage.get(id) {
            Some(Damage::Repaired { after, .. }) => Some(*after),
            _ => None,
        }
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether a release can be used.
    pub(super) fn is_ready(&self, tag: &ReleaseTag) -> bool {
        let release = self.releases.get(&tag.to_string());
        release.is_some_and(|release| {
            release.metadata.deletion_timestamp.is_none() && release.status.as_ref().is_some_and(|status| status.ready)
        })
    }

    /// Whether the stack names these versions as usable, and no others.
    pub(super) fn usable_are(&self, tags: &[&ReleaseTag]) -> bool {
        let status = self.stack.as_ref().and_then(|stack| stack.status.as_ref());
        let usable = status.and_then(|status| status.usable_versions.as_deref());
        let usable = usable
            .unwrap_or_default()
            .split(", ")
            .filter(|version| !version.is_empty());
        let wanted = tags.iter().map(|tag| tag.version().to_string());
        usable.map(str::to_owned).collect::<BTreeSet<_>>() == wanted.collect()
    }

    /// Whether neither a release nor any object of it is left.
    pub(super) fn is_gone(&self, tag: &ReleaseTag) -> bool {
        !self.releases.contains_key(&tag.to_string()) && self.versions_of(tag).is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        let ours = self.stack.is_none() && self.releases.is_empty() && self.objects.is_empty();
        ours && self.images.is_empty() && self.jobs.is_empty() && self.pods.is_empty()
    }

    /// The inventory of a release.
    pub(super) fn inventory(&self, tag: &ReleaseTag) -> &[Resource] {
        let release = self.releases.get(&tag.to_string());
        let status = release.and_then(|release| release.status.as_ref());
        status.map(|status| status.resources.as_slice()).unwrap_or_default()
    }

    /// The applied objects of a release with uid and generation: whoever writes to what one wants to be changes this. (Cluster
    /// API's own controllers write to the status of classes and the owners of templates.)
    pub(super) fn versions_of(&self, tag: &ReleaseTag) -> BTreeMap<Id, (String, Option<i64>)> {
        let mark = self.mark(&tag.to_string());
        let ours = self.objects.iter().filter(|(_, live)| live.part_of == mark);
        ours.map(|(id, live)| (id.clone(), (live.uid.clone(), live.generation)))
            .collect()
    }

    /// What the operator says about a release that cannot be used.
    pub(super) fn complaint(&self, tag: &ReleaseTag) -> Option<&str> {
        let status = self.releases.get(&tag.to_string())?.status.as_ref()?;
        let ready = find(&status.conditions, ConditionType::Ready)?;
        (ready.severity == Some(Severity::Error)).then_some(ready.message.as_deref())?
    }

    /// Whether the stack is ready and says nevertheless that this release is broken.
    pub(super) fn is_ready_beside(&self, broken: &ReleaseTag) -> bool {
        let status = self.stack.as_ref().and_then(|stack| stack.status.as_ref());
        let ready = status.and_then(|status| find(&status.conditions, ConditionType::Ready));
        ready.is_some_and(|ready| {
            let names = |message: &String| message.contains(&broken.to_string());
            let at_fault = [Reason::BrokenRelease.as_str(), Reason::RenderFailed.as_str()];
            ready.status == ConditionStatus::True
                && ready.reason.as_deref().is_some_and(|reason| at_fault.contains(&reason))
                && ready.message.as_ref().is_some_and(names)
        })
    }

    /// The tree from top to bottom.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.stack.iter().map(stack_row).collect();
        let mut shown = BTreeSet::new();
        for (name, release) in self.releases_in_order() {
            let mut row = release_row(name, release);
            if row.tone == Tone::Busy && self.waits_for_image(name) && release.metadata.deletion_timestamp.is_none() {
                "waiting".clone_into(&mut row.state);
                "for its node image".clone_into(&mut row.note);
            }
            rows.push(row);
            rows.extend(self.image_rows(name));
            let status = release.status.iter();
            let inventory = status.flat_map(|status| &status.resources);
            let inventory: BTreeMap<Id, &Resource> = inventory
                .map(|row| ((row.kind.clone(), row.name.clone()), row))
                .collect();
            let mark = self.mark(name);
            let marked = self.objects.iter().filter(|(_, live)| live.part_of == mark);
            let ids: BTreeSet<Id> = marked.map(|(id, _)| id).chain(inventory.keys()).cloned().collect();
            let going = release.metadata.deletion_timestamp.is_some();
            for id in ids {
                rows.push(self.object_row(&id, inventory.get(&id).copied(), going));
                shown.insert(id);
            }
        }
        let orphans = self.objects.iter().filter(|(id, _)| !shown.contains(*id));
        rows.extend(orphans.map(|(id, live)| Row {
            depth: 1,
            id: id.clone(),
            tone: Tone::Busy,
            state: if live.deleting { "going" } else { "left" }.to_owned(),
            note: String::new(),
            is_image: false,
            percent: None,
        }));
        rows.extend(self.rows_of_left_images());
        rows
    }

    /// The tenth version comes after the ninth.
    fn releases_in_order(&self) -> Vec<(&String, &ClusterStackRelease)> {
        let mut releases: Vec<_> = self.releases.iter().collect();
        releases.sort_by_cached_key(|(name, _)| name.parse::<ReleaseTag>().ok());
        releases
    }

    fn object_row(&self, id: &Id, wanted: Option<&Resource>, going: bool) -> Row {
        let error = wanted.map(|row| row.error.clone()).unwrap_or_default();
        let synced = wanted.is_some_and(|row| row.status == Some(SyncStatus::Synced));
        let by = || format!("by {}", self.intruder);
        let (tone, state, note) = match (self.objects.get(id), self.damage.get(id)) {
            (None, _) if going => (Tone::Busy, GONE, String::new()),
            (None, Some(Damage::Deleted(_))) => (Tone::Bad, "deleted", by()),
            (None, _) => (Tone::Busy, "waiting", error),
            (Some(live), _) if live.deleting || going => (Tone::Busy, "going", String::new()),
            (Some(_), Some(Damage::Edited(_))) => (Tone::Bad, "changed", by()),
            (Some(_), Some(Damage::Repaired { deleted, after })) if synced => {
                let verb = if *deleted { "back" } else { "mended" };
                (Tone::Good, "synced", format!("{verb} after {}", short(*after)))
            }
            (Some(_), _) if synced => (Tone::Good, "synced", String::new()),
            (Some(_), _) => (Tone::Busy, "applied", error),
        };
        Row {
            depth: 2,
            id: id.clone(),
            tone,
            state: state.to_owned(),
            note,
            is_image: false,
            percent: None,
        }
    }

    fn mark(&self, release: &str) -> String {
        labels::part_of("ClusterStackRelease", &self.namespace, release)
    }
}

fn stack_row(stack: &ClusterStack) -> Row {
    let status = stack.status.clone().unwrap_or_default();
    let usable = status.usable_versions.filter(|versions| !versions.is_empty());
    let usable = usable.map_or_else(String::new, |versions| format!("usable: {versions}"));
    let going = stack.metadata.deletion_timestamp.is_some();
    let (tone, state, message) = condition_words(&status.conditions, going);
    let notes = [usable, message];
    Row {
        depth: 0,
        id: (
            "ClusterStack".to_owned(),
            stack.metadata.name.clone().unwrap_or_default(),
        ),
        tone,
        state,
        note: notes
            .into_iter()
            .filter(|note| !note.is_empty())
            .collect::<Vec<_>>()
            .join(" · "),
        is_image: false,
        percent: None,
    }
}

fn release_row(name: &str, release: &ClusterStackRelease) -> Row {
    let status = release.status.clone().unwrap_or_default();
    let going = release.metadata.deletion_timestamp.is_some();
    let (tone, state, message) = condition_words(&status.conditions, going);
    let version = status
        .kubernetes_version
        .filter(|_| !going)
        .map(|version| format!("Kubernetes {version}"));
    Row {
        depth: 1,
        id: ("ClusterStackRelease".to_owned(), name.to_owned()),
        tone,
        state,
        note: if message.is_empty() {
            version.unwrap_or_default()
        } else {
            message
        },
        is_image: false,
        percent: None,
    }
}

/// What was there when somebody waited in vain.
pub(super) fn last_seen(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "last seen: nothing".to_owned();
    }
    let lines = rows
        .iter()
        .map(|row| format!("\n{} {}: {} {}", row.id.0, row.id.1, row.state, row.note));
    format!("last seen:{}", lines.collect::<String>())
}

/// What the condition Ready says, in the words of the screen.
pub(super) fn condition_words(conditions: &[Condition], going: bool) -> (Tone, String, String) {
    if going {
        return (Tone::Busy, "going".to_owned(), String::new());
    }
    let Some(ready) = find(conditions, ConditionType::Ready) else {
        return (Tone::Busy, "new".to_owned(), String::new());
    };
    let message = ready.message.clone().unwrap_or_default();
    if ready.status == ConditionStatus::True {
        // A stack can be used and have something to say all the same.
        let reason = ready.reason.iter().map(ToString::to_string);
        let words: Vec<_> = reason.chain([message]).filter(|words| !words.is_empty()).collect();
        return (Tone::Good, "ready".to_owned(), words.join(": "));
    }
    let tone = if ready.severity == Some(Severity::Error) {
        Tone::Bad
    } else {
        Tone::Busy
    };
    let reason = ready.reason.clone().unwrap_or_else(|| "not ready".to_owned());
    (tone, reason, message)
}

#[cfg(test)]
mod tests;
