//! Any history of changes, failures and crashes ends in a world that is quiet and right.

use std::collections::BTreeSet;

use crds::names::{ReleaseTag, StackVersion};
use crds::policy::DriftPolicy;
use jiff::SignedDuration;
use planning::health::HealthState;
use planning::object_key::ObjectKey;
use planning::objects::key_of;
use proptest::prelude::*;

use crate::world::api::ReleaseObject;
use crate::world::faults::Fault;
use crate::world::live::label;
use crate::world::marks::{mark, marked};
use crate::world::{Files, World};

/// Longer than every wait between retries.
const LONG: SignedDuration = SignedDuration::from_mins(15);
const TAG: &str = "docker-harbor-1-34-";

const PAUSE: &str = "cluster.x-k8s.io/paused";
const GO_ON: &str = "-cluster.x-k8s.io/paused";

/// A change of the world, how many passes of the drivers follow at once, and what goes wrong in them.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) command: String,
    pub(crate) passes: usize,
    pub(crate) faults: Vec<Option<Fault>>,
}

fn version() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["v1", "v2", "v3", "v0-sha-ab"]).prop_map(|version| format!("{TAG}{version}"))
}

fn extras() -> impl Strategy<Value = String> {
    let all = vec![
        "ConfigMap/values",
        "ConfigMap/values:data/size=2",
        "Secret/token",
        "Deployment/web",
        "Namespace/home",
    ];
    prop::sample::subsequence(all, 0..=3).prop_map(|extras| format!("objects={}", extras.join(",")))
}

fn object() -> impl Strategy<Value = String> {
    let own = ["v1", "v2", "v3"].map(|version| format!("ClusterClass/{TAG}{version}"));
    let shared = ["ConfigMap/values", "Secret/token", "Deployment/web", "Namespace/home"].map(str::to_owned);
    prop::sample::select(own.into_iter().chain(shared).collect::<Vec<_>>())
}

/// An object whose status somebody writes.
fn living_object() -> impl Strategy<Value = String> {
    let own = ["v1", "v2", "v3"].map(|version| format!("ClusterClass/{TAG}{version}"));
    prop::sample::select(own.into_iter().chain(["Deployment/web".to_owned()]).collect::<Vec<_>>())
}

fn stack() -> impl Strategy<Value = String> {
    let versions = prop::sample::subsequence(vec!["v1", "v2", "v3", "v0-sha.ab", "v9"], 0..=3);
    (
        versions,
        any::<bool>(),
        prop::sample::select(vec!["Correct", "Warn", "Ignore"]),
        any::<bool>(),
    )
        .prop_map(|(versions, subscribe, drift, provider)| {
            let provider = if provider {
                "providerRef=DockerClusterStackReleaseTemplate/images"
            } else {
                "noProvider=true"
            };
            format!(
                "apply stack harbor versions=[{}] autoSubscribe={subscribe} drift={drift} {provider}",
                versions.join(",")
            )
        })
}

