//! Where one test happens: a journey, a project, a proxy before its cloud, a source of files, and a provider operator that knows the cloud by the proxy
//! alone.

mod cloud;
mod releases;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crds::{
    conditions::ConditionStatus,
    labels,
    providers::{image_status::NodeImageStatus, openstack::OpenStackNodeImageRelease},
};
use openstack_lab::{
    Limits, Login, Site, disk,
    facts::Visitor,
    fake::Fake,
    proxy::Proxy,
    real::{Installed, Real, RealOptions},
    source::{Article, Source},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use self::{
    cloud::Cloud,
    releases::{IMAGE, IMAGE_OBJECT, tag},
};
use crate::{
    Ended, Journey, Operator, eventually, journey,
    journey::SOON,
    planted::Planted,
    provider_operator::{Destination, ProviderOptions},
};

/// Group and version of the kinds.
pub const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1alpha1";
/// The Secret that all objects name.
pub const SECRET: &str = "cloud";
/// The cloud that a project of its own is known by.
const OPENSTACK: &str = "openstack";
/// Where the source has the disk of a test that needs but one.
pub const DISK: &str = "/disk.qcow2";

/// The services that all tests of the program share, but for those that kill them. They end with it.
static REAL: OnceCell<Real> = OnceCell::const_new();
/// Those in which projects have limits. What Glance asks for these is most of what Keystone has to do.
static LIMITED: OnceCell<Real> = OnceCell::const_new();

async fn real() -> Result<Option<&'static Real>> {
    shared(&REAL, &without_limits()).await
}

async fn limited() -> Result<Option<&'static Real>> {
    shared(&LIMITED, &RealOptions::default()).await
}

fn without_limits() -> RealOptions {
    RealOptions {
        limits: false,
        ..RealOptions::default()
    }
}

async fn shared(of_all: &'static OnceCell<Real>, options: &RealOptions) -> Result<Option<&'static Real>> {
    let Some(installed) = Installed::find()? else {
        return Ok(None);
    };
    let real = of_all.get_or_try_init(|| Real::start(&installed, options)).await?;
    Ok(Some(real))
}

/// What an act leaves in the cloud: the ids of all images that the operator owns in its project then.
pub type Left = Vec<String>;

/// Plays an act in a project of the real services. Nothing happens where this machine cannot have them, which is said.
pub fn on_stage(act: impl AsyncFnOnce(&mut Stage<'_>) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let Some(real) = real().await? else {
            return Ok(());
        };
        let site = real.project(&journey.namespace).await?;
        Stage::play(journey, &site, OPENSTACK, act).await
    })
}

/// The same in a project that may hold no more than this.
pub fn on_a_narrow_stage(limits: Limits, act: impl AsyncFnOnce(&mut Stage<'_>) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let Some(real) = limited().await? else {
            return Ok(());
        };
        let site = real.project(&journey.namespace).await?;
        real.limit(&journey.namespace, limits).await?;
        Stage::play(journey, &site, OPENSTACK, act).await
    })
}

/// The same by a credential that is good for some calls alone: a list of access rules of Keystone.
pub fn on_a_stage_for(rules: &Value, act: impl AsyncFnOnce(&mut Stage<'_>) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let Some(real) = real().await? else {
            return Ok(());
        };
        let site = real.project_for(&journey.namespace, Some(rules)).await?;
        Stage::play(journey, &site, OPENSTACK, act).await
    })
}

