//! Flags and environment as the Go operator's manifests and chart have them: a Deployment that was made for it starts ours, and it works.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use crds::ClusterStack;
use e2e::{
    Journey, Operator,
    built::Program,
    github::{Github, TOKEN},
    journey::journey,
    registry::{PASSWORD, Registry, USER},
    releases::{FAILS_IN_USE, Releases, StackSource, harbor_tag},
};
use serde_json::json;

use crate::log_lines;

const REPOSITORY: &str = "kaas/stacks";

/// All flags that the Go operator has besides its addresses, its source and its folder, with their defaults: its ports and its folder belong to one
/// process of a machine.
const FLAGS: [&str; 10] = [
    "--leader-elect=true",
    "--log-level=info",
    "--watch-filter=",
    "--clusterstack-concurrency=1",
    "--clusterstackrelease-concurrency=1",
    "--clusteraddon-concurrency=1",
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

/// What the Go operator downloaded to, as it may have left it.
struct Downloads {
    releases: Releases,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Downloads {
    /// A folder with a release that has other files than at the source, one of which it had only begun, and one that the source does not have.
    fn of(journey: &Journey) -> Result<Self> {
        let releases = Releases::at(&journey.folder().join("downloads"))?;
        let other = StackSource::harbor("v1")?;
        other.write("cluster-class/templates/further.yaml", FAILS_IN_USE)?;
        releases.publish_stack(&other.path(), "v1")?;
        let begun = releases.publish_harbor("v2", "v2")?;
        releases.edit(&begun, |release| {
            let files = fs::read_dir(release)?.map(|file| Ok(file?.path()));
            let charts =
                files.filter(|file: &Result<_>| !file.as_ref().is_ok_and(|file| file.ends_with("metadata.yaml")));
            charts.into_iter().try_for_each(|chart| Ok(fs::remove_file(chart?)?))
        })?;
        releases.publish_harbor("v3", "v3")?;
        let files = read(&releases)?;
        Ok(Self { releases, files })
    }
}

/// All files below a folder of releases.
fn read(releases: &Releases) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut folders, mut files) = (vec![releases.root().to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.clone(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

/// A command line of the Go operator with this source and environment, and what our operator needs to reach servers of this machine.
fn deployed(journey: &Journey, source: &str, environment: &[(&str, &str)]) -> Result<Command> {
    let mut command = Command::new(Program::CoreOperator.path()?);
    command.args(FLAGS).arg(format!("--source={source}"));
    command.arg(format!(
        "--release-dir={}/",
        journey.folder().join("downloads").display()
    ));
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

/// Starts it beside what the Go operator downloaded, and returns when a stack that names no source has what the source has, and that alone. Nothing of
/// its log is a secret.
async fn works(journey: &Journey, command: &Command) -> Result<()> {
    let downloads = Downloads::of(journey)?;
    let mut operator = Operator::start_as(journey.lab(), command, &journey.options.log)?;
    operator.ready().await?;
    let versions = json!({ "versions": ["v1", "v2", "v3"] });
    journey.stack("harbor", versions).await?;
    journey.usable("harbor", "v1, v2").await?;
    let absent = format!("{} is not in ", harbor_tag("v3"));
    let is_absent = |stack: &ClusterStack| {
        let conditions = stack.status.iter().flat_map(|status| &status.conditions);
        let mut messages = conditions.filter_map(|condition| condition.message.as_deref());
        messages.any(|message| message.contains(&absent))
    };
    journey
        .until_stack("harbor", "told of what is only in the folder", is_absent)
        .await?;
    ensure!(
        read(&downloads.releases)? == downloads.files,
        "its folder is another one"
    );
    let lines = log_lines(operator.log())?;
    let without_effect = lines.iter().find_map(|line| line["flags"].as_str());
    ensure!(without_effect.is_none(), "without effect: {without_effect:?}");
    let text = fs::read_to_string(operator.log())?;
    ensure!(!text.contains(PASSWORD) && !text.contains(TOKEN), "{text}");
    operator.check()
}

#[test]
fn flags_and_environment_of_the_go_operator_for_a_registry_start_ours_and_it_works() -> Result<()> {
    journey(async |journey| {
        let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
        for version in ["v1", "v2"] {
            let tag = journey.releases.publish_harbor(version, version)?;
            registry.push(&journey.releases.folder_of(&tag), REPOSITORY, &tag)?;
        }
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
        for version in ["v1", "v2"] {
            let tag = journey.releases.publish_harbor(version, version)?;
            github.publish(&journey.releases.folder_of(&tag))?;
        }
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
