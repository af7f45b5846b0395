//! What an owner needs that applies its objects in stages, in an API server that it shares with others of its kind, told of sets of `ConfigMap`s.

use crds::policy::{DriftPolicy, PruneLimit};
use crds::resource::{Resource, SyncStatus};

use super::super::action::{Action, ApplyReason, ObjectAction, OwnAction, Step};
use super::super::observed::{Belongs, Intent, ObjectMemory, Read, Seen, Verified};
use super::super::order::record_before_writes;
use super::super::set::{OwnerKind, Prune};
use super::super::sync::SyncState;
use super::*;
use crate::object_key::ObjectRef;
use crate::waves::wave_of;

/// A status is written.
#[derive(Clone, Debug, PartialEq)]
struct Record;

impl OwnAction for Record {
    fn name(&self) -> &'static str {
        "record"
    }
}

/// What is known of an add-on.
#[derive(Default)]
struct Addon {
    intents: BTreeMap<ObjectKey, Intent>,
    rows: Vec<Resource>,
    objects: BTreeMap<ObjectKey, ObjectObserved>,
    held: BTreeSet<ObjectKey>,
    kinds: BTreeSet<GroupKind>,
    words: BTreeMap<GroupKind, String>,
    drift: DriftPolicy,
}

fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().expect("a time")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("", "ConfigMap", "kube-system", name)
}

fn object() -> ObjectObserved {
    ObjectObserved {
        version: "v1".to_owned(),
        served: true,
        watched: true,
        ..ObjectObserved::default()
    }
}

fn row(name: &str, digest: &str) -> Resource {
    Resource {
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
        status: Some(SyncStatus::Synced),
        digest: digest.to_owned(),
        ..Resource::default()
    }
}

fn read(belongs: Belongs, at: Timestamp) -> Read {
    Read::Found {
        uid: "o".to_owned(),
        resource_version: "1".to_owned(),
        belongs,
        keep: false,
        deleting: false,
        at,
    }
}

impl Addon {
    /// It wants this, which nobody has made.
    fn wants(mut self, name: &str) -> Self {
        let key = key(name);
        let intent = Intent {
            object: ObjectRef {
                version: "v1".to_owned(),
                key: key.clone(),
            },
            digest: "sha256:a".to_owned(),
            wave: wave_of(&key.group_kind()),
        };
        self.intents.insert(key.clone(), intent);
        self.objects.entry(key).or_insert_with(object);
        self
    }

    /// It has applied this, and it is so.
    fn has(mut self, name: &str) -> Self {
        let mut object = object();
        object.seen = Some(Seen {
            uid: "o".to_owned(),
            trigger: "o g1".to_owned(),
            resource_version: "1".to_owned(),
            ours: true,
            deleting: false,
        });
        object.memory.verified = Some(Verified {
            intent: "sha256:a".to_owned(),
            trigger: "o g1".to_owned(),
            owned: true,
        });
        object.memory.read = Some(read(Belongs::Us, now()));
        self.objects.insert(key(name), object);
        self.rows.push(row(name, "sha256:a"));
        self
    }

    /// It has applied this, and by now it is so marked, which no watch shows.
    fn finds(mut self, name: &str, belongs: Belongs, at: Timestamp) -> Self {
        let mut object = object();
        object.memory.read = Some(read(belongs, at));
        self.objects.insert(key(name), object);
        self.rows.push(row(name, "sha256:a"));
        self
    }

    /// It has applied this, and somebody has deleted it.
    fn misses(mut self, name: &str) -> Self {
        let mut object = object();
        object.memory.read = Some(Read::Absent);
        self.objects.insert(key(name), object);
        self.rows.push(row(name, "sha256:a"));
        self
    }

    fn holds(mut self, name: &str) -> Self {
        self.held.insert(key(name));
        self
    }

    fn set(&self) -> ObjectSet<'_> {
        ObjectSet {
            owner: OwnerKind::Addon,
            intents: Some(&self.intents),
            rows: &self.rows,
            objects: &self.objects,
            shows_others: false,
            unlisted: &self.kinds,
            unwatched: &self.words,
            forbidden: &self.kinds,
            held: &self.held,
            drift: self.drift,
            prune: Prune {
                limit: PruneLimit::default(),
                annotation: None,
                approved: None,
            },
            deleting: false,
        }
    }

    fn named(&self, decisions: &Decisions) -> Vec<String> {
        let rows = self.set().inventory(decisions).resources;
        rows.into_iter().map(|row| row.name).collect()
    }
}

