use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crds::conditions::Reason;
use crds::events::Happening;
use serde_json::{Value, json};

use super::*;
use crate::stub::{self, refusal};
use crate::told::Told;

type Stored = Arc<Mutex<BTreeMap<String, Value>>>;

/// An API server that keeps events by name.
fn keeping(stored: &Stored) -> Client {
    let stored = Arc::clone(stored);
    stub::client(move |asked| {
        let name = asked.body["metadata"]["name"].as_str().unwrap().to_owned();
        let mut stored = stored.lock().unwrap();
        if stored.contains_key(&name) {
            return refusal(409, "AlreadyExists", "already exists", &json!({}));
        }
        stored.insert(name, asked.body.clone());
        (201, asked.body.clone())
    })
}

fn web() -> ObjectReference {
    ObjectReference {
        name: Some("web".to_owned()),
        namespace: Some("fleet".to_owned()),
        uid: Some("u1".to_owned()),
        ..ObjectReference::default()
    }
}

/// Publishes in one process, and waits until it has sent everything.
async fn say(stored: &Stored, notes: &[&str]) {
    let (queue, news) = mpsc::channel(WAITING);
    let reporter = Reporter {
        client: keeping(stored),
        controller: "example.org/operator".to_owned(),
        instance: "pod".to_owned(),
        said: HashMap::new(),
        occurrences: HashMap::new(),
        troubled: false,
    };
    let events = Events { queue };
    for note in notes {
        events.publish(web(), EventType::Normal, Happening::DriftCorrected, note);
    }
    drop(events);
    reporter.run(news).await;
}

fn notes(stored: &Stored) -> Vec<String> {
    let mut notes: Vec<String> = stored
        .lock()
        .unwrap()
        .values()
        .map(|event| event["note"].as_str().unwrap().to_owned())
        .collect();
    notes.sort();
    notes
}

#[tokio::test]
async fn the_same_is_said_once_and_a_change_each_time() {
    let stored = Stored::default();
    say(&stored, &["one", "one", "two", "two", "one"]).await;
    assert_eq!(notes(&stored), ["one", "one", "two"]);
}

#[tokio::test]
async fn a_restarted_process_does_not_repeat_itself() {
    let stored = Stored::default();
    for _ in 0..3 {
        say(&stored, &["one", "two"]).await;
    }
    assert_eq!(notes(&stored), ["one", "two"]);
}

#[tokio::test]
async fn a_long_note_is_cut_between_characters() {
    let stored = Stored::default();
    say(&stored, &[&"ü".repeat(NOTE_LIMIT)]).await;
    let [note] = notes(&stored).try_into().unwrap();
    assert!(
        note.ends_with("ü...") && (NOTE_LIMIT - 1..=NOTE_LIMIT).contains(&note.len()),
        "{note}"
    );
    assert_eq!(cut("aü", 2), "a");
}

#[tokio::test]
async fn a_note_steers_no_terminal() {
    let stored = Stored::default();
    say(&stored, &["\u{1b}]0;owned\u{7}\u{1b}[2Jall\nwell"]).await;
    assert_eq!(notes(&stored), ["]0;owned [2Jall well"]);
}

#[tokio::test]
async fn publishing_never_waits() {
    let (queue, _news) = mpsc::channel(1);
    let events = Events { queue };
    for number in 0..10 {
        events.publish(
            web(),
            EventType::Warning,
            Reason::FailedToApplyObjects,
            &number.to_string(),
        );
    }
}

#[tokio::test]
async fn events_that_nobody_takes_are_told_once_in_the_log() {
    let told = Told::begin();
    let client = stub::client(|_| refusal(403, "Forbidden", "cannot create resource \"events\"", &json!({})));
    let (queue, news) = mpsc::channel(WAITING);
    let reporter = Reporter {
        client,
        controller: "example.org/operator".to_owned(),
        instance: "pod".to_owned(),
        said: HashMap::new(),
        occurrences: HashMap::new(),
        troubled: false,
    };
    let events = Events { queue };
    for note in ["a", "b", "c"] {
        events.publish(web(), EventType::Normal, Happening::DriftCorrected, note);
    }
    drop(events);
    reporter.run(news).await;
    let lines = told.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN failed to publish an event"), "{lines:?}");
}
