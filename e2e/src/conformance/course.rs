//! The course of a test: what is done to release objects, one thing after the other, and which row each shows.
//!
//! Nothing is tried whose result would only repeat an earlier failure: such rows are told as not shown.

use std::{process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{ResourceExt, api::DynamicObject};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use super::{
    Plan, US,
    ground::Ground,
    history::{History, Version},
    judgement::{
        generation_is_told, is_noticed, is_ready, owners_stay, progress_is_told, readiness_is_boolean,
        ready_is_a_condition, shared, spec_is_ours, stalled, status,
    },
    kinds::Kinds,
    rows::{Report, Row},
};

/// Until an operator that runs begins with an object. Its queue may be long.
const NOTICE: Duration = Duration::from_mins(1);
/// Until an operator has written all that becoming ready brings along, also where there is much else to do.
const AT_REST: Duration = Duration::from_secs(30);
/// How long the command may take that makes an image unusable.
const BREAK_DEADLINE: Duration = Duration::from_mins(10);
/// A digest that no release has.
const NO_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// One object while it lives.
struct Life {
    name: String,
    uid: String,
    object: DynamicObject,
}

impl Life {
    fn is_it(&self, version: &Version) -> bool {
        version.is_of(&self.uid)
    }
}

pub(super) struct Course<'a, Step> {
    plan: &'a Plan,
    ground: &'a Ground,
    kinds: &'a Kinds,
    releases: History,
    images: Option<History>,
    owners: Vec<OwnerReference>,
    step: &'a Step,
}

impl<'a, Step: Fn(&str)> Course<'a, Step> {
    /// Begins to watch.
    pub(super) async fn begin(plan: &'a Plan, ground: &'a Ground, kinds: &'a Kinds, step: &'a Step) -> Result<Self> {
        let releases = History::begin(ground.api(&kinds.release), &kinds.release).await?;
        let images = match &kinds.image {
            Some(resource) => Some(History::begin(ground.api(resource), resource).await?),
            None => None,
        };
        let owners = vec![ground.owner().await?, ground.owner().await?];
        Ok(Self {
            plan,
            ground,
            kinds,
            releases,
            images,
            owners,
            step,
        })
    }

    /// Goes all of it.
    pub(super) async fn go(&self, report: &mut Report) -> Result<()> {
        let Some(first) = self.first(report).await? else {
            return Ok(());
        };
        self.usable(&first, report).await?;
        self.judge_life(&first, report);
        if self.deleted(&first, "when it was ready", report).await? {
            self.deleted_while_working(report).await?;
        } else {
            self.ground
                .force(&self.kinds.release, (&first.name, &first.uid))
                .await?;
        }
        self.pinned_to_another_digest(report).await
    }

    /// M3: an object without an owner, which gets its owners once it was noticed. Where it is not, another one has them from the beginning.
    async fn first(&self, report: &mut Report) -> Result<Option<Life>> {
        let release = &self.plan.release;
        (self.step)(&format!("makes {release} without an owner"));
        let life = self.make(release, json!({})).await?;
        if self.noticed(&life).await.is_some() {
            report.pass(Row::M3, "it was worked on before it had an owner");
            self.ground.own(&self.kinds.release, &life.object, &self.owners).await?;
            return Ok(Some(life));
        }
        let seconds = self.notice().as_secs();
        report.fail(
            Row::M3,
            format!("nothing was written to an object without an owner within {seconds} s"),
        );
        self.ground.force(&self.kinds.release, (&life.name, &life.uid)).await?;
        (self.step)(&format!("makes {release} with its owners"));
        let life = self.make(release, json!({ "ownerReferences": self.owners })).await?;
        if self.noticed(&life).await.is_some() {
            return Ok(Some(life));
        }
        report.fail(
            Row::M4,
            format!(
                "nothing was written to it within {seconds} s. Does the operator run, look after the namespace {}, and may it write there?",
                self.ground.namespace
            ),
        );
        report.skip_the_rest("the operator does not work on the object; see M4");
        Ok(None)
    }

