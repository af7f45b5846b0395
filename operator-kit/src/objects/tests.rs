use std::time::Duration;

use futures::StreamExt;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};

use super::*;
use crate::stub::{self, Answer, Asked, refusal};

const LABEL: &str = "example.org/part-of";

fn deployments() -> GroupVersionKind {
    GroupVersionKind::gvk("apps", "v1", "Deployment")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("apps", "Deployment", "fleet", name)
}

fn metadata(name: &str, version: u32) -> Value {
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
        "name": name, "namespace": "fleet", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(), "generation": 1,
        "labels": { LABEL: "release" },
    } })
}

fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

fn listed(version: u32, objects: &[Value]) -> Answer {
    let list = json!({
        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": version.to_string() }, "items": objects,
    });
    (200, list).into()
}

fn expired() -> Value {
    event(
        "ERROR",
        &refusal(410, "Expired", "too old resource version", &json!({})).1,
    )
}

/// Watches Deployments of a stub that gives these answers one after the other, and then a watch without events.
async fn watching(answers: Vec<Answer>) -> (ObjectWatches, mpsc::Receiver<Notice>) {
    let mut answers = answers.into_iter();
    watching_of(move |_| answers.next().unwrap_or(Answer::Watch(Vec::new()))).await
}

/// The same of a stub that answers so.
async fn watching_of(
    mut answer: impl FnMut(&Asked) -> Answer + Send + 'static,
) -> (ObjectWatches, mpsc::Receiver<Notice>) {
    let client = stub::client(move |asked| stub::discovery(asked).map_or_else(|| answer(asked), Answer::from));
    let discovery = Discovery::new(client.clone());
    let (watches, notices) = ObjectWatches::new(
        client,
        discovery,
        Marked::by_anybody(LABEL, ""),
        CancellationToken::new(),
    );
    assert!(watches.ensure(&deployments()).await.unwrap());
    (watches, notices)
}

/// The next `count` notices in short.
async fn told(notices: &mut mpsc::Receiver<Notice>, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(match notices.recv().await.unwrap() {
            Notice::Object(Changed { key, what, .. }) => format!("{what:?} {}", key.name),
            Notice::Noted { changed, by } => format!("{by} noted {:?} {}", changed.what, changed.key.name),
            Notice::Synced(kind) => format!("Synced {}", kind.kind),
            Notice::Stopped(kind) => format!("Stopped {}", kind.kind),
            Notice::Named(key) => format!("Named {}", key.name),
        });
    }
    told
}

#[tokio::test(start_paused = true)]
async fn objects_are_told_as_they_appear_change_and_vanish() {
    let (watches, mut notices) = watching(vec![
        listed(3, &[metadata("a", 1), metadata("b", 2)]),
        Answer::Watch(vec![
            event("MODIFIED", &metadata("a", 4)),
            event("DELETED", &metadata("b", 5)),
        ]),
    ])
    .await;
    assert_eq!(
        told(&mut notices, 3).await,
        ["Appeared a", "Appeared b", "Synced Deployment"]
    );
    assert!(watches.synced(&GroupKind::new("apps", "Deployment")));
    assert_eq!(told(&mut notices, 2).await, ["StatusChanged a", "Vanished b"]);
    assert_eq!(&*watches.get(&key("a")).unwrap().resource_version, "4");
    let parts: Vec<ObjectKey> = watches
        .by_part_of("release", Some("fleet"))
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(parts, [key("a")]);
}

#[tokio::test(start_paused = true)]
async fn what_went_while_the_watch_was_down_vanishes_with_the_next_list() {
    let (watches, mut notices) = watching(vec![
        listed(3, &[metadata("a", 1), metadata("b", 2)]),
        Answer::Watch(vec![expired()]),
        listed(9, &[metadata("b", 2)]),
    ])
    .await;
    assert_eq!(
        told(&mut notices, 5).await,
        [
            "Appeared a",
            "Appeared b",
            "Synced Deployment",
            "Vanished a",
            "Synced Deployment"
        ]
    );
    assert_eq!(watches.len(), 1);
}