fn actions(decisions: &Decisions, addon: &Addon) -> Vec<(&'static str, String)> {
    let steps: Vec<Step<Record>> = decisions.steps(&addon.set());
    let all = steps.iter().flat_map(Step::on_objects);
    all.map(|action| (action.name(), action.key().name.clone())).collect()
}

#[test]
fn what_is_held_back_is_neither_written_nor_removed_and_keeps_its_row() {
    let addon = Addon::default()
        .has("done")
        .wants("done")
        .has("of-a-later-stage")
        .holds("of-a-later-stage")
        .wants("not-yet")
        .holds("not-yet");
    let decisions = addon.set().installation(now());
    assert_eq!(actions(&decisions, &addon), []);
    assert!(decisions.is_settled());
    assert_eq!(addon.named(&decisions), ["done", "of-a-later-stage"]);
}

#[test]
fn leftovers_go_once_all_that_is_wanted_stands_and_nothing_holds_them() {
    let waiting = Addon::default().wants("new").has("old");
    let decisions = waiting.set().installation(now());
    assert_eq!(actions(&decisions, &waiting), [("apply", "new".to_owned())]);
    assert_eq!(waiting.named(&decisions), ["new", "old"]);

    let settled = Addon::default().has("new").wants("new").has("old");
    let decisions = settled.set().installation(now());
    assert_eq!(actions(&decisions, &settled), [("delete", "old".to_owned())]);
}

#[test]
fn leftovers_go_though_somebody_deleted_what_the_policy_does_not_make_again() {
    for drift in [DriftPolicy::Warn, DriftPolicy::Ignore] {
        let addon = Addon {
            drift,
            ..Addon::default()
        };
        let addon = addon.misses("new").wants("new").has("old");
        let decisions = addon.set().installation(now());
        let state = &decisions.wanted[&key("new")].state;
        assert!(matches!(state, SyncState::Missing { .. }), "{drift}: {state:?}");
        assert_eq!(actions(&decisions, &addon), [("delete", "old".to_owned())], "{drift}");
    }
}

#[test]
fn a_removal_takes_all_but_what_is_held_back() {
    let addon = Addon::default().has("one").has("two").has("stays").holds("stays");
    let decisions = addon.set().removal(now());
    let expected = ["one", "two"].map(|name| ("delete", name.to_owned()));
    assert_eq!(actions(&decisions, &addon), expected);
    assert!(!decisions.is_over());
    assert_eq!(addon.named(&decisions), ["one", "stays", "two"]);
}

#[test]
fn the_inventory_is_recorded_before_what_it_does_not_name_yet() {
    let recorded = |addon: &Addon, unrecorded: bool| {
        let decisions = addon.set().installation(now());
        let mut steps = decisions.steps(&addon.set());
        record_before_writes(&addon.set(), &decisions, &mut steps, unrecorded, || Record);
        let all = steps.iter().flat_map(|step| &step.actions);
        all.map(Action::name).collect::<Vec<_>>()
    };
    let new = Addon::default().wants("new");
    assert_eq!(recorded(&new, false), ["record", "apply"]);
    let mut named = Addon::default().wants("new");
    named.rows.push(row("new", ""));
    named.objects.get_mut(&key("new")).expect("the object").memory.read = Some(Read::Absent);
    assert_eq!(recorded(&named, false), ["apply"]);
    assert_eq!(recorded(&named, true), ["record", "apply"]);
}

#[test]
fn an_object_that_nothing_but_the_inventory_tells_of_is_made_without_a_look() {
    let mut addon = Addon::default().wants("new");
    addon.rows.push(row("new", ""));
    let action = |addon: &Addon| addon.set().installation(now()).wanted[&key("new")].action.clone();
    let apply = |why: ApplyReason| {
        Some(ObjectAction::Apply {
            key: key("new"),
            why,
            force: false,
        })
    };
    assert_eq!(action(&addon), apply(ApplyReason::Announced));
    let memory = |addon: &mut Addon, memory: ObjectMemory| {
        addon.objects.get_mut(&key("new")).expect("the object").memory = memory;
    };
    // Somebody has looked.
    let looked = ObjectMemory {
        read: Some(Read::Absent),
        ..ObjectMemory::default()
    };
    memory(&mut addon, looked);
    assert_eq!(action(&addon), apply(ApplyReason::Create));
    // It was made, which the status does not say yet, and no watch shows it any more.
    let made = ObjectMemory {
        verified: Some(Verified {
            intent: "sha256:a".to_owned(),
            trigger: "o g1".to_owned(),
            owned: true,
        }),
        ..ObjectMemory::default()
    };
    memory(&mut addon, made);
    assert_eq!(action(&addon), Some(ObjectAction::Read { key: key("new") }));
}

