//! What every course here stands on, and the steps that many of them take.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{StagePhase, name_for},
    events::Happening,
    labels,
};
use e2e::{
    ControlPlane, Journey, Metrics, Operator, Options,
    audit::{AuditEvents, Mark},
    cluster_api::Release,
    eventually,
    hooks::{Hook, Recorder},
    journey::{SOON, journey},
    kwok::Kwok,
    lab::workspace,
    shim::{PlayedCluster, Workload},
    storm::rules,
    webhooks::Certificates,
};
use futures::FutureExt;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    management::Management,
    stack::{self, Expected},
};

pub(crate) const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta1";
/// The Cluster of each course.
pub(crate) const CLUSTER: &str = "web";
/// How the operator calls itself at every API server.
pub(crate) const OPERATOR: &str = "stackwright-core-operator";
/// The API servers of workload clusters are on this machine here.
const LOOPBACK: &str = "--allow-workload-loopback";

/// Where workload clusters are. Dropped, they are gone.
pub(crate) struct Ground {
    management: Arc<Management>,
    kwok: Option<Kwok>,
    pub(crate) workload: ControlPlane,
    /// Which Cluster API.
    pub(crate) release: Release,
    /// The namespace of the Cluster.
    pub(crate) home: String,
    /// In the audit log of the workload cluster, before there was anything of ours.
    begun: Mark,
}

/// Runs one course in a namespace of its own, with Cluster API of this minor, the shim and our operator, which Cluster API asks. A minor that is not among
/// those [`for journeys`](Release::for_journeys) is passed over.
pub(crate) fn course(release: Release, run: impl AsyncFnOnce(&mut Journey, &mut Ground) -> Result<()>) -> Result<()> {
    course_of(Scope::One, release, run)
}

/// Runs one course on the newest minor, or on one after the other when the run is one on everything.
pub(crate) fn on_the_newest(run: impl AsyncFn(&mut Journey, &mut Ground) -> Result<()>) -> Result<()> {
    each_of_run(move |release| course(release, &run))
}

/// The same for what is a course of its own on each minor.
pub(crate) fn each_of_run(run: impl Fn(Release) -> Result<()>) -> Result<()> {
    let mut releases = Release::newest_of_run().into_iter();
    releases.try_for_each(|release| run(release).with_context(|| release.to_string()))
}

/// What the operator looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The namespace of the journey: other courses may use the same control plane.
    One,
    /// Everything.
    All,
}

/// The same with an operator that looks after more.
pub(crate) fn course_of(
    scope: Scope,
    release: Release,
    run: impl AsyncFnOnce(&mut Journey, &mut Ground) -> Result<()>,
) -> Result<()> {
    if !Release::for_journeys().contains(&release) && !Release::is_run_on_everything_or_told() {
        return Ok(());
    }
    journey(async |here| {
        let management = match scope {
            Scope::One => Management::shared(release).await?,
            Scope::All => Arc::new(Management::start(release).await?),
        };
        let control_plane = Arc::clone(&management.control_plane);
        here.on(control_plane, async |journey| {
            if scope == Scope::All {
                journey.options.namespace.clear();
            }
            let begun = journey.mark().await?;
            let mut ground = Ground::prepare(journey, Arc::clone(&management)).await?;
            // Others go on in the same control plane: what panics has to be cleared away, too.
            let ended = AssertUnwindSafe(run(journey, &mut ground)).catch_unwind().await;
            if !matches!(ended, Ok(Ok(()))) {
                ground.dump(journey).await;
            }
            let troubles = ground.troubles();
            let left = management.leave(journey, &ground.home).await;
            let ended = ended.unwrap_or_else(|panic| resume_unwind(panic));
            ended.with_context(|| format!("{troubles:#?}"))?;
            rules::conditions(&journey.requests_since(begun).await?)?;
            left
        })
        .await
    })
}

