//! Turns what the watches tell into "look at this stack", "look at this release" and "look at the add-ons of this Cluster". Decides nothing else.

mod addons;
mod concerned;
mod idle;
mod news;
mod shards;
mod workloads;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crds::cluster_addon::ClusterAddon;
use crds::conditions::{ConditionType, find};
use crds::{ClusterStack, ClusterStackRelease};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::{objects, projection, workload};
use planning::stack::release_kind;
use tokio::sync::{OwnedMutexGuard, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use self::concerned::{is_for, is_provided_by, names_template, release_names_group, stack_names_group};
use self::idle::end_idle_followers;
use self::news::pass_on;
pub(crate) use self::shards::follow_shards;
use crate::addon::ClusterPlace;
use crate::by_kind::KindChange;
use crate::clusters::Kept;
use crate::context::Context;
use crate::leftovers::LeftBehind;
use crate::release::{group_kind, mark, names, object_handle};
use crate::sources::SourceChange;
use crate::tasks::{Task, Tasks};

/// Triggers of one stack within this time become one look: fifty releases that move at once are one change to their stack.
const GATHERING: Duration = Duration::from_millis(100);

/// Where triggers are sent. Clones send to the same queues.
#[derive(Clone)]
pub(crate) struct Triggers {
    stacks: UnboundedSender<ObjectRef<ClusterStack>>,
    releases: UnboundedSender<ObjectRef<ClusterStackRelease>>,
    addons: UnboundedSender<ObjectRef<ClusterAddon>>,
    clusters: UnboundedSender<ClusterPlace>,
}

/// Where triggers arrive.
pub(crate) struct Queues {
    pub(crate) stacks: UnboundedReceiver<ObjectRef<ClusterStack>>,
    pub(crate) releases: UnboundedReceiver<ObjectRef<ClusterStackRelease>>,
    pub(crate) addons: UnboundedReceiver<ObjectRef<ClusterAddon>>,
    /// The Clusters that have no ClusterAddon yet.
    pub(crate) clusters: UnboundedReceiver<ClusterPlace>,
}

impl Triggers {
    pub(crate) fn new() -> (Self, Queues) {
        let (stacks, gathered) = unbounded();
        let (to_queue, from_gathering) = unbounded();
        let (releases, from_releases) = unbounded();
        let (addons, from_addons) = unbounded();
        let (clusters, from_clusters) = unbounded();
        tokio::spawn(gather(gathered, to_queue));
        let triggers = Self {
            stacks,
            releases,
            addons,
            clusters,
        };
        let queues = Queues {
            stacks: from_gathering,
            releases: from_releases,
            addons: from_addons,
            clusters: from_clusters,
        };
        (triggers, queues)
    }

    /// The queue of releases, for those who only know which one has to look.
    pub(crate) fn of_releases(&self) -> UnboundedSender<ObjectRef<ClusterStackRelease>> {
        self.releases.clone()
    }

    /// The queue of ClusterAddons.
    pub(crate) fn of_addons(&self) -> UnboundedSender<ObjectRef<ClusterAddon>> {
        self.addons.clone()
    }

    /// A closed queue means that the process is about to end.
    fn stack(&self, stack: ObjectRef<ClusterStack>) {
        let _ = self.stacks.unbounded_send(stack);
    }

    fn release(&self, release: ObjectRef<ClusterStackRelease>) {
        let _ = self.releases.unbounded_send(release);
    }

    /// The watch tells of a release: its stack summarises it, and others that name the same objects hang on what it says of them. Where it is another
    /// stack's than before, or nobody's, all stacks hang on it that have it, had it or could have it.
    pub(crate) fn release_told(&self, context: &Context, release: &ClusterStackRelease) {
        self.release_changed(release);
        self.users_of(context, release);
        let heard = context.claims.hear(release);
        self.sharers(context, release, &heard.handles);
        if let Some(former) = heard.former_stacks {
            let namespace = release.namespace().unwrap_or_default();
            for stack in former {
                self.stack(ObjectRef::new(&stack).within(&namespace));
            }
            self.stacks_of(context, &namespace, &release.name_any());
        }
    }

    /// Wakes the other releases, in whatever namespace, that have one of these handles.
    fn sharers(&self, context: &Context, release: &ClusterStackRelease, handles: &[String]) {
        let another = |other: &ClusterStackRelease| other.metadata.uid != release.metadata.uid;
        for other in context.releases.find_everywhere(handles, another) {
            self.release(ObjectRef::from_obj(other.as_ref()));
        }
    }

    /// A release changed: its stack summarises it.
    fn release_changed(&self, release: &ClusterStackRelease) {
        let namespace = release.namespace().unwrap_or_default();
        for owner in release.stacks() {
            self.stack(ObjectRef::new(&owner.name).within(&namespace));
        }
    }

    /// A release is gone: whichever stack of the namespace wants it may have it now, and whichever release, in
    /// whatever namespace, shares objects with it takes them over.
    pub(crate) fn release_gone(&self, context: &Context, release: &ClusterStackRelease) {
        let namespace = release.namespace().unwrap_or_default();
        self.release_changed(release);
        self.users_of(context, release);
        self.stacks_of(context, &namespace, &release.name_any());
        let marked = context.management.objects.by_part_of(&mark(release), Some(&namespace));
        let marked = marked.iter().map(|(key, _)| object_handle(key));
        let handles: Vec<String> = context.claims.forget(release).into_iter().chain(marked).collect();
        self.sharers(context, release, &handles);
    }

    /// An applied object changed: its releases look at it, but the one with the mark `knows`, whose pass came upon it.
    fn object_changed(&self, context: &Context, changed: &objects::Changed, knows: Option<&str>) {
        let mut marks = marks_of(context, changed);
        marks.retain(|mark| Some(mark.as_str()) != knows);
        for mark in marks {
            if let Some(release) = context.memories.changed(&mark, &changed.key) {
                self.release(release);
            }
        }
    }

    /// A list of stacks has ended: each may have changed in a time that no event tells of.
    pub(crate) fn stacks_listed(&self, context: &Context) {
        self.stacks_where(context, |_| true);
    }

    /// A list of releases has ended: each may have changed in a time that no event tells of, and have been another stack's.
    pub(crate) fn releases_listed(&self, context: &Context) {
        self.releases_where(context, |_| true);
        self.stacks_where(context, |_| true);
        self.every_cluster(context);
    }

    /// Something about a release changed that is not in it: who has it, or could have it by its name, tells of that.
    fn stacks_of(&self, context: &Context, namespace: &str, release: &str) {
        if let Some(release) = context.releases.get(namespace, release) {
            self.release_changed(&release);
        }
        self.stacks_where(context, |stack| is_for(stack, namespace, release));
    }

    fn stacks_where(&self, context: &Context, test: impl Fn(&ClusterStack) -> bool) {
        for stack in context.stacks.watched() {
            if test(&stack) {
                self.stack(ObjectRef::from_obj(stack.as_ref()));
            }
        }
    }

    fn releases_where(&self, context: &Context, test: impl Fn(&ClusterStackRelease) -> bool) {
        for release in context.releases.watched() {
            if test(&release) {
                self.release(ObjectRef::from_obj(release.as_ref()));
            }
        }
    }
}

/// Gathers triggers for a moment and passes each stack on once.
async fn gather(
    mut triggers: UnboundedReceiver<ObjectRef<ClusterStack>>,
    queue: UnboundedSender<ObjectRef<ClusterStack>>,
) {
    while let Some(first) = triggers.next().await {
        let mut gathered = HashSet::from([first]);
        let end = tokio::time::sleep(GATHERING);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                more = triggers.next() => match more {
                    Some(stack) => drop(gathered.insert(stack)),
                    None => break,
                },
            }
        }
        for stack in gathered {
            if queue.unbounded_send(stack).is_err() {
                return;
            }
        }
    }
}

