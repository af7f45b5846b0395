use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::stream;
use futures::{FutureExt, StreamExt};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};

use super::*;
use crate::stub::{self, Answer, Asked, refusal};
use crate::told::Told;

/// Leases as an API server keeps them: with optimistic locking.
#[derive(Default)]
struct Kept {
    leases: BTreeMap<String, Value>,
    version: u64,
    /// Every call fails while this is set.
    broken: bool,
    /// Nobody may write while this is set.
    read_only: bool,
    /// How many calls for a Lease get no answer, by its name.
    unanswered: BTreeMap<String, usize>,
    /// What gets no answer is stored all the same, where it is a write.
    stores: bool,
}

/// The Lease that a call is about.
fn name_of(path: &str, body: &Value) -> String {
    match body["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => path.rsplit('/').next().unwrap().to_owned(),
    }
}

impl Kept {
    fn answer_or_not(&mut self, asked: &Asked) -> Answer {
        let left = self.unanswered.get_mut(&name_of(&asked.path, &asked.body));
        let hangs = left.filter(|left| **left > 0).map(|left| *left -= 1).is_some();
        if hangs && !self.stores {
            return Answer::Live(stream::pending().boxed());
        }
        let answer = self.answer(&asked.method, &asked.path, &asked.body);
        if hangs {
            return Answer::Live(stream::pending().boxed());
        }
        answer.into()
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        if self.broken {
            return refusal(500, "InternalError", "broken", &json!({}));
        }
        if self.read_only && *method != Method::GET {
            return refusal(403, "Forbidden", "leases are read-only", &json!({}));
        }
        let name = name_of(path, body);
        let stored = self.leases.get(&name);
        let version = stored.map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (method, version) {
            (&Method::GET, None) => refusal(404, "NotFound", "not found", &json!({})),
            (&Method::GET, Some(_)) => (200, stored.unwrap().clone()),
            (&Method::POST, Some(_)) => refusal(409, "AlreadyExists", "already exists", &json!({})),
            (&Method::PUT, version) if version.as_ref() != Some(&body["metadata"]["resourceVersion"]) => {
                refusal(409, "Conflict", "modified", &json!({}))
            }
            _ => {
                self.version += 1;
                let mut lease = body.clone();
                lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.leases.insert(name, lease.clone());
                (200, lease)
            }
        }
    }
}

#[derive(Clone, Default)]
struct Cluster(Arc<Mutex<Kept>>);

/// A replica, and what it may do.
struct Replica {
    leadership: watch::Receiver<Leadership>,
    tenure: Tenure,
    fence: Fence,
    task: JoinHandle<()>,
    end: CancellationToken,
}

impl Replica {
    async fn leads(&mut self) {
        leads(&mut self.leadership).await;
    }

    /// Waits until it holds so many shards.
    async fn holds(&self, count: usize) {
        let mut held = self.tenure.watch();
        held.wait_for(|held| held.len() == count).await.unwrap();
    }

    fn shards(&self) -> BTreeSet<u16> {
        self.tenure.watch().borrow().keys().copied().collect()
    }
}

impl Cluster {
    fn start(&self, identity: &str, shards: u16) -> Replica {
        let kept = Arc::clone(&self.0);
        let client = stub::client(move |asked| kept.lock().unwrap().answer_or_not(asked));
        Self::start_with(client, identity, shards)
    }

    fn start_with(client: Client, identity: &str, shards: u16) -> Replica {
        let options = LeaseOptions {
            namespace: "system".to_owned(),
            name: "operator".to_owned(),
            identity: identity.to_owned(),
            timing: Timing::default(),
            members: "example.org/members",
        };
        let origin = Instant::now();
        let fence = Fence::shut(Clock::of(move || origin.elapsed()));
        let (tenure, end) = (Tenure::of(shards), CancellationToken::new());
        let (leadership, task) = elect(client, options, tenure.clone(), fence.clone(), end.clone());
        Replica {
            leadership,
            tenure,
            fence,
            task,
            end,
        }
    }

