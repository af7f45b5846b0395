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
        let own = looks(registry, |number| server.apply(&template(&format!("size-{number}")))).await;
        assert!(
            own > quiet + 30,
            "{own} looks for changes of its own template, {quiet} without"
        );
    });
}
