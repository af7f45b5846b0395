//! Whatever goes wrong at whatever write, a journey ends as it would have ended without.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use planning::object_key::ObjectKey;

use crate::world::World;
use crate::world::faults::Fault;
use crate::world::live::Body;

/// Longer than every wait between retries.
const LONG: SignedDuration = SignedDuration::from_mins(30);

const FAULTS: [Fault; 5] = [
    Fault::Refused,
    Fault::AnswerLost,
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::CrashAfterAndStatusLost,
];

/// Subscribe, upgrade while a Cluster uses the old release, drop, delete.
const JOURNEY: [&str; 8] = [
    "publish docker-harbor-1-34-v1 objects=ConfigMap/values",
    "apply stack harbor",
    "cluster elsewhere/far uses docker-harbor-1-34-v1 classNamespace=stacks",
    "publish docker-harbor-1-34-v2 objects=Secret/token,Deployment/web",
    "delete cluster elsewhere/far",
    "rerender docker-harbor-1-34-v2 objects=Deployment/web",
    "publish docker-harbor-1-34-v3",
    "apply stack harbor versions=[v1]",
];

/// The same with a provider that does its part at once.
const PROVIDER_JOURNEY: [&str; 6] = [
    "template images size=small",
    "publish docker-harbor-1-34-v1",
    "apply stack harbor providerRef=DockerClusterStackReleaseTemplate/images",
    "ready",
    "template images size=large",
    "publish docker-harbor-1-34-v2",
];

/// What is there, without identities, versions and times.
#[derive(Debug, PartialEq)]
struct End {
    objects: BTreeMap<ObjectKey, Body>,
    releases: BTreeMap<String, (bool, Vec<String>)>,
    providers: Vec<String>,
    stacks: BTreeMap<String, Vec<String>>,
}

fn end(world: &World) -> End {
    let values = |live: &crate::world::live::Live| {
        live.fields
            .iter()
            .map(|(name, field)| (name.clone(), field.value.clone()))
            .collect()
    };
    End {
        objects: world
            .api
            .objects
            .iter()
            .map(|(key, live)| (key.clone(), values(live)))
            .collect(),
        releases: world
            .api
            .releases
            .iter()
            .map(|(tag, release)| {
                (
                    tag.clone(),
                    (release.deleting, crate::world::journal::release_card(&release.status)),
                )
            })
            .collect(),
        providers: world.api.providers.keys().cloned().collect(),
        stacks: world
            .api
            .stacks
            .iter()
            .map(|(name, stack)| (name.clone(), crate::world::journal::stack_card(&stack.status)))
            .collect(),
    }
}

/// Plays a journey with a fault at one write (counted from 0), or none; gives the end after each command and the number of writes.
fn play(journey: &[&str], fault: Option<(usize, Fault)>, slow_caches: bool) -> (Vec<End>, usize) {
    let mut world = World::with_kinds();
    world.slow_caches = slow_caches;
    if let Some((at, fault)) = fault {
        world
            .faults
            .coming
            .extend(std::iter::repeat_n(None, at).chain([Some(fault)]));
    }
    let mut ends = Vec::new();
    for command in journey {
        if *command == "ready" {
            for provider in world.api.providers.values_mut() {
                provider.ready = true;
            }
        } else {
            world.command(command);
        }
        world.settle(LONG);
        ends.push(end(&world));
    }
    world.command("delete stack harbor");
    world.settle(LONG);
    ends.push(end(&world));
    world.journal.assert_no_violations();
    (ends, world.faults.writes)
}

fn every_fault_at_every_write_leads_to_the_same_end(journey: &[&str]) {
    let (expected, writes) = play(journey, None, false);
    let last = expected.last().expect("an end");
    assert!(
        last.objects.is_empty() && last.releases.is_empty() && last.providers.is_empty(),
        "{last:?}"
    );
    assert!(writes >= 20, "the journey has only {writes} writes");
    for fault in FAULTS {
        for at in 0..writes {
            let (ends, _) = play(journey, Some((at, fault)), at.is_multiple_of(2));
            for (step, (end, expected)) in ends.iter().zip(&expected).enumerate() {
                let command = journey.get(step).unwrap_or(&"delete stack harbor");
                assert_eq!(end, expected, "after {command:?} with {fault:?} at write {at}");
            }
        }
    }
}

#[test]
fn every_fault_at_every_write_of_a_subscription_leads_to_the_same_end() {
    every_fault_at_every_write_leads_to_the_same_end(&JOURNEY);
}

#[test]
fn every_fault_at_every_write_with_a_provider_leads_to_the_same_end() {
    every_fault_at_every_write_leads_to_the_same_end(&PROVIDER_JOURNEY);
}
