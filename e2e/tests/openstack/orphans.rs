//! The command that lists what nobody needs any more, as a process of its own beside an operator: what it prints, how it ends, and that it changes nothing unless
//! it is told to. On the fake, whose images can be older than they are.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    journey::SOON,
    stage::{Stage, on_a_fake, small},
};
use http::{Method, StatusCode};
use jiff::SignedDuration;
use kube::api::{Patch, PatchParams};
use openstack_lab::proxy::Trouble;
use serde_json::json;
use tokio::{process::Command, time::timeout};

/// What somebody is told who asks.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    list: String,
    troubles: String,
}

impl Said {
    /// It ended with this code, and has all of these words in its list.
    fn is(&self, code: i32, words: &[&str]) -> Result<()> {
        let has_all = words.iter().all(|word| self.list.contains(word));
        ensure!(
            self.code == Some(code) && has_all,
            "instead of {code} and {words:?}: {self:?}"
        );
        Ok(())
    }
}

/// Runs the command with the flags of the operator and these.
async fn ask(stage: &Stage<'_>, flags: &[&str]) -> Result<Said> {
    let operator = stage.options(flags).await?.command()?;
    let mut command = Command::new(operator.get_program());
    command.arg("orphans").args(operator.get_args()).kill_on_drop(true);
    let ended = timeout(SOON, command.output()).await.context("it does not end")?;
    let Output { status, stdout, stderr } = ended.context("failed to start the command")?;
    Ok(Said {
        code: status.code(),
        list: String::from_utf8(stdout)?,
        troubles: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// Takes an object away as nobody should: its image stays behind.
async fn abandon(stage: &Stage<'_>, name: &str) -> Result<()> {
    let objects = stage.journey.api::<OpenStackNodeImageRelease>();
    let without = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    objects.patch(name, &PatchParams::default(), &without).await?;
    stage.delete(name).await
}

#[test]
fn an_image_whose_object_is_gone_is_listed_and_goes_only_for_whoever_says_so() -> Result<()> {
    on_a_fake(async |stage, fake| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.want_disk("debian", &small(1)).await?;
        stage.operate().await?;
        let (orphan, kept) = (stage.id("ubuntu").await?, stage.id("debian").await?);
        stage.kill().await?;
        abandon(stage, "ubuntu").await?;

        // Somebody may be about to write what it is for.
        let young = ask(stage, &[]).await?;
        young.is(0, &["No orphans: every image of ours in 1 cloud belongs to an object"])?;

        for id in [&orphan, &kept] {
            fake.grow_older(id, SignedDuration::from_hours(2));
        }
        let deletions = fake.count(&Method::DELETE, "/v2/images");
        let old = ask(stage, &[]).await?;
        let object = format!("{}/ubuntu", stage.journey.namespace);
        old.is(3, &[&orphan, &object, "1 orphan with", "nothing was deleted"])?;
        ensure!(!old.list.contains(&kept) && old.troubles.is_empty(), "{old:?}");
        // It was verified, which needs another word.
        let verified = ask(stage, &["--delete"]).await?;
        verified.is(
            3,
            &[
                &orphan,
                "0 deleted, 1 left. Verified ones go only with --sweep-verified",
            ],
        )?;
        ensure!(
            fake.count(&Method::DELETE, "/v2/images") == deletions,
            "something was deleted"
        );
        ensure!(fake.image(&orphan).is_some(), "it is gone");

        let answer = Trouble::answer(StatusCode::FORBIDDEN, &[], "no");
        stage.proxy.meet(Method::GET, "/v2/images", usize::MAX, answer);
        let unknown = ask(stage, &[]).await?;
        unknown.is(1, &[])?;
        ensure!(unknown.troubles.contains("provider-operator: 127.0.0.1"), "{unknown:?}");
        stage.proxy.relent();

        let gone = ask(stage, &["--delete", "--sweep-verified"]).await?;
        gone.is(0, &["1 deleted, 0 left"])?;
        for said in [&young, &old, &verified, &unknown, &gone] {
            stage.tells_no_secret(&said.list)?;
            stage.tells_no_secret(&said.troubles)?;
        }
        Ok(vec![kept])
    })
}
