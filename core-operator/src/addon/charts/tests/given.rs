//! Values that a Cluster takes from Secrets and ConfigMaps.

use crds::labels::{VALUES, VALUES_ALLOWED};
use k8s_openapi::ByteString;
use planning::objects::Rendering;
use serde_json::{Value, json};

use super::super::Sight;
use super::world::{Remembering, World, staged};
use super::{LIGHT, QUAY, Values, config_map};
use crate::lanes::Unrendered;

/// Stands in Secrets, and must stand nowhere else.
const CANARY: &str = "sesame-open-4711";

const NORTH: &str = "zone: north\n";

fn holder(kind: &str, name: &str, values: &str) -> Value {
    let data = match kind {
        "Secret" => json!({ "values.yaml": ByteString(values.as_bytes().to_vec()) }),
        _ => json!({ "values.yaml": values }),
    };
    json!({
        "apiVersion": "v1", "kind": kind, "data": data,
        "metadata": { "name": name, "namespace": "fleet", "labels": { VALUES: VALUES_ALLOWED } },
    })
}

fn world() -> World {
    World::new(&staged(&[("light", LIGHT, Some(NORTH)), ("quay", QUAY, None)]))
}

async fn zone(one: &mut Remembering<'_>) -> Value {
    one.settled().await;
    one.body("light", &config_map("light")).await["data"]["zone"].clone()
}

async fn length(one: &mut Remembering<'_>) -> Value {
    one.settled().await;
    one.body("quay", &config_map("quay")).await["data"]["length"].clone()
}

/// What is said of the values, once it has these words.
async fn refused(one: &mut Remembering<'_>, words: &str) -> String {
    let is_said = |message: &String| message.contains(words);
    let sight = one
        .look_until(|sight| matches!(&sight.values, Values::Failed { message } if is_said(message)))
        .await;
    assert!(sight.charts.is_empty(), "nothing is decided of it: {:?}", sight.charts);
    let Values::Failed { message } = sight.values else {
        unreachable!("they have failed");
    };
    message
}

/// What there is once a chart has the values of before, and this is said of it.
async fn held(one: &mut Remembering<'_>, chart: &str, words: &str) -> Sight {
    let is_held = |sight: &Sight| sight.held.get(chart).is_some_and(|why| why.contains(words));
    one.look_until(is_held).await
}

#[tokio::test]
async fn what_a_cluster_names_lies_over_the_templates_in_its_order_and_for_one_chart_where_it_says_so() {
    let world = world();
    world
        .management
        .apply(&holder("ConfigMap", "all", "zone: south\nlength: 8\n"));
    world
        .management
        .apply(&holder("Secret", "own", "zone: west\nlength: 9\n"));
    world.cluster_with_values_from("configmap/all");
    let mut one = Remembering::new(&world, "one").await;
    assert_eq!(
        (zone(&mut one).await, length(&mut one).await),
        (json!("south"), json!("8"))
    );
    world.cluster_with_values_from("configmap/all,light=secret/own");
    assert_eq!(
        (zone(&mut one).await, length(&mut one).await),
        (json!("west"), json!("8"))
    );
    world.cluster_with_values_from("secret/own,configmap/all");
    assert_eq!(zone(&mut one).await, "south");
    world.cluster_with_values_from("");
    assert_eq!(
        (zone(&mut one).await, length(&mut one).await),
        (json!("north"), json!("7"))
    );
}

#[tokio::test]
async fn change_of_what_a_cluster_names_is_followed_at_once_and_renders_only_what_it_changes() {
    let world = world();
    world.management.apply(&holder("Secret", "own", "zone: west\n"));
    world.cluster_with_values_from("light=secret/own");
    let mut one = Remembering::new(&world, "one").await;
    assert_eq!(zone(&mut one).await, "west");
    let before = one.renderings();
    world.management.apply(&holder("Secret", "own", "zone: east\n"));
    assert_eq!(zone(&mut one).await, "east");
    assert_eq!(one.renderings(), before + 1);
    let mut touched = holder("Secret", "own", "zone: east\n");
    touched["metadata"]["annotations"] = json!({ "a": "b" });
    world.management.apply(&touched);
    one.settled().await;
    assert_eq!(one.renderings(), before + 1, "another version, the same values");
}