    fn elect(&self, identity: &str, cancel: &CancellationToken) -> (watch::Receiver<Leadership>, JoinHandle<()>) {
        let Replica {
            leadership, task, end, ..
        } = self.start(identity, 1);
        let cancel = cancel.clone();
        tokio::spawn(async move {
            cancel.cancelled().await;
            end.cancel();
        });
        (leadership, task)
    }

    /// So many calls for a Lease get no answer from now on.
    fn leave_unanswered(&self, lease: &str, calls: usize) {
        self.0.lock().unwrap().unanswered.insert(lease.to_owned(), calls);
    }

    /// Who holds these shards, by Leases.
    fn holders(&self, shards: u16) -> Vec<String> {
        let kept = self.0.lock().unwrap();
        let lease = |shard| &kept.leases[&format!("operator-shard-{shard}-of-{shards}")];
        let holder = |shard| lease(shard)["spec"]["holderIdentity"].as_str().unwrap().to_owned();
        (0..shards).map(holder).collect()
    }

    fn lease(&self) -> Value {
        self.0.lock().unwrap().leases["operator"].clone()
    }

    fn holder(&self) -> String {
        self.lease()["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }

    fn transitions(&self) -> u64 {
        self.lease()["spec"]["leaseTransitions"].as_u64().unwrap()
    }
}

fn is_lost(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Lost(_))
}

async fn leads(leadership: &mut watch::Receiver<Leadership>) {
    leadership
        .wait_for(|state| *state == Leadership::Leading)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_its_release_lets_the_other_lead_at_once() {
    let cluster = Cluster::default();
    let (first_end, second_end) = (CancellationToken::new(), CancellationToken::new());
    let (mut first, first_task) = cluster.elect("first", &first_end);
    leads(&mut first).await;
    let (mut second, _) = cluster.elect("second", &second_end);
    second
        .wait_for(|state| {
            *state
                == Leadership::Standby {
                    holder: Some("first".to_owned()),
                }
        })
        .await
        .unwrap();
    sleep(Duration::from_mins(2)).await;
    assert_eq!((cluster.holder().as_str(), cluster.transitions()), ("first", 0));

    let released = Instant::now();
    first_end.cancel();
    first_task.await.unwrap();
    leads(&mut second).await;
    assert!(released.elapsed() <= Timing::default().retry_period);
    assert_eq!((cluster.holder().as_str(), cluster.transitions()), ("second", 1));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_vanishes_is_followed_after_the_lease_duration_and_not_before() {
    let cluster = Cluster::default();
    let (mut first, task) = cluster.elect("first", &CancellationToken::new());
    leads(&mut first).await;
    let (mut second, _) = cluster.elect("second", &CancellationToken::new());
    second
        .wait_for(|state| matches!(state, Leadership::Standby { holder: Some(_) }))
        .await
        .unwrap();
    task.abort();
    let gone = Instant::now();
    leads(&mut second).await;
    let timing = Timing::default();
    assert!(
        gone.elapsed() + timing.retry_period >= timing.lease_duration,
        "{:?}",
        gone.elapsed()
    );
    assert!(
        gone.elapsed() <= timing.lease_duration + timing.retry_period * 2,
        "{:?}",
        gone.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_gives_up_before_others_take_over() {
    let cluster = Cluster::default();
    let (mut first, task) = cluster.elect("first", &CancellationToken::new());
    leads(&mut first).await;
    cluster.0.lock().unwrap().broken = true;
    let broken = Instant::now();
    first.wait_for(is_lost).await.unwrap();
    assert!(broken.elapsed() <= Timing::default().renew_deadline);
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_survives_a_short_outage() {
    let cluster = Cluster::default();
    let (mut first, _task) = cluster.elect("first", &CancellationToken::new());
    leads(&mut first).await;
    cluster.0.lock().unwrap().broken = true;
    sleep(Duration::from_secs(6)).await;
    cluster.0.lock().unwrap().broken = false;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(*first.borrow(), Leadership::Leading);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_counts_no_further_is_taken_all_the_same() {
    let cluster = Cluster::default();
    let spec = json!({ "holderIdentity": "", "leaseTransitions": i32::MAX });
    let full = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "operator" }, "spec": spec });
    cluster.0.lock().unwrap().answer(&Method::POST, "", &full);
    let (mut first, _task) = cluster.elect("first", &CancellationToken::new());
    leads(&mut first).await;
    assert_eq!(cluster.transitions(), u64::try_from(i32::MAX).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_leadership() {
    let cluster = Cluster::default();
    let (mut first, _task) = cluster.elect("first", &CancellationToken::new());
    leads(&mut first).await;
    {
        let mut kept = cluster.0.lock().unwrap();
        let mut lease = kept.leases["operator"].clone();
        lease["spec"]["holderIdentity"] = json!("thief");
        kept.answer(&Method::PUT, "", &lease);
    }
    first.wait_for(is_lost).await.unwrap();
    assert_eq!(cluster.holder(), "thief");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_can_be_read_and_not_written_is_told_once_until_a_round_goes_well() {
    let told = Told::begin();
    let cluster = Cluster::default();
    let read_only = |read_only| cluster.0.lock().unwrap().read_only = read_only;
    read_only(true);
    let (mut first, _task) = cluster.elect("first", &CancellationToken::new());
    sleep(Duration::from_mins(1)).await;
    let once = "WARN failed to write the lease; it is tried again by itself error=\"leases are read-only\"";
    assert_eq!(told.lines(), [once]);
    read_only(false);
    leads(&mut first).await;
    read_only(true);
    sleep(Timing::default().renew_deadline / 2).await;
    assert_eq!(told.lines(), [once, once]);
}

#[tokio::test(start_paused = true)]
async fn three_replicas_share_the_shards_and_take_over_those_of_a_dead_one_in_time() {
    let cluster = Cluster::default();
    let mut first = cluster.start("first", 7);
    first.leads().await;
    first.holds(7).await;
    let (second, third) = (cluster.start("second", 7), cluster.start("third", 7));
    second.holds(2).await;
    third.holds(2).await;
    first.holds(3).await;
    let all = [first.shards(), second.shards(), third.shards()].concat_all();
    assert_eq!(all, (0..7).collect::<Vec<_>>());

    sleep(Duration::from_mins(5)).await;
    assert_eq!(
        [first.shards(), second.shards(), third.shards()].concat_all(),
        all,
        "at rest"
    );
    first.task.abort();
    let gone = Instant::now();
    tokio::join!(second.holds(4), third.holds(3));
    let timing = Timing::default();
    assert!(
        gone.elapsed() + timing.retry_period >= timing.lease_duration,
        "{:?}",
        gone.elapsed()
    );
    // Who is dead is no longer counted on a moment later.
    assert!(
        gone.elapsed() <= timing.lease_duration + timing.retry_period * 3,
        "{:?}",
        gone.elapsed()
    );
}

trait ConcatAll {
    /// Everything, in order; twice what is in two of them.
    fn concat_all(&self) -> Vec<u16>;
}

impl<const COUNT: usize> ConcatAll for [BTreeSet<u16>; COUNT] {
    fn concat_all(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self.iter().flatten().copied().collect();
        all.sort_unstable();
        all
    }
}

/// That it may write in these shards, at every moment of this time.
async fn works_for(replica: &Replica, shards: &BTreeSet<u16>, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        sleep(Duration::from_millis(100)).await;
        assert!(replica.fence.is_open(), "{:?} before the end", end - Instant::now());
        assert_eq!(replica.shards(), *shards);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_others_whose_calls_are_never_answered_costs_no_other() {
    let cluster = Cluster::default();
    cluster.leave_unanswered("operator-shard-3-of-7", usize::MAX);
    let replica = cluster.start("first", 7);
    replica.holds(6).await;
    let others = BTreeSet::from([0, 1, 2, 4, 5, 6]);
    works_for(&replica, &others, Duration::from_mins(2)).await;
    // Nor while calls for one that is held get none either.
    cluster.leave_unanswered("operator-shard-2-of-7", 2);
    works_for(&replica, &others, Duration::from_mins(2)).await;
    cluster.leave_unanswered("operator-shard-3-of-7", 0);
    replica.holds(7).await;
}

#[tokio::test(start_paused = true)]
async fn calls_without_an_answer_for_a_lease_that_is_held_cost_none() {
    for stores in [false, true] {
        let cluster = Cluster::default();
        cluster.0.lock().unwrap().stores = stores;
        let replica = cluster.start("first", 7);
        replica.holds(7).await;
        for lease in ["operator", "operator-shard-2-of-7"] {
            for calls in [1, 2] {
                cluster.leave_unanswered(lease, calls);
                works_for(&replica, &(0..7).collect(), Duration::from_mins(1)).await;
                assert_eq!(cluster.0.lock().unwrap().unanswered[lease], 0, "{lease} was asked for");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_was_taken_counts_although_its_answer_was_lost() {
    let cluster = Cluster::default();
    let mut replica = cluster.start("first", 1);
    replica.leads().await;
    cluster.0.lock().unwrap().stores = true;
    cluster.leave_unanswered("operator", 1);
    while cluster.0.lock().unwrap().unanswered["operator"] > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let taken = Instant::now();
    cluster.0.lock().unwrap().read_only = true;
    replica.leadership.wait_for(is_lost).await.unwrap();
    let deadline = Timing::default().renew_deadline;
    assert!(
        taken.elapsed() + Duration::from_millis(10) >= deadline,
        "{:?}",
        taken.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_most_of_the_deadline_for_each_answer_costs_no_lease() {
    let cluster = Cluster::default();
    let kept = Arc::clone(&cluster.0);
    let slow = Timing::default().renew_deadline * 2 / 5;
    let client = stub::client(move |asked| {
        let (status, body): (u16, Value) = kept.lock().unwrap().answer(&asked.method, &asked.path, &asked.body);
        let late = sleep(slow).map(move |()| body);
        Answer::Late(status, late.boxed())
    });
    let replica = Cluster::start_with(client, "first", 1);
    replica.holds(1).await;
    works_for(&replica, &BTreeSet::from([0]), Duration::from_mins(2)).await;
    assert_eq!(cluster.transitions(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_a_place_holds_from_when_it_asked() {
    let cluster = Cluster::default();
    let kept = Arc::clone(&cluster.0);
    let client = stub::client(move |asked| {
        let (status, body): (u16, Value) = kept.lock().unwrap().answer(&asked.method, &asked.path, &asked.body);
        Answer::Late(status, sleep(Duration::from_secs(2)).map(move |()| body).boxed())
    });
    let replica = Cluster::start_with(client, "first", 12);
    let begun = Instant::now();
    replica.holds(12).await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn calls_without_an_answer_for_all_that_is_held_leave_places_for_others() {
    let cluster = Cluster::default();
    let replica = cluster.start("first", 14);
    replica.holds(14).await;
    for shard in 0..12 {
        cluster.leave_unanswered(&format!("operator-shard-{shard}-of-14"), 1);
    }
    works_for(&replica, &(0..14).collect(), Duration::from_mins(1)).await;
}

#[tokio::test(start_paused = true)]
async fn looks_without_an_answer_keep_nobody_from_letting_go() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 12);
    first.holds(12).await;
    let (kept, hangs) = (Arc::clone(&cluster.0), Arc::new(AtomicUsize::new(0)));
    let looks = Arc::clone(&hangs);
    let client = stub::client(move |asked| {
        let mut kept = kept.lock().unwrap();
        let holder = kept
            .leases
            .get(&name_of(&asked.path, &asked.body))
            .cloned()
            .unwrap_or_default();
        if looks.load(Ordering::SeqCst) > 0
            && asked.method == Method::GET
            && holder["spec"]["holderIdentity"] == "first"
        {
            looks.fetch_add(1, Ordering::SeqCst);
            return Answer::Live(stream::pending().boxed());
        }
        kept.answer_or_not(asked)
    });
    let second = Cluster::start_with(client, "second", 12);
    second.holds(6).await;
    hangs.store(1, Ordering::SeqCst);
    while hangs.load(Ordering::SeqCst) < 5 {
        sleep(Duration::from_millis(100)).await;
    }
    let ended = Instant::now();
    second.end.cancel();
    second.task.await.unwrap();
    assert!(
        ended.elapsed() < Timing::default().retry_period,
        "{:?}",
        ended.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_was_taken_while_the_group_was_lost_is_not_worked_on() {
    let cluster = Cluster::default();
    let (kept, begun) = (Arc::clone(&cluster.0), Instant::now());
    let outage = Duration::from_secs(1)..Duration::from_secs(40);
    let client = stub::client(move |asked| {
        let name = name_of(&asked.path, &asked.body);
        let writes = asked.method != Method::GET;
        let now = begun.elapsed();
        if outage.contains(&now) && name == "operator" || now < Duration::from_secs(6) && name != "operator" && writes {
            return refusal(500, "InternalError", "broken", &json!({})).into();
        }
        let (status, body): (u16, Value) = kept.lock().unwrap().answer(&asked.method, &asked.path, &asked.body);
        let late = if writes && now < outage.end { 4 } else { 0 };
        Answer::Late(status, sleep(Duration::from_secs(late)).map(move |()| body).boxed())
    });
    let replica = Cluster::start_with(client, "first", 2);
    let mut was_taken = false;
    while begun.elapsed() < Duration::from_secs(39) {
        sleep(Duration::from_millis(100)).await;
        was_taken |= cluster.0.lock().unwrap().leases.contains_key("operator-shard-0-of-2");
        let works = replica.fence.is_open() || !replica.shards().is_empty();
        assert!(!works, "works at {:?}", begun.elapsed());
    }
    assert!(was_taken);
    replica.holds(2).await;
    assert!(replica.fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn leases_are_asked_for_a_few_at_a_time() {
    let cluster = Cluster::default();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (kept, counter, record) = (Arc::clone(&cluster.0), Arc::clone(&now), Arc::clone(&most));
    let client = stub::client(move |asked| {
        let answer = kept.lock().unwrap().answer(&asked.method, &asked.path, &asked.body);
        record.fetch_max(counter.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let counter = Arc::clone(&counter);
        let late = sleep(Duration::from_millis(10)).map(move |()| {
            counter.fetch_sub(1, Ordering::SeqCst);
            answer.1
        });
        Answer::Late(answer.0, late.boxed())
    });
    let replica = Cluster::start_with(client, "first", 64);
    replica.holds(64).await;
    works_for(&replica, &(0..64).collect(), Duration::from_secs(10)).await;
    let most = most.load(Ordering::SeqCst);
    assert!((2..=16).contains(&most), "{most} at once");
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_no_replica_that_holds_no_lease() {
    let cluster = Cluster::default();
    let mut first = cluster.start("first", 1);
    first.leads().await;
    let standby = cluster.start("standby", 1);
    let shares = Cluster::default();
    let mut holder = shares.start("holder", 2);
    holder.holds(2).await;
    let mut second = shares.start("second", 2);
    second.holds(1).await;
    let idle = shares.start("third", 2);
    let listed = || shares.lease()["metadata"]["annotations"]["example.org/members"].to_string();
    while !listed().contains("third") {
        sleep(Duration::from_millis(100)).await;
    }
    for cluster in [&cluster, &shares] {
        cluster.0.lock().unwrap().broken = true;
    }
    sleep(Duration::from_mins(2)).await;
    for replica in [&mut first, &mut holder, &mut second] {
        assert!(is_lost(&replica.leadership.borrow()), "{:?}", replica.leadership);
    }
    for cluster in [&cluster, &shares] {
        cluster.0.lock().unwrap().broken = false;
    }
    standby.holds(1).await;
    idle.holds(2).await;
}

#[tokio::test(start_paused = true)]
async fn who_loses_a_lease_is_told_how() {
    let cluster = Cluster::default();
    let mut replica = cluster.start("first", 1);
    replica.leads().await;
    cluster.0.lock().unwrap().broken = true;
    let state = replica.leadership.wait_for(is_lost).await.unwrap().clone();
    let Leadership::Lost(loss) = state else {
        unreachable!("{state:?}")
    };
    let text =
        "operator was not renewed for 10s: the API server did not answer, or this process or its machine stood still";
    assert_eq!(loss.to_string(), text);
    let taken = Loss {
        holder: Some("second".to_owned()),
        ..loss.clone()
    };
    assert_eq!(taken.to_string(), "operator is held by second");
    let free = Loss {
        holder: Some(String::new()),
        ..loss
    };
    assert_eq!(free.to_string(), "operator was let go by somebody else");
}

#[tokio::test(start_paused = true)]
async fn a_shard_is_kept_until_what_runs_in_it_has_ended() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 2);
    first.holds(2).await;
    let passes = [0, 1].map(|shard| first.tenure.enter(shard).unwrap());
    let second = cluster.start("second", 2);
    first.holds(1).await;
    let shut = u16::from(first.tenure.holds(0));
    assert!(first.tenure.enter(shut).is_none(), "nothing new begins");
    sleep(Duration::from_mins(2)).await;
    assert!(second.shards().is_empty());
    let ended = Instant::now();
    drop(passes);
    second.holds(1).await;
    assert!(
        ended.elapsed() <= Timing::default().retry_period * 2,
        "{:?}",
        ended.elapsed()
    );
    assert_eq!([first.shards(), second.shards()].concat_all(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_keeps_no_shard_from_being_given() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 2);
    first.holds(2).await;
    let _hung = first.tenure.enter(1).unwrap();
    let second = cluster.start("second", 2);
    second.holds(1).await;
    assert_eq!((first.shards(), second.shards()), ([1].into(), [0].into()));
}

#[tokio::test(start_paused = true)]
async fn a_shard_in_which_a_pass_hangs_is_not_shut_for_long() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 2);
    first.holds(2).await;
    let _hung = [0, 1].map(|shard| first.tenure.enter(shard).unwrap());
    let _second = cluster.start("second", 2);
    let patience = Timing::default().renew_deadline + Timing::default().retry_period;
    for shard in [0, 1] {
        let mut shut_since = None;
        let end = Instant::now() + Duration::from_mins(2);
        while Instant::now() < end {
            sleep(Duration::from_millis(100)).await;
            if first.tenure.holds(shard) {
                shut_since = None;
            } else {
                let since = *shut_since.get_or_insert_with(Instant::now);
                assert!(since.elapsed() <= patience, "{shard} is shut for {:?}", since.elapsed());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_to_end_takes_nothing_and_keeps_only_what_something_runs_in() {
    let cluster = Cluster::default();
    let mut first = cluster.start("first", 4);
    first.holds(4).await;
    let pass = first.tenure.enter(2).unwrap();
    let second = cluster.start("second", 4);
    second.holds(2).await;
    let mut other = cluster.start("other", 3);
    let stands_by = |state: &Leadership| matches!(state, Leadership::Standby { holder: Some(_) });
    other.leadership.wait_for(stands_by).await.unwrap();

    first.end.cancel();
    second.holds(3).await;
    assert_eq!(first.shards(), BTreeSet::new(), "nothing new begins");
    assert_eq!(cluster.holders(4)[2], "first");
    assert!(first.fence.is_open(), "what runs may write");
    // Nor does it take what others leave, or let a process with another number begin.
    second.end.cancel();
    second.task.await.unwrap();
    sleep(Duration::from_mins(2)).await;
    assert_eq!(cluster.holders(4), ["", "", "first", ""]);
    assert!(first.fence.is_open() && other.shards().is_empty());
    assert!(!is_lost(&first.leadership.borrow_and_update()));

    drop(pass);
    first.task.await.unwrap();
    assert_eq!(cluster.holders(4)[2], "");
    other.holds(3).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_replica_that_is_to_end_has_let_go_is_shared_without_it() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 4);
    first.holds(4).await;
    let second = cluster.start("second", 4);
    second.holds(2).await;
    let kept = *first.shards().first().unwrap();
    let _pass = first.tenure.enter(kept).unwrap();
    let ended = Instant::now();
    first.end.cancel();
    second.holds(3).await;
    assert!(
        ended.elapsed() <= Timing::default().retry_period * 2,
        "{:?}",
        ended.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_ends_leaves_its_shards_to_the_others_at_once() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 4);
    first.holds(4).await;
    let second = cluster.start("second", 4);
    second.holds(2).await;
    let ended = Instant::now();
    first.end.cancel();
    first.task.await.unwrap();
    second.holds(4).await;
    assert!(
        ended.elapsed() <= Timing::default().retry_period,
        "{:?}",
        ended.elapsed()
    );
    let list = cluster.lease()["metadata"]["annotations"]["example.org/members"].clone();
    assert!(!list.as_str().unwrap().contains("first"), "{list}");
}

#[tokio::test(start_paused = true)]
async fn another_number_of_shards_waits_for_the_last_of_the_old() {
    let cluster = Cluster::default();
    let (first, second) = (cluster.start("first", 4), cluster.start("second", 4));
    first.holds(2).await;
    second.holds(2).await;
    let mut other = cluster.start("other", 6);
    let mut sole = cluster.start("sole", 1);
    let told = |state: &Leadership| matches!(state, Leadership::Standby { holder: Some(holder) } if holder == "4 shards, 15 s");
    other.leadership.wait_for(told).await.unwrap();
    sole.leadership.wait_for(told).await.unwrap();
    first.end.cancel();
    second.holds(4).await;
    sleep(Duration::from_mins(2)).await;
    assert!(other.shards().is_empty() && sole.shards().is_empty());

    let ended = Instant::now();
    second.end.cancel();
    second.task.await.unwrap();
    tokio::select! {
        () = other.holds(6) => assert!(sole.shards().is_empty()),
        () = sole.holds(1) => assert!(other.shards().is_empty()),
    }
    assert!(
        ended.elapsed() <= Timing::default().retry_period * 2,
        "{:?}",
        ended.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_cannot_renew_writes_nothing_and_ends_before_others_take_over() {
    for shards in [1, 3] {
        let cluster = Cluster::default();
        let mut replica = cluster.start("first", shards);
        assert!(!replica.fence.is_open(), "nothing is held yet");
        replica.leads().await;
        assert!(replica.fence.is_open());
        cluster.0.lock().unwrap().broken = true;
        let broken = Instant::now();
        replica.leadership.wait_for(is_lost).await.unwrap();
        assert!(broken.elapsed() <= Timing::default().renew_deadline);
        assert!(!replica.fence.is_open() && replica.shards().is_empty());
        replica.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_stopped_past_its_lease_finds_its_fence_shut_before_anything_else() {
    let cluster = Cluster::default();
    let replica = cluster.start("first", 3);
    replica.holds(3).await;
    // Nothing of it runs any more, and time passes: what a signal does to all threads.
    replica.task.abort();
    sleep(Timing::default().renew_deadline).await;
    assert!(!replica.fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_members_that_somebody_broke_is_made_anew() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 2);
    first.holds(2).await;
    {
        let mut kept = cluster.0.lock().unwrap();
        let mut lease = kept.leases["operator"].clone();
        lease["metadata"]["annotations"]["example.org/members"] = json!("[not a list");
        kept.answer(&Method::PUT, "", &lease);
    }
    let second = cluster.start("second", 2);
    second.holds(1).await;
    first.holds(1).await;
}

#[tokio::test(start_paused = true)]
async fn who_stood_still_hears_the_answers_that_lie_there_before_it_gives_up() {
    // What is looked at first when several things are ready is chosen by chance.
    for _ in 0..10 {
        let cluster = Cluster::default();
        let (kept, writes) = (Arc::clone(&cluster.0), Arc::new(AtomicUsize::new(0)));
        let (gate, counted) = (Arc::new(Notify::new()), Arc::clone(&writes));
        let open = Arc::clone(&gate);
        let client = stub::client(move |asked| {
            let (code, answer) = kept.lock().unwrap().answer(&asked.method, &asked.path, &asked.body);
            let is_renewal = asked.method != Method::GET && counted.fetch_add(1, Ordering::Relaxed) == 1;
            if !is_renewal {
                return (code, answer).into();
            }
            let (gate, answer) = (Arc::clone(&gate), answer);
            let late = async move {
                gate.notified().await;
                // From the socket to who asked it goes through another task.
                for _ in 0..4 {
                    yield_now().await;
                }
                answer
            };
            Answer::Late(code, late.boxed())
        });
        let mut replica = Cluster::start_with(client, "first", 1);
        replica.leads().await;
        let timing = Timing::default();
        sleep(timing.retry_period).await;
        while writes.load(Ordering::Relaxed) < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        // The process is stopped, and answered meanwhile; when it goes on the Lease that it knows of has run out.
        open.notify_one();
        advance(timing.renew_deadline.saturating_sub(Duration::from_secs(1))).await;
        sleep(timing.retry_period * 2).await;
        assert!(!is_lost(&replica.leadership.borrow()), "{:?}", replica.leadership);
        assert!(replica.fence.is_open() && replica.tenure.holds(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_that_takes_nothing_keeps_no_shard_from_being_worked_on() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 4);
    first.holds(4).await;
    let slow = Arc::new(AtomicBool::new(true));
    let (kept, is_slow) = (Arc::clone(&cluster.0), Arc::clone(&slow));
    // It is alive, and no call for a shard of it is answered.
    let client = stub::client(move |asked| {
        let is_about_shard = name_of(&asked.path, &asked.body).contains("shard");
        if is_about_shard && asked.method != Method::GET && is_slow.load(Ordering::Relaxed) {
            return Answer::Live(stream::pending().boxed());
        }
        kept.lock().unwrap().answer_or_not(asked)
    });
    let newcomer = Cluster::start_with(client, "newcomer", 4);
    first.holds(2).await;
    let timing = Timing::default();
    let (begun, mut without_work) = (Instant::now(), Duration::ZERO);
    let step = Duration::from_millis(100);
    while begun.elapsed() < Duration::from_mins(10) {
        sleep(step).await;
        if first.shards().len() < 4 {
            without_work += step;
        }
    }
    assert!(newcomer.shards().is_empty());
    // It is tried again after two deadlines, four, eight and sixteen.
    let most = (timing.renew_deadline + timing.retry_period * 2) * 5;
    assert!(without_work <= most, "{without_work:?}");

    slow.store(false, Ordering::Relaxed);
    newcomer.holds(2).await;
    first.holds(2).await;
}

#[tokio::test(start_paused = true)]
async fn no_shard_is_given_away_while_a_write_that_was_given_up_may_still_be_done() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 2);
    first.holds(2).await;
    drop(first.fence.leaves());
    let second = cluster.start("second", 2);
    sleep(Duration::from_secs(55)).await;
    assert!(second.shards().is_empty());
    assert_eq!(first.shards().len(), 2, "all of it is worked on meanwhile");
    second.holds(1).await;
    first.holds(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_to_end_does_not_wait_for_writes_that_were_given_up() {
    let cluster = Cluster::default();
    let first = cluster.start("first", 2);
    first.holds(2).await;
    drop(first.fence.leaves());
    first.end.cancel();
    let ended = Instant::now();
    first.task.await.unwrap();
    assert!(
        ended.elapsed() <= Timing::default().retry_period,
        "{:?}",
        ended.elapsed()
    );
}
