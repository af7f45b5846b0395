//! Conditions before an API server that publishes what they are about, or something else, or nothing.

use crds::release_files::WatchedObject;
use expressions::parse;
use operator_kit::client::install_crypto;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::in_memory::{Server, WORKLOAD};
use operator_kit::objects::{Marked, ObjectWatches};
use planning::addon::{SCHEMAS_PAUSE as PAUSE, SCHEMAS_SETTLE as SETTLE};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;

const LATHE: &str = "example.org/v1";
const INDEX: &str = "/openapi/v3";
const DOCUMENT: &str = "/openapi/v3/apis/example.org/v1";

/// A cluster, and what is known of what it publishes.
struct Cluster {
    server: Server,
    place: Place,
    checks: Checks,
    version: Option<&'static str>,
    _stop: DropGuard,
}

impl Cluster {
    fn new() -> Self {
        install_crypto();
        let server = Server::new(&WORKLOAD, None);
        let (client, stop) = (server.client(), CancellationToken::new());
        let discovery = Discovery::new(client.clone());
        let marked = Marked::by("label", "one");
        let place = Place {
            crds: CrdWatch::start_elsewhere(client.clone(), discovery.clone(), stop.clone()),
            objects: ObjectWatches::new(client.clone(), discovery.clone(), marked, stop.clone()).0,
            client,
            discovery,
        };
        Self {
            server,
            place,
            checks: Checks::default(),
            version: None,
            _stop: stop.drop_guard(),
        }
    }

    /// One whose lathes have a speed, and are there for a while.
    async fn with_lathes() -> Self {
        let cluster = Self::new();
        cluster.server.publish(LATHE, "Lathe", &with_speed("speed"));
        sleep(2 * SETTLE).await;
        cluster
    }

    async fn check(&mut self, library: &Library, text: &str) -> Checked {
        let mut judge = Judge {
            place: &self.place,
            library,
            version: self.version,
            checks: &mut self.checks,
        };
        let expression = parse(text).expect("an expression");
        judge.check(&condition(text), &expression).await
    }

    /// How often index and document were asked for.
    fn asked(&self) -> (usize, usize) {
        let asked = |path| self.server.calls_about("OpenAPI", path);
        (asked(INDEX), asked(DOCUMENT))
    }

    /// The CRD of the lathes comes, or is another.
    async fn define(&self, words: &str) {
        self.server.apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "lathes.example.org", "annotations": { "words": words } },
        }));
        let (before, begun) = (self.place.crds.edition(), Instant::now());
        while self.place.crds.edition() == before {
            assert!(begun.elapsed() < SETTLE, "it is not told");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn condition(text: &str) -> WaitForCondition {
    let object = |key: &str, api_version: &str, kind: &str| WatchedObject {
        key: key.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: "one".to_owned(),
        namespace: "fleet".to_owned(),
    };
    WaitForCondition {
        objects: vec![object("lathe", LATHE, "Lathe")],
        conditions: text.to_owned(),
    }
}

fn with_speed(field: &str) -> Value {
    json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            field: { "type": "integer" }, "mode": { "type": "string", "enum": ["idle", "busy"] },
        } },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } })
}

fn unfit(text: &str, words: &str) -> Verdict {
    Verdict::Unfit {
        message: format!("`{text}` does not fit what the API server of the cluster serves: {words}"),
    }
}

const FITS: Verdict = Verdict::Fits { note: None };

