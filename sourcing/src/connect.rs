//! Makes sources of what objects and flags name, with what their Secrets hold. Asks the API server for Secrets, and no source for anything.

mod secrets;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crds::source::{GithubSource as Github, HttpSource as Http, OciSource as Oci, Source};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use release::http::{Credentials, HttpError, Network, SecretString, Statistics};
use release::source::oci::{InvalidRepository, OciOptions, OciSource};
use release::source::{
    DirectorySource, GithubOptions, GithubSource, HttpOptions, HttpSource, ReleaseSource, SourceError,
};
use release::store::Origin;
use release::{Digest, ErrorClass};
use thiserror::Error;

use self::secrets::{MAX_CERTIFICATES, Secrets};
use crate::place::below;
use crate::{FileError, NamedFile, Place, PlaceError, SecretError, SourceKind, UsualSource, described_directory};

/// A source that can be asked.
pub struct Connection {
    /// Changes with what the Secrets or files hold that it was made of; says nothing of that.
    pub fingerprint: Digest,
    /// The source.
    pub source: Arc<dyn ReleaseSource>,
}

impl Connection {
    /// A directory is read with nobody's Secrets.
    fn to_directory(root: &Path) -> Self {
        Self {
            fingerprint: Secrets::default().fingerprint(),
            source: Arc::new(DirectorySource::new(root)),
        }
    }
}

/// How one comes to a source.
pub trait Connect: Send + Sync {
    /// What tells the source from every other one, the same after a restart.
    fn id(&self) -> Digest;

    /// Where it is.
    fn place(&self) -> &Place;

    /// What the source is and where, for people, and without secrets.
    fn described(&self) -> String;

    /// Makes the source, with the Secrets as they are now. Asks the API server, and not the source.
    fn connect(&self) -> BoxFuture<'_, Result<Connection, ConnectError>>;

    /// As a store of releases knows what was made here.
    fn origin(&self, source: Arc<dyn ReleaseSource>) -> Origin {
        Origin {
            id: self.id(),
            name: self.described(),
            source,
        }
    }
}

/// Why a source cannot be used as it is configured.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// A Secret does not give what the source needs.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The certificates of the operator's own source cannot be read.
    #[error(transparent)]
    Certificates(#[from] FileError),
    /// The directory is none that may be read.
    #[error(transparent)]
    Directory(#[from] PlaceError),
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
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Secret(error) => error.class(),
            Self::Certificates(error) => error.class(),
            Self::Directory(_) | Self::Repository(_) | Self::Http(_) | Self::Source(_) => ErrorClass::Waiting,
        }
    }
}

/// Makes sources. One for the process, so that all of them share the guards of the network.
pub struct Connector {
    client: Client,
    network: Network,
    usual: UsualSource,
    /// What all directories of releases lie in or are.
    root: PathBuf,
    /// Those of the usual source.
    certificates: Option<NamedFile>,
}

impl Connector {
    /// Secrets are read with `client`, sources asked over `network`. Objects that name no source have `usual`, and directories lie below `root`.
    pub fn new(client: Client, network: Network, usual: UsualSource, root: PathBuf) -> Self {
        let certificates = match &usual {
            UsualSource::Remote { certificates, .. } => certificates.clone(),
            UsualSource::Directory => None,
        };
        Self {
            client,
            network,
            usual,
            root,
            certificates: certificates.map(|path| NamedFile::new("--source-ca-file", path, MAX_CERTIFICATES)),
        }
    }

    /// How the API server is asked.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What was asked of sources of this sort.
    pub fn statistics(&self, kind: SourceKind) -> Statistics {
        self.network.statistics_of(kind.name())
    }

    /// The place that an object of a namespace names, or that of the usual source where it names none. Directories are places of their own, so that
    /// they can be read where they lie: nothing else is [`Place::Directory`].
    pub fn place(&self, source: Option<&Source>, namespace: &str) -> Result<Place, PlaceError> {
        match (source, &self.usual) {
            (Some(source), _) => Place::of(&self.root, source, namespace),
            (None, UsualSource::Directory) => Ok(Place::Directory(self.root.clone())),
            (None, UsualSource::Remote { .. }) => Ok(Place::Usual),
        }
    }

    /// What the source of an object is and where, for people.
    pub fn described(&self, source: Option<&Source>) -> String {
        match (source, self.place(source, "")) {
            (_, Ok(Place::Directory(path))) => described_directory(&path),
            (None, _) => self.usual.to_string(),
            (Some(source), _) => source.to_string(),
        }
    }

    /// What is asked at a place.
    pub fn kind(&self, place: &Place) -> SourceKind {
        place.kind().unwrap_or(match &self.usual {
            UsualSource::Directory => SourceKind::Directory,
            UsualSource::Remote { source, .. } => SourceKind::of(source),
        })
    }

    /// How to come to the source of a place.
    pub fn connection(self: &Arc<Self>, place: &Place) -> Box<dyn Connect> {
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

/// What is at the end of a way.
enum End<'a> {
    Directory(&'a Path),
    Named {
        source: &'a Source,
        namespace: &'a str,
    },
    Usual {
        source: &'a Source,
        credentials: Option<&'a Credentials>,
    },
}

impl PlaceConnection {
    fn end(&self) -> End<'_> {
        match (&self.place, &self.connector.usual) {
            (Place::Directory(path), _) => End::Directory(path),
            (Place::Remote { source, namespace }, _) => End::Named { source, namespace },
            (Place::Usual, UsualSource::Directory) => End::Directory(&self.connector.root),
            (
                Place::Usual,
                UsualSource::Remote {
                    source, credentials, ..
                },
            ) => End::Usual {
                source,
                credentials: credentials.as_ref(),
            },
        }
    }
}

impl Connect for PlaceConnection {
    /// All that is configured, and who configured it: with another Secret, or another URL, it is another source.
    fn id(&self) -> Digest {
        let text = match self.end() {
            End::Directory(path) => Ok(path.as_os_str().as_encoded_bytes().to_vec()),
            End::Named { source, namespace } => serde_json::to_vec(&(namespace, source)),
            End::Usual { source, .. } => serde_json::to_vec(source),
        };
        // What was read as JSON can be written as such.
        Digest::of(&text.unwrap_or_default())
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn described(&self) -> String {
        match self.end() {
            End::Directory(path) => described_directory(path),
            End::Named { source, .. } | End::Usual { source, .. } => source.to_string(),
        }
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connection, ConnectError>> {
        async move {
            let Connector {
                client,
                network,
                root,
                certificates,
                ..
            } = self.connector.as_ref();
            let (source, given) = match self.end() {
                End::Directory(path) => return Ok(Connection::to_directory(path)),
                End::Named { source, namespace } => (source, Secrets::read(client, source, namespace).await?),
                End::Usual { source, credentials } => {
                    let given = Secrets::of_operator(credentials.cloned(), certificates.as_ref());
                    (source, given.await?)
                }
            };
            let fingerprint = given.fingerprint();
            let network = network.counted_as(SourceKind::of(source).name());
            let network = network.asked_by(self.place.namespace());
            let source: Arc<dyn ReleaseSource> = match source {
                Source::Github(source) => github(&network, source, given)?,
                Source::Http(source) => http(&network, source, given)?,
                Source::Oci(source) => oci(&network, source, given)?,
                Source::Directory(source) => {
                    return Ok(Connection::to_directory(&below(root, Path::new(&source.path))?));
                }
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

#[cfg(test)]
mod tests;
