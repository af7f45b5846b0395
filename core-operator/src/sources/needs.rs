//! What releases need of the store, so that nothing else's coming takes it away: their files, and where a policy asks for signatures, what their
//! source has to show for them.

use std::collections::HashMap;
use std::sync::Arc;

use crds::ClusterStackRelease;
use kube::ResourceExt;
use release::Digest;
use release::store::Needs;
use sourcing::Place;

use super::{Follower, Sources, lock, pinned, verification};

impl Sources {
    /// Keeps in the store what any of these releases needs, whoever looks after it: processes may share a folder, and shards change hands.
    pub(crate) fn keep_for(&self, releases: &[Arc<ClusterStackRelease>]) {
        let mut origins = HashMap::new();
        let mut needs = Needs::new();
        for release in releases {
            let namespace = release.namespace().unwrap_or_default();
            let place = self.place(release.spec.source.as_ref(), &namespace).ok();
            let place = place.filter(|place| !matches!(place, Place::Directory(_)));
            let awaited = place.as_ref().and_then(|place| self.awaited(place, release));
            let verified = place.filter(|_| verification::policy(release).is_some());
            let origin = verified.map(|place| {
                let id = |place: &Place| self.options.connector.connection(place).id();
                *origins.entry(place).or_insert_with_key(id)
            });
            for digest in [pinned(release), awaited].into_iter().flatten() {
                needs.entry(digest).or_default().extend(origin);
            }
        }
        self.options.cache.keep(needs);
    }

    /// What a release has of its source without having pinned it, as one that waits for its signature. At most one for each release: a source
    /// that moves its tags takes no more room by that.
    fn awaited(&self, place: &Place, release: &ClusterStackRelease) -> Option<Digest> {
        let tag = release.name_any().parse().ok()?;
        let followers = lock(&self.followers);
        match &followers.get(place)?.follower {
            Follower::Remote(follower) => follower.awaited(&tag, pinned(release)),
            Follower::Directory(_) => None,
        }
    }
}
