//! Makes sources of what stacks name, with what their Secrets hold.

mod secrets;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crds::source::{GithubSource as Github, HttpSource as Http, OciSource as Oci, Source};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use release::http::{Credentials, HttpError, Network, SecretString, Statistics};
use release::source::oci::{InvalidRepository, OciOptions, OciSource};
use release::source::{GithubOptions, GithubSource, HttpOptions, HttpSource, ReleaseSource, SourceError};
use release::{Digest, ErrorClass};
use thiserror::Error;

use self::secrets::{MAX_CERTIFICATES, Secrets};
use super::SourceKind;
use super::file::{FileError, NamedFile};
use super::place::Place;
use super::secret::SecretError;

/// A source that can be asked.
pub(super) struct Connection {
    /// Changes with what it was made of; says nothing of that.
    pub(super) fingerprint: Digest,
    pub(super) source: Arc<dyn ReleaseSource>,
}

/// How a follower comes to its source.
pub(super) trait Connect: Send + Sync {
    /// What tells the source from every other one, the same after a restart.
    fn id(&self) -> Digest;

    /// Where it is.
    fn place(&self) -> &Place;

    /// What the source is and where, for people, and without secrets.
    fn described(&self) -> String;

    /// Makes the source, with the Secrets as they are now. Asks the API server, and not the source.
    fn connect(&self) -> BoxFuture<'_, Result<Connection, ConnectError>>;
}

/// Why a source cannot be used as it is configured.
#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    /// A Secret does not give what the source needs.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The certificates of the operator's own source cannot be read.
    #[error(transparent)]
    Certificates(#[from] FileError),
    /// The repository of an OCI registry is not written as one.
    #[error(transparent)]
    Repository(#[from] InvalidRepository),
    /// The address, the certificates or the credentials are none.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The source refuses how it is configured.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl ConnectError {
    /// What can end the problem. Nothing that somebody has to write anew passes by itself.
    pub(super) fn class(&self) -> ErrorClass {
        match self {
            Self::Secret(error) => error.class(),
            Self::Certificates(error) => error.class(),
            Self::Repository(_) | Self::Http(_) | Self::Source(_) => ErrorClass::Waiting,
        }
    }
}

/// The source that is used where a stack names none.
#[derive(Clone, Debug)]
pub(crate) enum UsualSource {
    /// The directory that all directory sources lie in.
    Directory,
    /// A remote one, with what the environment of the operator gives for it.
    Remote {
        /// Which.
        source: Box<Source>,
        /// A token, or name and password.
        credentials: Option<Credentials>,
        /// A file with certificates of authorities to trust besides the usual ones, in PEM.
        certificates: Option<PathBuf>,
    },
}

impl fmt::Display for UsualSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => formatter.write_str("the directory of the operator"),
            Self::Remote { source, .. } => source.fmt(formatter),
        }
    }
}

/// Makes sources. One for the process, so that all of them share the guards of the network.
pub(crate) struct Connector {
    client: Client,
    network: Network,
    usual: UsualSource,
    /// Those of the usual source.
    certificates: Option<NamedFile>,
}

impl Connector {
    pub(crate) fn new(client: Client, network: Network, usual: UsualSource) -> Self {
        let certificates = match &usual {
            UsualSource::Remote { certificates, .. } => certificates.clone(),
            UsualSource::Directory => None,
        };
        Self {
            client,
            network,
            usual,
            certificates: certificates.map(|path| NamedFile::new("--source-ca-file", path, MAX_CERTIFICATES)),
        }
    }

    /// How the API server is asked.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn usual(&self) -> &UsualSource {
        &self.usual
    }

    /// What was asked of sources of this sort.
    pub(super) fn statistics(&self, kind: SourceKind) -> Statistics {
        self.network.statistics_of(kind.name())
    }

    /// What is asked at a place.
    pub(super) fn kind(&self, place: &Place) -> SourceKind {
        place.kind().unwrap_or(match &self.usual {
            UsualSource::Directory => SourceKind::Directory,
            UsualSource::Remote { source, .. } => SourceKind::of(source),
        })
    }

    /// How to come to the source of a place; directories are no affair of this.
    pub(super) fn connection(self: &Arc<Self>, place: &Place) -> Box<dyn Connect> {
        Box::new(PlaceConnection {
            connector: Arc::clone(self),
            place: place.clone(),
        })
    }
}

