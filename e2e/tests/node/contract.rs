//! What a Job sees, and what is seen of it.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use e2e::{
    eventually,
    kubelet::{Kind, Kubelet, kinds, processes_with},
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::jobs::{Jobs, SOON, job, script, start};

#[tokio::test]
async fn the_real_kubelet_keeps_the_contract() -> Result<()> {
    if !kinds()?.contains(&Kind::Real) {
        return Ok(());
    }
    let kubelet = start(Kind::Real).await?;
    let dump = kubelet.control_plane().failure_dump();
    keeps_the_contract(&kubelet).await?;
    a_container_that_takes_more_memory_than_its_limit_is_killed(&kubelet).await?;
    dump.call_off();
    kubelet.stop().await
}

#[tokio::test]
async fn the_stand_in_keeps_the_contract() -> Result<()> {
    let kubelet = start(Kind::StandIn).await?;
    let dump = kubelet.control_plane().failure_dump();
    keeps_the_contract(&kubelet).await?;
    dump.call_off();
    kubelet.stop().await
}

/// Jobs take seconds of waiting and hardly any work: all at once.
async fn keeps_the_contract(kubelet: &Kubelet) -> Result<()> {
    let all: [std::pin::Pin<Box<dyn Future<Output = Result<()>> + '_>>; 8] = [
        Box::pin(a_job_completes_and_its_log_can_be_read(kubelet)),
        Box::pin(a_failed_job_shows_its_exit_code_and_message(kubelet)),
        Box::pin(the_end_of_the_log_is_the_message_of_a_container_that_left_none(kubelet)),
        Box::pin(an_init_container_hands_its_artefact_over(kubelet)),
        Box::pin(a_failed_init_container_ends_the_job(kubelet)),
        Box::pin(secrets_and_annotations_are_files(kubelet)),
        Box::pin(a_deleted_job_ends_by_sigterm_or_after_its_grace_by_sigkill(kubelet)),
        Box::pin(a_job_past_its_deadline_is_ended(kubelet)),
    ];
    try_join_all(all).await.map(drop)
}

async fn a_job_completes_and_its_log_can_be_read(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let job = job("whole", &json!({ "containers": [script("work", "echo all done")] }))?;
    ensure!(jobs.run(&job).await? == "Complete");
    assert_eq!(jobs.log("whole", "work").await?, "all done\n");
    assert_eq!(jobs.terminated("whole", "work").await?.exit_code, 0);
    Ok(())
}

async fn a_failed_job_shows_its_exit_code_and_message(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let work = script("work", "echo it is too small >/dev/termination-log; exit 65");
    let end = jobs.run(&job("failed", &json!({ "containers": [work] }))?).await?;
    assert_eq!(end, "Failed: BackoffLimitExceeded");
    let ended = jobs.terminated("failed", "work").await?;
    assert_eq!(
        (ended.exit_code, ended.message.as_deref()),
        (65, Some("it is too small\n"))
    );
    Ok(())
}