/// What the watches and sources tell.
pub(crate) struct News {
    pub(crate) objects: mpsc::Receiver<objects::Notice>,
    pub(crate) clusters: mpsc::Receiver<projection::Notice<Kept>>,
    pub(crate) leftovers: mpsc::Receiver<projection::Notice<LeftBehind>>,
    pub(crate) providers: mpsc::UnboundedReceiver<KindChange>,
    /// Of what belongs to Clusters, where add-ons are looked after.
    pub(crate) parts: Option<mpsc::UnboundedReceiver<KindChange>>,
    /// Of the clusters themselves, where add-ons are looked after.
    pub(crate) workloads: Option<mpsc::Receiver<workload::News>>,
    pub(crate) sources: mpsc::UnboundedReceiver<SourceChange>,
    pub(crate) crds: CrdWatch,
}

/// Starts what turns news into triggers.
pub(crate) fn follow(context: &Arc<Context>, tasks: &Tasks, triggers: &Triggers, stop: &CancellationToken, news: News) {
    let News {
        objects,
        clusters,
        leftovers,
        providers,
        parts,
        workloads,
        sources,
        crds,
    } = news;
    let given = || (Arc::clone(context), triggers.clone());
    let (task, stop) = (Task::Triggers, || stop.clone());
    let (context, triggers) = given();
    tasks.start_with(task, stop(), objects, move |news| {
        follow_objects(Arc::clone(&context), triggers.clone(), news)
    });
    let (context, triggers) = given();
    tasks.start(task, stop(), move || {
        follow_crds(Arc::clone(&context), triggers.clone(), crds.clone())
    });
    let (context, triggers) = given();
    tasks.start_with(task, stop(), clusters, move |news| {
        follow_clusters(Arc::clone(&context), triggers.clone(), news)
    });
    let (context, triggers) = given();
    tasks.start_with(task, stop(), leftovers, move |news| {
        follow_leftovers(Arc::clone(&context), triggers.clone(), news)
    });
    let (context, triggers) = given();
    tasks.start_with(task, stop(), providers, move |news| {
        follow_providers(Arc::clone(&context), triggers.clone(), news)
    });
    if let Some(parts) = parts {
        let (context, triggers) = given();
        tasks.start_with(task, stop(), parts, move |news| {
            addons::follow_parts(Arc::clone(&context), triggers.clone(), news)
        });
    }
    if let Some(workloads) = workloads {
        let (context, triggers) = given();
        tasks.start_with(task, stop(), workloads, move |news| {
            workloads::follow(Arc::clone(&context), triggers.clone(), news)
        });
    }
    let (context, triggers) = given();
    tasks.start_with(task, stop(), sources, move |news| {
        follow_sources(Arc::clone(&context), triggers.clone(), news)
    });
}