fn command() -> impl Strategy<Value = String> {
    let of_release = |verb: &'static str| version().prop_map(move |tag| format!("{verb} {tag}"));
    let of_object =
        |verb: &'static str, rest: &'static str| object().prop_map(move |name| format!("{verb} object {name} {rest}"));
    prop_oneof![
        6 => (version(), extras()).prop_map(|(tag, extras)| format!("publish {tag} at=2026-01-01T00:00:00Z {extras}")),
        5 => stack(),
        1 => of_release("withdraw"),
        1 => (version(), extras()).prop_map(|(tag, extras)| format!("rerender {tag} {extras}")),
        1 => version().prop_map(|tag| format!("break files {tag} metadata.yaml: wrong")),
        1 => version().prop_map(|tag| format!("break chart {tag} class.yaml: wrong")),
        3 => of_release("mend"),
        1 => Just("source fails it is down".to_owned()),
        3 => Just("source answers".to_owned()),
        1 => Just("delete stack harbor".to_owned()),
        1 => of_release("delete release"),
        1 => of_object("delete", ""),
        1 => of_object("edit", "spec/release=mine by=them"),
        1 => of_object("edit", "-part-of"),
        1 => living_object().prop_map(|name| format!("status object {name} InProgress it works")),
        1 => of_object("hold", ""),
        1 => of_object("hide", "you may not read this"),
        1 => of_object("reveal", ""),
        1 => of_object("refuse", "you may not write this"),
        1 => of_object("accept", ""),
        1 => of_object("let-go", ""),
        2 => version().prop_map(|tag| format!("cluster stacks/near uses {}", tag.replace("sha-", "sha."))),
        1 => Just("delete cluster stacks/near".to_owned()),
        1 => Just("unserve DockerClusterTemplate".to_owned()),
        1 => Just("serve DockerClusterTemplate".to_owned()),
        3 => of_release("provider ready"),
        1 => of_release("provider unready"),
        1 => Just("template images size=small".to_owned()),
        1 => Just("crash".to_owned()),
        1 => Just("lose status".to_owned()),
        1 => Just("move".to_owned()),
        1 => any::<bool>().prop_map(|suspend| format!("apply stack harbor suspend={suspend}")),
        1 => prop::sample::select(vec![PAUSE, GO_ON]).prop_map(|pause| format!("annotate stack harbor {pause}")),
        1 => (version(), prop::sample::select(vec![PAUSE, GO_ON]))
            .prop_map(|(tag, pause)| format!("annotate release {tag} {pause}")),
    ]
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    prop_oneof![
        6 => Just(None),
        1 => prop::sample::select(vec![
            Fault::Refused,
            Fault::AnswerLost,
            Fault::CrashBefore,
            Fault::CrashAfter,
            Fault::CrashAfterAndStatusLost,
        ]).prop_map(Some),
    ]
}

pub(crate) fn history() -> impl Strategy<Value = Vec<Turn>> {
    let turn = |command: BoxedStrategy<String>| {
        (command, 0_usize..5, prop::collection::vec(fault(), 0..8)).prop_map(|(command, passes, faults)| Turn {
            command,
            passes,
            faults,
        })
    };
    let publish = extras().prop_map(|extras| format!("publish {TAG}v1 at=2026-01-01T00:00:00Z {extras}"));
    // Without a stack and a release there is nothing to decide.
    (
        turn(publish.boxed()),
        turn(stack().boxed()),
        prop::collection::vec(turn(command().boxed()), 1..20),
    )
        .prop_map(|(publish, stack, turns)| [publish, stack].into_iter().chain(turns).collect())
}

/// Whether a command speaks of an object that is not there.
fn is_about_nothing(world: &World, command: &str) -> bool {
    match command.split(' ').collect::<Vec<_>>().as_slice() {
        ["provider", _, tag, ..] => !world.api.providers.contains_key(*tag),
        ["annotate", "stack", name, _] => !world.api.stacks.contains_key(*name),
        ["annotate", "release", tag, _] => !world.api.releases.contains_key(*tag),
        _ => false,
    }
}

pub(crate) fn live_through(world: &mut World, history: &[Turn]) {
    for Turn {
        command,
        passes,
        faults,
    } in history
    {
        if !is_about_nothing(world, command) {
            world.command(command);
        }
        world.faults.coming = faults.iter().copied().collect();
        for _ in 0..*passes {
            world.pass();
            world.now = world
                .now
                .saturating_add(SignedDuration::from_secs(1))
                .expect("an instant");
        }
    }
}

/// Takes everything away that keeps the operator from doing its work.
fn heal(world: &mut World) {
    world.faults.coming.clear();
    world.faults.unreadable.clear();
    world.faults.refused.clear();
    for command in [
        "source answers",
        "serve DockerClusterTemplate",
        "template images size=small",
    ] {
        world.command(command);
    }
    let keys: Vec<ObjectKey> = world.api.objects.keys().cloned().collect();
    for key in keys {
        world.api.change(&key, |live| {
            live.health = (HealthState::Current, String::new());
            live.finalizer = false;
        });
    }
    world.api.objects.retain(|_, live| !live.deleting);
    for stack in world.api.stacks.values_mut() {
        stack.annotations.clear();
    }
    for release in world.api.releases.values_mut() {
        release.annotations.clear();
    }
    if world.api.stacks.contains_key("harbor") {
        world.command("apply stack harbor suspend=false");
    }
    world.settle(LONG);
    for provider in world.api.providers.values_mut() {
        provider.ready = true;
    }
    world.settle(LONG);
}

fn tag_of(version: &str) -> Option<ReleaseTag> {
    let stem = format!("{TAG}v1").parse::<ReleaseTag>().ok()?.stem().clone();
    ReleaseTag::new(stem, version.parse::<StackVersion>().ok()?).ok()
}

