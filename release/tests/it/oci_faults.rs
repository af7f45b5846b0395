//! The OCI source against a registry that lies, never ends, or sends us elsewhere.

use std::{collections::BTreeMap, time::Duration};

use release::{
    Digest, ErrorClass,
    http::{Deadlines, Network, NetworkOptions, Rate},
    source::{
        ReleaseSource, SourceError,
        oci::{OciError, OciSource},
    },
};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::{
    fixture::{TAG, chain, good_release, tag},
    oci_source::oci,
    oci_stub::{Content, MANIFEST, NAME, manifest, options_of, plain_network, source_of},
    source_contract::assert_keeps_the_contract,
    stub::{Asked, NAMES, Reply, Stub, network, options},
};

/// A good repository, and the directory that its release was made from.
pub(crate) fn content() -> (Content, TempDir) {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    (Content::of(&directory, TAG), root)
}

/// A source whose registry answers `reply` where it has one and what is right where not.
async fn registry(reply: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> (Stub, OciSource) {
    let (content, _root) = content();
    let stub = Stub::new(move |asked| reply(asked).unwrap_or_else(|| content.answer(asked))).await;
    let source = source_of(&stub, &network(), None);
    (stub, source)
}

/// A head that promises nothing about the length.
fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\n\r\n".to_vec()
}

#[tokio::test]
async fn stub_keeps_the_contract_of_sources_as_the_real_registry_does() {
    let (content, root) = content();
    let stub = Stub::new(move |asked| content.answer(asked)).await;
    let directory = root.path().join("cluster-stacks").join(TAG);
    assert_keeps_the_contract(&source_of(&stub, &network(), None), &directory).await;
}

