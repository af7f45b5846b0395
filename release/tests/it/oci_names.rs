//! What the OCI source tells of itself, and to whom.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use release::{
    http::Credentials,
    source::{
        ReleaseSource,
        oci::{OciError, OciOptions, OciSource},
    },
};
use tokio::{io::AsyncReadExt, time};

use crate::{
    fixture::{TAG, chain, tag},
    oci_faults::content,
    oci_source::oci,
    oci_stub::{NAME, options_of, plain_network, source_of},
    registry::password,
    stub::{Asked, NAMES, Reply, Stub, network},
};

const PASSWORD: &str = "canary-password";
/// `harbor:canary-password`, as it stands in a header.
const BASIC: &str = "Basic aGFyYm9yOmNhbmFyeS1wYXNzd29yZA==";

fn given() -> Credentials {
    password(PASSWORD)
}

fn challenge(realm: &str) -> Reply {
    // What it says of the scope is more than we want.
    let challenge =
        format!(r#"Bearer realm="{realm}",service="stub registry",scope="repository:{NAME}:pull,push,delete""#);
    Reply::of(401, &[("WWW-Authenticate", &challenge)], "")
}

/// A registry that wants tokens, and gives them itself: numbered ones, which hold as long as the server says.
async fn registry_with_tokens(answer: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Stub {
    let (content, _root) = content();
    let given = AtomicUsize::new(0);
    Stub::new(move |asked| {
        if asked.target.starts_with("/token?") {
            return answer(given.fetch_add(1, Ordering::SeqCst));
        }
        match asked.header("authorization") {
            Some(token) if token == format!("Bearer canary-{}", given.load(Ordering::SeqCst) - 1) => {
                content.answer(asked)
            }
            // Only the names of a stub are on its certificate.
            _ => challenge(&format!("https://{}/token?account=stub", asked.header("host").unwrap())),
        }
    })
    .await
}

fn token(number: usize, life: u64) -> Reply {
    Reply::of(
        200,
        &[],
        format!(r#"{{"token":"canary-{number}","expires_in":{life}}}"#),
    )
}

fn tokens(asked: &[Asked]) -> Vec<&Asked> {
    asked
        .iter()
        .filter(|asked| asked.target.starts_with("/token?"))
        .collect()
}

#[tokio::test]
async fn token_is_asked_for_the_right_to_pull_alone_and_used_for_all() {
    let stub = registry_with_tokens(|number| token(number, 300)).await;
    let source = source_of(&stub, &network(), Some(given()));
    source.list().await.unwrap();
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    for file in resolved.files() {
        source
            .fetch(file)
            .await
            .unwrap()
            .read_to_end(&mut Vec::new())
            .await
            .unwrap();
    }
    let asked = stub.asked();
    let [token] = tokens(&asked)[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(
        token.target,
        "/token?account=stub&service=stub+registry&scope=repository%3Akaas%2Fstacks%3Apull"
    );
    // The password goes to the server for tokens, and only there.
    let with_password: Vec<_> = asked
        .iter()
        .filter(|asked| asked.header("authorization") == Some(BASIC))
        .collect();
    assert_eq!(with_password, [token]);
    assert_eq!(asked[0].header("authorization"), None);
}

#[tokio::test]
async fn whoever_may_be_anybody_gets_a_token_without_saying_who() {
    let stub = registry_with_tokens(|number| token(number, 300)).await;
    source_of(&stub, &network(), None).list().await.unwrap();
    let asked = stub.asked();
    assert_eq!(tokens(&asked)[0].header("authorization"), None);
}

#[tokio::test]
async fn many_who_ask_at_once_share_one_token() {
    let stub = registry_with_tokens(|number| token(number, 300)).await;
    let source = source_of(&stub, &network(), Some(given()));
    let asking = (0..20).map(|_| {
        let source = source.clone();
        tokio::spawn(async move { source.resolve(&tag(TAG)).await.map(drop) })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap().unwrap();
    }
    assert_eq!(tokens(&stub.asked()).len(), 1);
}

#[tokio::test]
async fn expired_token_is_not_sent_and_another_is_asked_for() {
    let stub = registry_with_tokens(|number| token(number, 1)).await;
    let source = source_of(&stub, &network(), Some(given()));
    source.list().await.unwrap();
    stub.asked();
    // Time that the token has not; the clock of the test is the one that the source looks at.
    time::pause();
    time::advance(Duration::from_secs(2)).await;
    time::resume();
    source.list().await.unwrap();
    let asked = stub.asked();
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!(tokens(&asked).len(), 1);
}

#[tokio::test]
async fn token_that_the_registry_forgot_is_renewed_once() {
    let (content, _root) = content();
    let given = Arc::new(AtomicUsize::new(0));
    let valid = Arc::new(AtomicUsize::new(1));
    let (numbers, good) = (Arc::clone(&given), Arc::clone(&valid));
    let stub = Stub::new(move |asked| {
        if asked.target.starts_with("/token?") {
            return token(numbers.fetch_add(1, Ordering::SeqCst) + 1, 300);
        }
        let good = format!("Bearer canary-{}", good.load(Ordering::SeqCst));
        match asked.header("authorization") {
            Some(token) if token == good => content.answer(asked),
            _ => challenge(&format!("https://{}/token", asked.header("host").unwrap())),
        }
    })
    .await;
    let source = source_of(&stub, &network(), Some(self::given()));
    source.list().await.unwrap();
    valid.store(2, Ordering::SeqCst);
    source.list().await.unwrap();
    assert_eq!(given.load(Ordering::SeqCst), 2);
    // And when it takes none at all, that is the end of it.
    valid.store(0, Ordering::SeqCst);
    let error = oci(source.list().await.unwrap_err());
    assert!(matches!(error, OciError::CredentialsRefused { .. }), "{error:?}");
    assert_eq!(given.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn given_token_is_used_as_it_is() {
    let (content, _root) = content();
    let stub = Stub::new(move |asked| match asked.header("authorization") {
        Some("Bearer canary-given") => content.answer(asked),
        _ => challenge("https://auth.stub.test/token"),
    })
    .await;
    let given = Some(Credentials::Bearer("canary-given".into()));
    source_of(&stub, &network(), given).list().await.unwrap();
    assert_eq!(stub.asked().len(), 2);
    let wrong = source_of(&stub, &network(), Some(Credentials::Bearer("canary-wrong".into())));
    let error = oci(wrong.list().await.unwrap_err());
    assert!(matches!(error, OciError::CredentialsRefused { .. }), "{error:?}");
    assert!(!format!("{error:?}{}", chain(&error)).contains("canary"), "{error:?}");
}

/// A source whose registry sends it for tokens to this address, and what comes of it.
async fn sent_for_tokens_to(realm: String, credentials: Option<Credentials>) -> (Stub, OciError) {
    let stub = Stub::new(move |_| challenge(&realm)).await;
    let source = source_of(&stub, &network(), credentials);
    let error = oci(source.list().await.unwrap_err());
    (stub, error)
}

#[tokio::test]
async fn credentials_do_not_go_to_a_server_for_tokens_of_another_domain() {
    let other = Stub::new(|_| token(0, 300)).await;
    for name in ["elsewhere.example", "stub.test.example", "notstub.test", "127.0.0.1"] {
        let realm = other.at(name, "/token").to_string();
        let (_stub, error) = sent_for_tokens_to(realm, Some(given())).await;
        assert!(matches!(error, OciError::ForeignRealm { .. }), "{name}: {error:?}");
        assert_eq!(error.reason(), "SourceNotAllowed");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn server_for_tokens_of_the_same_domain_or_named_by_the_user_is_trusted() {
    let other = Stub::new(|_| token(7, 300)).await;
    let (content, _root) = content();
    let realm = other.at(NAMES[1], "/token").to_string();
    let asks = move |asked: &Asked| match asked.header("authorization") {
        Some("Bearer canary-7") => content.answer(asked),
        _ => challenge(&realm),
    };
    let stub = Stub::new(asks.clone()).await;
    // storage.stub.test for api.stub.test.
    source_of(&stub, &network(), Some(given())).list().await.unwrap();
    assert_eq!(other.asked()[0].header("authorization"), Some(BASIC));

    // The same server is a stranger for a registry that is an address, until it is named.
    let plain = Stub::plain(asks).await;
    let source = |token_hosts: Vec<String>| {
        let repository = format!("127.0.0.1:{}/{NAME}", plain.url("/").port().unwrap());
        let options = OciOptions {
            repository: repository.parse().unwrap(),
            token_hosts,
            ..options_of(&plain, Some(given()))
        };
        OciSource::new(&plain_network(), options).unwrap()
    };
    let error = oci(source(vec![]).list().await.unwrap_err());
    assert!(matches!(error, OciError::ForeignRealm { .. }), "{error:?}");
    assert!(other.asked().is_empty());
    source(vec![NAMES[1].to_owned()]).list().await.unwrap();
    assert_eq!(other.asked()[0].header("authorization"), Some(BASIC));
}

#[tokio::test]
async fn server_for_tokens_obeys_the_rules_of_the_network() {
    for (realm, reason) in [
        (format!("http://{}/token", NAMES[0]), "SourceNotAllowed"),
        ("file:///etc/passwd".to_owned(), "SourceNotAllowed"),
        ("no url".to_owned(), "SourceNotAllowed"),
        ("https://169.254.169.254/token".to_owned(), "SourceNotAllowed"),
        ("https://[::1]/token".to_owned(), "SourceNotAllowed"),
        (format!("https://user:canary@{}/token", NAMES[0]), "SourceMisconfigured"),
        (format!("https://{}/{}", NAMES[0], "a".repeat(2048)), "SourceNotAllowed"),
    ] {
        let (_stub, error) = sent_for_tokens_to(realm.clone(), None).await;
        assert_eq!(error.reason(), reason, "{realm}: {error:?}");
        assert!(!format!("{error:?}{}", chain(&error)).contains("canary"), "{error:?}");
    }
}

#[tokio::test]
async fn registry_with_tls_cannot_make_us_ask_for_tokens_without() {
    let other = Stub::plain(|_| token(0, 300)).await;
    let realm = other.url("/token").to_string();
    let stub = Stub::new(move |_| challenge(&realm)).await;
    // The network allows it, for others.
    let error = oci(source_of(&stub, &plain_network(), Some(given()))
        .list()
        .await
        .unwrap_err());
    assert!(matches!(error, OciError::Realm { .. }), "{error:?}");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn server_for_tokens_that_sends_on_is_not_followed_to_another_host() {
    let other = Stub::new(|_| token(0, 300)).await;
    let elsewhere = other.at(NAMES[1], "/token").to_string();
    let stub = registry_with_tokens(move |_| Reply::redirect(&elsewhere)).await;
    let error = source_of(&stub, &network(), Some(given())).list().await.unwrap_err();
    assert_eq!(error.reason(), "SourceRedirects", "{error:?}");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn answers_without_a_token_that_can_be_used_are_errors() {
    for (status, header, body, reason) in [
        (200, ("Age", "0"), "{}", "SourceFailed"),
        (200, ("Age", "0"), r#"{"token":""}"#, "SourceFailed"),
        (200, ("Age", "0"), "canary", "SourceFailed"),
        (500, ("Age", "0"), "", "SourceFailed"),
        (401, ("Age", "0"), "", "SourceDenied"),
        (429, ("Retry-After", "60"), "", "SourceRateLimited"),
        (200, ("Age", "0"), "{\"token\":\"a\\r\\nb\"}", "SourceMisconfigured"),
    ] {
        let stub = registry_with_tokens(move |_| Reply::of(status, &[header], body)).await;
        let error = source_of(&stub, &network(), Some(given())).list().await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error:?}");
        assert!(!format!("{error:?}{}", chain(&error)).contains("canary"), "{error:?}");
    }
    let endless = || Reply::Repeats(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 4096], Duration::ZERO);
    let stub = registry_with_tokens(move |_| endless()).await;
    let error = source_of(&stub, &network(), Some(given())).list().await.unwrap_err();
    assert_eq!(error.reason(), "SourceTooLarge", "{error:?}");
}

#[tokio::test]
async fn credentials_stay_behind_when_a_file_comes_from_elsewhere() {
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
    let stub = Stub::new(
        move |asked| match (asked.header("authorization"), asked.target.split_once("/blobs/")) {
            (Some(BASIC), None) => content.answer(asked),
            (Some(BASIC), Some((_, digest))) => Reply::redirect(format!("{elsewhere}{digest}")),
            _ => Reply::of(401, &[("WWW-Authenticate", "Basic realm=\"stub\"")], ""),
        },
    )
    .await;
    let source = source_of(&stub, &network(), Some(given()));
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    for file in resolved.files() {
        source
            .fetch(file)
            .await
            .unwrap()
            .read_to_end(&mut Vec::new())
            .await
            .unwrap();
    }
    let asked = storage.asked();
    assert_eq!(asked.len(), resolved.files().len());
    assert!(
        asked.iter().all(|asked| asked.header("authorization").is_none()),
        "{asked:?}"
    );
}

#[tokio::test]
async fn registry_that_wants_something_unknown_is_told_nothing() {
    let stub = Stub::new(|_| Reply::of(401, &[("WWW-Authenticate", "Negotiate")], "")).await;
    let error = oci(source_of(&stub, &network(), Some(given())).list().await.unwrap_err());
    assert!(matches!(error, OciError::Challenge { .. }), "{error:?}");
    let [asked] = stub.asked().try_into().unwrap();
    assert_eq!(asked.header("authorization"), None);
}
