//! Flags and environment as the Go operator's manifests and chart have them: a Deployment that was made for it starts ours, and it works.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::{
    Journey, Operator,
    built::Program,
    github::{Github, TOKEN},
    journey::journey,
    registry::{PASSWORD, Registry, USER},
};
use serde_json::json;

use crate::log_lines;

const REPOSITORY: &str = "kaas/stacks";

/// All flags that the Go operator has besides its addresses and its source, with their defaults: its ports belong to one process of a machine.
const FLAGS: [&str; 11] = [
    "--leader-elect=true",
    "--log-level=info",
    "--watch-filter=",
    "--clusterstack-concurrency=1",
    "--clusterstackrelease-concurrency=1",
    "--clusteraddon-concurrency=1",
    "--release-dir=/tmp/downloads/",
    "--local=false",
    "--qps=50",
    "--burst=100",
    "--hook-port=9442",
];

/// What the chart sets for every container.
const OF_THE_CHART: [(&str, &str); 2] = [
    ("HELM_CACHE_HOME", "/tmp/.cache"),
    ("KUBERNETES_CLUSTER_DOMAIN", "cluster.local"),
];

/// A command line of the Go operator with this source and environment, and what our operator needs to reach servers of this machine.
fn deployed(journey: &Journey, source: &str, environment: &[(&str, &str)]) -> Result<Command> {
    let mut command = Command::new(Program::CoreOperator.path()?);
    command.args(FLAGS).arg(format!("--source={source}"));
    command.arg(format!("--namespace={0}", journey.namespace));
    command.arg(format!("--leader-elect-namespace={}", journey.namespace));
    command.args([
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
    ]);
    let cache = journey.folder().join("cache");
    command.args(e2e::operator::sources_of_this_machine(&cache));
    command.envs(OF_THE_CHART).envs(environment.iter().copied());
    command.env("KUBECONFIG", &journey.options.kubeconfig);
    Ok(command)
}

/// Starts it, and returns when a stack that names no source is usable. Nothing of its log is a secret.
async fn works(journey: &Journey, command: &Command) -> Result<()> {
    let mut operator = Operator::start_as(journey.lab(), command, &journey.options.log)?;
    operator.ready().await?;
    journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
    journey.usable("harbor", "v1").await?;
    let lines = log_lines(operator.log())?;
    let without_effect = lines.iter().find_map(|line| line["flags"].as_str());
    ensure!(
        without_effect == Some("--clusteraddon-concurrency --hook-port"),
        "{without_effect:?}"
    );
    let text = std::fs::read_to_string(operator.log())?;
    ensure!(!text.contains(PASSWORD) && !text.contains(TOKEN), "{text}");
    operator.check()
}

#[test]
fn flags_and_environment_of_the_go_operator_for_a_registry_start_ours_and_it_works() -> Result<()> {
    journey(async |journey| {
        let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        registry.push(&journey.releases.folder_of(&tag), REPOSITORY, &tag)?;
        let repository = registry.repository(REPOSITORY);
        let host = repository.strip_suffix(&format!("/{REPOSITORY}")).context("a host")?;
        // Its authority is the one thing that the Go operator takes from the machine.
        let authority = registry.authority_file();
        let environment = [
            ("OCI_REGISTRY", host),
            ("OCI_REPOSITORY", &*repository),
            ("OCI_USERNAME", USER),
            ("OCI_PASSWORD", PASSWORD),
            ("OCI_ACCESS_TOKEN", ""),
            ("SOURCE_CA_FILE", authority.to_str().context("a path")?),
        ];
        works(journey, &deployed(journey, "oci", &environment)?).await
    })
}

#[test]
fn flags_and_environment_of_the_go_operator_for_github_start_ours_and_it_works_with_an_enterprise_server() -> Result<()>
{
    journey(async |journey| {
        let github = Github::start().await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        github.publish(&journey.releases.folder_of(&tag))?;
        let api = github.api.url("127.0.0.1");
        let environment = [
            ("GIT_PROVIDER", "github"),
            ("GIT_ORG_NAME", "kaas"),
            ("GIT_REPOSITORY_NAME", "stacks"),
            ("GIT_ACCESS_TOKEN", TOKEN),
            ("GIT_API_URL", &*api),
        ];
        works(journey, &deployed(journey, "github", &environment)?).await?;
        let with_token = format!("Bearer {TOKEN}");
        let visits = github.api.visits();
        ensure!(
            visits
                .iter()
                .all(|visit| visit.authorization.as_ref() == Some(&with_token)),
            "{visits:?}"
        );
        Ok(())
    })
}
