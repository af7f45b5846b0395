//! Secrets: whatever is written, said or logged, none of them is in it, and each is shown only to the one that it is for.

use anyhow::{Context, Result, ensure};
use e2e::{
    eventually,
    journey::SOON,
    provider_operator::identity,
    stage::{API_VERSION, DISK, IMAGE_OBJECT, SECRET, Stage, message_of, on_stage, small, tag},
};
use http::{Method, StatusCode};
use k8s_openapi::api::{batch::v1::Job, core::v1::Secret};
use kube::{Api, api::ListParams};
use openstack_lab::{proxy::Trouble, source::Article};
use serde_json::json;

/// Everything that an operator writes and may not write a secret into.
const WRITTEN: [(&str, &str); 10] = [
    (API_VERSION, "OpenStackNodeImageRelease"),
    (API_VERSION, "OpenStackClusterStackRelease"),
    ("clusterstack.x-k8s.io/v1alpha1", "ClusterStackRelease"),
    ("v1", "Event"),
    ("events.k8s.io/v1", "Event"),
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
    ("v1", "ServiceAccount"),
    ("batch/v1", "Job"),
    ("coordination.k8s.io/v1", "Lease"),
];

/// All of that with status and spec, and metrics and health; what is written to both streams is read at the end of every test.
async fn told(stage: &mut Stage<'_>) -> Result<String> {
    let mut told = Vec::new();
    for (api_version, kind) in WRITTEN {
        let objects = stage.journey.objects(api_version, kind);
        let objects = objects.list(&ListParams::default()).await;
        let objects = objects.with_context(|| format!("failed to list {kind}"))?;
        told.push(serde_json::to_string_pretty(&objects.items)?);
    }
    let operator = stage.operator()?;
    told.push(operator.metrics_page().await?);
    for path in ["/healthz", "/readyz"] {
        told.push(operator.health(path).await?.1);
    }
    Ok(told.join("\n"))
}

/// None of what is told anywhere has a secret in it.
async fn nothing_secret_is_told(stage: &mut Stage<'_>) -> Result<()> {
    let told = told(stage).await?;
    let line = stage.reveals(&told);
    ensure!(line.is_none(), "{line:?}");
    Ok(())
}

/// A cloud that repeats what it was told, as pages for programmers do.
#[test]
fn planted_credentials_are_nowhere() -> Result<()> {
    on_stage(async |stage| {
        let echo = format!("you said {}", stage.secrets().join(" and "));
        let calls = [
            (Method::POST, "/auth/tokens"),
            (Method::POST, "/v2/images"),
            (Method::PATCH, "/v2/images/"),
        ];
        for (method, part) in calls.clone() {
            let echo = Trouble::answer(StatusCode::INTERNAL_SERVER_ERROR, &[], &echo);
            stage.proxy.meet(method, part, 1, echo);
        }
        stage.source.put(DISK, Article::of(small(1)));
        stage.publish("v1")?;
        stage.want_release(&tag("v1")).await?;
        stage.operate_with(&["--log-level=debug"]).await?;
        // After each refusal its words are in the status for a second at least.
        for count in 1..=calls.len() {
            stage.met(count).await?;
            nothing_secret_is_told(stage).await?;
        }
        stage.release_is(&tag("v1"), true).await?;
        nothing_secret_is_told(stage).await?;
        ensure!(stage.proxy.met() == 3, "{:?}", stage.proxy.passed());
        Ok(vec![stage.id(IMAGE_OBJECT).await?])
    })
}

#[test]
fn a_secret_of_another_type_is_shown_to_no_cloud_until_it_is_made_anew() -> Result<()> {
    on_stage(async |stage| {
        let mut secret = identity("typed", stage.proxy.site());
        secret["type"] = json!("cluster.x-k8s.io/secret");
        stage.journey.apply(secret.clone()).await?;
        stage.source.put(DISK, Article::of(small(1)));
        let typed = json!({ "identityRef": { "kind": "Secret", "name": "typed" } });
        stage.want("ubuntu", DISK, typed).await?;
        stage.operate().await?;
        let status = stage.not_ready("ubuntu", "CredentialsRejected").await?;
        let message = message_of(&status);
        ensure!(message.contains("cluster.x-k8s.io/secret"), "{message}");
        ensure!(stage.proxy.passed().is_empty(), "{:?}", stage.proxy.passed());

        stage.journey.delete::<Secret>("typed").await?;
        stage.journey.gone::<Secret>("typed").await?;
        secret["type"] = json!("Opaque");
        stage.journey.apply(secret).await?;
        stage.look_again("ubuntu", "it is another").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

/// Whoever sends an image in a Job is given the Secret by its name.
#[test]
fn planted_credentials_are_not_in_the_job_that_sends_an_image() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        stage.want("ubuntu", DISK, json!({ "execution": "Job" })).await?;
        let image = "--worker-image=registry.example/provider-operator:none";
        stage.operate_with(&["--log-level=debug", "--jobs", image]).await?;
        let jobs: Api<Job> = stage.journey.api();
        let job = eventually(SOON, "a Job", async || {
            let jobs = jobs.list(&ListParams::default()).await?;
            jobs.items.into_iter().next().context("there is none")
        })
        .await?;
        let spec = serde_json::to_string(&job.spec)?;
        ensure!(
            spec.contains(&format!("\"{SECRET}\"")),
            "it does not name the Secret: {spec}"
        );
        nothing_secret_is_told(stage).await?;
        stage.delete("ubuntu").await?;
        Ok(Vec::new())
    })
}

/// A source that repeats what it was told, to whoever may not have the image.
#[test]
fn a_token_for_a_source_is_nowhere() -> Result<()> {
    const TOKEN: &str = "a-token-that-nobody-may-read";
    on_stage(async |stage| {
        stage.keep_secret(TOKEN);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "source" }, "stringData": { "token": TOKEN },
        });
        stage.journey.apply(secret).await?;
        stage.source.put(DISK, Article::of(small(1)).echoing());
        let with_token = json!({ "image": { "credentialsSecretRef": { "name": "source" } } });
        stage.want("ubuntu", DISK, with_token).await?;
        stage.operate_with(&["--log-level=debug"]).await?;
        let message = message_of(&stage.not_ready("ubuntu", "SourceNotFound").await?);
        ensure!(message.contains("403"), "{message}");
        nothing_secret_is_told(stage).await?;

        let disk = small(1);
        stage
            .source
            .put(DISK, Article::of(disk.clone()).held_at(disk.len() / 2));
        stage.look_again("ubuntu", "it is given").await?;
        stage
            .until("ubuntu", "on its way", |status| status.transfer.is_some())
            .await?;
        nothing_secret_is_told(stage).await?;
        stage.source.let_go();
        let id = stage.id("ubuntu").await?;
        nothing_secret_is_told(stage).await?;
        Ok(vec![id])
    })
}