impl Ground {
    async fn prepare(journey: &mut Journey, management: Arc<Management>) -> Result<Self> {
        let options = Options {
            workloads: true,
            certificates: true,
            ..Options::default()
        };
        let workload = ControlPlane::start(options).await?;
        let kwok = Kwok::start(&workload).await?;
        let served = Workload::at(workload.access()).await?;
        management.shim.serve(&journey.namespace, &served);
        operate(journey).await?;
        Ok(Self {
            kwok: Some(kwok),
            begun: workload.audit_log().mark().await?,
            home: journey.namespace.clone(),
            workload,
            release: management.release,
            management,
        })
    }

    /// Leaves what there is of both clusters to look at: what a journey leaves by itself is the one that it shares with others.
    async fn dump(&self, journey: &Journey) {
        let place = format!("target/e2e-failures/addons/{}", journey.namespace);
        let place = workspace().join(place);
        for (name, control_plane) in [("management", journey.control_plane()), ("workload", &self.workload)] {
            let dump = control_plane.failure_dump().with_logs(journey.folder());
            if let Err(error) = dump.write(&place.join(name)).await {
                eprintln!("failed to dump the {name} cluster: {error:#}");
            }
            dump.call_off();
        }
        eprintln!("both clusters are in {}", place.display());
    }

    /// The Cluster is to be in this namespace, and not in that of the journey.
    pub(crate) async fn settle_in(&mut self, namespace: String) -> Result<()> {
        let served = Workload::at(self.workload.access()).await?;
        self.management.shim.serve(&namespace, &served);
        self.home = namespace;
        Ok(())
    }

    /// Why the shim failed at the Clusters here when it looked last.
    fn troubles(&self) -> Vec<String> {
        let troubles = self.management.shim.troubles().into_iter();
        let here = troubles.filter(|((namespace, _), _)| *namespace == self.home);
        here.map(|((_, name), trouble)| format!("{name}: {trouble}")).collect()
    }

    /// The Cluster, as the test directs what the providers do with it.
    pub(crate) fn web(&self) -> PlayedCluster {
        self.management.shim.cluster(&self.home, CLUSTER)
    }

    /// From now on no Pod becomes ready.
    pub(crate) fn without_kubelets(&mut self) {
        self.kwok = None;
    }

    /// Pods become ready again.
    pub(crate) async fn with_kubelets(&mut self) -> Result<()> {
        self.kwok = Some(Kwok::start(&self.workload).await?);
        Ok(())
    }

    /// Waits until the Cluster has all that this version of the stack brings, marked, told row by row, and nothing else of ours; the answer is its ClusterAddon.
    pub(crate) async fn complete(&self, journey: &Journey, class: &str, version: &str) -> Result<ClusterAddon> {
        self.complete_with(journey, class, version, &stack::expected(version))
            .await
    }

    /// The same for a version that brings something else.
    pub(crate) async fn complete_with(
        &self,
        journey: &Journey,
        class: &str,
        version: &str,
        wanted: &[Expected],
    ) -> Result<ClusterAddon> {
        let api: Api<ClusterAddon> = Api::namespaced(journey.client.clone(), &self.home);
        eventually(SOON, format!("the add-ons of {version} to be complete"), async || {
            let addon = api.get(&name_for(CLUSTER)).await?;
            let told = status(&addon);
            ensure!(told.ready, "not ready: {told:#?}");
            ensure!(told.applied == told.target, "{:?} of {:?}", told.applied, told.target);
            let applied = told.applied.clone().context("nothing is applied")?;
            ensure!(
                (applied.cluster_stack.as_str(), applied.version.as_str()) == (class, version),
                "{applied:?}"
            );
            let open = told.stages.iter().filter(|stage| stage.phase != StagePhase::Done);
            ensure!(open.count() == 0, "{:#?}", told.stages);
            stack::stands(&self.workload.client(), &self.home, wanted).await?;
            stack::is_told(&told, wanted)?;
            Ok(addon)
        })
        .await
    }

