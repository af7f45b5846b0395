//! kill -9 of whoever deletes an image that no object is for any more: by the command, because the operator itself waits for an hour before it does the same.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    Ended, Operator,
    journey::SOON,
    lanes::side_by_side,
    stage::{DISK, Stage, on_stage, small},
};
use http::Method;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use openstack_lab::{proxy::Point, source::Article};
use serde_json::{Value, json};

/// Older than what somebody may just have begun.
const AGE: Duration = Duration::from_hours(2);

/// Starts the command that deletes them, verified or not.
async fn deleting(stage: &Stage<'_>) -> Result<Operator> {
    let options = stage.options(&["--sweep-verified"]).await?;
    let operator = options.command()?;
    let mut command = Command::new(operator.get_program());
    command.args(["orphans", "--delete"]).args(operator.get_args());
    Operator::start_as(stage.journey.lab(), &command, &options.folder.join("orphans.log"))
}

/// Takes an object away and leaves its image, as somebody does who removes what holds the object.
async fn orphaned(stage: &Stage<'_>, name: &str) -> Result<()> {
    let objects: Api<OpenStackNodeImageRelease> = stage.journey.api();
    let free = Patch::Merge(json!({ "metadata": { "finalizers": Value::Null } }));
    objects.patch(name, &PatchParams::default(), &free).await?;
    stage.delete(name).await
}

fn killed_at_the_deletion(point: Point) -> Result<()> {
    let begun = Instant::now();
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        for name in ["kept", "orphan"] {
            stage.want(name, DISK, json!({})).await?;
        }
        stage.operate().await?;
        let (kept, orphan) = (stage.id("kept").await?, stage.id("orphan").await?);
        stage.kill().await?;
        orphaned(stage, "orphan").await?;
        for id in [&kept, &orphan] {
            stage.age(id, AGE).await?;
        }
        let before = stage.cloud.image(&kept).await?;

        let strike = stage.proxy.strike_at(stage.proxy.changes().len() + 1, point);
        let first = deleting(stage).await?;
        let struck = strike.wait(SOON).await?;
        let is_meant = struck.method == Method::DELETE && struck.target.ends_with(&orphan);
        ensure!(is_meant, "{struck:?}");
        first.kill().await?;
        drop(struck);

        let mut next = deleting(stage).await?;
        ensure!(
            next.ended(SOON).await? == Ended::Status(0),
            "{}",
            fs::read_to_string(next.log())?
        );
        stage.cloud.holds(std::slice::from_ref(&kept)).await?;
        ensure!(
            stage.cloud.image(&kept).await? == before,
            "an image that is in use was touched"
        );
        Ok(vec![kept])
    })?;
    eprintln!("{point:?} took {:?}", begun.elapsed());
    Ok(())
}

#[test]
fn a_kill_at_the_deletion_of_an_orphan_leads_to_the_same_end() -> Result<()> {
    let points = vec![Point::Before, Point::After];
    let name = |point: &Point| format!("an_orphan_{point:?}");
    let outcomes = side_by_side(points.len(), points, name, killed_at_the_deletion)?;
    outcomes.into_iter().collect()
}
