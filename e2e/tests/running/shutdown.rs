//! SIGTERM: the operator finishes what it does and ends with status 0. (Past five seconds it would end with status 1.)

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::{Ended, Operator, Weather, journey::journey};

use crate::{STACK, behind_a_proxy, elapse, log_lines, subscribe};

#[test]
fn sigterm_ends_an_operator_that_has_been_idle_with_status_0() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        // Idle streams are not polled: a shutdown that waits for them shows only now.
        elapse(Duration::from_secs(12)).await?;
        journey.options.log = journey.folder().join("second.log");
        let operator = Operator::start(journey.lab(), &journey.options)?;
        let idle = std::mem::replace(journey.operator()?, operator);
        let (lines, log) = (log_lines(idle.log())?, idle.log().to_owned());
        ensure!(idle.stop().await? == Ended::Status(0));
        let last = log_lines(&log)?.pop();
        ensure!(
            last.as_ref().is_some_and(|last| last["message"] == "stopped"),
            "{last:?}"
        );
        ensure!(lines.iter().all(|line| line["level"] == "INFO"), "{lines:#?}");
        Ok(())
    })
}

#[test]
fn sigterm_in_the_midst_of_work_loses_nothing() -> Result<()> {
    journey(async |journey| {
        for version in ["v1", "v2"] {
            journey.releases.publish_harbor(version, version)?;
        }
        let operator = Operator::start(journey.lab(), &journey.options)?;
        subscribe(journey).await?;
        let named = |stack: &crds::ClusterStack| stack.status.is_some();
        journey.until_stack(STACK, "being worked on", named).await?;
        ensure!(operator.stop().await? == Ended::Status(0));
        journey.operate().await?;
        journey.usable(STACK, "v1, v2").await?;
        Ok(())
    })
}

#[test]
fn an_api_server_that_hangs_does_not_keep_the_operator_from_ending() -> Result<()> {
    journey(async |journey| {
        let (proxy, options) = behind_a_proxy(journey).await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let operator = Operator::start(journey.lab(), &options)?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        proxy.set_weather(Weather::Hang);
        proxy.cut_watches();
        journey.releases.publish_harbor("v2", "v2")?;
        let held = async || if proxy.held() > 0 { Ok(()) } else { Err("nothing hangs") };
        e2e::eventually(Duration::from_secs(20), "the operator to ask in vain", held).await?;
        // The deadline is the harness's; the status says whether something was given up.
        operator.stop().await?;
        Ok(())
    })
}