/// Watches that have taken the first list, and wait for the second until they may go on.
async fn relisting(
    first: Answer,
    second: (u32, Vec<Value>),
) -> (ObjectWatches, mpsc::Receiver<Notice>, tokio::sync::oneshot::Sender<()>) {
    let (go_on, gone_on) = tokio::sync::oneshot::channel::<()>();
    let late = async move {
        gone_on.await.unwrap();
        let Answer::Whole(_, list) = listed(second.0, &second.1) else {
            unreachable!("a list is whole");
        };
        list
    };
    let mut answers = vec![first, Answer::Watch(vec![expired()]), Answer::Late(200, Box::pin(late))].into_iter();
    let (asks, mut asked) = mpsc::unbounded_channel();
    let client = stub::client(move |asked| {
        if let Some(answer) = stub::discovery(asked) {
            return Answer::from(answer);
        }
        // Whoever waits for it has heard enough after the third.
        let _ = asks.send(());
        answers.next().unwrap_or(Answer::Watch(Vec::new()))
    });
    let discovery = Discovery::new(client.clone());
    let (watches, notices) = ObjectWatches::new(
        client,
        discovery,
        Marked::by_anybody(LABEL, ""),
        CancellationToken::new(),
    );
    assert!(watches.ensure(&deployments()).await.unwrap());
    for _ in 0..3 {
        asked.recv().await.unwrap();
    }
    (watches, notices, go_on)
}

async fn note(watches: &ObjectWatches, name: &str, version: u32) {
    let metadata = serde_json::from_value(metadata(name, version)["metadata"].clone()).unwrap();
    watches
        .note("writer", &key(name), Seen::of(&metadata, LABEL).unwrap())
        .await;
}

