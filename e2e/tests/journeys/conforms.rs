//! Operators of providers are held against the contract: ours keeps it, and of one that breaks a row just this row is told.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::PROVIDER_GROUP;
use e2e::{
    Ended, Identity, Journey, Process,
    conformance::{Conformance, Level, Outcome, Plan, Report, Row},
    journey::{SOON, journey},
    provider::stand_in::{Lie, StandIn},
};
use futures::future::{try_join, try_join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::node_images;

const RELEASES: [&str; 2] = ["storm-harbor-1-34-v1", "storm-harbor-1-34-v2"];

/// A plan as of a person in a hurry.
fn plan(kind: &str, namespace: &str) -> Plan {
    Plan {
        kind: kind.to_owned(),
        release: RELEASES[0].to_owned(),
        other_release: Some(RELEASES[1].to_owned()),
        namespace: Some(namespace.to_owned()),
        spec: json!({}),
        breaking: None,
        kubeconfig: PathBuf::new(),
        deadline: Duration::from_mins(1),
        rest: Duration::from_secs(3),
    }
}

async fn tested(journey: &Journey, plan: Plan) -> Result<(Report, Vec<String>)> {
    let conformance = Conformance::new(journey.client.clone(), plan);
    let report = conformance.run(|_| {}).await;
    let forced = conformance.clear().await?;
    Ok((report?, forced))
}

fn told(report: &Report) -> Vec<String> {
    let rows = report
        .rows()
        .filter(|(_, outcome)| !matches!(outcome, Outcome::Passed { .. }));
    rows.map(|(row, outcome)| format!("{}: {outcome:?}", row.id()))
        .collect()
}

/// What is in a namespace of the kinds of a test.
async fn left(journey: &Journey, namespace: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for kind in ["StandInClusterStackRelease", "StandInNodeImageRelease"] {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(PROVIDER_GROUP, crds::VERSION, kind));
        let api = Api::<DynamicObject>::namespaced_with(journey.client.clone(), namespace, &kind);
        let objects = api.list(&ListParams::default()).await?.items;
        names.extend(objects.into_iter().filter_map(|object| object.metadata.name));
    }
    let maps: Api<ConfigMap> = Api::namespaced(journey.client.clone(), namespace);
    let maps = maps.list(&ListParams::default()).await?.items;
    let is_ours = |name: &String| name.starts_with("conformance-provider");
    names.extend(maps.into_iter().filter_map(|map| map.metadata.name).filter(is_ours));
    Ok(names)
}

