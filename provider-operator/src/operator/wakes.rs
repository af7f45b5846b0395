//! What follows from news for others than whom they are about: which drivers are woken, and which files of releases are kept. Decides nothing about objects.

use std::sync::Arc;

use kube::ResourceExt;

use crate::context::{Context, Served};
use crate::executor::{ObjectId, Wake};
use crate::image_files::pinned;
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

/// A list has ended: each object may have changed in a time that no event tells of.
pub(super) fn wake_all(served: &Served) {
    for image in served.images.watched_now() {
        served.wake_image(&image.namespace().unwrap_or_default(), &image.name_any());
    }
    for release in served.releases.watched_now() {
        served.wake_release(&release.namespace().unwrap_or_default(), &release.name_any());
    }
}