/// What should be there, worked out anew from what the user asks for.
fn assert_releases(world: &World) {
    let used = |tag: &str| !world.api.users_of(tag).is_empty();
    let Some(stack) = world.api.stacks.get("harbor") else {
        let left: Vec<&String> = world.api.releases.keys().filter(|tag| !used(tag)).collect();
        assert!(left.is_empty(), "the stack is gone and {left:?} are there");
        return;
    };
    let mut wanted: BTreeSet<ReleaseTag> = stack
        .spec
        .versions
        .iter()
        .filter_map(|version| tag_of(version))
        .collect();
    let published = world
        .source
        .releases
        .keys()
        .filter_map(|tag| tag.parse::<ReleaseTag>().ok());
    let newest = published.filter(|tag| tag.version().channel().is_stable()).max();
    // A source that lists nothing may do so by mistake: what is newer than the best stays.
    let blind = stack.spec.auto_subscribe && newest.is_none();
    wanted.extend(newest.filter(|_| stack.spec.auto_subscribe));
    for tag in &wanted {
        assert!(world.api.releases.contains_key(&tag.to_string()), "{tag} is not there");
    }
    let best = world
        .api
        .releases
        .iter()
        .filter(|(_, release)| release.status.ready)
        .filter_map(|(tag, _)| tag.parse::<ReleaseTag>().ok())
        .max();
    for tag in world.api.releases.keys() {
        let parsed = tag.parse::<ReleaseTag>().expect("a tag");
        // Without anything ready whatever was installed stays.
        let kept = used(tag)
            || wanted.contains(&parsed)
            || blind && best.as_ref().is_none_or(|best| parsed > *best)
            || best
                .as_ref()
                .is_none_or(|best| *best == parsed || !world_orders(best, &parsed));
        assert!(kept, "{tag} is there, and nobody wants it");
    }
}

/// Hashes are not ordered.
fn world_orders(one: &ReleaseTag, other: &ReleaseTag) -> bool {
    one.version().channel().is_stable() && other.version().channel().is_stable()
}

/// The objects of a release that nothing keeps from being ready are as rendered, and it says so.
fn assert_objects(world: &World) {
    for (tag, release) in world.api.releases.iter().filter(|(_, release)| !release.deleting) {
        let Some(files) = world.store.get(tag).filter(|files| files.flaw.is_none()) else {
            continue;
        };
        let bytes = planning::digest::digest_of_everything(&(tag, files.revision));
        if release
            .status
            .assets
            .as_ref()
            .is_some_and(|assets| assets.digest != bytes)
        {
            assert!(!release.status.ready, "{tag} is ready with other bytes");
            continue;
        }
        let shared = |key: &ObjectKey| {
            let renders = |other: &String| {
                world
                    .store
                    .get(other)
                    .is_some_and(|files| files.objects.contains_key(key))
            };
            world.api.releases.keys().any(|other| other != tag && renders(other))
                || world.api.objects.get(key).is_some_and(|live| {
                    live.value(&label(crds::labels::PART_OF))
                        != marked(tag, &files.objects[key])
                            .get(&label(crds::labels::PART_OF))
                            .map(String::as_str)
                })
        };
        if files.objects.keys().any(shared) {
            // Several releases want one object: who has it is looked at apart.
            continue;
        }
        let drift = release
            .spec
            .policy
            .as_ref()
            .map(|policy| policy.drift)
            .unwrap_or_default();
        let missing = files.objects.keys().any(|key| !world.api.objects.contains_key(key));
        let given_up = missing && drift != DriftPolicy::Correct;
        assert_eq!(release.status.ready, !given_up, "{tag}: {:#?}", release.status);
        if drift != DriftPolicy::Correct {
            continue;
        }
        for (key, body) in &files.objects {
            let live = world
                .api
                .objects
                .get(key)
                .unwrap_or_else(|| panic!("{key} of {tag} is not there"));
            for (field, value) in marked(tag, body) {
                assert_eq!(live.value(&field), Some(value.as_str()), "{field} of {key}");
            }
        }
    }
}

