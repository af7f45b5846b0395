//! A policy that refuses Secrets and repeats what it was shown: no value of them is told anywhere.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use crds::{labels, redaction};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::Dispatch;
use tracing::dispatcher::set_default;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::{LONG, begin, operated, stack, template};
use operator_kit::in_memory::{MOST, Server};

const TAG: &str = "docker-harbor-1-34-v3";

/// What the chart and somebody else have put into the Secret, plain and encoded.
const VALUES: [&str; 4] = ["plataea479", "cGxhdGFlYTQ3OQ", "mycale479", "bXljYWxlNDc5"];

/// What is told where nobody knows what the words repeat.
const CODE: &str = "the API server answers 403 Forbidden; its words are not told";

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything that is said, also what spans say; of what kube says what the operator lets through.
fn listener(writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) -> Dispatch {
    let lines = tracing_subscriber::fmt().with_env_filter("debug,kube_client::client=off");
    lines
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(writer)
        .finish()
        .into()
}

/// Listens for ever: which messages are wanted is decided for all threads at once, when each is first met.
static LISTENER: LazyLock<Dispatch> = LazyLock::new(|| listener(io::sink));

/// A Secret of this name that somebody else has made.
fn theirs(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login", "namespace": "fleet" }, "data": data })
}

fn other_key() -> Value {
    theirs(&json!({ "other": "bXljYWxlNDc5" }))
}

/// Goes a way with an operator before a policy that refuses these requests, and asserts that all places tell of it in such words and none tells a
/// value.
fn assert_told_without_values(words: &str, journey: impl AsyncFnOnce(&Server)) {
    operator_kit::client::install_crypto();
    LazyLock::force(&LISTENER);
    let text = Text::default();
    let writer = text.clone();
    let listening = set_default(&listener(move || writer.clone()));
    let server = begin(None);
    let release = operated(&server, async |_| {
        server.apply(&template("small"));
        journey(&server).await;
        sleep(LONG).await;
        server.find("ClusterStackRelease", TAG)
    });
    drop(listening);
    assert!(server.calls() < MOST, "the operator asks for ever");
    let rows = release["status"]["resources"].to_string();
    assert!(rows.contains(words), "{rows}");
    let log = text.0.lock().expect("no writer panicked").clone();
    let log = String::from_utf8(log).expect("the log is text");
    assert!(log.contains(words), "the log tells nothing of the Secret");
    let objects = server.objects().into_iter().filter(|((kind, ..), _)| *kind != "Secret");
    let objects = objects.map(|(key, object)| (key.0, object.to_string()));
    let mut events = 0;
    for (place, text) in objects.chain([("log", log)]) {
        events += usize::from(place == "Event");
        for value in VALUES {
            let line = text.lines().find(|line| line.contains(value));
            assert_eq!(line, None, "{value} is told by the {place}");
        }
    }
    assert!(events > 0, "no event");
}

#[test]
fn a_mark_that_is_refused_is_told_without_what_is_in_the_secret() {
    assert_told_without_values(CODE, async |server| {
        server.apply(&other_key());
        server.refuse_secrets("fieldManager=stackwright-keep");
        server.apply(&stack(&["v3"]));
    });
}

#[test]
fn an_apply_that_is_refused_is_told_without_what_others_have_put_into_the_secret() {
    assert_told_without_values(redaction::HIDDEN, async |server| {
        server.apply(&other_key());
        server.refuse_secrets("apply-patch");
        server.apply(&stack(&["v3"]));
    });
}

#[test]
fn a_takeover_that_is_refused_is_told_without_what_is_in_the_secret() {
    assert_told_without_values(CODE, async |server| {
        let mut predecessors = other_key();
        predecessors["metadata"]["labels"] = json!({ labels::INSTANCE: labels::INSTANCE_OWNED });
        server.apply_as(labels::PREDECESSOR_FIELD_MANAGER, &predecessors);
        server.refuse_secrets("json-patch");
        server.apply(&stack(&["v3"]));
    });
}

#[test]
fn to_take_fields_from_a_mover_that_is_refused_is_told_without_what_is_in_the_secret() {
    assert_told_without_values(CODE, async |server| {
        let mut moved = theirs(&json!({ "password": "cGxhdGFlYTQ3OQ==", "other": "bXljYWxlNDc5" }));
        moved["metadata"]["managedFields"] = json!([{
            "manager": labels::MOVER_FIELD_MANAGER, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": { "f:password": {}, "f:other": {} } },
        }]);
        server.create("Secret", &moved);
        server.refuse_secrets("json-patch");
        server.apply(&stack(&["v3"]));
    });
}

#[test]
fn a_deletion_that_is_refused_is_told_without_what_is_in_the_secret() {
    assert_told_without_values(CODE, async |server| {
        server.apply(&stack(&["v3"]));
        sleep(LONG).await;
        server.apply(&other_key());
        server.refuse_secrets("DELETE");
        server.delete("ClusterStack", "harbor");
    });
}
