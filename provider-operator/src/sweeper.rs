//! Finds images of ours in clouds that no object is for any more, tells of them, and deletes those that may go: at the start, and every hour. What is an
//! orphan and when it may go is decided in `planning`; whose images are looked at is said by the objects that there are, so that a cloud nobody names is
//! left alone.

mod found;
mod listing;
mod survey;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::events::Happening;
use operator_kit::events::EventType;
use operator_kit::failure::chain;
use planning::image::{SweepDeed, sweep, sweep_again};
use tokio::time::sleep;

use self::found::{Found, Meeting, Memory};
pub(crate) use self::listing::{Left, list, owner};
use self::survey::{Scope, Sight, Survey, name_of};
use crate::context::{Context, Served};
use crate::metrics::Orphans;

/// What is swept.
#[derive(Clone, Debug)]
pub(crate) struct Scopes {
    /// The one namespace that is looked after; all when empty.
    pub(crate) namespace: String,
    /// The label that the objects have that are looked after; any when empty.
    pub(crate) watch_filter: String,
    /// Whether verified images are deleted too.
    pub(crate) with_verified: bool,
}

/// Sweeps for as long as it is polled.
pub(crate) async fn run(context: Arc<Context>, served: Vec<Arc<Served>>, scopes: Scopes) {
    for served in &served {
        served.images.listed().await;
    }
    let mut sweeper = Sweeper {
        context,
        served,
        scopes,
        memory: Memory::default(),
    };
    let mut round = 0;
    loop {
        sweeper.sweep().await;
        sleep(sweep_again(sweeper.context.owner.as_str(), round)).await;
        round += 1;
    }
}

struct Sweeper {
    context: Arc<Context>,
    served: Vec<Arc<Served>>,
    scopes: Scopes,
    memory: Memory,
}

impl Sweeper {
    /// One look at all clouds, and what follows from it.
    async fn sweep(&mut self) {
        let mut counted = Orphans::default();
        let mut memory = Memory::default();
        for served in self.served.clone() {
            self.sweep_provider(&served, &mut memory, &mut counted).await;
        }
        self.memory = memory;
        self.context.metrics.orphans(counted);
    }

    async fn sweep_provider(&self, served: &Served, memory: &mut Memory, counted: &mut Orphans) {
        let survey = self.survey();
        let seen = survey.clouds(served.kind, &served.images.watched_now()).await;
        for words in seen.unasked {
            tracing::debug!(error = words, "a cloud is not searched for orphans");
        }
        if seen.sights.is_empty() {
            return;
        }
        let live = self.live(&survey, served).await;
        let mut found = Found::default();
        for (scope, sight) in seen.sights {
            let before = self.memory.of(scope.provider, &scope.cloud);
            let owned = match &sight.owned {
                Ok(owned) => owned,
                Err(failure) => {
                    tracing::debug!(
                        cloud = scope.cloud,
                        error = failure.message,
                        "a cloud could not be searched for orphans"
                    );
                    memory.unanswered(scope.provider, &scope.cloud, before);
                    continue;
                }
            };
            counted.searched(scope.provider, &scope.cloud);
            let now = self.context.clock.now();
            let with_verified = self.scopes.with_verified;
            let swept = sweep(owned, live.as_ref(), &before, now.wall, now.steady, with_verified);
            for deed in swept.deeds {
                self.settle(served, &scope, &sight, deed, &mut found).await;
            }
            memory.answered(scope.provider, &scope.cloud, owned, swept.sightings);
        }
        for (cloud, verified) in found.left() {
            counted.found(served.kind.provider(), cloud, verified);
        }
    }

    /// The objects that exist; `None` where not all are known.
    async fn live(&self, survey: &Survey<'_>, served: &Served) -> Option<BTreeSet<String>> {
        match survey.objects(served.kind).await {
            Ok(listed) => Some(listed.names),
            Err(error) => {
                let kind = served.kind.definition().image_kind;
                tracing::warn!(
                    error = chain(&error),
                    kind,
                    "not all objects could be listed, so no image is an orphan yet"
                );
                None
            }
        }
    }

    /// Performs what is to be done about one orphan, unless that was done. Two identities may see one project, and one of them may delete what the other
    /// may only look at.
    async fn settle(&self, served: &Served, scope: &Scope, sight: &Sight, mut deed: SweepDeed, found: &mut Found) {
        match found.meet(&scope.cloud, &deed.image) {
            Meeting::First => {}
            Meeting::Again => deed.is_new = false,
            Meeting::Gone => return,
        }
        if self.perform(served, scope, sight, &deed).await {
            found.gone(&scope.cloud, &deed.image);
        }
    }

    /// Whether the image is gone.
    async fn perform(&self, served: &Served, scope: &Scope, sight: &Sight, deed: &SweepDeed) -> bool {
        let SweepDeed { image, delete, is_new } = deed;
        if *is_new {
            let words = table::found(image, self.scopes.with_verified);
            tracing::warn!(
                cloud = scope.cloud,
                image = image.id,
                object = image.object,
                verified = image.verified,
                "{words}"
            );
            self.tell(served, sight, EventType::Warning, Happening::OrphanFound, &words);
        }
        // It may have come since, and another process may lead since.
        let (namespace, name) = image.object.split_once('/').unwrap_or_default();
        let is_wanted = served.images.get(namespace, name).is_some();
        if !delete || is_wanted || self.context.tenure.enter(0).is_none() {
            return false;
        }
        let Context { asking, owner, .. } = self.context.as_ref();
        let marked = sight.marked(image, owner);
        let discarding = asking.discard(scope.provider, &sight.connection, &image.id, &marked);
        match discarding.await {
            Ok(_) => {
                let words = table::deleted(image);
                tracing::info!(cloud = scope.cloud, image = image.id, object = image.object, "{words}");
                self.tell(served, sight, EventType::Normal, Happening::OrphanDeleted, &words);
                true
            }
            Err(failure) => {
                let error = failure.message;
                tracing::warn!(
                    cloud = scope.cloud,
                    image = image.id,
                    error,
                    "an orphan could not be deleted; it is tried again"
                );
                false
            }
        }
    }

    fn tell(&self, served: &Served, sight: &Sight, kind: EventType, what: Happening, words: &str) {
        tracing::trace!(object = name_of(&sight.newest), "is told of an orphan");
        let reference = served.image_reference(&sight.newest);
        self.context.events.publish(reference, kind, what, words);
    }

    fn survey(&self) -> Survey<'_> {
        let context = &self.context;
        Survey {
            client: &context.client,
            secrets: &context.secrets,
            connections: &context.connections,
            asking: &context.asking,
            owner: &context.owner,
            namespace: &self.scopes.namespace,
            watch_filter: &self.scopes.watch_filter,
        }
    }
}
