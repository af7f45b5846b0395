//! Releases of GitHub, from a stub that answers with the headers and bodies that GitHub documents.

use std::{
    collections::BTreeMap,
    error::Error,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use release::{
    Digest, ErrorClass,
    http::{HttpError, Network, Url},
    source::{Content, GithubOptions, GithubSource, Listing, ReleaseSource, SourceError},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::{
    fixture::{TAG, chain, good_release, tag},
    source_contract::{assert_keeps_the_contract, files_of},
    stub::{Asked, Reply, Stub, authority, network},
};

const TOKEN: &str = "canary-token";

/// A repository, as GitHub would show it.
#[derive(Clone, Debug, Default)]
struct Repository {
    releases: Vec<Release>,
    /// Asked for besides the path of the API, as on GitHub Enterprise.
    base: &'static str,
    /// Assets that a release shows with itself.
    shown: Option<usize>,
    /// Where the bytes of assets are.
    storage: Option<Url>,
    /// How many pages a `Link` header promises whatever there is.
    endless: bool,
    /// Further headers of every answer.
    headers: Vec<(&'static str, String)>,
    /// The release to take away after each answer.
    vanishing: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Release {
    id: u64,
    tag: String,
    draft: bool,
    assets: Vec<Asset>,
}

#[derive(Clone, Debug)]
struct Asset {
    id: u64,
    name: String,
    state: &'static str,
    size: usize,
    digest: Option<String>,
}

impl Asset {
    fn json(&self) -> Value {
        json!({
            "url": format!("https://api.github.com/repos/octo/stacks/releases/assets/{}", self.id),
            "browser_download_url": format!("https://github.com/octo/stacks/releases/download/x/{}", self.name),
            "id": self.id,
            "node_id": "RA_kwDOABC",
            "name": self.name,
            "label": null,
            "state": self.state,
            "content_type": "application/octet-stream",
            "size": self.size,
            "digest": self.digest,
            "download_count": 42,
            "created_at": "2026-02-27T19:35:32Z",
            "updated_at": "2026-02-27T19:35:32Z",
            "uploader": { "login": "octocat", "id": 1 },
        })
    }
}

impl Release {
    fn json(&self, shown: usize) -> Value {
        let shown = self.assets.iter().take(shown).map(Asset::json);
        json!({
            "url": format!("https://api.github.com/repos/octo/stacks/releases/{}", self.id),
            "id": self.id,
            "node_id": "RE_kwDOABC",
            "tag_name": self.tag,
            "target_commitish": "main",
            "name": null,
            "body": null,
            "draft": self.draft,
            "prerelease": self.tag.contains("alpha"),
            "immutable": false,
            "created_at": "2026-02-27T19:35:32Z",
            "published_at": if self.draft { Value::Null } else { json!("2026-02-28T08:00:00Z") },
            "author": { "login": "octocat", "id": 1 },
            "assets": shown.collect::<Vec<_>>(),
        })
    }
}

impl Repository {
    fn of(tags: impl IntoIterator<Item = String>) -> Self {
        let releases = tags.into_iter().enumerate().map(|(id, tag)| Release {
            id: id as u64,
            tag,
            ..Release::default()
        });
        Self {
            releases: releases.collect(),
            ..Self::default()
        }
    }

    /// One with a release of the files of a directory.
    fn with_files(directory: &Path) -> Self {
        let mut repository = Self::of([TAG.to_owned()]);
        let files = files_of(directory);
        let assets = files.iter().zip(100..).map(|((name, content), id)| Asset {
            id,
            name: name.clone(),
            state: "uploaded",
            size: content.len(),
            digest: Some(Digest::of(content).to_string()),
        });
        repository.releases[0].assets = assets.collect();
        repository
    }

    fn answer(&mut self, asked: &Asked) -> Reply {
        let reply = self.page(asked);
        if let Some(index) = self.vanishing.filter(|index| *index < self.releases.len()) {
            self.releases.remove(index);
        }
        reply
    }

    fn page(&self, asked: &Asked) -> Reply {
        let url = Url::parse("https://stub").unwrap().join(&asked.target).unwrap();
        let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        let number = |name: &str| query.get(name).and_then(|value| value.parse::<usize>().ok());
        let (per_page, page) = (number("per_page").unwrap_or(30).min(100), number("page").unwrap_or(1));
        let shown = self.shown.unwrap_or(usize::MAX);
        let Some(path) = url.path().strip_prefix(self.base) else {
            return self.json(404, &json!({}), asked, None);
        };
        let path = path.strip_prefix("/repos/octo/stacks").unwrap_or("/nowhere");
        let list = |all: Vec<Value>| {
            let last = all.len().div_ceil(per_page);
            let next = (self.endless || page < last).then_some(page + 1);
            let one: Vec<_> = all.into_iter().skip((page - 1) * per_page).take(per_page).collect();
            self.json(200, &json!(one), asked, next)
        };
        match path.split('/').collect::<Vec<_>>()[..] {
            [""] => self.json(200, &json!({ "full_name": "octo/stacks" }), asked, None),
            ["", "releases"] => list(self.releases.iter().map(|release| release.json(shown)).collect()),
            ["", "releases", "tags", tag] => match self.releases.iter().find(|release| release.tag == tag) {
                Some(release) => self.json(200, &release.json(shown), asked, None),
                None => self.not_found(asked),
            },
            ["", "releases", "assets", id] => match &self.storage {
                Some(storage) => Reply::redirect(storage.join(&format!("/{id}?signature=canary-signature")).unwrap()),
                None => self.not_found(asked),
            },
            ["", "releases", id, "assets"] => {
                let release = self
                    .releases
                    .iter()
                    .find(|release| release.id.to_string() == id)
                    .unwrap();
                list(release.assets.iter().map(Asset::json).collect())
            }
            _ => self.not_found(asked),
        }
    }

    fn not_found(&self, asked: &Asked) -> Reply {
        let body =
            json!({ "message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404" });
        self.json(404, &body, asked, None)
    }

    fn json(&self, status: u16, body: &Value, asked: &Asked, next: Option<usize>) -> Reply {
        let body = body.to_string();
        let etag = format!("W/\"{}\"", Digest::of(body.as_bytes()).hex());
        let link = next.map(|next| {
            let page =
                |rel: &str| format!("<https://elsewhere.stub.test/releases?per_page=100&page={next}>; rel=\"{rel}\"");
            format!("{}, {}", page("next"), page("last"))
        });
        let mut headers = vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            ("ETag", etag.clone()),
            (
                "Vary",
                "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding".to_owned(),
            ),
            ("X-RateLimit-Limit", "5000".to_owned()),
            ("X-RateLimit-Remaining", "4999".to_owned()),
            ("X-RateLimit-Reset", "1772280000".to_owned()),
            ("X-RateLimit-Resource", "core".to_owned()),
        ];
        headers.extend(link.map(|link| ("Link", link)));
        headers.retain(|(name, _)| self.headers.iter().all(|(other, _)| other != name));
        headers.extend(self.headers.clone());
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        if asked.header("if-none-match") == Some(&etag) {
            return Reply::of(304, &headers, "");
        }
        Reply::of(status, &headers, body)
    }
}

/// A stub of GitHub whose repository a test can change.
async fn github(repository: Repository) -> (Stub, Arc<Mutex<Repository>>) {
    let shared = Arc::new(Mutex::new(repository));
    let shown = Arc::clone(&shared);
    let stub = Stub::new(move |asked| shown.lock().unwrap().answer(asked)).await;
    (stub, shared)
}

/// One with a release of the files of a directory, and the host that has the files.
pub(crate) async fn with_release(directory: &Path) -> (Stub, Stub) {
    let (stub, storage, _) = with_stored_release(directory).await;
    (stub, storage)
}

/// The same, and the bytes that the host gives, by name: a test can change them, and GitHub does not notice.
pub(crate) async fn with_stored_release(directory: &Path) -> (Stub, Stub, Arc<Mutex<BTreeMap<String, Vec<u8>>>>) {
    let contents = Arc::new(Mutex::new(files_of(directory)));
    let names: BTreeMap<String, String> = files_of(directory)
        .into_keys()
        .zip(100..)
        .map(|(name, id)| (format!("/{id}"), name))
        .collect();
    let stored = Arc::clone(&contents);
    let storage = Stub::new(move |asked| {
        let path = asked.target.split('?').next().unwrap();
        names.get(path).map_or(Reply::of(404, &[], ""), |name| {
            Reply::of(200, &[], &stored.lock().unwrap()[name])
        })
    })
    .await;
    let mut repository = Repository::with_files(directory);
    // Where github.com is the server itself, and Enterprise a host below it, so that one name does for the test.
    repository.storage = Some(storage.at("media.api.stub.test", "/"));
    let (stub, _) = github(repository).await;
    (stub, storage, contents)
}

fn options(stub: &Stub, base: &str) -> GithubOptions {
    GithubOptions {
        owner: "octo".to_owned(),
        repository: "stacks".to_owned(),
        api_url: Some(stub.url(base).to_string()),
        token: Some(TOKEN.into()),
        certificates: Some(authority().to_vec()),
    }
}

fn source_in(network: &Network, stub: &Stub) -> GithubSource {
    GithubSource::new(options(stub, "/"), network).unwrap()
}

pub(crate) fn source(stub: &Stub) -> GithubSource {
    source_in(&network(), stub)
}

/// What comes of listing where everything is answered so.
async fn list(reply: Reply) -> SourceError {
    let stub = Stub::new(move |_| reply.clone()).await;
    source(&stub).list().await.expect_err("this is no list")
}

fn tags(count: usize) -> impl Iterator<Item = String> {
    (1..=count)
        .rev()
        .map(|version| format!("docker-harbor-1-34-v{version}"))
}

fn versions(listing: &Listing) -> Vec<String> {
    listing.releases.iter().map(|release| release.tag.to_string()).collect()
}

fn sorted(tags: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut tags: Vec<_> = tags.into_iter().map(|text| tag(&text)).collect();
    tags.sort();
    tags.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn github_keeps_the_contract_of_sources_and_its_token_to_itself() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let (stub, storage) = with_release(&directory).await;
    let source = source(&stub);
    assert_keeps_the_contract(&source, &directory).await;

    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let whole = release::Release::open(&directory, &tag(TAG)).unwrap();
    assert_eq!(
        resolved.digest(),
        Some(whole.digest),
        "the digests that GitHub tells make that of the release"
    );
    let (asked, stored) = (stub.asked(), storage.asked());
    assert!(stored.len() >= 4);
    for asked in &asked {
        assert_eq!(asked.header("authorization"), Some("Bearer canary-token"), "{asked:?}");
        assert_eq!(asked.header("x-github-api-version"), Some("2022-11-28"), "{asked:?}");
    }
    for asked in &stored {
        assert_eq!(asked.header("authorization"), None, "{asked:?}");
        assert!(!format!("{asked:?}").contains(TOKEN), "{asked:?}");
        assert_eq!(asked.header("accept"), Some("application/octet-stream"), "{asked:?}");
    }
}

#[tokio::test]
async fn a11_releases_on_three_pages_are_one_list_without_drafts_and_with_foreign_tags_apart() {
    let mut repository = Repository::of(tags(247).chain(["docker-harbor-1-34-v0-alpha-1".to_owned()]));
    let foreign = ["v1.0.0", "nightly"].map(|tag| Release {
        tag: tag.to_owned(),
        ..Release::default()
    });
    repository.releases.extend(foreign);
    repository.releases[3].draft = true;
    let draft = repository.releases[3].tag.clone();
    let (stub, shown) = github(repository).await;
    let listing = source(&stub).list().await.unwrap();
    let expected = shown.lock().unwrap().releases[..248]
        .iter()
        .map(|release| release.tag.clone())
        .collect::<Vec<_>>();
    assert_eq!(
        versions(&listing),
        sorted(expected.into_iter().filter(|tag| *tag != draft))
    );
    assert_eq!(listing.foreign, ["nightly", "v1.0.0"]);
    let published = listing.releases[0].published_at.unwrap();
    assert_eq!(published.to_string(), "2026-02-28T08:00:00Z");
    let mut asked = stub.targets();
    asked.dedup();
    let page = |page| format!("/repos/octo/stacks/releases?per_page=100&page={page}");
    assert_eq!(
        asked[..3],
        [page(1), page(2), page(3)],
        "no URL of the server was followed"
    );
}

#[tokio::test]
async fn f31_unchanged_list_costs_one_304_and_one_of_several_pages_two() {
    for (count, requests) in [(90, 1), (250, 2)] {
        let (stub, _) = github(Repository::of(tags(count))).await;
        let network = network();
        let source = source_in(&network, &stub);
        let first = source.list().await.unwrap();
        stub.asked();
        for poll in 0..4 {
            let before = network.statistics();
            assert_eq!(source.list().await.unwrap(), first);
            let after = network.statistics();
            assert_eq!(stub.asked().len(), requests, "{count} releases, poll {poll}");
            assert_eq!(after.unchanged - before.unchanged, requests as u64);
            assert_eq!(after.bytes, before.bytes);
        }
    }
}

#[tokio::test]
async fn change_that_only_a_later_page_shows_is_seen_when_its_turn_comes() {
    for deleted in [249, 150] {
        let (stub, shown) = github(Repository::of(tags(250))).await;
        let source = source(&stub);
        source.list().await.unwrap();
        let gone = shown.lock().unwrap().releases.remove(deleted).tag;
        let mut polls = 0;
        while versions(&source.list().await.unwrap()).contains(&gone) {
            polls += 1;
            assert!(polls < 2, "{gone} is still listed");
        }
    }
}

#[tokio::test]
async fn new_release_is_seen_at_once() {
    let (stub, shown) = github(Repository::of(tags(250))).await;
    let source = source(&stub);
    source.list().await.unwrap();
    shown
        .lock()
        .unwrap()
        .releases
        .insert(0, Repository::of(tags(251)).releases[0].clone());
    assert_eq!(versions(&source.list().await.unwrap()), sorted(tags(251)));
}

#[tokio::test]
async fn list_that_moves_between_two_pages_loses_no_release() {
    let (stub, shown) = github(Repository::of(tags(250))).await;
    let source = source(&stub);
    // Once, after the first page was given: the first release of the second page moves onto it.
    let vanishes = |repository: &mut Repository| repository.vanishing = (repository.releases.len() == 250).then_some(0);
    vanishes(&mut shown.lock().unwrap());
    let watching = Arc::clone(&shown);
    let stopper = tokio::spawn(async move {
        while watching.lock().unwrap().releases.len() == 250 {
            tokio::task::yield_now().await;
        }
        watching.lock().unwrap().vanishing = None;
    });
    let listing = source.list().await.unwrap();
    stopper.await.unwrap();
    let there = shown
        .lock()
        .unwrap()
        .releases
        .iter()
        .map(|release| release.tag.clone())
        .collect::<Vec<_>>();
    assert!(there.len() < 250);
    assert_eq!(versions(&listing), sorted(there));
}

#[tokio::test]
async fn list_that_never_rests_is_not_believed() {
    let mut repository = Repository::of(tags(900));
    repository.vanishing = Some(0);
    let (stub, _) = github(repository).await;
    let error = source(&stub).list().await.unwrap_err();
    assert!(matches!(error, SourceError::Moving { .. }), "{error:?}");
}

#[tokio::test]
async fn list_without_end_is_given_up() {
    let mut repository = Repository::of(tags(3));
    repository.endless = true;
    let (stub, _) = github(repository).await;
    let error = source(&stub).list().await.unwrap_err();
    assert!(
        matches!(error, SourceError::TooManyReleases { limit: 10_000, .. }),
        "{error:?}"
    );
    assert_eq!(stub.asked().len(), 100);
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let message =
        |text: &str| json!({ "message": text, "documentation_url": "https://docs.github.com/rest" }).to_string();
    let page = "<!DOCTYPE html><title>canary-page</title>";
    for (status, body, class, words) in [
        (
            401,
            message("Bad credentials"),
            ErrorClass::Transient,
            "denies access (Bad credentials); look whether the token",
        ),
        (
            403,
            message("Resource not accessible by personal access token"),
            ErrorClass::Transient,
            "not accessible by personal access token",
        ),
        (
            404,
            message("Not Found"),
            ErrorClass::Waiting,
            "no repository octo/stacks",
        ),
        (404, message("Not Found"), ErrorClass::Waiting, "or it is private"),
        (500, String::new(), ErrorClass::Transient, "with status 500"),
        (502, page.to_owned(), ErrorClass::Transient, "with status 502"),
        (
            403,
            page.to_owned(),
            ErrorClass::Transient,
            "a web page instead of a message",
        ),
        (
            200,
            page.to_owned(),
            ErrorClass::Transient,
            "look whether the URL is right",
        ),
        (
            200,
            "[{}]".to_owned(),
            ErrorClass::Transient,
            "look whether the URL is right",
        ),
        (
            200,
            "[".repeat(1000),
            ErrorClass::Transient,
            "look whether the URL is right",
        ),
    ] {
        let error = list(Reply::of(status, &[], body)).await;
        let told = chain(&error);
        assert!(told.contains(words), "{status}: {told}");
        assert_eq!(error.class(), class, "{told}");
        assert!(!format!("{told} {error:?}").contains("canary"), "{told}");
    }
}

#[tokio::test]
async fn page_without_end_is_refused_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n[".to_vec();
    let error = list(Reply::Repeats(head, vec![b' '; 1 << 20], Duration::ZERO)).await;
    assert!(
        matches!(error, SourceError::Http(HttpError::TooLarge { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn page_of_more_entries_than_were_asked_for_is_refused() {
    let lines = |count| vec![r#"{"tag_name":"d-h-1-34-v1"}"#; count].join(",");
    let error = list(Reply::of(200, &[], format!("[{}]", lines(101)))).await;
    assert!(
        chain(&error).contains("more than the 100 entries of a page"),
        "{error:?}"
    );
    assert_eq!(error.class(), ErrorClass::Transient);

    let asset = |id: usize| json!({ "id": id, "name": format!("a-{id}"), "state": "uploaded", "size": 1 });
    let assets = move |count| json!((0..count).map(asset).collect::<Vec<_>>());
    let stub = Stub::new(move |asked| {
        let body = if asked.target.contains("/assets") {
            assets(101)
        } else {
            json!({ "id": 7, "assets": assets(60) })
        };
        Reply::of(200, &[], body.to_string())
    })
    .await;
    let error = source(&stub).resolve(&tag(TAG)).await.unwrap_err();
    assert!(
        chain(&error).contains("more than the 100 entries of a page"),
        "{error:?}"
    );
}

#[tokio::test]
async fn texts_of_github_are_kept_to_their_bound() {
    let long = "x".repeat(1 << 20);
    let page = format!(r#"[{{"tag_name":"{long}"}}]"#);
    let etag = format!("\"{}\"", "e".repeat(300));
    let stub = Stub::new(move |_| Reply::of(200, &[("ETag", etag.as_str())], &page)).await;
    let source = source(&stub);
    for _ in 0..2 {
        assert_eq!(source.list().await.unwrap().foreign, ["x".repeat(256)]);
    }
    let is_conditional = |asked: &Asked| asked.header("if-none-match").is_some();
    assert!(
        !stub.asked().iter().any(is_conditional),
        "a tag of any length would be kept for each page"
    );
}

#[tokio::test]
async fn a11_limits_are_waited_for_in_each_of_the_ways_that_github_tells_them() {
    let in_ten_minutes = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
    let reset = in_ten_minutes.to_string();
    let message = |text: &str| json!({ "message": text }).to_string();
    let primary: &[(&str, &str)] = &[("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", &reset)];
    let clock: &[(&str, &str)] = &[
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1772366475"),
        ("Date", "Sun, 01 Mar 2026 12:00:00 GMT"),
    ];
    let secondary =
        message("You have exceeded a secondary rate limit. Please wait a few minutes before you try again.");
    for (status, headers, body, at_least, at_most) in [
        (
            403,
            primary,
            message("API rate limit exceeded for user ID 1."),
            590,
            600,
        ),
        (
            429,
            primary,
            message("API rate limit exceeded for user ID 1."),
            590,
            600,
        ),
        (403, clock, message("API rate limit exceeded"), 75, 75),
        (429, &[("Retry-After", "90")], secondary.clone(), 90, 90),
        (403, &[("Retry-After", "90")], secondary.clone(), 90, 90),
        (403, &[], secondary.clone(), 60, 60),
        (429, &[], "slow down".to_owned(), 60, 60),
    ] {
        let reply = Reply::of(status, headers, &body);
        let stub = Stub::new(move |_| reply.clone()).await;
        let network = network();
        let source = source_in(&network, &stub);
        let error = source.list().await.unwrap_err();
        assert!(
            matches!(error, SourceError::RateLimited { .. }),
            "{status} {headers:?}: {error:?}"
        );
        assert_eq!(
            (error.class(), error.reason()),
            (ErrorClass::Waiting, "SourceRateLimited")
        );
        let wait = error.retry_after().unwrap().as_secs();
        assert!((at_least..=at_most).contains(&wait), "{headers:?}: {wait}");

        let again = source.resolve(&tag(TAG)).await.unwrap_err();
        assert!(
            matches!(again, SourceError::Http(HttpError::BackingOff { .. })),
            "{again:?}"
        );
        assert_eq!(stub.asked().len(), 1, "it is left alone");
        let other = GithubOptions {
            token: Some("another".into()),
            ..options(&stub, "/")
        };
        GithubSource::new(other, &network).unwrap().list().await.unwrap_err();
        assert_eq!(stub.asked().len(), 1, "who has another token is not held up");
    }
}

#[tokio::test]
async fn last_request_of_the_hour_is_used_and_no_further_one_is_tried() {
    let reset = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
    let mut repository = Repository::of(tags(3));
    repository.headers = vec![
        ("X-RateLimit-Remaining", "0".to_owned()),
        ("X-RateLimit-Reset", reset.to_string()),
    ];
    let (stub, _) = github(repository).await;
    let source = source(&stub);
    assert_eq!(source.list().await.unwrap().releases.len(), 3);
    let error = source.list().await.unwrap_err();
    assert!(
        matches!(error, SourceError::Http(HttpError::BackingOff { .. })),
        "{error:?}"
    );
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn error_changes_nothing_that_was_known() {
    let (stub, shown) = github(Repository::of(tags(250))).await;
    let source = source(&stub);
    let first = source.list().await.unwrap();
    let repository = shown.lock().unwrap().clone();
    shown.lock().unwrap().base = "/gone";
    source.list().await.unwrap_err();
    *shown.lock().unwrap() = repository;
    stub.asked();
    assert_eq!(source.list().await.unwrap(), first);
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn enterprise_has_its_api_below_a_path_and_its_files_below_its_host() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let storage = Stub::new(|_| Reply::of(200, &[], "content")).await;
    let mut repository = Repository::with_files(&directory);
    repository.base = "/api/v3";
    repository.storage = Some(storage.at("media.api.stub.test", "/"));
    let (stub, _) = github(repository).await;
    for base in ["/api/v3", "/api/v3/"] {
        let source = GithubSource::new(options(&stub, base), &network()).unwrap();
        assert_eq!(versions(&source.list().await.unwrap()), [TAG]);
        let resolved = source.resolve(&tag(TAG)).await.unwrap();
        assert_eq!(
            read(source.fetch(&resolved.files()[0]).await.unwrap()).await.unwrap(),
            b"content"
        );
    }
    assert!(
        stub.targets()
            .iter()
            .all(|target| target.starts_with("/api/v3/repos/octo/stacks"))
    );
}

async fn read(mut content: Content) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[tokio::test]
async fn files_come_from_hosts_of_github_only() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let stranger = Stub::new(|_| Reply::of(200, &[], "content")).await;
    let mut repository = Repository::with_files(&directory);
    repository.storage = Some(stranger.at("storage.stub.test", "/"));
    let (stub, _) = github(repository).await;
    let source = source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let Err(error) = source.fetch(&resolved.files()[0]).await else {
        panic!("a stranger was asked")
    };
    assert!(
        matches!(error, SourceError::Http(HttpError::RefusedRedirect { .. })),
        "{error:?}"
    );
    assert!(!format!("{} {error:?}", chain(&error)).contains("canary"), "{error:?}");
    assert!(stranger.asked().is_empty());
}

#[tokio::test]
async fn download_that_breaks_off_ends_with_an_error() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf".to_vec();
    let storage = Stub::new(move |_| Reply::Says(half.clone())).await;
    let mut repository = Repository::with_files(&directory);
    repository.storage = Some(storage.at("media.api.stub.test", "/?signature=canary-signature"));
    let (stub, _) = github(repository).await;
    let source = source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let error = read(source.fetch(&resolved.files()[0]).await.unwrap())
        .await
        .unwrap_err();
    let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<HttpError>());
    assert!(matches!(inside, Some(HttpError::Body { .. })), "{error:?}");
    assert!(
        !format!("{} {error:?}", chain(&error as &dyn Error)).contains("canary"),
        "{error:?}"
    );
}

#[tokio::test]
async fn asset_that_was_deleted_meanwhile_is_named() {
    let root = TempDir::new().unwrap();
    let (stub, _) = github(Repository::with_files(&good_release(root.path(), TAG))).await;
    let source = source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let Err(error) = source.fetch(&resolved.files()[0]).await else {
        panic!("it is not there")
    };
    assert!(matches!(error, SourceError::MissingFile { .. }), "{error:?}");
}

#[tokio::test]
async fn release_with_more_assets_than_it_shows_is_read_whole() {
    let root = TempDir::new().unwrap();
    let mut repository = Repository::with_files(&good_release(root.path(), TAG));
    let more = (0..36).map(|number| Asset {
        id: 200 + number,
        name: format!("more-{number}.txt"),
        state: "uploaded",
        size: 1,
        digest: None,
    });
    repository.releases[0].assets.extend(more);
    repository.shown = Some(30);
    let (stub, _) = github(repository).await;
    let resolved = source(&stub).resolve(&tag(TAG)).await.unwrap();
    assert_eq!(resolved.files().len(), 40);
    assert_eq!(resolved.digest(), None, "GitHub does not tell the digest of every file");
}

#[tokio::test]
async fn unchanged_release_costs_one_304_and_a_replaced_file_is_seen() {
    let root = TempDir::new().unwrap();
    let (stub, shown) = github(Repository::with_files(&good_release(root.path(), TAG))).await;
    let network = network();
    let source = source_in(&network, &stub);
    let first = source.resolve(&tag(TAG)).await.unwrap();
    assert_eq!(source.resolve(&tag(TAG)).await.unwrap(), first);
    assert_eq!((stub.asked().len(), network.statistics().unchanged), (2, 1));
    // Without a digest to compare, on an older server: the number tells.
    for asset in &mut shown.lock().unwrap().releases[0].assets {
        asset.digest = None;
    }
    let before = source.resolve(&tag(TAG)).await.unwrap();
    shown.lock().unwrap().releases[0].assets[0].id = 999;
    let after = source.resolve(&tag(TAG)).await.unwrap();
    assert_ne!(before.identity(), after.identity());
}

#[tokio::test]
async fn release_that_is_not_complete_says_what_is_missing() {
    let root = TempDir::new().unwrap();
    let (stub, shown) = github(Repository::with_files(&good_release(root.path(), TAG))).await;
    let source = source(&stub);
    for (change, words) in [
        (
            (|release| release.assets[1].state = "starter") as fn(&mut Release),
            "is not uploaded completely",
        ),
        (|release| release.assets.clear(), "has no files (yet); attach"),
        (|release| release.draft = true, "is not in the source (yet)"),
    ] {
        change(&mut shown.lock().unwrap().releases[0]);
        let error = source.resolve(&tag(TAG)).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.class(), ErrorClass::Waiting);
    }
}

#[tokio::test]
async fn hostile_asset_is_refused_before_its_download() {
    let root = TempDir::new().unwrap();
    let (stub, shown) = github(Repository::with_files(&good_release(root.path(), TAG))).await;
    shown.lock().unwrap().releases[0].assets[0].name = "../../etc/passwd".to_owned();
    let error = source(&stub).resolve(&tag(TAG)).await.unwrap_err();
    assert!(matches!(error, SourceError::UnusableRelease { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Terminal);
}

#[tokio::test]
async fn missing_release_and_missing_repository_are_told_apart() {
    let (stub, shown) = github(Repository::of(tags(1))).await;
    let absent = tag("docker-harbor-1-34-v999");
    let source = source(&stub);
    let error = source.resolve(&absent).await.unwrap_err();
    assert!(matches!(error, SourceError::MissingRelease { .. }), "{error:?}");
    assert_eq!(stub.asked().len(), 2);
    source.resolve(&absent).await.unwrap_err();
    assert_eq!(
        stub.asked().len(),
        1,
        "a repository that was seen is not asked for again"
    );

    shown.lock().unwrap().base = "/elsewhere";
    let stranger = source_in(&network(), &stub);
    let error = stranger.resolve(&absent).await.unwrap_err();
    assert!(matches!(error, SourceError::MissingRepository { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Waiting);
}

#[test]
fn options_that_cannot_be_right_are_refused_without_telling_secrets() {
    let valid = GithubOptions {
        owner: "octo".to_owned(),
        repository: "stacks".to_owned(),
        api_url: None,
        token: None,
        certificates: None,
    };
    let network = network();
    assert!(GithubSource::new(valid.clone(), &network).is_ok());
    let with = |change: fn(&mut GithubOptions)| {
        let mut options = valid.clone();
        change(&mut options);
        let error = GithubSource::new(options, &network).expect_err("it is refused");
        format!("{} {error:?}", chain(&error))
    };
    for (told, words) in [
        (
            with(|options| options.owner = "octo/other".to_owned()),
            "the owner \"octo/other\" is no name",
        ),
        (
            with(|options| options.repository = "..".to_owned()),
            "the repository \"..\" is no name",
        ),
        (
            with(|options| options.repository = "a?b".to_owned()),
            "is no name on GitHub",
        ),
        (
            with(|options| options.api_url = Some("github.example.com".to_owned())),
            "is no URL",
        ),
        (
            with(|options| options.api_url = Some("http://github.example.com".to_owned())),
            "--allow-plain-http",
        ),
        (
            with(|options| options.api_url = Some("https://me:canary@github.example.com".to_owned())),
            "put them into a Secret",
        ),
        (
            with(|options| options.token = Some("canary\ntoken".into())),
            "look for line breaks",
        ),
        (with(|options| options.token = Some("\n".into())), "are empty"),
        (
            with(|options| options.certificates = Some(b"canary".to_vec())),
            "give certificates of authorities",
        ),
    ] {
        assert!(told.contains(words), "{told}");
        assert!(!told.contains("canary"), "{told}");
    }
    let secretive = GithubOptions {
        token: Some(TOKEN.into()),
        ..valid
    };
    let told = format!(
        "{secretive:?} {:?}",
        GithubSource::new(secretive.clone(), &network).unwrap()
    );
    assert!(!told.contains(TOKEN), "{told}");
}

#[tokio::test]
async fn list_tells_which_tag_has_other_files_for_one_request() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let (stub, shown) = github(Repository::with_files(&directory)).await;
    let source = source(&stub);
    let before = source.list().await.unwrap().releases.remove(0);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    assert_eq!(
        (before.identity, before.digest),
        (Some(resolved.identity()), resolved.digest())
    );
    assert!(before.digest.is_some());
    stub.asked();
    // As GitHub does when an asset is replaced: another number, and the digest of the other bytes.
    {
        let asset = &mut shown.lock().unwrap().releases[0].assets[0];
        asset.id += 1000;
        asset.digest = None;
    }
    let after = source.list().await.unwrap().releases.remove(0);
    assert_eq!(stub.asked().len(), 1);
    assert_ne!(after.identity, before.identity);
    assert_eq!((after.identity.is_some(), after.digest), (true, None));
}

#[tokio::test]
async fn list_tells_nothing_of_releases_that_it_may_not_show_whole() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let many = |count| {
        let mut repository = Repository::with_files(&directory);
        let pattern = repository.releases[0].assets[0].clone();
        let more = (1000..).map(|id| Asset {
            id,
            name: format!("more-{id}"),
            ..pattern.clone()
        });
        let assets = &mut repository.releases[0].assets;
        let missing = count - assets.len();
        assets.extend(more.take(missing));
        repository
    };
    for (count, is_told) in [(29, true), (30, false), (40, false)] {
        let mut repository = many(count);
        repository.shown = Some(30);
        let (stub, _) = github(repository).await;
        let listed = source(&stub).list().await.unwrap().releases.remove(0);
        assert_eq!(listed.identity.is_some(), is_told, "{count}");
    }
    let unfinished = |state| {
        let mut repository = many(29);
        repository.releases[0].assets[3].state = state;
        repository
    };
    let (stub, _) = github(unfinished("starter")).await;
    assert_eq!(source(&stub).list().await.unwrap().releases[0].identity, None);
}
