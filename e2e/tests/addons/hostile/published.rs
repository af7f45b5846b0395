//! API servers that publish of their kinds (`/openapi/v3`) more than there is memory for, or what has no end, and are otherwise honest: the condition of a stage is
//! evaluated unchecked there, with words about it while it waits, and the add-ons come.

use std::io::{self, Read};

use anyhow::{Context, Result, ensure};
use crds::conditions::ConditionType;
use e2e::{ControlPlane, FaultProxy, Journey};
use flate2::{Compression, write::GzEncoder};
use futures::future::try_join_all;
use serde_json::json;

use super::{
    Attack,
    honest::Honest,
    memory::{BEYOND, MAP, list_of},
};
use crate::{by_hand::until_status, values::set_tide};

/// What the stage waits for, and which objects that is about.
pub(super) const CONDITION: &str = "it.data.level == \"high\"";
pub(super) const AWAITED: [(&str, &str); 1] = [("it", "kind: ConfigMap, name: tide, namespace: kube-system")];

const INDEX: &str = "/openapi/v3";
const DOCUMENT: &str = "/openapi/v3/api/v1";
/// More bytes than an index may have (1 MiB), and than a document may (8 MiB).
const LONG_INDEX: usize = 2 << 20;
const LONG_DOCUMENT: usize = 9 << 20;
/// Maps within each other, which have fewer parts than a document may.
const DEPTH: usize = 50_000;
/// What some hundred kilobytes unpack to.
const UNPACKED: u64 = 64 << 20;

/// What is said at one of these paths, and what is told of it.
struct Bomb {
    name: &'static str,
    path: &'static str,
    encoding: Option<&'static str>,
    body: Vec<u8>,
    words: &'static str,
}

/// A cluster whose API server is that of the honest one, but for what it publishes.
struct Publisher {
    attack: Attack,
    /// As long as there is an attack.
    _way: FaultProxy,
}

const TOO_MUCH: &str = "those of v1 cannot be used, because there is more of it than is read";
const UNREADABLE: &str = "those of v1 cannot be used, because it is not in the form of OpenAPI v3";

fn bombs() -> Result<Vec<Bomb>> {
    let document = |name, body, words| Bomb {
        name,
        path: DOCUMENT,
        encoding: None,
        body,
        words,
    };
    let schemas = |schemas: String| format!(r#"{{"components":{{"schemas":{schemas}}}}}"#).into_bytes();
    let nested = format!("{}0{}", r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
    Ok(vec![
        Bomb {
            path: INDEX,
            ..document(
                "long-index",
                after_spaces(LONG_INDEX, &index()),
                "their index cannot be used, because there is more of it than is read",
            )
        },
        document(
            "long-document",
            after_spaces(LONG_DOCUMENT, &schemas("{}".to_owned())),
            TOO_MUCH,
        ),
        document(
            "document-of-nothing",
            schemas(format!(r#"{{"a":{}}}"#, list_of(MAP, BEYOND))),
            TOO_MUCH,
        ),
        document("deep-document", schemas(nested), UNREADABLE),
        document(
            "circle-of-schemas",
            schemas(circle()),
            "it: the schema does not say what is in it: not checked",
        ),
        Bomb {
            encoding: Some("gzip"),
            ..document("packed-document", packed()?, UNREADABLE)
        },
    ])
}

/// That there is a document of the first kinds, of which nobody has another one of the same hash.
fn index() -> Vec<u8> {
    let address = format!("{DOCUMENT}?hash=none");
    let index = json!({ "paths": { "api/v1": { "serverRelativeURL": address } } });
    index.to_string().into_bytes()
}

fn after_spaces(spaces: usize, text: &[u8]) -> Vec<u8> {
    [vec![b' '; spaces].as_slice(), text].concat()
}

/// A kind that is the same as something that is the same as something that is the same.
fn circle() -> String {
    let same_as = |name: &str| format!("#/components/schemas/{name}");
    let kind = json!([{ "group": "", "version": "v1", "kind": "ConfigMap" }]);
    let schemas = json!({
        "ConfigMap": { "$ref": same_as("Here"), "x-kubernetes-group-version-kind": kind },
        "Here": { "$ref": same_as("There") },
        "There": { "allOf": [{ "$ref": same_as("Here") }] },
    });
    schemas.to_string()
}

/// Nobody has asked for anything packed.
fn packed() -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut io::repeat(b' ').take(UNPACKED), &mut packed).context("failed to pack a document")?;
    packed.finish().context("failed to pack a document")
}

impl Publisher {
    async fn before(workload: &ControlPlane, class: &str, bomb: Bomb) -> Result<Self> {
        let way = FaultProxy::start(workload).await?;
        way.say_instead(INDEX, None, index());
        way.say_instead(bomb.path, bomb.encoding, bomb.body);
        let kubeconfig = way.access().admin_kubeconfig().await?;
        let attack = Attack {
            cluster: bomb.name.to_owned(),
            class: Some(class.to_owned()),
            kubeconfig: Some(kubeconfig.into_bytes()),
            condition: ConditionType::EvaluatedCEL,
            words: vec![bomb.words.to_owned()],
            ..Attack::default()
        };
        Ok(Self { attack, _way: way })
    }
}

/// Each is told of while its stage waits, and has its add-ons once what it waits for is so. The class is one whose stage waits for that.
pub(super) async fn all_are_served(journey: &Journey, honest: &Honest, class: &str) -> Result<()> {
    let client = honest.workload.client();
    set_tide(&client, "low").await?;
    let publishers = bombs()?.into_iter();
    let publishers = publishers.map(|bomb| Publisher::before(&honest.workload, class, bomb));
    let publishers = try_join_all(publishers).await?;
    let attacks = || publishers.iter().map(|publisher| &publisher.attack);
    try_join_all(attacks().map(|attack| attack.bring(journey, &honest.cluster))).await?;
    honest.is_served_until_told(journey, attacks()).await?;
    set_tide(&client, "high").await?;
    for Attack { cluster, .. } in attacks() {
        until_status(journey, cluster, "ready", |status| status.ready).await?;
        let note = honest.note(&format!("{cluster}-note")).await?;
        ensure!(note.get("cluster") == Some(cluster), "{note:?}");
    }
    Ok(())
}