#[test]
fn a_definition_that_is_only_announced_is_looked_at_before_it_is_written() {
    let definition = ObjectKey::new(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "",
        "quays.example.org",
    );
    let mut addon = Addon::default().wants("new");
    let mut intent = addon.intents.remove(&key("new")).expect("the intent");
    intent.object.key = definition.clone();
    addon.intents.insert(definition.clone(), intent);
    addon.objects.insert(definition.clone(), object());
    addon.rows.push(Resource {
        group: definition.group.clone(),
        kind: definition.kind.clone(),
        name: definition.name.clone(),
        version: "v1".to_owned(),
        ..Resource::default()
    });
    let sync = addon
        .set()
        .installation(now())
        .wanted
        .remove(&definition)
        .expect("it is wanted");
    assert_eq!(sync.action, Some(ObjectAction::Read { key: definition }));
}

#[test]
fn an_object_with_the_mark_of_nobody_is_taken_back_where_no_watch_shows_it() {
    let addon = Addon::default().finds("a", Belongs::OtherOwner, now()).wants("a");
    let decisions = addon.set().installation(now());
    let adopt = ObjectAction::Apply {
        key: key("a"),
        why: ApplyReason::Adopt,
        force: true,
    };
    assert_eq!(decisions.wanted[&key("a")].action, Some(adopt));
}

#[test]
fn an_object_of_another_add_on_is_left_to_it_and_looked_at_again() {
    let addon = Addon::default().finds("a", Belongs::Stranger, now()).wants("a");
    let sync = |at: Timestamp| {
        addon
            .set()
            .installation(at)
            .wanted
            .remove(&key("a"))
            .expect("it is wanted")
    };
    let state = SyncState::Failed {
        message: "the object belongs to another add-on".to_owned(),
    };
    let later = now() + jiff::SignedDuration::from_mins(5);
    assert_eq!((sync(now()).action, sync(now()).next), (None, Next::At(later)));
    let read = ObjectAction::Read { key: key("a") };
    assert_eq!((sync(later).state, sync(later).action), (state, Some(read)));
}

/// What becomes of an object that was being deleted a moment ago, now and after a while, as one that nobody wants and as one that is wanted.
fn going(only_listed: bool) -> [[(Option<ObjectAction>, Next); 2]; 2] {
    let mut leftover = Addon::default().has("a");
    let object = leftover.objects.get_mut(&key("a")).expect("the object");
    object.only_listed = only_listed;
    object.seen.as_mut().expect("a sight").deleting = true;
    object.memory.read = Some(Read::Found {
        uid: "o".to_owned(),
        resource_version: "1".to_owned(),
        belongs: Belongs::Us,
        keep: false,
        deleting: true,
        at: now(),
    });
    let removed = |at: Timestamp| {
        let mut decisions = leftover.set().removal(at);
        let fate = decisions.leftovers.remove(&key("a")).expect("it is to go");
        (fate.action().cloned(), fate.next())
    };
    let later = now() + jiff::SignedDuration::from_secs(10);
    let as_leftover = [now(), later].map(removed);
    let wanted = leftover.wants("a");
    let installed = |at: Timestamp| {
        let mut decisions = wanted.set().installation(at);
        let sync = decisions.wanted.remove(&key("a")).expect("it is wanted");
        (sync.action, sync.next)
    };
    [as_leftover, [now(), later].map(installed)]
}

#[test]
fn what_is_being_deleted_is_read_again_soon_where_no_watch_tells_of_it() {
    let soon = Next::At(now() + jiff::SignedDuration::from_secs(10));
    let read = ObjectAction::Read { key: key("a") };
    assert_eq!(
        going(true),
        [(); 2].map(|()| [(None, soon), (Some(read.clone()), Next::Await)])
    );
    assert_eq!(
        going(false),
        [(); 2].map(|()| [(None, Next::Await), (None, Next::Await)])
    );
}