async fn the_end_of_the_log_is_the_message_of_a_container_that_left_none(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let mut work = script("work", "echo no space; exit 1");
    work["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    jobs.run(&job("logged", &json!({ "containers": [work] }))?).await?;
    let message = jobs.terminated("logged", "work").await?.message.unwrap_or_default();
    assert_eq!(message.trim(), "no space");
    Ok(())
}

async fn an_init_container_hands_its_artefact_over(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let mount = json!([{ "name": "artifact", "mountPath": "/artifact" }]);
    let (mut build, mut work) = (
        script("build", "echo bits >/artifact/disk.img"),
        script("work", "cat /artifact/disk.img"),
    );
    build["volumeMounts"] = mount.clone();
    work["volumeMounts"] = mount;
    let pod = json!({
        "initContainers": [build], "containers": [work],
        "volumes": [{ "name": "artifact", "emptyDir": { "sizeLimit": "10Mi" } }],
    });
    ensure!(jobs.run(&job("built", &pod)?).await? == "Complete");
    assert_eq!(jobs.log("built", "work").await?, "bits\n");
    Ok(())
}

async fn a_failed_init_container_ends_the_job(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let pod = json!({ "initContainers": [script("build", "exit 3")], "containers": [script("work", "echo never")] });
    let end = jobs.run(&job("unbuilt", &pod)?).await?;
    assert_eq!(end, "Failed: BackoffLimitExceeded");
    assert_eq!(jobs.terminated("unbuilt", "build").await?.exit_code, 3);
    assert!(jobs.terminated("unbuilt", "work").await.is_err(), "it never ran");
    Ok(())
}

async fn secrets_and_annotations_are_files(kubelet: &Kubelet) -> Result<()> {
    let secret: Secret = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "identity" },
        "stringData": { "clouds.yaml": "clouds: {}", "other": "not asked for" },
    }))?;
    let secrets: Api<Secret> = Api::namespaced(kubelet.control_plane().client(), "default");
    secrets.create(&PostParams::default(), &secret).await?;
    let jobs = Jobs::of(kubelet);
    let mut work = script(
        "work",
        "cat $WHERE/clouds.yaml /plan/plan.json; test ! -e /identity/other && test -s /tokens/token && \
         test -s /tokens/ca.crt",
    );
    work["env"] = json!([{ "name": "WHERE", "value": "/identity" }]);
    work["volumeMounts"] = json!([
        { "name": "identity", "mountPath": "/identity", "readOnly": true },
        { "name": "plan", "mountPath": "/plan" },
        { "name": "tokens", "mountPath": "/tokens" },
    ]);
    let annotation = json!({ "fieldPath": "metadata.annotations['example.org/plan']" });
    let pod = json!({ "containers": [work], "automountServiceAccountToken": false, "volumes": [
        { "name": "identity", "secret": {
            "secretName": "identity", "defaultMode": 256, "items": [{ "key": "clouds.yaml", "path": "clouds.yaml" }],
        } },
        { "name": "plan", "downwardAPI": { "items": [{ "path": "plan.json", "fieldRef": annotation }] } },
        { "name": "tokens", "projected": { "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": 600 } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
        ] } },
    ] });
    let mut job = job("mounted", &pod)?;
    let metadata = json!({ "annotations": { "example.org/plan": "{\"version\":1}" } });
    job.spec.as_mut().context("a spec")?.template.metadata = Some(serde_json::from_value(metadata)?);
    ensure!(
        jobs.run(&job).await? == "Complete",
        "{:?}",
        jobs.log("mounted", "work").await
    );
    assert_eq!(jobs.log("mounted", "work").await?, "clouds: {}{\"version\":1}");
    Ok(())
}

async fn a_deleted_job_ends_by_sigterm_or_after_its_grace_by_sigkill(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let heard = tempfile::NamedTempFile::new()?;
    let (word, file) = (
        format!("of-{:?}-{}", kubelet.kind(), std::process::id()),
        "/seen/by-the-test",
    );
    let mut polite = script(
        "work",
        &format!("trap 'echo {word} >{file}; exit 0' TERM; echo ready; while :; do sleep 0.1; done"),
    );
    polite["volumeMounts"] = json!([{ "name": "seen", "mountPath": file }]);
    let volumes = json!([{ "name": "seen", "hostPath": { "path": heard.path() } }]);
    let deaf = script(
        "work",
        &format!(": {word}; trap '' TERM; echo ready; while :; do sleep 0.1; done"),
    );
    // Who listens is given more than a busy machine takes to let him.
    let polite = json!({ "containers": [polite], "volumes": volumes, "terminationGracePeriodSeconds": 10 });
    jobs.create(&job("polite", &polite)?).await?;
    jobs.create(&job("deaf", &json!({ "containers": [deaf] }))?).await?;
    for name in ["polite", "deaf"] {
        jobs.says(name, "work", "ready").await?;
    }
    ensure!(processes_with(&word).len() >= 2, "both run");
    let begin = std::time::Instant::now();
    futures::try_join!(jobs.delete("polite"), jobs.delete("deaf"))?;
    ensure!(begin.elapsed() >= Duration::from_secs(3), "the deaf one had its grace");
    eventually(SOON, "their processes to be gone", async || {
        let left = processes_with(&word);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await?;
    assert_eq!(fs::read_to_string(heard.path())?.trim(), word, "it heard SIGTERM");
    Ok(())
}

async fn a_job_past_its_deadline_is_ended(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let mark = format!("late-{:?}-{}", kubelet.kind(), std::process::id());
    let work = script("work", &format!(": {mark}; while :; do sleep 0.1; done"));
    let mut job = job("late", &json!({ "containers": [work] }))?;
    job.spec.as_mut().context("a spec")?.active_deadline_seconds = Some(4);
    assert_eq!(jobs.run(&job).await?, "Failed: DeadlineExceeded");
    eventually(SOON, "its processes to be gone", async || {
        let left = processes_with(&mark);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await
}

/// The stand-in keeps no limits.
async fn a_container_that_takes_more_memory_than_its_limit_is_killed(kubelet: &Kubelet) -> Result<()> {
    let jobs = Jobs::of(kubelet);
    let mut work = script("work", "x=0123456789abcdef; while :; do x=$x$x; done");
    work["resources"] = json!({ "limits": { "memory": "64Mi" } });
    jobs.run(&job("greedy", &json!({ "containers": [work] }))?).await?;
    let ended = jobs.terminated("greedy", "work").await?;
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (137, Some("OOMKilled")));
    Ok(())
}
