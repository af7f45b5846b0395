//! The operator as a process among others: replicas, shards, fairness, signals, an API server that misbehaves, endpoints, flags, logs.

mod command_line;
mod endpoints;
mod fairness;
mod go_operator;
mod guards;
mod hostile;
mod logs;
mod replicas;
mod rights;
mod scope;
mod secrets;
mod shards;
mod shutdown;
mod sizes;
mod traces;
mod weather;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use e2e::{FaultProxy, Identity, Journey, OperatorOptions, eventually};
use serde_json::{Value, json};

/// The name of the stack in every journey.
const STACK: &str = "harbor";
/// A Lease that a test of what runs out waits for: two busy cores of a slow machine renew it, and not much time is lost until its end.
const SHORT_LEASE: &str = "15s";
/// A Lease that is let go before it runs out, or the test fails.
const LONG_LEASE: &str = "90s";
/// Less than is left of [`LONG_LEASE`] for who has just been seen holding it.
const BEFORE_IT_RUNS_OUT: Duration = Duration::from_secs(70);

/// A stack that lists the first version and takes the newest besides.
async fn subscribe(journey: &Journey) -> Result<()> {
    journey
        .stack(STACK, json!({ "autoSubscribe": true, "versions": ["v1"] }))
        .await
}

/// The options of an operator behind a proxy of its own.
async fn behind_a_proxy(journey: &Journey) -> Result<(FaultProxy, OperatorOptions)> {
    let proxy = FaultProxy::start(journey.control_plane()).await?;
    let options = OperatorOptions {
        kubeconfig: proxy.kubeconfig_for(&Identity::Admin).await?,
        ..journey.options.clone()
    };
    Ok((proxy, options))
}

/// Lets time pass, where time is what is measured.
async fn elapse(duration: Duration) -> Result<()> {
    let begun = Instant::now();
    let over = || {
        if begun.elapsed() >= duration {
            Ok(())
        } else {
            Err("not yet")
        }
    };
    eventually(duration * 2, "time to pass", || std::future::ready(over())).await
}

/// Does what needs a Lease that somebody has let go: it may not last until the Lease has run out.
async fn handed_over<T>(deed: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::time::timeout(BEFORE_IT_RUNS_OUT, deed).await;
    done.context("the Lease was not let go")?
}

/// Why an operator ended, in its own words. Tasks that end with it may say something in the same moment.
fn end_told(log: &Path) -> Result<String> {
    let lines = log_lines(log)?;
    let ended = lines.iter().rfind(|line| line["message"] == "the operator ended");
    let error = ended.and_then(|line| line["error"].as_str());
    Ok(error
        .with_context(|| format!("it did not say why: {lines:#?}"))?
        .to_owned())
}

/// Every line of an operator's log, each of which must be a JSON object with what a reader of logs expects.
fn log_lines(log: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(log)?;
    let line = |line: &str| -> Result<Value> {
        let value: Value = serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
        for key in ["timestamp", "level", "message", "target"] {
            ensure!(value[key].is_string(), "without {key}: {line}");
        }
        Ok(value)
    };
    text.lines().map(line).collect()
}
