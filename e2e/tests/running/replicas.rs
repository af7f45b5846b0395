//! Of several replicas one works; the next takes over when it must and not before.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{
    AuditEvent, Ended, Identity, Journey, Operator, OperatorOptions, Weather,
    audit::{AuditEvents, Mark},
    eventually,
    journey::{SOON, journey},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use crate::{LONG_LEASE, SHORT_LEASE, STACK, behind_a_proxy, end_told, handed_over, log_lines, subscribe};

/// An operator with a user of its own in the audit log.
struct Replica {
    user: String,
    operator: Operator,
}

impl Replica {
    async fn start(journey: &Journey, name: &str, lease: &str) -> Result<Self> {
        let user = format!("{name}-of-{}", journey.namespace);
        let identity = Identity::User {
            name: user.clone(),
            groups: vec!["system:masters".to_owned()],
        };
        let kubeconfig = journey.control_plane().kubeconfig_for(&identity).await?;
        let options = OperatorOptions {
            kubeconfig,
            ..candidate(journey, journey.options.clone(), name, lease)
        };
        let operator = Operator::start(journey.lab(), &options)?;
        Ok(Self { user, operator })
    }

    /// What it asked the API server for since `mark`.
    async fn requests(&self, journey: &Journey, mark: Mark) -> Result<AuditEvents> {
        let events = journey.control_plane().audit_log().since(mark).await?;
        Ok(events.filter(|event| event.user == self.user))
    }
}

/// Options of an operator that stands for election, with a log of its own.
pub(crate) fn candidate(journey: &Journey, options: OperatorOptions, name: &str, lease: &str) -> OperatorOptions {
    let flags = [
        "--leader-elect=true".to_owned(),
        format!("--leader-elect-namespace={}", journey.namespace),
        format!("--lease-duration={lease}"),
    ];
    OperatorOptions {
        flags: flags.map(Into::into).to_vec(),
        log: journey.folder().join(format!("{name}.log")),
        ..options
    }
}

/// Waits until the Lease names this operator's process.
async fn leads(journey: &Journey, operator: &Operator) -> Result<()> {
    let leases: Api<Lease> = journey.api();
    eventually(
        SOON,
        format!("the operator of {} to lead", operator.log().display()),
        async || {
            let process = operator.process_id().context("it does not run")?;
            let lease = leases.get("clusterstack.x-k8s.io").await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            ensure!(holder.contains(&format!("_{process}_")), "{holder:?} leads");
            Ok(())
        },
    )
    .await
}

fn lease_writes(events: &AuditEvents) -> Vec<&AuditEvent> {
    events
        .iter()
        .filter(|event| event.is_lease() && event.is_write() && event.code < 300)
        .collect()
}

#[test]
fn of_two_replicas_one_writes_until_it_dies_and_then_the_other() -> Result<()> {
    const PROMISE: Duration = Duration::from_secs(15);
    journey(async |journey| {
        let begin = journey.mark().await?;
        let v1 = journey.releases.publish_harbor("v1", "v1")?;
        let first = Replica::start(journey, "first", SHORT_LEASE).await?;
        leads(journey, &first.operator).await?;
        let mut second = Replica::start(journey, "second", SHORT_LEASE).await?;
        second.operator.ready().await?;
        subscribe(journey).await?;
        journey.release_ready(&v1).await?;
        journey.usable(STACK, "v1").await?;
        let work = second.requests(journey, begin).await?.filter(|event| !event.is_lease());
        ensure!(work.is_empty(), "a standby asks only for the Lease: {work:#?}");

        let before = first.requests(journey, begin).await?;
        let last = lease_writes(&before).last().map(|event| event.received);
        let last = last.context("the leader never wrote the Lease")?;
        first.operator.kill().await?;
        let v2 = journey.releases.publish_harbor("v2", "v2")?;
        leads(journey, &second.operator).await?;
        let after = second.requests(journey, begin).await?;
        let taken = lease_writes(&after)[0].received;
        let waited = Duration::try_from(taken.duration_since(last))?;
        ensure!(waited >= PROMISE, "taken {waited:?} after a promise of {PROMISE:?}");
        journey.release_ready(&v2).await?;
        journey.usable(STACK, "v1, v2").await?;
        Ok(())
    })
}

#[test]
fn sigterm_hands_the_lease_over_at_once() -> Result<()> {
    journey(async |journey| {
        let v1 = journey.releases.publish_harbor("v1", "v1")?;
        let first = Replica::start(journey, "first", LONG_LEASE).await?;
        leads(journey, &first.operator).await?;
        let mut second = Replica::start(journey, "second", LONG_LEASE).await?;
        second.operator.ready().await?;
        subscribe(journey).await?;
        journey.release_ready(&v1).await?;
        ensure!(first.operator.stop().await? == Ended::Status(0));
        handed_over(leads(journey, &second.operator)).await?;
        let v2 = journey.releases.publish_harbor("v2", "v2")?;
        journey.release_ready(&v2).await?;
        ensure!(second.operator.stop().await? == Ended::Status(0));
        Ok(())
    })
}

#[test]
fn a_standby_ends_at_once_and_leaves_the_lease_alone() -> Result<()> {
    journey(async |journey| {
        let first = Replica::start(journey, "first", "10m").await?;
        leads(journey, &first.operator).await?;
        let mut second = Replica::start(journey, "second", "10m").await?;
        second.operator.ready().await?;
        let log = second.operator.log().to_owned();
        let named = async || {
            let leases: Api<Lease> = journey.api();
            let lease = leases.get("clusterstack.x-k8s.io").await?;
            let held = lease.spec.and_then(|spec| spec.holder_identity);
            let lines = log_lines(&log)?;
            let told = |line: &&serde_json::Value| line["message"] == "standing by; another replica holds the Lease";
            let told: Vec<_> = lines.iter().filter(told).collect();
            ensure!(
                told.len() == 1 && told[0]["holder"].as_str() == held.as_deref(),
                "{held:?} {lines:#?}"
            );
            Ok(())
        };
        eventually(SOON, "the standby to say for whom it stands by", named).await?;
        ensure!(second.operator.stop().await? == Ended::Status(0));
        leads(journey, &first.operator).await
    })
}

#[test]
fn a_leader_that_is_cut_off_ends_before_another_leads() -> Result<()> {
    journey(async |journey| {
        let (proxy, options) = behind_a_proxy(journey).await?;
        let options = candidate(journey, options, "first", SHORT_LEASE);
        let mut first = Operator::start(journey.lab(), &options)?;
        leads(journey, &first).await?;
        let second = Replica::start(journey, "second", SHORT_LEASE).await?;
        proxy.set_weather(Weather::Hang);
        leads(journey, &second.operator).await?;
        ensure!(first.check().is_err(), "two replicas work");
        ensure!(first.ended(SOON).await? == Ended::Status(1));
        let told = end_told(first.log())?;
        ensure!(told.contains("lost the Lease"), "{told}");
        Ok(())
    })
}