fn noted(words: &str) -> Verdict {
    Verdict::Fits {
        note: Some(words.to_owned()),
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_object_of_the_kind_can_have_does_not_fit_and_is_told_with_what_the_schema_has() {
    let mut cluster = Cluster::with_lathes().await;
    for (text, words) in [
        (
            "lathe.spec.sped == 3",
            "lathe.spec.sped: there is no field sped: did you mean speed?",
        ),
        (
            "lathe.spec.colour == 'red'",
            "lathe.spec.colour: there is no field colour; there are mode, speed",
        ),
        (
            "lathe.spec.speed == 'fast'",
            "lathe.spec.speed == 'fast': compares an integer with a string, which are never equal",
        ),
        (
            "lathe.spec.mode == 'bussy' && lathe.speed == 1",
            "lathe.spec.mode: is never \"bussy\" but one of idle, busy: did you mean busy? (and 1 more)",
        ),
    ] {
        let checked = cluster.check(&Library::default(), text).await;
        assert_eq!((checked.verdict, checked.again), (unfit(text, words), None));
    }
    let fitting = cluster
        .check(
            &Library::default(),
            "lathe.spec.speed == 3 && lathe.metadata.name != ''",
        )
        .await;
    assert_eq!((fitting.verdict, fitting.again), (FITS, None));
}

#[tokio::test(start_paused = true)]
async fn what_is_published_is_read_once_for_a_cluster_and_a_document_once_for_all() {
    let library = Library::default();
    let (mut first, mut second) = (Cluster::with_lathes().await, Cluster::with_lathes().await);
    for _ in 0..3 {
        for text in ["lathe.spec.speed == 3", "lathe.spec.sped == 3"] {
            first.check(&library, text).await;
            sleep(Duration::from_secs(7)).await;
        }
    }
    assert_eq!(first.asked(), (1, 1));
    assert!(matches!(
        second.check(&library, "lathe.spec.sped == 3").await.verdict,
        Verdict::Unfit { .. }
    ));
    assert_eq!(second.asked(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_not_what_its_hash_says_is_believed_of_its_own_cluster_alone() {
    let library = Library::default();
    let mut honest = Cluster::with_lathes().await;
    let mut hostile = Cluster::new();
    let hash = honest.server.published_hash(LATHE);
    hostile
        .server
        .publish_as(LATHE, "Lathe", &with_speed("evil"), Some(&hash));
    sleep(2 * SETTLE).await;
    assert!(matches!(
        hostile.check(&library, "lathe.spec.speed == 3").await.verdict,
        Verdict::Unfit { .. }
    ));
    assert_eq!(honest.check(&library, "lathe.spec.speed == 3").await.verdict, FITS);
    assert_eq!(honest.asked(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_looked_at_again_when_the_cluster_serves_something_else() {
    let library = Library::default();
    let mut cluster = Cluster::with_lathes().await;
    let text = "lathe.spec.rate == 3";
    assert!(matches!(
        cluster.check(&library, text).await.verdict,
        Verdict::Unfit { .. }
    ));
    // An API server publishes what is new a moment after it serves it.
    cluster.define("rate").await;
    let checked = cluster.check(&library, text).await;
    assert!(
        matches!(checked.verdict, Verdict::Unsettled { .. }),
        "{:?}",
        checked.verdict
    );
    assert!(
        checked
            .again
            .is_some_and(|again| again <= Instant::now().into_std() + SETTLE)
    );
    cluster.server.publish(LATHE, "Lathe", &with_speed("rate"));
    sleep(SETTLE).await;
    let checked = cluster.check(&library, text).await;
    assert_eq!((checked.verdict, checked.again), (FITS, None));
    // It stays so, and nobody asks.
    let asked = cluster.asked();
    sleep(PAUSE).await;
    assert_eq!(cluster.check(&library, text).await.verdict, FITS);
    assert_eq!(cluster.asked(), asked);
    // Nor does a stage wait for what is served no more.
    cluster.server.publish(LATHE, "Lathe", &with_speed("speed"));
    cluster.define("speed").await;
    sleep(SETTLE).await;
    assert!(matches!(
        cluster.check(&library, text).await.verdict,
        Verdict::Unfit { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_of_another_version_publishes_something_else() {
    let library = Library::default();
    let mut cluster = Cluster::with_lathes().await;
    cluster.version = Some("v1.34.0");
    let text = "lathe.spec.rate == 3";
    assert!(matches!(
        cluster.check(&library, text).await.verdict,
        Verdict::Unfit { .. }
    ));
    cluster.server.publish(LATHE, "Lathe", &with_speed("rate"));
    cluster.version = Some("v1.35.0");
    assert_eq!(cluster.check(&library, text).await.verdict, FITS);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_checked_when_it_is() {
    let library = Library::default();
    let mut cluster = Cluster::new();
    cluster.server.publish("v1", "ConfigMap", &json!({ "type": "object" }));
    cluster.server.hide(Some("example.org"));
    sleep(2 * SETTLE).await;
    let text = "lathe.spec.sped == 3";
    let checked = cluster.check(&library, text).await;
    assert_eq!((checked.verdict, checked.again), (FITS, None));
    cluster.server.hide(None);
    cluster.server.publish(LATHE, "Lathe", &with_speed("speed"));
    cluster.define("").await;
    sleep(SETTLE).await;
    assert!(matches!(
        cluster.check(&library, text).await.verdict,
        Verdict::Unfit { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_published_nothing_is_refused_and_nobody_asks_again() {
    let mut cluster = Cluster::new();
    sleep(2 * SETTLE).await;
    let text = "lathe.spec.sped == 3";
    for _ in 0..3 {
        let calls = cluster.server.calls();
        let checked = cluster.check(&Library::default(), text).await;
        let words = "their index cannot be used, because it answers with the code 404";
        assert_eq!((checked.verdict, checked.again), (noted(words), None));
        assert!(cluster.server.calls() <= calls + 1);
        sleep(2 * PAUSE).await;
    }
    let calls = cluster.server.calls();
    cluster.check(&Library::default(), text).await;
    assert_eq!(cluster.server.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn what_the_schema_does_not_say_and_what_is_too_much_passes_with_a_note() {
    let mut cluster = Cluster::with_lathes().await;
    let words = "lathe.status: the schema does not say what is in it: not checked";
    let checked = cluster.check(&Library::default(), "lathe.status.warm == true").await;
    assert_eq!(checked.verdict, noted(words));

    let mut cluster = Cluster::new();
    let spec: serde_json::Map<String, Value> = (0..LARGEST / 4)
        .map(|number| (format!("f{number}"), json!({ "type": "object" })))
        .collect();
    let huge = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": spec } } });
    cluster.server.publish(LATHE, "Lathe", &huge);
    sleep(2 * SETTLE).await;
    let checked = cluster.check(&Library::default(), "lathe.spec.sped == 3").await;
    let words = "those of example.org/v1 cannot be used, because there is more of it than is read";
    assert_eq!((checked.verdict, checked.again), (noted(words), None));

    let mut cluster = Cluster::new();
    cluster.server.publish("v1", "ConfigMap", &json!({ "type": "object" }));
    sleep(2 * SETTLE).await;
    let checked = cluster.check(&Library::default(), "lathe.spec.sped == 3").await;
    assert_eq!(checked.verdict, noted("there is none of Lathe in example.org/v1"));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_just_now_is_asked_again_after_a_pause() {
    let mut cluster = Cluster::with_lathes().await;
    let text = "lathe.spec.sped == 3";
    // The list of CRDs was read; nothing is answered now.
    cluster.server.cut_off_after(Some(cluster.server.calls()));
    let begun = Instant::now();
    let checked = cluster.check(&Library::default(), text).await;
    assert_eq!(checked.verdict, noted("they could not be read within 20 s"));
    let again = Instant::from_std(checked.again.expect("it is asked again"));
    assert_eq!(again, begun + PAUSE);
    cluster.server.cut_off_after(None);
    assert!(
        matches!(
            cluster.check(&Library::default(), text).await.verdict,
            Verdict::Fits { .. }
        ),
        "nobody asks before"
    );
    sleep(again - Instant::now()).await;
    assert!(matches!(
        cluster.check(&Library::default(), text).await.verdict,
        Verdict::Unfit { .. }
    ));
}
