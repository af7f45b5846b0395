//! Releases of a repository on GitHub, or on a server that speaks its API.
//!
//! A release is a tag with assets. Drafts are nobody's business; prereleases are releases, because the channel of a stack decides which
//! versions it wants. The name of a release says nothing: it may be missing, and anybody changes it.
//!
//! Downloads go by the number of the asset, which an asset that is replaced does not keep, and through the API, so that private
//! repositories work: it sends on to a storage host, which gets no credentials.

mod api;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod pages;
mod transport;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crds::names::ReleaseTag;
use tokio::{sync, time};

use self::{
    api::{Answer, Api, Asset, Fresh, PER_PAGE, Page, WholeRelease},
    pages::Pages,
};
use super::{
    Content, Listing, ReleaseSource, RemoteFile, Resolved, SourceError, SourceFuture, bounded::Text, room::Share,
};
use crate::http::{Client, Credentials, HttpError, Network, Place, Redirects, SecretString, Stage, Url};

/// Where the API of github.com is.
pub const GITHUB_API: &str = "https://api.github.com";

/// Longest time for a whole list: pages come one after the other.
const LISTING: Duration = Duration::from_mins(5);
/// Assets that a release is known to show with itself; whether it shows more is not documented.
const SHOWN_ASSETS: usize = 30;
/// Pages of assets that are read: GitHub allows 1,000 assets, a release of ours has 64 at most.
const MAX_ASSET_PAGES: usize = 10;
/// Resolved tags that are remembered with their entity tags.
const MAX_REMEMBERED: usize = 512;

/// Which repository, and how it is reached.
#[derive(Clone, Debug)]
pub struct GithubOptions {
    /// A user or an organisation.
    pub owner: String,
    /// The repository.
    pub repository: String,
    /// URL of the API if it is not [`GITHUB_API`]: on GitHub Enterprise Server `https://HOST/api/v3`.
    pub api_url: Option<String>,
    /// A token that may read the repository. Without it only public ones are read, 60 times an hour.
    pub token: Option<SecretString>,
    /// Certificates of authorities to trust besides the usual ones, in PEM.
    pub certificates: Option<Vec<u8>>,
}

/// The releases of one repository. Cheap to clone; clones share what they remember.
#[derive(Clone, Debug)]
pub struct GithubSource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `/repos/OWNER/REPOSITORY`.
    repository: String,
    client: Client,
    api: OnceLock<Api>,
    /// Whether the repository was ever there: if so, what is missing later is not it.
    is_known: AtomicBool,
    share: Share,
    pages: sync::Mutex<Pages>,
    resolved: Mutex<HashMap<ReleaseTag, (String, Resolved)>>,
}

impl GithubSource {
    /// A source that asks for the first time when it is asked.
    pub fn new(options: GithubOptions, network: &Network) -> Result<Self, SourceError> {
        let GithubOptions {
            owner,
            repository,
            api_url,
            token,
            certificates,
        } = options;
        for (what, name) in [("owner", &owner), ("repository", &repository)] {
            if !is_name(name) {
                return Err(SourceError::Misconfigured {
                    what: format!("{what} {name:?}"),
                    problem: "is no name on GitHub: those have letters, digits, '-', '_' and '.'",
                });
            }
        }
        let home = Url::parse(api_url.as_deref().unwrap_or(GITHUB_API)).map_err(|_| SourceError::Misconfigured {
            what: "URL of the API".to_owned(),
            problem: "is no URL; write one such as https://github.example.com/api/v3",
        })?;
        let credentials = token.map(Credentials::Bearer);
        let share = network.share(&format!("{}/{owner}", home.host_str().unwrap_or_default()));
        let client = Client::new(network, home, credentials.as_ref(), certificates.as_deref())?;
        Ok(Self {
            shared: Arc::new(Shared {
                repository: format!("/repos/{owner}/{repository}"),
                client,
                api: OnceLock::new(),
                is_known: AtomicBool::new(false),
                share,
                pages: sync::Mutex::default(),
                resolved: Mutex::default(),
            }),
        })
    }
}

impl ReleaseSource for GithubSource {
    fn list(&self) -> SourceFuture<'_, Listing> {
        Box::pin(self.shared.list())
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        Box::pin(self.shared.resolve(tag))
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        Box::pin(self.shared.fetch(file))
    }

    fn without_secrets(&self, words: &str) -> String {
        self.shared.client.without_secrets(words)
    }
}

impl Shared {
    fn api(&self) -> &Api {
        self.api
            .get_or_init(|| Api::new(self.client.clone(), storage(self.client.home())))
    }

