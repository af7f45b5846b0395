//! A fleet of a hundred clusters of one class, of which some hang, are slow, are not whom their kubeconfig means, or are gone: each says so where its owner
//! looks, the others take as long as without them, and each gets its add-ons by itself when it is well.

mod clusters;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddonStatus,
    conditions::{ConditionType, Reason, find},
};
use e2e::{
    FaultProxy, Journey, Metrics, Operator, Weather, eventually,
    journey::{SOON, journey},
    shim::Workload,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use self::clusters::{Fleet, names};

/// The longest that the operator waits for the answer of a cluster to its first question. Whoever worked on one cluster after the other, or let those that hang
/// occupy all workers, would write nothing for so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// As slow as it answers that answers slowly.
const SLOW: Duration = Duration::from_secs(30);
/// Questions that a cluster is asked in one attempt: whether it is there, and what it serves, in two documents.
const QUESTIONS: usize = 3;
/// That of CRDs, and one for each kind of the add-ons.
const WATCHES: usize = 4;

/// So many of those that are well come before there is anybody sick.
const BEFORE: usize = 32;
/// Those that come beside the sick may take so many times as long, each: the machine may have more to do by then. Whom the sick hold up takes many times as
/// long.
const SLOWER: f64 = 3.0;
/// And so much longer, all of them together: what takes no longer for many clusters than for few.
const GRACE: Duration = Duration::from_secs(10);

const HANGS: &str = "the API server of the cluster did not answer within 10 s";

/// A cluster that nobody can work on, and how its owner is told.
#[derive(Clone, Copy)]
struct Sick {
    name: &'static str,
    words: &'static str,
}

const HUNG: Sick = Sick {
    name: "hung",
    words: HANGS,
};
const LATE: Sick = Sick {
    name: "late",
    words: HANGS,
};
const UNTRUSTED: Sick = Sick {
    name: "untrusted",
    words: "no TLS connection to the API server of the cluster: ",
};
const GONE: Sick = Sick {
    name: "gone",
    words: "failed to reach the API server of the cluster: ",
};

const SICK: [Sick; 4] = [HUNG, LATE, UNTRUSTED, GONE];

/// Whether it is told that a cluster cannot be reached, in these words: where all is summed up as well, and since when, which is after it began.
fn is_told(words: &str, begun: Timestamp, status: &ClusterAddonStatus) -> Result<()> {
    let said = || format!("{words:?} is not in {:#?}", status.conditions);
    ensure!(!status.ready, said());
    for type_ in [ConditionType::ClusterReady, ConditionType::Ready] {
        let condition = find(&status.conditions, type_).with_context(said)?;
        let message = condition.message.as_deref().unwrap_or_default();
        ensure!(message.contains(words), said());
        let reason = condition.reason.as_deref();
        ensure!(reason == Some(Reason::ControlPlaneNotReady.as_str()), said());
        let since = condition.last_transition_time.0;
        ensure!(
            (begun.as_second()..=Timestamp::now().as_second()).contains(&since.as_second()),
            said()
        );
    }
    Ok(())
}

/// A kubeconfig that trusts the authority of another one.
fn trusting(kubeconfig: &str, other: &str) -> Result<String> {
    const AUTHORITY: &str = "/clusters/0/cluster/certificate-authority-data";
    let read = |text: &str| serde_yaml::from_str::<Value>(text).context("a kubeconfig is no YAML");
    let (mut kubeconfig, other) = (read(kubeconfig)?, read(other)?);
    let authority = other.pointer(AUTHORITY).context("a kubeconfig has no authority")?;
    *kubeconfig
        .pointer_mut(AUTHORITY)
        .context("a kubeconfig has no authority")? = authority.clone();
    Ok(kubeconfig.to_string())
}

/// Waits until the operator says that so many answer and so many do not, and that those who do not have no watch.
async fn are_connected(operator: &mut Operator, healthy: usize, suspect: usize) -> Result<()> {
    let wanted = format!("{healthy} answer, {suspect} do not, {} watches", healthy * WATCHES);
    let page = operator.metrics_url().await?;
    eventually(SOON, &wanted, async || {
        let metrics = Metrics::read(&page).await?;
        let in_state = |state| metrics.sum("stackwright_workload_clusters", &[("state", state)]);
        let [healthy, suspect] = ["healthy", "suspect"].map(|state| in_state(state).unwrap_or_default());
        let watches = metrics.sum("stackwright_workload_watches", &[]).unwrap_or_default();
        let found = format!("{healthy} answer, {suspect} do not, {watches} watches");
        ensure!(found == wanted, found);
        Ok(())
    })
    .await
}

/// The API servers of those that hang and that are late, by which everything is heard that they are asked.
struct Ward {
    hung: FaultProxy,
    late: FaultProxy,
    since: Instant,
    begun: Timestamp,
}

impl Ward {
    /// They are asked, as are those that cannot answer, before anybody comes beside them.
    async fn fill(fleet: &Fleet<'_>) -> Result<Self> {
        let [hung, late] = [
            FaultProxy::start(&fleet.workload).await?,
            FaultProxy::start(&fleet.workload).await?,
        ];
        hung.set_weather(Weather::Hang);
        late.set_weather(Weather::Slow(SLOW));
        let kubeconfig = async |proxy: &FaultProxy| proxy.access().admin_kubeconfig().await;
        let untrusted = trusting(&fleet.kubeconfig, &kubeconfig(&hung).await?)?;
        let away = Workload::away(fleet.workload.access()).await?;
        let (since, begun) = (Instant::now(), Timestamp::now());
        for (sick, kubeconfig) in [
            (HUNG, kubeconfig(&hung).await?),
            (LATE, kubeconfig(&late).await?),
            (UNTRUSTED, untrusted),
            (GONE, away.kubeconfig().to_owned()),
        ] {
            fleet.bring(&[sick.name], &kubeconfig).await?;
        }
        eventually(SOON, "the sick to be asked", || {
            let held = [hung.held(), late.held()];
            std::future::ready(if held.contains(&0) {
                Err(format!("{held:?}"))
            } else {
                Ok(())
            })
        })
        .await?;
        Ok(Self {
            hung,
            late,
            since,
            begun,
        })
    }

    /// One attempt at a time, and each later than the one before: whatever has become of the others meanwhile.
    async fn is_left_in_peace(&self, operator: &mut Operator) -> Result<()> {
        let metrics = operator.metrics().await?;
        let in_vain = metrics.sum("stackwright_workload_requests_total", &[("code", "0")]);
        // Pauses double, and attempts that are not answered take their time. A kubeconfig that is heard of begins anew.
        let attempts = 8.0 + self.since.elapsed().as_secs_f64() / PATIENCE.as_secs_f64();
        for proxy in [&self.hung, &self.late] {
            let (held, asked) = (proxy.held(), proxy.requests());
            eprintln!("{asked} questions in {:?}, {held} of them now", self.since.elapsed());
            ensure!(held <= QUESTIONS, "{held} at once");
            ensure!(
                count(asked) <= count(QUESTIONS) * attempts,
                "{asked} in {attempts} attempts"
            );
        }
        let in_vain = in_vain.unwrap_or_default();
        eprintln!("{in_vain} questions in vain");
        let most = count(QUESTIONS * SICK.len()) * attempts;
        ensure!(in_vain <= most, "{in_vain} in {attempts} attempts");
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "they are few")]
fn count(of: usize) -> f64 {
    of as f64
}

/// How long it takes until clusters with which nothing is wrong have their add-ons, from the moment that they begin to come.
async fn brought(fleet: &Fleet<'_>, names: &[&str]) -> Result<Duration> {
    let begun = Instant::now();
    fleet.bring(names, &fleet.kubeconfig).await?;
    fleet.have(1, names).await?;
    Ok(begun.elapsed())
}

/// Clusters with which nothing is wrong come, then the sick, then others like the first, which take no longer, each.
async fn brought_before_and_beside(fleet: &Fleet<'_>, before: &[&str], beside: &[&str]) -> Result<Ward> {
    let usual = brought(fleet, before).await?;
    let ward = Ward::fill(fleet).await?;
    let mark = fleet.workload.audit_log().mark().await?;
    // Nobody waits for an answer of those that hang: they give none.
    let took = brought(fleet, beside).await?;
    let silence = fleet.longest_silence(mark).await?;
    let (few, many) = (before.len(), beside.len());
    eprintln!("{few} clusters in {usual:?}, {many} beside the sick in {took:?}, never {silence:?} without a write");
    ensure!(silence < PATIENCE, "nothing was written for {silence:?}");
    let most = usual.mul_f64(SLOWER * count(many) / count(few)) + GRACE;
    ensure!(
        took <= most,
        "{many} clusters beside the sick took {took:?}, more than {most:?}: {few} without them took {usual:?}"
    );
    Ok(ward)
}

async fn the_sick_delay_nobody(journey: &mut Journey) -> Result<()> {
    let (fleet, mut operator) = Fleet::found(journey).await?;
    let honest = names("c", 100 - SICK.len());
    let honest: Vec<&str> = honest.iter().map(String::as_str).collect();
    let (before, beside) = honest.split_at(BEFORE);
    let ward = brought_before_and_beside(&fleet, before, beside).await?;
    for sick in SICK {
        fleet
            .until(&format!("{} to be told", sick.name), &[sick.name], |_, status| {
                is_told(sick.words, ward.begun, status)
            })
            .await?;
    }
    are_connected(&mut operator, honest.len(), SICK.len()).await?;
    ward.is_left_in_peace(&mut operator).await?;
    let made: BTreeSet<_> = fleet.made::<ConfigMap>().await?.into_keys().collect();
    ensure!(
        made == honest.iter().map(|name| (*name).to_owned()).collect(),
        "{made:?}"
    );

    // All but one get well, each in the way that it can.
    let before = fleet.written(&honest).await?;
    ward.hung.set_weather(Weather::Fair);
    ward.late.set_weather(Weather::Fair);
    let mended = fleet.cluster(UNTRUSTED.name, &fleet.kubeconfig).secret();
    fleet.journey.apply(mended).await?;
    let well = [HUNG.name, LATE.name, UNTRUSTED.name];
    fleet.have(1, &well).await?;
    eprintln!("all were well after {:?}", ward.since.elapsed());
    are_connected(&mut operator, honest.len() + well.len(), 1).await?;
    fleet
        .until("the last to be told", &[GONE.name], |_, status| {
            is_told(GONE.words, ward.begun, status)
        })
        .await?;
    let after = fleet.written(&honest).await?;
    ensure!(before == after, "{before:#?} {after:#?}");
    operator.check()
}

/// With the flags that an operator has by itself.
#[test]
fn of_a_hundred_clusters_those_that_hang_are_late_untrusted_or_gone_say_so_delay_nobody_and_get_theirs_when_they_are_well()
-> Result<()> {
    journey(the_sick_delay_nobody)
}

/// More than there are workers.
const SITE: usize = 20;
const ELSEWHERE: usize = 30;

async fn a_site_hangs(journey: &mut Journey) -> Result<()> {
    let (fleet, mut operator) = Fleet::found(journey).await?;
    let site = FaultProxy::start(&fleet.workload).await?;
    let named = [names("there", SITE), names("elsewhere", ELSEWHERE)];
    let [there, elsewhere] = named
        .each_ref()
        .map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.bring(&there, &site.access().admin_kubeconfig().await?).await?;
    fleet.bring(&elsewhere, &fleet.kubeconfig).await?;
    fleet.have(1, &[there.as_slice(), &elsewhere].concat()).await?;

    let (begun, since) = (Instant::now(), Timestamp::now());
    site.set_weather(Weather::Hang);
    // Those that hang are the first in the line, and more than all workers.
    fleet.upgrade(&there).await?;
    fleet.upgrade(&elsewhere).await?;
    fleet.have(2, &elsewhere).await?;
    eprintln!("{} upgraded after {:?}", elsewhere.len(), begun.elapsed());
    fleet
        .until("those that hang to be told", &there, |_, status| {
            is_told(HANGS, since, status)
        })
        .await?;
    eprintln!("told after {:?}", begun.elapsed());
    are_connected(&mut operator, elsewhere.len(), there.len()).await?;
    let notes = fleet.made::<ConfigMap>().await?;
    let addons = |name: &&str| notes.get(*name)?.data.as_ref()?.get("addons").cloned();
    ensure!(
        there.iter().all(|name| addons(name).as_deref() == Some("v1")),
        "{notes:#?}"
    );

    let before = fleet.written(&elsewhere).await?;
    site.set_weather(Weather::Fair);
    fleet.have(2, &there).await?;
    eprintln!("all upgraded after {:?}", begun.elapsed());
    let after = fleet.written(&elsewhere).await?;
    ensure!(before == after, "{before:#?} {after:#?}");
    operator.check()
}

#[test]
fn a_site_of_more_clusters_than_workers_that_hangs_in_an_upgrade_delays_no_other_cluster_and_is_upgraded_afterwards()
-> Result<()> {
    journey(a_site_hangs)
}
