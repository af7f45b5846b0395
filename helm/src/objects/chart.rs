//! `.Chart`: the metadata of the chart that a template belongs to.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::chart::{Dependency, ImportValues, Maintainer, Metadata};
use crate::profile::ChartObjectForm;
use crate::value::{Bytes, Element, GoObject, Json, List, Map, Shape, Value};

/// The metadata as the templates of a profile see it.
pub(crate) fn chart_object(metadata: &Metadata, is_root: bool, form: ChartObjectForm) -> Value {
    let metadata = MetadataObject::new(metadata);
    match form {
        ChartObjectForm::Struct => Value::Obj(Rc::new(ChartObject {
            metadata: Rc::new(metadata),
            is_root,
        })),
        ChartObjectForm::Map => {
            let map = metadata.to_map();
            map.insert("IsRoot", Value::Bool(is_root));
            Value::Map(map)
        }
    }
}

/// The anonymous Go struct of a chart's metadata and whether it is the root.
struct ChartObject {
    metadata: Rc<MetadataObject>,
    is_root: bool,
}

impl GoObject for ChartObject {
    fn type_name(&self) -> String {
        "struct { chart.Metadata; IsRoot bool }".to_owned()
    }

    fn shape(&self) -> Shape {
        let fields = ["Metadata", "IsRoot"];
        Shape::Struct(fields.map(|name| (name, self.field(name).unwrap_or_default())).into())
    }

    /// The fields of the embedded metadata are reached without naming it.
    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Metadata" => Some(Value::Obj(Rc::<MetadataObject>::clone(&self.metadata))),
            "IsRoot" => Some(Value::Bool(self.is_root)),
            _ => self.metadata.field(name).cloned(),
        }
    }

    fn json(&self) -> Option<Json> {
        let mut fields = self.metadata.json_fields();
        fields.push(("IsRoot", Value::Bool(self.is_root)));
        Some(Json::Fields(fields))
    }
}

/// One field of a Go struct: its name, its name in JSON, its value.
type Field = (&'static str, &'static str, Value);

/// A struct of the Go package `chart` whose empty fields JSON leaves out.
struct MetadataObject {
    type_name: &'static str,
    pointer: bool,
    fields: Vec<Field>,
}

impl MetadataObject {
    fn new(metadata: &Metadata) -> Self {
        let Metadata {
            name,
            home,
            sources,
            version,
            description,
            keywords,
            maintainers,
            icon,
            api_version,
            condition,
            tags,
            app_version,
            deprecated,
            annotations,
            kube_version,
            dependencies,
            chart_type,
            null_maintainer: _,
            null_dependency: _,
        } = metadata;
        let fields = vec![
            ("Name", "name", text(name)),
            ("Home", "home", text(home)),
            ("Sources", "sources", texts(sources.as_deref())),
            ("Version", "version", text(version)),
            ("Description", "description", text(description)),
            ("Keywords", "keywords", texts(keywords.as_deref())),
            (
                "Maintainers",
                "maintainers",
                objects("*chart.Maintainer", maintainers.as_deref(), Self::maintainer),
            ),
            ("Icon", "icon", text(icon)),
            ("APIVersion", "apiVersion", text(api_version)),
            ("Condition", "condition", text(condition)),
            ("Tags", "tags", text(tags)),
            ("AppVersion", "appVersion", text(app_version)),
            ("Deprecated", "deprecated", Value::Bool(*deprecated)),
            ("Annotations", "annotations", pairs(annotations.as_ref())),
            ("KubeVersion", "kubeVersion", text(kube_version)),
            (
                "Dependencies",
                "dependencies",
                objects("*chart.Dependency", dependencies.as_deref(), Self::dependency),
            ),
            ("Type", "type", text(chart_type)),
        ];
        Self {
            type_name: "chart.Metadata",
            pointer: false,
            fields,
        }
    }

    fn maintainer(maintainer: &Maintainer) -> Self {
        let Maintainer { name, email, url } = maintainer;
        Self {
            type_name: "*chart.Maintainer",
            pointer: true,
            fields: vec![
                ("Name", "name", text(name)),
                ("Email", "email", text(email)),
                ("URL", "url", text(url)),
            ],
        }
    }

