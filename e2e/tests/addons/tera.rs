//! Templates of values in Tera see what those in Go see: the Cluster, its control plane and its infrastructure, as they are now.

use anyhow::{Result, ensure};
use e2e::{Journey, releases::StackSource, shim::cluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{
    ground::{CLUSTER, Ground, on_the_newest, release_of},
    reshaped::NOTE,
    single::of_one_chart,
    stack::{self, Expected},
    values::{change_cluster, noted},
};

const VERSION: &str = "v2";
const KUBERNETES: &str = "v1.35.0";

/// What the network is given, as a text.
const OF_NETWORK: &str = "podCIDR: {{ Cluster.spec.clusterNetwork.pods.cidrBlocks[0] | json_encode }}
apiServer: \"{{ Cluster.spec.controlPlaneEndpoint.host }}:{{ Cluster.spec.controlPlaneEndpoint.port }}\"
";
/// What the lighthouse is given, of each of the three; the berth is what the Cluster itself asks for.
const OF_LIGHTHOUSE: &str = "cluster: {{ Cluster.metadata.name | json_encode }}
region: {{ InfraCluster.spec.region | json_encode }}
flavor: {{ ControlPlane.spec.flavor | json_encode }}
{%- for variable in Cluster.spec.topology.variables | default(value=[]) %}
{%- if variable.name == \"region\" %}
asked: {{ variable.value | json_encode }}
{%- endif %}
{%- endfor %}
";

/// Has the note tell what was asked for.
fn telling(source: &StackSource, note: &str) -> Result<()> {
    let told = "  addons:";
    let asked = "  asked: {{ .Values.asked | default \"nothing\" | quote }}\n  addons:";
    source.replace(note, told, asked).map(drop)
}

/// Lines with so many blanks before them.
fn indented(text: &str, blanks: usize) -> String {
    let lines = text.lines().map(|line| format!("{}{line}\n", " ".repeat(blanks)));
    lines.collect()
}

/// With stages: each chart has a template of its own.
fn of_stages() -> Result<StackSource> {
    let source = StackSource::quay(VERSION)?;
    for chart in ["network", "lighthouse"] {
        source.remove(&format!("cluster-addon/{chart}/overwrite.yaml"))?;
    }
    let as_text = format!("values: |\n{}", indented(OF_NETWORK, 2));
    source.write("cluster-addon/network/overwrite.yaml.tera", &as_text)?;
    source.write("cluster-addon/lighthouse/overwrite.yaml.tera", OF_LIGHTHOUSE)?;
    telling(&source, NOTE)?;
    Ok(source)
}

/// Without: there is one for all.
fn of_one() -> Result<StackSource> {
    let source = of_one_chart(VERSION)?;
    source.remove("cluster-addon-values.yaml")?;
    let values = format!(
        "network:\n{}lighthouse:\n{}",
        indented(OF_NETWORK, 2),
        indented(OF_LIGHTHOUSE, 2)
    );
    source.write("cluster-addon-values.yaml.tera", &values)?;
    telling(&source, "cluster-addon/charts/lighthouse/templates/note.yaml")?;
    Ok(source)
}

/// The note in the cluster tells all of it, and what changes with the Cluster.
async fn tells_what_the_cluster_is(
    journey: &mut Journey,
    ground: &mut Ground,
    source: &StackSource,
    wanted: &[Expected],
) -> Result<()> {
    let class = journey.releases.publish_stack(&source.path(), VERSION)?;
    release_of(journey, &class, "v2", VERSION).await?;
    journey.apply(cluster(CLUSTER, &class, KUBERNETES, 1)).await?;
    ground.complete_with(journey, &class, VERSION, wanted).await?;
    let settings: Api<ConfigMap> = Api::namespaced(ground.workload.client(), "kube-system");
    let settings = settings.get("cluster-addon-routes").await?.data.unwrap_or_default();
    let endpoint = endpoint(journey).await?;
    ensure!(
        settings.get("apiServer") == Some(&endpoint),
        "{settings:?} instead of {endpoint}"
    );

    // Cluster API writes into the Cluster what the class gives a variable that nobody set.
    let before = noted(ground, "north").await?;
    ensure!(asked(&before) == "north", "{before:?}");
    for region in ["south", "east"] {
        let variables = json!([{ "name": "region", "value": region }]);
        change_cluster(journey, json!({ "spec": { "topology": { "variables": variables } } })).await?;
        let after = noted(ground, region).await?;
        ensure!(asked(&after) == region && after.uid() == before.uid(), "{after:?}");
    }
    ground.looks_write_nothing(journey, "moved").await
}

fn asked(note: &ConfigMap) -> &str {
    let asked = note.data.as_ref().and_then(|data| data.get("asked"));
    asked.map_or("", String::as_str)
}

/// Where the API server of the Cluster is, as the Cluster says.
async fn endpoint(journey: &Journey) -> Result<String> {
    let cluster = journey
        .objects(crate::ground::CLUSTER_API, "Cluster")
        .get(CLUSTER)
        .await?;
    let endpoint = &cluster.data["spec"]["controlPlaneEndpoint"];
    let host = endpoint["host"].as_str().unwrap_or_default();
    Ok(format!("{host}:{}", endpoint["port"]))
}

#[test]
fn values_of_stages_in_tera_are_made_of_the_cluster_and_its_parts_and_follow_it() -> Result<()> {
    on_the_newest(async |journey, ground| {
        tells_what_the_cluster_is(journey, ground, &of_stages()?, &stack::expected(VERSION)).await
    })
}

#[test]
fn values_of_one_chart_in_tera_are_made_of_the_cluster_and_its_parts_and_follow_it() -> Result<()> {
    on_the_newest(async |journey, ground| {
        tells_what_the_cluster_is(journey, ground, &of_one()?, &stack::of_one_chart(VERSION)).await
    })
}
