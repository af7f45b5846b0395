//! Clouds that want to be left alone.

use std::sync::Arc;
use std::time::Duration;

use planning::image::{Deed, Done, FailureClass};
use provider_plugin::ErrorClass;
use tokio::time;

use super::super::{Bounds, Executor, Order};
use super::bench::{Bench, long};
use crate::source::Files;
use crate::stand_ins::{Act, NoDisk, object, plan};

#[tokio::test(start_paused = true)]
async fn a_cloud_that_asks_for_patience_is_left_alone_for_so_long() {
    let bench = Bench::with(Bounds {
        short: 1,
        ..Bounds::default()
    });
    let patience = Duration::from_secs(90);
    bench.clay.act("east", Act::Fail(ErrorClass::Throttled, Some(patience)));
    let first = bench.begin("fleet/first", "east", Deed::Look);
    let waiting = bench.begin("fleet/waiting", "east", Deed::Look);
    assert_eq!(bench.end(&first).await.unwrap_err().class, FailureClass::Throttled);
    let told = bench.end(&waiting).await.unwrap_err();
    assert_eq!(told.class, FailureClass::Throttled, "also who stood in line is told");
    assert!(told.retry_after.unwrap() <= patience);
    bench.clay.act("east", Act::Answer);
    bench.clay.act("west", Act::Answer);
    time::sleep(Duration::from_mins(1)).await;
    let early = bench.begin("fleet/early", "east", long());
    let failure = bench.end(&early).await.unwrap_err();
    assert!(failure.retry_after.unwrap() <= patience / 3, "{failure:?}");
    let elsewhere = bench.begin("fleet/elsewhere", "west", Deed::Look);
    assert_eq!(bench.end(&elsewhere).await, Ok(Done::Looked));
    time::sleep(patience / 3).await;
    let late = bench.begin("fleet/late", "east", Deed::Look);
    assert_eq!(bench.end(&late).await, Ok(Done::Looked));
    let asked = [
        "east observe fleet/first",
        "west observe fleet/elsewhere",
        "east observe fleet/late",
    ];
    assert_eq!(bench.clay.calls(), asked);
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_for_an_hour_of_patience_keeps_others_from_the_cloud_for_a_minute() {
    let bench = Bench::new();
    let hour = Duration::from_hours(1);
    let begin = |name: &str, version: &str| {
        let object = object("fleet", name);
        bench.executor.begin(Order {
            plan: plan(&object, Deed::Look),
            connection: bench.clay.connection("east", version),
            files: None,
            job: None,
        });
        object
    };
    bench.clay.act("east", Act::Fail(ErrorClass::Throttled, Some(hour)));
    let greedy = begin("greedy", "uid/1");
    assert_eq!(bench.end(&greedy).await.unwrap_err().class, FailureClass::Throttled);
    bench.clay.act("east", Act::Answer);
    let at_once = begin("at-once", "uid/2");
    let told = bench.end(&at_once).await.unwrap_err();
    assert!(told.retry_after.unwrap() <= Duration::from_mins(1), "{told:?}");
    time::sleep(Duration::from_mins(1)).await;
    let other = begin("other", "uid/2");
    assert_eq!(bench.end(&other).await, Ok(Done::Looked));
    let again = begin("again", "uid/1");
    let told = bench.end(&again).await.unwrap_err();
    assert!(told.retry_after.unwrap() + Duration::from_mins(2) > hour, "{told:?}");
    time::sleep(hour).await;
    let late = begin("late", "uid/1");
    assert_eq!(bench.end(&late).await, Ok(Done::Looked));
    let asked = [
        "east observe fleet/greedy",
        "east observe fleet/other",
        "east observe fleet/late",
    ];
    assert_eq!(bench.clay.calls(), asked);
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_not_shown_again_for_a_minute_and_others_are() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Fail(ErrorClass::Credentials, None));
    let begin = |name: &str, version: &str| {
        let object = object("fleet", name);
        bench.executor.begin(Order {
            plan: plan(&object, Deed::Look),
            connection: bench.clay.connection("east", version),
            files: None,
            job: None,
        });
        object
    };
    let first = begin("first", "uid/1");
    assert_eq!(bench.end(&first).await.unwrap_err().class, FailureClass::Credentials);
    bench.clay.act("east", Act::Answer);
    let again = begin("again", "uid/1");
    assert_eq!(bench.end(&again).await.unwrap_err().class, FailureClass::Credentials);
    let amended = begin("amended", "uid/2");
    assert_eq!(bench.end(&amended).await, Ok(Done::Looked));
    time::sleep(Duration::from_mins(1)).await;
    let later = begin("later", "uid/1");
    assert_eq!(bench.end(&later).await, Ok(Done::Looked));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_asks_for_patience_keeps_nobody_from_the_cloud() {
    let bench = Bench::new();
    let object = object("fleet", "one");
    bench.executor.begin(Order {
        files: Some(Files {
            image: Arc::new(NoDisk(ErrorClass::Throttled)),
            sums: None,
            tag_is_digest: false,
        }),
        ..bench.order(&object, "east", Deed::Probe)
    });
    assert_eq!(bench.end(&object).await.unwrap_err().class, FailureClass::Throttled);
    let other = bench.begin("fleet/other", "east", Deed::Look);
    assert_eq!(bench.end(&other).await, Ok(Done::Looked));
}
