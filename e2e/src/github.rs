//! A GitHub that a test plays: the part of its REST API that lists releases and gives assets, with the headers and bodies that
//! docs.github.com documents for API version 2022-11-28: pages by `Link`, entity tags, rate limits, and assets that lie at another host.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::web::{Answer, WebServer, answer, conditional, files_of, lock, sha256};

const OWNER: &str = "kaas";
const REPOSITORY: &str = "stacks";
/// What its repository is read with.
pub const TOKEN: &str = "canary-github-token";
/// Requests an hour, with a token and without.
const LIMITS: [u32; 2] = [5_000, 60];

/// A running GitHub with one repository: its API, and the host of the bytes of assets.
#[derive(Debug)]
pub struct Github {
    /// The API.
    pub api: WebServer,
    /// Where the bytes are. As object stores do, it refuses requests that bring credentials besides those in the URL.
    pub storage: WebServer,
    repository: Arc<Mutex<Repository>>,
}

/// The repository, as those see it who may write: drafts too.
#[derive(Debug, Default)]
struct Repository {
    /// The newest first.
    releases: Vec<Release>,
    contents: BTreeMap<u64, Bytes>,
    /// What the host of the bytes gives in place of some of them.
    exchanged: BTreeMap<u64, Bytes>,
    next: u64,
    /// Requests left in this hour.
    left: [u32; 2],
    /// Whether it answers nothing but that a secondary limit is exceeded, and for how many seconds.
    secondary_limit: Option<u64>,
}

#[derive(Debug)]
struct Release {
    id: u64,
    tag: String,
    is_draft: bool,
    /// Number and name.
    assets: Vec<(u64, String)>,
}

impl Github {
    /// Starts one whose repository is empty.
    pub async fn start() -> Result<Self> {
        let repository = Arc::new(Mutex::new(Repository {
            left: LIMITS,
            ..Repository::default()
        }));
        let stored = Arc::clone(&repository);
        let storage = WebServer::start(move |request| lock(&stored).content(request)).await?;
        let (shown, place) = (Arc::clone(&repository), storage.url("127.0.0.1"));
        let api = WebServer::start(move |request| lock(&shown).answer(request, &place)).await?;
        Ok(Self {
            api,
            storage,
            repository,
        })
    }

    /// What a stack names. By another name of this machine it is another host.
    pub fn source(&self, host: &str, secret: Option<&str>) -> Value {
        let mut source = json!({ "owner": OWNER, "repository": REPOSITORY, "apiUrl": self.api.url(host) });
        if let Some(secret) = secret {
            source["tokenSecretRef"] = json!({ "name": secret });
        }
        json!({ "github": source })
    }

    /// Publishes the files of a folder under its name, as the newest release.
    pub fn publish(&self, release: &Path) -> Result<()> {
        let tag = release.file_name().context("a release has a name")?;
        let files = files_of(release)?;
        let mut repository = lock(&self.repository);
        let assets = files.into_iter().map(|(name, content)| {
            let id = repository.number();
            repository.contents.insert(id, content);
            (id, name)
        });
        let assets = assets.collect();
        repository.add(&tag.to_string_lossy(), false, assets);
        Ok(())
    }

    /// Adds releases without files, the last of them the newest.
    pub fn tag(&self, tags: impl IntoIterator<Item = String>) {
        let mut repository = lock(&self.repository);
        for tag in tags {
            repository.add(&tag, false, Vec::new());
        }
    }

    /// Adds a release that nobody has published yet.
    pub fn draft(&self, tag: &str) {
        lock(&self.repository).add(tag, true, Vec::new());
    }

    /// The name of the file with this number.
    pub fn asset(&self, number: u64) -> Option<String> {
        let repository = lock(&self.repository);
        let assets = repository.releases.iter().flat_map(|release| &release.assets);
        let found = assets.into_iter().find(|(id, _)| *id == number);
        found.map(|(_, name)| name.clone())
    }

    /// From now on the host of the bytes gives others for this file, as many of them, and the API knows nothing of it. Gives the digests of both: of
    /// what the API tells, and of what comes.
    pub fn exchange(&self, file: &str) -> Result<[String; 2]> {
        let mut repository = lock(&self.repository);
        let assets = repository.releases.iter().flat_map(|release| &release.assets);
        let found = assets.into_iter().find(|(_, name)| name == file).map(|(id, _)| *id);
        let id = found.with_context(|| format!("no asset {file}"))?;
        let content = repository.contents.get(&id).context("an asset has content")?;
        let mut other = content.to_vec();
        *other.last_mut().context("an asset is not empty")? ^= 1;
        let digests = [sha256(content), sha256(&other)].map(|digest| format!("sha256:{digest}"));
        repository.exchanged.insert(id, other.into());
        Ok(digests)
    }

    /// The host of the bytes gives all files as they are again.
    pub fn give_back(&self) {
        lock(&self.repository).exchanged.clear();
    }

    /// From now on everything is refused, with a `Retry-After` of so many seconds.
    pub fn exceed_secondary_limit(&self, seconds: u64) {
        lock(&self.repository).secondary_limit = Some(seconds);
    }
}