    /// What is seen of a release that becomes usable.
    async fn usable(&self, life: &Life, report: &mut Report) -> Result<()> {
        (self.step)("waits until it is ready");
        let ready = self.until_ready(life).await;
        let boolean = readiness_is_boolean(self.objects(life).iter());
        let Some(ready) = ready else {
            let seconds = self.plan.deadline.as_secs();
            report.fail(
                Row::M4,
                boolean.err().unwrap_or_else(|| self.why_not_ready(life, seconds)),
            );
            let reason = "the release did not become ready; see M4";
            for row in [Row::M6, Row::M7, Row::M10, Row::S2, Row::S3, Row::S5] {
                report.skip(row, reason);
            }
            return Ok(());
        };
        report.judge(
            Row::M4,
            boolean.map(|_| "status.ready was a boolean in every version, and became true".to_owned()),
        );
        report.judge(Row::S2, ready_is_a_condition(self.objects(life).iter(), &ready.object));
        report.judge(Row::S5, generation_is_told(&ready.object));
        self.rests(report).await;
        self.second(life, report).await?;
        self.broken(life, report).await
    }

    /// M6.
    async fn rests(&self, report: &mut Report) {
        let rest = self.plan.rest;
        (self.step)(&format!("looks whether nothing is written for {} s", rest.as_secs()));
        let histories = [Some(&self.releases), self.images.as_ref()];
        // What the becoming ready brings along may come first.
        let rests = histories
            .into_iter()
            .flatten()
            .map(|history| history.rests(rest, (rest * 2).max(AT_REST), |_| true));
        if let Err(last) = try_join_all(rests).await {
            let writers = last.object.metadata.managed_fields.iter().flatten();
            let manager = writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
            let manager = manager.and_then(|entry| entry.manager.clone()).unwrap_or_default();
            let kind = last.object.types.as_ref().map_or("object", |types| types.kind.as_str());
            let name = last.object.name_any();
            return report.fail(
                Row::M6,
                format!("nothing happened, and the {kind} {name} was written again and again, last by {manager:?}"),
            );
        }
        report.pass(Row::M6, format!("nothing was written for {} s", rest.as_secs()));
    }

    /// M10 and S3.
    async fn second(&self, first: &Life, report: &mut Report) -> Result<()> {
        let name = self
            .plan
            .other_release
            .clone()
            .unwrap_or_else(|| unheard_of(&self.plan.release));
        (self.step)(&format!("makes a second release, {name}"));
        let since = self.releases.versions().len();
        let second = self.make(&name, json!({ "ownerReferences": self.owners })).await?;
        if self.plan.other_release.is_some() {
            self.shares(first, &second, report).await;
        } else {
            self.noticed(&second).await;
            report.skip(
                Row::S3,
                "needs two releases with the same image: give a second one with --other-release",
            );
        }
        (self.step)(&format!("deletes {name} again"));
        self.ground
            .delete(&self.kinds.release, &second.name, &second.uid)
            .await?;
        let gone = self
            .ground
            .gone(&self.kinds.release, (&second.name, &second.uid), self.plan.deadline)
            .await;
        if let Err(error) = gone {
            report.fail(Row::M8, format!("the second release does not go: {error:#}"));
            self.ground
                .force(&self.kinds.release, (&second.name, &second.uid))
                .await?;
        }
        // What the going of the second does to the first comes after it.
        let is_undone = |version: &Version| first.is_it(version) && (version.is_gone || !is_ready(&version.object));
        let later = |version: &Version| is_undone(version) && self.is_after(version, since);
        let undone = self.releases.until(self.settle(), later).await;
        let verdict = match undone {
            Some(version) if version.is_gone => Err("the first release was deleted with the second".to_owned()),
            Some(_) => {
                Err("the first release was not ready any more while there was a second, or when that went".to_owned())
            }
            None => Ok("the first stayed ready while a second came and went".to_owned()),
        };
        report.judge(Row::M10, verdict);
        Ok(())
    }

    /// S3: the second becomes ready, and an image has both as owners.
    async fn shares(&self, first: &Life, second: &Life, report: &mut Report) {
        if self.until_ready(second).await.is_none() {
            let reason = self.why_not_ready(second, self.plan.deadline.as_secs());
            return report.fail(Row::S3, format!("the second release: {reason}"));
        }
        let Some(images) = &self.images else {
            return report.skip(
                Row::S3,
                "there is no kind of image objects, whose name would end in NodeImageRelease",
            );
        };
        let uids = [first.uid.as_str(), second.uid.as_str()];
        let both = images
            .until(self.settle(), |version| shared([&version.object], uids).is_some())
            .await;
        let verdict = match both {
            Some(version) => Ok(format!("{} has both as owners", version.object.name_any())),
            None => Err("no image object has both releases as owners; or do they need different images?".to_owned()),
        };
        report.judge(Row::S3, verdict);
    }

