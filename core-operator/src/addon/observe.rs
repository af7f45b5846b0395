//! Reads everything that a decision about add-ons needs: caches, watches, files, renderings, the workload cluster. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus};
use crds::labels;
use crds::policy::ReleasePolicy;
use kube::ResourceExt;
use operator_kit::object::{GroupKind, ObjectKey};
use planning::addon::{
    AddonObserved, ChartSeen, ClusterSeen, Connection, Layout, Marks, MemoSeen, ReleaseSeen, Stage, Values, Wanted,
    charts_needed, kind, may_be_reached, needs_ready_release, stages, wanted,
};
use planning::next::Next;
use planning::objects::{Intent, ObjectObserved, Rendering, key_of};
use planning::topology::Topology;
use tokio::time::Instant;

use super::charts::{ChartWork, GivenMarks, Hidden, Occasion, Unusable, Usable, not_ready};
use super::conditions::{Evaluated, conditions};
use super::presence::{Sight, class_owner, release_of_class};
use super::seen::addon_seen;
use super::served::Judge;
use super::{AddonMemory, Addons, leave};
use crate::charts::ADDON_NAMESPACE;
use crate::clusters::{ClusterFacts, Mark};
use crate::context::Context;
use crate::objects::{Asked, Memory, Place, Scopes, locate, lock, named_kinds};

/// Whose add-ons are looked at.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) context: &'a Context,
    pub(super) addons: &'a Addons,
    /// The mark of its objects.
    pub(super) part_of: &'a str,
    pub(super) memory: &'a Memory<AddonMemory>,
}

/// What one look has found, with what the execution of the plan needs besides.
pub(super) struct Found {
    pub(super) observed: AddonObserved,
    /// The add-ons of the release, when they are usable.
    pub(super) usable: Option<Usable>,
    /// How the release wants its objects to be treated.
    pub(super) policy: ReleasePolicy,
    /// Where the objects are, while that can be reached.
    pub(super) place: Option<Place>,
    /// When time alone makes a difference for the values.
    pub(super) next: Next,
    /// The stages that lead to the target.
    pub(super) stages: Vec<Stage>,
    /// An object that a stage waits for could not be read.
    pub(super) is_unread: bool,
    /// When to look again at what the API server publishes of its kinds.
    pub(super) again: Option<Instant>,
    /// What nobody may read of the values.
    pub(super) hidden: Hidden,
}

/// What became of the charts.
struct Rendered {
    values: Values,
    /// The charts that are made with the values of before, and why.
    held: BTreeMap<String, String>,
    charts: BTreeMap<String, ChartSeen>,
    memo: Option<MemoSeen>,
    brought: Scopes,
    next: Next,
    hidden: Hidden,
    /// The stages that lead to the target.
    stages: Vec<Stage>,
    /// What the values are made of otherwise than the release asks for.
    note: Option<String>,
}

/// The objects in the cluster, as far as anybody knows.
struct Objects {
    seen: BTreeMap<ObjectKey, ObjectObserved>,
    /// The charts that they come from, as they say.
    origins: BTreeMap<ObjectKey, String>,
    unlisted: BTreeSet<GroupKind>,
    unwatched: BTreeMap<GroupKind, String>,
    forbidden: BTreeSet<GroupKind>,
}

/// The parts of one look.
struct Looked {
    cluster: ClusterSeen,
    connection: Connection,
    place: Option<Place>,
    release: ReleaseSeen,
    usable: Option<Usable>,
    policy: ReleasePolicy,
    rendered: Rendered,
    status: ClusterAddonStatus,
    group_kinds: BTreeSet<GroupKind>,
    objects: Objects,
    evaluated: Evaluated,
}

