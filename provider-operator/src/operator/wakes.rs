//! What follows from news for others than whom they are about: which drivers are woken, and which files of releases are kept. Decides nothing about objects.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

use crate::context::{Context, Served};
use crate::executor::Wake;
use crate::image_files::pinned;
use crate::objects::ObjectId;
use crate::supply::Needed;

/// By what the executor wakes the drivers of images.
pub(super) fn wakes_images(served: &[Arc<Served>]) -> Wake {
    let served = served.to_vec();
    Arc::new(move |object: &ObjectId| {
        let of_provider = served.iter().find(|served| served.kind.provider() == object.provider);
        if let Some(served) = of_provider {
            served.wake_image(&object.namespace, &object.name);
        }
    })
}

/// By what files of releases that have come wake the drivers of releases: whoever's they are, by their tag.
pub(super) fn wakes_releases(served: &[Arc<Served>]) -> crate::supply::Wake {
    let served = served.to_vec();
    Arc::new(move |tag: &str| {
        for served in &served {
            for release in served.releases.watched_now() {
                if release.name_any() == tag {
                    served.wake_release(&release.namespace().unwrap_or_default(), tag);
                }
            }
        }
    })
}

/// Says which releases are needed.
pub(super) type Keep = Arc<dyn Fn() + Send + Sync>;

/// By what the files of releases are kept that there are objects of: of all providers, once all of them are known.
pub(super) fn keeps(served: &[Arc<Served>], context: &Arc<Context>) -> Keep {
    let (served, supply) = (served.to_vec(), context.supply.clone());
    Arc::new(move || {
        if !served.iter().all(|served| served.releases.is_listed()) {
            return;
        }
        let mut needed = Needed::new();
        for release in served.iter().flat_map(|served| served.releases.watched_now()) {
            let digests = needed.entry(release.name_any()).or_default();
            digests.extend(pinned(&release));
        }
        supply.keep(&needed);
    })
}

/// What the watch tells of an image. One that went is looked at once more, whoever let it go: nothing is to go on for it, nor to be remembered.
pub(super) fn of_image(served: &Served, event: &Event<DynamicObject>) {
    served.images.take(event);
    match event {
        Event::Apply(image) => served.wake_owners(image),
        Event::Delete(image) => {
            served.wake_owners(image);
            served.wake_image(&image.namespace().unwrap_or_default(), &image.name_any());
        }
        Event::InitDone => wake_all(served),
        Event::Init | Event::InitApply(_) => {}
    }
}

/// The same of a release.
pub(super) fn of_release(served: &Served, event: &Event<DynamicObject>) {
    served.releases.take(event);
    match event {
        Event::Delete(release) => {
            served.wake_release(&release.namespace().unwrap_or_default(), &release.name_any());
        }
        Event::InitDone => wake_all(served),
        Event::Init | Event::InitApply(_) | Event::Apply(_) => {}
    }
}

/// A list has ended: each object may have changed in a time that no event tells of.
fn wake_all(served: &Served) {
    for image in served.images.watched_now() {
        served.wake_image(&image.namespace().unwrap_or_default(), &image.name_any());
    }
    for release in served.releases.watched_now() {
        served.wake_release(&release.namespace().unwrap_or_default(), &release.name_any());
    }
}

#[cfg(test)]
mod tests {
    use crds::providers::Provider;
    use futures::channel::mpsc::UnboundedReceiver;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use kube::runtime::reflector::ObjectRef;

    use super::*;
    use crate::kinds::Kind;
    use crate::operator::fed;

    fn woken(queue: &mut UnboundedReceiver<ObjectRef<DynamicObject>>) -> Vec<String> {
        std::iter::from_fn(|| queue.try_recv().ok())
            .map(|object| object.name)
            .collect()
    }

    #[test]
    fn what_went_is_looked_at_once_more_and_the_owners_of_an_image_with_it() {
        let kind = Kind::of(Provider::FileStore).expect("it is compiled in");
        let (served, [of_images, of_releases]) = fed(kind);
        let (mut images, mut releases) = (of_images.queue, of_releases.queue);
        let mut image = DynamicObject::new("ubuntu", served.images.resource()).within("fleet");
        image.metadata.owner_references = Some(vec![OwnerReference {
            kind: served.kind.definition().release_kind.to_owned(),
            name: "v1".to_owned(),
            ..OwnerReference::default()
        }]);
        of_image(&served, &Event::Apply(image.clone()));
        assert_eq!(
            (woken(&mut images), woken(&mut releases)),
            (vec![], vec!["v1".to_owned()])
        );
        of_image(&served, &Event::Delete(image));
        assert_eq!(
            (woken(&mut images), woken(&mut releases)),
            (vec!["ubuntu".to_owned()], vec!["v1".to_owned()])
        );
        let release = DynamicObject::new("v1", served.releases.resource()).within("fleet");
        of_release(&served, &Event::Apply(release.clone()));
        assert!(woken(&mut releases).is_empty(), "its own watch wakes the driver");
        of_release(&served, &Event::Delete(release));
        assert_eq!(woken(&mut releases), ["v1"]);
    }
}
