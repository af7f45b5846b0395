//! What a collector of traces is told of an installation.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use e2e::{
    Ended, Journey, Operator,
    cosign::Cosign,
    journey::{SOON, journey},
    registry::{PASSWORD, Registry, USER},
    web::WebServer,
};
use http::{Response, StatusCode};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as AnyValue,
    trace::v1::{Span, status::StatusCode as Outcome},
};
use prost::Message as _;
use serde_json::{Value, json};

use crate::{STACK, log_lines, replicas::candidate, subscribe};

const REPOSITORY: &str = "kaas/stacks";

/// A collector that keeps what it is told.
pub(crate) struct Collector {
    server: WebServer,
    told: Arc<Mutex<Vec<Result<ExportTraceServiceRequest, prost::DecodeError>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    pub(crate) async fn start() -> Result<Self> {
        let told = Arc::<Mutex<Vec<_>>>::default();
        let hears = Arc::clone(&told);
        let server = WebServer::start(move |request| {
            lock(&hears).push(ExportTraceServiceRequest::decode(request.body().clone()));
            Response::default()
        });
        Ok(Self {
            server: server.await?,
            told,
        })
    }

    pub(crate) fn flag(&self) -> String {
        format!("--otlp-endpoint={}", self.server.url("127.0.0.1"))
    }

    /// All that it was told, as text.
    pub(crate) fn text(&self) -> String {
        format!("{:?}", lock(&self.told))
    }

    fn spans(&self) -> Result<Vec<Span>> {
        let mut spans = Vec::new();
        for told in lock(&self.told).iter() {
            let told = told
                .as_ref()
                .map_err(Clone::clone)
                .context("the collector was told nonsense")?;
            for resource in &told.resource_spans {
                spans.extend(resource.scope_spans.iter().flat_map(|scope| scope.spans.clone()));
            }
        }
        Ok(spans)
    }
}

fn text<'s>(span: &'s Span, key: &str) -> Option<&'s str> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        AnyValue::StringValue(text) => Some(text),
        _ => None,
    }
}

fn within<'s>(spans: &'s [Span], outer: &'s Span) -> impl Iterator<Item = &'s Span> {
    spans.iter().filter(|span| span.parent_span_id == outer.span_id)
}

#[test]
fn a_trace_of_an_installation_names_each_reconcile_object_and_request_and_the_log_names_the_trace() -> Result<()> {
    journey(async |journey| {
        let collector = Collector::start().await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let mut options = journey.options.clone();
        options.flags.push(collector.flag().into());
        let mut operator = Operator::start(journey.lab(), &options)?;
        operator.ready().await?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        journey.usable(STACK, "v1").await?;
        let log = operator.log().to_owned();
        ensure!(operator.stop().await? == Ended::Status(0));

        let spans = collector.spans()?;
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        let of_release =
            |span: &&Span| span.name == "reconcile ClusterStackRelease" && text(span, "name") == Some(&tag);
        let passes: Vec<_> = spans.iter().filter(of_release).collect();
        let installing = passes
            .iter()
            .find(|pass| within(&spans, pass).any(|span| span.name == "apply ClusterClass"))
            .with_context(|| format!("no reconcile that applies: {names:?}"))?;
        let applied = within(&spans, installing)
            .find(|span| span.name == "apply ClusterClass")
            .context("found above")?;
        ensure!(
            text(applied, "name").is_some_and(|name| name.contains("harbor")),
            "{applied:?}"
        );
        let request = within(&spans, applied)
            .find(|span| span.name == "apply clusterclasses.cluster.x-k8s.io")
            .with_context(|| format!("no request of the application: {names:?}"))?;
        let failed = |span: &Span| {
            span.status
                .as_ref()
                .is_some_and(|status| status.code() == Outcome::Error)
        };
        ensure!(!failed(request), "{request:?}");
        ensure!(
            passes
                .iter()
                .any(|pass| within(&spans, pass).any(|span| span.name == "render")),
            "{names:?}"
        );
        ensure!(
            !names.iter().any(|name| name.contains("watch")),
            "what has no end is no span: {names:?}"
        );
        let lines = log_lines(&log)?;
        let ready = lines
            .iter()
            .find(|line| line["message"] == "ready" && line["name"] == tag.as_str())
            .context("the release became ready")?;
        let told = ready["trace_id"].as_str().context("the line names its trace")?;
        let told = u128::from_str_radix(told, 16).context("the id of a trace is hexadecimal")?;
        let known = |span: &Span| span.trace_id == told.to_be_bytes();
        ensure!(passes.iter().any(|pass| known(pass)), "{told:x}");
        Ok(())
    })
}

/// What the operator does by itself is a trace of its own: nobody waits for it, and it is done for many.
fn alone<'s>(spans: &'s [Span], name: &str) -> Result<&'s Span> {
    let found = spans
        .iter()
        .find(|span| span.name == name && span.parent_span_id.is_empty());
    let names = || spans.iter().map(|span| &span.name).collect::<BTreeSet<_>>();
    found.with_context(|| format!("no {name} of its own: {:?}", names()))
}

