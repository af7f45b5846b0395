//! Real releases, and our own, become what Helm renders from them.

use std::path::Path;

use anyhow::{Context, Result};
use crds::{ClusterStackRelease, labels, resource::SyncStatus};
use e2e::{Journey, journey::status, releases::corpus};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{journey, oracle};

/// What a ClusterStack of real releases has and shows.
struct Expected<'a> {
    stack: &'a str,
    spec: Value,
    tags: &'a [&'a str],
    usable: &'a str,
    latest: &'a str,
}

/// Subscribes to releases that are published and compares every object.
async fn become_usable(journey: &mut Journey, expected: &Expected<'_>) -> Result<()> {
    journey.stack(expected.stack, expected.spec.clone()).await?;
    let stack = journey.usable(expected.stack, expected.usable).await?;
    let latest = stack.status.and_then(|status| status.latest_release);
    assert_eq!(latest.as_deref(), Some(expected.latest));
    for tag in expected.tags {
        let release = journey.release_ready(tag).await?;
        let rows = status(&release).resources;
        assert!(
            rows.iter()
                .all(|row| row.status == Some(SyncStatus::Synced) && row.error.is_empty()),
            "{rows:#?}"
        );
        oracle::agrees(journey, tag).await?;
    }
    Ok(())
}

/// Puts real releases into the journey's directory.
fn publish(journey: &Journey, corpus: &Path, tags: &[&str]) -> Result<()> {
    tags.iter()
        .try_for_each(|tag| journey.releases.publish(&corpus.join("releases").join(tag)))
}

#[test]
fn our_own_three_versions_become_what_helm_renders() -> Result<()> {
    journey(async |journey| {
        let mut tags = Vec::new();
        for version in ["v1", "v2", "v3"] {
            tags.push(journey.releases.publish_harbor(version, version)?);
        }
        journey.operate().await?;
        let expected = Expected {
            stack: "harbor",
            spec: json!({ "versions": ["v1", "v2", "v3"] }),
            tags: &tags.iter().map(String::as_str).collect::<Vec<_>>(),
            usable: "v1, v2, v3",
            latest: "docker-harbor-1-34-v3 | v1.34.0",
        };
        become_usable(journey, &expected).await
    })
}

#[test]
fn the_real_openstack_releases_become_what_helm_renders() -> Result<()> {
    let Some(corpus) = corpus() else { return Ok(()) };
    let tags = [
        "openstack-scs-1-32-v1",
        "openstack-scs-1-32-v2",
        "openstack-scs-1-32-v3",
        "openstack-scs-1-32-v4",
    ];
    journey(async |journey| {
        publish(journey, &corpus, &tags)?;
        journey.operate().await?;
        let spec = json!({
            "provider": "openstack", "name": "scs", "kubernetesVersion": "1.32", "versions": ["v1", "v2", "v3", "v4"],
        });
        let expected = Expected {
            stack: "openstack",
            spec,
            tags: &tags,
            usable: "v1, v2, v3, v4",
            latest: "openstack-scs-1-32-v4 | v1.32.5",
        };
        become_usable(journey, &expected).await
    })
}

#[test]
fn the_real_docker_releases_become_what_helm_renders_also_the_one_named_by_a_hash() -> Result<()> {
    let Some(corpus) = corpus() else { return Ok(()) };
    let (stable, hash) = (["docker-scs-1-30-v1"], ["docker-scs-1-30-v0-sha-d2lgujm"]);
    journey(async |journey| {
        publish(journey, &corpus, &[stable[0], hash[0]])?;
        journey.operate().await?;
        let spec = |channel: &str, version: &str| json!({ "name": "scs", "kubernetesVersion": "1.30", "channel": channel, "versions": [version] });
        let expected = Expected {
            stack: "docker",
            spec: spec("stable", "v1"),
            tags: &stable,
            usable: "v1",
            latest: "docker-scs-1-30-v1 | v1.30.10",
        };
        become_usable(journey, &expected).await?;
        let expected = Expected {
            stack: "docker-custom",
            spec: spec("custom", "v0-sha.d2lgujm"),
            tags: &hash,
            usable: "v0-sha.d2lgujm",
            latest: "docker-scs-1-30-v0-sha.d2lgujm | v1.30.10",
        };
        become_usable(journey, &expected).await
    })
}

#[test]
fn a1_a2_the_real_ferrol_releases_become_what_helm_renders_and_go_without_a_trace() -> Result<()> {
    let Some(corpus) = corpus() else { return Ok(()) };
    let tags = [
        "docker-ferrol-1-27-v1",
        "docker-ferrol-1-27-v2",
        "docker-ferrol-1-27-v3",
    ];
    journey(async |journey| {
        publish(journey, &corpus, &tags)?;
        journey.operate().await?;
        let spec = |versions: Value| json!({ "name": "ferrol", "kubernetesVersion": "1.27", "versions": versions });
        let first = Expected {
            stack: "ferrol",
            spec: spec(json!(["v1"])),
            tags: &tags[..1],
            usable: "v1",
            latest: "docker-ferrol-1-27-v1 | v1.27.3",
        };
        become_usable(journey, &first).await?;
        let release = journey.release_ready(tags[0]).await?;
        assert_eq!(release.finalizers(), [labels::RELEASE_FINALIZER]);
        assert_eq!(
            release.owner_references().first().map(|owner| owner.name.as_str()),
            Some("ferrol")
        );
        assert_eq!(status(&release).kubernetes_version.as_deref(), Some("v1.27.3"));
        let mut objects = Vec::new();
        for (name, object) in journey.inventory(tags[0]).await? {
            let object = object.with_context(|| format!("{name} is not there"))?;
            assert_eq!(
                object.labels().get(labels::INSTANCE).map(String::as_str),
                Some(labels::INSTANCE_OWNED),
                "{name}"
            );
            objects.push(name.split(' ').next().unwrap_or_default().to_owned());
        }
        let kinds = [
            "ClusterClass",
            "DockerClusterTemplate",
            "DockerMachineTemplate",
            "KubeadmConfigTemplate",
            "KubeadmControlPlaneTemplate",
        ];
        assert_eq!(objects, kinds);
        let all = Expected {
            spec: spec(json!(["v1", "v2", "v3"])),
            tags: &tags,
            usable: "v1, v2, v3",
            latest: "docker-ferrol-1-27-v3 | v1.27.3",
            ..first
        };
        become_usable(journey, &all).await?;
        journey.stack("ferrol", spec(json!(["v1", "v3"]))).await?;
        journey.gone::<ClusterStackRelease>(tags[1]).await?;
        let left = journey.marked(tags[1]).await?;
        assert_eq!(left, Vec::<String>::new());
        journey.usable("ferrol", "v1, v3").await?;
        Ok(())
    })
}
