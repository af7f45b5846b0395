//! What may befall a Job on its way: somebody else has its name, a node that takes it not or ends it. What the stand-in has no idea of, the real node
//! shows alone.

use std::fmt::Debug;

use anyhow::{Context, Result, ensure};
use crds::labels;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{batch::v1::Job, core::v1::ServiceAccount, rbac::v1::Role},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    builds::build,
    everywhere,
    place::{SHARED, SHELL, Web, Wish, disk, for_store},
    really,
};

/// The Ready condition, in words.
fn told(status: &Value) -> String {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    ready
        .and_then(|ready| ready["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn what_has_the_names_of_a_job_and_its_account_and_is_somebody_elses_is_left_alone_and_told() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, true)?;
        let spec = for_store("taken", json!({ "url": web.url }), json!({ "execution": "Job" }));
        let wish = place.object("taken", "FileStoreNodeImageRelease", spec, true).await?;
        let uid = wish.api.get("taken").await?.uid().context("a uid")?;
        let name = format!("img-{}", &hex::encode(Sha256::digest(&uid))[..12]);
        let template = json!({ "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "other", "image": SHELL }],
        } });
        let account = Strange::<ServiceAccount>::make(&wish, &name, json!({})).await?;
        let role = Strange::<Role>::make(&wish, &name, json!({ "rules": [] })).await?;
        let spec = json!({ "spec": { "suspend": true, "template": template } });
        let job = Strange::<Job>::make(&wish, &format!("{name}-1"), spec).await?;
        let go_on = json!({ "metadata": { "annotations": { labels::PAUSED: null } } });
        wish.patch(&go_on).await?;
        account.is_told_and_goes(&wish).await?;
        role.is_told_and_goes(&wish).await?;
        job.is_told_and_goes(&wish).await?;
        wish.ready().await?;
        ensure!(wish.bytes()? == disk(), "the bytes are others");
        wish.delete().await
    })
}

/// Something of a name that the operator would give.
struct Strange<K> {
    api: Api<K>,
    made: K,
}

impl<K> Strange<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    async fn make(wish: &Wish<'_>, name: &str, mut object: Value) -> Result<Self> {
        object["metadata"] = json!({ "name": name });
        let api: Api<K> = Api::namespaced(wish.place.client.clone(), wish.name);
        let made = api
            .create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
        Ok(Self { api, made })
    }

    async fn is_told_and_goes(&self, wish: &Wish<'_>) -> Result<()> {
        let name = self.made.name_any();
        let words = format!("{} {name} is there and is not of this object", K::kind(&()));
        wish.failure(&words).await?;
        let there = self.api.get(&name).await?;
        ensure!(there.uid() == self.made.uid() && there.meta().deletion_timestamp.is_none());
        self.api.delete(&name, &DeleteParams::background()).await?;
        Ok(())
    }
}

#[test]
fn a_second_operator_that_means_the_same_goes_on_with_the_job_that_is_there() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, false)?;
        let wish = place
            .image("twice", json!({ "url": web.url }), json!({ "execution": "Job" }))
            .await?;
        wish.moves().await?;
        let first: Vec<_> = wish.jobs().await?.iter().map(ResourceExt::uid).collect();
        let _second = place.operate("second", "twice", SHARED).await?;
        web.go_on();
        wish.ready().await?;
        let jobs: Vec<_> = wish.jobs().await?.iter().map(ResourceExt::uid).collect();
        ensure!(jobs == first && jobs.len() == 1, "{jobs:?} instead of {first:?}");
        ensure!(wish.bytes()? == disk(), "the bytes are others");
        wish.delete().await
    })
}

#[test]
fn a_build_that_needs_more_memory_than_it_may_have_is_told_with_what_to_do() -> Result<()> {
    really(async |place| {
        let script = "all=0123456789abcdef; while :; do all=$all$all; done";
        let limits = json!({ "resources": { "limits": { "memory": "16Mi" } } });
        let wish = place.image("hungry", build(script, limits), json!({})).await?;
        wish.failure("raise spec.image.build.resources").await?;
        wish.ended_with("build", 137).await?;
        wish.delete().await
    })
}

#[test]
fn a_build_that_writes_more_than_its_limit_is_driven_from_its_node_and_not_tried_again() -> Result<()> {
    really(async |place| {
        let script = "for n in 1 2 3 4 5 6 7 8 9; do cat /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh; done > /artifact/image; sleep 600";
        let wish = place
            .image("overflowing", build(script, json!({ "sizeLimit": "1Mi" })), json!({}))
            .await?;
        let status = wish.failure("wrote more than its sizeLimit").await?;
        ensure!(status["lastFailure"]["reason"] == "BuildFailed", "{status:#}");
        wish.until("a halt", |status| status["halted"]["reason"] == "BuildFailed")
            .await?;
        wish.delete().await
    })
}

/// It says that it is held up, and by what; and once more when its time is over.
async fn is_held_up(wish: &Wish<'_>, why: &str) -> Result<()> {
    wish.until(&format!("to be told of {why:?}"), |status| told(status).contains(why))
        .await?;
    wish.patch_job(&json!({ "spec": { "activeDeadlineSeconds": 1 } }))
        .await?;
    wish.failure(&format!("longer than it may, and was ended; before, {why}"))
        .await?;
    Ok(())
}

#[test]
fn what_no_node_takes_and_what_has_no_image_is_told_and_ends_by_its_deadline() -> Result<()> {
    really(async |place| {
        let nowhere = json!({ "nodeSelector": { "test.example/no-such": "node" } });
        let unscheduled = place.image("unscheduled", build("true", nowhere), json!({})).await?;
        // Nobody listens there.
        let missing = format!("{}:1/no/such:1", place.kubelet.host());
        let unpulled = place
            .image("unpulled", build("true", json!({ "image": missing })), json!({}))
            .await?;
        is_held_up(&unscheduled, "no node takes it").await?;
        is_held_up(
            &unpulled,
            &format!("the image {missing} of its container build cannot be had"),
        )
        .await?;
        unscheduled.delete().await?;
        unpulled.delete().await
    })
}
