//! The guarded client against servers that break the rules.

use std::{env, process::Command, sync::Arc, time::Duration};

use release::{
    ErrorClass,
    http::{
        AddressKind, Client, Credentials, Deadlines, HeaderValue, HttpError, Lookup, LookupFuture, Network,
        NetworkOptions, Rate, Redirects, Request, Stage, Statistics, StatusCode, Url, header,
    },
};
use tokio::io::AsyncReadExt;

use crate::{
    fixture::chain,
    stub::{Asked, Names, Reply, Stub, authority, network, options},
};

const TOKEN: &str = "canary-token";
const SHORT: Duration = Duration::from_millis(200);

fn bearer() -> Credentials {
    Credentials::Bearer(TOKEN.into())
}

fn client(network: &Network, stub: &Stub) -> Client {
    Client::new(network, stub.url("/"), Some(&bearer()), Some(authority())).unwrap()
}

/// What comes of asking for `/` at a stub that does this.
async fn ask(
    network: &Network,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Result<Vec<u8>, HttpError> {
    let stub = Stub::new(answer).await;
    let response = client(network, &stub).send(Request::get(stub.url("/"))).await?;
    response.bytes(1024).await.map(|bytes| bytes.to_vec())
}

fn impatient(deadlines: Deadlines) -> Network {
    Network::new(NetworkOptions { deadlines, ..options() }).unwrap()
}

#[tokio::test]
async fn answer_of_a_trusted_server_is_read_and_counted() {
    let network = network();
    let answered = ask(&network, |asked| {
        Reply::of(200, &[], format!("{} {}", asked.method, asked.target))
    })
    .await;
    assert_eq!(answered.unwrap(), b"GET /");
    let counted = network.statistics();
    assert_eq!((counted.requests, counted.failures, counted.bytes), (1, 0, 5));
}

#[tokio::test]
async fn what_is_asked_is_counted_under_its_name_by_what_came_of_it() {
    let stub = Stub::new(|asked| match asked.target.trim_start_matches('/').parse() {
        Ok(302) => Reply::redirect("/200"),
        Ok(429) => Reply::of(429, &[("Retry-After", "60")], ""),
        Ok(status) => Reply::of(status, &[], "abc"),
        Err(_) => Reply::Says(Vec::new()),
    })
    .await;
    let network = network();
    let named = client(&network.counted_as("github"), &stub);
    for path in ["/200", "/302", "/304", "/500", "/hangs-up", "/429", "/never-sent"] {
        if let Ok(answer) = named.send(Request::get(stub.url(path))).await {
            let _ = answer.bytes(100).await;
        }
    }
    let counted = network.statistics_of("github");
    let expected = Statistics {
        requests: 7,
        failures: 1,
        unchanged: 1,
        granted: 2,
        redirected: 1,
        refused: 1,
        broken: 1,
        held_back: 1,
        bytes: counted.bytes,
    };
    assert_eq!(counted, expected);
    assert_eq!(stub.asked().len(), 7);
    assert_eq!(network.statistics(), counted, "the sum over all names");
    assert_eq!(network.statistics_of("oci"), Statistics::default());
}

#[tokio::test]
async fn server_is_told_who_asks_and_that_nothing_be_compressed() {
    let stub = Stub::new(|_| Reply::of(200, &[], "")).await;
    client(&network(), &stub)
        .send(Request::get(stub.url("/a?b")))
        .await
        .unwrap();
    let [asked] = stub.asked().try_into().unwrap();
    assert_eq!(asked.target, "/a?b");
    assert_eq!(asked.header("authorization"), Some("Bearer canary-token"));
    assert_eq!(asked.header("accept-encoding"), Some("identity"));
    assert!(
        asked.header("user-agent").unwrap().starts_with("stackwright/"),
        "{asked:?}"
    );
    assert_eq!(asked.header("referer"), None);
}

#[tokio::test]
async fn server_of_an_unknown_authority_is_not_trusted() {
    let stub = Stub::new(|_| Reply::of(200, &[], "")).await;
    // The roots of this machine, or none at all, do not vouch for the stub.
    let other = rcgen::KeyPair::generate().unwrap();
    let other = rcgen::CertificateParams::new(vec![])
        .unwrap()
        .self_signed(&other)
        .unwrap()
        .pem();
    let client = Client::new(&network(), stub.url("/"), None, Some(other.as_bytes())).unwrap();
    let error = client
        .send(Request::get(stub.url("/")))
        .await
        .expect_err("nobody vouches for it");
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
    assert!(error.to_string().contains("authority's certificate"), "{error}");
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn server_that_has_another_name_than_its_certificate_is_not_trusted() {
    let stub = Stub::new(|_| Reply::of(200, &[], "")).await;
    let url = stub.at("other.stub.test", "/");
    let client = Client::new(&network(), url.clone(), Some(&bearer()), Some(authority())).unwrap();
    let error = client.send(Request::get(url)).await.expect_err("it is not the one");
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn server_that_never_answers_is_left_after_the_deadline() {
    let network = impatient(Deadlines {
        head: SHORT,
        ..Deadlines::default()
    });
    let error = ask(&network, |_| Reply::Hangs(b"HTTP/1.1 200 OK\r\n".to_vec()))
        .await
        .unwrap_err();
    assert!(
        matches!(error, HttpError::TimedOut { stage: Stage::Head, .. }),
        "{error:?}"
    );
    assert_eq!(network.statistics().failures, 1);
}

#[tokio::test]
async fn server_that_accepts_and_says_nothing_of_tls_is_left_after_the_deadline() {
    let network = impatient(Deadlines {
        connect: SHORT,
        ..Deadlines::default()
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://api.stub.test:{}/", listener.local_addr().unwrap().port());
    let url = Url::parse(&url).unwrap();
    let client = Client::new(&network, url.clone(), None, Some(authority())).unwrap();
    let error = client.send(Request::get(url)).await.unwrap_err();
    assert!(
        matches!(
            error,
            HttpError::TimedOut {
                stage: Stage::Connect,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn name_that_is_never_resolved_is_left_after_the_deadline() {
    #[derive(Debug)]
    struct Silent;
    impl Lookup for Silent {
        fn lookup<'a>(&'a self, _: &'a str) -> LookupFuture<'a> {
            Box::pin(std::future::pending())
        }
    }
    let network = Network::new(NetworkOptions {
        lookup: Arc::new(Silent),
        deadlines: Deadlines {
            connect: SHORT,
            ..Deadlines::default()
        },
        ..options()
    })
    .unwrap();
    let error = ask(&network, |_| Reply::of(200, &[], "")).await.unwrap_err();
    assert!(
        matches!(
            error,
            HttpError::TimedOut {
                stage: Stage::Connect,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn name_without_an_address_is_told_as_such() {
    let network = Network::new(NetworkOptions {
        lookup: Arc::new(Names::of("api.stub.test", &[])),
        ..options()
    })
    .unwrap();
    let error = ask(&network, |_| Reply::of(200, &[], "")).await.unwrap_err();
    assert!(matches!(error, HttpError::Resolve { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Transient);
}

#[tokio::test]
async fn body_that_stops_coming_ends_with_an_error() {
    let network = impatient(Deadlines {
        idle: SHORT,
        ..Deadlines::default()
    });
    let begins = || Reply::Hangs(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello".to_vec());
    let error = ask(&network, move |_| begins()).await.unwrap_err();
    assert!(
        matches!(error, HttpError::TimedOut { stage: Stage::Idle, .. }),
        "{error:?}"
    );

    let stub = Stub::new(move |_| begins()).await;
    let response = client(&network, &stub).send(Request::get(stub.url("/"))).await.unwrap();
    let (mut reader, mut content) = (Box::pin(response.reader()), Vec::new());
    let error = reader.read_to_end(&mut content).await.unwrap_err();
    assert_eq!(content, b"hello");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn body_that_trickles_is_not_waited_for_beyond_the_deadline_of_the_whole() {
    let network = impatient(Deadlines {
        whole: SHORT,
        ..Deadlines::default()
    });
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec();
    let trickle = Reply::Repeats(head, b".".to_vec(), Duration::from_millis(10));
    let error = ask(&network, move |_| trickle.clone()).await.unwrap_err();
    assert!(
        matches!(
            error,
            HttpError::TimedOut {
                stage: Stage::Whole,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn body_without_end_is_refused_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let endless = Reply::Repeats(head, vec![b'x'; 512], Duration::ZERO);
    let error = ask(&network(), move |_| endless.clone()).await.unwrap_err();
    assert!(matches!(error, HttpError::TooLarge { limit: 1024, .. }), "{error:?}");
}

#[tokio::test]
async fn body_that_is_announced_too_large_is_refused_before_it_comes() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n".to_vec();
    let error = ask(&network(), move |_| Reply::Hangs(head.clone())).await.unwrap_err();
    assert!(matches!(error, HttpError::TooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn body_shorter_than_announced_is_an_error_and_a_longer_one_is_cut() {
    let says =
        |length, body: &str| Reply::Says(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into());
    let (short, long) = (says(10, "hello"), says(5, "hello and more"));
    let error = ask(&network(), move |_| short.clone()).await.unwrap_err();
    assert!(matches!(error, HttpError::Body { .. }), "{error:?}");
    assert_eq!(ask(&network(), move |_| long.clone()).await.unwrap(), b"hello");
}

#[tokio::test]
async fn head_without_end_is_refused() {
    let start = || b"HTTP/1.1 200 OK\r\n".to_vec();
    let long = vec![b'x'; 64 * 1024];
    for flood in [
        b"X-More: and more\r\n".repeat(1000),
        [b"X-", &*long].concat(),
        [b"X: ", &*long].concat(),
    ] {
        let reply = Reply::Repeats(start(), flood, Duration::ZERO);
        let error = ask(&network(), move |_| reply.clone()).await.unwrap_err();
        assert!(matches!(error, HttpError::Exchange { .. }), "{error:?}");
    }
    let many = b"X-More: and more\r\n".repeat(101);
    let many = [&*start(), &*many, b"Content-Length: 0\r\n\r\n"].concat();
    let error = ask(&network(), move |_| Reply::Says(many.clone())).await.unwrap_err();
    assert!(matches!(error, HttpError::Exchange { .. }), "{error:?}");
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    for nonsense in ["SSH-2.0-OpenSSH_9.9\r\n", "", "HTTP/1.1 two hundred\r\n\r\n"] {
        let error = ask(&network(), move |_| Reply::Says(nonsense.into()))
            .await
            .unwrap_err();
        assert!(matches!(error, HttpError::Exchange { .. }), "{nonsense:?}: {error:?}");
    }
}

#[tokio::test]
async fn bomb_is_not_unpacked() {
    let bomb = {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&vec![0; 64 << 10]).unwrap();
        gzip.finish().unwrap()
    };
    let reply = Reply::of(200, &[("Content-Encoding", "gzip")], &bomb);
    let for_memory = reply.clone();
    let error = ask(&network(), move |_| for_memory.clone()).await.unwrap_err();
    assert!(matches!(error, HttpError::Encoded { .. }), "{error:?}");

    let stub = Stub::new(move |_| reply.clone()).await;
    let response = client(&network(), &stub)
        .send(Request::get(stub.url("/")))
        .await
        .unwrap();
    let mut content = Vec::new();
    Box::pin(response.reader()).read_to_end(&mut content).await.unwrap();
    assert!(content == bomb, "a file is given as it comes");
}

#[tokio::test]
async fn redirect_to_another_host_takes_no_credentials_and_no_other_secrets_along() {
    let storage = Stub::new(|_| Reply::of(200, &[], "file")).await;
    let to = storage.at("storage.stub.test", "/file?signature=x");
    let stub = Stub::new(move |_| Reply::redirect(&to)).await;
    let request = Request::get(stub.url("/"))
        .header(header::ACCEPT, HeaderValue::from_static("application/octet-stream"))
        .header(header::COOKIE, HeaderValue::from_static("canary-cookie"))
        .redirects(Redirects::To(Arc::new(["storage.stub.test".to_owned()])));
    let response = client(&network(), &stub).send(request).await.unwrap();
    assert_eq!(response.bytes(100).await.unwrap(), "file");
    let [asked] = storage.asked().try_into().unwrap();
    assert_eq!(asked.target, "/file?signature=x");
    assert_eq!(asked.header("accept"), Some("application/octet-stream"));
    assert!(!format!("{asked:?}").contains("canary"), "{asked:?}");
    assert_eq!(asked.header("referer"), None);
}

#[tokio::test]
async fn part_of_a_file_is_asked_for_with_its_entity_tag_wherever_a_redirect_leads() {
    let storage = Stub::new(|asked| match (asked.header("range"), asked.header("if-range")) {
        (Some("bytes=2-"), Some("\"one\"")) => Reply::of(206, &[("content-range", "bytes 2-3/4")], "le"),
        (Some("bytes=2-"), None) => Reply::of(206, &[("content-range", "bytes 2-3/4")], "of another"),
        _ => Reply::of(200, &[], "another"),
    })
    .await;
    let to = storage.at("storage.stub.test", "/file");
    let stub = Stub::new(move |_| Reply::redirect(&to)).await;
    let client = client(&network(), &stub);
    for (tag, status, content) in [("\"one\"", 206, "le"), ("\"other\"", 200, "another")] {
        let request = Request::get(stub.url("/"))
            .header(header::RANGE, HeaderValue::from_static("bytes=2-"))
            .header(header::IF_RANGE, HeaderValue::from_static(tag))
            .redirects(Redirects::To(Arc::new(["storage.stub.test".to_owned()])));
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.bytes(100).await.unwrap(), content);
    }
}

#[tokio::test]
async fn credentials_stay_at_the_port_and_stay_away_when_the_request_comes_back() {
    let home = Stub::new(|asked| match asked.target.as_str() {
        "/back" => Reply::of(200, &[], "back"),
        target => Reply::redirect(&target[1..]),
    })
    .await;
    let back = home.url("/back");
    let neighbour = Stub::new(move |_| Reply::redirect(&back)).await;
    let out = neighbour.url("/");
    let client = client(&network(), &home);
    client.send(Request::get(home.url(&format!("/{out}")))).await.unwrap();
    let [asked] = neighbour.asked().try_into().unwrap();
    assert_eq!(asked.header("authorization"), None, "another port is another server");
    let [first, returned] = home.asked().try_into().unwrap();
    assert_eq!(first.header("authorization"), Some("Bearer canary-token"));
    assert_eq!(
        returned.header("authorization"),
        None,
        "a stranger chose what is asked for"
    );

    client.send(Request::get(home.url("//back"))).await.unwrap();
    let [_, stayed] = home.asked().try_into().unwrap();
    assert_eq!(stayed.header("authorization"), Some("Bearer canary-token"));
}

#[tokio::test]
async fn redirects_that_lead_in_circles_end() {
    let error = ask(&network(), |_| Reply::redirect("/")).await.unwrap_err();
    assert!(
        matches!(error, HttpError::TooManyRedirects { limit: 5, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn redirect_to_the_metadata_service_or_without_tls_is_refused_before_anything_is_sent() {
    let plain = Stub::plain(|_| Reply::of(200, &[], "")).await;
    let network = Network::new(NetworkOptions {
        plain_http: true,
        lookup: Arc::new(Names::of("metadata.stub.test", &["169.254.169.254"])),
        ..options()
    })
    .unwrap();
    for (to, refused) in [
        (
            "https://169.254.169.254/latest".to_owned(),
            "169.254.169.254, which is not public (link-local)",
        ),
        (
            "https://metadata.stub.test/latest".to_owned(),
            "169.254.169.254, which is not public (link-local)",
        ),
        (plain.url("/").to_string(), "without TLS"),
        ("gopher://api.stub.test/".to_owned(), "without TLS"),
    ] {
        let stub = Stub::new(move |_| Reply::redirect(&to)).await;
        let request = Request::get(stub.url("/")).redirects(Redirects::Anywhere);
        let error = client(&network, &stub).send(request).await.unwrap_err();
        assert!(error.to_string().contains(refused), "{error}");
    }
    assert!(plain.asked().is_empty());
}

#[tokio::test]
async fn name_that_changes_its_address_after_a_check_wins_nothing() {
    let stub = Stub::new(|_| Reply::of(200, &[], "")).await;
    let rebinding = Arc::new(Names::of("api.stub.test", &["127.0.0.1", "10.0.0.1", "127.0.0.1"]));
    let network = Network::new(NetworkOptions {
        lookup: rebinding,
        ..options()
    })
    .unwrap();
    let client = client(&network, &stub);
    client.send(Request::get(stub.url("/"))).await.unwrap();
    let error = client.send(Request::get(stub.url("/"))).await.unwrap_err();
    assert!(
        matches!(
            error,
            HttpError::RefusedAddress {
                kind: AddressKind::Private,
                ..
            }
        ),
        "{error:?}"
    );
    client.send(Request::get(stub.url("/"))).await.unwrap();
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn server_inside_is_reached_only_if_the_operator_names_its_network() {
    let stub = Stub::new(|_| Reply::of(200, &[], "")).await;
    let strict = Network::new(NetworkOptions {
        networks: Vec::new(),
        ..options()
    })
    .unwrap();
    let error = client(&strict, &stub)
        .send(Request::get(stub.url("/")))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            HttpError::RefusedAddress {
                kind: AddressKind::Loopback,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("--allow-source-network"), "{error}");
    assert!(stub.asked().is_empty());
    client(&network(), &stub)
        .send(Request::get(stub.url("/")))
        .await
        .unwrap();
}

#[tokio::test]
async fn plain_http_needs_the_permission_of_the_operator() {
    let stub = Stub::plain(|_| Reply::of(200, &[], "")).await;
    let refused = Client::new(&network(), stub.url("/"), None, None).unwrap_err();
    assert!(refused.to_string().contains("--allow-plain-http"), "{refused}");
    let permissive = Network::new(NetworkOptions {
        plain_http: true,
        ..options()
    })
    .unwrap();
    let client = Client::new(&permissive, stub.url("/"), None, Some(authority())).unwrap();
    client.send(Request::get(stub.url("/"))).await.unwrap();
    assert_eq!(stub.targets(), ["/"]);
}

#[tokio::test]
async fn client_asks_no_other_server_than_its_own() {
    let (home, other) = (
        Stub::new(|_| Reply::of(200, &[], "")).await,
        Stub::new(|_| Reply::of(200, &[], "")).await,
    );
    let error = client(&network(), &home)
        .send(Request::get(other.url("/")))
        .await
        .unwrap_err();
    assert!(matches!(error, HttpError::ForeignUrl { .. }), "{error:?}");
    assert!(other.asked().is_empty());
}

#[test]
fn proxy_of_the_environment_is_not_asked() {
    // It would reach for us what we may not. This program again, in another environment, because ours cannot be changed.
    let proxy = "http://127.0.0.1:1";
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "http_client::answer_of_a_trusted_server_is_read_and_counted"])
        .envs([
            ("HTTPS_PROXY", proxy),
            ("HTTP_PROXY", proxy),
            ("ALL_PROXY", proxy),
            ("https_proxy", proxy),
        ])
        .output()
        .unwrap();
    let output = String::from_utf8(status.stdout).unwrap();
    assert!(output.contains("1 passed"), "{output}");
}

#[tokio::test]
async fn server_that_named_a_time_is_not_asked_before_it_in_the_same_name() {
    for (status, silenced) in [(429, true), (503, true), (403, true), (200, false)] {
        let stub = Stub::new(move |_| Reply::of(status, &[("Retry-After", "120")], "")).await;
        let network = network();
        let client = client(&network, &stub);
        let response = client.send(Request::get(stub.url("/"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
        assert_eq!(response.retry_after(), Some(Duration::from_mins(2)));
        let again = client.send(Request::get(stub.url("/"))).await;
        if silenced {
            let error = again.expect_err("it wants to be left alone");
            assert!(matches!(error, HttpError::BackingOff { .. }), "{error:?}");
            assert!(error.retry_after() > Some(Duration::from_mins(1)), "{error:?}");
            assert_eq!(error.class(), ErrorClass::Waiting);
        } else {
            again.unwrap();
        }
        let stranger = client.at(stub.url("/"), None).unwrap();
        stranger.send(Request::get(stub.url("/"))).await.unwrap();
        assert_eq!(stub.asked().len(), if silenced { 2 } else { 3 }, "{status}");
    }
}

#[tokio::test]
async fn all_clients_of_a_process_share_the_rate_of_a_host() {
    let stub = Stub::new(|_| Reply::of(200, &[], "")).await;
    let network = Network::new(NetworkOptions {
        rate: Rate {
            burst: 2,
            interval: Duration::from_hours(1),
        },
        ..options()
    })
    .unwrap();
    for _ in 0..2 {
        client(&network, &stub).send(Request::get(stub.url("/"))).await.unwrap();
    }
    let error = client(&network, &stub)
        .send(Request::get(stub.url("/")))
        .await
        .unwrap_err();
    assert!(matches!(error, HttpError::Busy { .. }), "{error:?}");
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn unchanged_answer_is_told_as_such() {
    let stub = Stub::new(|asked| match asked.header("if-none-match") {
        Some("\"one\"") => Reply::of(304, &[("ETag", "\"one\"")], ""),
        _ => Reply::of(200, &[("ETag", "\"one\"")], "content"),
    })
    .await;
    let network = network();
    let client = client(&network, &stub);
    let first = client.send(Request::get(stub.url("/"))).await.unwrap();
    let etag = HeaderValue::from_str(first.etag().unwrap()).unwrap();
    let again = client
        .send(Request::get(stub.url("/")).header(header::IF_NONE_MATCH, etag))
        .await
        .unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(again.bytes(100).await.unwrap(), "");
    assert_eq!(network.statistics().unchanged, 1);
}

#[tokio::test]
async fn no_error_tells_a_secret() {
    let query = "/path?signature=canary-signature#canary-fragment";
    let network = impatient(Deadlines {
        head: SHORT,
        connect: SHORT,
        ..Deadlines::default()
    });
    let mut told = Vec::new();
    for reply in [
        Reply::Hangs(vec![]),
        Reply::Says(b"nonsense".to_vec()),
        Reply::redirect("http://me:canary-password@other.test/?canary-query"),
        Reply::redirect("https://other.test/canary-path?canary-query"),
        Reply::of(429, &[("Retry-After", "60")], ""),
    ] {
        let stub = Stub::new(move |_| reply.clone()).await;
        let client = client(&network, &stub);
        let mut answer = client.send(Request::get(stub.url(query))).await;
        if answer.is_ok() {
            answer = client.send(Request::get(stub.url(query))).await;
        }
        let error = answer.expect_err("each fails in its way");
        told.push(format!("{} {error:?} {client:?}", chain(&error)));
    }
    let nobody = Url::parse("https://nobody.stub.test:1/x?canary-query").unwrap();
    let client = Client::new(&network, nobody.clone(), Some(&bearer()), Some(authority())).unwrap();
    let error = client
        .send(Request::get(nobody))
        .await
        .expect_err("nobody listens there");
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
    told.push(format!("{} {error:?}", chain(&error)));
    let odd = Credentials::Bearer("canary\ntoken".into());
    let error = client
        .at(client.home().clone(), Some(&odd))
        .expect_err("no header can carry it");
    told.push(format!("{} {error:?} {odd:?} {network:?}", chain(&error)));
    for text in told {
        assert!(!text.contains("canary"), "{text}");
    }
}