/// The marks of the releases that have an object: those that it carries or carried, and those of others whose inventory names it.
fn marks_of(context: &Context, changed: &objects::Changed) -> BTreeSet<String> {
    let named = context
        .releases
        .find_everywhere(&[object_handle(&changed.key)], |release| names(release, &changed.key));
    let carried = [Some(&changed.part_of), changed.was_part_of.as_ref()];
    let carried = carried.into_iter().flatten().map(ToString::to_string);
    let carried = carried.filter(|mark| context.memories.may_have(mark, &changed.key));
    carried.chain(named.iter().map(|release| mark(release))).collect()
}

/// Applied objects changed: their releases look at them.
async fn follow_objects(
    context: Arc<Context>,
    triggers: Triggers,
    mut notices: OwnedMutexGuard<mpsc::Receiver<objects::Notice>>,
) {
    while let Some(notice) = notices.recv().await {
        match notice {
            objects::Notice::Object(changed) => triggers.object_changed(&context, &changed, None),
            objects::Notice::Noted { changed, by } => triggers.object_changed(&context, &changed, Some(&by)),
            objects::Notice::Synced(kind) | objects::Notice::Stopped(kind) => {
                triggers.releases_where(&context, |release| uses(release, &kind));
            }
            // Releases wait for no objects of others.
            objects::Notice::Named(_) => {}
        }
    }
}

/// A release that has no inventory yet may be about to use any kind.
fn uses(release: &ClusterStackRelease, kind: &operator_kit::object::GroupKind) -> bool {
    let resources = release
        .status
        .as_ref()
        .map(|status| status.resources.as_slice())
        .unwrap_or_default();
    resources.is_empty()
        || resources
            .iter()
            .any(|row| row.group == kind.group && row.kind == kind.kind)
}

