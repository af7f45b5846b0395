//! Whatever happens, in whatever order: the add-ons come out as they are to be.

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

use planning::addon::Connection;

use super::releases::key;
use super::world::World;

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
        cases: 96,
        rng_seed: RngSeed::Fixed(1),
        ..default
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// Somebody sets the class, and the version later.
    Class(usize),
    Version,
    Variable,
    ClusterApi,
    /// The driver has a round, and may be ended before its n-th write.
    Drive(Option<usize>),
    LoseStatus,
    Restart,
    Edit(usize),
    Delete(usize),
    Plant,
    /// A condition comes true, or is not true any more.
    Turn(&'static str),
    Connection(u8),
    Release,
    /// Watches begin anew, or have listed.
    Listing,
    /// Charts begin to take long, or are rendered.
    Rendering,
    Time(i64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let chart = prop_oneof![Just("cni"), Just("widgets")];
    let event = prop_oneof![
        3 => (0_usize..7).prop_map(Event::Class),
        3 => Just(Event::Version),
        1 => Just(Event::Variable),
        8 => Just(Event::ClusterApi),
        14 => prop::option::weighted(0.3, 0_usize..8).prop_map(Event::Drive),
        1 => Just(Event::LoseStatus),
        1 => Just(Event::Restart),
        1 => any::<usize>().prop_map(Event::Edit),
        1 => any::<usize>().prop_map(Event::Delete),
        1 => Just(Event::Plant),
        3 => chart.prop_map(Event::Turn),
        2 => (0_u8..5).prop_map(Event::Connection),
        1 => Just(Event::Release),
        2 => Just(Event::Listing),
        1 => Just(Event::Rendering),
        2 => (1_i64..2000).prop_map(Event::Time),
    ];
    prop::collection::vec(event, 0..120)
}

fn run(world: &mut World, events: &[Event]) {
    for event in events {
        world.second += 1;
        match event {
            Event::Class(class) => world.set_class(*class),
            Event::Version => world.set_version(),
            Event::Variable => world.set_variable(),
            Event::ClusterApi => world.cluster_api(),
            Event::Drive(crash) => {
                world.crash = *crash;
                world.reconcile();
                world.crash = None;
            }
            Event::LoseStatus => world.lose_status(),
            Event::Restart => world.restart(),
            Event::Edit(number) => {
                if let Some(key) = world.object(*number) {
                    world.cluster.edit(&key);
                }
            }
            Event::Delete(number) => {
                if let Some(key) = world.object(*number) {
                    world.cluster.remove(&key);
                }
            }
            Event::Plant => world.cluster.plant(&key("ConfigMap default/theirs")),
            Event::Turn(chart) => {
                if world.unmet.remove(chart) {
                    world.unfit.insert(chart);
                } else if !world.unfit.remove(chart) {
                    world.unmet.insert(chart);
                }
            }
            Event::Connection(state) => world.connection = connection(world, *state),
            Event::Listing => world.is_listed = !world.is_listed,
            Event::Rendering => world.is_slow = !world.is_slow,
            Event::Release => world.is_release_ready = !world.is_release_ready,
            Event::Time(seconds) => world.second += seconds,
        }
    }
}

fn connection(world: &World, state: u8) -> Connection {
    let since = world.now();
    match state {
        0 => Connection::Disconnected,
        1 => Connection::Connecting { since },
        2 => Connection::Suspect {
            since,
            message: "no route to host".to_owned(),
        },
        3 => Connection::Refused {
            message: "users[0].user.exec is not allowed".to_owned(),
        },
        _ => Connection::Healthy,
    }
}

proptest! {
    #![proptest_config(config())]

    /// F2, F3, F5, F6, F9 to F14: whatever is written, lost, killed, edited, deleted or faulty, every cluster gets all that its class says and loses all
    /// that it does not say any more, and nothing else (the rules of every write and every plan hold on the way).
    #[test]
    fn whatever_happens_the_add_ons_come_out_as_the_class_says(events in events()) {
        let mut world = World::new();
        run(&mut world, &events);
        world.settle();
        world.assert_settled();
    }

    #[test]
    fn add_ons_that_are_complete_are_written_to_no_more(events in events()) {
        let mut world = World::new();
        run(&mut world, &events);
        world.settle();
        let before = (world.writes, world.addon.clone(), world.cluster.clone());
        world.restart();
        world.settle();
        prop_assert_eq!(world.writes, before.0, "{:?}", world.journal);
        prop_assert!(world.addon == before.1);
        prop_assert!(world.cluster == before.2);
    }

    /// F15: whatever was, a cluster that is to go goes in time.
    #[test]
    fn a_cluster_that_is_to_go_is_let_go_in_time(events in events(), more in events()) {
        let mut world = World::new();
        run(&mut world, &events);
        world.deleting = Some(world.second);
        world.generation += 1;
        let more: Vec<Event> = more.into_iter().filter(|event| !matches!(event, Event::Class(_))).collect();
        run(&mut world, &more);
        world.second += 3600;
        world.assert_lets_go();
        world.is_gone = true;
        world.is_addon_deleted = true;
        let objects = world.cluster.clone();
        for _ in 0..3 {
            world.reconcile();
        }
        prop_assert!(world.addon.is_none());
        prop_assert!(world.cluster == objects);
    }

    /// Somebody deletes the ClusterAddon by hand: nothing in the cluster is touched, and it is made anew.
    #[test]
    fn a_cluster_addon_that_is_deleted_by_hand_is_made_anew_and_no_object_flickers(events in events()) {
        let mut world = World::new();
        run(&mut world, &events);
        world.settle();
        // Its stages of creation make a chart and take it away again.
        prop_assume!(world.class != 0);
        let objects = world.cluster.clone();
        world.delete_addon();
        world.settle();
        world.assert_settled();
        prop_assert!(world.cluster == objects, "{:?}", world.journal);
    }
}