/// The same with services of its own, which the act may kill.
pub fn on_a_stage_that_may_fall(act: impl AsyncFnOnce(&mut Stage<'_>, &mut Real) -> Result<Left>) -> Result<()> {
    on_a_stage_of_its_own(&without_limits(), None, act)
}

/// The same with services that are so, by a credential that is good for some calls alone where there are rules for it.
pub fn on_a_stage_of_its_own(
    options: &RealOptions,
    rules: Option<&Value>,
    act: impl AsyncFnOnce(&mut Stage<'_>, &mut Real) -> Result<Left>,
) -> Result<()> {
    journey::journey(async |journey| {
        let Some(installed) = Installed::find()? else {
            return Ok(());
        };
        let mut real = Real::start(&installed, options).await?;
        let site = real.project_for(&journey.namespace, rules).await?;
        let act = async |stage: &mut Stage<'_>| act(stage, &mut real).await;
        Stage::play(journey, &site, OPENSTACK, act).await
    })
}

/// The same with both operators, of which the core operator runs already.
pub fn on_stage_with_both(act: impl AsyncFnOnce(&mut Stage<'_>) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let Some(real) = real().await? else {
            return Ok(());
        };
        let site = real.project(&journey.namespace).await?;
        journey.operate().await?;
        Stage::play(journey, &site, OPENSTACK, act).await
    })
}

/// The same as one of those who may log in to the real services with limits; his project is not for the act alone.
pub fn on_stage_as(who: &str, act: impl AsyncFnOnce(&mut Stage<'_>) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let Some(real) = limited().await? else {
            return Ok(());
        };
        Stage::play(journey, real.site(), who, act).await
    })
}

/// The same as somebody who may look at his project and no more; the act is told of a site that a member of it knows.
pub fn on_a_stage_of_a_reader(act: impl AsyncFnOnce(&mut Stage<'_>, &Site) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let Some(real) = real().await? else {
            return Ok(());
        };
        let known = real.project(&journey.namespace).await?;
        let reader = real.reader(&journey.namespace).await?;
        let site = Site {
            clouds: BTreeMap::from([(OPENSTACK.to_owned(), reader)]),
            ..known.clone()
        };
        let act = async |stage: &mut Stage<'_>| act(stage, &known).await;
        Stage::play(journey, &site, OPENSTACK, act).await
    })
}

/// The same on a fake.
pub fn on_a_fake(act: impl AsyncFnOnce(&mut Stage<'_>, &Fake) -> Result<Left>) -> Result<()> {
    journey::journey(async |journey| {
        let fake = Fake::start(openstack_lab::fake::FakeOptions::default()).await?;
        let act = async |stage: &mut Stage<'_>| act(stage, &fake).await;
        Stage::play(journey, fake.site(), OPENSTACK, act).await
    })
}

/// A small disk of the format that objects ask for; another one for each seed.
pub fn small(seed: u64) -> Vec<u8> {
    disk::qcow2_of(seed, 8 << 20, 256 << 10)
}

/// Where a test happens.
pub struct Stage<'a> {
    /// The journey.
    pub journey: &'a Journey,
    /// What stands before the cloud.
    pub proxy: Proxy,
    /// Where the bytes come from.
    pub source: Source,
    /// The project, not by way of the proxy.
    pub cloud: Cloud<'a>,
    site: &'a Site,
    operator: Option<Operator>,
    /// What the cloud is shown to log in.
    secret: String,
    /// What nobody may read anywhere.
    planted: Planted,
}