    /// What the operator wrote to both API servers between two looks at the ClusterAddon that it was asked for: nothing but the answers, once all is
    /// at rest.
    pub(crate) async fn looks_write_nothing(&self, journey: &Journey, words: &str) -> Result<()> {
        let mut attempts = 0..;
        let mut word = || format!("{words}-{}", attempts.next().unwrap_or_default());
        ensure!(
            !self.written_since(self.begun).await?.is_empty(),
            "it goes by another name"
        );
        ask(journey, &word()).await?;
        let mut last = String::new();
        for _ in 0..LOOKS {
            let here = journey.mark().await?;
            let there = self.workload.audit_log().mark().await?;
            ask(journey, &word()).await?;
            let here = journey.requests_since(here).await?.writes();
            let there = self.written_since(there).await?;
            if there.is_empty() && is_one_answer(&here) {
                return Ok(());
            }
            last = format!("{here:#?} {there:#?}");
        }
        anyhow::bail!("each of {LOOKS} looks wrote something, the last: {last}")
    }

    /// What the operator asked the API server of the workload cluster to change since then.
    pub(crate) async fn written_since(&self, mark: Mark) -> Result<Vec<String>> {
        let events = self.workload.audit_log().since(mark).await?.of_agent(OPERATOR).writes();
        Ok(events
            .iter()
            .map(|event| format!("{} {}", event.verb, event.request_uri))
            .collect())
    }
}

/// The name under which Cluster API knows the operator: it may know those of several journeys.
pub(crate) fn extension_of(journey: &Journey) -> &str {
    &journey.namespace
}

/// Starts the operator and returns when Cluster API, which runs, knows which hooks it answers.
pub(crate) async fn operate(journey: &mut Journey) -> Result<()> {
    let certificates = Certificates::at(&journey.folder().join("hooks"))?;
    journey.options.flags.extend(certificates.hook_flags());
    journey.options.flags.push(LOOPBACK.into());
    journey.operate().await?;
    let port = journey.operator()?.hook_port().await?;
    // An operator that is started again is asked under the same address.
    let flags = &mut journey.options.flags;
    flags.retain(|flag| !flag.to_string_lossy().starts_with("--hook-port"));
    flags.push(format!("--hook-port={port}").into());
    certificates
        .extend(&journey.client, extension_of(journey), port, &journey.namespace)
        .await?;
    Recorder::discovered(&journey.client, extension_of(journey))
        .await
        .map(drop)
}

/// How many looks may pass until all is at rest: Cluster API goes on writing to its objects for a while.
const LOOKS: usize = 20;

/// A look is answered by one write, of the status.
fn is_one_answer(writes: &AuditEvents) -> bool {
    let [answer] = &**writes else {
        return false;
    };
    let about = answer.object.clone().unwrap_or_default();
    (about.resource.as_str(), about.subresource.as_str()) == ("clusteraddons", "status")
}

/// Asks for a look at the ClusterAddon and returns when it was answered. No word is an answer twice.
pub(crate) async fn ask(journey: &Journey, word: &str) -> Result<()> {
    let name = name_for(CLUSTER);
    journey
        .annotate::<ClusterAddon>(&name, labels::REQUESTED_AT, Some(word))
        .await?;
    let answered = |addon: &ClusterAddon| status(addon).last_handled_reconcile_at.as_deref() == Some(word);
    journey.until(&name, "the request answered", answered).await.map(drop)
}

/// The status of a ClusterAddon, empty when it has none yet.
pub(crate) fn status(addon: &ClusterAddon) -> ClusterAddonStatus {
    addon.status.clone().unwrap_or_default()
}

/// The ClusterAddon of the Cluster, once it is so.
pub(crate) async fn until_addon(
    journey: &Journey,
    what: &str,
    holds: impl Fn(&ClusterAddonStatus) -> bool,
) -> Result<ClusterAddon> {
    let is_so = |addon: &ClusterAddon| holds(&status(addon));
    journey.until(&name_for(CLUSTER), what, is_so).await
}