    async fn list(&self) -> Result<Listing, SourceError> {
        let reading = async {
            let mut pages = self.pages.lock().await;
            let listing = pages.refresh(self.api(), &self.repository).await?;
            let kept = self
                .share
                .resize(listing.weight(), &Place::of(self.client.home()).to_string());
            // What has no room is not remembered either.
            kept.inspect_err(|_| *pages = Pages::default())?;
            Ok::<_, SourceError>(listing)
        };
        let read = time::timeout(LISTING, reading).await.unwrap_or_else(|_| {
            Err(SourceError::Http(HttpError::TimedOut {
                place: Place::of(self.client.home()),
                stage: Stage::Whole,
                after: LISTING,
            }))
        });
        let listing = read.map_err(|error| self.of_repository(error))?;
        self.is_known.store(true, Ordering::Relaxed);
        let is_listed = |tag: &ReleaseTag| listing.releases.binary_search_by(|listed| listed.tag.cmp(tag)).is_ok();
        self.resolved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|tag, _| is_listed(tag));
        Ok(listing)
    }

    async fn resolve(&self, tag: &ReleaseTag) -> Result<Resolved, SourceError> {
        let known = self.remembered(tag);
        let route = format!("{}/releases/tags/{tag}", self.repository);
        let etag = known.as_ref().map(|(etag, _)| etag.as_str());
        let answer = match self.api().read::<WholeRelease>(&route, etag).await {
            Err(SourceError::NotThere { .. }) => return Err(self.missing(tag).await),
            answer => answer?,
        };
        let Fresh { content, etag, .. } = match (answer, known) {
            (Answer::New(release), _) => release,
            (Answer::Unchanged, Some((_, resolved))) => return Ok(resolved),
            (Answer::Unchanged, None) => return Err(SourceError::MissingRelease { tag: tag.clone() }),
        };
        self.is_known.store(true, Ordering::Relaxed);
        if content.draft {
            return Err(SourceError::MissingRelease { tag: tag.clone() });
        }
        let is_whole = content.assets.entries.len() < SHOWN_ASSETS;
        let assets = if is_whole {
            content.assets.entries
        } else {
            self.assets(content.id).await?
        };
        let resolved = resolved(tag, assets)?;
        // The entity tag of a release need not speak for assets that it does not show.
        if let Some(etag) = etag.filter(|_| is_whole) {
            self.remember(tag, etag, &resolved);
        }
        Ok(resolved)
    }

    async fn fetch(&self, file: &RemoteFile) -> Result<Content, SourceError> {
        let gone = || SourceError::MissingFile {
            file: file.name.clone(),
        };
        let id: u64 = file
            .location
            .strip_prefix("assets/")
            .and_then(|id| id.parse().ok())
            .ok_or_else(gone)?;
        let route = format!("{}/releases/assets/{id}", self.repository);
        self.api().download(&route).await.map_err(|error| match error {
            SourceError::NotThere { .. } => gone(),
            error => error,
        })
    }

    /// All assets of a release that may have more than it shows.
    async fn assets(&self, release: u64) -> Result<Vec<Asset>, SourceError> {
        let mut assets = Vec::new();
        for page in 1..=MAX_ASSET_PAGES {
            let route = format!(
                "{}/releases/{release}/assets?per_page={PER_PAGE}&page={page}",
                self.repository
            );
            let Answer::New(Fresh { content, has_next, .. }) = self.api().read::<Page<Asset>>(&route, None).await?
            else {
                break;
            };
            assets.extend(self.api().entries(content)?);
            if !has_next {
                break;
            }
        }
        Ok(assets)
    }

    /// Nothing is under this tag: no release, or no repository. GitHub does not tell which, so a repository that was never seen is asked for.
    async fn missing(&self, tag: &ReleaseTag) -> SourceError {
        if !self.is_known.load(Ordering::Relaxed) {
            if let Err(error) = self.api().read::<serde::de::IgnoredAny>(&self.repository, None).await {
                return self.of_repository(error);
            }
            self.is_known.store(true, Ordering::Relaxed);
        }
        SourceError::MissingRelease { tag: tag.clone() }
    }

    fn of_repository(&self, error: SourceError) -> SourceError {
        match error {
            SourceError::NotThere { place } => SourceError::MissingRepository {
                repository: self.repository.trim_start_matches("/repos/").to_owned(),
                place,
            },
            error => error,
        }
    }

    fn remembered(&self, tag: &ReleaseTag) -> Option<(String, Resolved)> {
        self.resolved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(tag)
            .cloned()
    }

    fn remember(&self, tag: &ReleaseTag, etag: String, resolved: &Resolved) {
        let mut remembered = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(tag.clone(), (etag, resolved.clone()));
    }
}

/// What a release's assets are as files of a release.
fn resolved(tag: &ReleaseTag, assets: Vec<Asset>) -> Result<Resolved, SourceError> {
    if assets.is_empty() {
        return Err(SourceError::NoFiles { tag: tag.clone() });
    }
    if let Some(asset) = assets.iter().find(|asset| asset.state.0 != "uploaded") {
        return Err(SourceError::Unfinished {
            tag: Box::new(tag.clone()),
            file: asset.name.0.clone(),
        });
    }
    let files = assets.into_iter().map(|asset| RemoteFile {
        location: format!("assets/{}", asset.id),
        name: asset.name.0,
        size: Some(asset.size),
        // Of another algorithm, or none: then the digest is known when the file is here.
        sha256: asset.digest.and_then(|Text(digest)| digest.parse().ok()),
    });
    Resolved::new(tag.clone(), files).map_err(|source| SourceError::UnusableRelease {
        tag: tag.clone(),
        source: Box::new(source),
    })
}

/// The hosts that an API sends on to for the bytes of assets: of github.com those below `githubusercontent.com`, of GitHub
/// Enterprise Cloud with data residency also its own, of GitHub Enterprise Server `media.HOST`.
fn storage(home: &Url) -> Redirects {
    let host = home.host_str().unwrap_or_default();
    let public = ".githubusercontent.com".to_owned();
    let hosts = match host.strip_prefix("api.") {
        Some("github.com") => vec![public],
        Some(site) if site.ends_with(".ghe.com") => vec![public, format!(".{site}")],
        _ => vec![format!(".{host}")],
    };
    Redirects::To(hosts.into())
}

/// Whether this can be a segment of a path of the API, and no other.
fn is_name(text: &str) -> bool {
    let is_character = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=100).contains(&text.len()) && text.chars().all(is_character) && !text.chars().all(|c| c == '.')
}
