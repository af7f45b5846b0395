use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::*;
use crate::client::OBJECT_LIMIT;
use crate::failure::chain;
use crate::parts::MOST_PARTS;
use crate::stub::{self, Answer, Asked, refusal};

/// An object with so many bytes besides its metadata.
fn object(name: &str, bytes: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "fleet", "resourceVersion": "4" },
        "data": { "text": "x".repeat(bytes) },
    })
}

/// Pages of eight, of these objects, where nothing else is answered, and what was asked for: the first object and how many, `m` for metadata.
fn pages(
    objects: Vec<Value>,
    mut otherwise: impl FnMut(&Asked) -> Option<Answer> + Send + 'static,
) -> (Pages<ConfigMap>, Arc<Mutex<Vec<String>>>) {
    let asked_for = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&asked_for);
    let client = stub::bounded_client(move |asked| {
        let mark = if asked.metadata_only { "m" } else { "" };
        let asked_for = format!("{}+{}{mark}", asked.parameter("continue"), asked.parameter("limit"));
        note.lock().unwrap().push(asked_for);
        otherwise(asked).unwrap_or_else(|| stub::page(asked, &objects).into())
    });
    (Pages::new(Api::all(client), "", 8), asked_for)
}

/// The names of everything that is listed, and the errors on the way, until one ends the list.
async fn listed(pages: &mut Pages<ConfigMap>) -> Vec<String> {
    let mut listed = Vec::new();
    while let Some(page) = pages.next_page().await {
        match page {
            Ok(objects) => listed.extend(objects.iter().map(ResourceExt::name_any)),
            Err(error) => {
                listed.push(format!("! {}", chain(&error)));
                if !can_go_on(&error) {
                    break;
                }
            }
        }
    }
    listed
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_in_halves_and_the_list_goes_on() {
    let objects = ["a", "b", "c", "d", "e"].map(|name| object(name, OBJECT_LIMIT / 3));
    let (mut pages, asked_for) = pages(objects.to_vec(), |_| None);
    assert_eq!(listed(&mut pages).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(pages.version(), Some("5"));
    // What has been listed is not listed once more, and what proved too large is not tried again.
    assert_eq!(*asked_for.lock().unwrap(), ["+8", "+4", "+2", "2+2", "4+2"]);
}

#[tokio::test]
async fn an_answer_that_the_server_calls_too_large_is_asked_for_in_halves_too() {
    let objects = ["a", "b", "c"].map(|name| object(name, 1));
    let (mut pages, asked_for) = pages(objects.to_vec(), |asked| {
        let too_many = asked.parameter("limit").parse().unwrap_or(0) > 2;
        too_many.then(|| refusal(413, "RequestEntityTooLarge", "too large", &json!({})).into())
    });
    assert_eq!(listed(&mut pages).await, ["a", "b", "c"]);
    assert_eq!(*asked_for.lock().unwrap(), ["+8", "+4", "+2", "2+2"]);
}

#[tokio::test]
async fn one_object_that_is_too_large_is_named_and_passed_over() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let objects = names.map(|name| object(name, if name == "b" { OBJECT_LIMIT } else { 1 }));
    let (mut pages, asked_for) = pages(objects.to_vec(), |_| None);
    let told = format!(
        "! ServiceError: fleet/b cannot be read and is passed over: \
         the API server's answer to list /api/v1/configmaps has more than {OBJECT_LIMIT} bytes; what it shows must be smaller"
    );
    assert_eq!(
        listed(&mut pages).await,
        ["a", &told, "c", "d", "e", "f", "g", "h"].map(str::to_owned)
    );
    // The pages behind it become as large as they were to be.
    assert_eq!(
        *asked_for.lock().unwrap(),
        ["+8", "+4", "+2", "+1", "1+1", "1+1m", "2+2", "4+4"]
    );
}

#[tokio::test]
async fn one_object_of_too_many_parts_is_named_and_passed_over() {
    let mut bomb = object("b", 1);
    bomb["data"] = Value::from(vec![json!({}); MOST_PARTS / 5]);
    let (mut pages, _) = pages(vec![object("a", 1), bomb, object("c", 1)], |_| None);
    let listed = listed(&mut pages).await;
    assert!(
        listed[1].contains("fleet/b cannot be read and is passed over") && listed[1].contains("than the 500000"),
        "{listed:?}"
    );
    assert_eq!([&listed[0], &listed[2]], ["a", "c"]);
}

#[tokio::test]
async fn an_object_without_end_does_not_stand_in_the_way_either() {
    let (mut pages, _) = pages(vec![object("a", 1), object("b", 1)], |asked| {
        let blank = || Value::String("x".repeat(1 << 20));
        let endless = futures::stream::repeat_with(blank);
        let shows_a = !asked.metadata_only && asked.parameter("continue").is_empty();
        shows_a.then(|| Answer::Live(Box::pin(endless)))
    });
    let listed = listed(&mut pages).await;
    assert!(listed[0].contains("fleet/a cannot be read"), "{listed:?}");
    assert_eq!(listed[1..], ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_time_is_asked_for_less_where_it_was_and_for_more_when_it_has() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut busy = 3;
    let (mut pages, asked_for) = pages(names.map(|name| object(name, 1)).to_vec(), move |asked| {
        if asked.parameter("continue").is_empty() {
            return None;
        }
        busy -= 1;
        match busy {
            2 => Some(refusal(504, "Timeout", "not in time", &json!({})).into()),
            // Neither a head in time, nor a body.
            1 => Some(Answer::Late(200, Box::pin(std::future::pending()))),
            _ => None,
        }
    });
    let listed = listed(&mut pages).await;
    assert_eq!(listed[..8], names[..8]);
    assert_eq!(listed[8], "! not in time");
    assert!(
        listed[9].contains("list /api/v1/configmaps did not end within 30 s"),
        "{listed:?}"
    );
    assert_eq!(listed[10..], names[8..]);
    assert_eq!(*asked_for.lock().unwrap(), ["+8", "8+8", "8+4", "8+2"]);
}

#[tokio::test]
async fn a_list_that_is_begun_again_keeps_the_size_that_fits() {
    let objects = ["a", "b", "c"].map(|name| object(name, OBJECT_LIMIT / 3));
    let mut is_cut = true;
    let (mut pages, asked_for) = pages(objects.to_vec(), move |asked| {
        let expired = !asked.parameter("continue").is_empty() && std::mem::take(&mut is_cut);
        expired.then(|| refusal(410, "Expired", "the provided continue parameter is too old", &json!({})).into())
    });
    let before = listed(&mut pages).await;
    assert_eq!(before, ["a", "b", "! the provided continue parameter is too old"]);
    pages.again();
    assert_eq!(listed(&mut pages).await, ["a", "b", "c"]);
    assert_eq!(*asked_for.lock().unwrap(), ["+8", "+4", "+2", "2+2", "+2", "2+2"]);
}

#[tokio::test]
async fn one_object_that_nobody_can_read_is_named_and_passed_over() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let objects = names.map(|name| {
        let mut object = object(name, 1);
        if name == "b" {
            let deep = (0..500).fold(json!({}), |inner, _| json!({ "f:a": inner }));
            object["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "fieldsV1": deep }]);
        }
        object
    });
    let (mut pages, asked_for) = pages(objects.to_vec(), |_| None);
    let mut listed = listed(&mut pages).await;
    let told = listed.remove(1);
    assert!(
        told.starts_with("! ServiceError: fleet/b cannot be read and is passed over: "),
        "{told}"
    );
    assert!(told.contains("recursion limit exceeded"), "{told}");
    assert_eq!(listed, ["a", "c", "d", "e", "f", "g", "h"]);
    assert_eq!(
        *asked_for.lock().unwrap(),
        ["+8", "+4", "+2", "+1", "1+1", "1+1m", "2+2", "4+4"]
    );
}

#[tokio::test]
async fn an_answer_that_is_no_list_ends_one_and_makes_no_small_pages() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut ill = 5;
    let (mut pages, asked_for) = pages(names.map(|name| object(name, 1)).to_vec(), move |_| {
        ill -= 1;
        (ill >= 0).then(|| Answer::Whole(200, json!("<html>")))
    });
    let told = listed(&mut pages).await;
    assert!(told.len() == 1 && told[0].starts_with('!'), "{told:?}");
    pages.again();
    assert_eq!(listed(&mut pages).await, names);
    assert_eq!(
        *asked_for.lock().unwrap(),
        ["+8", "+4", "+2", "+1", "+1m", "+1", "1+2", "3+4", "7+8"]
    );
}
