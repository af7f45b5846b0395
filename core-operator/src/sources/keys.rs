//! The public keys and trust roots that policies trust: read from their Secrets when they are needed, and again from time to time, so that a key that is
//! added, changed or taken away counts without a restart. The trust root of policies that name none is a file of the operator, read as often; no policy
//! says which file.
//!
//! They are read and not watched: who may watch one Secret of a name that is not known beforehand may read them all.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::ReleaseTag;
use crds::policy::Cosign;
use crds::source::SecretReference;
use kube::Client;
use operator_kit::failure::chain;
use release::bundle::{Keyless, MAX_ROOT_BYTES, TrustRoot, TrustRootError};
use release::{ErrorClass, Keys, KeysError, Trust, Unverified};
use sourcing::{FileError, NamedFile, NamedSecret, SecretError};
use thiserror::Error;
use tokio::sync::{Notify, mpsc};
use tokio::time::{self, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::roots::Roots;
use super::{SourceChange, is_recent, lock};
use crate::tasks::{Task, Tasks};

/// Where public keys are, unless another key of the Secret is named; as `cosign generate-key-pair` calls it.
const PUBLIC_KEY: &str = "cosign.pub";
/// Where a trust root is; as sigstore calls it.
const TRUST_ROOT: &str = "trusted_root.json";
/// How often keys are read again: so long a key counts that was taken away.
const AGAIN: Duration = Duration::from_mins(1);
/// How often, as long as there are none.
const SOON: Duration = Duration::from_secs(10);
/// How soon, where nobody knows whether there are any; later and later, up to the same.
const AT_ONCE: Duration = Duration::from_secs(1);
const TRUST_ROOT_FIELD: &str = "spec.verification.cosign.keyless.trustRootSecretRef";
const TRUST_ROOT_FLAG: &str = "--trusted-root-file";

/// Whom a policy of a namespace trusts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyPlace {
    pub(super) namespace: String,
    pub(super) cosign: Cosign,
}

/// Why there are no keys.
#[derive(Debug, Error)]
enum KeyError {
    /// It cannot be read, or is not there.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// What is in it are no keys.
    #[error("the key {key:?} of the Secret {namespace}/{name} gives no public keys")]
    Keys {
        key: String,
        namespace: String,
        name: String,
        #[source]
        source: KeysError,
    },
    /// What is in it is no trust root.
    #[error("the key {key:?} of the Secret {namespace}/{name} gives no trust root")]
    Root {
        key: String,
        namespace: String,
        name: String,
        #[source]
        source: TrustRootError,
    },
    /// Neither policy nor operator has one.
    #[error(
        "there is no trust root: set {TRUST_ROOT_FIELD}, or have the operator started with {TRUST_ROOT_FLAG} for all policies without it"
    )]
    NoRoot,
    /// The operator's own cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Nobody parses a trust root any more.
    #[error("the operator ends")]
    Ended,
    /// The operator's own is none.
    #[error("{path}, which {TRUST_ROOT_FLAG} names, gives no trust root", path = path.display())]
    OwnRoot {
        path: PathBuf,
        #[source]
        source: TrustRootError,
    },
}

impl KeyError {
    /// What can end the problem.
    fn class(&self) -> ErrorClass {
        match self {
            Self::Secret(error) => error.class(),
            Self::File(error) => error.class(),
            Self::Ended => ErrorClass::Transient,
            Self::Keys { .. } | Self::Root { .. } | Self::NoRoot | Self::OwnRoot { .. } => ErrorClass::Waiting,
        }
    }
}

/// All keys that somebody asked for.
pub(super) struct KeyRing {
    client: Client,
    /// The trust root of policies that name none.
    own_root: Option<NamedFile>,
    roots: Roots,
    changes: mpsc::UnboundedSender<SourceChange>,
    tasks: Tasks,
    cancel: CancellationToken,
    known: Mutex<HashMap<KeyPlace, Known>>,
    /// Whose turn it is to read them for the first time; the others wait for what comes of it.
    turns: Mutex<HashMap<KeyPlace, Arc<tokio::sync::Mutex<()>>>>,
}

/// Keys, or why there are none, and who asked.
struct Known {
    keys: Result<Trust, Unverified>,
    /// Who asked, and when last.
    tags: HashMap<ReleaseTag, Instant>,
    /// The request of a stack that was answered last, by its name.
    requests: HashMap<String, String>,
    /// Somebody wants them read now.
    asked: Arc<Notify>,
    /// What ends the reading together with this value.
    _end: DropGuard,
}