impl<'a> Stage<'a> {
    async fn play(
        journey: &'a Journey,
        site: &'a Site,
        who: &str,
        act: impl AsyncFnOnce(&mut Stage<'_>) -> Result<Left>,
    ) -> Result<()> {
        let visitor = Visitor::new(site).await?;
        let login = site.clouds.get(who).context("nobody of this name may log in")?;
        let secret = match login {
            Login::Password { password, .. } => password.clone(),
            Login::ApplicationCredential { secret, .. } => secret.clone(),
        };
        let mut planted = Planted::default();
        planted.plant(&secret);
        let mut stage = Stage {
            journey,
            proxy: Proxy::start(site).await?,
            source: Source::start().await?,
            cloud: Cloud(visitor.tenant(who).await?),
            site,
            operator: None,
            secret,
            planted,
        };
        let known = Site {
            clouds: BTreeMap::from([(who.to_owned(), login.clone())]),
            ..stage.proxy.site().clone()
        };
        stage.know(&known, who).await?;
        let left = act(&mut stage).await?;
        // Logged in anew, because some acts end what tokens are good for.
        Cloud(visitor.tenant(who).await?).holds(&left).await?;
        stage.nothing_secret_was_logged()
    }

    /// The cloud as it is without a proxy.
    pub fn site(&self) -> &Site {
        self.site
    }

    /// Writes the Secret.
    async fn know(&self, site: &Site, who: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET },
            "stringData": { "clouds.yaml": site.clouds_yaml(None), "cloudName": who },
        });
        self.journey.apply(secret).await.map(drop)
    }

    /// Starts the operator and returns when it is ready.
    pub async fn operate(&mut self) -> Result<()> {
        self.operate_with(&[]).await
    }

    /// The same with further flags.
    pub async fn operate_with(&mut self, flags: &[&str]) -> Result<()> {
        let operator = self.options(flags).await?.start(self.journey.lab())?;
        self.operator.insert(operator).ready().await
    }

    /// How an operator of this stage is started with these flags, for whoever looks after it himself.
    pub async fn options(&self, flags: &[&str]) -> Result<ProviderOptions> {
        let mut options = ProviderOptions::of(self.journey, Destination::OpenStack).await?;
        options.flags.extend(flags.iter().map(OsString::from));
        Ok(options)
    }

    /// The running operator.
    pub fn operator(&mut self) -> Result<&mut Operator> {
        self.operator.as_mut().context("no operator runs")
    }

    /// Asks the operator to end, as Kubernetes does, and returns how it ended; fails if that takes longer.
    pub async fn stop_within(&mut self, deadline: Duration) -> Result<Ended> {
        let operator = self.operator.take().context("no operator runs")?;
        operator.stop_within(deadline).await
    }

    /// Kills the operator between two instructions.
    pub async fn kill(&mut self) -> Result<()> {
        self.operator.take().context("no operator runs")?.kill().await
    }

    /// Has the source give this disk at [`DISK`], and an object ask for it that is named like its image.
    pub async fn want_disk(&self, name: &str, disk: &[u8]) -> Result<()> {
        self.source.put(DISK, Article::of(disk.to_vec()));
        self.want(name, DISK, json!({})).await
    }

    /// Applies an object that asks for the image at a path of the source. `changes` are merged into its spec.
    pub async fn want(&self, name: &str, path: &str, changes: Value) -> Result<()> {
        let mut spec = json!({
            "identityRef": { "kind": "Secret", "name": SECRET },
            "image": {
                "url": self.source.url(path),
                "createOpts": { "name": name, "disk_format": "qcow2", "container_format": "bare" },
            },
        });
        merge(&mut spec, changes);
        let object = json!({
            "apiVersion": API_VERSION, "kind": "OpenStackNodeImageRelease",
            "metadata": { "name": name }, "spec": spec,
        });
        self.journey.apply(object).await.map(drop)
    }

    /// The status of an image as it is.
    pub async fn status(&self, name: &str) -> Result<NodeImageStatus> {
        let object = self.journey.api::<OpenStackNodeImageRelease>().get(name).await?;
        object.status.context("it has no status yet")
    }

    /// Waits until the status of an image is so, and is about its spec as it stands.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&NodeImageStatus) -> bool,
    ) -> Result<NodeImageStatus> {
        let object = self
            .journey
            .until(name, what, |object: &OpenStackNodeImageRelease| {
                let status = object.status.as_ref();
                let is_current = |status: &&NodeImageStatus| status.observed_generation == object.metadata.generation;
                status.filter(is_current).is_some_and(&holds)
            })
            .await?;
        object.status.context("a status")
    }

    /// Waits until the image is there and shown; the answer is its status.
    pub async fn ready(&self, name: &str) -> Result<NodeImageStatus> {
        self.until(name, "ready", |status| status.ready).await
    }

    /// The same, and its id in the cloud.
    pub async fn id(&self, name: &str) -> Result<String> {
        let status = self.ready(name).await?;
        Ok(status.image.context("a ready image has an id")?.id)
    }

    /// Waits until it is not ready, for this reason.
    pub async fn not_ready(&self, name: &str, reason: &str) -> Result<NodeImageStatus> {
        let is_told = |status: &NodeImageStatus| !status.ready && reason_of(status).as_deref() == Some(reason);
        self.until(name, reason, is_told).await
    }

    /// Asks for another look now, as a user does who does not want to wait ten minutes.
    pub async fn look_again(&self, name: &str, request: &str) -> Result<()> {
        let journey = self.journey;
        journey
            .annotate::<OpenStackNodeImageRelease>(name, labels::REQUESTED_AT, Some(request))
            .await
    }

    /// The same, and returns when the request was handled.
    pub async fn looked_again(&self, name: &str, request: &str) -> Result<NodeImageStatus> {
        self.look_again(name, request).await?;
        let is_handled = |status: &NodeImageStatus| status.last_handled_reconcile_at.as_deref() == Some(request);
        self.until(name, "looked at again", is_handled).await
    }

    /// Deletes an object, and returns when it is gone.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.journey.delete::<OpenStackNodeImageRelease>(name).await?;
        self.journey.gone::<OpenStackNodeImageRelease>(name).await
    }

    /// Waits until the proxy has seen so many requests meet their trouble.
    pub async fn met(&self, count: usize) -> Result<()> {
        eventually(SOON, format!("{count} requests in trouble"), async || {
            let met = self.proxy.met();
            ensure!(met >= count, "{met} are: {:?}", self.proxy.passed());
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until somebody has begun so often to read a path of the source.
    pub async fn reads(&self, path: &str, count: usize) -> Result<()> {
        eventually(SOON, format!("{path} to be read {count} times"), async || {
            let reads = self.source.reads(path);
            ensure!(reads >= count, "it was {reads} times: {:?}", self.source.visits());
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// No image of the operator's is active now but at most those of these names.
    pub async fn is_active(&self, names: &[&str]) -> Result<()> {
        let images = self.cloud.images().await?;
        let is_foul = |image: &&Value| image["status"] == "active" && !names.iter().any(|name| image["name"] == *name);
        let foul: Vec<_> = images.iter().filter(is_foul).collect();
        ensure!(foul.is_empty(), "{foul:?}");
        Ok(())
    }

    /// Has an image of the services that tests share be older by so much than it is.
    pub async fn age(&self, id: &str, by: Duration) -> Result<()> {
        let real = REAL.get().context("this test has services of its own")?;
        real.age(id, by).await
    }

    /// What the cloud is shown to log in.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Nobody may read this anywhere, either.
    pub fn keep_secret(&mut self, secret: &str) {
        self.planted.plant(secret);
    }

    /// None of a text tells anything that nobody may read, in whatever form.
    pub fn tells_no_secret(&self, text: &str) -> Result<()> {
        let told = self.planted.told_in(text);
        ensure!(told.is_none(), "a secret is told: {told:?}");
        Ok(())
    }

    /// Neither the credentials nor what they were exchanged for, whoever logged.
    fn nothing_secret_was_logged(&self) -> Result<()> {
        let mut logs = Vec::new();
        find_logs(self.journey.folder(), &mut logs)?;
        ensure!(!logs.is_empty(), "nobody logged anything");
        for path in logs {
            let log = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            let told = self.tells_no_secret(&String::from_utf8_lossy(&log));
            told.with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// All logs below a folder.
fn find_logs(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = || format!("failed to list {}", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(unreadable)?);
        if kind.is_dir() {
            find_logs(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "log") {
            found.push(path);
        }
    }
    Ok(())
}

/// Why it is ready or not.
pub fn reason_of(status: &NodeImageStatus) -> Option<String> {
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready")?;
    ready.reason.clone()
}

/// What the Ready condition says.
pub fn message_of(status: &NodeImageStatus) -> String {
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    ready.and_then(|ready| ready.message.clone()).unwrap_or_default()
}

/// Whether a condition of this type is True.
pub fn holds(status: &NodeImageStatus, type_: &str) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|condition| condition.type_ == type_ && condition.status == ConditionStatus::True)
}

/// Puts members of one object into another, down to the innermost.
fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(into.entry(key).or_insert(Value::Null), change);
            }
        }
        (into, change) => *into = change,
    }
}
