//! Who is served when.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use planning::image::{Deed, Done, FailureClass, OpState};
use provider_plugin::{ImageSource, Opened, Probe, SourceError};
use tokio::time::{self, Instant};

use super::super::{Bounds, Executor, Order};
use super::bench::{Bench, eventually, long};
use crate::source::Files;
use crate::stand_ins::{Act, object};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_cloud_that_hangs_delays_no_other() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Hang);
    for number in 0..40 {
        bench.begin(&format!("fleet/look{number}"), "east", Deed::Look);
        bench.begin(&format!("fleet/read{number}"), "east", long());
    }
    let begun = Instant::now();
    let look = bench.begin("fleet/west-look", "west", Deed::Look);
    let read = bench.begin("fleet/west-read", "west", long());
    assert_eq!(bench.end(&look).await, Ok(Done::Looked));
    assert_eq!(bench.end(&read).await, Ok(Done::ReadBack));
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    assert_eq!(
        bench.clay.running("east"),
        8 + 2,
        "both lanes of the one that hangs are full"
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_the_bounds_say_and_all_get_their_turn() {
    let bench = Bench::with(Bounds {
        short: 3,
        transfers: 2,
        transfers_total: 5,
    });
    let mut objects = Vec::new();
    for cloud in ["east", "west", "north", "south"] {
        bench.clay.act(cloud, Act::Take(SECOND));
        objects.extend((0..6).map(|number| bench.begin(&format!("fleet/{cloud}{number}"), cloud, long())));
    }
    for object in &objects {
        bench.end(object).await.unwrap();
    }
    for cloud in ["east", "west", "north", "south"] {
        assert_eq!(bench.clay.most(cloud), 2, "{cloud}");
    }
    assert_eq!(bench.clay.most(""), 5, "all clouds together");
    let looks: Vec<_> = (0..9)
        .map(|number| bench.begin(&format!("fleet/look{number}"), "east", Deed::Look))
        .collect();
    for look in &looks {
        bench.end(look).await.unwrap();
    }
    assert_eq!(bench.clay.most("east"), 3);
}

#[tokio::test(start_paused = true)]
async fn namespaces_take_turns_at_a_cloud() {
    let bench = Bench::with(Bounds {
        transfers: 1,
        ..Bounds::default()
    });
    bench.clay.act("east", Act::Take(SECOND));
    let crowd: Vec<_> = (0..10)
        .map(|number| bench.begin(&format!("crowd/{number}"), "east", long()))
        .collect();
    let begun = Instant::now();
    let lonely = bench.begin("lonely/one", "east", long());
    bench.end(&lonely).await.unwrap();
    let waited = begun.elapsed();
    assert!(
        waited < SECOND * 4,
        "one of the crowd was at work and one before it: {waited:?}"
    );
    assert!(!matches!(bench.state(&crowd[9]), OpState::Ended { .. }));
    bench.end(&crowd[9]).await.unwrap();
}

/// Gives 64 KiB at once, and then a byte each 25 seconds.
#[derive(Debug)]
struct Drips;

#[async_trait]
impl ImageSource for Drips {
    fn place(&self) -> &'static str {
        "https://images.example/drips"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some(1 << 30),
            ..Probe::default()
        })
    }

    async fn open(&self, _: u64, _: &Probe) -> Result<Opened, SourceError> {
        let first = stream::iter([Ok(Bytes::from(vec![0; 64 * 1024]))]);
        let drips = stream::iter(0..1_000_000).then(|_| async {
            time::sleep(SECOND * 25).await;
            Ok::<_, SourceError>(Bytes::from_static(&[0]))
        });
        Ok(Opened::At(first.chain(drips).boxed()))
    }
}

#[tokio::test(start_paused = true)]
async fn what_drips_keeps_its_place_until_somebody_else_wants_it() {
    let bench = Bench::with(Bounds {
        transfers: 1,
        ..Bounds::default()
    });
    let drips = object("crowd", "drips");
    let deed = Deed::Transfer {
        id: "image-1".to_owned(),
        attempt: 1,
        staged: false,
    };
    bench.executor.begin(Order {
        files: Some(Files {
            image: Arc::new(Drips),
            sums: None,
            tag_is_digest: false,
        }),
        ..bench.order(&drips, "east", deed)
    });
    time::sleep(SECOND * 3600).await;
    assert!(bench.is_running(&drips), "nobody else wants its place");
    let other = bench.begin("lonely/one", "east", long());
    assert_eq!(bench.end(&other).await, Ok(Done::ReadBack));
    let failure = bench.end(&drips).await.unwrap_err();
    assert_eq!(failure.class, FailureClass::SourceBroken, "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_how_many_are_before_it_and_woken_when_its_turn_comes() {
    let bench = Bench::with(Bounds {
        transfers: 1,
        ..Bounds::default()
    });
    bench.clay.act("east", Act::Take(SECOND));
    let objects: Vec<_> = (0..4)
        .map(|number| bench.begin(&format!("fleet/{number}"), "east", long()))
        .collect();
    let ahead = |index: usize| match bench.state(&objects[index]) {
        OpState::Queued { ahead, .. } => Some(ahead),
        _ => None,
    };
    assert_eq!(
        [ahead(0), ahead(1), ahead(2), ahead(3)],
        [None, Some(0), Some(1), Some(2)]
    );
    assert_eq!(bench.woken(&objects[3]), 0);
    bench.end(&objects[0]).await.unwrap();
    eventually("the next turn", || ahead(1).is_none()).await;
    assert_eq!([ahead(2), ahead(3)], [Some(0), Some(1)]);
    bench.executor.stop(&objects[2], planning::image::StopReason::Changed);
    assert_eq!(ahead(3), Some(0));
    eventually("the last turn", || bench.is_running(&objects[3])).await;
    assert_eq!(bench.woken(&objects[3]), 1, "its turn has come");
    bench.end(&objects[3]).await.unwrap();
    assert_eq!(bench.woken(&objects[3]), 2, "it has ended");
}

#[tokio::test(start_paused = true)]
async fn an_object_has_at_most_one_deed_and_its_end_stays_until_it_is_forgotten() {
    let bench = Bench::new();
    bench.clay.act("east", Act::Take(SECOND));
    let object = bench.begin("fleet/one", "east", Deed::Look);
    bench.begin("fleet/one", "east", long());
    bench.executor.forget(&object);
    assert_eq!(
        bench.view(&object).op.deed,
        Deed::Look,
        "what is under way is not forgotten"
    );
    assert_eq!(bench.end(&object).await, Ok(Done::Looked));
    bench.begin("fleet/one", "east", long());
    time::sleep(SECOND * 5).await;
    assert_eq!(bench.end(&object).await, Ok(Done::Looked));
    assert_eq!(bench.clay.calls(), ["east observe fleet/one"]);
    bench.executor.forget(&object);
    assert!(bench.executor.look(&object).is_none());
    bench.begin("fleet/one", "east", long());
    assert_eq!(bench.end(&object).await, Ok(Done::ReadBack));
}
