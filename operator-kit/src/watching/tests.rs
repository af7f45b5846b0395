use std::pin::pin;

use futures::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::client::OBJECT_LIMIT;
use crate::failure::words_of_watch;
use crate::stub::{self, Answer, Asked, refusal};

fn object(name: &str, version: u32, bytes: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "fleet", "resourceVersion": version.to_string() },
        "data": { "text": "x".repeat(bytes) },
    })
}

fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

fn is_watch(asked: &Asked) -> bool {
    asked.parameter("watch") == "true"
}

fn expired() -> (u16, Value) {
    refusal(410, "Expired", "too old", &json!({}))
}

/// What is told, in short, up to the given word.
async fn told(answer: impl FnMut(&Asked) -> Answer + Send + 'static, until: &str) -> Vec<String> {
    let api = Api::<ConfigMap>::all(stub::bounded_client(answer));
    let mut events = pin!(watching(api, "", 4));
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != until) {
        let event = events.next().await.expect("it never ends");
        told.push(match event {
            Ok(Event::Init) => "begins".to_owned(),
            Ok(Event::InitApply(object)) => format!("lists {}", object.name_any()),
            Ok(Event::InitDone) => "listed".to_owned(),
            Ok(Event::Apply(object)) => format!("applies {}", object.name_any()),
            Ok(Event::Delete(object)) => format!("deletes {}", object.name_any()),
            Err(error) => words_of_watch(&error),
        });
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_between_its_pages_is_begun_again_in_pages_that_fit() {
    let objects = ["a", "b", "c"].map(|name| object(name, 1, OBJECT_LIMIT / 3));
    let (asks, mut asked_for) = mpsc::unbounded_channel();
    let mut expires = true;
    let answer = move |asked: &Asked| {
        let second = !asked.parameter("continue").is_empty();
        asks.send(asked.parameter("limit").to_owned()).unwrap();
        if is_watch(asked) {
            return Answer::Watch(Vec::new());
        }
        if second && std::mem::take(&mut expires) {
            return expired().into();
        }
        stub::page(asked, &objects).into()
    };
    assert_eq!(
        told(answer, "listed").await,
        [
            "begins", "lists a", "lists b", "too old", "begins", "lists a", "lists b", "lists c", "listed"
        ]
    );
    let mut sizes = Vec::new();
    while let Some(size) = asked_for.recv().await {
        sizes.push(size);
    }
    assert_eq!(sizes, ["4", "2", "2", "2", "2"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_too_large_does_not_end_the_watch_of_the_others() {
    let large = object("b", 6, OBJECT_LIMIT);
    let mut lists = 0;
    let answer = move |asked: &Asked| {
        if is_watch(asked) {
            let first = asked.parameter("resourceVersion") == "5" && lists == 1;
            return Answer::Watch(if first {
                vec![event("MODIFIED", &object("a", 6, 1)), event("MODIFIED", &large)]
            } else {
                vec![event("MODIFIED", &object("c", 8, 1))]
            });
        }
        lists += usize::from(asked.parameter("continue").is_empty() && asked.parameter("limit") == "4");
        let b = if lists == 1 { object("b", 4, 1) } else { large.clone() };
        stub::page(asked, &[object("a", 4, 1), b, object("c", 4, 1)]).into()
    };
    let told = told(answer, "applies c").await;
    let (too_large, passed_over) = (&told[6], &told[9]);
    let limit = format!("configmaps has more than {OBJECT_LIMIT} bytes");
    assert!(
        too_large.contains("watch /api/v1/configmaps") && too_large.contains(&limit),
        "{too_large}"
    );
    assert!(
        passed_over.contains("fleet/b cannot be read and is passed over") && passed_over.contains(&limit),
        "{passed_over}"
    );
    let rest: Vec<&str> = told
        .iter()
        .map(String::as_str)
        .filter(|told| !told.contains(" bytes"))
        .collect();
    assert_eq!(
        rest,
        [
            "begins",
            "lists a",
            "lists b",
            "lists c",
            "listed",
            "applies a",
            "begins",
            "lists a",
            "lists c",
            "listed",
            "applies c"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_without_end_does_not_end_the_watch_either() {
    let mut watches = 0;
    let answer = move |asked: &Asked| {
        if !is_watch(asked) {
            return stub::page(asked, &[]).into();
        }
        watches += 1;
        if watches > 1 {
            return Answer::Watch(vec![event("ADDED", &object("a", 6, 1))]);
        }
        // The stub ends each with a line; one is larger than all that is taken.
        let blank = || Value::String("x".repeat(OBJECT_LIMIT));
        Answer::Live(stream::repeat_with(blank).boxed())
    };
    let told = told(answer, "applies a").await;
    assert!(told[2].contains("watch /api/v1/configmaps has more than"), "{told:?}");
    assert_eq!(told[3..], ["begins", "listed", "applies a"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_begun_again_where_it_was() {
    let (asks, mut asked_for) = mpsc::unbounded_channel();
    let mark = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "resourceVersion": "7" } });
    let answer = move |asked: &Asked| {
        if !is_watch(asked) {
            return stub::page(asked, &[]).into();
        }
        let version = asked.parameter("resourceVersion").to_owned();
        let events = match version.as_str() {
            "5" => vec![event("ADDED", &object("a", 6, 1)), event("BOOKMARK", &mark)],
            _ => vec![event("DELETED", &object("a", 8, 1))],
        };
        asks.send((version, asked.parameter("timeoutSeconds").to_owned()))
            .unwrap();
        Answer::Watch(events)
    };
    let begun = Instant::now();
    let told = told(answer, "deletes a").await;
    assert_eq!(told, ["begins", "listed", "applies a", "deletes a"]);
    assert!(
        begun.elapsed() >= SILENCE && begun.elapsed() < 2 * SILENCE,
        "{:?}",
        begun.elapsed()
    );
    let watch = |version: &str| Some(Some((version.to_owned(), WATCH_SECONDS.to_string())));
    assert_eq!(asked_for.recv().now_or_never(), watch("5"));
    assert_eq!(asked_for.recv().now_or_never(), watch("7"));
}

#[tokio::test(start_paused = true)]
async fn what_an_event_says_that_cannot_be_read_is_listed() {
    for unreadable in [json!({ "type": "ADDED", "object": "a" }), json!("ADDED a")] {
        let mut watches = 0;
        let answer = move |asked: &Asked| {
            if !is_watch(asked) {
                let objects = [object("a", 6, 1)];
                return stub::page(asked, &objects[..watches.min(1)]).into();
            }
            watches += 1;
            let readable = event("ADDED", &object("b", 7, 1));
            Answer::Watch(match watches {
                1 => vec![unreadable.clone(), readable],
                _ => vec![readable],
            })
        };
        let told = told(answer, "applies b").await;
        assert_eq!(told[..2], ["begins", "listed"]);
        assert_eq!(told[3..], ["begins", "lists a", "listed", "applies b"], "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_that_was_cut_is_listed_anew_however_that_is_said() {
    let mut watches = 0;
    let answer = move |asked: &Asked| {
        if !is_watch(asked) {
            return stub::page(asked, &[]).into();
        }
        watches += 1;
        match watches {
            1 => Answer::Watch(vec![event("ERROR", &expired().1)]),
            2 => expired().into(),
            3 => Answer::Watch(vec![expired().1]),
            _ => Answer::Watch(vec![event("ADDED", &object("a", 6, 1))]),
        }
    };
    let again = ["begins", "listed", "too old"];
    let expected = [&again[..], &again, &again, &["begins", "listed", "applies a"]].concat();
    assert_eq!(told(answer, "applies a").await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nobody_can_read_is_no_cause_to_list_for_ever() {
    let mut unreadable = object("b", 6, 1);
    unreadable["data"] = (0..500).fold(json!("leaf"), |inner, _| json!({ "a": inner }));
    let (lists, mut listed) = mpsc::unbounded_channel();
    let mut watches = 0;
    let answer = move |asked: &Asked| {
        if is_watch(asked) {
            watches += 1;
            return Answer::Watch(match watches {
                1 => vec![event("MODIFIED", &unreadable)],
                _ => vec![event("MODIFIED", &object("c", 8, 1))],
            });
        }
        if asked.parameter("continue").is_empty() && asked.parameter("limit") == "4" {
            lists.send(()).unwrap();
        }
        let b = if watches == 0 {
            object("b", 4, 1)
        } else {
            unreadable.clone()
        };
        stub::page(asked, &[object("a", 4, 1), b, object("c", 4, 1)]).into()
    };
    let told = told(answer, "applies c").await;
    assert_eq!(told[..5], ["begins", "lists a", "lists b", "lists c", "listed"]);
    assert_eq!(told[6..8], ["begins", "lists a"], "{told:?}");
    assert!(
        told[8].contains("fleet/b cannot be read and is passed over"),
        "{told:?}"
    );
    assert_eq!(told[9..], ["lists c", "listed", "applies c"], "{told:?}");
    assert_eq!(listed.recv().await.zip(listed.recv().await), Some(((), ())));
    assert_eq!(listed.recv().await, None);
}
