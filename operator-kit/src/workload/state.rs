//! What is known of the way to a workload cluster, and what is told of it.

use std::fmt;
use std::sync::Arc;

use kube::client::Client;
use tokio::time::Instant;

use super::kubeconfig::KubeconfigError;
use crate::crd_watch::{CrdChange, CrdWatch};
use crate::discovery::Discovery;
use crate::objects::{Notice, ObjectWatches};

/// The way to one workload cluster, now.
#[derive(Clone, Debug)]
pub enum State {
    /// Nobody follows the cluster, or there is no kubeconfig of it.
    Disconnected,
    /// The first attempt is under way: nobody has looked for the kubeconfig yet, or the cluster has not answered yet.
    Connecting,
    /// It answers.
    Healthy(Connection),
    /// It does not, or not to us.
    Suspect(Suspicion),
}

impl State {
    /// As metrics call it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Connecting => "connecting",
            Self::Healthy(_) => "healthy",
            Self::Suspect(_) => "suspect",
        }
    }

    /// The connection, if there is one.
    pub fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Healthy(connection) => Some(connection),
            _ => None,
        }
    }
}

/// What is asked of a cluster through. It is one of one kubeconfig: once the state is another, its watches have ended.
#[derive(Clone)]
pub struct Connection {
    /// Bounded like that of the management cluster, with a rate and connections of its own, and the same fence.
    pub client: Client,
    /// What the cluster serves; read when somebody asks.
    pub discovery: Discovery,
    /// What keeps that honest. It costs one of the watches.
    pub crds: CrdWatch,
    /// The marked objects of the kinds that are followed: as many as there may be watches are watched, the others listed now and then.
    pub objects: ObjectWatches,
}

impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Connection(..)")
    }
}

/// That a cluster does not answer, or not to us.
#[derive(Clone, Debug)]
pub struct Suspicion {
    /// What went wrong last.
    pub reason: Reason,
    /// Since when it does not answer.
    pub since: Instant,
    /// When it is asked next, unless something happens before.
    pub next_attempt: Instant,
}

/// What went wrong. Words of others in it are one line of at most a kilobyte, and none of it is secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The Secret may be there, but could not be read.
    #[error("failed to read the Secret with the kubeconfig: {words}")]
    ReadSecret {
        /// The API server's.
        words: String,
    },
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Refuse(#[from] KubeconfigError),
    /// The credentials are not, or no longer, good.
    #[error("the API server of the cluster does not accept the credentials of the kubeconfig; renew them")]
    Authenticate,
    /// One of the two sides does not trust the certificate of the other.
    #[error(
        "no TLS connection to the API server of the cluster: {words}; look whether the kubeconfig is still that of this cluster"
    )]
    Secure {
        /// Why.
        words: String,
    },
    /// Nobody answers there.
    #[error("failed to reach the API server of the cluster: {words}")]
    Reach {
        /// Why.
        words: String,
    },
    /// Somebody may be there, and says nothing.
    #[error(
        "the API server of the cluster did not answer within {seconds} s; look at its load, and at the network on the way"
    )]
    Wait {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It says itself that something is wrong.
    #[error(
        "the API server of the cluster answers with the code {code}; look at it, and whether the kubeconfig leads to it"
    )]
    Answer {
        /// The HTTP status.
        code: u16,
    },
}

impl Reason {
    /// Whether another kubeconfig may help.
    pub(super) fn is_of_credentials(&self) -> bool {
        matches!(self, Self::Authenticate | Self::Secure { .. })
    }
}

/// What is told to whoever works on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It is healthy, with a connection that was not there before.
    Connected {
        /// Of the Cluster.
        uid: Arc<str>,
    },
    /// It is not (any more), or for another reason.
    Lost {
        /// Of the Cluster.
        uid: Arc<str>,
    },
    /// It serves something that it did not, or no longer.
    Served {
        /// Of the Cluster.
        uid: Arc<str>,
        /// What; `None` when anything may be.
        change: Option<CrdChange>,
    },
    /// Something is known of the marked objects in it, or of one that is followed by its name.
    Objects {
        /// Of the Cluster.
        uid: Arc<str>,
        /// What.
        notice: Notice,
    },
}
