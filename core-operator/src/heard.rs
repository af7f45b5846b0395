//! What the watches of our own kinds tell: memories take it in, and drivers are woken by it. Decides nothing else.
//!
//! The store of a watch takes a list as a whole, when it has ended (kube-runtime 5.0). So whoever is in a list is woken by its end: woken before, a
//! driver would find nothing, or what was so before, and nobody would wake it again.

use std::future::ready;
use std::sync::Arc;

use crds::cluster_addon::ClusterAddon;
use crds::{ClusterStack, ClusterStackRelease};
use futures::{Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, Event};

use crate::addon::cluster_of;
use crate::context::Context;
use crate::release::mark;
use crate::triggers::Triggers;

/// The stacks to look at because they changed.
pub(crate) fn stack_events<S>(
    context: &Arc<Context>,
    triggers: &Triggers,
    events: S,
) -> impl Stream<Item = watcher::Result<ClusterStack>> + Send + 'static
where
    S: Stream<Item = watcher::Result<Event<ClusterStack>>> + Send + 'static,
{
    let (taking, listing, triggers) = (Arc::clone(context), Arc::clone(context), triggers.clone());
    let take = move |event: &Event<ClusterStack>| {
        for stack in taking.stacks.take(event) {
            taking.stack_memories.forget(&stack.uid().unwrap_or_default());
        }
    };
    changed(events, take, move || triggers.stacks_listed(&listing))
}

/// The releases to look at because they changed.
pub(crate) fn release_events<S>(
    context: &Arc<Context>,
    triggers: &Triggers,
    events: S,
) -> impl Stream<Item = watcher::Result<ClusterStackRelease>> + Send + 'static
where
    S: Stream<Item = watcher::Result<Event<ClusterStackRelease>>> + Send + 'static,
{
    let (taking, telling) = (Arc::clone(context), triggers.clone());
    let take = move |event: &Event<ClusterStackRelease>| {
        for release in taking.releases.take(event) {
            taking.memories.forget(&mark(&release));
            taking.charts.forget(&ObjectRef::from_obj(release.as_ref()));
            telling.release_gone(&taking, &release);
        }
        match event {
            Event::Apply(release) => telling.release_told(&taking, release),
            // The end of the list wakes everybody.
            Event::InitApply(release) => drop(taking.claims.hear(release)),
            Event::Init | Event::InitDone | Event::Delete(_) => {}
        }
    };
    let (listing, triggers) = (Arc::clone(context), triggers.clone());
    changed(events, take, move || triggers.releases_listed(&listing))
}

/// The ClusterAddons to look at because they changed. Of Clusters that have one more is kept than of others.
pub(crate) fn addon_events<S>(
    context: &Arc<Context>,
    triggers: &Triggers,
    events: S,
) -> impl Stream<Item = watcher::Result<ClusterAddon>> + Send + 'static
where
    S: Stream<Item = watcher::Result<Event<ClusterAddon>>> + Send + 'static,
{
    let (taking, telling) = (Arc::clone(context), triggers.clone());
    let take = move |event: &Event<ClusterAddon>| {
        let Some(addons) = &taking.addons else { return };
        for addon in addons.objects.take(event) {
            addons.forget(&taking, &ObjectRef::from_obj(addon.as_ref()));
            if let Some((namespace, cluster)) = cluster_of(&addon) {
                taking.clusters.forget(&namespace, &cluster);
            }
            telling.addon_gone(&taking, &addon);
        }
        if let Event::Apply(addon) | Event::InitApply(addon) = event
            && let Some((namespace, cluster)) = cluster_of(addon)
        {
            taking.clusters.tend(&namespace, &cluster);
        }
    };
    let (listing, triggers) = (Arc::clone(context), triggers.clone());
    changed(events, take, move || triggers.every_cluster(&listing))
}

/// Passes on the objects that changed one by one; `listed` is called when a list has ended. `take` is told everything first.
fn changed<K, S>(
    events: S,
    mut take: impl FnMut(&Event<K>),
    mut listed: impl FnMut(),
) -> impl Stream<Item = watcher::Result<K>>
where
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    let object = move |event| {
        let event = match event {
            Ok(event) => event,
            Err(error) => return Some(Err(error)),
        };
        take(&event);
        match event {
            Event::Apply(object) => Some(Ok(object)),
            Event::InitDone => {
                listed();
                None
            }
            Event::Init | Event::InitApply(_) | Event::Delete(_) => None,
        }
    };
    events.map(object).filter_map(ready)
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector::{self, reflector};

    use super::*;

    fn object(name: &str, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[tokio::test]
    async fn whoever_is_woken_finds_in_the_store_what_woke_it() {
        let (store, writer) = reflector::store();
        let events = [
            Event::Init,
            Event::InitApply(object("old", "1")),
            Event::InitDone,
            // The watch was interrupted.
            Event::Init,
            Event::InitApply(object("old", "3")),
            Event::InitApply(object("new", "2")),
            Event::InitDone,
            Event::Apply(object("new", "4")),
            Event::Delete(object("old", "5")),
        ];
        let events = reflector(writer, stream::iter(events.map(Ok)));
        let mut lists = Vec::new();
        let listed = || {
            let shown = store.state();
            let mut shown: Vec<_> = shown.iter().map(|object| object.resource_version()).collect();
            shown.sort();
            lists.push(shown.into_iter().flatten().collect::<Vec<_>>().join(" "));
        };
        let woken = changed(events, |_| (), listed).map(|object| {
            let object = object.expect("no watch fails here");
            let found = store.get(&ObjectRef::from_obj(&object));
            assert_eq!(found.as_deref(), Some(&object), "woken by what is not in the store yet");
            object.name_any()
        });
        assert_eq!(woken.collect::<Vec<_>>().await, ["new"]);
        assert_eq!(lists, ["1", "2 3"]);
    }
}