#[tokio::test(start_paused = true)]
async fn of_a_version_that_the_watch_has_shown_an_answer_that_says_more_is_no_other_sight() {
    let (watches, mut notices, _) = relisting(listed(59, &[metadata("a", 50)]), (59, vec![metadata("a", 50)])).await;
    told(&mut notices, 2).await;
    let answered = |version: u32| -> ObjectMeta {
        let mut metadata = metadata("a", version)["metadata"].clone();
        metadata["annotations"] = json!({ "example.org/of-a-version-alone": "1" });
        serde_json::from_value(metadata).unwrap()
    };
    let shown = watches.get(&key("a")).unwrap();
    assert_eq!(watches.sight(&key("a"), &answered(50)), Some(shown.clone()));
    let newer = watches.sight(&key("a"), &answered(51)).unwrap();
    assert_eq!(
        (&*newer.resource_version, newer.trigger() == shown.trigger()),
        ("51", false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_overrules_what_was_known_before_it_whatever_its_version() {
    let first = listed(59, &[metadata("a", 50), metadata("b", 51)]);
    let second = (23, vec![metadata("a", 20), metadata("b", 21)]);
    let (watches, mut notices, go_on) = relisting(first, second).await;
    told(&mut notices, 3).await;
    // The store was restored, and while it is listed the answer to a write of ours comes.
    note(&watches, "b", 60).await;
    go_on.send(()).unwrap();
    assert_eq!(
        told(&mut notices, 3).await,
        ["writer noted StatusChanged b", "StatusChanged a", "Synced Deployment"]
    );
    let version_of = |name| watches.get(&key(name)).unwrap().resource_version;
    assert_eq!(&*version_of("a"), "20");
    assert_eq!(&*version_of("b"), "60", "answered while it was listed");
}

#[tokio::test(start_paused = true)]
async fn what_was_made_after_a_list_and_noted_before_its_end_is_not_forgotten_with_it() {
    let (watches, mut notices, go_on) =
        relisting(listed(59, &[metadata("a", 50)]), (65, vec![metadata("a", 50)])).await;
    told(&mut notices, 2).await;
    note(&watches, "gone", 61).await;
    note(&watches, "made", 70).await;
    go_on.send(()).unwrap();
    assert_eq!(
        told(&mut notices, 4).await,
        [
            "writer noted Appeared gone",
            "writer noted Appeared made",
            "Vanished gone",
            "Synced Deployment"
        ]
    );
    assert!(watches.get(&key("gone")).is_none());
    assert!(watches.get(&key("made")).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_noted_before_the_watch_shows_it_is_told_once_with_who_knows() {
    let (shower, shows) = futures::channel::mpsc::unbounded();
    let (watches, mut notices) = watching(vec![
        listed(3, &[metadata("a", 1), metadata("b", 2)]),
        Answer::Live(shows.boxed()),
    ])
    .await;
    told(&mut notices, 3).await;
    note(&watches, "a", 4).await;
    let before = watches.get(&key("b")).unwrap();
    watches.note_absent("reader", &key("b"), &before).await;
    note(&watches, "a", 1).await;
    for (kind, object) in [
        ("MODIFIED", metadata("a", 4)),
        ("DELETED", metadata("b", 5)),
        ("ADDED", metadata("c", 6)),
    ] {
        shower.unbounded_send(event(kind, &object)).unwrap();
    }
    assert_eq!(
        told(&mut notices, 3).await,
        ["writer noted StatusChanged a", "reader noted Vanished b", "Appeared c"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_before_it_can_be_told_is_not_noted() {
    let (watches, mut notices) = watching(vec![listed(3, &[])]).await;
    told(&mut notices, 1).await;
    for name in 0..NOTICES_WAITING {
        note(&watches, &name.to_string(), 4).await;
    }
    let given_up = tokio::time::timeout(Duration::from_secs(1), note(&watches, "late", 5)).await;
    assert!(given_up.is_err());
    assert!(watches.get(&key("late")).is_none());
    told(&mut notices, NOTICES_WAITING).await;
    note(&watches, "late", 5).await;
    assert_eq!(told(&mut notices, 1).await, ["writer noted Appeared late"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_watch_has_told_of_the_end_brings_nothing_back() {
    let (shower, shows) = futures::channel::mpsc::unbounded();
    let (watches, mut notices) = watching(vec![listed(3, &[]), Answer::Live(shows.boxed())]).await;
    told(&mut notices, 1).await;
    let show = |kind: &str, object: &Value| shower.unbounded_send(event(kind, object)).unwrap();
    show("ADDED", &metadata("a", 10));
    show("DELETED", &metadata("a", 11));
    assert_eq!(told(&mut notices, 2).await, ["Appeared a", "Vanished a"]);
    note(&watches, "a", 10).await;
    assert_eq!(watches.get(&key("a")), None);
    show("ADDED", &metadata("b", 12));
    assert_eq!(told(&mut notices, 1).await, ["Appeared b"], "nothing else was told");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_a_list_without_its_object_brings_nothing_back() {
    let (watches, mut notices, go_on) = relisting(listed(59, &[]), (65, Vec::new())).await;
    told(&mut notices, 1).await;
    go_on.send(()).unwrap();
    assert_eq!(told(&mut notices, 1).await, ["Synced Deployment"]);
    note(&watches, "gone", 61).await;
    note(&watches, "made", 66).await;
    assert_eq!(told(&mut notices, 1).await, ["writer noted Appeared made"]);
    assert_eq!(watches.get(&key("gone")), None);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_begins_anew_lowers_what_counts_as_told() {
    let (watches, mut notices, go_on) = relisting(listed(59, &[]), (23, Vec::new())).await;
    told(&mut notices, 1).await;
    go_on.send(()).unwrap();
    told(&mut notices, 1).await;
    // The store was restored.
    note(&watches, "made", 24).await;
    assert!(watches.get(&key("made")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_no_longer_served_stops_and_can_be_started_again() {
    let gone = refusal(
        404,
        "NotFound",
        "the server could not find the requested resource",
        &json!({}),
    );
    let (watches, mut notices) = watching(vec![
        listed(3, &[metadata("a", 1)]),
        Answer::Watch(vec![expired()]),
        gone.into(),
        listed(11, &[metadata("a", 10)]),
    ])
    .await;
    assert_eq!(
        told(&mut notices, 4).await,
        ["Appeared a", "Synced Deployment", "Vanished a", "Stopped Deployment"]
    );
    assert!(!watches.synced(&GroupKind::new("apps", "Deployment")));
    assert!(watches.ensure(&deployments()).await.unwrap());
    assert_eq!(told(&mut notices, 2).await, ["Appeared a", "Synced Deployment"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_no_longer_served_when_its_watch_begins_stops() {
    let gone = refusal(
        404,
        "NotFound",
        "the server could not find the requested resource",
        &json!({}),
    );
    let (_watches, mut notices) = watching(vec![listed(3, &[metadata("a", 1)]), gone.into()]).await;
    let told = tokio::time::timeout(Duration::from_mins(10), told(&mut notices, 4)).await;
    assert_eq!(
        told.expect("its end is told"),
        ["Appeared a", "Synced Deployment", "Vanished a", "Stopped Deployment"]
    );
}

#[tokio::test(start_paused = true)]
async fn of_one_namespace_only_kinds_that_have_none_are_asked_for_everywhere() {
    let (sender, mut paths) = mpsc::unbounded_channel();
    let client = stub::client(move |asked| match stub::discovery(asked) {
        Some(answer) => answer.into(),
        None if asked.parameter("watch") == "true" => Answer::Watch(Vec::new()),
        None => {
            sender.send(asked.path.clone()).unwrap();
            listed(3, &[])
        }
    });
    let discovery = Discovery::new(client.clone());
    let (watches, mut notices) = ObjectWatches::new(
        client,
        discovery,
        Marked::by_anybody(LABEL, "fleet"),
        CancellationToken::new(),
    );
    assert!(watches.ensure(&deployments()).await.unwrap());
    assert_eq!(told(&mut notices, 1).await, ["Synced Deployment"]);
    assert!(
        watches
            .ensure(&GroupVersionKind::gvk("", "v1", "Namespace"))
            .await
            .unwrap()
    );
    assert_eq!(told(&mut notices, 1).await, ["Synced Namespace"]);
    assert_eq!(
        paths.recv().await.unwrap(),
        "/apis/apps/v1/namespaces/fleet/deployments"
    );
    assert_eq!(paths.recv().await.unwrap(), "/api/v1/namespaces");
}

#[tokio::test(start_paused = true)]
async fn of_one_owner_nothing_else_is_asked_for_or_known() {
    let (sender, mut selectors) = mpsc::unbounded_channel();
    let client = stub::client(move |asked| {
        if let Some(answer) = stub::discovery(asked) {
            answer.into()
        } else {
            sender.send(asked.parameter("labelSelector").to_owned()).unwrap();
            if asked.parameter("watch") == "true" {
                Answer::Watch(Vec::new())
            } else {
                listed(3, &[metadata("a", 1)])
            }
        }
    });
    let discovery = Discovery::new(client.clone());
    let marked = Marked::by(LABEL, "release");
    let (watches, mut notices) = ObjectWatches::new(client, discovery, marked, CancellationToken::new());
    assert!(watches.ensure(&deployments()).await.unwrap());
    assert_eq!(told(&mut notices, 2).await, ["Appeared a", "Synced Deployment"]);
    for _ in ["list", "watch"] {
        assert_eq!(selectors.recv().await.unwrap(), "example.org%2Fpart-of%3Drelease");
    }
    let mut others = metadata("b", 4);
    let is_shown = |object: &Value| {
        let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
        watches.sight(&key("a"), &metadata).is_some()
    };
    assert!(is_shown(&others));
    others["metadata"]["labels"][LABEL] = json!("another");
    assert!(!is_shown(&others), "no watch would ever tell that it is gone");
    assert!(!watches.shows_others());
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_not_watched() {
    let (watches, _notices) = watching(Vec::new()).await;
    assert!(
        !watches
            .ensure(&GroupVersionKind::gvk("example.org", "v1", "Missing"))
            .await
            .unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn why_a_kind_was_not_listed_is_known() {
    let (refuse, mut refused) = tokio::sync::watch::channel(());
    let client = stub::client(move |asked| {
        if let Some(answer) = stub::discovery(asked) {
            return Answer::from(answer);
        }
        refuse.send_replace(());
        refusal(403, "Forbidden", "nobody may list them", &json!({})).into()
    });
    let discovery = Discovery::new(client.clone());
    let (watches, _notices) = ObjectWatches::new(
        client,
        discovery,
        Marked::by_anybody(LABEL, ""),
        CancellationToken::new(),
    );
    assert!(watches.ensure(&deployments()).await.unwrap());
    let kind = group_kind(&deployments());
    assert_eq!(watches.trouble(&kind), None);
    // The second time it has heard of the first.
    for _ in 0..2 {
        refused.changed().await.unwrap();
    }
    let trouble = watches.trouble(&kind).unwrap();
    assert_eq!((trouble.words(), trouble.forbidden), ("nobody may list them", true));
}

/// Follows Deployments where no more than three objects are remembered.
async fn watching_three(
    mut answer: impl FnMut(&Asked) -> Answer + Send + 'static,
) -> (ObjectWatches, mpsc::Receiver<Notice>) {
    let client = stub::client(move |asked| stub::discovery(asked).map_or_else(|| answer(asked), Answer::from));
    let discovery = Discovery::new(client.clone());
    let budget = Budget {
        watches: 1,
        objects: 3,
        list_pause: Duration::from_mins(10),
        matters: |_| true,
        count: Gauge::default(),
    };
    let marked = Marked::by(LABEL, "release");
    let (watches, notices) = ObjectWatches::within(budget, client, discovery, marked, CancellationToken::new());
    assert!(watches.ensure(&deployments()).await.unwrap());
    (watches, notices)
}

#[tokio::test(start_paused = true)]
async fn which_kinds_are_only_listed_is_known_when_their_watch_went_to_another() {
    let client = stub::client(move |asked| match stub::discovery(asked) {
        Some(answer) => answer.into(),
        None if asked.parameter("watch") == "true" => Answer::Watch(Vec::new()),
        None => listed(3, &[]),
    });
    let discovery = Discovery::new(client.clone());
    let budget = Budget {
        watches: 1,
        objects: 3,
        list_pause: Duration::from_mins(10),
        matters: |kind| kind.kind == "Deployment",
        count: Gauge::default(),
    };
    let marked = Marked::by(LABEL, "release");
    let (watches, mut notices) = ObjectWatches::within(budget, client, discovery, marked, CancellationToken::new());
    let (lesser, greater) = (GroupVersionKind::gvk("", "v1", "Namespace"), deployments());
    let only_listed = || [&lesser, &greater].map(|of| watches.only_lists(&group_kind(of)));
    assert_eq!(only_listed(), [false, false], "neither is followed");
    assert!(watches.ensure(&lesser).await.unwrap());
    assert_eq!(told(&mut notices, 1).await, ["Synced Namespace"]);
    assert_eq!(only_listed(), [false, false]);
    assert!(watches.ensure(&greater).await.unwrap());
    assert_eq!(only_listed(), [true, false]);
}

#[tokio::test(start_paused = true)]
async fn of_a_list_without_end_so_much_is_remembered_and_the_rest_is_told() {
    let mut lists = 0;
    let kind = group_kind(&deployments());
    let (watches, mut notices) = watching_three(move |asked| {
        if asked.parameter("watch") == "true" {
            return Answer::Watch(Vec::new());
        }
        lists += 1;
        let number: u32 = asked.parameter("continue").parse().unwrap_or(0);
        assert!(number < 4, "it is asked for more than is remembered");
        let mut page = json!({ "metadata": { "resourceVersion": "9" }, "items": [metadata(&number.to_string(), 1)] });
        // In the second list there is an end.
        if lists <= 4 {
            page["metadata"]["continue"] = json!((number + 1).to_string());
        }
        (200, page).into()
    })
    .await;
    assert_eq!(told(&mut notices, 3).await, ["Appeared 0", "Appeared 1", "Appeared 2"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let words =
        "the API server shows more than 3 objects as those of one owner; look what made them, and whether it is one";
    let trouble = watches.trouble(&kind).expect("there is one");
    assert_eq!((trouble.words(), trouble.forbidden), (words, false));
    assert!(!watches.synced(&kind) && watches.len() == 3);
    assert_eq!(
        told(&mut notices, 3).await[2],
        "Synced Deployment",
        "it is tried again after a pause"
    );
    assert!(watches.synced(&kind) && watches.trouble(&kind).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_list_counts_as_well() {
    let names = ["a", "b", "c", "d"];
    let events = names.map(|name| event("ADDED", &metadata(name, 4))).to_vec();
    let (watches, mut notices) = watching_three(move |asked| match asked.parameter("watch") {
        "true" => Answer::Watch(events.clone()),
        _ => listed(3, &[]),
    })
    .await;
    told(&mut notices, 4).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let kind = group_kind(&deployments());
    assert!(!watches.synced(&kind) && watches.trouble(&kind).is_some() && watches.len() == 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_api_server_would_have_is_not_remembered() {
    let long = "x".repeat(5_000);
    let mut many_owners = metadata("a", 1);
    let owner = json!({ "apiVersion": "v1", "kind": "A", "name": "a", "uid": "x".repeat(36) });
    many_owners["metadata"]["ownerReferences"] = Value::from(vec![owner; 200]);
    for object in [metadata(&long, 1), many_owners] {
        let (watches, _notices) = watching_three(move |_| listed(3, std::slice::from_ref(&object))).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let trouble = watches.trouble(&group_kind(&deployments())).expect("there is one");
        assert!(trouble.words().contains("more than 4096 bytes"), "{trouble:?}");
        assert!(watches.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_although_it_is_of_others_is_not_remembered() {
    let mut others = metadata("b", 2);
    others["metadata"]["labels"] = json!({ LABEL: "another" });
    let (watches, mut notices) = watching_three(move |asked| match asked.parameter("watch") {
        "true" => Answer::Watch(Vec::new()),
        _ => listed(3, &[metadata("a", 1), others.clone()]),
    })
    .await;
    assert_eq!(told(&mut notices, 2).await, ["Appeared a", "Synced Deployment"]);
    assert_eq!(watches.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_needs_ends_and_can_be_started_again() {
    let (watches, mut notices) = watching(vec![
        listed(3, &[metadata("a", 1), metadata("b", 1)]),
        Answer::Watch(Vec::new()),
        listed(9, &[metadata("b", 1)]),
    ])
    .await;
    let kind = group_kind(&deployments());
    told(&mut notices, 3).await;
    watches.keep(|of, asked| *of == kind && asked.elapsed() < Duration::from_mins(1));
    assert!(watches.synced(&kind), "it was asked for a moment ago");

    watches.keep(|_, _| false);
    assert!(!watches.synced(&kind));
    assert!(watches.is_empty());

    assert!(watches.ensure(&deployments()).await.unwrap());
    assert_eq!(told(&mut notices, 2).await, ["Appeared b", "Synced Deployment"]);
    assert_eq!(watches.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_asked_for_now_and_then_is_as_new_as_the_last_time() {
    const IDLE: Duration = Duration::from_mins(10);
    let (watches, mut notices) = watching(vec![listed(3, &[metadata("a", 1)])]).await;
    told(&mut notices, 2).await;
    for _ in 0..3 {
        tokio::time::sleep(IDLE / 2).await;
        assert!(watches.ensure(&deployments()).await.unwrap());
    }
    watches.keep(|_, asked| asked.elapsed() < IDLE);
    assert!(watches.synced(&group_kind(&deployments())));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_any_more_has_not_vanished() {
    let mut unreadable = metadata("b", 4);
    unreadable["metadata"]["labels"] = json!(7);
    let mut watches = 0;
    let (watches, mut notices) = watching_of(move |asked| {
        if asked.parameter("watch") == "true" {
            watches += 1;
            return Answer::Watch(if watches == 1 { vec![expired()] } else { Vec::new() });
        }
        let b = if watches == 0 {
            metadata("b", 2)
        } else {
            unreadable.clone()
        };
        stub::page(asked, &[metadata("a", 1), b]).into()
    })
    .await;
    assert_eq!(
        told(&mut notices, 4).await,
        ["Appeared a", "Appeared b", "Synced Deployment", "Synced Deployment"]
    );
    assert!(watches.get(&key("b")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_fields_are_nested_deeper_than_anybody_reads_is_seen() {
    let mut deep = metadata("a", 1);
    let fields = (0..500).fold(json!({}), |inner, _| json!({ "f:a": inner }));
    deep["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "fieldsV1": fields }]);
    let (_watches, mut notices) = watching(vec![
        listed(3, &[deep, metadata("b", 2)]),
        Answer::Watch(vec![event("DELETED", &metadata("b", 5))]),
    ])
    .await;
    assert_eq!(
        told(&mut notices, 4).await,
        ["Appeared a", "Appeared b", "Synced Deployment", "Vanished b"]
    );
}
