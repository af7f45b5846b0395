//! Charts of clusters before API servers in memory, with releases of our own.

mod given;
pub(super) mod world;

use std::collections::BTreeMap;

use planning::object_key::ObjectKey;
use planning::objects::Rendering;
use serde_json::{Value, json};

use self::world::{CLUSTER, Remembering, World, class, staged};
use super::bundle::MAX_TEMPLATES;
use super::evaluation::MAX_VALUES;
use super::memo::{SECRET_TYPE, secret_name};
use crate::lanes::{Failed, Unrendered};
use planning::addon::Values;

/// A chart whose values are those of its cluster.
const LIGHT: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: light}\ndata: {zone: {{ .Values.zone | quote }}}\n";

/// A chart that looks at nothing of the cluster.
const QUAY: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: quay}\ndata: {length: \"{{ .Values.length }}\"}\n";

/// A chart that draws a password.
const LOGIN: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: {{ randAlphaNum 20 | quote }}}\n";

/// A chart that looks something up.
const PILOT: &str = "{{- $chart := lookup \"v1\" \"ConfigMap\" \"kube-system\" \"chart\" }}\napiVersion: v1\nkind: ConfigMap\n\
    metadata: {name: pilot}\ndata: {depth: {{ dig \"data\" \"depth\" \"unknown\" $chart | quote }}}\n";

/// A chart that asks for the version of Kubernetes.
const TIDE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tide}\n\
    data: {kubernetes: {{ .Capabilities.KubeVersion.Version | quote }}}\n";

/// A chart that computes for ever.
const BOMB: &str = "{{- define \"a\" }}{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}{{ end }}\
    {{ include \"a\" . }}{{ include \"a\" . }}";

const ZONE: &str = "zone: {{ index .Cluster.metadata.labels \"zone\" | quote }}\n";

fn config_map(name: &str) -> ObjectKey {
    ObjectKey::new("", "ConfigMap", "kube-system", name)
}

#[test]
fn the_page_of_values_tells_the_limits_as_they_are() {
    let page = include_str!("../../../../docs/reference/values.md");
    for row in [
        format!("| {MAX_TEMPLATES} bytes | `{MAX_TEMPLATES} are allowed: take texts out of them` |"),
        format!("| {MAX_VALUES} bytes of JSON | `more than {MAX_VALUES} bytes together: shorten them` |"),
    ] {
        assert!(page.contains(&row), "{row}");
    }
}

#[tokio::test]
async fn only_charts_whose_values_have_changed_are_rendered_again() {
    let world = World::new(&staged(&[("light", LIGHT, Some(ZONE)), ("quay", QUAY, None)]));
    world.cluster(&json!({ "zone": "north" }));
    let mut one = Remembering::new(&world, "one").await;
    let first = one.settled().await;
    assert_eq!(one.renderings(), 2);
    let body = one.body("light", &config_map("light")).await;
    assert_eq!(body["data"]["zone"], "north");
    assert_eq!(body["metadata"]["annotations"]["clusterstack.x-k8s.io/stage"], "light");

    let before = one.renderings();
    assert_eq!(one.settled().await.charts, first.charts);
    world.cluster(&json!({ "zone": "south" }));
    let second = one.settled().await;
    assert_eq!(one.renderings(), before + 1);
    assert_ne!(second.charts["light"], first.charts["light"]);
    assert_eq!(second.charts["quay"], first.charts["quay"]);
    assert_ne!(second.values, first.values);

    world.cluster(&json!({ "zone": "south", "other": "label" }));
    assert_eq!(one.settled().await.values, second.values);
    assert_eq!(one.renderings(), before + 1, "other objects, the same values");
}

