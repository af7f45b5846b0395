//! Our operator with a real Glance is held against the contract of providers, as anybody's is.

use std::{fs, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use crds::labels;
use e2e::{
    Identity,
    conformance::{Conformance, Outcome, Plan, Report, Row},
    eventually,
    journey::SOON,
    stage::{DISK, SECRET, Stage, on_stage, small, tag},
};
use openstack_lab::source::Article;
use serde_json::json;

/// Two files by which a script has an image deactivated: the one says that it is to be, the other that it is.
const ASKED: &str = "asked";
const DONE: &str = "done";

/// Has the cloud take the image out of use, and somebody look who does not want to wait ten minutes.
fn breaking(stage: &Stage<'_>) -> String {
    let folder = stage.journey.folder().display();
    let kubectl = stage.journey.lab().controlplane.display();
    format!(
        "set -e\ncd {folder}\nexport HOME={folder}\ntouch {ASKED}\nwhile [ ! -e {DONE} ]; do sleep 0.1; done\n\
         {kubectl} kubectl --namespace \"$NAMESPACE\" annotate openstacknodeimagereleases --all {}=now\n",
        labels::REQUESTED_AT
    )
}

/// Does what the script asks for. It does not end by itself.
async fn obey(stage: &Stage<'_>) -> Result<Report> {
    let folder = stage.journey.folder();
    eventually(3 * SOON, "the image to be made unusable", async || {
        fs::metadata(folder.join(ASKED))
    })
    .await?;
    for image in stage.cloud.owned().await? {
        stage.cloud.act(&image, "deactivate").await?;
    }
    fs::write(folder.join(DONE), "").context("failed to say that it is done")?;
    std::future::pending().await
}

#[test]
fn our_operator_conforms_with_images_in_a_cloud() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        for version in ["v1", "v2"] {
            stage.publish(version)?;
        }
        stage.operate().await?;
        let journey = stage.journey;
        let plan = Plan {
            kind: "OpenStackClusterStackRelease".to_owned(),
            release: tag("v1"),
            other_release: Some(tag("v2")),
            namespace: Some(journey.namespace.clone()),
            spec: json!({ "identityRef": { "kind": "Secret", "name": SECRET } }),
            breaking: Some(breaking(stage)),
            kubeconfig: journey.control_plane().kubeconfig_for(&Identity::Admin).await?,
            deadline: Duration::from_mins(1),
            rest: Duration::from_secs(3),
        };
        let conformance = Conformance::new(journey.client.clone(), plan);
        let report = tokio::select! {
            report = conformance.run(|_| {}) => report,
            report = obey(stage) => report,
        };
        let forced = conformance.clear().await?;
        let report = report?;
        let others = report
            .rows()
            .filter(|(_, outcome)| !matches!(outcome, Outcome::Passed { .. }));
        let others: Vec<_> = others
            .map(|(row, outcome)| format!("{}: {outcome:?}", row.id()))
            .collect();
        if !others.is_empty() {
            bail!("{others:#?}");
        }
        ensure!(report.rows().count() == Row::ALL.len(), "{}", report.rows().count());
        ensure!(forced.is_empty(), "{forced:?}");
        Ok(Vec::new())
    })
}
