//! How deeds end that do not end well by themselves.

use std::time::Duration;

use planning::image::{Deed, Done, FailureClass, OpState, StopReason};
use tokio::time::{self, Instant};

use super::super::{Bounds, Executor};
use super::bench::{Bench, eventually, long};
use crate::stand_ins::{Act, object};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn what_is_stopped_ends_within_a_second_and_the_cloud_is_quiet_afterwards() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Hang);
    for (name, deed) in [("fleet/short", Deed::Look), ("fleet/long", long())] {
        let object = bench.begin(name, "east", deed);
        eventually("the call", || bench.clay.running("east") == 1).await;
        let told = Instant::now();
        bench.executor.stop(&object, StopReason::Deleted);
        let class = FailureClass::Stopped {
            why: StopReason::Deleted,
        };
        assert_eq!(bench.end(&object).await.unwrap_err().class, class);
        assert!(told.elapsed() < SECOND);
        assert_eq!(bench.clay.running("east"), 0);
    }
    let calls = bench.clay.calls().len();
    time::sleep(SECOND * 60).await;
    assert_eq!(bench.clay.calls().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_ends_at_once_and_never_reaches_the_cloud() {
    let bench = Bench::with(Bounds {
        transfers: 1,
        ..Bounds::default()
    });
    bench.clay.act("east", Act::Take(SECOND));
    let first = bench.begin("fleet/first", "east", long());
    let second = bench.begin("fleet/second", "east", long());
    bench.executor.stop(&second, StopReason::Changed);
    assert!(matches!(bench.state(&second), OpState::Ended { .. }));
    assert_eq!(bench.woken(&second), 1);
    bench.end(&first).await.unwrap();
    time::sleep(SECOND * 5).await;
    assert_eq!(bench.clay.calls(), ["east read image-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_reason_to_stop_is_the_one_that_is_told() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Hang);
    let object = bench.begin("fleet/one", "east", long());
    bench.executor.stop(&object, StopReason::Paused);
    let state = bench.state(&object);
    assert!(
        matches!(
            state,
            OpState::Stopping {
                why: StopReason::Paused,
                ..
            }
        ),
        "{state:?}"
    );
    bench.executor.stop(&object, StopReason::Deleted);
    let failure = bench.end(&object).await.unwrap_err();
    let class = FailureClass::Stopped {
        why: StopReason::Paused,
    };
    assert_eq!(failure.class, class);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_falls_over_ends_its_deed_as_failed_and_gives_its_turn_away() {
    let bench = Bench::with(Bounds {
        short: 1,
        ..Bounds::default()
    });
    bench.clay.act("east", Act::Panic);
    let object = bench.begin("fleet/one", "east", Deed::Look);
    let failure = bench.end(&object).await.unwrap_err();
    assert_eq!(failure.class, FailureClass::Unknown);
    assert!(failure.message.contains("fell over"), "{}", failure.message);
    assert_eq!(bench.clay.running("east"), 0);
    bench.clay.act("east", Act::Answer);
    let other = bench.begin("fleet/other", "east", Deed::Look);
    assert_eq!(bench.end(&other).await, Ok(Done::Looked));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_within_a_minute_is_none() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Hang);
    let begun = Instant::now();
    let object = bench.begin("fleet/one", "east", Deed::Look);
    let failure = bench.end(&object).await.unwrap_err();
    assert_eq!(failure.class, FailureClass::Unavailable);
    assert_eq!(begun.elapsed().as_secs(), 60);
    let long = bench.begin("fleet/long", "east", long());
    time::sleep(SECOND * 600).await;
    assert!(bench.is_running(&long), "bytes take as long as they take");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_end_what_ends_in_time_and_stops_the_rest() {
    let bench = Bench::with(Bounds {
        transfers: 1,
        ..Bounds::default()
    });
    bench.clay.act("quick", Act::Take(SECOND * 5));
    bench.clay.act("slow", Act::Hang);
    let quick = bench.begin("fleet/quick", "quick", long());
    let queued = bench.begin("fleet/queued", "quick", long());
    let slow = bench.begin("fleet/slow", "slow", long());
    eventually("both calls", || bench.clay.running("") == 2).await;
    let begun = Instant::now();
    bench.executor.drain(SECOND * 20).await;
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert_eq!(bench.clay.running(""), 0);
    assert_eq!(bench.end(&quick).await, Ok(Done::ReadBack));
    let class = FailureClass::Stopped {
        why: StopReason::Draining,
    };
    for object in [&queued, &slow] {
        assert_eq!(bench.end(object).await.unwrap_err().class, class);
    }
    let late = bench.begin("fleet/late", "quick", Deed::Look);
    assert_eq!(bench.end(&late).await.unwrap_err().class, class);
    assert_eq!(bench.clay.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_drain_of_nothing_is_over_at_once() {
    let bench = Bench::new();
    let begun = Instant::now();
    bench.executor.drain(SECOND * 20).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn all_end_when_another_process_leads_and_others_may_begin_afterwards() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Hang);
    let objects: Vec<_> = (0..5)
        .map(|number| bench.begin(&format!("fleet/{number}"), "east", long()))
        .collect();
    bench.executor.stop_all(StopReason::Fenced);
    for object in &objects {
        let class = FailureClass::Stopped {
            why: StopReason::Fenced,
        };
        assert_eq!(bench.end(object).await.unwrap_err().class, class);
    }
    assert_eq!(bench.clay.running("east"), 0);
    bench.clay.act("east", Act::Answer);
    let after = bench.begin("fleet/after", "east", long());
    assert_eq!(bench.end(&after).await, Ok(Done::ReadBack));
    bench.executor.stop(&object("fleet", "unknown"), StopReason::Deleted);
}
