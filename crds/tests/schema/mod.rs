//! The schemas of the generated CRDs, by plural and path, and what must hold for all of them.

use std::{collections::BTreeMap, sync::LazyLock};

use crds::{
    manifests::{custom_resource_definitions, provider_definitions},
    providers::Provider,
};
use serde_json::Value;
use strum::IntoEnumIterator;

/// `(path below the schema, what is written about it)`. A path ends in `[]` where the items of a list are meant.
pub(crate) type Table<'table> = &'table [(&'table str, Value)];

/// Every field is described, and none may be null.
pub(crate) fn is_described(plural: &str) {
    for (path, field) in fields(plural) {
        assert!(
            field["description"]
                .as_str()
                .is_some_and(|words| words.ends_with('.') || words.contains("http")),
            "{plural}{path}"
        );
        assert_eq!(field["nullable"], Value::Null, "{plural}{path}");
    }
}

/// The API server refuses rules whose cost it cannot bound.
pub(crate) fn is_bounded(plural: &str) {
    for (path, field) in fields(plural) {
        let rules = field["x-kubernetes-validations"].as_array().map_or(0, Vec::len)
            + field["items"]["x-kubernetes-validations"]
                .as_array()
                .map_or(0, Vec::len);
        if rules == 0 {
            continue;
        }
        match field["type"].as_str() {
            Some("string") => assert!(field["maxLength"].is_number(), "{plural}{path}"),
            Some("array") => {
                assert!(field["maxItems"].is_number(), "{plural}{path}");
                assert!(field["items"]["maxLength"].is_number(), "{plural}{path}");
            }
            _ => {}
        }
    }
}

/// All fields by path.
pub(crate) fn fields(plural: &str) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    collect(
        &crd(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        "",
        &mut fields,
    );
    fields
}

fn collect(schema: &Value, path: &str, fields: &mut BTreeMap<String, Value>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        collect(property, &path, fields);
        collect(&property["items"], &format!("{path}[]"), fields);
        fields.insert(path, property.clone());
    }
}

/// Each field of the table is there, and says this about itself.
pub(crate) fn holds(plural: &str, table: Table<'_>) {
    for (path, expected) in table {
        let field = field(plural, path);
        for (key, value) in expected.as_object().expect("a table of objects") {
            assert_eq!(&field[key], value, "{plural} {path}: {key}");
        }
    }
}

/// The fields that an object at this path must have.
pub(crate) fn required(plural: &str, path: &str) -> Vec<String> {
    serde_json::from_value(field(plural, path)["required"].clone()).unwrap_or_default()
}

/// Name, type and path of each column of `kubectl get`.
pub(crate) fn columns(plural: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let columns = crd(plural)["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
    columns
        .into_iter()
        .flatten()
        .map(|column| (text(&column["name"]), text(&column["type"]), text(&column["jsonPath"])))
        .collect()
}

fn field(plural: &str, path: &str) -> Value {
    let (path, rule) = match path.split_once(".x-kubernetes-validations.") {
        Some((path, rule)) => (path, Some(rule.parse::<usize>().expect("a number"))),
        None => (path, None),
    };
    let mut schema = crd(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        schema = schema["properties"][name].clone();
        assert!(schema.is_object(), "{plural} has no {path}");
        if part.ends_with("[]") {
            schema = schema["items"].clone();
        }
    }
    rule.map_or(schema.clone(), |rule| schema["x-kubernetes-validations"][rule].clone())
}

/// The CRD with this plural.
pub(crate) fn crd(plural: &str) -> &'static Value {
    static CRDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let of_providers = Provider::iter().flat_map(provider_definitions);
        custom_resource_definitions()
            .into_iter()
            .chain(of_providers)
            .map(|definition| serde_json::to_value(definition).expect("a CRD is JSON"))
            .collect()
    });
    CRDS.iter()
        .find(|crd| crd["spec"]["names"]["plural"] == plural)
        .expect("one of ours")
}

fn text(value: &'static Value) -> &'static str {
    value.as_str().expect("a string")
}