/// The way to the source of one place.
struct PlaceConnection {
    connector: Arc<Connector>,
    place: Place,
}

impl Connect for PlaceConnection {
    /// All that is configured, and who configured it: with another Secret, or another URL, it is another source.
    fn id(&self) -> Digest {
        let text = match (&self.place, &self.connector.usual) {
            (Place::Remote { source, namespace }, _) => serde_json::to_vec(&(namespace, source)),
            (_, UsualSource::Remote { source, .. }) => serde_json::to_vec(source),
            (Place::Directory(_) | Place::Usual, UsualSource::Directory) => Ok(Vec::new()),
        };
        // What was read as JSON can be written as such.
        Digest::of(&text.unwrap_or_default())
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn described(&self) -> String {
        match &self.place {
            Place::Directory(path) => format!("directory {}", path.display()),
            Place::Remote { source, .. } => source.to_string(),
            Place::Usual => self.connector.usual.to_string(),
        }
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connection, ConnectError>> {
        async move {
            let Connector {
                client,
                network,
                usual,
                certificates,
            } = self.connector.as_ref();
            let (source, given) = match (&self.place, usual) {
                (Place::Remote { source, namespace }, _) => (source, Secrets::read(client, source, namespace).await?),
                (
                    _,
                    UsualSource::Remote {
                        source, credentials, ..
                    },
                ) => {
                    let given = Secrets::of_operator(credentials.clone(), certificates.as_ref());
                    (source.as_ref(), given.await?)
                }
                // A directory is not come to in this way.
                (Place::Directory(_) | Place::Usual, UsualSource::Directory) => {
                    return Err(ConnectError::Source(SourceError::Stopped));
                }
            };
            let fingerprint = given.fingerprint();
            let network = network.counted_as(SourceKind::of(source).name());
            let network = network.asked_by(self.place.namespace());
            let source: Arc<dyn ReleaseSource> = match source {
                Source::Github(source) => github(&network, source, given)?,
                Source::Http(source) => http(&network, source, given)?,
                Source::Oci(source) => oci(&network, source, given)?,
                Source::Directory(_) => return Err(ConnectError::Source(SourceError::Stopped)),
            };
            Ok(Connection { fingerprint, source })
        }
        .boxed()
    }
}

fn github(network: &Network, source: &Github, given: Secrets) -> Result<Arc<dyn ReleaseSource>, ConnectError> {
    let options = GithubOptions {
        owner: source.owner.clone(),
        repository: source.repository.clone(),
        api_url: source.api_url.clone(),
        token: given.credentials.and_then(token),
        certificates: given.certificates,
    };
    Ok(Arc::new(GithubSource::new(options, network)?))
}

fn token(credentials: Credentials) -> Option<SecretString> {
    match credentials {
        Credentials::Bearer(token) => Some(token),
        Credentials::Basic { .. } => None,
    }
}

fn oci(network: &Network, source: &Oci, given: Secrets) -> Result<Arc<dyn ReleaseSource>, ConnectError> {
    let options = OciOptions {
        repository: source.repository.parse()?,
        plain_http: source.plain_http,
        credentials: given.credentials,
        certificates: given.certificates,
        token_hosts: Vec::new(),
    };
    Ok(Arc::new(OciSource::new(network, options)?))
}

fn http(network: &Network, source: &Http, given: Secrets) -> Result<Arc<dyn ReleaseSource>, ConnectError> {
    let options = HttpOptions {
        url: source.url.clone(),
        credentials: given.credentials,
        certificates: given.certificates,
    };
    Ok(Arc::new(HttpSource::new(&options, network)?))
}
