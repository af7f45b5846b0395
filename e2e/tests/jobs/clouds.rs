//! Images that come by Jobs into a real Keystone and a real Glance. A proxy that Pods reach stands before these, and has them fail where a test says so.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::{eventually, planted::Planted};
use futures::future::try_join_all;
use http::{Method, StatusCode};
use k8s_openapi::api::{
    core::v1::{Pod, Secret},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, PostParams},
};
use openstack_lab::{
    Login, Site,
    client::whole,
    disk,
    facts::Visitor,
    proxy::{Passed, Proxy, Trouble},
    real::{Installed, Real, RealOptions},
    source::{Article, Source},
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::{
    everywhere,
    place::{PATIENCE, Place, SHARED, Wish},
};

/// The services that all tests of the program share. They end with it.
static REAL: OnceCell<Real> = OnceCell::const_new();

/// Keystone that makes several projects at once refuses credentials for roles that it has just assigned.
static ONE_BY_ONE: Mutex<()> = Mutex::const_new(());

const KIND: &str = "OpenStackNodeImageRelease";
/// Where the source has the disk.
const DISK: &str = "/disk.qcow2";
/// The Secret with the way into the cloud.
const IDENTITY: &str = "cloud";
/// What is in another Secret of the namespace, which no Job needs.
const OTHER: &str = "nobody-needs-to-know-this";

/// A project of the real services, what stands before it, and a source of files; `None` where this machine cannot have them, which is said.
pub(crate) struct Scene<'a> {
    place: &'a Place,
    site: Site,
    proxy: Proxy,
    pub(crate) source: Source,
    /// What nobody may read anywhere.
    planted: Planted,
}

impl<'a> Scene<'a> {
    pub(crate) async fn set(place: &'a Place, name: &str) -> Result<Option<Self>> {
        let Some(installed) = Installed::find()? else {
            return Ok(None);
        };
        let options = RealOptions {
            limits: false,
            ..RealOptions::default()
        };
        let real = REAL.get_or_try_init(|| Real::start(&installed, &options)).await?;
        let host = place.kubelet.host();
        // Each kubelet has an address of its own.
        let turn = ONE_BY_ONE.lock().await;
        let site = real
            .project(&format!("{name}-{}", host.to_string().replace('.', "-")))
            .await?;
        drop(turn);
        let Some(Login::ApplicationCredential { secret, .. }) = site.clouds.get("openstack") else {
            anyhow::bail!("a project has an application credential");
        };
        let mut planted = Planted::default();
        planted.plant(secret);
        planted.plant(OTHER);
        let proxy = Proxy::start_at(&site, host).await?;
        let source = Source::start_at(host).await?;
        Ok(Some(Self {
            place,
            site,
            proxy,
            source,
            planted,
        }))
    }