#[test]
fn an_operator_that_keeps_the_contract_passes_every_row() -> Result<()> {
    journey(async |journey| {
        let stand_in = StandIn::start(journey, &journey.namespace, None).await?;
        let mut plan = plan(&stand_in.kind, &journey.namespace);
        plan.breaking = Some(format!("touch {}", stand_in.breaking.display()));
        let (report, forced) = tested(journey, plan).await?;
        ensure!(told(&report).is_empty(), "{:#?}", told(&report));
        ensure!(report.rows().count() == Row::ALL.len(), "{:?}", report.rows().count());
        ensure!(forced.is_empty(), "{forced:?}");
        let left = left(journey, &journey.namespace).await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
}

/// Holds a provider that breaks a row against the contract: this row is told and no other.
async fn is_told(journey: &Journey, row: Row, lie: Lie) -> Result<()> {
    let namespace = journey.another_namespace().await?;
    let stand_in = StandIn::start(journey, &namespace, Some(lie)).await?;
    let mut plan = plan(&stand_in.kind, &namespace);
    plan.breaking = Some(format!("touch {}", stand_in.breaking.display()));
    let (report, _) = tested(journey, plan).await.with_context(|| format!("{lie:?}"))?;
    ensure!(
        report.failed() == [row],
        "{lie:?} breaks {row:?} alone, and this was told: {:#?}",
        told(&report)
    );
    ensure!(report.conforms() == (row.level() == Level::Should), "{lie:?}");
    let left = left(journey, &namespace).await?;
    ensure!(left.is_empty(), "{lie:?} leaves {left:?}");
    Ok(())
}

/// The same by the program, which ends well where no MUST is broken.
async fn is_told_to_a_person_who_may_go_on(journey: &Journey) -> Result<()> {
    let namespace = journey.another_namespace().await?;
    let stand_in = StandIn::start(journey, &namespace, Some(Lie::NoProgress)).await?;
    let (mut test, table) = as_a_person(
        journey,
        &[
            "--kind",
            &stand_in.kind,
            "--release",
            RELEASES[0],
            "--namespace",
            &namespace,
            "--rest=3",
            "--deadline=60",
        ],
    )
    .await?;
    let ended = test.wait(2 * SOON).await?;
    let table = fs::read_to_string(table)?;
    ensure!(ended.is_success(), "it {ended}: {table}");
    // What to do about it is broken into lines.
    for words in [
        "✗ S1",
        "status never had progress",
        "→ Write status.phase",
        "no MUST is broken",
    ] {
        ensure!(table.contains(words), "{words}: {table}");
    }
    Ok(())
}

/// All at once: some wait for a minute for what does not come, and none does much.
#[test]
fn a_provider_that_breaks_a_row_is_told_which_and_conforms_without_a_should() -> Result<()> {
    journey(async |journey| {
        ensure!(Row::ALL.len() == Lie::ALL.len(), "there is a lie for each row");
        let journey = &*journey;
        let lies = Row::ALL.iter().copied().zip(Lie::ALL);
        let tests = lies.map(|(row, lie)| is_told(journey, row, lie));
        let by_a_person = is_told_to_a_person_who_may_go_on(journey);
        try_join(try_join_all(tests), by_a_person).await.map(drop)
    })
}

/// `lab conformance-provider` as a person types it, with its table in a file.
async fn as_a_person(journey: &Journey, arguments: &[&str]) -> Result<(Process, PathBuf)> {
    let kubeconfig = journey.control_plane().kubeconfig_for(&Identity::Admin).await?;
    let lab = std::env::current_exe()?
        .parent()
        .and_then(|deps| deps.parent())
        .context("a folder")?
        .join("lab");
    let mut command = Command::new(lab);
    command
        .arg("conformance-provider")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments);
    let log = journey.folder().join("conformance.txt");
    Ok((Process::start(journey.lab(), "conformance", &command, &log)?, log))
}

async fn namespaces_of_tests(journey: &Journey) -> Result<Vec<String>> {
    let namespaces: Api<Namespace> = Api::all(journey.client.clone());
    let names = namespaces.list(&ListParams::default()).await?.items;
    let names = names.into_iter().filter_map(|namespace| namespace.metadata.name);
    Ok(names.filter(|name| name.starts_with("conformance-provider-")).collect())
}

#[test]
fn our_operator_of_providers_conforms() -> Result<()> {
    journey(async |journey| {
        let (_server, tags) = node_images::two_releases_of_one_image(journey).await?;
        let mut provider = node_images::provider_operator(journey).await?;
        provider.ready().await?;
        let breaking = journey.folder().join("break.sh");
        fs::write(&breaking, node_images::breaking(journey)).context("failed to write a script")?;
        let json = journey.folder().join("rows.json");
        let (namespace, script) = (journey.namespace.clone(), format!("sh {}", breaking.display()));
        let (mut test, table) = as_a_person(
            journey,
            &[
                "--kind=FileStoreClusterStackRelease",
                "--release",
                &tags[0],
                "--other-release",
                &tags[1],
                "--namespace",
                &namespace,
                "--break",
                &script,
                "--rest=5",
                "--deadline=60",
                "--json",
                &json.display().to_string(),
            ],
        )
        .await?;
        let ended = test.wait(3 * SOON).await?;
        let table = fs::read_to_string(table)?;
        ensure!(ended.is_success(), "{table}");
        let rows: Value = serde_json::from_slice(&fs::read(json)?)?;
        let rows = rows["rows"].as_array().context("rows")?;
        ensure!(rows.len() == Row::ALL.len(), "{rows:?}");
        let not_passed: Vec<_> = rows.iter().filter(|row| row["outcome"] != "passed").collect();
        ensure!(not_passed.is_empty(), "{not_passed:#?}");
        ensure!(table.contains("✓ M10"), "{table}");
        node_images::nothing_is_left(journey).await
    })
}

#[test]
fn a_test_that_is_interrupted_leaves_nothing_on_the_cluster() -> Result<()> {
    journey(async |journey| {
        // Of another namespace: nobody works on the objects of the test, so that it waits.
        let stand_in = StandIn::start(journey, &journey.namespace, None).await?;
        let (mut test, _) = as_a_person(
            journey,
            &["--kind", &stand_in.kind, "--release", RELEASES[0], "--deadline=60"],
        )
        .await?;
        let made = e2e::eventually(SOON, "a namespace of the test", async || {
            let names = namespaces_of_tests(journey).await.map_err(|error| error.to_string())?;
            names.into_iter().next().ok_or("none").map_err(str::to_owned)
        })
        .await?;
        e2e::eventually(SOON, "an object of the test", async || {
            let names = left(journey, &made).await.map_err(|error| error.to_string())?;
            if names.iter().any(|name| name == RELEASES[0]) {
                Ok(())
            } else {
                Err(format!("{names:?}"))
            }
        })
        .await?;
        test.interrupt()?;
        let ended = test.wait(2 * SOON).await?;
        ensure!(ended == Ended::Signal(2), "it {ended}");
        let names = namespaces_of_tests(journey).await?;
        ensure!(names.is_empty(), "{names:?}");
        Ok(())
    })
}