impl Subject<'_> {
    /// Looks at everything that decides.
    pub(super) async fn observe(self, addon: &ClusterAddon, sight: &Sight) -> Found {
        let is_paused = sight.paused.is_some();
        let (cluster, marks) = self.cluster(&sight.cluster);
        let (connection, place) = self.reach(addon, sight, &cluster);
        let (release, usable, policy) = match &cluster.topology {
            Some(topology) if !is_paused => {
                let ready = needs_ready_release(&cluster, addon.status.as_ref());
                self.release_of(topology, ready).await
            }
            _ => (ReleaseSeen::Absent, None, ReleasePolicy::default()),
        };
        let rendered = match &usable {
            Some(usable) => {
                let seen = (&marks, &self.given(&sight.cluster));
                let occasion = Occasion::of(&usable.bundle, policy.helm_profile, seen, cluster.initialized);
                let work = self.chart_work(addon, &cluster.name, (usable, &policy), place.as_ref());
                Box::pin(self.rendered(&work, (&cluster, &release), &Marks::of(addon), &occasion)).await
            }
            None => Rendered::nothing(),
        };
        let intents = intents(&rendered.charts);
        let mut status = addon.status.clone().unwrap_or_default();
        if let Some(place) = &place {
            locate(place, ADDON_NAMESPACE, &mut status.resources).await;
        }
        let group_kinds = kinds(addon, &status, &intents);
        let objects = self
            .objects(place.as_ref(), &status, &group_kinds, &intents, &rendered.brought)
            .await;
        let evaluated = match &place {
            Some(place) => self.evaluated(place, &cluster, &rendered).await,
            None => Evaluated::default(),
        };
        let looked = Looked {
            cluster,
            connection,
            place,
            release,
            usable,
            policy,
            rendered,
            status,
            group_kinds,
            objects,
            evaluated,
        };
        self.found(addon, sight, looked)
    }

    /// How the conditions of stages are that somebody waits for.
    async fn evaluated(self, place: &Place, cluster: &ClusterSeen, rendered: &Rendered) -> Evaluated {
        let (awaited, checks) = {
            let own = lock(&self.memory.own);
            (own.evaluated.clone(), Arc::clone(&own.checks))
        };
        if awaited.is_empty() {
            return Evaluated::default();
        }
        let control_plane = cluster.control_plane.as_ref();
        let mut judge = Judge {
            place,
            library: &self.addons.library,
            version: control_plane.and_then(|seen| seen.reached.as_deref()),
            checks: &mut *checks.lock().await,
        };
        conditions(&mut judge, &rendered.stages, &awaited, &rendered.hidden).await
    }

    /// What was found, in the form that decisions are made of.
    fn found(self, addon: &ClusterAddon, sight: &Sight, looked: Looked) -> Found {
        let annotation = |name: &str| addon.annotations().get(name).cloned();
        let bundle = looked.usable.as_ref().map(|usable| &usable.bundle);
        let (rendered, objects) = (looked.rendered, looked.objects);
        let finalizers = addon.finalizers();
        let observed = AddonObserved {
            namespace: addon.namespace().unwrap_or_default(),
            name: addon.name_any(),
            uid: addon.uid().unwrap_or_default(),
            generation: addon.metadata.generation.unwrap_or_default(),
            seen: addon_seen(addon),
            finalizer: finalizers.iter().any(|present| present == labels::ADDON_FINALIZER),
            group_kinds: looked.group_kinds,
            marks: Marks::of(addon),
            requested_at: annotation(labels::REQUESTED_AT),
            approved_prune: annotation(labels::APPROVE_PRUNE),
            spec: addon.spec.clone(),
            status: looked.status,
            status_written_at: lock(&self.memory.own).status_written_at,
            class: class_owner(self.context, Some(&sight.cluster)),
            cluster: Some(looked.cluster),
            release: looked.release,
            layout: bundle.map_or(Layout::NotRead, |bundle| Layout::Known(bundle.layout.clone())),
            assets: bundle.map(|bundle| bundle.archive.to_string()),
            drift: looked.policy.drift,
            prune_limit: looked.policy.prune_limit,
            values: rendered.values,
            values_note: rendered.note,
            values_held: rendered.held,
            memo: rendered.memo,
            charts: rendered.charts,
            conditions: looked.evaluated.conditions,
            connection: looked.connection,
            objects: objects.seen,
            origins: objects.origins,
            unlisted: objects.unlisted,
            unwatched: objects.unwatched,
            forbidden: objects.forbidden,
        };
        Found {
            observed,
            usable: looked.usable,
            policy: looked.policy,
            place: looked.place,
            next: rendered.next,
            stages: rendered.stages,
            is_unread: looked.evaluated.is_unread,
            again: looked.evaluated.again,
            hidden: rendered.hidden,
        }
    }

    /// What tells that what the Cluster takes values from may be another.
    fn given(self, facts: &ClusterFacts) -> GivenMarks {
        let holders = facts.values_of.iter();
        let version = |holder| self.addons.consents.version(holder, &facts.seen.namespace);
        (facts.values_from.clone(), holders.map(version).collect())
    }

    /// The Cluster with its control plane, and what tells that values made of it and its parts may be others.
    fn cluster(self, facts: &ClusterFacts) -> (ClusterSeen, [Option<Mark>; 3]) {
        let mut seen = facts.seen.clone();
        let part = |part: &Option<_>| {
            let part = part.as_ref()?;
            self.addons.parts.get(part, &facts.seen.namespace)
        };
        // Asked before: a list that ends in between must not count.
        let is_awaited = |part| !self.addons.parts.is_listed(part);
        seen.control_plane_awaited = facts.control_plane.as_ref().is_some_and(is_awaited);
        let (control_plane, infrastructure) = (part(&facts.control_plane), part(&facts.infrastructure));
        if let Some(control_plane) = &control_plane {
            seen.initialized |= control_plane.facts.initialized;
            seen.control_plane = Some(control_plane.facts.clone());
            seen.control_plane_awaited = false;
        }
        let marks = [
            Some(facts.mark.clone()),
            control_plane.map(|part| part.mark.clone()),
            infrastructure.map(|part| part.mark.clone()),
        ];
        (seen, marks)
    }

    /// The way to the cluster. Who is paused begins none, and to a cluster that is nobody's business here it ends.
    fn reach(self, addon: &ClusterAddon, sight: &Sight, cluster: &ClusterSeen) -> (Connection, Option<Place>) {
        let class = class_owner(self.context, Some(&sight.cluster));
        if !may_be_reached(cluster, class, &addon_seen(addon), addon.status.as_ref()) {
            leave(self.context, self.memory);
            return (Connection::Disconnected, None);
        }
        let workloads = self.context.workloads.as_ref();
        let Some(workloads) = workloads.filter(|_| sight.paused.is_none()) else {
            return (Connection::Disconnected, None);
        };
        let ClusterSeen {
            namespace, name, uid, ..
        } = cluster;
        let way = workloads.reach(namespace, name, uid, self.part_of, self.context.now());
        lock(&self.memory.own).cluster = Some(uid.clone());
        if self.memory.is_initialized_now(cluster.initialized) {
            // It may answer from now on: nobody waits for the end of a pause.
            workloads.hurry(uid);
        }
        way
    }

    /// The release of a class, and its add-ons where they can be used; with `ready` only while all else of the release is in order, too.
    async fn release_of(self, topology: &Topology, ready: bool) -> (ReleaseSeen, Option<Usable>, ReleasePolicy) {
        let context = self.context;
        let Ok(class) = topology.class_name() else {
            return (ReleaseSeen::Absent, None, ReleasePolicy::default());
        };
        let release = match release_of_class(context, &topology.class_namespace, class) {
            Ok(release) => release,
            Err(seen) => return (seen, None, ReleasePolicy::default()),
        };
        let policy = release.spec.policy.clone().unwrap_or_default();
        if ready && !release.status.as_ref().is_some_and(|status| status.ready) {
            return (not_ready(&release).seen(), None, policy);
        }
        let opened = context.sources.of(&release).await;
        match self.addons.charts.usable(&context.charts, &release, opened).await {
            Ok(usable) => (usable.bundle.seen(), Some(usable), policy),
            Err(unusable) => {
                self.doubt(&release, &unusable);
                (unusable.seen(), None, policy)
            }
        }
    }

    /// What is not what it was when it was verified is fetched again.
    fn doubt(self, release: &ClusterStackRelease, unusable: &Unusable) {
        if unusable.unreadable {
            self.context.sources.request(release);
        }
    }

    /// What is done with the charts of a cluster.
    pub(super) fn chart_work<'w>(
        self,
        addon: &'w ClusterAddon,
        cluster: &'w str,
        (usable, policy): (&'w Usable, &ReleasePolicy),
        workload: Option<&'w Place>,
    ) -> ChartWork<'w>
    where
        Self: 'w,
    {
        ChartWork {
            shared: &self.addons.charts,
            charts: &self.context.charts,
            management: &self.context.management,
            workload,
            addon,
            part_of: self.part_of,
            cluster,
            files: &usable.files,
            bundle: &usable.bundle,
            profile: policy.helm_profile,
            now: self.context.now(),
        }
    }

    async fn rendered(
        self,
        work: &ChartWork<'_>,
        (cluster, release): (&ClusterSeen, &ReleaseSeen),
        marks: &Marks,
        occasion: &Occasion,
    ) -> Rendered {
        let memory = lock(&self.memory.own).charts.clone();
        let mut looked = work.look(&mut *memory.lock().await, occasion).await;
        if looked.unreadable {
            self.context
                .sources
                .doubt(&work.files.release().tag, work.files.release().digest);
        }
        let values = looked.values;
        let (mut charts, mut to_go) = (BTreeMap::new(), Vec::new());
        let status = work.addon.status.as_ref();
        let last = status.and_then(|status| status.target.as_ref());
        if let Wanted::Target(target) = wanted(cluster, release, &values, last) {
            let kind = kind(cluster, marks, &target);
            for chart in charts_needed(kind, &work.bundle.layout) {
                let rendering = looked.charts.remove(&chart);
                let seen = rendering.map_or_else(|| unrendered(&chart, &values), ChartSeen::Found);
                charts.insert(chart, seen);
            }
            to_go = stages(kind, &work.bundle.layout);
        }
        Rendered {
            values,
            held: looked.held,
            charts,
            memo: looked.memo.map(|(stored, drawn)| MemoSeen { stored, drawn }),
            brought: looked.brought,
            next: looked.next,
            hidden: looked.hidden,
            stages: to_go,
            note: looked.note,
        }
    }

    async fn objects(
        self,
        place: Option<&Place>,
        status: &ClusterAddonStatus,
        kinds: &BTreeSet<GroupKind>,
        intents: &BTreeMap<ObjectKey, Intent>,
        brought: &Scopes,
    ) -> Objects {
        let Some(place) = place else {
            return Objects {
                seen: self.remembered(status, intents),
                origins: BTreeMap::new(),
                unlisted: kinds.clone(),
                unwatched: BTreeMap::new(),
                forbidden: BTreeSet::new(),
            };
        };
        let asked = Asked {
            part_of: self.part_of,
            namespace: None,
            rows: &status.resources,
            kinds,
            intents: Some(intents),
            brought,
            memory: &self.memory.objects,
        };
        // Before the objects: a list that ends in between must not count.
        let unlisted = place.unlisted(kinds).await;
        let seen = place.observe(&asked).await;
        let (unwatched, forbidden) = place.unwatched(&seen, &unlisted);
        Objects {
            origins: place.origins(self.part_of),
            seen,
            unlisted,
            unwatched,
            forbidden,
        }
    }

    /// What nobody can look at now.
    fn remembered(
        self,
        status: &ClusterAddonStatus,
        intents: &BTreeMap<ObjectKey, Intent>,
    ) -> BTreeMap<ObjectKey, ObjectObserved> {
        let rows = status.resources.iter().map(|row| (key_of(row), row.version.clone()));
        let wanted = intents
            .iter()
            .map(|(key, intent)| (key.clone(), intent.object.version.clone()));
        let versions: BTreeMap<ObjectKey, String> = rows.chain(wanted).collect();
        let memory = lock(&self.memory.objects);
        let object = |(key, version): (ObjectKey, String)| {
            let object = ObjectObserved {
                version,
                served: true,
                memory: memory.get(&key).cloned().unwrap_or_default(),
                ..ObjectObserved::default()
            };
            (key, object)
        };
        versions.into_iter().map(object).collect()
    }
}