/// Waits until events on the ClusterAddon tell of these.
pub(crate) async fn is_told_of(journey: &Journey, addon: &ClusterAddon, happenings: &[Happening]) -> Result<()> {
    for happening in happenings {
        let word = happening.to_string();
        eventually(SOON, format!("an event {word}"), async || {
            let told = journey.events_of(addon).await?;
            ensure!(told.iter().any(|(_, reason, _)| *reason == word), "{told:#?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Names and phases of the stages, in order.
pub(crate) fn phases(status: &ClusterAddonStatus) -> Vec<(&str, StagePhase)> {
    let stages = status.stages.iter();
    stages.map(|stage| (stage.name.as_str(), stage.phase)).collect()
}

/// A version of the stack as a class, made of this source; the answer is its name.
pub(crate) async fn class(journey: &mut Journey, source: &str, version: &str) -> Result<String> {
    let tag = journey.releases.publish_quay(source, version)?;
    release_of(journey, &tag, source, version).await?;
    Ok(tag)
}

/// Subscribes to a version that is published, and waits until its class can be used.
pub(crate) async fn release_of(journey: &Journey, tag: &str, source: &str, version: &str) -> Result<()> {
    subscribe(journey, ("shim", "quay"), tag, (source, version)).await
}

/// The same for a stack of this provider and name.
pub(crate) async fn subscribe(
    journey: &Journey,
    (provider, name): (&str, &str),
    tag: &str,
    (source, version): (&str, &str),
) -> Result<()> {
    let minor = if source == "v1" { "1.34" } else { "1.35" };
    let spec = json!({ "provider": provider, "name": name, "kubernetesVersion": minor, "versions": [version] });
    journey.stack(&format!("{name}-{version}"), spec).await?;
    journey.release_ready(tag).await.map(drop)
}

/// Gives the Cluster another class and another Kubernetes version, in one step. Cluster API 1.10 takes no other version until all workers have the last one.
pub(crate) async fn set_topology(journey: &Journey, class: &str, kubernetes: &str) -> Result<()> {
    let topology = json!({ "spec": { "topology": { "class": class, "version": kubernetes } } });
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    let (how, what) = (PatchParams::default(), Patch::Merge(topology));
    eventually(SOON, "Cluster API to take the change of the Cluster", async || {
        clusters.patch(CLUSTER, &how, &what).await.map(drop)
    })
    .await
}

/// Waits until the Cluster is so.
pub(crate) async fn until_cluster(journey: &Journey, what: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SOON, what, async || {
        let cluster = clusters.get(CLUSTER).await?;
        ensure!(holds(&cluster.data), "{:#}", cluster.data);
        Ok(())
    })
    .await
}

/// The control plane of the Cluster, which is of this kind.
pub(crate) async fn control_plane(journey: &Journey, kind: &str) -> Result<DynamicObject> {
    let planes = journey.objects("controlplane.cluster.x-k8s.io/v1beta1", kind);
    let of_cluster = format!("cluster.x-k8s.io/cluster-name={CLUSTER}");
    let list = planes.list(&kube::api::ListParams::default().labels(&of_cluster)).await;
    list?.items.pop().context("no control plane")
}

/// How often a hook was answered so.
pub(crate) async fn answers(journey: &mut Journey, hook: Hook, answer: &str) -> Result<f64> {
    answers_of(journey.operator()?, hook, answer).await
}

/// The same by one of several replicas.
pub(crate) async fn answers_of(operator: &mut Operator, hook: Hook, answer: &str) -> Result<f64> {
    Ok(answers_in(&operator.metrics().await?, hook, answer))
}

fn answers_in(metrics: &Metrics, hook: Hook, answer: &str) -> f64 {
    let hook = hook.name();
    let of_hook = [("hook", hook.as_str()), ("answer", answer)];
    let answers = metrics.sum("stackwright_hook_answers_total", &of_hook);
    answers.unwrap_or_default()
}

/// Waits until a hook was answered so once more: what a Cluster says of it may be of an earlier call.
pub(crate) async fn answered_again(journey: &mut Journey, hook: Hook, answer: &str) -> Result<()> {
    let before = answers(journey, hook, answer).await?;
    let url = journey.operator()?.metrics_url().await?;
    let what = format!("{} to be answered with {answer} once more", hook.name());
    eventually(SOON, what, async || {
        let now = answers_in(&Metrics::read(&url).await?, hook, answer);
        ensure!(now > before, "{now} times, {before} before");
        Ok::<_, anyhow::Error>(())
    })
    .await
}