    fn dependency(dependency: &Dependency) -> Self {
        let Dependency {
            name,
            version,
            repository,
            condition,
            tags,
            enabled,
            import_values,
            alias,
        } = dependency;
        let imports = import_values.iter().map(|ImportValues { child, parent, .. }| {
            let pair = Map::of(Element::Str);
            pair.insert("child", child.as_str());
            pair.insert("parent", parent.as_str());
            Value::Map(pair)
        });
        // Helm makes the list anew of what it takes for imports.
        let imports = if import_values.is_empty() {
            List::nil(Element::Any)
        } else {
            List::new(imports.collect())
        };
        Self {
            type_name: "*chart.Dependency",
            pointer: true,
            fields: vec![
                ("Name", "name", text(name)),
                ("Version", "version", text(version)),
                ("Repository", "repository", text(repository)),
                ("Condition", "condition", text(condition)),
                ("Tags", "tags", texts(tags.as_deref())),
                ("Enabled", "enabled", Value::Bool(*enabled)),
                ("ImportValues", "import-values", Value::List(imports)),
                ("Alias", "alias", text(alias)),
            ],
        }
    }

    /// All fields under their Go names; lists and inner structs lose their types, maps keep them.
    fn to_map(&self) -> Map {
        let fields = self.fields.iter();
        fields.map(|(name, _, value)| (*name, untyped(value))).collect()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        let found = self.fields.iter().find(|(field, ..)| *field == name);
        found.map(|(.., value)| value)
    }

    fn json_fields(&self) -> Vec<(&'static str, Value)> {
        // A dependency says its repository even when there is none.
        let always = |name: &str| name == "repository";
        let fields = self
            .fields
            .iter()
            .filter(|(_, name, value)| always(name) || !is_empty(value));
        fields.map(|(_, name, value)| (*name, value.clone())).collect()
    }
}

impl GoObject for MetadataObject {
    fn type_name(&self) -> String {
        self.type_name.to_owned()
    }

    fn shape(&self) -> Shape {
        let fields = self
            .fields
            .iter()
            .map(|(name, _, value)| (*name, value.clone()))
            .collect();
        if self.pointer {
            Shape::Pointer(fields)
        } else {
            Shape::Struct(fields)
        }
    }

    fn json(&self) -> Option<Json> {
        Some(Json::Fields(self.json_fields()))
    }
}

fn untyped(value: &Value) -> Value {
    match value {
        Value::List(list) => Value::List(List::new(list.items().iter().map(untyped).collect())),
        Value::Obj(object) => match object.shape() {
            Shape::Struct(fields) | Shape::Pointer(fields) => {
                let fields = fields.into_iter();
                Value::Map(fields.map(|(name, value)| (name, untyped(&value))).collect())
            }
            _ => value.clone(),
        },
        value => value.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.is_empty(),
        Value::Bool(value) => !value,
        Value::List(list) => list.items().is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn texts(texts: Option<&[String]>) -> Value {
    let Some(texts) = texts else {
        return Value::List(List::nil(Element::Str));
    };
    Value::List(List::strings(texts.iter().map(|text| Bytes::from(text.as_bytes()))))
}

fn pairs(pairs: Option<&BTreeMap<String, String>>) -> Value {
    let Some(pairs) = pairs else {
        return Value::Map(Map::nil(Element::Str));
    };
    let map = Map::of(Element::Str);
    for (key, value) in pairs {
        map.insert(key.as_str(), value.as_str());
    }
    Value::Map(map)
}

fn objects<T>(type_name: &'static str, items: Option<&[T]>, object: impl Fn(&T) -> MetadataObject) -> Value {
    let Some(items) = items else {
        return Value::List(List::nil(Element::Named(type_name)));
    };
    let items = items.iter().map(|item| Value::Obj(Rc::new(object(item))));
    Value::List(List::of(Element::Named(type_name), items.collect()))
}
