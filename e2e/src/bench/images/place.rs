//! Where it is measured: a control plane, a namespace, a project of a real Glance; operators and image objects there.

use std::{
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use crds::providers::{image_status::NodeImageStatus, openstack::OpenStackNodeImageRelease};
use e2e::{
    Operator,
    cloud::Cloud,
    provider_operator,
    provider_operator::{Destination, ProviderOptions},
    releases::Releases,
    web::sha256,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use openstack_lab::{
    disk,
    real::{Installed, Real, RealOptions},
};
use serde_json::json;
use tokio::time::sleep;

use crate::bench::ground::Ground;

/// How the API server knows the operator in its audit log.
pub(super) const AGENT: &str = "stackwright-provider-operator";
/// The Secret with the login for the cloud.
const SECRET: &str = "cloud";
/// What a disk begins with that can be booted from, so that nobody takes it for something else.
const BOOT: [u8; 3] = [0xEB, 0x63, 0x90];
/// Longer than any image takes.
const DEADLINE: Duration = Duration::from_mins(10);
/// How often an object is asked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// After this an operator has given back what it needed to start, or for the image before.
const SETTLED: Duration = Duration::from_secs(5);

/// A place to measure.
pub(super) struct Place {
    pub(super) ground: Ground,
    pub(super) namespace: String,
    pub(super) real: Real,
    pub(super) cloud: Cloud,
    pub(super) images: Api<OpenStackNodeImageRelease>,
}

impl Place {
    /// Starts Keystone and Glance, and a control plane unless there is one.
    pub(super) async fn find(kubeconfig: Option<&Path>) -> Result<Self> {
        let installed =
            Installed::find()?.context("this machine has no Keystone and Glance, which need Python 3.11")?;
        let ground = Ground::find(kubeconfig).await?;
        let namespace = ground.namespace("images").await?;
        let real = Real::start(&installed, &RealOptions::default()).await?;
        let site = real.project("bench").await?;
        let secret: Secret = serde_json::from_value(provider_operator::identity(SECRET, &site))
            .context("unable to read a Secret of our own")?;
        Api::namespaced(ground.client.clone(), &namespace)
            .create(&PostParams::default(), &secret)
            .await
            .context("failed to make the Secret with the login")?;
        Ok(Self {
            images: Api::namespaced(ground.client.clone(), &namespace),
            cloud: Cloud::log_in(&site).await?,
            ground,
            namespace,
            real,
        })
    }

    /// Leaves nothing behind.
    pub(super) async fn clean_up(self) -> Result<()> {
        self.ground.clean_up(&[self.namespace]).await
    }

    /// A new operator that has nothing to do. So many images may be sent at once.
    pub(super) async fn operate(&self, at_once: u16, flags: Vec<OsString>) -> Result<(Operator, u32)> {
        let releases = Releases::at(&self.ground.folder().join("no-releases"))?;
        let most = [
            format!("--max-transfers={at_once}").into(),
            format!("--max-transfers-total={at_once}").into(),
        ];
        let options = ProviderOptions {
            kubeconfig: self.ground.kubeconfig().to_owned(),
            namespace: self.namespace.clone(),
            release_dir: releases.root().to_owned(),
            folder: self.ground.folder().join("provider"),
            destination: Destination::OpenStack,
            flags: most.into_iter().chain(flags).collect(),
        };
        let mut operator = options.start(self.ground.lab())?;
        operator.ready().await?;
        sleep(SETTLED).await;
        let process = operator.process_id().context("the operator has no process")?;
        Ok((operator, process))
    }

    /// Asks for an image, by the name of its object and of the image.
    pub(super) async fn want(&self, name: &str, url: &str, bytes: &Bytes) -> Result<()> {
        let object = json!({
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "OpenStackNodeImageRelease",
            "metadata": { "name": name },
            "spec": {
                "identityRef": { "kind": "Secret", "name": SECRET },
                "image": {
                    "url": url, "digest": format!("sha256:{}", sha256(bytes)),
                    "createOpts": { "name": name, "disk_format": "raw", "container_format": "bare" },
                },
            },
        });
        let object = serde_json::from_value(object).context("unable to read an image of our own")?;
        let created = self.images.create(&PostParams::default(), &object).await;
        created
            .map(drop)
            .with_context(|| format!("failed to ask for the image {name}"))
    }

    /// Waits until an image is ready; its id in the cloud.
    pub(super) async fn ready(&self, name: &str) -> Result<String> {
        let status = self.until(name, "ready", |status| status.ready).await?;
        let image = status.image.context("a ready image is somewhere")?;
        Ok(image.id)
    }

    /// Waits until the status of an image is as it should be; `what` completes the sentence "the image is not …".
    pub(super) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&NodeImageStatus) -> bool,
    ) -> Result<NodeImageStatus> {
        let begin = Instant::now();
        loop {
            let image = self.images.get_status(name).await.context("failed to read an image")?;
            let status = image.status.unwrap_or_default();
            if holds(&status) {
                return Ok(status);
            }
            let message = status.message.unwrap_or_default();
            if let Some(halted) = status.halted {
                bail!("the image {name} will never be {what}: {}", halted.message);
            }
            ensure!(begin.elapsed() < DEADLINE, "the image {name} is not {what}: {message}");
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Gives an image up, without waiting for its end.
    pub(super) async fn give_up(&self, name: &str) -> Result<()> {
        let deleted = self.images.delete(name, &DeleteParams::default()).await;
        deleted
            .map(drop)
            .with_context(|| format!("failed to give up the image {name}"))
    }

    /// Waits until the object of an image is gone, and with it the image.
    pub(super) async fn gone(&self, name: &str) -> Result<()> {
        let begin = Instant::now();
        while self
            .images
            .get_opt(name)
            .await
            .context("failed to read an image")?
            .is_some()
        {
            ensure!(begin.elapsed() < DEADLINE, "the image {name} does not go");
            sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    /// Fails when there is an image in the cloud. Every measure ends with this: a number is worth nothing when something was left behind for it.
    pub(super) async fn is_empty(&self) -> Result<()> {
        let left = self.cloud.images().await?;
        let names: Vec<_> = left.iter().filter_map(|image| image["name"].as_str()).collect();
        ensure!(
            left.is_empty(),
            "these images are left in the cloud: {}",
            names.join(", ")
        );
        Ok(())
    }

    /// How long Glance took for the bytes of an image, in seconds, by its own account. Each element is a PUT.
    pub(super) fn puts(&self, id: &str) -> Result<Vec<f64>> {
        let path = format!("/v2/images/{id}/file");
        let asked = self.real.asked_of_glance()?;
        let puts = asked.iter().filter(|asked| asked.method == "PUT" && asked.path == path);
        Ok(puts.map(|put| put.took.as_secs_f64()).collect())
    }
}

/// A disk of so many bytes.
pub(super) fn disk_of(bytes: usize) -> Bytes {
    let mut disk = disk::raw(1, bytes);
    disk[..BOOT.len()].copy_from_slice(&BOOT);
    disk.into()
}