#[tokio::test]
async fn what_may_not_be_taken_or_is_not_there_is_named_and_taken_by_itself_when_that_is_mended() {
    let world = world();
    world.cluster_with_values_from("secret/own");
    let mut one = Remembering::new(&world, "one").await;
    let told = refused(&mut one, "is not in the namespace").await;
    assert!(told.contains("the Secret own"), "{told}");

    let mut without = holder("Secret", "own", &format!("zone: {CANARY}\n"));
    without["metadata"]["labels"] = json!({});
    world.management.apply(&without);
    // No watch shows it.
    one.later(600);
    let told = refused(&mut one, VALUES).await;
    assert!(told.contains("the Secret own") && !told.contains(CANARY), "{told}");

    world.management.apply(&holder("Secret", "own", "zone: west\n"));
    assert_eq!(zone(&mut one).await, "west");

    let mut typed = holder("Secret", "other", "zone: east\n");
    typed["type"] = json!("cluster.x-k8s.io/secret");
    world.management.apply(&typed);
    for (named, words) in [
        ("secret/other", "Opaque"),
        ("secret/one-kubeconfig", "is not in the namespace"),
        ("secret/own:other.yaml", "has no key other.yaml"),
    ] {
        world.cluster_with_values_from(named);
        held(&mut one, "light", words).await;
        assert_eq!(zone(&mut one).await, "west", "as it was");
    }
    for (named, words) in [("csi=secret/own", "it has light, quay"), ("pod/own", "configmap/NAME")] {
        world.cluster_with_values_from(named);
        refused(&mut one, words).await;
    }
    world.cluster_with_values_from("secret/own");
    assert_eq!(zone(&mut one).await, "west");
}

#[tokio::test]
async fn what_cannot_be_taken_stops_the_charts_that_it_is_for_alone_and_they_stay_as_they_were() {
    let world = world();
    world.cluster_with_values_from("light=secret/own");
    // Who remembers nothing has nothing to go on with.
    let unmade = |sight: &Sight, words: &str| {
        let is_there = matches!(sight.charts.get("quay"), Some(Rendering::Rendered { .. }));
        let light = sight.charts.get("light");
        is_there && matches!(light, Some(Rendering::Failed { message, .. }) if message.contains(words))
    };
    let mut one = Remembering::new(&world, "one").await;
    one.look_until(|sight| unmade(sight, "the Secret own")).await;
    world.management.apply(&holder("Secret", "own", "zone: west\n"));
    let sound = one.settled().await;
    for (named, words) in [
        ("light=secret/own:other.yaml", "has no key other.yaml"),
        ("light=secret/other", "the Secret other"),
    ] {
        world.cluster_with_values_from(named);
        let sight = held(&mut one, "light", words).await;
        assert_eq!(
            (&sight.values, &sight.charts),
            (&sound.values, &sound.charts),
            "{named}"
        );
        assert_eq!(sight.held.len(), 1, "{:?}", sight.held);
    }
    world.cluster_with_values_from("light=secret/own");
    assert!(one.settled().await.held.is_empty());

    // Whoever deletes the Cluster may delete this with it.
    world.management.delete("Secret", "own");
    let sight = held(&mut one, "light", "is not in the namespace").await;
    assert_eq!((&sight.values, &sight.charts), (&sound.values, &sound.charts));
    assert_eq!(zone(&mut one).await, "west");
    let mut another = Remembering::anew(&world, "one").await;
    another.look_until(|sight| unmade(sight, "the Secret own")).await;
    world.management.apply(&holder("Secret", "own", "zone: east\n"));
    assert_eq!(zone(&mut another).await, "east");
    assert_eq!(zone(&mut one).await, "east");
}

#[tokio::test]
async fn nothing_of_a_secret_is_in_what_is_said_of_it_nor_in_what_a_chart_says_of_its_values() {
    const FAILS: &str =
        "{{- if .Values.password }}{{ fail (printf \"the password %s is bad\" .Values.password) }}{{ end }}";
    let world = World::new(&staged(&[("light", FAILS, None), ("quay", QUAY, None)]));
    for text in [CANARY, &format!("password: [{CANARY}")] {
        world.management.apply(&holder("Secret", "own", text));
        world.cluster_with_values_from("secret/own");
        let mut one = Remembering::new(&world, "one").await;
        let told = refused(&mut one, "the key values.yaml of the Secret own is no mapping").await;
        assert!(!told.contains(CANARY), "{told}");
    }
    world
        .management
        .apply(&holder("Secret", "own", &format!("password: {CANARY}\n")));
    let mut one = Remembering::new(&world, "two").await;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("light"), Some(Rendering::Failed { .. })))
        .await;
    let told = format!("{sight:?}");
    assert!(
        told.contains("the password (not shown) is bad") && !told.contains(CANARY),
        "{told}"
    );
    let Err(Unrendered::Failed(failed)) = one.bodies("light").await else {
        panic!("it fails each time");
    };
    assert!(!failed.message.contains(CANARY), "{}", failed.message);
}
