//! The one annotation that a call leaves behind, written beside the answer: nobody waits for it, and whoever needs it holds the cluster up until he sees it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::{ClusterAddon, labels};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use operator_kit::failure::chain;
use planning::addon::HookCalled;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// For one of them.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// So many are written at once; of more the next call reminds us.
const AT_ONCE: usize = 16;

/// Writes annotations. Clones share the work.
#[derive(Clone)]
pub(super) struct Notes {
    client: Client,
    /// Where the client is at home, which is not where calls are answered.
    home: Handle,
    places: Arc<Semaphore>,
    /// Those that are being written.
    under_way: Arc<Mutex<BTreeSet<Note>>>,
    stop: CancellationToken,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    namespace: String,
    name: String,
    uid: String,
    called: String,
}

impl Notes {
    /// To be called where the client was made.
    pub(super) fn new(client: Client, stop: &CancellationToken) -> Self {
        Self {
            client,
            home: Handle::current(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            under_way: Arc::default(),
            stop: stop.clone(),
        }
    }

    /// Begins to write which hook was called into the ClusterAddon that was seen, unless that goes on already. A call that is not let through is made again, and
    /// with it what was not written.
    pub(super) fn write(&self, addon: &ClusterAddon, called: &HookCalled) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return;
        };
        let note = Note {
            namespace: addon.namespace().unwrap_or_default(),
            name: addon.name_any(),
            uid: addon.uid().unwrap_or_default(),
            called: called.text(),
        };
        if !self.under_way().insert(note.clone()) {
            return;
        }
        let notes = self.clone();
        let writing = async move {
            let written = timeout(WRITE_DEADLINE, notes.patch(&note)).await;
            let why = match written {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(chain(&error)),
                Err(_) => Some(format!("no answer within {WRITE_DEADLINE:?}")),
            };
            if let Some(why) = why {
                let Note { namespace, name, .. } = &note;
                tracing::warn!(
                    namespace,
                    name,
                    why,
                    "failed to note the call of a lifecycle hook; the next call tries again"
                );
            }
            notes.under_way().remove(&note);
            drop(place);
        };
        self.home.spawn(self.stop.clone().run_until_cancelled_owned(writing));
    }

    /// With the uid as precondition: an add-on of the same name that was made anew has nothing to do with the call.
    async fn patch(&self, note: &Note) -> Result<(), kube::Error> {
        let Note {
            namespace,
            name,
            uid,
            called,
        } = note;
        let params = PatchParams {
            field_manager: Some(labels::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = json!({ "metadata": { "uid": uid, "annotations": { (labels::HOOK_CALLED): called } } });
        let api: Api<ClusterAddon> = Api::namespaced(self.client.clone(), namespace);
        api.patch_metadata(name, &params, &Patch::Merge(patch)).await.map(drop)
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeSet<Note>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
