//! SIGTERM: the operator finishes what it writes, gives up what it reads and renders, and ends with status 0; with status 1 where a write did not
//! end within five seconds.

use std::{
    collections::HashMap,
    future::ready,
    ops::Range,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::ClusterStackRelease;
use e2e::{
    Ended, Journey, Operator, Weather, eventually,
    journey::{SOON, journey, status},
    operator::sources_of_this_machine,
    process::children_of,
    releases::{StackSource, harbor_tag},
    usage::busiest_thread,
    web::IndexServer,
};
use http::Method;
use serde_json::json;

use crate::{STACK, behind_a_proxy, elapse, fairness::HungWrite, log_lines, replicas::candidate, subscribe};

/// From SIGTERM to the end: five seconds for what is being written, and what a busy machine takes for the rest.
const END: Duration = Duration::from_secs(7);

/// What a thread uses that does nothing but render; nothing else of the operator takes so long at once.
const RENDERING: Duration = Duration::from_secs(1);

/// The age of a process of Tera that is past what the quick lane gives, and has two seconds of those left that the slow one gives.
const IN_THE_MIDST_OF_TERA: Range<Duration> = Duration::from_millis(700)..Duration::from_secs(2);

/// In the namespace of a release it takes longer than any rendering may; not while the release is made.
const ENDLESS_TERA: &str = "{% if Release.Namespace != \"default\" %}{% for a in range(end=100000) %}{% for b in range(end=100000) %}\
    {% if a == -1 %}x{% endif %}{% endfor %}{% endfor %}{% endif %}";

/// The same for Helm, whose steps are counted: many seconds of a core, with the function that takes most for a step.
const ENDLESS_HELM: &str = "{{ if ne .Release.Namespace \"default\" }}{{ range until 5000 }}{{ $_ := derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}\
    {{ end }}{{ end }}";

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
fn sigterm_waits_for_the_answer_to_an_open_write_gives_the_lease_back_and_loses_nothing() -> Result<()> {
    // No Lease of this test runs out: whoever comes next leads because it was given back.
    const LEASE: &str = "10m";
    journey(async |journey| {
        let (proxy, options) = behind_a_proxy(journey).await?;
        let versions = ["v1", "v2", "v3"];
        for (count, version) in (1..).zip(versions) {
            let tag = journey.releases.publish_harbor(version, version)?;
            let (method, end) = match version {
                "v1" => (Method::POST, "/clusterstackreleases".to_owned()),
                "v2" => (Method::PATCH, format!("/clusterclasses/{tag}")),
                _ => (Method::PUT, format!("/clusterstackreleases/{tag}/status")),
            };
            let options = candidate(journey, options.clone(), version, LEASE);
            let operator = Operator::start(journey.lab(), &options)?;
            let open = proxy.delay(move |write| write.method == method && write.path.ends_with(&end));
            journey
                .stack(STACK, json!({ "versions": versions[..count].to_vec() }))
                .await?;
            let open = open.wait(SOON).await?;
            let log = operator.log().to_owned();
            let answer = async {
                said(&log, "stopping").await?;
                open.deliver().await
            };
            let (ended, answer) = tokio::join!(operator.stop_within(END), answer);
            let answer = answer?;
            ensure!(
                answer.is_success(),
                "the open write of {version} was answered with {answer}"
            );
            ensure!(ended? == Ended::Status(0));
            said(&log, "stopped").await?;
        }
        journey.options = candidate(journey, journey.options.clone(), "last", LEASE);
        journey.operate().await?;
        journey.usable(STACK, "v1, v2, v3").await?;
        for version in versions {
            let objects = journey.inventory(&harbor_tag(version)).await?;
            ensure!(
                !objects.is_empty() && objects.values().all(Option::is_some),
                "{objects:#?}"
            );
        }
        Ok(())
    })
}

/// Waits until an operator has said this.
async fn said(log: &Path, message: &str) -> Result<()> {
    eventually(SOON, format!("the log line {message:?}"), async || {
        let lines = log_lines(log)?;
        ensure!(lines.iter().any(|line| line["message"] == message), "{lines:#?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
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
        eventually(Duration::from_secs(20), "the operator to ask in vain", held).await?;
        // The deadline is the harness's; the status says whether something was given up.
        operator.stop().await?;
        Ok(())
    })
}

/// A release with a template that never comes to an end, and a stack that takes it.
async fn endless(journey: &Journey, version: &str, (file, template): (&str, &str)) -> Result<String> {
    let source = StackSource::harbor("v1")?;
    source.write(&format!("cluster-class/templates/{file}"), template)?;
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    journey
        .stack(&format!("endless-{version}"), json!({ "versions": [version] }))
        .await?;
    Ok(tag)
}

/// Ends an operator that renders, whose rendering is not told as one that failed. A busy machine may have ended one before.
async fn end_of_rendering(journey: &Journey, operator: Operator, tag: &str) -> Result<()> {
    let conditions =
        async || -> Result<_> { Ok(status(&journey.api::<ClusterStackRelease>().get(tag).await?).conditions) };
    let before = conditions().await?;
    let log = operator.log().to_owned();
    ensure!(operator.stop_within(END).await? == Ended::Status(0));
    let after = conditions().await?;
    ensure!(
        before == after,
        "the end tells of the rendering: {before:#?} {after:#?}"
    );
    let last = log_lines(&log)?.pop().context("a log")?;
    ensure!(last["message"] == "stopped", "{last}");
    Ok(())
}

#[test]
fn sigterm_ends_an_operator_within_seconds_though_a_source_hangs_and_helm_renders() -> Result<()> {
    journey(async |journey| {
        let silent = IndexServer::start().await?;
        silent.server.keep_silent(|_| true);
        let cache = journey.folder().join("cache");
        journey.options.flags.extend(sources_of_this_machine(&cache));
        let operator = Operator::start(journey.lab(), &journey.options)?;
        let spec = json!({ "versions": ["v9"], "source": silent.source() });
        journey.stack("silent", spec).await?;
        let tag = endless(journey, "v1", ("endless.yaml", ENDLESS_HELM)).await?;
        eventually(SOON, "Helm to render and a source to hang", async || {
            let used = busiest_thread(operator.process_id().context("it runs")?)?;
            ensure!(used > RENDERING, "{used:?}");
            ensure!(silent.server.unanswered() > 0, "the source is not asked");
            Ok(())
        })
        .await?;
        end_of_rendering(journey, operator, &tag).await
    })
}

#[test]
fn sigterm_ends_an_operator_within_seconds_though_tera_renders() -> Result<()> {
    journey(async |journey| {
        let operator = Operator::start(journey.lab(), &journey.options)?;
        let tag = endless(journey, "v1", ("endless.tera", ENDLESS_TERA)).await?;
        let mut seen = HashMap::new();
        eventually(SOON, "a process of Tera to render, which has time left", || {
            let ages = operator
                .process_id()
                .into_iter()
                .flat_map(children_of)
                .map(|child| seen.entry(child).or_insert_with(Instant::now).elapsed());
            let ages: Vec<Duration> = ages.collect();
            let in_the_midst = ages.iter().any(|age| IN_THE_MIDST_OF_TERA.contains(age));
            ready(if in_the_midst { Ok(()) } else { Err(format!("{ages:?}")) })
        })
        .await?;
        end_of_rendering(journey, operator, &tag).await
    })
}

#[test]
fn sigterm_ends_an_operator_within_seconds_though_a_write_hangs_and_it_says_so() -> Result<()> {
    journey(async |journey| {
        let (proxy, options) = behind_a_proxy(journey).await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let operator = Operator::start(journey.lab(), &options)?;
        subscribe(journey).await?;
        let _hung = HungWrite::of(&proxy, Method::PATCH, format!("/clusterclasses/{tag}")).await?;
        let log = operator.log().to_owned();
        // What became of the write nobody knows, and who watches the process is to see that.
        ensure!(operator.stop_within(END).await? == Ended::Status(1));
        let told = log_lines(&log)?;
        let told = told
            .iter()
            .any(|line| line["message"].as_str().is_some_and(|text| text.starts_with("gave up")));
        ensure!(told, "it does not say what it gave up");
        Ok(())
    })
}