impl Repository {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, tag: &str, is_draft: bool, assets: Vec<(u64, String)>) {
        let release = Release {
            id: self.number(),
            tag: tag.to_owned(),
            is_draft,
            assets,
        };
        self.releases.insert(0, release);
    }

    fn answer(&mut self, request: &Request<Bytes>, storage: &str) -> Answer {
        let is_known = request
            .headers()
            .get(header::AUTHORIZATION)
            .is_some_and(|sent| sent.as_bytes() == format!("Bearer {TOKEN}").as_bytes());
        let limit = usize::from(!is_known);
        if let Some(seconds) = self.secondary_limit {
            let headers = [("retry-after", seconds.to_string())];
            let message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
            return refusal(StatusCode::FORBIDDEN, &headers, message);
        }
        if self.left[limit] == 0 {
            let message = "API rate limit exceeded for 127.0.0.1.";
            return refusal(StatusCode::FORBIDDEN, &self.limits(limit), message);
        }
        let answer = self.page(request, storage, limit);
        // An unchanged answer is free for those who say who they are.
        if !(is_known && answer.status() == StatusCode::NOT_MODIFIED) {
            self.left[limit] -= 1;
        }
        answer
    }

    fn page(&self, request: &Request<Bytes>, storage: &str, limit: usize) -> Answer {
        let mut headers = self.limits(limit);
        let root = format!("/repos/{OWNER}/{REPOSITORY}");
        let path = request.uri().path().strip_prefix(&root).unwrap_or("nowhere");
        match path.split('/').collect::<Vec<_>>()[..] {
            [""] => conditional(request, &headers, json!({ "name": REPOSITORY }).to_string()),
            ["", "releases"] => {
                let (page, link) = self.list(request);
                headers.extend(link.map(|link| ("link", link)));
                conditional(request, &headers, page.to_string())
            }
            ["", "releases", "tags", tag] => {
                let published = self.releases.iter().filter(|release| !release.is_draft);
                match published.into_iter().find(|release| release.tag == tag) {
                    Some(release) => conditional(request, &headers, self.json(release).to_string()),
                    None => refusal(StatusCode::NOT_FOUND, &headers, "Not Found"),
                }
            }
            ["", "releases", "assets", id] => {
                headers.push(("location", format!("{storage}/{id}?X-Amz-Signature=canary-signature")));
                answer(StatusCode::FOUND, &headers, Bytes::new())
            }
            _ => refusal(StatusCode::NOT_FOUND, &headers, "Not Found"),
        }
    }

    /// One page of releases, and where the others are.
    fn list(&self, request: &Request<Bytes>) -> (Value, Option<String>) {
        let query = request.uri().query().unwrap_or_default();
        let number = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.into_iter().find(|(key, _)| *key == name);
            found.and_then(|(_, value)| value.parse::<usize>().ok())
        };
        let (per_page, page) = (number("per_page").unwrap_or(30).min(100), number("page").unwrap_or(1));
        let last = self.releases.len().div_ceil(per_page).max(1);
        let shown = self.releases.iter().skip((page - 1) * per_page).take(per_page);
        let shown: Vec<Value> = shown.map(|release| self.json(release)).collect();
        let relation = |page: usize, name: &str| {
            format!("<https://api.github.com/repositories/1/releases?per_page={per_page}&page={page}>; rel=\"{name}\"")
        };
        let mut links = Vec::new();
        if page > 1 {
            links.extend([relation(page - 1, "prev"), relation(1, "first")]);
        }
        if page < last {
            links.extend([relation(page + 1, "next"), relation(last, "last")]);
        }
        (json!(shown), (!links.is_empty()).then(|| links.join(", ")))
    }

    fn json(&self, release: &Release) -> Value {
        let assets = release.assets.iter().map(|(id, name)| {
            let content = self.contents.get(id).cloned().unwrap_or_default();
            json!({
                "id": id, "name": name, "label": null, "state": "uploaded", "content_type": "application/octet-stream",
                "size": content.len(), "digest": format!("sha256:{}", sha256(&content)), "download_count": 0,
                "created_at": "2026-02-27T19:35:32Z", "updated_at": "2026-02-27T19:35:32Z",
            })
        });
        let published = if release.is_draft {
            Value::Null
        } else {
            json!("2026-02-28T08:00:00Z")
        };
        json!({
            // Nobody has to give a release a name.
            "id": release.id, "tag_name": release.tag, "target_commitish": "main", "name": null, "body": null,
            "draft": release.is_draft, "prerelease": false, "created_at": "2026-02-27T19:35:32Z", "published_at": published,
            "author": { "login": "octocat", "id": 1 }, "assets": assets.collect::<Vec<_>>(),
        })
    }

    fn limits(&self, limit: usize) -> Vec<(&'static str, String)> {
        let reset = Timestamp::now().as_second() + 3_600;
        vec![
            ("content-type", "application/json; charset=utf-8".to_owned()),
            ("x-github-media-type", "github.v3; format=json".to_owned()),
            ("x-ratelimit-limit", LIMITS[limit].to_string()),
            ("x-ratelimit-remaining", self.left[limit].saturating_sub(1).to_string()),
            ("x-ratelimit-reset", reset.to_string()),
            ("x-ratelimit-resource", "core".to_owned()),
        ]
    }

    fn content(&self, request: &Request<Bytes>) -> Answer {
        if request.headers().contains_key(header::AUTHORIZATION) {
            return answer(
                StatusCode::BAD_REQUEST,
                &[],
                "only one way to sign a request is allowed",
            );
        }
        let id = request.uri().path().trim_start_matches('/').parse();
        let given = |id: u64| self.exchanged.get(&id).or_else(|| self.contents.get(&id));
        match id.ok().and_then(given) {
            Some(content) => answer(StatusCode::OK, &[], content.clone()),
            None => answer(StatusCode::NOT_FOUND, &[], "NoSuchKey"),
        }
    }
}

fn refusal(status: StatusCode, headers: &[(&str, String)], message: &str) -> Answer {
    let body = json!({
        "message": message, "documentation_url": "https://docs.github.com/rest", "status": status.as_str(),
    });
    answer(status, headers, body.to_string())
}