/// What several releases of the stack want in forms of their own is as the newest of them wants it, and no trouble of the others.
fn assert_newest_forms(world: &World) {
    let staying = || world.api.releases.iter().filter(|(tag, _)| world.stays(tag));
    let keys: BTreeSet<&ObjectKey> = world.api.objects.keys().collect();
    for key in keys {
        let names_it = |release: &ReleaseObject| release.status.resources.iter().any(|row| key_of(row) == *key);
        let mut naming: Vec<(ReleaseTag, &ReleaseObject)> = staying()
            .filter(|(_, release)| names_it(release))
            .filter_map(|(tag, release)| Some((tag.parse::<ReleaseTag>().ok()?, release)))
            .collect();
        naming.sort_by(|(one, _), (other, _)| one.cmp(other));
        let able = |(tag, release): &(ReleaseTag, &ReleaseObject)| {
            let tag = tag.to_string();
            let drift = release.spec.policy.as_ref().map(|policy| policy.drift);
            let files = world.store.get(&tag).filter(|files| files.flaw.is_none());
            let bytes = |files: &Files| planning::digest::digest_of_everything(&(&tag, files.revision));
            let pinned = release.status.assets.as_ref().map(|assets| assets.digest.clone());
            !release.deleting
                && drift.unwrap_or_default() == DriftPolicy::Correct
                && files.is_some_and(|files| Some(bytes(files)) == pinned && files.objects.contains_key(key))
        };
        let one_stack = naming.iter().all(|(tag, release)| {
            let owner = release.owner.as_ref().map(|(name, _)| name.as_str());
            tag.version().has_order() && owner == Some("harbor")
        });
        let (Some((newest, _)), true) = (naming.last(), one_stack && naming.iter().all(able)) else {
            continue;
        };
        let live = &world.api.objects[key];
        for (field, value) in &world.store[&newest.to_string()].objects[key] {
            assert_eq!(
                live.value(field),
                Some(value.as_str()),
                "{field} of {key} as in {newest}"
            );
        }
        for (tag, release) in &naming {
            let row = release.status.resources.iter().find(|row| key_of(row) == *key);
            let error = row.map(|row| row.error.as_str());
            assert_eq!(error, Some(""), "{key} of {tag}");
        }
    }
}

/// Nothing carries the mark of a release that is no more, or that does not want it.
fn assert_no_orphans(world: &World) {
    for (key, live) in &world.api.objects {
        if matches!(key.kind.as_str(), "Namespace" | "CustomResourceDefinition") {
            continue;
        }
        let Some(part_of) = live.value(&label(crds::labels::PART_OF)) else {
            continue;
        };
        let owner = world.api.releases.keys().find(|tag| mark(tag) == part_of);
        let names_it = |release: &ReleaseObject| release.status.resources.iter().any(|row| key_of(row) == *key);
        let Some(owner) = owner else {
            // A release that shared it takes it over as soon as it renders again.
            assert!(world.api.releases.values().any(names_it), "{key} is an orphan");
            continue;
        };
        let release = &world.api.releases[owner];
        let wanted = world
            .store
            .get(owner)
            .is_none_or(|files| files.objects.contains_key(key));
        // Another release that wants it and cannot go on yet takes it over as soon as it can, or deletes it when it goes.
        let awaits = |other: &ReleaseObject| other.uid != release.uid && names_it(other) && !other.status.ready;
        let taken_later = world.api.releases.values().any(awaits);
        assert!(
            wanted || !release.status.ready || release.deleting || taken_later,
            "{key} is left over in {owner}"
        );
    }
}

proptest! {
    #![proptest_config(crate::config(300))]

    #[test]
    fn every_history_ends_in_a_world_that_is_quiet_and_right(history in history(), slow_caches in any::<bool>()) {
        let mut world = World::with_kinds();
        world.slow_caches = slow_caches;
        live_through(&mut world, &history);
        heal(&mut world);
        world.journal.assert_no_violations();
        assert_releases(&world);
        assert_objects(&world);
        assert_newest_forms(&world);
        assert_no_orphans(&world);
    }

    #[test]
    fn a_new_process_in_a_quiet_world_writes_nothing(history in history()) {
        let mut world = World::with_kinds();
        live_through(&mut world, &history);
        heal(&mut world);
        let writes = world.faults.writes;
        world.journal.take();
        world.command("crash");
        world.settle(LONG);
        prop_assert_eq!(world.faults.writes, writes, "{}", world.journal.take().join("\n"));
    }
}