/// A registry with a signed release, and what a stack says that takes it.
async fn signed_in_a_registry(journey: &Journey) -> Result<(Registry, String, Value)> {
    let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
    let tag = journey.releases.publish_harbor("v1", "v1")?;
    registry.push(&journey.releases.folder_of(&tag), REPOSITORY, &tag)?;
    journey.releases.unpublish(&tag)?;
    let cosign = Cosign::new(journey.lab(), &journey.folder().join("cosign"))?;
    let key = cosign.key("ours")?;
    cosign.sign("ours", &registry, REPOSITORY, &tag)?;
    let values = json!({
        "username": USER, "password": PASSWORD, "ca.crt": registry.authority()?, "cosign.pub": key,
    });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "all" }, "stringData": values });
    journey.apply(secret).await?;
    let all = json!({ "name": "all" });
    let source = json!({ "oci": {
            "repository": registry.repository(REPOSITORY), "credentialsSecretRef": all, "caSecretRef": all,
        } });
    let verification = json!({ "mode": "Require", "cosign": { "publicKeySecretRef": all } });
    let spec = json!({ "autoSubscribe": true, "versions": ["v1"], "source": source, "verification": verification });
    Ok((registry, tag, spec))
}

#[test]
fn polls_downloads_and_searches_are_traces_of_their_own_and_none_tells_a_secret() -> Result<()> {
    journey(async |journey| {
        let collector = Collector::start().await?;
        let (registry, tag, spec) = signed_in_a_registry(journey).await?;
        let cache = journey.folder().join("cache");
        let mut options = journey.options.clone();
        options.flags.extend([
            "--allow-source-network=127.0.0.0/8".into(),
            format!("--cache-dir={}", cache.display()).into(),
            collector.flag().into(),
        ]);
        let mut operator = Operator::start(journey.lab(), &options)?;
        operator.ready().await?;
        journey.stack(STACK, spec).await?;
        journey.release_ready(&tag).await?;
        let metrics = operator.metrics_page().await?;
        ensure!(operator.stop().await? == Ended::Status(0));

        let spans = collector.spans()?;
        let host = registry.repository("");
        for name in ["poll", "download", "search signatures"] {
            let outer = alone(&spans, name)?;
            let asked = within(&spans, outer).any(|span| {
                span.name == "GET"
                    && text(span, "server.address").is_some_and(|server| server.contains(host.trim_end_matches('/')))
            });
            ensure!(
                asked,
                "{name} asks nobody: {:#?}",
                within(&spans, outer).collect::<Vec<_>>()
            );
        }
        ensure!(text(alone(&spans, "download")?, "release") == Some(tag.as_str()));
        // What is done for one release stands within a pass over it.
        for name in ["verify", "render", "apply ClusterClass"] {
            let is_pass =
                |span: &&Span| span.name == "reconcile ClusterStackRelease" && text(span, "name") == Some(&tag);
            let mut passes = spans.iter().filter(is_pass);
            let found = passes.any(|pass| within(&spans, pass).any(|span| span.name == name));
            ensure!(found, "no pass over the release has {name}");
        }
        let basic = BASE64.encode(format!("{USER}:{PASSWORD}"));
        for (place, text) in [("traces", collector.text()), ("metrics", metrics)] {
            for secret in [PASSWORD, basic.as_str(), "canary"] {
                ensure!(!text.contains(secret), "{secret} is in the {place}");
            }
        }
        Ok(())
    })
}

#[test]
fn an_operator_that_loses_its_lease_sends_what_it_did_before_it_ends() -> Result<()> {
    journey(async |journey| {
        let collector = Collector::start().await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let mut options = candidate(journey, journey.options.clone(), "robbed", "3s");
        options.flags.push(collector.flag().into());
        let mut operator = Operator::start(journey.lab(), &options)?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        let thief = json!({ "spec": { "holderIdentity": "thief" } });
        let leases: Api<Lease> = journey.api();
        leases
            .patch("clusterstack.x-k8s.io", &PatchParams::default(), &Patch::Merge(thief))
            .await?;
        let ended = operator.ended(SOON).await?;
        ensure!(ended != Ended::Status(0), "{ended}");
        let spans = collector.spans()?;
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        ensure!(names.contains(&"apply ClusterClass"), "{names:?}");
        Ok(())
    })
}

#[test]
fn a_collector_that_refuses_everything_is_told_once_and_nothing_else_changes() -> Result<()> {
    journey(async |journey| {
        let refuses = WebServer::start(|_| {
            let mut answer = Response::default();
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        });
        let refuses = refuses.await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let mut options = journey.options.clone();
        options
            .flags
            .push(format!("--otlp-endpoint={}", refuses.url("127.0.0.1")).into());
        let mut operator = Operator::start(journey.lab(), &options)?;
        operator.ready().await?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        let log = operator.log().to_owned();
        ensure!(operator.stop().await? == Ended::Status(0));
        ensure!(!refuses.visits().is_empty(), "it was asked");
        let lines = log_lines(&log)?;
        let told: Vec<_> = lines.iter().filter(|line| line["level"] == "WARN").collect();
        ensure!(told.len() == 1, "{told:#?}");
        let message = told[0]["message"].as_str().unwrap_or_default();
        ensure!(message.starts_with("unable to send traces to"), "{message}");
        Ok(())
    })
}
