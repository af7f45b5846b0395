//! How the work ends: with patience where the process is to end, and at once where another one leads. What is under way, the executor knows.

use std::time::Duration;

use planning::image::StopReason;
use tokio_util::sync::CancellationToken;

use crate::executor::Executor;

/// How long deeds may take to end once another process leads.
const FENCED: Duration = Duration::from_secs(1);

/// How the work ends.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// It is to end, with patience for what is under way.
    pub(crate) stop: CancellationToken,
    /// Another process leads: nothing may go on.
    pub(crate) fenced: CancellationToken,
}

/// Lets transfers end by themselves for a while when the process is to end, and not at all when another one leads.
pub(super) async fn drained(executor: &dyn Executor, patience: Duration, ends: &Ends) {
    tokio::select! {
        () = ends.fenced.cancelled() => {}
        () = async {
            ends.stop.cancelled().await;
            executor.drain(patience).await;
        } => return,
    }
    executor.stop_all(StopReason::Fenced);
    executor.drain(FENCED).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use planning::image::{Deed, FailureClass, OpState};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::clock::Steady;
    use crate::executor::{Bounds, InProcess, Order};
    use crate::objects::ObjectId;
    use crate::progress::Ledgers;
    use crate::stand_ins::{Act, Clay, Cluster, object, plan};

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_hours(1);

    /// An executor whose cloud never answers.
    struct Bench {
        clay: Arc<Clay>,
        cluster: Arc<Cluster>,
        executor: InProcess,
        ends: Ends,
    }

    impl Bench {
        fn new() -> Self {
            let (clay, cluster) = (Arc::<Clay>::default(), Cluster::new());
            clay.act("east", Act::Hang);
            let ledgers = Ledgers::new(cluster.client(), "operator-0".to_owned());
            let bounds = Bounds {
                transfers: 1,
                ..Bounds::default()
            };
            Self {
                executor: InProcess::new(bounds, Steady::start(), ledgers, Arc::new(|_: &ObjectId| {})),
                clay,
                cluster,
                ends: Ends {
                    stop: CancellationToken::new(),
                    fenced: CancellationToken::new(),
                },
            }
        }

        fn begin(&self, name: &str, deed: Deed) -> ObjectId {
            let object = object("fleet", name);
            self.executor.begin(Order {
                plan: plan(&object, deed),
                connection: self.clay.connection("east", "uid/1"),
                files: None,
                job: None,
            });
            object
        }

        /// A call that is under way, bytes that are, and bytes that wait for their turn.
        async fn busy(&self) -> [ObjectId; 3] {
            let objects = [
                self.begin("short", Deed::Look),
                self.begin("sent", bytes()),
                self.begin("queued", bytes()),
            ];
            while self.clay.running("east") < 2 {
                sleep(Duration::from_millis(5)).await;
            }
            objects
        }

        fn why(&self, object: &ObjectId) -> StopReason {
            let state = self.executor.look(object).expect("it is known").op.state;
            match state {
                OpState::Ended {
                    outcome: Err(failure), ..
                } => match failure.class {
                    FailureClass::Stopped { why } => why,
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
    }

    fn bytes() -> Deed {
        Deed::ReadBack {
            id: "image-1".to_owned(),
            attempt: 1,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_ends_within_a_second_of_another_process_leading_and_nothing_is_asked_or_written_afterwards() {
        let bench = Bench::new();
        let objects = bench.busy().await;
        let (calls, writes) = (bench.clay.calls().len(), bench.cluster.writes().len());
        let ending = drained(&bench.executor, HOUR, &bench.ends);
        let fencing = async {
            bench.ends.fenced.cancel();
            Instant::now()
        };
        let ((), lost) = tokio::join!(ending, fencing);
        assert!(lost.elapsed() < SECOND, "{:?}", lost.elapsed());
        assert_eq!(bench.clay.running("east"), 0);
        assert_eq!(objects.map(|object| bench.why(&object)), [StopReason::Fenced; 3]);
        bench.clay.act("east", Act::Answer);
        let late = bench.begin("late", Deed::Look);
        assert_eq!(bench.why(&late), StopReason::Draining);
        sleep(HOUR).await;
        assert_eq!(bench.clay.calls().len(), calls);
        assert_eq!(bench.cluster.writes().len(), writes);
    }

    #[tokio::test(start_paused = true)]
    async fn who_loses_its_lease_while_it_waits_for_transfers_waits_no_longer() {
        let bench = Bench::new();
        let [short, sent, _] = bench.busy().await;
        let ending = drained(&bench.executor, HOUR, &bench.ends);
        let fencing = async {
            bench.ends.stop.cancel();
            sleep(SECOND * 20).await;
            assert_eq!(bench.clay.running("east"), 2, "it has an hour");
            bench.ends.fenced.cancel();
            Instant::now()
        };
        let ((), lost) = tokio::join!(ending, fencing);
        assert!(lost.elapsed() < SECOND, "{:?}", lost.elapsed());
        assert_eq!(bench.clay.running("east"), 0);
        assert_eq!([short, sent].map(|object| bench.why(&object)), [StopReason::Fenced; 2]);
    }
}
