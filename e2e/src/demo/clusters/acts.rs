//! What happens, one act after the other: each tells what is done, does it, waits for the operator and proves what it claims.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, cluster_addon::name_for, events::Happening, labels, names::ReleaseTag};
use e2e::{
    eventually,
    shim::{Hold, cluster},
    traces,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Event, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    super::{
        acts::{INTRUDER, OWNER},
        text::{count, short},
    },
    ground::CLUSTER,
    play::Play,
    view::View,
};

/// Versions of Kubernetes: that of the first release, and that of the others.
const KUBERNETES: [&str; 2] = ["v1.34.0", "v1.35.0"];
/// The add-on without which no Pod has a network, and what tells about the cluster.
const NETWORK: (&str, &str) = ("kube-system", "cluster-addon-network");
const NOTE: (&str, &str) = ("quay", "cluster-addon-lighthouse");
/// It takes a second where little else runs.
const SOON: Duration = Duration::from_mins(1);
/// What the intruder writes.
const SCRIBBLE: &str = "nowhere";

impl Play<'_> {
    /// All acts but the last, after which nothing is left to look at.
    pub(super) async fn all_but_the_last(&mut self) -> Result<()> {
        let [first, second] = [self.pack("v1", "v1")?, self.pack("v2", "v2")?];
        let of_first = async |play: &mut Self| play.create(&first).await;
        self.act("A cluster is made of a class", of_first).await?;
        let of_both = async |play: &mut Self| play.upgrade(&first, &second).await;
        self.act("Class and Kubernetes are upgraded together", of_both).await?;
        self.act("Somebody breaks two add-ons", async |play: &mut Self| {
            Box::pin(play.damage(&second)).await
        })
        .await?;
        self.act("A faulty release, and the next", Self::mend).await
    }

    /// The last act.
    pub(super) async fn the_last(&mut self) -> Result<()> {
        self.act("The cluster is deleted", Self::delete).await
    }

    async fn create(&mut self, class: &ReleaseTag) -> Result<()> {
        self.subscribe("quay-1-34", &[class]).await?;
        self.screen.say(&format!(
            "The platform team has subscribed to the stack shim-quay. Its release brings the class {class}, and add-ons in two stages. \
             Somebody who wants a cluster applies one object:"
        ));
        let wanted = self.cluster(class, KUBERNETES[0], 1);
        self.quote(&wanted)?;
        self.linger().await?;
        let web = self.ground.web();
        web.hold(Hold::Machines);
        let since = Instant::now();
        let clusters = self.clusters();
        let (owner, wanted) = (PatchParams::apply(OWNER), Patch::Apply(&wanted));
        let applied = clusters.patch(CLUSTER, &owner, &wanted).await;
        applied.context("failed to apply the Cluster")?;
        let took = self
            .until("the first stage", since, |view| view.waits("network").is_some())
            .await?;
        self.screen.good(&format!(
            "After {} the control plane is there, and the first stage is applied. No machine has joined yet, so the second one waits, and the first \
             says for what:",
            short(took)
        ));
        self.screen.quote(&self.view.waits("network").unwrap_or_default());
        self.linger().await?;
        self.screen.say("A machine joins.");
        web.release(Hold::Machines);
        let took = self.until_complete(class, Instant::now()).await?;
        self.told.objects = self.view.status().resources.len();
        self.screen.good(&format!(
            "{} of two charts are as the release wants them, {} after that.",
            count(self.told.objects, "object"),
            short(took)
        ));
        Ok(())
    }

    async fn upgrade(&mut self, first: &ReleaseTag, second: &ReleaseTag) -> Result<()> {
        let [from, to] = KUBERNETES;
        self.subscribe("quay-1-35", &[second]).await?;
        self.screen.say(
            "The next release is for the next minor of Kubernetes. Its network has to be ready before Kubernetes is touched. Just now it is not: its Pods are \
             lost, and no node starts new ones. Two lines of the Cluster are edited:",
        );
        self.screen
            .quote(&format!("class: {first}  →  {second}\nversion: {from}  →  {to}"));
        self.linger().await?;
        self.lose_the_network().await?;
        let since = self.set_topology(second, to).await?;
        // The first answer comes before anybody has looked; the next one names the stage.
        let is_held = |view: &View| {
            let held = view.held_by("BeforeClusterUpgrade");
            view.waits("network").is_some() && held.is_some_and(|words| words.contains("stage network"))
        };
        let took = self.until("the upgrade to be held back", since, is_held).await?;
        ensure!(
            self.view.control_plane.as_deref() == Some(from),
            "the control plane is to be {:?}",
            self.view.control_plane
        );
        self.screen.good(&format!(
            "After {} Cluster API has asked, and holds Kubernetes back at {from}. The Cluster says why, and how to go on without:",
            short(took)
        ));
        self.screen
            .quote(&self.view.held_by("BeforeClusterUpgrade").unwrap_or_default());
        self.linger().await?;
        self.screen.say("Nodes start Pods again.");
        let since = Instant::now();
        self.ground.start_kubelets().await?;
        self.until_complete(second, since).await?;
        let took = self
            .until("the control plane to be upgraded", since, |view| {
                view.control_plane.as_deref() == Some(to)
            })
            .await?;
        (self.told.from, self.told.to) = (from.to_owned(), to.to_owned());
        self.told.objects = self.view.status().resources.len();
        self.screen.good(&format!(
            "The network was ready, Cluster API upgraded Kubernetes to {to}, and the second stage followed: {} in all.",
            short(took)
        ));
        Ok(())
    }

    async fn lose_the_network(&mut self) -> Result<()> {
        self.ground.stop_kubelets();
        let pods: Api<Pod> = Api::namespaced(self.ground.workload_client(), NETWORK.0);
        let of_network = ListParams::default().labels(&format!("app={}", NETWORK.1));
        let at_once = DeleteParams::default().grace_period(0);
        let lost = pods.delete_collection(&at_once, &of_network).await;
        lost.map(drop).context("failed to take the Pods of the network away")
    }

    async fn damage(&mut self, class: &ReleaseTag) -> Result<()> {
        let client = self.ground.workload_client();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NETWORK.0);
        let notes: Api<ConfigMap> = Api::namespaced(client, NOTE.0);
        let (network, note) = tokio::try_join!(deployments.get(NETWORK.1), notes.get(NOTE.1))?;
        let region = note.data.as_ref().and_then(|data| data.get("region"));
        let region = region.context("the lighthouse tells no region")?;
        self.screen.say(
            "In the workload cluster, somebody deletes the Deployment of the network and, at the same moment, writes another region into the ConfigMap of the \
             lighthouse:",
        );
        self.screen.quote(&format!(
            "kubectl -n {} delete deployment {}\nkubectl -n {} edit configmap {}   # region: {region}  →  {SCRIBBLE}",
            NETWORK.0, NETWORK.1, NOTE.0, NOTE.1
        ));
        self.linger().await?;
        let intruder = PatchParams {
            field_manager: Some(INTRUDER.to_owned()),
            ..PatchParams::default()
        };
        let scribble = Patch::Merge(json!({ "data": { "region": SCRIBBLE } }));
        let gone = DeleteParams::default();
        let since = Instant::now();
        let done = tokio::try_join!(
            deployments.delete(NETWORK.1, &gone),
            notes.patch(NOTE.1, &intruder, &scribble)
        );
        done.context("failed to break the add-ons")?;
        let both = async { tokio::try_join!(is_back(&deployments, &network, since), is_mended(&notes, &note, since)) };
        let (back, mended) = self.until_over("both to be repaired", both).await?;
        self.until_complete(class, since).await?;
        self.screen.good(&format!(
            "Both were put back: a new Deployment {} was there after {}, and in the ConfigMap {} the region was {region} again after {}. The ClusterAddon has an \
             event that tells of it:",
            NETWORK.1,
            short(back),
            NOTE.1,
            short(mended)
        ));
        let told = self.told_of_repairs().await?;
        self.screen.quote(&told);
        Ok(())
    }

    /// What events of the ClusterAddon say of what was put back, as soon as they tell of both objects.
    async fn told_of_repairs(&self) -> Result<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), self.ground.namespace());
        let of_repairs = ListParams::default().fields(&format!(
            "involvedObject.kind=ClusterAddon,involvedObject.name={},reason={}",
            name_for(CLUSTER),
            Happening::DriftCorrected
        ));
        eventually(SOON, "events about both", async || {
            let messages = events.list(&of_repairs).await?.into_iter();
            let told: Vec<_> = messages.filter_map(|event| event.message).collect();
            let told = told.join("\n");
            ensure!(told.contains(NETWORK.1) && told.contains(NOTE.1), "they say {told:?}");
            Ok::<_, anyhow::Error>(told)
        })
        .await
    }

    async fn mend(&mut self) -> Result<()> {
        let [_, kubernetes] = KUBERNETES;
        let [second, faulty, next] = [Self::tag("v2")?, self.pack("v3", "v3")?, self.pack("v2", "v4")?];
        self.subscribe("quay-1-35", &[&second, &faulty]).await?;
        self.screen.say(&format!(
            "The Cluster is given the class {faulty}, one of whose charts cannot be rendered."
        ));
        self.linger().await?;
        let since = self.set_topology(&faulty, kubernetes).await?;
        let took = self
            .until("an explanation", since, |view| view.stalled().is_some())
            .await?;
        self.screen
            .good(&format!("After {} its ClusterAddon says what is wrong:", short(took)));
        self.screen.quote(&self.view.stalled().unwrap_or_default());
        ensure!(
            self.view.status().resources.len() == self.told.objects,
            "objects came or went"
        );
        self.screen
            .good("What cannot be rendered stays as it was, and the cluster goes on.");
        self.linger().await?;
        self.screen.say(&format!(
            "The next release is in order: the Cluster is given {next}. Nothing is repaired by hand."
        ));
        self.subscribe("quay-1-35", &[&second, &next]).await?;
        let since = self.set_topology(&next, kubernetes).await?;
        let took = self.until_complete(&next, since).await?;
        self.screen
            .good(&format!("The add-ons are those of {next} after {}.", short(took)));
        Ok(())
    }

    async fn delete(&mut self) -> Result<()> {
        self.screen.say(
            "The release names a stage for that: the lighthouse is to be taken away while the cluster is still there. Load balancers and volumes go so.",
        );
        self.screen.quote(&format!("kubectl delete cluster {CLUSTER}"));
        self.linger().await?;
        let since = Instant::now();
        let deleted = self.clusters().delete(CLUSTER, &DeleteParams::default()).await;
        deleted.context("failed to delete the Cluster")?;
        let took = self.until("the Cluster to be gone", since, View::is_gone).await?;
        let mark = labels::part_of("ClusterAddon", self.ground.namespace(), &name_for(CLUSTER));
        let left = traces::with_labels(&self.ground.workload_client(), &format!("{}={mark}", labels::PART_OF)).await?;
        let lighthouse = format!("ConfigMap {}", NOTE.1);
        ensure!(!left.contains(&lighthouse), "the lighthouse is left: {left:?}");
        self.screen.good(&format!(
            "The lighthouse went first, and after {} the Cluster and its ClusterAddon. What else it had goes with its machines.",
            short(took)
        ));
        Ok(())
    }

    async fn until_complete(&mut self, class: &ReleaseTag, since: Instant) -> Result<Duration> {
        let class = class.to_string();
        self.until("all add-ons to be there", since, |view| view.is_complete(&class))
            .await
    }

    /// Packs a version of the stack made of this source, and publishes it.
    fn pack(&self, source: &str, version: &str) -> Result<ReleaseTag> {
        Ok(self.ground.releases.publish_quay(source, version)?.parse()?)
    }

    /// The tag of a version that is published.
    fn tag(version: &str) -> Result<ReleaseTag> {
        Ok(format!("shim-quay-1-35-{version}").parse()?)
    }

    /// Applies a ClusterStack that lists these releases, and waits until their classes can be used.
    async fn subscribe(&mut self, name: &str, tags: &[&ReleaseTag]) -> Result<()> {
        let first = tags.first().context("a stack has releases")?;
        let versions: Vec<_> = tags.iter().map(|tag| tag.version().to_string()).collect();
        let stack = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
            "metadata": { "name": name, "namespace": self.ground.namespace() },
            "spec": {
                "provider": first.provider(), "name": first.name(), "kubernetesVersion": first.kubernetes_minor().to_string(),
                "channel": first.version().channel().as_str(), "autoSubscribe": false, "noProvider": true, "versions": versions,
            },
        });
        let stacks: Api<ClusterStack> = Api::namespaced(self.client.clone(), self.ground.namespace());
        let applied = stacks
            .patch(name, &PatchParams::apply(OWNER), &Patch::Apply(&stack))
            .await;
        applied.context("failed to apply the stack")?;
        let releases: Api<ClusterStackRelease> = Api::namespaced(self.client.clone(), self.ground.namespace());
        self.screen.working(Some("waiting for the class"));
        for tag in tags {
            let tag = tag.to_string();
            eventually(SOON, format!("the class {tag}"), async || {
                let release = releases.get(&tag).await?;
                let status = release.status.unwrap_or_default();
                ensure!(status.ready, "{:?}", status.conditions);
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        self.screen.working(None);
        Ok(())
    }

    /// The object that its owner applies.
    fn cluster(&self, class: &ReleaseTag, version: &str, workers: u32) -> Value {
        let mut object = cluster(CLUSTER, &class.to_string(), version, workers);
        object["metadata"]["namespace"] = self.ground.namespace().into();
        object
    }

    fn quote(&mut self, object: &Value) -> Result<()> {
        let text = serde_yaml::to_string(object).context("failed to write an object as YAML")?;
        self.screen.quote(&text);
        Ok(())
    }

    /// The answer is the moment of the asking.
    async fn set_topology(&self, class: &ReleaseTag, version: &str) -> Result<Instant> {
        let since = Instant::now();
        let topology = json!({ "spec": { "topology": { "class": class.to_string(), "version": version } } });
        let edit = PatchParams {
            field_manager: Some(OWNER.to_owned()),
            ..PatchParams::default()
        };
        let edited = self.clusters().patch(CLUSTER, &edit, &Patch::Merge(topology)).await;
        edited.context("failed to edit the Cluster")?;
        Ok(since)
    }
}

/// Waits until what was deleted is there again; the answer is how long that took.
async fn is_back(deployments: &Api<Deployment>, deleted: &Deployment, since: Instant) -> Result<Duration> {
    eventually(SOON, "the Deployment to be made again", async || {
        let now = deployments.get(&deleted.name_any()).await?;
        ensure!(now.uid() != deleted.uid(), "it is not gone yet");
        Ok::<_, anyhow::Error>(since.elapsed())
    })
    .await
}

/// Waits until what was edited is as before; the answer is how long that took.
async fn is_mended(notes: &Api<ConfigMap>, before: &ConfigMap, since: Instant) -> Result<Duration> {
    eventually(SOON, "the ConfigMap to be put back", async || {
        let now = notes.get(&before.name_any()).await?;
        ensure!(now.data == before.data, "it has {:?}", now.data);
        Ok::<_, anyhow::Error>(since.elapsed())
    })
    .await
}
