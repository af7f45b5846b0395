//! An API server that refuses, hangs, or cuts watches: the operator does not hammer it, stays alive, and catches up.

use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use e2e::{
    FaultProxy, Journey, Operator, Weather, eventually,
    journey::{SOON, journey},
};
use http::StatusCode;
use kube::api::DeleteParams;

use crate::{STACK, behind_a_proxy, elapse, subscribe};

/// How long each storm lasts once the operator has noticed it.
const STORM: Duration = Duration::from_secs(8);
/// Some ten watches, each of which tries again after about 1, 2 and 4 seconds, and what the new release makes of it. A loop
/// without patience makes thousands.
const FEW: usize = 150;

/// A converged journey whose operator is behind the proxy.
async fn converged(journey: &Journey) -> Result<(FaultProxy, Operator, String)> {
    let (proxy, options) = behind_a_proxy(journey).await?;
    let tag = journey.releases.publish_harbor("v1", "v1")?;
    let operator = Operator::start(journey.lab(), &options)?;
    subscribe(journey).await?;
    journey.release_ready(&tag).await?;
    journey.usable(STACK, "v1").await?;
    Ok((proxy, operator, tag))
}

/// During the storm a release appears and an object is deleted; afterwards both are dealt with.
async fn weathers(journey: &Journey, weather: Weather) -> Result<()> {
    let (proxy, mut operator, tag) = converged(journey).await?;
    let before = proxy.requests();
    proxy.set_weather(weather);
    proxy.cut_watches();
    let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
    classes.delete(&tag, &DeleteParams::default()).await?;
    journey.releases.publish_harbor("v2", "v2")?;
    let noticed = async || {
        if proxy.requests() > before {
            Ok(())
        } else {
            Err("no request")
        }
    };
    eventually(SOON, "the operator to notice", noticed).await?;
    elapse(STORM).await?;
    let (status, text) = operator.health("/healthz").await?;
    ensure!(status == StatusCode::OK, "{status}: {text}");
    let asked = proxy.requests() - before;
    eprintln!("{weather:?} for {STORM:?}: {asked} requests");
    ensure!(asked <= FEW, "{asked} requests in {STORM:?} of {weather:?}");
    proxy.set_weather(Weather::Fair);
    journey.usable(STACK, "v1, v2").await?;
    let there = async || classes.get(&tag).await.map(drop);
    eventually(SOON, "the deleted class to be back", there).await?;
    operator.check()
}

#[test]
fn an_api_server_that_refuses_everything_is_asked_seldom() -> Result<()> {
    journey(async |journey| weathers(journey, Weather::RefuseAll(StatusCode::SERVICE_UNAVAILABLE)).await)
}

#[test]
fn an_api_server_that_refuses_writes_is_asked_seldom() -> Result<()> {
    journey(async |journey| weathers(journey, Weather::RefuseWrites(StatusCode::TOO_MANY_REQUESTS)).await)
}

#[test]
fn an_api_server_that_hangs_is_asked_seldom() -> Result<()> {
    journey(async |journey| weathers(journey, Weather::Hang).await)
}

#[test]
fn watches_that_are_cut_again_and_again_do_not_become_a_load() -> Result<()> {
    journey(async |journey| {
        let (proxy, mut operator, _) = converged(journey).await?;
        let before = proxy.requests();
        proxy.set_weather(Weather::ShortWatches);
        proxy.cut_watches();
        elapse(STORM).await?;
        let asked = proxy.requests() - before;
        eprintln!("watches that end at once for {STORM:?}: {asked} requests");
        proxy.set_weather(Weather::Fair);
        ensure!(asked <= FEW, "{asked} requests in {STORM:?}");
        journey.releases.publish_harbor("v2", "v2")?;
        journey.usable(STACK, "v1, v2").await?;
        operator.check()
    })
}

#[test]
fn an_operator_that_starts_in_bad_weather_says_what_it_waits_for() -> Result<()> {
    journey(async |journey| {
        let (proxy, options) = behind_a_proxy(journey).await?;
        proxy.set_weather(Weather::RefuseAll(StatusCode::SERVICE_UNAVAILABLE));
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let mut operator = Operator::start(journey.lab(), &options)?;
        let noticed = async || {
            if proxy.requests() > 0 {
                Ok(())
            } else {
                Err("no request")
            }
        };
        eventually(SOON, "the operator to ask", noticed).await?;
        let (status, text) = operator.health("/readyz").await?;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status}: {text}");
        ensure!(text.contains("waiting for watches of ClusterStacks"), "{text}");
        let (status, text) = operator.health("/healthz").await?;
        ensure!(status == StatusCode::OK, "alive, though not ready; {status}: {text}");
        proxy.set_weather(Weather::Fair);
        operator.ready().await?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        operator.check().map_err(|error| anyhow!("{error:#}"))
    })
}