    /// An image that is sent from the source; standing still in its middle where `is_held`.
    async fn wish(&self, name: &'static str, is_held: bool) -> Result<Wish<'a>> {
        self.wish_for(SHARED, name, is_held).await
    }

    /// The same that those operators look after who were started for this label.
    pub(crate) async fn wish_for(&self, label: &str, name: &'static str, is_held: bool) -> Result<Wish<'a>> {
        let file = disk();
        let article = Article::of(file.clone());
        let article = if is_held {
            article.held_at(file.len() / 2)
        } else {
            article
        };
        self.source.put(DISK, article);
        let spec = json!({
            "identityRef": { "kind": "Secret", "name": IDENTITY }, "execution": "Job",
            "image": {
                "url": self.source.url(DISK),
                "createOpts": { "name": name, "disk_format": "qcow2", "container_format": "bare" },
            },
        });
        let wish = self.place.object_for(label, name, KIND, spec, false).await?;
        let secrets: Api<Secret> = Api::namespaced(self.place.client.clone(), name);
        for (name, data) in [
            (IDENTITY, json!({ "clouds.yaml": self.proxy.site().clouds_yaml(None) })),
            ("other", json!({ "password": OTHER })),
        ] {
            let secret = json!({ "metadata": { "name": name }, "stringData": data });
            secrets
                .create(&PostParams::default(), &serde_json::from_value(secret)?)
                .await?;
        }
        Ok(wish)
    }

    /// Waits until exactly these images are the operator's in the project.
    pub(crate) async fn holds(&self, expected: &[&str]) -> Result<()> {
        let visitor = Visitor::new(&self.site).await?;
        let member = visitor.tenant("openstack").await?;
        let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        eventually(PATIENCE, "the project to hold exactly what is expected", async || {
            let mut owned = BTreeSet::new();
            for hidden in ["true", "false"] {
                let path = format!("/images?owner={}&os_hidden={hidden}&limit=1000", member.project);
                let page = member.call(Method::GET, &path, None, whole("")).await?.json()?;
                let images = page["images"].as_array().context("a list without images")?;
                let ours = images.iter().filter(|image| image["cs_owner"].is_string());
                owned.extend(ours.filter_map(|image| Some(image["id"].as_str()?.to_owned())));
            }
            ensure!(owned == expected, "{owned:?} are owned instead of {expected:?}");
            anyhow::Ok(())
        })
        .await
    }

    /// How often all of an image was sent.
    pub(crate) fn sent(&self) -> usize {
        let is_sent =
            |passed: &&Passed| passed.method == Method::PUT && passed.status.is_some_and(|status| status.is_success());
        self.proxy.passed().iter().filter(is_sent).count()
    }

    /// Neither the credentials nor a token are told anywhere but in the Secret.
    async fn tells_no_secret(&self, wish: &Wish<'_>) -> Result<()> {
        let (client, name) = (self.place.client.clone(), wish.name);
        let events: Api<Event> = Api::namespaced(client.clone(), name);
        let mut told = vec![
            ("the object", serde_json::to_string(&wish.api.get(name).await?)?),
            ("Jobs", serde_json::to_string(&wish.jobs().await?)?),
            ("Pods", serde_json::to_string(&wish.pods().await?)?),
            (
                "events",
                serde_json::to_string(&events.list(&ListParams::default()).await?.items)?,
            ),
            ("the log of the operator", self.place.log()?),
            ("the metrics of the operator", self.place.metrics().await?),
        ];
        // One that fails is followed by another one, and goes with its Job.
        let logs = eventually(PATIENCE, "the logs of all programs that are there", async || {
            let mut logs = Vec::new();
            for pod in wish.pods().await? {
                let log = self.place.kubelet.logs(name, &pod.name_any(), "worker").await?;
                ensure!(log.contains("begins"), "the log of the program: {log}");
                logs.push(log);
            }
            anyhow::Ok(logs)
        });
        told.extend(logs.await?.into_iter().map(|log| ("the log of the program", log)));
        for (where_, text) in told {
            let told = self.planted.told_in(&text);
            ensure!(told.is_none(), "{where_} tell a secret: {told:?}");
        }
        Ok(())
    }
}

/// What a Pod sees of Secrets: mounted, in its environment.
fn secrets_of(pod: &Pod) -> Result<Vec<String>> {
    let pod = serde_json::to_value(pod)?;
    let volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    let mounted = volumes.iter().filter(|volume| !volume["secret"].is_null());
    let mounted = mounted.map(|volume| volume["secret"]["secretName"].as_str().unwrap_or_default().to_owned());
    let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let from_elsewhere = containers.iter().any(|container| {
        let has = |field: &str| container.pointer(field).is_some_and(|value| !value.is_null());
        let env = container["env"].as_array().cloned().unwrap_or_default();
        has("/envFrom") || env.iter().any(|variable| !variable["valueFrom"].is_null())
    });
    ensure!(!from_elsewhere, "a container has its environment from elsewhere");
    Ok(mounted.collect())
}

/// The managers of what is told of the transfer, each with what else it has of the object.
fn managers_of_transfer(object: &DynamicObject) -> Vec<(String, Vec<String>)> {
    let fields = object.metadata.managed_fields.iter().flatten();
    let of_transfer = fields.filter_map(|entry| {
        let fields = &entry.fields_v1.as_ref()?.0;
        fields.pointer("/f:status/f:transfer")?;
        let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
        let all = [keys(fields)?, keys(&fields["f:status"])?].concat();
        Some((entry.manager.clone().unwrap_or_default(), all))
    });
    of_transfer.collect()
}

#[test]
fn an_image_comes_into_a_real_cloud_by_a_job_and_nothing_secret_is_told() -> Result<()> {
    everywhere(async |place| {
        let Some(scene) = Scene::set(place, "arrives").await? else {
            return Ok(());
        };
        let wish = scene.wish("arrives", true).await?;
        let half = wish.moves().await?;
        ensure!(half["execution"]["form"] == "Job", "{half:#}");
        let managers = managers_of_transfer(&wish.api.get("arrives").await?);
        let narrow = ["f:status", "f:transfer"].map(str::to_owned).to_vec();
        ensure!(
            managers == [("stackwright-progress".to_owned(), narrow)],
            "{managers:?}"
        );
        for pod in wish.pods().await? {
            ensure!(secrets_of(&pod)? == [IDENTITY], "{:?}", secrets_of(&pod)?);
        }
        scene.source.let_go();
        let status = wish.ready().await?;
        wish.ended_with("worker", 0).await?;
        scene.tells_no_secret(&wish).await?;
        let verified = status["conditions"].as_array().context("conditions")?;
        let verified = verified.iter().find(|condition| condition["type"] == "Verified");
        ensure!(
            verified.is_some_and(|condition| condition["status"] == "True"),
            "{status:#}"
        );
        scene.holds(&[status["image"]["id"].as_str().context("an id")?]).await?;
        let file = disk();
        let sha256 = openstack_lab::source::sha256(&file);
        ensure!(status["transfer"]["sealed"].to_string().contains(&sha256), "{status:#}");
        wish.delete().await?;
        scene.holds(&[]).await
    })
}

#[test]
fn what_is_cancelled_on_its_way_into_a_real_cloud_leaves_it_clean() -> Result<()> {
    everywhere(async |place| {
        let Some(scene) = Scene::set(place, "leaves").await? else {
            return Ok(());
        };
        let wish = scene.wish("leaves", true).await?;
        wish.moves().await?;
        wish.delete().await?;
        scene.holds(&[]).await
    })
}

#[test]
fn a_job_is_given_no_secret_of_a_source_and_says_so() -> Result<()> {
    everywhere(async |place| {
        let Some(scene) = Scene::set(place, "guarded").await? else {
            return Ok(());
        };
        let wish = scene.wish("guarded", false).await?;
        wish.ready().await?;
        let guarded = json!({ "spec": { "image": { "credentialsSecretRef": { "name": "other" } } } });
        wish.patch(&guarded).await?;
        let is_refused = |status: &Value| {
            status["conditions"]
                .to_string()
                .contains("a Job is given the Secret of the cloud and no other")
        };
        wish.until("the spec to be refused", is_refused).await?;
        wish.delete().await?;
        scene.holds(&[]).await
    })
}

/// How the program of a Job ends when its cloud answers so, and what is made of it.
async fn ends(place: &Place, name: &'static str, trouble: Trouble, code: i32, reason: &str) -> Result<()> {
    let Some(scene) = Scene::set(place, name).await? else {
        return Ok(());
    };
    // Each time: a program that has failed is followed by another one within a second.
    scene.proxy.meet(Method::PUT, "/file", usize::MAX, trouble);
    let wish = scene.wish(name, false).await?;
    wish.ended_with("worker", code).await?;
    let has_reason = |status: &Value| status["lastFailure"]["reason"] == reason;
    wish.until(&format!("a failure for the reason {reason}"), has_reason)
        .await?;
    scene.tells_no_secret(&wish).await?;
    wish.delete().await?;
    scene.holds(&[]).await
}

#[test]
fn each_way_in_which_a_cloud_refuses_has_its_code_and_is_understood() -> Result<()> {
    let answer = |status| Trouble::answer(status, &[], "no");
    everywhere(async |place| {
        let all = vec![
            ends(
                place,
                "busy",
                answer(StatusCode::SERVICE_UNAVAILABLE),
                69,
                "CloudUnavailable",
            ),
            ends(
                place,
                "full",
                answer(StatusCode::PAYLOAD_TOO_LARGE),
                73,
                "QuotaExceeded",
            ),
            ends(place, "cut", Trouble::CutRequest(64 * 1024), 75, "Progressing"),
            ends(
                place,
                "forbidden",
                answer(StatusCode::FORBIDDEN),
                77,
                "PermissionDenied",
            ),
        ];
        try_join_all(all).await.map(drop)
    })
}

/// A disk that is sent in several pieces.
fn disk() -> Vec<u8> {
    disk::qcow2_of(7, 16 << 20, 8 << 20)
}