    /// M7.
    async fn broken(&self, life: &Life, report: &mut Report) -> Result<()> {
        let Some(command) = &self.plan.breaking else {
            report.skip(
                Row::M7,
                "nobody but its author can make an image unusable: give a command that does with --break",
            );
            return Ok(());
        };
        (self.step)("makes an image unusable by the command of --break");
        let is_usable = |version: &Version| is_ready(&version.object);
        if !self.releases.until_last(self.plan.deadline, &life.uid, is_usable).await {
            report.skip(
                Row::M7,
                "the release was not ready any more when it came to that; see M10",
            );
            return Ok(());
        }
        let since = self.releases.versions().len();
        self.run(command).await?;
        (self.step)("waits until readiness goes back");
        let is_back = |version: &Version| life.is_it(version) && !is_ready(&version.object);
        let went = self
            .releases
            .until(self.plan.deadline, |version| {
                is_back(version) && self.is_after(version, since)
            })
            .await;
        let verdict = match went {
            Some(version) => {
                let message = status(&version.object)["message"]
                    .as_str()
                    .unwrap_or("without a message");
                Ok(format!("readiness went back: {message}"))
            }
            None => Err(format!(
                "the release was still ready {} s after the command made an image unusable",
                self.plan.deadline.as_secs()
            )),
        };
        report.judge(Row::M7, verdict);
        Ok(())
    }

