//! Keys in a Secret that changes, given by an API server that a test can change.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

const ONE: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELNc/0C3UBVnRVo5+Oo4g2OPbmmKi\n\
                   6tLIu3XvBADjQaCTIsbSWIDalxMgELz4hKf/5CBIOkN6ZgXLzI9YELmhPw==\n-----END PUBLIC KEY-----\n";
const OTHER: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

/// What the API server answers: a code and an object.
type Answer = Arc<Mutex<(u16, Value)>>;

fn secret(values: &[(&str, &str)]) -> (u16, Value) {
    typed("Opaque", values)
}

fn typed(type_: &str, values: &[(&str, &str)]) -> (u16, Value) {
    let data: serde_json::Map<String, Value> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into()))
        .collect();
    let metadata = json!({ "name": "cosign", "namespace": "fleet" });
    (
        200,
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_, "data": data }),
    )
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": "" });
    (code, status)
}

/// Counts who asks, and answers a moment later.
fn server(answer: &Answer, asked: &Arc<AtomicUsize>) -> Client {
    let (answer, asked) = (Arc::clone(answer), Arc::clone(asked));
    let service = tower::service_fn(move |_: Request<Body>| {
        asked.fetch_add(1, Ordering::Relaxed);
        let (code, object) = lock(&answer).clone();
        let body = Body::from(serde_json::to_vec(&object).unwrap());
        async move {
            tokio::task::yield_now().await;
            Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

struct World {
    answer: Answer,
    /// How often the API server was asked.
    asked: Arc<AtomicUsize>,
    ring: Arc<KeyRing>,
    changes: mpsc::UnboundedReceiver<SourceChange>,
}

impl World {
    fn new(answer: (u16, Value)) -> Self {
        Self::with_root(answer, None)
    }

    fn with_root(answer: (u16, Value), own_root: Option<PathBuf>) -> Self {
        let answer = Arc::new(Mutex::new(answer));
        let (sender, changes) = mpsc::unbounded_channel();
        let asked = Arc::default();
        let ring = KeyRing::new(
            server(&answer, &asked),
            own_root,
            sender,
            Tasks::default(),
            CancellationToken::new(),
        );
        Self {
            answer,
            asked,
            ring,
            changes,
        }
    }

    async fn keys(&self) -> Result<Trust, String> {
        let tag = "docker-harbor-1-34-v1".parse().unwrap();
        let keys = self.ring.keys(&place(None), &tag).await;
        keys.map_err(|error| error.to_string())
    }

    fn answers(&self, answer: (u16, Value)) {
        *lock(&self.answer) = answer;
    }

    /// Waits until the release that asked is told to look again.
    async fn changed(&mut self) {
        let change = time::timeout(10 * AGAIN, self.changes.recv()).await.unwrap().unwrap();
        assert_eq!(change.tags.len(), 1);
    }
}

fn place(key: Option<&str>) -> KeyPlace {
    KeyPlace {
        namespace: "fleet".to_owned(),
        cosign: Cosign::PublicKeySecretRef(SecretReference {
            name: "cosign".to_owned(),
            key: key.map(str::to_owned),
        }),
    }
}

fn keyless(secret: Option<&str>) -> KeyPlace {
    KeyPlace {
        namespace: "fleet".to_owned(),
        cosign: Cosign::Keyless(crds::policy::Keyless {
            issuer: "https://issuer.example.com".to_owned(),
            identity: "publisher@example.com".to_owned(),
            trust_root_secret_ref: secret.map(|name| SecretReference {
                name: name.to_owned(),
                key: None,
            }),
        }),
    }
}

fn keys(texts: &[&str]) -> Trust {
    Trust::Keys(Keys::from_pem(texts.concat().as_bytes()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn keys_that_come_or_change_count_without_a_restart() {
    let mut world = World::new(failure(404, "NotFound"));
    let missing = world.keys().await.unwrap_err();
    assert!(missing.contains("there is no Secret fleet/cosign"), "{missing}");
    world.answers(secret(&[("cosign.pub", ONE)]));
    world.changed().await;
    assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    world.answers(secret(&[("cosign.pub", &format!("{ONE}{OTHER}"))]));
    world.changed().await;
    assert_eq!(world.keys().await, Ok(keys(&[ONE, OTHER])));
    // A key that is taken away, or spoilt, counts no longer.
    world.answers(secret(&[("cosign.pub", "")]));
    world.changed().await;
    let none = world.keys().await.unwrap_err();
    assert!(
        none.contains("the Secret fleet/cosign gives no public keys: no `BEGIN"),
        "{none}"
    );
}

#[tokio::test(start_paused = true)]
async fn api_server_that_does_not_answer_takes_no_key_away() {
    let mut world = World::new(secret(&[("cosign.pub", ONE)]));
    assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    world.answers(failure(503, "ServiceUnavailable"));
    time::sleep(10 * AGAIN).await;
    assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    assert!(world.changes.try_recv().is_err());
    // Who has no keys yet is told.
    let unread = World::new(failure(503, "ServiceUnavailable")).keys().await.unwrap_err();
    assert!(
        unread.contains("failed to read the Secret fleet/cosign, which spec.verification"),
        "{unread}"
    );
}

#[tokio::test(start_paused = true)]
async fn however_many_releases_want_a_key_its_secret_is_read_once_and_then_once_a_minute() {
    let world = World::new(secret(&[("cosign.pub", ONE)]));
    let asked = || world.asked.load(Ordering::Relaxed);
    let everybody = (0..100).map(|_| world.keys());
    assert!(futures::future::join_all(everybody).await.iter().all(Result::is_ok));
    assert_eq!(asked(), 1);
    time::sleep(10 * AGAIN + SOON).await;
    assert_eq!(asked(), 11);
    // Who is given up on leaves his turn to the others.
    let world = World::new(secret(&[("cosign.pub", ONE)]));
    assert!(time::timeout(Duration::ZERO, world.keys()).await.is_err());
    assert!(world.keys().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn that_the_api_server_did_not_answer_is_not_told_for_longer_than_it_is_so() {
    let mut world = World::new(failure(503, "ServiceUnavailable"));
    world.keys().await.unwrap_err();
    let start = Instant::now();
    world.answers(secret(&[("cosign.pub", ONE)]));
    world.changed().await;
    assert!(start.elapsed() <= 2 * AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    // As long as it does not, it is not asked without a pause.
    let world = World::new(failure(503, "ServiceUnavailable"));
    world.keys().await.unwrap_err();
    time::sleep(10 * AGAIN).await;
    assert!(world.asked.load(Ordering::Relaxed) < 70);
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_secret_that_may_not_be_read_any_more_or_is_gone_count_no_longer_until_they_can_be_read() {
    for (answer, words) in [
        (
            failure(403, "Forbidden"),
            "the operator may not read the Secret fleet/cosign",
        ),
        (failure(404, "NotFound"), "there is no Secret fleet/cosign"),
    ] {
        let mut world = World::new(secret(&[("cosign.pub", ONE)]));
        assert_eq!(world.keys().await, Ok(keys(&[ONE])));
        world.answers(answer);
        world.changed().await;
        let withdrawn = world.keys().await.unwrap_err();
        assert!(withdrawn.contains(words), "{withdrawn}");
        world.answers(secret(&[("cosign.pub", ONE)]));
        world.changed().await;
        assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    }
}

#[tokio::test(start_paused = true)]
async fn list_of_releases_that_is_older_than_a_key_place_does_not_end_it() {
    let mut world = World::new(secret(&[("cosign.pub", ONE)]));
    assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    // The first list does not have the policy yet, the second one not the release.
    world.ring.retain(&HashMap::new());
    world.ring.retain(&HashMap::from([(place(None), HashSet::new())]));
    world.answers(secret(&[("cosign.pub", OTHER)]));
    world.changed().await;
    assert_eq!(world.keys().await, Ok(keys(&[OTHER])));
    // However old it is: somebody uses it now.
    time::sleep(2 * AGAIN).await;
    assert_eq!(world.keys().await, Ok(keys(&[OTHER])));
    world.ring.retain(&HashMap::new());
    assert!(!lock(&world.ring.known).is_empty());
    // What nobody names for long is not read any more.
    time::sleep(2 * AGAIN).await;
    world.ring.retain(&HashMap::new());
    assert!(lock(&world.ring.known).is_empty());
}

#[tokio::test(start_paused = true)]
async fn request_of_a_stack_has_keys_read_at_once_and_once() {
    let mut world = World::new(secret(&[("cosign.pub", ONE)]));
    assert_eq!(world.keys().await, Ok(keys(&[ONE])));
    let start = Instant::now();
    world.answers(secret(&[("cosign.pub", OTHER)]));
    world.ring.request(&place(None), "fleet/harbor", "now");
    world.changed().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    world.answers(secret(&[("cosign.pub", ONE)]));
    world.ring.request(&place(None), "fleet/harbor", "now");
    world.changed().await;
    assert!(start.elapsed() >= AGAIN);
}

#[tokio::test]
async fn secrets_of_others_and_without_the_key_are_refused_and_never_shown() {
    let token = typed("kubernetes.io/service-account-token", &[("cosign.pub", ONE)]);
    let error = World::new(token).keys().await.unwrap_err();
    assert!(
        error.contains("is of type kubernetes.io/service-account-token"),
        "{error}"
    );
    let other = World::new(secret(&[("other.pub", "canary")]));
    let error = other.keys().await.unwrap_err();
    assert!(error.contains("has no key \"cosign.pub\""), "{error}");
    let tag = "docker-harbor-1-34-v1".parse().unwrap();
    let error = other.ring.keys(&place(Some("other.pub")), &tag).await.unwrap_err();
    assert!(error.to_string().contains("the key \"other.pub\""), "{error}");
    assert!(!format!("{error:?}{error}").contains("canary"), "{error:?}");
}

#[tokio::test]
async fn trust_root_is_read_from_its_own_secret_and_what_is_in_it_is_not_told() {
    for text in [
        "{}",
        "493021",
        "\"canary\"",
        "[\"canary\"]",
        "canary",
        r#"{"mediaType": "canary"}"#,
        r#"{"tlogs": "canary"}"#,
        r#"{"mediaType": "canary", "certificateAuthorities": [], "tlogs": [], "ctlogs": [], "timestampAuthorities": []}"#,
    ] {
        let world = World::new(secret(&[("trusted_root.json", text)]));
        let tag = "docker-harbor-1-34-v1".parse().unwrap();
        let error = world
            .ring
            .keys(&keyless(Some("root")), &tag)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the key \"trusted_root.json\" of the Secret fleet/root gives no trust root: "),
            "{error}"
        );
        assert!(!error.contains("canary") && !error.contains("493021"), "{error}");
    }
}

#[tokio::test]
async fn trust_root_of_the_operator_counts_only_where_a_policy_names_none_and_what_is_in_it_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trusted_root.json");
    let tag = "docker-harbor-1-34-v1".parse().unwrap();
    let asked = async |own_root: Option<&Path>, named: Option<&str>| {
        let world = World::with_root(failure(404, "NotFound"), own_root.map(Path::to_owned));
        world.ring.keys(&keyless(named), &tag).await.unwrap_err().to_string()
    };
    let error = asked(None, None).await;
    assert!(
        error.contains("there is no trust root: set spec.verification"),
        "{error}"
    );
    assert!(error.contains("--trusted-root-file"), "{error}");
    for own_root in [&file, folder.path()] {
        let error = asked(Some(own_root), None).await;
        assert!(
            error.contains(&format!("failed to read {}", own_root.display())),
            "{error}"
        );
    }
    let large = "canary".repeat(1 << 18);
    for (text, words) in [
        (
            "canary",
            "trusted_root.json, which --trusted-root-file names, gives no trust root: ",
        ),
        (r#"{"mediaType": "canary"}"#, "gives no trust root: "),
        (&large, "has more than 1048576 bytes"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = asked(Some(&file), None).await;
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("canary"), "{error}");
        let error = asked(Some(&file), Some("root")).await;
        assert!(error.contains("there is no Secret fleet/root"), "{error}");
    }
}
