//! Files on web servers of this machine, asked for over real connections.

mod server;

use std::time::Duration;

use provider_plugin::{Algorithm, Content, ContentError, ContentPlan, Hasher, Pinned, Sums};
use release::http::NetworkOptions;

use self::server::{File, Server};
use super::*;
use crate::stand_ins::Notes;

const MIB: usize = 1 << 20;
const TIME: &str = "Thu, 26 Nov 2026 20:00:00 GMT";

fn web_files() -> WebFiles {
    web_files_to(&[])
}

/// With servers that may be sent on to.
fn web_files_to(hosts: &[&str]) -> WebFiles {
    let options = NetworkOptions {
        plain_http: true,
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..NetworkOptions::default()
    };
    WebFiles::new(
        &Network::new(options).unwrap(),
        hosts.iter().map(|host| (*host).to_owned()),
    )
}

fn asked(url: impl Into<String>) -> Asked {
    Asked {
        url: url.into(),
        ..Asked::default()
    }
}

fn image_of(web_files: &WebFiles, asked: &Asked) -> Arc<dyn ImageSource> {
    web_files.files(asked).image
}

/// Bytes that differ everywhere.
fn file(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

fn digest_of(bytes: &[u8]) -> Pinned {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(bytes);
    hasher.finish()
}

/// Reads all of it as a transfer does.
async fn read(source: Arc<dyn ImageSource>, pinned: Option<Pinned>) -> Result<Sums, ContentError> {
    let probe = source.probe().await?;
    let plan = ContentPlan {
        attempt: 1,
        pinned,
        ..ContentPlan::default()
    };
    let mut body = Content::new(source, probe, plan, Arc::new(Notes::default()))
        .open()
        .await?;
    while let Some(piece) = futures::StreamExt::next(&mut body.stream).await {
        piece?;
    }
    Ok(body.sums.sums().unwrap())
}

#[tokio::test]
async fn a_probe_says_what_the_server_says_of_the_file() {
    let server = Server::start(File::of(file(1000))).await;
    let source = image_of(&web_files(), &asked(server.url("/disk?signature=secret")));
    let probe = source.probe().await.unwrap();
    assert_eq!(
        probe,
        Probe {
            size: Some(1000),
            tag: Some("\"one\"".to_owned()),
            ranges: true,
            content_type: Some("application/octet-stream".to_owned()),
        }
    );
    assert_eq!(source.place(), server.url("/disk"));
    assert_eq!(server.methods(), ["HEAD"]);
}

#[tokio::test]
async fn where_headers_are_not_given_the_first_byte_says_as_much() {
    for (refusal, ranges) in [(403, true), (405, true), (501, false), (200, false)] {
        let server = Server::start(File {
            head: refusal,
            ranges,
            ..File::of(file(1000))
        })
        .await;
        let source = image_of(&web_files(), &asked(server.url("/disk")));
        let probe = source.probe().await.unwrap();
        assert_eq!((probe.size, probe.ranges), (Some(1000), ranges), "{refusal}");
        assert_eq!(server.methods(), ["HEAD", "GET"]);
    }
}

#[tokio::test]
async fn a_cut_download_goes_on_where_it_was_and_only_of_the_same_file() {
    let bytes = file(3 * MIB);
    let server = Server::start(File {
        cuts: vec![MIB + 5],
        ..File::of(bytes.clone())
    })
    .await;
    let sums = read(image_of(&web_files(), &asked(server.url("/disk"))), None)
        .await
        .unwrap();
    assert_eq!(sums.source, digest_of(&bytes));
    let asked = server.asked();
    let last = asked.last().unwrap();
    let from: usize = last.header("range").unwrap()["bytes=".len()..]
        .trim_end_matches('-')
        .parse()
        .unwrap();
    assert!((1..=MIB + 5).contains(&from), "{from}");
    assert_eq!(last.header("if-range"), Some("\"one\""));
}

#[tokio::test]
async fn another_file_than_the_one_that_was_begun_is_told_of() {
    for ranges in [true, false] {
        let server = Server::start(File {
            cuts: vec![MIB],
            ranges,
            tag: "\"one\"",
            tag_after_cut: "\"two\"",
            ..File::of(file(3 * MIB))
        })
        .await;
        let error = read(image_of(&web_files(), &asked(server.url("/disk"))), None)
            .await
            .unwrap_err();
        assert_eq!(error.class, ErrorClass::SourceChanged, "{error}");
    }
}

#[tokio::test]
async fn the_tag_does_not_matter_where_a_digest_says_which_bytes_are_meant() {
    let bytes = file(3 * MIB);
    let server = Server::start(File {
        cuts: vec![MIB],
        tag_after_cut: "\"of another mirror\"",
        ..File::of(bytes.clone())
    })
    .await;
    let pinned = Asked {
        is_pinned: true,
        ..asked(server.url("/disk"))
    };
    let digest = digest_of(&bytes);
    let sums = read(image_of(&web_files(), &pinned), Some(digest.clone()))
        .await
        .unwrap();
    assert_eq!(sums.source, digest);
}

#[tokio::test]
async fn a_server_without_ranges_is_read_again_from_its_start() {
    let bytes = file(2 * MIB);
    let server = Server::start(File {
        cuts: vec![MIB],
        ranges: false,
        tag: "",
        time: TIME,
        ..File::of(bytes.clone())
    })
    .await;
    let source = image_of(&web_files(), &asked(server.url("/disk")));
    assert_eq!(source.probe().await.unwrap().tag.as_deref(), Some(TIME));
    let sums = read(source, None).await.unwrap();
    assert_eq!(sums.source, digest_of(&bytes));
    assert!(server.asked().last().unwrap().header("range").is_none());
}

#[tokio::test]
async fn what_a_refusal_means_is_told_apart() {
    for (status, class) in [
        (404, ErrorClass::SourceGone),
        (410, ErrorClass::SourceGone),
        (401, ErrorClass::SourceGone),
        (403, ErrorClass::SourceGone),
        (429, ErrorClass::Throttled),
        (500, ErrorClass::Unavailable),
        (502, ErrorClass::Unavailable),
        (503, ErrorClass::Throttled),
    ] {
        let server = Server::start(File {
            status,
            ..File::of(file(10))
        })
        .await;
        // Each has a client of its own: whoever is asked for patience is not asked again.
        let source = || image_of(&web_files(), &asked(server.url("/disk?signature=secret")));
        let probed = source().probe().await.unwrap_err();
        let opened = source().open(0, &Probe::default()).await.err().unwrap();
        for error in [probed, opened] {
            assert_eq!((error.class, error.status), (class, Some(status)), "{error}");
            let place = server.url("/disk");
            assert!(
                error.message.contains(&place) && !error.message.contains("secret"),
                "{error}"
            );
            let patience = (class == ErrorClass::Throttled).then_some(Duration::from_secs(7));
            assert_eq!(error.retry_after, patience);
        }
    }
}

#[tokio::test]
async fn who_may_not_be_asked_is_not_asked_and_the_flag_is_named() {
    let server = Server::start(File::of(file(10))).await;
    let refusal = async |options: NetworkOptions, url: &str| {
        let web_files = WebFiles::new(&Network::new(options).unwrap(), []);
        let error = image_of(&web_files, &asked(url)).probe().await.unwrap_err();
        assert_eq!(error.class, ErrorClass::SourceGone, "{error}");
        error.message
    };
    let plain = || NetworkOptions {
        plain_http: true,
        ..NetworkOptions::default()
    };
    let words = refusal(NetworkOptions::default(), &server.url("/disk")).await;
    assert!(words.contains("--allow-plain-http"), "{words}");
    let words = refusal(plain(), &server.url("/disk")).await;
    assert!(words.contains("--allow-source-network"), "{words}");
    let words = refusal(plain(), "http://me:hunter2@[").await;
    assert!(words.contains("correct it") && !words.contains("hunter2"), "{words}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let url = {
        let server = Server::start(File::of(file(10))).await;
        server.url("/disk")
    };
    let error = image_of(&web_files(), &asked(url)).probe().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable, "{error}");
}

