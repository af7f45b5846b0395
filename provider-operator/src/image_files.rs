//! Where the bytes of an image are, as its object says: on a web server or in a registry, with what Secrets of its namespace hold, or among the files of the
//! release that asks for it. Reads Secrets, and asks no source.

use crds::labels;
use crds::providers::image_options::ImageContent;
use crds::providers::image_status::ProviderReleaseStatus;
use crds::source::SecretReference;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use operator_kit::failure::chain;
use planning::image::{Failure, FailureClass};
use provider_plugin::Pinned;
use release::Digest;
use release::http::{Credentials, Network};
use sourcing::{NamedSecret, SecretError};

use crate::context::Served;
use crate::kinds::{ImageWish, status_of};
use crate::source::{Asked, Files, LayerAddress, ReleaseFiles, WebFiles, is_in_registry};
use crate::supply::Supply;

/// How a file of the release itself is written as a URL.
const OF_RELEASE: &str = "release:";
/// The type of a Secret by which Pods pull from registries.
const OF_PODS: &str = "kubernetes.io/dockerconfigjson";
/// Which field names Secrets.
const FIELD: &str = "spec.image";
/// Where certificates are, unless another key is named; as cert-manager calls it.
const CERTIFICATES: &str = "ca.crt";
/// Where a token is, unless another key is named.
const TOKEN: &str = "token";
const USERNAME: &str = "username";
const PASSWORD: &str = "password";

/// Opens the files of images.
pub(crate) struct ImageFiles {
    client: Client,
    web: WebFiles,
    releases: ReleaseFiles,
}

impl ImageFiles {
    pub(crate) fn new(client: Client, network: &Network) -> Self {
        Self {
            client,
            web: WebFiles::new(network, []),
            releases: ReleaseFiles::new(),
        }
    }

    /// The files of an image, and the digest that is known of it by where it is.
    ///
    /// # Errors
    /// A Secret or the release cannot be read now, or the address leads nowhere.
    pub(crate) async fn of(
        &self,
        served: &Served,
        supply: &Supply,
        object: &DynamicObject,
        wish: &ImageWish,
    ) -> Result<(Files, Option<Pinned>), Failure> {
        match wish.url().strip_prefix(OF_RELEASE) {
            Some(file) => self.of_release(served, supply, object, file.trim_start_matches('/')),
            None => Ok((self.elsewhere(object, wish).await?, None)),
        }
    }

    async fn elsewhere(&self, object: &DynamicObject, wish: &ImageWish) -> Result<Files, Failure> {
        let content = wish.content();
        let namespace = object.namespace().unwrap_or_default();
        let (credentials, certificates) = self.secrets(&content, wish.url(), &namespace).await.map_err(|error| {
            // Whoever puts the Secret right is noticed by the next try.
            Failure::new(FailureClass::SourceBroken, chain(&error))
        })?;
        Ok(self.web.files(&Asked {
            url: wish.url().to_owned(),
            is_pinned: content.digest.is_some(),
            sums: content.sums.as_ref().map(|sums| (sums.url.clone(), sums.name.clone())),
            credentials,
            certificates,
            namespace,
        }))
    }

    async fn secrets(
        &self,
        content: &ImageContent,
        url: &str,
        namespace: &str,
    ) -> Result<(Option<Credentials>, Option<Vec<u8>>), SecretError> {
        let credentials = match &content.credentials_secret_ref {
            Some(reference) => self.credentials(reference, url, namespace).await?,
            None => None,
        };
        let certificates = match &content.ca_secret_ref {
            Some(reference) => {
                let read = NamedSecret::read(&self.client, FIELD, reference, namespace).await?;
                let key = reference.key.as_deref().unwrap_or(CERTIFICATES);
                let value = read.value(key).ok_or_else(|| read.missing(&format!("key {key:?}")))?;
                Some(value.to_vec())
            }
            None => None,
        };
        Ok((credentials, certificates))
    }