impl KeyRing {
    pub(super) fn new(
        client: Client,
        own_root: Option<PathBuf>,
        changes: mpsc::UnboundedSender<SourceChange>,
        tasks: Tasks,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            own_root: own_root.map(|path| NamedFile::new(TRUST_ROOT_FLAG, path, MAX_ROOT_BYTES)),
            roots: Roots::default(),
            changes,
            tasks,
            cancel,
            known: Mutex::default(),
            turns: Mutex::default(),
        })
    }

    /// The keys of a policy, for this release, which is looked at again when they change. However many ask at once, they are read once.
    pub(super) async fn keys(self: &Arc<Self>, place: &KeyPlace, tag: &ReleaseTag) -> Result<Trust, Unverified> {
        if let Some(keys) = self.known(place, tag) {
            return keys;
        }
        let turn = Arc::clone(lock(&self.turns).entry(place.clone()).or_default());
        let _turn = turn.lock().await;
        if let Some(keys) = self.known(place, tag) {
            return keys;
        }
        let read = self.read(place).await;
        let pause = pause_after(&read, AGAIN);
        let keys = read.map_err(|error| not_checked(&error));
        let end = self.cancel.child_token();
        let known = Known {
            keys: keys.clone(),
            tags: HashMap::from([(tag.clone(), Instant::now())]),
            requests: HashMap::new(),
            asked: Arc::default(),
            _end: end.clone().drop_guard(),
        };
        lock(&self.known).insert(place.clone(), known);
        lock(&self.turns).remove(place);
        let (ring, place) = (Arc::clone(self), place.clone());
        self.tasks
            .start(Task::Keys, end, move || Arc::clone(&ring).follow(place.clone(), pause));
        keys
    }

    /// What was read already.
    fn known(&self, place: &KeyPlace, tag: &ReleaseTag) -> Option<Result<Trust, Unverified>> {
        let mut known = lock(&self.known);
        let known = known.get_mut(place)?;
        known.tags.insert(tag.clone(), Instant::now());
        Some(known.keys.clone())
    }

    /// Takes that a stack wants everything looked at anew: once for each request.
    pub(super) fn request(&self, place: &KeyPlace, stack: &str, request: &str) {
        if let Some(known) = lock(&self.known).get_mut(place)
            && known.requests.insert(stack.to_owned(), request.to_owned()).as_deref() != Some(request)
        {
            known.asked.notify_one();
        }
    }

    /// Ends the reading of what no release names any more. Who asked lately, also for what others asked for long ago, may be missing in `needed`,
    /// which was listed before.
    pub(super) fn retain(&self, needed: &HashMap<KeyPlace, HashSet<ReleaseTag>>) {
        let nobody = HashSet::new();
        lock(&self.known).retain(|place, known| {
            let named = needed.get(place);
            let tags = named.unwrap_or(&nobody);
            known.tags.retain(|tag, asked| tags.contains(tag) || is_recent(*asked));
            named.is_some() || !known.tags.is_empty()
        });
    }

    async fn follow(self: Arc<Self>, place: KeyPlace, mut pause: Duration) {
        loop {
            let asked = lock(&self.known).get(&place).map(|known| Arc::clone(&known.asked));
            let Some(asked) = asked else { return };
            tokio::select! {
                () = time::sleep(pause) => {}
                () = asked.notified() => {}
            }
            let read = self.read(&place).await;
            pause = pause_after(&read, pause);
            let mut all = lock(&self.known);
            let Some(known) = all.get_mut(&place) else { return };
            if let (Ok(_), Err(error)) = (&known.keys, &read)
                && error.class() == ErrorClass::Transient
            {
                // What cannot be read now says nothing of what was read before.
                continue;
            }
            let read = read.map_err(|error| not_checked(&error));
            if known.keys != read {
                known.keys = read;
                let tags = known.tags.keys().cloned().collect();
                // A closed channel means that the process is about to end.
                let _ = self.changes.send(SourceChange::of_tags(tags));
            }
        }
    }

    async fn read(&self, place: &KeyPlace) -> Result<Trust, KeyError> {
        match &place.cosign {
            Cosign::PublicKeySecretRef(reference) => {
                let field = "spec.verification.cosign.publicKeySecretRef";
                let (key, value) = self.secret(place, field, reference, PUBLIC_KEY).await?;
                let keys = Keys::from_pem(&value).map_err(|source| KeyError::Keys {
                    key,
                    namespace: place.namespace.clone(),
                    name: reference.name.clone(),
                    source,
                })?;
                Ok(Trust::Keys(keys))
            }
            Cosign::Keyless(keyless) => Ok(Trust::Keyless(Keyless {
                issuer: keyless.issuer.clone(),
                identity: keyless.identity.clone(),
                root: self.root(place, keyless.trust_root_secret_ref.as_ref()).await?,
            })),
        }
    }

    /// The trust root that a policy names, or else the operator's own.
    async fn root(&self, place: &KeyPlace, named: Option<&SecretReference>) -> Result<Arc<TrustRoot>, KeyError> {
        let Some(reference) = named else {
            let file = self.own_root.as_ref().ok_or(KeyError::NoRoot)?;
            let root = self
                .roots
                .parsed(&place.namespace, file.read().await?)
                .await
                .ok_or(KeyError::Ended)?;
            return root.map_err(|source| KeyError::OwnRoot {
                path: file.path().to_owned(),
                source,
            });
        };
        let (key, value) = self.secret(place, TRUST_ROOT_FIELD, reference, TRUST_ROOT).await?;
        let root = self
            .roots
            .parsed(&place.namespace, value)
            .await
            .ok_or(KeyError::Ended)?;
        root.map_err(|source| KeyError::Root {
            key,
            namespace: place.namespace.clone(),
            name: reference.name.clone(),
            source,
        })
    }

    /// Which key of a Secret was read, and what is there.
    async fn secret(
        &self,
        place: &KeyPlace,
        field: &'static str,
        reference: &SecretReference,
        usual: &str,
    ) -> Result<(String, Vec<u8>), SecretError> {
        let read = NamedSecret::read(&self.client, field, reference, &place.namespace).await?;
        let key = reference.key.as_deref().unwrap_or(usual);
        let value = read.value(key).ok_or_else(|| read.missing(&format!("key {key:?}")))?;
        Ok((key.to_owned(), value.to_vec()))
    }
}

/// When keys are read again, after this pause before. Who could not ask knows nothing of them: that is not told for longer than it is so.
fn pause_after(read: &Result<Trust, KeyError>, before: Duration) -> Duration {
    match read {
        Ok(_) => AGAIN,
        Err(error) if error.class() == ErrorClass::Transient && before > SOON => AT_ONCE,
        Err(error) if error.class() == ErrorClass::Transient => (before * 2).min(SOON),
        Err(_) => SOON,
    }
}

fn not_checked(error: &KeyError) -> Unverified {
    Unverified::NotChecked { why: chain(error) }
}

#[cfg(test)]
mod tests;