#[tokio::test]
async fn equal_clusters_share_one_rendering_per_distinct_values() {
    const CLUSTERS: usize = 200;
    let world = World::new(&staged(&[("light", LIGHT, Some(ZONE)), ("quay", QUAY, None)]));
    world.cluster(&json!({ "zone": "north" }));
    let mut ready = 0;
    let mut rendered = 0;
    for number in 0..CLUSTERS {
        if number == CLUSTERS / 2 {
            world.cluster(&json!({ "zone": "south" }));
        }
        let mut one = Remembering::new(&world, &format!("number-{number}")).await;
        let sight = one.settled().await;
        ready += usize::from(sight.charts.values().all(|chart| chart.intents().is_some()));
        rendered = one.renderings();
    }
    assert_eq!(ready, CLUSTERS);
    assert_eq!(rendered, 3, "two of the light, one of the quay");
}

#[tokio::test]
async fn what_a_chart_draws_is_written_before_it_is_used_and_is_the_same_after_a_restart() {
    let world = World::new(&staged(&[("login", LOGIN, None), ("quay", QUAY, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let key = ObjectKey::new("", "Secret", "kube-system", "login");
    let sight = one.settled().await;
    let Some((None, Some(drawn))) = sight.memo else {
        panic!("something was drawn and nothing is stored: {:?}", sight.memo);
    };
    assert_eq!(drawn.entries, 1);
    let refused = one.bodies("login").await.expect_err("nothing is made of it yet");
    assert_eq!(
        refused,
        Unrendered::Failed(Failed::for_now("what the chart drew at random is to be recorded first"))
    );
    one.record().await.expect("a Secret");
    let secret = world.management.find("Secret", &secret_name("cluster-addon-one"));
    assert_eq!(secret["type"], SECRET_TYPE);
    assert_eq!(secret["metadata"]["labels"]["clusterctl.cluster.x-k8s.io/move"], "");
    let owner = &secret["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Cluster"), &json!(CLUSTER)));
    let password = one.body("login", &key).await["stringData"]["password"].clone();
    assert_eq!(password.as_str().map(str::len), Some(20));
    let intents = one.settled().await.charts["login"].clone();

    // Another process, which has rendered nothing.
    let mut another = Remembering::anew(&world, "one").await;
    let sight = another.settled().await;
    assert_eq!(sight.memo, Some((Some(drawn.clone()), Some(drawn))));
    assert_eq!(sight.charts["login"], intents);
    assert_eq!(another.body("login", &key).await["stringData"]["password"], password);

    // Another cluster.
    let mut other = Remembering::new(&world, "other").await;
    other.settled().await;
    other.record().await.expect("a Secret");
    assert_ne!(other.body("login", &key).await["stringData"]["password"], password);
}

#[tokio::test]
async fn memo_that_is_lost_is_noticed_and_one_that_somebody_else_wrote_is_not_overwritten() {
    let world = World::new(&staged(&[("login", LOGIN, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let drawn = one.settled().await.memo.and_then(|(_, drawn)| drawn);
    one.record().await.expect("a Secret");

    let name = secret_name("cluster-addon-one");
    world.management.delete("Secret", &name);
    let mut another = Remembering::anew(&world, "one").await;
    let (stored, drawn_anew) = another.settled().await.memo.expect("it was read");
    assert_eq!(stored, None);
    assert_ne!(drawn_anew, drawn, "another password");

    // It has a Secret by now, which the first process made.
    one.memory.try_again();
    one.settled().await;
    one.record().await.expect("what it still knew");
    let refused = another.record().await.expect_err("it is another one's");
    assert!(refused.to_string().contains("somebody else wrote"), "{refused}");
    let (stored, now) = another.settled().await.memo.expect("it was read");
    assert_eq!((&stored, &now), (&drawn, &drawn));
}

#[tokio::test]
async fn memo_that_somebody_deletes_is_missed_at_a_later_look_and_written_back_as_it_was() {
    let world = World::new(&staged(&[("login", LOGIN, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let drawn = one.settled().await.memo.and_then(|(_, drawn)| drawn);
    one.record().await.expect("a Secret");
    let name = secret_name("cluster-addon-one");
    let data = || world.management.find("Secret", &name)["data"].clone();
    let before = data();

    one.later(60);
    assert_eq!(
        one.settled().await.memo,
        Some((drawn.clone(), drawn.clone())),
        "it is there"
    );
    world.management.delete("Secret", &name);
    let calls = world.management.calls_about("Secret", &name);
    one.settled().await;
    assert_eq!(
        world.management.calls_about("Secret", &name),
        calls,
        "not at every look"
    );
    one.later(60);
    assert_eq!(one.settled().await.memo, Some((None, drawn.clone())));
    one.record().await.expect("what it still knew");
    assert_eq!(data(), before);
    assert_eq!(one.settled().await.memo, Some((drawn.clone(), drawn)));
}

#[tokio::test]
async fn secret_of_somebody_else_is_neither_read_nor_overwritten() {
    let of_another_cluster =
        json!([{ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": CLUSTER, "uid": "of another" }]);
    for (secret_type, owners, words) in [
        ("Opaque", json!([]), "is not of the type"),
        (SECRET_TYPE, of_another_cluster, "that of another Cluster of this name"),
    ] {
        let world = World::new(&staged(&[("login", LOGIN, None)]));
        world.cluster(&json!({}));
        let name = secret_name("cluster-addon-one");
        world.management.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": secret_type,
            "metadata": { "name": name, "namespace": "fleet", "ownerReferences": owners }, "data": { "memo": "e30=" },
        }));
        let mut one = Remembering::new(&world, "one").await;
        let sight = one.look_until(|sight| !sight.charts.is_empty()).await;
        let Rendering::Failed { message, .. } = &sight.charts["login"] else {
            panic!("{:?}", sight.charts);
        };
        assert!(message.contains(words), "{message}");
        assert!(one.record().await.is_err());
        assert_eq!(world.management.find("Secret", &name)["data"]["memo"], "e30=");
    }
}

#[tokio::test]
async fn what_nobody_asks_for_any_more_leaves_the_memo_when_the_target_is_reached() {
    const FEW: &str = "few: {{ hasKey .Cluster.metadata.labels \"few\" }}\n";
    let second = LOGIN.replace("login", "second");
    let less = format!("{LOGIN}---\n{{{{- if not .Values.few }}}}\n{second}{{{{- end }}}}\n");
    let world = World::new(&staged(&[("login", &less, Some(FEW))]));
    world.cluster(&json!({ "many": "" }));
    let mut one = Remembering::new(&world, "one").await;
    one.settled().await;
    one.record().await.expect("a Secret");
    let entries = |sight: &super::Sight| sight.memo.clone().and_then(|(_, drawn)| drawn).map(|memo| memo.entries);
    world.cluster(&json!({ "few": "" }));
    assert_eq!(entries(&one.settled().await), Some(2), "somebody may go back");
    one.settle();
    assert_eq!(entries(&one.settled().await), Some(1));
    one.record().await.expect("it is written");
}

/// What [`PILOT`] looks up.
fn chart(depth: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "chart", "namespace": "kube-system" },
        "data": { "depth": depth },
    })
}

#[tokio::test]
async fn objects_follow_what_their_chart_looks_up_in_the_cluster() {
    let world = World::new(&staged(&[("pilot", PILOT, None), ("quay", QUAY, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    one.settled().await;
    assert_eq!(
        one.body("pilot", &config_map("pilot")).await["data"]["depth"],
        "unknown"
    );

    world.workload.apply(&chart("nine"));
    let before = one.settled().await.charts["pilot"].clone();
    one.later(60);
    let after = one.settled().await.charts["pilot"].clone();
    assert_ne!(after, before);
    assert_eq!(one.body("pilot", &config_map("pilot")).await["data"]["depth"], "nine");
    let rendered = one.renderings();
    one.later(60);
    assert_eq!(one.settled().await.charts["pilot"], after);
    assert_eq!(one.renderings(), rendered, "it is as it was");
}

/// What a template makes of values may be a name, and no other part of an address.
#[tokio::test]
async fn what_a_chart_looks_up_under_a_name_that_no_object_has_is_asked_of_nobody_and_is_not_there() {
    for name in ["chart?pretty=true", "../configmaps/chart"] {
        let pilot = PILOT.replace("\"chart\"", &format!("{name:?}"));
        let world = World::new(&staged(&[("pilot", pilot.as_str(), None)]));
        world.cluster(&json!({}));
        world.workload.apply(&chart("nine"));
        let mut one = Remembering::new(&world, "one").await;
        one.settled().await;
        let body = one.body("pilot", &config_map("pilot")).await;
        assert_eq!(body["data"]["depth"], "unknown", "{name}");
        let asked = ["chart", ".."].map(|name| world.workload.calls_about("ConfigMap", name));
        assert_eq!(asked, [0, 0], "{name}");
    }
}

#[tokio::test]
async fn a_chart_is_rendered_again_for_another_version_of_kubernetes_though_nothing_else_has_changed() {
    let world = World::new(&staged(&[("tide", TIDE, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let before = one.settled().await;
    let body = one.body("tide", &config_map("tide")).await;
    assert_eq!(body["data"]["kubernetes"], "v1.34.0");
    one.for_kubernetes("v1.34.1").await;
    let after = one.settled().await;
    assert_eq!(after.values, before.values);
    assert_ne!(after.charts, before.charts);
    let body = one.body("tide", &config_map("tide")).await;
    assert_eq!(body["data"]["kubernetes"], "v1.34.1");
}

#[tokio::test]
async fn chart_that_looks_something_up_waits_until_the_cluster_can_be_reached_and_others_are_rendered_before() {
    let world = World::new(&staged(&[("pilot", PILOT, None), ("quay", QUAY, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    one.is_reachable = false;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("quay"), Some(Rendering::NotRendered)))
        .await;
    assert!(
        matches!(sight.charts["pilot"], Rendering::Awaited { .. }),
        "{:?}",
        sight.charts
    );
    let rendered = one.renderings();
    one.is_reachable = true;
    one.settled().await;
    assert_eq!(one.renderings(), rendered + 1, "the one that waited");
}

#[tokio::test]
async fn hostile_chart_fails_its_own_stage_alone() {
    let world = World::new(&staged(&[("bomb", BOMB, None), ("quay", QUAY, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("bomb"), Some(Rendering::Failed { .. })))
        .await;
    let sight_of_quay = sight.charts["quay"].intents();
    assert!(sight_of_quay.is_some(), "{:?}", sight.charts);
    let Rendering::Failed { message, .. } = &sight.charts["bomb"] else {
        unreachable!("it has failed");
    };
    assert!(message.contains("templates make more than"), "{message}");
}

#[tokio::test]
async fn a_chart_that_looks_up_too_much_is_told_and_nothing_more_is_asked_for() {
    let look_up = |name: &str| format!("{{{{- $_ := lookup \"v1\" \"ConfigMap\" \"kube-system\" {name:?} }}}}\n");
    let greedy: String = ["a", "b", "c", "d"].map(look_up).concat();
    let world = World::new(&staged(&[("greedy", &greedy, None)]));
    world.cluster(&json!({}));
    for name in ["a", "b", "c", "d"] {
        world.workload.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "kube-system" },
            "data": { "text": "x".repeat(600 << 10) },
        }));
    }
    let mut one = Remembering::new(&world, "one").await;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("greedy"), Some(Rendering::Failed { .. })))
        .await;
    let Rendering::Failed { message, transient } = &sight.charts["greedy"] else {
        unreachable!("it has failed");
    };
    assert_eq!(
        message,
        "the chart looks up more than 1048576 bytes of objects: look up less"
    );
    assert!(transient.is_none(), "it is so for good");
    let asked = ["a", "b", "c", "d"].map(|name| world.workload.calls_about("ConfigMap", name));
    assert_eq!(asked[2..], [0, 0], "{asked:?}");
}

#[tokio::test]
async fn what_a_chart_says_that_looked_up_a_secret_is_told_without_its_words() {
    const TELLER: &str = "{{- $secret := lookup \"v1\" \"Secret\" \"kube-system\" \"login\" }}\n\
        {{- if $secret }}{{ fail ($secret.data.password | b64dec | upper) }}{{ end }}\n";
    let world = World::new(&staged(&[("teller", TELLER, None)]));
    world.cluster(&json!({}));
    world.workload.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login", "namespace": "kube-system" },
        "data": { "password": "c2FsYW1pcw==" },
    }));
    let mut one = Remembering::new(&world, "one").await;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("teller"), Some(Rendering::Failed { .. })))
        .await;
    let Rendering::Failed { message, .. } = &sight.charts["teller"] else {
        unreachable!("it has failed");
    };
    assert!(!message.contains("SALAMIS"), "{message}");
    assert!(
        message.contains("line 2; what is wrong there is not told"),
        "it says where: {message}"
    );
}

#[tokio::test]
async fn what_api_servers_say_to_what_a_chart_made_of_a_secret_is_told_without_that() {
    const COPY: &str = "{{- $secret := lookup \"v1\" \"Secret\" \"kube-system\" \"login\" }}\napiVersion: v1\nkind: ConfigMap\n\
        metadata: {name: login, namespace: kube-system}\ndata: {login: {{ $secret.data.password | b64dec | trim | quote }}}\n";
    let world = World::new(&staged(&[("copy", COPY, None)]));
    world.cluster(&json!({}));
    world.workload.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login", "namespace": "kube-system" },
        "data": { "password": "c2FsYW1pcwo=" },
    }));
    let mut one = Remembering::new(&world, "one").await;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("copy"), Some(Rendering::Rendered { .. })))
        .await;
    assert_eq!(
        sight.hidden.without("denied: data.login is \"salamis\""),
        "denied: data.login is \"(not shown)\""
    );
}

#[tokio::test]
async fn what_a_chart_says_is_told_without_what_was_drawn_for_its_cluster() {
    const TELLER: &str = "{{- $password := randAlphaNum 20 }}{{- if eq .Values.zone \"south\" }}\n\
        {{- fail (printf \"the password is %s\" $password) }}{{ end }}\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\n\
        stringData: {password: {{ $password | quote }}}\n";
    let world = World::new(&staged(&[("teller", TELLER, Some(ZONE))]));
    world.cluster(&json!({ "zone": "north" }));
    let mut one = Remembering::new(&world, "one").await;
    one.settled().await;
    one.record().await.expect("a Secret");
    let key = ObjectKey::new("", "Secret", "kube-system", "login");
    let password = one.body("teller", &key).await["stringData"]["password"].clone();
    let password = password.as_str().expect("a password");
    world.cluster(&json!({ "zone": "south" }));
    // Whoever drew it, and whoever has only read it.
    for mut one in [one, Remembering::anew(&world, "one").await] {
        let sight = one
            .look_until(|sight| matches!(sight.charts.get("teller"), Some(Rendering::Failed { .. })))
            .await;
        let Rendering::Failed { message, .. } = &sight.charts["teller"] else {
            unreachable!("it has failed");
        };
        assert!(message.contains("the password is (not shown)"), "{message}");
        // What API servers and conditions say is told without it, too.
        assert_eq!(sight.hidden.without(&format!("so {password} is")), "so (not shown) is");
        let refused = one.bodies("teller").await.expect_err("it cannot be rendered");
        assert!(!format!("{refused:?}").contains(password), "{refused:?}");
    }
}

#[tokio::test]
async fn template_that_looks_at_the_world_gives_no_values_and_says_where() {
    let world = World::new(&staged(&[("light", LIGHT, Some("zone: {{ env \"HOME\" }}\n"))]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let sight = one.look_until(|sight| sight.values != Values::Awaited).await;
    let Values::Failed { message } = &sight.values else {
        panic!("{:?}", sight.values);
    };
    assert!(
        message.contains("light/overwrite.yaml") && message.contains("env"),
        "{message}"
    );
    assert_eq!(sight.charts, BTreeMap::new());
}

#[tokio::test]
async fn values_of_two_charts_that_are_too_long_together_are_refused_though_either_may_have_its_own() {
    let long = Some("zone: {{ repeat 600000 \"x\" }}\n");
    let world = World::new(&staged(&[("quay", QUAY, long)]));
    world.cluster(&json!({}));
    Remembering::new(&world, "one").await.settled().await;

    let world = World::new(&staged(&[("light", LIGHT, long), ("quay", QUAY, long)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let sight = one.look_until(|sight| sight.values != Values::Awaited).await;
    let Values::Failed { message } = &sight.values else {
        panic!("they are there: {:?}", sight.charts.keys());
    };
    let words = format!("more than {MAX_VALUES} bytes together");
    assert!(message.contains(&words), "{message}");
    assert_eq!(sight.charts, BTreeMap::new());
}

#[tokio::test]
async fn values_that_cannot_be_made_fail_the_stage_of_their_chart_alone() {
    let wrong = "zone: {{ env \"HOME\" }}\n";
    let world = World::new(&staged(&[("light", LIGHT, Some(wrong)), ("quay", QUAY, None)]));
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let sight = one
        .look_until(|sight| matches!(sight.charts.get("quay"), Some(Rendering::Rendered { .. })))
        .await;
    assert!(matches!(sight.values, Values::Known { .. }), "{:?}", sight.values);
    let Rendering::Failed { message, transient } = &sight.charts["light"] else {
        panic!("{:?}", sight.charts);
    };
    assert!(
        message.contains("light/overwrite.yaml") && message.contains("env"),
        "{message}"
    );
    assert!(transient.is_none(), "it is so for good");
}

/// Whoever has changed the Cluster is told why nothing comes of it; the network is put right meanwhile all the same.
#[tokio::test]
async fn a_chart_stays_as_it_is_where_other_values_cannot_be_made_for_as_long_as_somebody_remembers() {
    const PICKY: &str = "{{ $zone := index .Cluster.metadata.labels \"zone\" }}\
        {{ if eq $zone \"nowhere\" }}{{ fail \"no such zone\" }}{{ end }}zone: {{ $zone | quote }}\n";
    let world = World::new(&staged(&[("light", LIGHT, Some(PICKY)), ("quay", QUAY, None)]));
    world.cluster(&json!({ "zone": "north" }));
    let mut one = Remembering::new(&world, "one").await;
    let first = one.settled().await;
    world.cluster(&json!({ "zone": "nowhere" }));
    let held = one.look_until(|sight| !sight.held.is_empty()).await;
    assert!(held.held["light"].contains("no such zone"), "{:?}", held.held);
    assert_eq!((&held.values, &held.charts), (&first.values, &first.charts));
    let body = one.body("light", &config_map("light")).await;
    assert_eq!(body["data"]["zone"], "north");

    // Another process does not know what they were.
    let mut another = Remembering::anew(&world, "one").await;
    let sight = another
        .look_until(|sight| matches!(sight.charts.get("quay"), Some(Rendering::Rendered { .. })))
        .await;
    assert!(
        matches!(sight.charts["light"], Rendering::Failed { .. }),
        "{:?}",
        sight.charts
    );

    world.cluster(&json!({ "zone": "south" }));
    let mended = one.look_until(|sight| sight.held.is_empty()).await;
    assert_ne!(mended.values, first.values);
    one.settled().await;
    assert_eq!(one.body("light", &config_map("light")).await["data"]["zone"], "south");
}

#[tokio::test]
async fn values_get_the_cluster_in_the_version_that_is_served_and_a_word_where_that_is_another() {
    let mut stack = staged(&[("light", LIGHT, Some("zone: {{ .Cluster.apiVersion }}\n"))]);
    let world = World::new(&stack);
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    assert_eq!(one.settled().await.note, None);
    assert_eq!(
        one.body("light", &config_map("light")).await["data"]["zone"],
        "cluster.x-k8s.io/v1beta1"
    );

    stack[1].1 = format!("clusterApiVersion: v1beta2\n{}", stack[1].1);
    let world = World::new(&stack);
    world.cluster(&json!({}));
    let mut one = Remembering::new(&world, "one").await;
    let note = one.settled().await.note.expect("a word");
    assert!(note.contains("v1beta2") && note.contains("v1beta1"), "{note}");
}

#[tokio::test]
async fn values_are_made_of_all_three_objects_and_wait_for_those_that_are_not_there() {
    const ALL: &str =
        "zone: \"{{ .Cluster.metadata.name }} {{ .ControlPlane.spec.version }} {{ .InfraCluster.spec.region }}\"\n";
    let world = World::new(&staged(&[("light", LIGHT, Some(ALL))]));
    let mut cluster = class(&json!({}));
    cluster["spec"]["controlPlaneRef"] =
        json!({ "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "QuayControlPlane", "name": "a" });
    cluster["spec"]["infrastructureRef"] =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "QuayCluster", "name": "b" });
    world.management.apply(&cluster);
    let mut one = Remembering::new(&world, "one").await;
    let sight = one.look_until(|sight| sight.values != Values::Awaited).await;
    assert!(
        matches!(&sight.values, Values::Failed { message } if message.contains("is not there")),
        "{:?}",
        sight.values
    );

    for (group, kind, name, spec) in [
        ("controlplane", "QuayControlPlane", "a", json!({ "version": "v1.34.0" })),
        ("infrastructure", "QuayCluster", "b", json!({ "region": "north" })),
    ] {
        world.management.apply(&json!({
            "apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind,
            "metadata": { "name": name, "namespace": "fleet" }, "spec": spec,
        }));
    }
    one.later(2);
    one.settled().await;
    let zone = one.body("light", &config_map("light")).await["data"]["zone"].clone();
    assert_eq!(zone, format!("{CLUSTER} v1.34.0 north"));
}

#[tokio::test]
async fn stack_of_two_stages_renders_with_its_crds_as_the_go_operator_has_it() {
    let world = World::of_folder("shim-quay/v1");
    let mut cluster = class(&json!({}));
    cluster["spec"]["clusterNetwork"] = json!({ "pods": { "cidrBlocks": ["10.1.0.0/16"] } });
    cluster["spec"]["controlPlaneEndpoint"] = json!({ "host": "quay.example.com", "port": 6443 });
    world.management.apply(&cluster);
    let mut one = Remembering::new(&world, "one").await;
    let sight = one.settled().await;
    let names = |chart: &str| -> Vec<String> {
        let intents = sight.charts[chart].intents().expect("it was rendered");
        intents.keys().map(ToString::to_string).collect()
    };
    let network = names("network");
    assert!(
        network.iter().any(|key| key.contains("CustomResourceDefinition")),
        "{network:?}"
    );
    assert!(
        names("lighthouse")
            .iter()
            .any(|key| key.contains("quay/cluster-addon-lighthouse")),
        "{:?}",
        names("lighthouse")
    );
    let key = ObjectKey::new("apps", "Deployment", "kube-system", "cluster-addon-network");
    let body: Value = one.body("network", &key).await;
    assert_eq!(body["metadata"]["labels"]["clusterstack.x-k8s.io/instance"], "owned");
    assert_eq!(
        body["spec"]["template"]["metadata"]["labels"]["clusterstack.x-k8s.io/instance"],
        "owned"
    );
    assert!(body["spec"]["template"]["metadata"]["annotations"].is_null());
}