    /// A token, or name and password, or for a registry what Pods pull with; of that nothing, where it is for other registries. A key that is named is that of
    /// a token.
    async fn credentials(
        &self,
        reference: &SecretReference,
        url: &str,
        namespace: &str,
    ) -> Result<Option<Credentials>, SecretError> {
        let address = LayerAddress::parse(url);
        let allowed = address.as_ref().map(|_| OF_PODS);
        let read = NamedSecret::read_or_of_type(&self.client, FIELD, reference, namespace, allowed).await?;
        if let Some(OfPods(login)) = address
            .map(|address| of_pods(&read, reference, &address))
            .transpose()?
            .flatten()
        {
            return Ok(login);
        }
        if read.has_type() {
            return Err(read.missing("key \".dockerconfigjson\""));
        }
        let key = reference.key.as_deref().unwrap_or(TOKEN);
        if let Some(token) = read.text(key)? {
            return Ok(Some(Credentials::Bearer(token.into())));
        }
        if reference.key.is_some() {
            return Err(read.missing(&format!("key {key:?}")));
        }
        match (read.text(USERNAME)?, read.text(PASSWORD)?) {
            (Some(username), Some(password)) => Ok(Some(Credentials::Basic {
                username,
                password: password.into(),
            })),
            _ => Err(read.missing(&format!("key {TOKEN:?}, nor the keys {USERNAME:?} and {PASSWORD:?}"))),
        }
    }

    /// A file of one of the releases that the object is of.
    fn of_release(
        &self,
        served: &Served,
        supply: &Supply,
        object: &DynamicObject,
        name: &str,
    ) -> Result<(Files, Option<Pinned>), Failure> {
        let namespace = object.namespace().unwrap_or_default();
        let mut known = false;
        for owner in object.owner_references() {
            let of_release = owner.kind == served.kind.definition().release_kind;
            let release = of_release
                .then(|| served.releases.get(&namespace, &owner.name))
                .flatten();
            let Some((release, tag)) = release.and_then(|release| Some((release, owner.name.parse().ok()?))) else {
                continue;
            };
            known = true;
            let Some(files) = pinned(&release).and_then(|digest| supply.find(&namespace, &tag, digest)) else {
                continue;
            };
            return match self.releases.file(&files.files, name) {
                Some((image, pinned)) => {
                    let files = Files {
                        image,
                        sums: None,
                        tag_is_digest: true,
                    };
                    Ok((files, Some(pinned)))
                }
                None => Err(Failure::new(
                    FailureClass::SourceGone,
                    format!("the release {tag} has no file {name}; correct the url"),
                )),
            };
        }
        let words = if known {
            "the files of the release are not here yet"
        } else {
            "the object is of no release that could have the file; give the url of a web server"
        };
        Err(Failure::new(FailureClass::SourceBroken, words.to_owned()))
    }
}

/// What Pods pull with from one registry: a login, or that it asks for none.
struct OfPods(Option<Credentials>);

/// What a Secret has of that by which Pods pull from registries. `None`: it has nothing of the sort.
#[cfg(feature = "docker")]
fn of_pods(
    read: &NamedSecret<'_>,
    reference: &SecretReference,
    address: &LayerAddress,
) -> Result<Option<OfPods>, SecretError> {
    use provider_docker::{LOGINS, Login, Logins};

    if reference.key.as_deref().is_some_and(|key| key != LOGINS) {
        return Ok(None);
    }
    let Some(text) = read.text(LOGINS)? else {
        return Ok(None);
    };
    let logins = Logins::parse(&text.into()).ok_or_else(|| read.missing("logins of the form that Pods read"))?;
    let repository = address.repository();
    let login = logins.of(repository.host(), repository.name());
    let login = login.map(|Login { username, password }| Credentials::Basic { username, password });
    Ok(Some(OfPods(login)))
}

/// Nothing, without the provider that knows what Pods pull with.
#[cfg(not(feature = "docker"))]
#[expect(clippy::unnecessary_wraps, reason = "with the provider it can fail")]
fn of_pods(
    _read: &NamedSecret<'_>,
    _reference: &SecretReference,
    _address: &LayerAddress,
) -> Result<Option<OfPods>, SecretError> {
    Ok(None)
}

/// The digest that a release object is pinned to.
pub(crate) fn pinned(release: &DynamicObject) -> Option<Digest> {
    let status: ProviderReleaseStatus = status_of(release);
    let noted = release.annotations().get(labels::DIGEST).cloned();
    noted.or(status.assets.map(|assets| assets.digest))?.parse().ok()
}

/// Whether an image may be at such an address.
pub(crate) fn is_known(url: &str) -> bool {
    let schemes = ["https://", "http://", OF_RELEASE];
    schemes.iter().any(|scheme| url.starts_with(scheme)) || is_in_registry(url)
}
