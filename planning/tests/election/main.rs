//! Replicas that join, hang, die and leave in any order, with writes that arrive late: no two of them hold a shard at the same time, and those that
//! are left share all of it fairly.

mod world;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

use self::world::{LAYOUTS, World};

/// The same cases in every run; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` explore others.
fn config() -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    };
    let explores = |name| std::env::var_os(name).is_some();
    if explores("PROPTEST_CASES") || explores("PROPTEST_RNG_SEED") {
        return default;
    }
    ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..default
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes.
    Pass { milliseconds: u64 },
    /// One process makes a round; its writes arrive this much later.
    Round { process: usize, late: u64 },
    /// SIGSTOP.
    Pause { process: usize },
    /// SIGCONT.
    Wake { process: usize },
    /// SIGKILL.
    Kill { process: usize },
    /// SIGTERM.
    Leave { process: usize },
    /// Another process starts, with this number of shards.
    Join { layout: usize },
}

fn event() -> impl Strategy<Value = Event> {
    let process = || 0..6_usize;
    prop_oneof![
        8 => (0..4000_u64).prop_map(|milliseconds| Event::Pass { milliseconds }),
        24 => (process(), prop_oneof![6 => Just(0), 1 => 0..20_000_u64]).prop_map(|(process, late)| Event::Round { process, late }),
        1 => process().prop_map(|process| Event::Pause { process }),
        2 => process().prop_map(|process| Event::Wake { process }),
        1 => process().prop_map(|process| Event::Kill { process }),
        1 => process().prop_map(|process| Event::Leave { process }),
        2 => (0..LAYOUTS.len()).prop_map(|layout| Event::Join { layout }),
    ]
}

fn happen(world: &mut World, event: &Event) {
    match *event {
        Event::Pass { milliseconds } => world.pass(milliseconds),
        Event::Round { process, late } => world.round(process, late),
        Event::Pause { process } => world.pause(process),
        Event::Wake { process } => world.wake(process),
        Event::Kill { process } => world.kill(process),
        Event::Leave { process } => world.leave(process),
        Event::Join { layout } => world.join(layout),
    }
}

/// Seconds until everything has run out that the dead held, and the shares are even: a Lease duration to see, one to wait.
const SETTLES: u64 = 60;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_has_two_holders_and_the_living_share_it_fairly(events in prop::collection::vec(event(), 1..250)) {
        let mut world = World::default();
        world.join(0);
        for event in &events {
            happen(&mut world, event);
            world.check().map_err(|broken| TestCaseError::fail(format!("{broken} after {event:?}")))?;
        }
        world.end_all_but(0);
        world.join(0);
        for _ in 0..SETTLES / 2 {
            world.everybody();
            world.pass(2000);
            world.check().map_err(TestCaseError::fail)?;
        }
        let shares = world.shares();
        let held: BTreeSet<u16> = shares.iter().flatten().copied().collect();
        prop_assert_eq!(held.len(), usize::from(LAYOUTS[0]), "{:?}", shares);
        let (least, most) = (shares.iter().map(Vec::len).min(), shares.iter().map(Vec::len).max());
        prop_assert!(most <= least.map(|least| least + 1), "{:?}", shares);
        let moves = world.moves;
        world.everybody();
        world.pass(2000);
        world.everybody();
        prop_assert_eq!(world.moves, moves, "it does not come to rest");
    }
}

#[test]
fn a_newcomer_gets_its_share_and_nothing_else_moves() {
    let mut world = World::default();
    world.join(0);
    for newcomer in 1..4_usize {
        for _ in 0..SETTLES / 2 {
            world.everybody();
            world.pass(2000);
        }
        let before = world.moves;
        world.join(0);
        for _ in 0..SETTLES / 2 {
            world.everybody();
            world.pass(2000);
        }
        let share = usize::from(LAYOUTS[0]) / (newcomer + 1);
        assert_eq!(world.moves - before, share, "{:?}", world.shares());
        assert_eq!(world.shares()[newcomer].len(), share);
    }
}

#[test]
fn another_number_of_shards_waits_for_the_last_of_the_old() {
    let mut world = World::default();
    world.join(0);
    world.everybody();
    world.join(1);
    for _ in 0..20 {
        world.everybody();
        world.pass(2000);
        assert!(world.shares()[1].is_empty());
    }
    // Its end is told, so that nobody waits for a Lease to run out.
    world.leave(0);
    for _ in 0..3 {
        world.everybody();
        world.pass(2000);
    }
    assert_eq!(world.shares()[0].len(), usize::from(LAYOUTS[1]));
}
