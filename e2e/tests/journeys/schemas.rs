//! The table of kinds by which conditions of stages are checked is what the real API server publishes.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
};

use anyhow::{Context, Result, ensure};
use e2e::{journey::journey, lab::workspace};
use serde_json::Value;
use sha2::{Digest, Sha512};

/// Where the table is; `expressions/src/schemas/table.rs` says how it is written.
const TABLE: &str = "expressions/src/schemas/kubernetes.txt";

/// Prefixes of names that say nothing in a table of Kubernetes' own types.
const PREFIXES: [&str; 5] = [
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.kube-aggregator.pkg.apis.",
];

/// With `STACKWRIGHT_REGENERATE=1` the table is written anew.
#[test]
fn table_of_kinds_is_what_the_api_server_publishes() -> Result<()> {
    journey(async |journey| {
        let get = async |path: &str| -> Result<Value> {
            let request = http::Request::get(path).body(Vec::new())?;
            Ok(journey.client.request(request).await?)
        };
        let version = get("/version").await?;
        let index = get("/openapi/v3").await?;
        let (mut types, mut scopes) = (BTreeMap::new(), BTreeMap::new());
        for name in index["paths"].as_object().context("an index of documents")?.keys() {
            if name == "api/v1" || (name.starts_with("apis/") && name.matches('/').count() == 2) {
                let document = get(&format!("/openapi/v3/{name}"))
                    .await
                    .with_context(|| name.clone())?;
                let schemas = document
                    .pointer("/components/schemas")
                    .and_then(Value::as_object)
                    .cloned();
                types.extend(schemas.unwrap_or_default());
                scopes.extend(scopes_of(&document));
            }
        }
        let table = table(version["gitVersion"].as_str().context("a version")?, &types, &scopes)?;
        let file = workspace().join(TABLE);
        if env::var_os("STACKWRIGHT_REGENERATE").is_some() {
            fs::write(&file, &table)?;
        }
        ensure!(
            fs::read_to_string(&file)? == table,
            "{TABLE} is not what the API server publishes; STACKWRIGHT_REGENERATE=1 writes it anew"
        );
        Ok(())
    })
}

/// Clusters whose API servers have the same documents are shown one of them: that is sound as long as the name of a document is a hash of all that is in it.
#[test]
fn documents_of_schemas_are_named_by_the_hash_of_their_bytes() -> Result<()> {
    journey(async |journey| {
        let get = async |path: &str| -> Result<Vec<u8>> {
            let request = http::Request::get(path).body(Vec::new().into())?;
            let answer = journey.client.send(request).await?;
            ensure!(answer.status().is_success(), "{path}: {}", answer.status());
            Ok(answer.into_body().collect_bytes().await?.to_vec())
        };
        let index: Value = serde_json::from_slice(&get("/openapi/v3").await?)?;
        for name in ["api/v1", "apis/apps/v1", "apis/clusterstack.x-k8s.io/v1alpha1"] {
            let named = index["paths"][name]["serverRelativeURL"]
                .as_str()
                .context("no document")?;
            let bytes = get(&format!("/openapi/v3/{name}")).await?;
            let hash = hex::encode_upper(Sha512::digest(&bytes));
            ensure!(
                named == format!("/openapi/v3/{name}?hash={hash}"),
                "{named} is not {hash}"
            );
        }
        Ok(())
    })
}

/// Of the kinds whose objects can be read one by one, by name and version: whether those are in namespaces. The paths of a document say it.
fn scopes_of(document: &Value) -> BTreeMap<String, &'static str> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let of_objects = paths.filter(|(path, _)| path.ends_with("/{name}"));
    let scopes = of_objects.filter_map(|(path, calls)| {
        let kind = calls.pointer("/get/x-kubernetes-group-version-kind")?;
        let is_namespaced = path.contains("/namespaces/{namespace}/");
        Some((named(kind), if is_namespaced { "namespaced" } else { "cluster" }))
    });
    scopes.collect()
}

/// A kind behind its group and version.
fn named(kind: &Value) -> String {
    let (group, version, kind) = (text(kind, "group"), text(kind, "version"), text(kind, "kind"));
    let separator = if group.is_empty() { "" } else { "/" };
    format!("{group}{separator}{version} {kind}")
}

fn table(version: &str, types: &BTreeMap<String, Value>, scopes: &BTreeMap<String, &'static str>) -> Result<String> {
    let mut table = format!(
        "# The kinds of Kubernetes {version} and their fields. Written by a test: e2e/tests/journeys/schemas.rs\n"
    );
    let mut wanted: Vec<&str> = Vec::new();
    let own = types.iter().filter(|(name, _)| name.starts_with("io.k8s."));
    let mut kinds = BTreeSet::new();
    for (name, schema) in own {
        // Options of calls belong to every group; what a client gets is of one.
        let Some([kind]) = schema["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) else {
            continue;
        };
        if !schema["properties"]["items"].is_null() {
            continue;
        }
        let kind = named(kind);
        let scope = scopes.get(&kind).map(|scope| format!(" {scope}")).unwrap_or_default();
        kinds.insert(format!("kind {kind} @{}{scope}\n", short(name)));
        wanted.push(name);
    }
    table.extend(kinds);
    let mut described = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        let mut fields = String::new();
        for (field, schema) in types[name]["properties"].as_object().into_iter().flatten() {
            let word = word(schema, types, &mut wanted).with_context(|| format!("{name}.{field}"))?;
            writeln!(fields, " {field} {word}")?;
        }
        wanted.retain(|other| !described.contains_key(short(other)) && *other != name);
        described.insert(short(name), fields);
    }
    for (name, fields) in described {
        write!(table, "type {name}\n{fields}")?;
    }
    Ok(table)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn short(name: &str) -> &str {
    PREFIXES
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

/// A type in the words of the table; the names of others that it needs are wanted, too.
fn word<'t>(schema: &'t Value, types: &'t BTreeMap<String, Value>, wanted: &mut Vec<&'t str>) -> Result<String> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let (name, other) = types.get_key_value(name).with_context(|| format!("no type {name}"))?;
        if other["properties"].is_object() {
            wanted.push(name);
            return Ok(format!("@{}", short(name)));
        }
        return word(other, types, wanted);
    }
    if schema["format"] == "int-or-string" {
        return Ok("int-or-text".to_owned());
    }
    Ok(match schema["type"].as_str() {
        Some("boolean") => "bool".to_owned(),
        Some("integer") => "int".to_owned(),
        Some("number") => "number".to_owned(),
        Some("string") => match schema["enum"].as_array() {
            Some(values) => {
                let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
                ensure!(values.iter().all(|value| !value.contains(['|', ')'])), "{values:?}");
                format!("text({})", values.join("|"))
            }
            None => "text".to_owned(),
        },
        Some("array") => format!("[{}]", word(&schema["items"], types, wanted)?),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("{{{}}}", word(&schema["additionalProperties"], types, wanted)?)
        }
        // An amount is published as text or number; what the API server gives is always a text.
        None if schema["oneOf"][0]["type"] == "string" => "text".to_owned(),
        _ => "any".to_owned(),
    })
}
