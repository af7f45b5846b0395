//! Releases in an OCI registry: every tag of one repository is a release, every layer one of its files.
//!
//! The registry is a stranger: what it says has limits, what it gives has digests, and where it sends us has rules. A tag is read once, as
//! the bytes of a manifest of which we take the digest ourselves; everything after that is asked for by digest.

mod authorization;
mod challenge;
mod charts;
mod error;
mod evidence;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod layers;
mod logins;
mod manifest;
mod manifests;
mod registry;
mod repository;
mod tags;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crds::names::{ReleaseStem, ReleaseTag, StackVersion};
use jiff::Timestamp;
use tokio::time;

pub(crate) use self::charts::is_version;
pub use self::{
    charts::{ChartRepository, PulledChart},
    error::{OciError, Wanted},
    layers::Layers,
    logins::Logins,
    manifest::{Layer, ManifestError},
    manifests::{FoundManifest, InvalidManifestName, ManifestName, Manifests},
    repository::{InvalidRepository, Repository},
};
use self::{manifest::Artifact, registry::Registry};
use super::{
    Content, ListedRelease, Listing, ReleaseSource, RemoteFile, Resolved, SourceError, SourceFuture, beside,
    room::Share,
};
use crate::{
    Digest, Evidence,
    files::tag_of_directory,
    http::{Credentials, HttpError, Network, StatusCode},
};

/// Longest time that a list waits for manifests that only tell dates.
const LONGEST_DATING: Duration = Duration::from_secs(20);
/// Manifests read for their dates in one listing: half of what a host takes at once. What is left comes with the next listings.
const MAX_DATED: usize = 50;
/// Pages of what refers to a release: a registry that lists more has something else than signatures there.
const MAX_PAGES_OF_REFERRERS: usize = 4;
/// What registries say of the bytes that they give.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// Which repository is asked, and how.
#[derive(Clone, Debug)]
pub struct OciOptions {
    /// Registry and repository.
    pub repository: Repository,
    /// HTTP instead of HTTPS, for registries without TLS; the network has to allow it too.
    pub plain_http: bool,
    /// Name and password, or a token that the registry takes as it is. Without them only what everybody may read can be had.
    pub credentials: Option<Credentials>,
    /// Certificates of authorities to trust besides the usual ones, in PEM.
    pub certificates: Option<Vec<u8>>,
    /// Hosts besides those of the registry's own domain that may be told the credentials when the registry sends us there for a token.
    pub token_hosts: Vec<String>,
}

/// The releases in one repository. Cheap to clone; clones share tokens and what they remember.
#[derive(Clone, Debug)]
pub struct OciSource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    share: Share,
    registry: Registry,
    /// When the releases that were resolved had been pushed; none where the manifest does not tell.
    dates: Mutex<BTreeMap<ReleaseTag, Option<Timestamp>>>,
}

impl OciSource {
    /// A source that asks nobody yet.
    pub fn new(network: &Network, options: OciOptions) -> Result<Self, HttpError> {
        let share = network.share(&options.repository.publisher());
        Ok(Self {
            shared: Arc::new(Shared {
                share,
                registry: Registry::new(network, options)?,
                dates: Mutex::default(),
            }),
        })
    }
}

impl ReleaseSource for OciSource {
    /// A registry does not tell when a tag was pushed. The manifest mostly does, so that those of releases without another order are read,
    /// each once.
    fn list(&self) -> SourceFuture<'_, Listing> {
        Box::pin(async move {
            let listing = self.shared.list().await?;
            let place = self.shared.repository().to_string();
            self.shared.share.resize(listing.weight(), &place)?;
            Ok(listing)
        })
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        Box::pin(async move {
            let missing = || SourceError::MissingRelease { tag: tag.clone() };
            let (digest, artifact) = self.shared.artifact(tag).await?.ok_or_else(missing)?;
            let resolved = Resolved::new(tag.clone(), artifact.files);
            let resolved = resolved.map_err(|source| SourceError::UnusableRelease {
                tag: tag.clone(),
                source: Box::new(source),
            })?;
            Ok(resolved.of_manifest(digest))
        })
    }

    /// The registry may have its files elsewhere: whoever gives them, they have to have the digest.
    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        Box::pin(async move { Ok(self.shared.fetch(file).await?) })
    }

    fn without_secrets(&self, words: &str) -> String {
        self.shared.registry.without_secrets(words)
    }

    /// Signatures of the manifest, as cosign attaches them; and what stands beside the files, so that a release can be copied here with its
    /// signature from where there are no manifests.
    fn evidence<'a>(&'a self, resolved: &'a Resolved) -> SourceFuture<'a, Evidence> {
        Box::pin(async move {
            let (mut evidence, trouble) = match beside::evidence(self, resolved).await {
                Ok(evidence) => (evidence, None),
                Err(error) => (Evidence::default(), Some(error)),
            };
            if let Some(manifest) = resolved.manifest() {
                let search = async { Ok(self.shared.find(resolved.tag(), manifest, &mut evidence).await?) };
                beside::in_time(search).await?;
            }
            match trouble {
                Some(error) if evidence.is_empty() => Err(error),
                Some(_) => {
                    evidence.cut();
                    Ok(evidence)
                }
                None => Ok(evidence),
            }
        })
    }
}