#[tokio::test]
async fn registry_without_tls_needs_the_leave_of_the_operator() {
    let (content, root) = content();
    let stub = Stub::plain(move |asked| content.answer(asked)).await;
    let directory = root.path().join("cluster-stacks").join(TAG);
    assert_keeps_the_contract(&source_of(&stub, &plain_network(), None), &directory).await;
    stub.asked();
    let error = OciSource::new(&network(), options_of(&stub, None)).unwrap_err();
    assert_eq!(error.reason(), "SourceNotAllowed", "{error:?}");
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn manifest_with_another_digest_than_the_registry_says_is_refused() {
    let lie = Digest::of(b"other").to_string();
    let (body, _root) = content();
    let body = body.manifests[TAG].clone();
    let (_stub, source) = registry(move |asked| {
        let headers = [("Content-Type", MANIFEST), ("Docker-Content-Digest", lie.as_str())];
        asked
            .target
            .contains("/manifests/")
            .then(|| Reply::of(200, &headers, &body))
    })
    .await;
    let error = oci(source.resolve(&tag(TAG)).await.unwrap_err());
    assert!(matches!(error, OciError::Digest { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Transient);
}

#[tokio::test]
async fn answers_without_end_are_cut_at_their_limits() {
    let (_stub, source) = registry(|_| Some(Reply::Repeats(head(), vec![b' '; 64 << 10], Duration::ZERO))).await;
    for error in [
        source.list().await.unwrap_err(),
        source.resolve(&tag(TAG)).await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), "SourceTooLarge", "{error:?}");
    }
}

#[tokio::test]
async fn manifest_of_a_hundred_megabytes_is_refused_by_its_length() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n{".to_vec();
    let (_stub, source) = registry(move |_| Some(Reply::Hangs(head.clone()))).await;
    let error = source.resolve(&tag(TAG)).await.unwrap_err();
    assert_eq!(error.reason(), "SourceTooLarge", "{error:?}");
}

#[tokio::test]
async fn list_of_tags_that_always_goes_on_ends_at_the_limit_of_pages() {
    let stub = Stub::new(|asked| {
        let page: u32 = asked.target.rsplit('=').next().unwrap().parse().unwrap();
        let link = format!(
            "<https://elsewhere.test/v2/other/tags/list?page={}>; rel=\"next\"",
            page + 1
        );
        Reply::of(200, &[("Link", &link)], r#"{"tags":["latest"]}"#)
    })
    .await;
    let rate = Rate {
        burst: 1000,
        ..Rate::default()
    };
    let network = Network::new(NetworkOptions { rate, ..options() }).unwrap();
    let error = oci(source_of(&stub, &network, None).list().await.unwrap_err());
    assert!(matches!(error, OciError::EndlessTags { .. }), "{error:?}");
    let targets = stub.targets();
    assert_eq!(targets.len(), 256);
    // Where the registry says that the next page is, nobody asked.
    let own = format!("/v2/{NAME}/tags/list?");
    assert!(targets.iter().all(|target| target.starts_with(&own)), "{targets:?}");
}

#[tokio::test]
async fn list_of_tags_that_leads_in_a_circle_ends_when_it_comes_round() {
    let (stub, source) = registry(|_| {
        let link = format!("</v2/{NAME}/tags/list?n=1000>; rel=\"next\"");
        Some(Reply::of(200, &[("Link", &link)], r#"{"tags":["latest"]}"#))
    })
    .await;
    let error = oci(source.list().await.unwrap_err());
    assert!(matches!(error, OciError::EndlessTags { .. }), "{error:?}");
    assert_eq!(error.reason(), "SourceTooLarge");
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn repository_of_too_many_tags_is_refused() {
    let tags: Vec<String> = (0..=10_000).map(|number| format!("v{number}")).collect();
    let body = json!({ "tags": tags }).to_string();
    let (_stub, source) = registry(move |_| Some(Reply::of(200, &[], &body))).await;
    let error = oci(source.list().await.unwrap_err());
    assert!(matches!(error, OciError::TooManyTags { .. }), "{error:?}");
}

#[tokio::test]
async fn list_whose_next_page_cannot_be_asked_for_is_not_taken_for_whole() {
    let link = format!("</v2/{NAME}/tags/list>; rel=\"next\"");
    let (_stub, source) = registry(move |_| Some(Reply::of(200, &[("Link", &link)], r#"{"tags":["latest"]}"#))).await;
    let error = oci(source.list().await.unwrap_err());
    assert!(matches!(error, OciError::LostPage { .. }), "{error:?}");
}

#[tokio::test]
async fn repository_without_tags_is_an_empty_list() {
    let (_stub, source) = registry(|_| Some(Reply::of(200, &[], r#"{"name":"a","tags":null}"#))).await;
    let listing = source.list().await.unwrap();
    assert!(listing.releases.is_empty() && listing.foreign.is_empty(), "{listing:?}");
}

#[tokio::test]
async fn list_that_is_no_list_says_so() {
    let (_stub, source) = registry(|_| Some(Reply::of(200, &[], "<html>Sign in</html>"))).await;
    let error = source.list().await.unwrap_err();
    assert!(
        error.to_string().contains("is this the address of a registry?"),
        "{error}"
    );
    assert_eq!(error.reason(), "SourceUnreadable");
}

#[tokio::test]
async fn file_names_that_are_hostile_or_there_twice_are_refused() {
    for (names, words) in [
        (vec!["../metadata.yaml"], "file names must be"),
        (vec!["/etc/passwd"], "file names must be"),
        (vec!["a\\b"], "file names must be"),
        (vec!["a\u{1b}[2J"], "file names must be"),
        (vec!["metadata.yaml", "metadata.yaml"], "twice"),
    ] {
        let mut body = manifest(&BTreeMap::new());
        let layer = |name: &&str| {
            json!({
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                "digest": Digest::of(b"").to_string(),
                "size": 0,
                "annotations": {"org.opencontainers.image.title": name}
            })
        };
        body["layers"] = names.iter().map(layer).collect();
        let body = body.to_string();
        let (_stub, source) = registry(move |_| Some(Reply::of(200, &[("Content-Type", MANIFEST)], &body))).await;
        let error = source.resolve(&tag(TAG)).await.unwrap_err();
        assert!(matches!(error, SourceError::UnusableRelease { .. }), "{error:?}");
        assert!(chain(&error).contains(words), "{}", chain(&error));
        assert_eq!(error.class(), ErrorClass::Terminal);
    }
}

#[tokio::test]
async fn json_that_nests_deep_is_an_error_and_nothing_more() {
    let deep = format!("{{\"layers\":{}", "[".repeat(200_000));
    let (_stub, source) = registry(move |_| Some(Reply::of(200, &[], &deep))).await;
    assert_eq!(source.list().await.unwrap_err().reason(), "SourceUnreadable");
    let error = oci(source.resolve(&tag(TAG)).await.unwrap_err());
    assert!(matches!(error, OciError::Artifact { .. }), "{error:?}");
}

#[tokio::test]
async fn files_may_come_from_elsewhere_but_no_tag_and_no_manifest() {
    let (content, _root) = content();
    let blobs = content.blobs.clone();
    let storage = Stub::new(move |asked| {
        let digest = asked.target.trim_start_matches('/');
        blobs
            .get(digest)
            .map_or_else(|| Reply::of(404, &[], ""), |blob| Reply::of(200, &[], blob))
    })
    .await;
    let elsewhere = storage.at(NAMES[1], "/").to_string();
    let (_stub, source) = registry(move |asked| {
        let (_, digest) = asked.target.split_once("/blobs/")?;
        Some(Reply::redirect(format!("{elsewhere}{digest}")))
    })
    .await;
    for file in source.resolve(&tag(TAG)).await.unwrap().files() {
        let mut read = Vec::new();
        source.fetch(file).await.unwrap().read_to_end(&mut read).await.unwrap();
        assert_eq!(Some(Digest::of(&read)), file.sha256);
    }
    storage.asked();

    let elsewhere = storage.at(NAMES[1], "/").to_string();
    let (_stub, source) = registry(move |_| Some(Reply::redirect(&elsewhere))).await;
    for error in [
        source.list().await.unwrap_err(),
        source.resolve(&tag(TAG)).await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), "SourceRedirects", "{error:?}");
    }
    assert!(storage.asked().is_empty());
}

#[tokio::test]
async fn file_that_the_registry_lost_is_told_by_its_name() {
    let (_stub, source) = registry(|asked| asked.target.contains("/blobs/").then(|| Reply::of(404, &[], ""))).await;
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let error = source.fetch(&resolved.files()[0]).await.err().unwrap();
    assert!(error.to_string().contains(&resolved.files()[0].name), "{error}");
    assert!(matches!(oci(error), OciError::MissingFile { .. }));
}

#[tokio::test]
async fn location_that_is_no_digest_becomes_no_part_of_a_url() {
    let (stub, source) = registry(|_| None).await;
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let mut file = resolved.files()[0].clone();
    stub.asked();
    for location in ["../manifests/latest", "https://elsewhere.test/", "sha512:00", ""] {
        location.clone_into(&mut file.location);
        assert!(source.fetch(&file).await.is_err(), "{location}");
    }
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn registry_that_wants_to_be_left_alone_is() {
    let (stub, source) = registry(|_| Some(Reply::of(429, &[("Retry-After", "120")], ""))).await;
    let error = oci(source.list().await.unwrap_err());
    assert!(matches!(error, OciError::RateLimited { .. }), "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_mins(2)));
    assert_eq!(error.class(), ErrorClass::Waiting);
    assert_eq!(stub.asked().len(), 1);
    let error = source.resolve(&tag(TAG)).await.unwrap_err();
    assert_eq!(error.reason(), "SourceRateLimited", "{error:?}");
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn refusals_and_failures_say_what_was_asked_for_and_what_the_registry_says() {
    let denied = r#"{"errors":[{"code":"DENIED","message":"canary"}]}"#;
    let (_stub, source) = registry(move |_| Some(Reply::of(403, &[], denied))).await;
    let error = source.list().await.unwrap_err();
    assert_eq!(error.reason(), "SourceDenied");
    assert!(error.to_string().contains("the right to pull"), "{error}");
    let broken = r#"{"errors":[{"code":"UNAVAILABLE","message":"canary"}]}"#;
    let (_stub, source) = registry(move |_| Some(Reply::of(503, &[], broken))).await;
    let error = source.resolve(&tag(TAG)).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(
        error
            .to_string()
            .contains("503 Service Unavailable (UNAVAILABLE) when asked for the manifest"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("canary"));
}

#[tokio::test]
async fn dates_are_read_once_and_their_trouble_costs_no_list() {
    let (mut content, _root) = content();
    let body = content.manifests[TAG].clone();
    let (dated, odd) = ("docker-harbor-1-34-v0-sha-0123abc", "docker-harbor-1-34-v0-sha-fedcba9");
    let mut with_date: serde_json::Value = serde_json::from_str(&body).unwrap();
    with_date["annotations"] = json!({"org.opencontainers.image.created": "2026-03-01T12:00:00Z"});
    content.tags = vec![dated.to_owned(), odd.to_owned()];
    content.manifests = BTreeMap::from([
        (dated.to_owned(), with_date.to_string()),
        (odd.to_owned(), "{}".to_owned()),
    ]);
    let stub = Stub::new(move |asked| content.answer(asked)).await;
    let source = source_of(&stub, &network(), None);
    for manifests in [2, 0] {
        let listing = source.list().await.unwrap();
        let found = listing
            .releases
            .iter()
            .map(|listed| (listed.tag.to_string(), listed.published_at));
        let expected = [(dated, Some("2026-03-01T12:00:00Z".parse().unwrap())), (odd, None)];
        assert_eq!(
            found.collect::<Vec<_>>(),
            expected.map(|(tag, date)| (tag.to_owned(), date))
        );
        let asked = stub
            .targets()
            .into_iter()
            .filter(|target| target.contains("/manifests/"));
        assert_eq!(asked.count(), manifests);
    }
}

#[tokio::test]
async fn registry_that_never_answers_is_left_after_the_deadline() {
    let deadlines = Deadlines {
        head: Duration::from_millis(100),
        ..Deadlines::default()
    };
    let network = Network::new(NetworkOptions { deadlines, ..options() }).unwrap();
    let stub = Stub::new(|_| Reply::Hangs(Vec::new())).await;
    let error = source_of(&stub, &network, None).list().await.unwrap_err();
    assert_eq!(error.reason(), "SourceTimedOut", "{error:?}");
}