impl Rendered {
    /// Of a release that cannot be used.
    fn nothing() -> Self {
        Self {
            values: Values::Awaited,
            held: BTreeMap::new(),
            charts: BTreeMap::new(),
            memo: None,
            brought: Scopes::new(),
            next: Next::Await,
            hidden: Hidden::default(),
            stages: Vec::new(),
            note: None,
        }
    }
}

/// A chart of which nothing was rendered.
fn unrendered(chart: &str, values: &Values) -> ChartSeen {
    match values {
        Values::Failed { message } | Values::Unstable { message } => ChartSeen::Found(Rendering::Failed {
            message: message.clone(),
            transient: None,
        }),
        Values::Awaited | Values::Known { .. } => ChartSeen::Missing {
            message: format!("the archive of the add-ons has no chart {chart}"),
        },
    }
}

/// What any of these charts asks for. Where several ask for one object, its kind and version are those of the last.
fn intents(charts: &BTreeMap<String, ChartSeen>) -> BTreeMap<ObjectKey, Intent> {
    let rendered = charts.values().filter_map(|chart| match chart {
        ChartSeen::Found(rendering) => rendering.intents(),
        ChartSeen::Missing { .. } => None,
    });
    rendered
        .flatten()
        .map(|(key, intent)| (key.clone(), intent.clone()))
        .collect()
}

/// The kinds that the ClusterAddon says it has objects of, as far as they are looked after.
fn kinds(
    addon: &ClusterAddon,
    status: &ClusterAddonStatus,
    intents: &BTreeMap<ObjectKey, Intent>,
) -> BTreeSet<GroupKind> {
    let mut known: BTreeSet<GroupKind> = intents.keys().map(ObjectKey::group_kind).collect();
    known.extend(status.resources.iter().map(|row| key_of(row).group_kind()));
    named_kinds(addon, &known)
}