    async fn run(&self, command: &str) -> Result<()> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        shell.env("KUBECONFIG", &self.plan.kubeconfig);
        shell
            .env("NAMESPACE", &self.ground.namespace)
            .env("RELEASE", &self.plan.release);
        let ended = timeout(BREAK_DEADLINE, shell.status()).await;
        let ended = ended
            .context("the command of --break does not end")?
            .context("unable to run sh")?;
        anyhow::ensure!(ended.success(), "the command of --break failed: {ended}");
        Ok(())
    }

    /// What is seen of an object over its whole life.
    fn judge_life(&self, life: &Life, report: &mut Report) {
        let objects = self.objects(life);
        let spec = life.object.data.get("spec").cloned().unwrap_or_default();
        report.judge(Row::M5, spec_is_ours(objects.iter(), &spec, US));
        let is_owned = |object: &&DynamicObject| !object.owner_references().is_empty();
        let since = objects
            .iter()
            .position(|object| is_owned(&object))
            .unwrap_or(objects.len());
        report.judge(Row::M9, owners_stay(&objects[since..], &self.owners));
        report.judge(Row::S1, progress_is_told(objects.iter()));
    }

    /// M8, the first half; whether it went.
    async fn deleted(&self, life: &Life, when: &str, report: &mut Report) -> Result<bool> {
        (self.step)(&format!("deletes {} {when}", life.name));
        self.ground.delete(&self.kinds.release, &life.name, &life.uid).await?;
        let gone = self
            .ground
            .gone(&self.kinds.release, (&life.name, &life.uid), self.plan.deadline)
            .await;
        let is_gone = gone.is_ok();
        if let Err(error) = gone {
            report.fail(Row::M8, format!("deleted {when}, it does not go: {error:#}"));
        }
        Ok(is_gone)
    }

    /// M8, the second half.
    async fn deleted_while_working(&self, report: &mut Report) -> Result<()> {
        let owners = json!({ "ownerReferences": self.owners });
        let life = self.make(&self.plan.release, owners).await?;
        self.noticed(&life).await;
        if self.deleted(&life, "while it was worked on", report).await? {
            report.pass(Row::M8, "it went when it was ready, and while it was worked on");
        } else {
            self.ground.force(&self.kinds.release, (&life.name, &life.uid)).await?;
        }
        Ok(())
    }

    /// S4 and S6.
    async fn pinned_to_another_digest(&self, report: &mut Report) -> Result<()> {
        (self.step)("makes it with a digest that no release has");
        let metadata = json!({
            "annotations": { crds::labels::DIGEST: NO_DIGEST }, "ownerReferences": self.owners,
        });
        let life = self.make(&self.plan.release, metadata).await?;
        let ends = |version: &Version| {
            life.is_it(version) && (is_ready(&version.object) || stalled(&version.object).is_some())
        };
        let ended = self
            .releases
            .until(self.plan.deadline.min(NOTICE).max(self.settle()), ends)
            .await;
        match ended {
            Some(version) if is_ready(&version.object) => {
                report.fail(
                    Row::S4,
                    "the release became ready with files that are not those of the digest",
                );
                report.skip(Row::S6, "needs a release that cannot be used; see S4");
            }
            Some(version) => {
                report.pass(Row::S4, "with another digest it did not become ready");
                report.pass(
                    Row::S6,
                    format!("Stalled=True, {}", stalled(&version.object).unwrap_or_default()),
                );
            }
            None => {
                report.pass(Row::S4, "with another digest it did not become ready");
                report.fail(
                    Row::S6,
                    "a release with another digest than its annotation was never called Stalled",
                );
            }
        }
        self.ground.delete(&self.kinds.release, &life.name, &life.uid).await
    }

    async fn make(&self, name: &str, metadata: Value) -> Result<Life> {
        let resource = &self.kinds.release;
        let mut object = DynamicObject::new(name, resource).data(json!({ "spec": self.plan.spec }));
        let metadata: kube::api::ObjectMeta =
            serde_json::from_value(metadata).context("unable to write the metadata")?;
        object.metadata.owner_references = metadata.owner_references;
        object.metadata.annotations = metadata.annotations;
        let object = self.ground.make(resource, &object).await?;
        Ok(Life {
            name: name.to_owned(),
            uid: object.uid().unwrap_or_default(),
            object,
        })
    }

    async fn noticed(&self, life: &Life) -> Option<Arc<Version>> {
        let is = |version: &Version| life.is_it(version) && is_noticed(&version.object, US);
        self.releases.until(self.notice(), is).await
    }

    async fn until_ready(&self, life: &Life) -> Option<Arc<Version>> {
        let is = |version: &Version| life.is_it(version) && is_ready(&version.object);
        self.releases.until(self.plan.deadline, is).await
    }

    fn why_not_ready(&self, life: &Life, seconds: u64) -> String {
        let last = self.objects(life).pop();
        let told = last.as_ref().map_or(&Value::Null, status);
        let words = match &told["message"] {
            Value::String(message) => format!("it said: {message}"),
            _ => format!("its status was {told}"),
        };
        format!("it was not ready within {seconds} s; {words}")
    }

    fn objects(&self, life: &Life) -> Vec<DynamicObject> {
        let versions = self.releases.of(&life.uid);
        let living = versions.iter().filter(|version| !version.is_gone);
        living.map(|version| version.object.clone()).collect()
    }

    /// Whether a version was seen after so many others.
    fn is_after(&self, version: &Version, count: usize) -> bool {
        let before = self.releases.versions();
        let last = before.get(count.wrapping_sub(1));
        last.is_none_or(|last| version.at > last.at)
    }

    fn notice(&self) -> Duration {
        NOTICE.min(self.plan.deadline)
    }

    /// How long something is waited for that must not come.
    fn settle(&self) -> Duration {
        self.plan.rest.min(Duration::from_secs(15))
    }
}

/// The name of a release that nobody has, in the form of the names of releases.
fn unheard_of(tag: &str) -> String {
    let end = tag
        .rfind(|letter: char| !letter.is_ascii_digit())
        .map_or(0, |at| at + 1);
    match tag[end..].parse::<u64>() {
        Ok(number) => format!("{}{}", &tag[..end], number.saturating_add(9000)),
        Err(_) => format!("{tag}-9000"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_release_is_called_like_one_that_nobody_has() {
        assert_eq!(unheard_of("acme-scs-1-34-v1"), "acme-scs-1-34-v9001");
        assert_eq!(unheard_of("acme-scs-1-34-v0-sha-abc"), "acme-scs-1-34-v0-sha-abc-9000");
    }
}