#[tokio::test]
async fn a_redirect_elsewhere_is_followed_to_named_hosts_or_where_a_digest_is_known() {
    let bytes = file(3 * MIB);
    let mirror = Server::start_at(
        "127.0.0.2",
        File {
            cuts: vec![MIB],
            ..File::of(bytes.clone())
        },
    )
    .await;
    let server = Server::start(File {
        redirect: mirror.url("/mirrored"),
        ..File::of(Vec::new())
    })
    .await;
    let plain = asked(server.url("/disk"));
    let error = image_of(&web_files(), &plain).probe().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceGone);
    assert!(error.message.contains("may not go"), "{error}");
    assert!(mirror.asked().is_empty());
    let sums = read(image_of(&web_files_to(&["127.0.0.2"]), &plain), None)
        .await
        .unwrap();
    assert_eq!(sums.source, digest_of(&bytes));
    let last = mirror.asked().pop().unwrap();
    assert_eq!(
        last.header("if-range"),
        Some("\"one\""),
        "or half of another file could follow"
    );
    let pinned = Asked {
        is_pinned: true,
        ..plain
    };
    let digest = digest_of(&bytes);
    assert!(read(image_of(&web_files(), &pinned), Some(digest)).await.is_ok());
}

#[tokio::test]
async fn credentials_are_shown_to_the_server_of_the_image_and_to_no_other() {
    let (home, elsewhere) = (
        Server::start(File::of(file(10))).await,
        Server::start_at("127.0.0.2", File::of(b"sums".to_vec())).await,
    );
    let with = |sums: String| Asked {
        credentials: Some(Credentials::Bearer("hunter2".to_owned().into())),
        sums: Some((sums, None)),
        ..asked(home.url("/images/node.img"))
    };
    let files = web_files().files(&with(elsewhere.url("/SHA256SUMS")));
    let sums = files.sums.unwrap();
    assert_eq!(sums.name, "node.img");
    files.image.probe().await.unwrap();
    sums.file.probe().await.unwrap();
    assert_eq!(home.asked()[0].header("authorization"), Some("Bearer hunter2"));
    assert_eq!(elsewhere.asked()[0].header("authorization"), None);
    let at_home = web_files().files(&with(home.url("/SHA256SUMS"))).sums.unwrap();
    at_home.file.probe().await.unwrap();
    assert_eq!(home.asked()[1].header("authorization"), Some("Bearer hunter2"));
}
