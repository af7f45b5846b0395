use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::stub::{self, refusal};
use crate::told::Told;

/// One Lease as an API server keeps it: with optimistic locking.
#[derive(Default)]
struct Kept {
    lease: Option<Value>,
    version: u64,
    /// Every call fails while this is set.
    broken: bool,
    /// Nobody may write while this is set.
    read_only: bool,
}

impl Kept {
    fn answer(&mut self, method: &Method, body: &Value) -> (u16, Value) {
        if self.broken {
            return refusal(500, "InternalError", "broken", &json!({}));
        }
        if self.read_only && *method != Method::GET {
            return refusal(403, "Forbidden", "leases are read-only", &json!({}));
        }
        let stored = self
            .lease
            .as_ref()
            .map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (method, stored) {
            (&Method::GET, None) => refusal(404, "NotFound", "not found", &json!({})),
            (&Method::GET, Some(_)) => (200, self.lease.clone().unwrap()),
            (&Method::POST, Some(_)) => refusal(409, "AlreadyExists", "already exists", &json!({})),
            (&Method::PUT, stored) if stored.as_ref() != Some(&body["metadata"]["resourceVersion"]) => {
                refusal(409, "Conflict", "modified", &json!({}))
            }
            _ => {
                self.version += 1;
                let mut lease = body.clone();
                lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.lease = Some(lease.clone());
                (200, lease)
            }
        }
    }
}

#[derive(Clone, Default)]
struct Cluster(Arc<Mutex<Kept>>);

impl Cluster {
    fn elect(&self, identity: &str, cancel: &CancellationToken) -> (watch::Receiver<Leadership>, JoinHandle<()>) {
        let kept = Arc::clone(&self.0);
        let client = stub::client(move |asked| kept.lock().unwrap().answer(&asked.method, &asked.body));
        let options = LeaseOptions {
            namespace: "system".to_owned(),
            name: "operator".to_owned(),
            identity: identity.to_owned(),
            timing: Timing::default(),
        };
        elect(client, options, cancel.clone())
    }

    fn holder(&self) -> String {
        self.0.lock().unwrap().lease.as_ref().unwrap()["spec"]["holderIdentity"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn transitions(&self) -> u64 {
        self.0.lock().unwrap().lease.as_ref().unwrap()["spec"]["leaseTransitions"]
            .as_u64()
            .unwrap()
    }
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
    first.wait_for(|state| *state == Leadership::Lost).await.unwrap();
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
    cluster.0.lock().unwrap().answer(&Method::POST, &full);
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
        let mut lease = kept.lease.clone().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        kept.answer(&Method::PUT, &lease);
    }
    first.wait_for(|state| *state == Leadership::Lost).await.unwrap();
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
