//! Secrets: whatever is written, said or logged, none of them is in it, and each is shown only to the one that it is for.

use anyhow::{Context, Result, ensure};
use crds::providers::{image_status::NodeImageStatus, openstack::OpenStackNodeImageRelease};
use e2e::{
    eventually,
    journey::SOON,
    provider_operator::identity,
    stage::{API_VERSION, DISK, IMAGE_OBJECT, SECRET, Stage, message_of, on_stage, small, tag},
};
use http::{Method, StatusCode};
use k8s_openapi::api::{batch::v1::Job, core::v1::Secret};
use kube::{Api, api::ListParams};
use openstack_lab::{
    proxy::Trouble,
    source::{Article, sha256},
};
use serde_json::json;
use url::form_urlencoded;

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

/// None of what is told anywhere has a secret in it, in whatever form.
async fn nothing_secret_is_told(stage: &mut Stage<'_>) -> Result<()> {
    let told = told(stage).await?;
    stage.tells_no_secret(&told)
}

/// Waits until an image tells what the cloud said, without what the cloud was told in confidence; then looks everywhere, and lets the image go on.
async fn hidden_in(stage: &mut Stage<'_>, name: &str, words: &str) -> Result<()> {
    let is_told = |status: &NodeImageStatus| {
        let told = serde_json::to_string(status).unwrap_or_default();
        told.contains(words) && told.contains("[hidden]")
    };
    stage.until(name, &format!("told with {words:?}"), is_told).await?;
    nothing_secret_is_told(stage).await
}

/// A cloud that repeats what it was told, as pages for programmers do: at a login, within JSON and within a URL, and at every call with a token.
#[test]
fn planted_credentials_are_nowhere() -> Result<()> {
    const ECHO: Trouble = Trouble::Echo(StatusCode::INTERNAL_SERVER_ERROR);
    on_stage(async |stage| {
        let login = "/auth/tokens";
        stage.proxy.meet(Method::POST, login, 1, ECHO);
        let secret: String = form_urlencoded::byte_serialize(stage.secret().as_bytes()).collect();
        let page = format!("you came with ?secret={secret}");
        let page = Trouble::answer(StatusCode::INTERNAL_SERVER_ERROR, &[], &page);
        stage.proxy.meet(Method::POST, login, usize::MAX, page);
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        stage.publish("v1")?;
        stage.want_release(&tag("v1")).await?;
        stage.operate_with(&["--log-level=debug"]).await?;
        hidden_in(stage, IMAGE_OBJECT, "application_credential").await?;
        stage.look_again(IMAGE_OBJECT, "it may log in").await?;
        hidden_in(stage, IMAGE_OBJECT, "you came with").await?;
        stage.proxy.relent();
        stage.look_again(IMAGE_OBJECT, "it may log in now").await?;
        stage.release_is(&tag("v1"), true).await?;

        let mut ids = vec![stage.id(IMAGE_OBJECT).await?];
        let by_import = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        let calls = [
            ("listed", Method::GET, "cs_object=", json!({})),
            ("made", Method::POST, "/v2/images", json!({})),
            ("sent", Method::PUT, "/file", json!({})),
            ("published", Method::PATCH, "/v2/images/", json!({})),
            ("imported", Method::POST, "/import", by_import),
        ];
        for (name, method, part, changes) in calls {
            stage.proxy.meet(method, part, usize::MAX, ECHO);
            stage.want(name, DISK, changes).await?;
            hidden_in(stage, name, "you are").await?;
            stage.proxy.relent();
            stage.look_again(name, "it is not told so any more").await?;
            ids.push(stage.id(name).await?);
            nothing_secret_is_told(stage).await?;
        }
        stage.proxy.meet(Method::DELETE, "/v2/images/", usize::MAX, ECHO);
        stage.journey.delete::<OpenStackNodeImageRelease>("listed").await?;
        hidden_in(stage, "listed", "you are").await?;
        stage.proxy.relent();
        stage.look_again("listed", "it may go").await?;
        stage.journey.gone::<OpenStackNodeImageRelease>("listed").await?;
        ids.remove(1);
        Ok(ids)
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