/// The digest of the release that a manifest describes, if it is one that can be read.
pub(crate) fn digest_of_release(tag: &ReleaseTag, manifest: &[u8]) -> Option<Digest> {
    let artifact = manifest::read(manifest, None).ok()?;
    Resolved::new(tag.clone(), artifact.files).ok()?.digest()
}

impl Shared {
    async fn list(&self) -> Result<Listing, OciError> {
        let mut listing = Listing::default();
        for name in self.registry.tags().await? {
            match tag_of_directory(&name) {
                Some(tag) => listing.releases.push(ListedRelease::of(tag, None)),
                None if tags::is_bookkeeping(&name) => {}
                None => listing.foreign.push(name),
            }
        }
        listing.releases.sort_by(|left, right| left.tag.cmp(&right.tag));
        self.forget_all_but(&listing);
        // Without a date a release can still be asked for by its name; so no trouble with one costs the list.
        let _ = time::timeout(LONGEST_DATING, self.date(&listing)).await;
        let dates = self.dates.lock().unwrap_or_else(PoisonError::into_inner);
        for release in &mut listing.releases {
            release.published_at = dates.get(&release.tag).copied().flatten();
        }
        Ok(listing)
    }

    /// Reads the dates of some releases that have no other order, as long as the registry answers.
    async fn date(&self, listing: &Listing) {
        let known: HashSet<ReleaseTag> = self
            .dates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .keys()
            .cloned()
            .collect();
        let unknown = without_order(listing).filter(|tag| !known.contains(tag));
        for tag in unknown.take(MAX_DATED) {
            match self.artifact(tag).await {
                Ok(_) => {}
                // It will not have a date before somebody pushes it again, under whatever tag.
                Err(OciError::Artifact { .. } | OciError::Digest { .. }) => self.remember(tag, None),
                Err(_) => return,
            }
        }
    }

    /// What a tag stands for now, with the digest of its manifest, if there is such a tag.
    async fn artifact(&self, tag: &ReleaseTag) -> Result<Option<(Digest, Artifact)>, OciError> {
        let Some(given) = self.registry.manifest(&tag.to_string()).await? else {
            return Ok(None);
        };
        let read = manifest::read(&given.bytes, given.media_type.as_deref());
        let artifact = read.map_err(|source| OciError::Artifact {
            repository: self.repository(),
            tag: tag.to_string(),
            source: Box::new(source),
        })?;
        self.remember(tag, artifact.created);
        Ok(Some((given.digest, artifact)))
    }

    async fn fetch(&self, file: &RemoteFile) -> Result<Content, OciError> {
        let missing = || OciError::MissingFile {
            file: file.name.clone(),
            repository: self.repository(),
        };
        // Nothing but a digest becomes part of a URL.
        let digest: Digest = file.location.parse().map_err(|_| missing())?;
        let wanted = Wanted::File(file.name.clone());
        let response = self.registry.blob(wanted, digest, 0).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Err(missing()),
            _ => Ok(Box::pin(response.reader())),
        }
    }

    fn repository(&self) -> Repository {
        self.registry.repository.clone()
    }

    fn remember(&self, tag: &ReleaseTag, created: Option<Timestamp>) {
        let mut dates = self.dates.lock().unwrap_or_else(PoisonError::into_inner);
        dates.insert(tag.clone(), created);
    }

    fn forget_all_but(&self, listing: &Listing) {
        let listed = |tag: &ReleaseTag| {
            listing
                .releases
                .binary_search_by(|release| release.tag.cmp(tag))
                .is_ok()
        };
        self.dates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|tag, _| listed(tag));
    }
}

/// The releases of the stacks of which versions say nothing about before and after: those need a date, and what they are compared with too.
fn without_order(listing: &Listing) -> impl Iterator<Item = &ReleaseTag> {
    let tags = || listing.releases.iter().map(|release| &release.tag);
    let stems: HashSet<&ReleaseStem> = tags()
        .filter(|tag| is_hash(tag.version()))
        .map(ReleaseTag::stem)
        .collect();
    tags().filter(move |tag| stems.contains(tag.stem()))
}

/// A number counts up; a hash does not.
fn is_hash(version: &StackVersion) -> bool {
    version
        .patch()
        .is_some_and(|patch| !patch.bytes().all(|byte| byte.is_ascii_digit()))
}
