//! Reads of objects, and what is remembered of them.

use crds::labels;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::failure::chain;
use operator_kit::object::{ObjectKey, json_of};
use operator_kit::objects::Seen;
use planning::objects::{Attempt, Belongs, Intent, Read};
use serde_json::Value;

use super::execute::{Failed, Pass};
use super::live::{belongs, judged};
use super::memory::lock;
use super::owner::Owner;

/// How often in a row an object is read that changes meanwhile.
const TRIES: usize = 3;

/// Said of an object that changed each time.
const RESTLESS: &str = "it changes faster than it is read";

impl<O: Owner> Pass<'_, O> {
    /// Reads an object that is to go or to be taken over, or whose health matters.
    pub(super) async fn read(&self, key: &ObjectKey) -> Result<(), Failed> {
        for _ in 0..TRIES {
            if self.read_once(key).await? {
                return Ok(());
            }
        }
        // How it is has been noted, and of one that stays nothing else matters.
        Err(self.remember_failure(key, Attempt::Deletion, RESTLESS))
    }

    /// False where it changed meanwhile: what is older than the news would be believed for ever.
    async fn read_once(&self, key: &ObjectKey) -> Result<bool, Failed> {
        let changes = lock(self.memory).changes(key);
        let live = self.look(key).await?;
        let belongs = match &live {
            Some(live) => self.whose(key, live).await?,
            None => Belongs::Nobody,
        };
        let is_going = |live: &DynamicObject| live.metadata.deletion_timestamp.is_some();
        if live.as_ref().is_some_and(is_going) {
            self.forget_form(key);
        }
        let now = self.clock.now();
        let mut memory = lock(self.memory);
        let object = memory.of(key);
        let read = match live {
            None => {
                object.health = None;
                Read::Absent
            }
            Some(live) => {
                let version = live.resource_version().unwrap_or_default();
                let read = Read::Found {
                    uid: live.uid().unwrap_or_default(),
                    resource_version: version.clone(),
                    belongs,
                    keep: live.annotations().get(labels::RESOURCE_POLICY).map(String::as_str)
                        == Some(labels::RESOURCE_POLICY_KEEP),
                    deleting: is_going(&live),
                    at: now,
                };
                object.health = Some(judged(&json_of(live), version, now).after(object.health.as_ref()));
                read
            }
        };
        Ok(memory.remember_read(key, changes, read))
    }

    /// Whose an object is; of one with another owner's mark, whether that is there though it is not watched.
    async fn whose(&self, key: &ObjectKey, live: &DynamicObject) -> Result<Belongs, Failed> {
        match (belongs(live, self.part_of), live.labels().get(labels::PART_OF)) {
            (Belongs::OtherOwner, Some(mark)) => match self.owner.is_elsewhere(key, mark).await {
                Ok(true) => Ok(Belongs::Stranger),
                Ok(false) => Ok(Belongs::OtherOwner),
                Err(message) => Err(self.remember_failure(key, Attempt::Look, &message)),
            },
            (belongs, _) => Ok(belongs),
        }
    }

    /// Reads the object, and remembers that this failed or no longer does.
    pub(super) async fn look(&self, key: &ObjectKey) -> Result<Option<DynamicObject>, Failed> {
        let place = self.place;
        let before = place.objects.get(key);
        match place.read(key).await {
            Ok(live) => {
                let marked = |live: &DynamicObject| place.objects.sight(key, &live.metadata).is_some();
                if let Some(before) = before.filter(|_| !live.as_ref().is_some_and(marked)) {
                    self.forget(key, &before).await;
                }
                let mut memory = lock(self.memory);
                let object = memory.of(key);
                object.failure.take_if(|failure| failure.tried == Attempt::Look);
                Ok(live)
            }
            Err(error) => Err(self.remember_failure(key, Attempt::Look, &chain(&error))),
        }
    }

    /// An object in the form that its rendering has, where that is not the one it was read in: Cluster API serves v1beta2 before the v1beta1 of many
    /// charts, and the two differ in everything. The watch shows the other form, whose labels and annotations may differ from this one's.
    ///
    /// `None` where it is, and where it has gone in between, of which the watch tells.
    pub(super) async fn in_form_of_rendering(
        &self,
        key: &ObjectKey,
        live: &DynamicObject,
    ) -> Result<Option<Value>, Failed> {
        let intent = self.intents.and_then(|intents| intents.get(key));
        let is_that = |intent: &Intent| {
            let types = live.types.as_ref();
            types.is_none_or(|types| types.api_version == intent.object.api_version())
        };
        let Some(intent) = intent.filter(|intent| !is_that(intent)) else {
            return Ok(None);
        };
        match self.place.read_in(key, &intent.object.version).await {
            Ok(found) => Ok(found.map(json_of)),
            Err(error) => Err(self.remember_failure(key, Attempt::Look, &chain(&error))),
        }
    }

    /// Forgets a sight of what is gone, or has lost its mark: the watch may be behind. Of a kind that is not served nothing is known: its objects come back with it.
    pub(super) async fn forget(&self, key: &ObjectKey, before: &Seen) {
        if let Ok(Some(_)) = self.place.discovery.resolve_kind(&key.group_kind()).await {
            self.place.objects.note_absent(self.part_of, key, before).await;
        }
    }
}
