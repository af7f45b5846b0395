//! An operator that lacks rights: it says which, once each, where people look.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use e2e::{
    Identity, Operator, eventually,
    journey::{SOON, journey},
};
use http::StatusCode;

use crate::{elapse, log_lines};

/// Without these the operator can do nothing.
const ESSENTIAL: [&str; 3] = ["ClusterStack", "ClusterStackRelease", "CustomResourceDefinition"];

#[test]
fn an_operator_without_rights_is_not_ready_and_says_once_which_are_missing() -> Result<()> {
    journey(async |journey| {
        let nobody = Identity::service_account(&journey.namespace, "nobody");
        journey.options.kubeconfig = journey.control_plane().kubeconfig_for(&nobody).await?;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        let log = operator.log().to_owned();
        eventually(SOON, "the missing rights to be told", async || told_once(&log)).await?;
        let (status, body) = operator.health("/readyz").await?;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
        for kind in ESSENTIAL {
            let missing = format!("the right to watch {kind}: ");
            let line = body.lines().find(|line| line.contains(&missing));
            let line = line.with_context(|| format!("nothing of {kind} in {body}"))?;
            ensure!(line.contains("cannot list resource"), "{line}");
        }
        // Several attempts of each watch.
        elapse(Duration::from_secs(8)).await?;
        told_once(&log)?;
        operator.kill().await
    })
}

/// In our words, and in nobody else's.
fn told_once(log: &Path) -> Result<()> {
    let lines = log_lines(log)?;
    for kind in ESSENTIAL.into_iter().chain(["Cluster.cluster.x-k8s.io"]) {
        let of_kind: Vec<_> = lines.iter().filter(|line| line["kind"] == kind).collect();
        let words = "not allowed to watch; give the operator the right";
        let once = of_kind.len() == 1 && of_kind[0]["level"] == "WARN" && of_kind[0]["message"] == words;
        ensure!(once, "{kind}: {lines:#?}");
    }
    let theirs = |target: &str| target.starts_with("kube");
    ensure!(
        !lines.iter().any(|line| line["target"].as_str().is_some_and(theirs)),
        "{lines:#?}"
    );
    Ok(())
}
