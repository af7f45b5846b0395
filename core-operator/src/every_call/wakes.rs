//! What wakes the drivers of stacks and releases: what concerns them, and no storm of events about objects of others.

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::time::sleep;

use super::*;

/// All reconciles so far.
fn reconciles(registry: &Registry) -> u64 {
    let mut page = String::new();
    text::encode(&mut page, registry).expect("a page");
    let lines = page
        .lines()
        .filter(|line| line.starts_with("stackwright_reconciles_total"));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// One more of each kind of object that concerns neither the stack nor its release.
fn foreign(server: &Server, number: u32) {
    let name = format!("others-{number}");
    for plural in [
        "kubeadmcontrolplanetemplates.controlplane",
        "kubeadmconfigtemplates.bootstrap",
    ] {
        server.apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.cluster.x-k8s.io"), "annotations": { "change": name } },
        }));
    }
    let mut template = template("large");
    template["metadata"]["name"] = json!(name);
    server.apply(&template);
    server.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": name, "namespace": "fleet" },
        "spec": { "topology": { "class": format!("docker-ferrol-1-34-v{number}") } },
    }));
    server.apply(&json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerMachineTemplate",
        "metadata": { "name": name, "namespace": "fleet", "labels": { crds::labels::PART_OF: name } },
    }));
}

/// One more object in another namespace that has the mark of the release.
fn copy(server: &Server, number: u32) {
    let mark = crds::labels::part_of("ClusterStackRelease", "fleet", TAG);
    server.apply(&json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerClusterTemplate",
        "metadata": { "name": format!("copy-{number}"), "namespace": "other", "labels": { crds::labels::PART_OF: mark } },
    }));
}

/// How often somebody is looked at meanwhile.
async fn looks(registry: &Registry, meanwhile: impl Fn(u32)) -> u64 {
    let before = reconciles(registry);
    for number in 0..30 {
        meanwhile(number);
        sleep(Duration::from_secs(5)).await;
    }
    sleep(LONG).await;
    reconciles(registry) - before
}

#[test]
fn a_storm_of_objects_of_others_wakes_nobody() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    operated(&server, async |registry| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        let quiet = looks(registry, |_| ()).await;
        let storm = looks(registry, |number| foreign(&server, number)).await;
        assert!(storm <= quiet, "{storm} looks in a storm, {quiet} without");
        server.apply(&namespace("other"));
        let copies = looks(registry, |number| copy(&server, number)).await;
        assert!(copies <= quiet, "{copies} looks for copies elsewhere, {quiet} without");
        let own = looks(registry, |number| server.apply(&template(&format!("size-{number}")))).await;
        assert!(
            own > quiet + 30,
            "{own} looks for changes of its own template, {quiet} without"
        );
    });
}

const TAG: &str = "docker-harbor-1-34-v1";

/// Whose a release is, while one stack has it and another one waits for it. `edit` is what somebody does then.
fn of_two_stacks(edit: impl Fn(&Server)) -> Server {
    operator_kit::client::install_crypto();
    let server = begin(None);
    operated(&server, async |_| {
        server.apply(&template("small"));
        for name in ["harbor", "second"] {
            let mut stack = stack(&["v1"]);
            stack["metadata"]["name"] = json!(name);
            server.apply(&stack);
            sleep(LONG).await;
        }
        assert_eq!(owner(&server), "harbor");
        assert!(waits(&server, "second", "harbor"));
        edit(&server);
        sleep(LONG).await;
    });
    server
}

fn owner(server: &Server) -> Value {
    server.find("ClusterStackRelease", TAG)["metadata"]["ownerReferences"][0]["name"].clone()
}

/// Whether a stack tells that its release belongs to another one.
fn waits(server: &Server, stack: &str, owner: &str) -> bool {
    let status = server.find("ClusterStack", stack)["status"].clone();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| {
        let says = |field: &str, words: &str| condition[field].as_str().is_some_and(|said| said.contains(words));
        says("reason", "ReleaseOwnedByOtherStack") && says("message", owner)
    })
}

#[test]
fn a_stack_that_waits_for_a_release_has_it_when_the_other_stack_goes_and_leaves_it() {
    let server = of_two_stacks(|server| {
        server.merge(
            "ClusterStackRelease",
            TAG,
            &json!({ "metadata": { "ownerReferences": null } }),
        );
        server.delete("ClusterStack", "harbor");
    });
    assert_eq!(owner(&server), "second");
    assert!(!waits(&server, "second", "harbor"));
}

#[test]
fn a_stack_whose_release_is_given_to_another_one_tells_it() {
    let server = of_two_stacks(|server| {
        let uid = server.find("ClusterStack", "second")["metadata"]["uid"].clone();
        let mut owners = server.find("ClusterStackRelease", TAG)["metadata"]["ownerReferences"].clone();
        owners[0]["name"] = json!("second");
        owners[0]["uid"] = uid;
        server.merge(
            "ClusterStackRelease",
            TAG,
            &json!({ "metadata": { "ownerReferences": owners } }),
        );
    });
    assert_eq!(owner(&server), "second");
    assert!(waits(&server, "harbor", "second"));
    assert!(!waits(&server, "second", "harbor"));
}

/// How often the files of a release were asked for in vain, as its status tells.
fn attempts(server: &Server) -> u32 {
    let release = server.find("ClusterStackRelease", TAG);
    let told = release["status"]["conditions"].to_string();
    let words: Vec<&str> = told.split(' ').collect();
    let times = words.windows(2).find(|pair| pair[1].starts_with("times"));
    let number = times.and_then(|pair| pair[0].parse().ok());
    number.unwrap_or_else(|| panic!("it is not told: {release:#}"))
}

#[test]
fn whoever_asks_for_a_release_or_for_its_stack_has_a_download_tried_that_waits() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    let flags = ["--allow-source-network=127.0.0.0/8"];
    operated_with(&server, RELEASES.path(), &flags, async |_| {
        server.apply(&template("small"));
        let mut stack = stack(&["v1"]);
        // Nobody listens there.
        stack["spec"]["source"] = json!({ "http": { "url": "https://127.0.0.1:1/index.json" } });
        server.apply(&stack);
        // By now it is tried every quarter of an hour.
        sleep(20 * LONG).await;
        for (kind, name) in [("ClusterStackRelease", TAG), ("ClusterStack", "harbor")] {
            let before = attempts(&server);
            let wish = json!({ "metadata": { "annotations": { crds::labels::REQUESTED_AT: "now" } } });
            server.merge(kind, name, &wish);
            sleep(Duration::from_mins(1)).await;
            assert!(attempts(&server) > before, "{kind}: {before} times and no more");
        }
    });
}
