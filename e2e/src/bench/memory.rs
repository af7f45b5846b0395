//! `lab bench memory`: what an operator holds that has nothing to do, with releases from every kind of source and webhooks that are asked.

use anyhow::{Context, Result};
use e2e::{github::Github, registry::Registry, usage::Usage, web::IndexServer, webhooks::Certificates};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{Api, api::DeleteParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ground::{Ground, elected},
    install::install,
    report::{Goal, Row},
    sources::{self, GITHUB_SECRET, OFTEN, REPOSITORY},
    stock::{OBJECTS, Shape, Stock},
};
use crate::{arguments::MemoryArguments, progress::Progress};

/// One stack for each kind of source.
const STACKS: usize = 4;

/// What was found. Keys say their unit.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    releases: usize,
    stacks: usize,
    /// When it had just become ready.
    empty_rss_mib: f64,
    /// While it installed everything.
    peak_rss_mib: f64,
    /// When it had had nothing to do for a while.
    idle_rss_mib: f64,
    /// Of that, what belongs to no file: the rest are pages of the program.
    idle_anonymous_mib: f64,
    threads: u32,
    open_files: u32,
}

/// The sources beside the directory, while they run.
struct Sources {
    github: Github,
    index: IndexServer,
    registry: Registry,
}

/// Measures once.
pub(super) async fn measure(arguments: &MemoryArguments) -> Result<Vec<Run>> {
    let progress = Progress::start(format!("memory · {} releases", arguments.releases));
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let namespace = ground.namespace("memory").await?;
    let run = Box::pin(measure_on(&ground, &namespace, arguments, &progress)).await;
    let configurations = Api::<ValidatingWebhookConfiguration>::all(ground.client.clone());
    // Where it was never made there is nothing to say either.
    let _ = configurations.delete(&namespace, &DeleteParams::default()).await;
    let cleaned = ground.clean_up(&[namespace]).await;
    let run = run?;
    cleaned.map(|()| vec![run])
}

async fn measure_on(ground: &Ground, namespace: &str, arguments: &MemoryArguments, progress: &Progress) -> Result<Run> {
    let shape = Shape::even(usize::try_from(arguments.releases)?, STACKS, OBJECTS);
    let mut stock = Stock::pack(ground.folder(), &shape, progress).await?;
    progress.step("filling the sources");
    let sources = Sources {
        github: Github::start().await?,
        index: IndexServer::start().await?,
        registry: Registry::start(ground.lab(), &ground.folder().join("registry")).await?,
    };
    fill(ground, namespace, &mut stock, &sources).await?;
    let certificates = Certificates::at(&ground.folder().join("certificates"))?;
    let flags = [
        elected(namespace),
        sources::flags(ground.folder()),
        certificates.flags(),
    ]
    .concat();
    progress.step("the operator installs");
    let mut operator = ground.operate(namespace, &stock.releases, flags).await?;
    let port = operator.webhook_port().await?;
    certificates
        .configure(&ground.client, namespace, port, &[namespace])
        .await?;
    let installed = install(ground, operator, namespace, &stock, progress).await?;
    let Usage {
        resident_mib,
        anonymous_mib,
        threads,
        open_files,
        ..
    } = installed.idle;
    installed.operator.stop().await?;
    Ok(Run {
        releases: shape.releases(),
        stacks: shape.stacks(),
        empty_rss_mib: installed.empty.resident_mib,
        peak_rss_mib: installed.idle.peak_mib,
        idle_rss_mib: resident_mib,
        idle_anonymous_mib: anonymous_mib,
        threads,
        open_files,
    })
}

/// Leaves the first stack its directory, and gives each of the others a source.
async fn fill(ground: &Ground, namespace: &str, stock: &mut Stock, sources: &Sources) -> Result<()> {
    let often = |source: &Value| json!({ "interval": OFTEN, "source": source });
    sources::add_github_secret(&ground.client, namespace).await?;
    let github = often(&sources.github.source("127.0.0.1", Some(GITHUB_SECRET)));
    stock.elsewhere(1..2, &github, |folder, _| sources.github.publish(folder))?;
    let index = often(&sources.index.source());
    stock.elsewhere(2..3, &index, |folder, _| sources.index.publish(folder))?;
    let registry = sources::add_registry_secret(&ground.client, namespace, &sources.registry).await?;
    let push = |folder: &std::path::Path, tag: &str| sources.registry.push(folder, REPOSITORY, tag);
    stock
        .elsewhere(3..4, &often(&registry), push)
        .context("failed to fill the registry")
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &[
        "releases",
        "sources",
        "empty MiB",
        "peak MiB",
        "idle MiB",
        "of it heap MiB",
        "threads",
        "open files",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.releases.to_string(),
            self.stacks.to_string(),
            format!("{:.1}", self.empty_rss_mib),
            format!("{:.1}", self.peak_rss_mib),
            format!("{:.1}", self.idle_rss_mib),
            format!("{:.1}", self.idle_anonymous_mib),
            self.threads.to_string(),
            self.open_files.to_string(),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} releases", self.releases);
        vec![Goal::at_most(24.0, "idle MiB", &of, self.idle_rss_mib)]
    }
}