/// What is served changed: whoever has or wants kinds of these groups looks again.
async fn follow_crds(context: Arc<Context>, triggers: Triggers, crds: CrdWatch) {
    let mut changes = crds.subscribe();
    loop {
        let groups = match changes.recv().await {
            Ok(change) => Some(change.groups),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let groups = groups.as_deref();
        triggers.releases_where(&context, |release| {
            groups.is_none_or(|groups| release_names_group(release, groups))
        });
        triggers.stacks_where(&context, |stack| {
            groups.is_none_or(|groups| stack_names_group(stack, groups))
        });
    }
}

/// A Cluster began or ceased to use a class: the release may be deletable now, or must stay. Or its add-ons hang on what changed.
async fn follow_clusters(
    context: Arc<Context>,
    triggers: Triggers,
    mut notices: OwnedMutexGuard<mpsc::Receiver<projection::Notice<Kept>>>,
) {
    while let Some(notice) = notices.recv().await {
        addons::cluster_told(&context, &triggers, &notice);
        match notice {
            projection::Notice::Changed { before, after, .. } => {
                let class = |kept: Option<Arc<Kept>>| kept.and_then(|kept| kept.class.clone());
                let (before, after) = (class(before), class(after));
                if before == after {
                    continue;
                }
                for class in before.iter().chain(&after) {
                    let name = class.tag.to_string();
                    triggers.release(ObjectRef::new(&name).within(&class.namespace));
                    triggers.stacks_of(&context, &class.namespace, &name);
                }
            }
            projection::Notice::Synced => {
                triggers.releases_where(&context, |release| release.metadata.deletion_timestamp.is_some());
                triggers.stacks_where(&context, |_| true);
            }
        }
    }
}

/// What the Go operator left behind came, changed or went: the stack that it was made for tells of it.
async fn follow_leftovers(
    context: Arc<Context>,
    triggers: Triggers,
    mut notices: OwnedMutexGuard<mpsc::Receiver<projection::Notice<LeftBehind>>>,
) {
    while let Some(notice) = notices.recv().await {
        match notice {
            projection::Notice::Changed { place, before, after } => {
                if let (Some(gone), None) = (&before, &after) {
                    context.leftovers.forget(&gone.uid);
                }
                for left in before.iter().chain(&after) {
                    let stem = left.stem();
                    let is_for = |stack: &ClusterStack| {
                        stack.namespace().unwrap_or_default() == place.0
                            && stack.spec.stem().ok().as_ref() == Some(&stem)
                    };
                    triggers.stacks_where(&context, is_for);
                }
            }
            projection::Notice::Synced => triggers.stacks_where(&context, |_| true),
        }
    }
}

/// An object of a provider changed: the release of that name looks at it, and its stack compares it with the template. Of a template all stacks
/// that name it make objects anew.
async fn follow_providers(
    context: Arc<Context>,
    triggers: Triggers,
    mut changes: OwnedMutexGuard<mpsc::UnboundedReceiver<KindChange>>,
) {
    while let Some(KindChange { kind, namespace, name }) = changes.recv().await {
        match name {
            Some(name) if release_kind(&kind.kind).is_some() => {
                triggers.stacks_where(&context, |stack| names_template(stack, &kind, (&namespace, &name)));
            }
            Some(name) => {
                triggers.release(ObjectRef::new(&name).within(&namespace));
                triggers.stacks_of(&context, &namespace, &name);
            }
            None => {
                let is_of_kind = |release: &ClusterStackRelease| {
                    release.spec.provider_ref.as_ref().and_then(group_kind).as_ref() == Some(&kind)
                };
                triggers.releases_where(&context, is_of_kind);
                triggers.stacks_where(&context, |stack| is_provided_by(stack, &kind));
            }
        }
    }
}

/// The source changed: stacks select again, and releases whose files changed are opened again.
async fn follow_sources(
    context: Arc<Context>,
    triggers: Triggers,
    mut changes: OwnedMutexGuard<mpsc::UnboundedReceiver<SourceChange>>,
) {
    let trigger = |change: SourceChange| {
        let SourceChange {
            tags,
            unready,
            listings,
        } = change;
        if !listings.is_empty() {
            triggers.stacks_where(&context, |stack| {
                let namespace = stack.namespace().unwrap_or_default();
                context.sources.is_at(stack.spec.source.as_ref(), &namespace, &listings)
            });
        }
        if !unready.is_empty() || !tags.is_empty() {
            let names: HashSet<String> = tags.iter().map(ToString::to_string).collect();
            let is_there = |release: &ClusterStackRelease| {
                let namespace = release.namespace().unwrap_or_default();
                context
                    .sources
                    .is_at(release.spec.source.as_ref(), &namespace, &unready)
            };
            triggers.releases_where(&context, |release| {
                names.contains(&release.name_any()) || (awaits_files(release) && is_there(release))
            });
            triggers.users_of_files(&context, &names);
        }
    };
    pass_on(&mut changes, trigger, || end_idle_followers(&context)).await;
}

/// Whether a release could be better off with files that it does not have: one that is not ready, and one that is without its files.
fn awaits_files(release: &ClusterStackRelease) -> bool {
    release.status.as_ref().is_none_or(|status| {
        let downloaded = find(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
        !status.ready || downloaded.is_some_and(|downloaded| downloaded.reason.is_some())
    })
}
