//! From the text of a schema to its subschemas with their keywords. Errors are Helm's texts.

use std::collections::HashMap;

use super::SchemaRules;
use super::address;
use super::document::{Json, escape};
use super::draft::Draft;
use super::format;
use super::keywords::{
    Additional, ArrayRules, Bound, Condition, Contains, Dependency, Id, NumberRules, ObjectRules, Pattern, Subschema,
    TextRules, Types,
};
use super::number::Decimal;
use super::registry::{Registry, location};
use crate::bounds::{beyond, spend};
use crate::format::quoted;
use crate::profile::Profile;

/// A schema with all subschemas that it can lead to. The first one is the whole.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) subschemas: Vec<Subschema>,
}

impl Compiled {
    /// The URL of the whole, as Helm names it.
    pub(super) fn location(&self) -> String {
        let whole = &self.subschemas[0];
        location(&whole.url, &whole.pointer)
    }
}

/// The URL that Helm gives to the schema of a chart.
const CHART_SCHEMA: &str = "file:///values.schema.json";

/// How many subschemas a schema may lead to.
const MAX_SUBSCHEMAS: usize = 100_000;

/// What compiling one of them takes, about.
const STEPS_PER_SUBSCHEMA: u64 = 16;

/// Compiles `values.schema.json`.
///
/// Also gives the URNs that allow everything because nothing can load them.
pub(super) fn compile(text: &[u8], rules: SchemaRules) -> (Result<Compiled, String>, Vec<String>) {
    let document = match Json::read(text) {
        Ok(document) => document,
        Err(problem) => return (Err(problem), Vec::new()),
    };
    let registry = Registry::with(CHART_SCHEMA, document, rules);
    let mut compiler = Compiler::new(registry, false);
    let schema = compiler.run(CHART_SCHEMA);
    (schema, compiler.registry.into_unresolved())
}

/// Compiles a document of json-schema.org, in which formats matter for every draft. What rules differ in does not occur there.
pub(super) fn compile_metaschema(url: &str) -> Result<Compiled, String> {
    let rules = Profile::V3_19.schemas;
    Compiler::new(Registry::new(rules), true).run(url)
}

struct Compiler {
    registry: Registry,
    asserts_formats: bool,
    subschemas: Vec<Subschema>,
    ids: HashMap<(String, String), Id>,
}

/// The subschema that is being compiled.
struct Place<'a> {
    node: &'a Json,
    url: String,
    pointer: String,
    /// The URL of its resource, which references are relative to.
    base: String,
}

impl Place<'_> {
    fn below(&self, keyword: &str) -> String {
        format!("{}/{}", self.pointer, escape(keyword))
    }

    fn flag(&self, keyword: &str) -> bool {
        self.node.get(keyword).and_then(Json::as_bool).unwrap_or_default()
    }

    fn text(&self, keyword: &str) -> Option<&str> {
        self.node.get(keyword)?.as_text()
    }

    fn bound(&self, keyword: &str) -> Option<Bound> {
        let Some(Json::Number(text)) = self.node.get(keyword) else {
            return None;
        };
        let number = Decimal::parse(text)?;
        let text = text.clone();
        Some(Bound { text, number })
    }

    fn count(&self, keyword: &str) -> Option<i64> {
        self.bound(keyword)?.number.as_count()
    }

    fn pattern(&self, keyword: &str, text: &str) -> Result<Pattern, String> {
        Pattern::parse(text).map_err(|problem| {
            let place = location(&self.url, &self.below(keyword));
            format!("invalid regex {} at {}: {problem}", quoted(text), quoted(&place))
        })
    }
}

fn texts(items: &[Json]) -> Vec<String> {
    items.iter().filter_map(Json::as_text).map(str::to_owned).collect()
}

impl Compiler {
    fn new(registry: Registry, asserts_formats: bool) -> Self {
        Self {
            registry,
            asserts_formats,
            subschemas: Vec::new(),
            ids: HashMap::new(),
        }
    }

    fn run(&mut self, url: &str) -> Result<Compiled, String> {
        self.registry.root(url)?;
        self.id(url, String::new())?;
        let mut next = 0;
        while let Some(subschema) = self.subschemas.get(next) {
            spend(STEPS_PER_SUBSCHEMA).map_err(|bound| bound.to_string())?;
            let (url, pointer) = (subschema.url.clone(), subschema.pointer.clone());
            self.subschemas[next] = self.subschema(url, pointer)?;
            next += 1;
        }
        Ok(Compiled {
            subschemas: std::mem::take(&mut self.subschemas),
        })
    }

    /// The number of a subschema, which is compiled when its turn comes.
    fn id(&mut self, url: &str, pointer: String) -> Result<Id, String> {
        let key = (url.to_owned(), pointer);
        if let Some(id) = self.ids.get(&key) {
            return Ok(*id);
        }
        let id = self.subschemas.len();
        if id >= MAX_SUBSCHEMAS {
            return Err(beyond(format!("schema has more than {MAX_SUBSCHEMAS} subschemas")));
        }
        self.registry.keep_pointer(&key.1)?;
        self.subschemas.push(Subschema::new(key.0.clone(), key.1.clone()));
        self.ids.insert(key, id);
        Ok(id)
    }

    fn subschema(&mut self, url: String, pointer: String) -> Result<Subschema, String> {
        self.registry.ensure(&url, &pointer)?;
        let root = self.registry.root(&url)?;
        let document = std::rc::Rc::clone(&root.document);
        root.at(&pointer)?;
        let mut subschema = Subschema::new(url.clone(), pointer.clone());
        let Some(resource) = root.resource(&pointer) else {
            return Ok(subschema);
        };
        subschema.draft = resource.draft;
        let (base, base_pointer) = (resource.url.clone(), resource.pointer.clone());
        let mut anchors = Vec::new();
        if resource.draft >= Draft::V2020 && base_pointer == pointer {
            let dynamic = resource.dynamic_anchors();
            anchors.extend(dynamic.map(|(name, pointer)| (name.clone(), pointer.clone())));
        }
        subschema.resource = self.id(&url, base_pointer)?;
        for (name, pointer) in anchors {
            subschema.dynamic_anchors.insert(name, self.id(&url, pointer)?);
        }
        let Ok(node) = document.at(&pointer) else {
            return Ok(subschema);
        };
        match node {
            Json::Bool(value) => subschema.always = Some(*value),
            Json::Map(entries) if entries.is_empty() => subschema.always = Some(true),
            Json::Map(_) => {
                let place = Place {
                    node,
                    url,
                    pointer,
                    base,
                };
                self.keywords(&place, &mut subschema)?;
            }
            _ => {}
        }
        Ok(subschema)
    }

    fn keywords(&mut self, place: &Place<'_>, subschema: &mut Subschema) -> Result<(), String> {
        let draft = subschema.draft;
        subschema.reference = self.reference(place, "$ref")?;
        if draft < Draft::V2019 && subschema.reference.is_some() {
            return Ok(());
        }
        if draft >= Draft::V2019 {
            subschema.recursive_reference = self.reference(place, "$recursiveRef")?;
            subschema.is_recursive_anchor = place.flag("$recursiveAnchor");
        }
        if draft >= Draft::V2020 {
            if let Some(id) = self.reference(place, "$dynamicRef")? {
                let (_, fragment) = address::split_decoded(place.text("$dynamicRef").unwrap_or_default())?;
                let anchor = if fragment.starts_with('/') {
                    String::new()
                } else {
                    fragment
                };
                subschema.dynamic_reference = Some((id, anchor));
            }
            subschema.dynamic_anchor = place.text("$dynamicAnchor").map(str::to_owned).unwrap_or_default();
        }
        subschema.types = place.node.get("type").map(Types::read).unwrap_or_default();
        subschema.values = place.node.get("enum").and_then(Json::as_list).map(<[Json]>::to_vec);
        if draft >= Draft::V6 {
            subschema.value = place.node.get("const").cloned();
        }
        if self.asserts_formats || draft < Draft::V2019 {
            subschema.format = place.text("format").and_then(format::by_name);
        }
        subschema.not = self.value(place, "not")?;
        subschema.all_of = self.items(place, "allOf")?;
        subschema.any_of = self.items(place, "anyOf")?;
        subschema.one_of = self.items(place, "oneOf")?;
        if draft >= Draft::V7 {
            subschema.condition = self.condition(place)?;
        }
        subschema.object = self.object(place, draft)?;
        subschema.array = self.array(place, draft)?;
        subschema.text = TextRules {
            least: place.count("minLength"),
            most: place.count("maxLength"),
            pattern: place
                .text("pattern")
                .map(|text| place.pattern("pattern", text))
                .transpose()?,
        };
        subschema.number = numbers(place)?;
        Ok(())
    }

    fn object(&mut self, place: &Place<'_>, draft: Draft) -> Result<ObjectRules, String> {
        let mut patterns = Vec::new();
        for (text, id) in self.entries(place, "patternProperties")? {
            patterns.push((place.pattern("patternProperties", &text)?, id));
        }
        let mut rules = ObjectRules {
            least: place.count("minProperties"),
            most: place.count("maxProperties"),
            required: place
                .node
                .get("required")
                .and_then(Json::as_list)
                .map(texts)
                .unwrap_or_default(),
            properties: self.entries(place, "properties")?.into_iter().collect(),
            patterns,
            additional: self.additional(place, "additionalProperties")?,
            ..ObjectRules::default()
        };
        for (name, wanted) in place
            .node
            .get("dependencies")
            .and_then(Json::as_map)
            .into_iter()
            .flatten()
        {
            let dependency = match wanted {
                Json::List(names) => Dependency::Properties(texts(names)),
                _ => Dependency::Schema(
                    self.id(&place.url, format!("{}/{}", place.below("dependencies"), escape(name)))?,
                ),
            };
            rules.dependencies.insert(name.clone(), dependency);
        }
        if draft >= Draft::V6 {
            rules.names = self.value(place, "propertyNames")?;
        }
        if draft >= Draft::V2019 {
            let required = place.node.get("dependentRequired").and_then(Json::as_map);
            let required = required.into_iter().flatten();
            let required = required.filter_map(|(name, names)| Some((name.clone(), texts(names.as_list()?))));
            rules.dependent_required = required.collect();
            rules.dependent_schemas = self.entries(place, "dependentSchemas")?.into_iter().collect();
            rules.unevaluated = self.value(place, "unevaluatedProperties")?;
        }
        Ok(rules)
    }

    fn array(&mut self, place: &Place<'_>, draft: Draft) -> Result<ArrayRules, String> {
        let mut rules = ArrayRules {
            least: place.count("minItems"),
            most: place.count("maxItems"),
            is_unique: place.flag("uniqueItems"),
            ..ArrayRules::default()
        };
        if draft >= Draft::V2020 {
            rules.first = self.items(place, "prefixItems")?;
            rules.rest = self.value(place, "items")?.map(Additional::Schema);
        } else if let Some(Json::List(_)) = place.node.get("items") {
            rules.first = self.items(place, "items")?;
            rules.rest = self.additional(place, "additionalItems")?;
        } else {
            rules.rest = self.value(place, "items")?.map(Additional::Schema);
        }
        if draft >= Draft::V6
            && let Some(schema) = self.value(place, "contains")?
        {
            let count = |keyword| place.count(keyword).filter(|_| draft >= Draft::V2019);
            rules.contains = Some(Contains {
                schema,
                least: count("minContains"),
                most: count("maxContains"),
            });
        }
        if draft >= Draft::V2019 {
            rules.unevaluated = self.value(place, "unevaluatedItems")?;
        }
        Ok(rules)
    }

    fn condition(&mut self, place: &Place<'_>) -> Result<Option<Condition>, String> {
        let Some(test) = self.value(place, "if")? else {
            return Ok(None);
        };
        let known = place.node.get("if").and_then(Json::as_bool);
        Ok(Some(Condition {
            test,
            then: if known == Some(false) {
                None
            } else {
                self.value(place, "then")?
            },
            otherwise: if known == Some(true) {
                None
            } else {
                self.value(place, "else")?
            },
        }))
    }

    fn reference(&mut self, place: &Place<'_>, keyword: &str) -> Result<Option<Id>, String> {
        let Some(reference) = place.text(keyword) else {
            return Ok(None);
        };
        let (url, fragment) = address::join(&place.base, reference, self.registry.hosts())?;
        if let Some(pointer) = self.registry.root(&place.url)?.resolve(&url, &fragment)? {
            return self.id(&place.url, pointer).map(Some);
        }
        let pointer = self.registry.root(&url)?.resolve(&url, &fragment)?;
        self.id(&url, pointer.unwrap_or_default()).map(Some)
    }

    /// The subschema that a keyword has as its value.
    fn value(&mut self, place: &Place<'_>, keyword: &str) -> Result<Option<Id>, String> {
        let known = place.node.get(keyword);
        known.map(|_| self.id(&place.url, place.below(keyword))).transpose()
    }

    fn items(&mut self, place: &Place<'_>, keyword: &str) -> Result<Vec<Id>, String> {
        let count = place.node.get(keyword).and_then(Json::as_list).map_or(0, <[Json]>::len);
        let below = place.below(keyword);
        (0..count)
            .map(|index| self.id(&place.url, format!("{below}/{index}")))
            .collect()
    }

    fn entries(&mut self, place: &Place<'_>, keyword: &str) -> Result<Vec<(String, Id)>, String> {
        let entries = place.node.get(keyword).and_then(Json::as_map).into_iter().flatten();
        let below = place.below(keyword);
        entries
            .map(|(key, _)| Ok((key.clone(), self.id(&place.url, format!("{below}/{}", escape(key)))?)))
            .collect()
    }

    fn additional(&mut self, place: &Place<'_>, keyword: &str) -> Result<Option<Additional>, String> {
        match place.node.get(keyword) {
            Some(Json::Bool(allowed)) => Ok(Some(Additional::Allowed(*allowed))),
            _ => Ok(self.value(place, keyword)?.map(Additional::Schema)),
        }
    }
}

/// Bounds of numbers. Draft 4 makes a bound exclusive with a flag beside it.
fn numbers(place: &Place<'_>) -> Result<NumberRules, String> {
    let mut rules = NumberRules {
        minimum: place.bound("minimum"),
        maximum: place.bound("maximum"),
        exclusive_minimum: place.bound("exclusiveMinimum"),
        exclusive_maximum: place.bound("exclusiveMaximum"),
        divisor: place.bound("multipleOf"),
    };
    if place.flag("exclusiveMinimum") {
        rules.exclusive_minimum = rules.minimum.take();
    }
    if place.flag("exclusiveMaximum") {
        rules.exclusive_maximum = rules.maximum.take();
    }
    match &rules.divisor {
        Some(divisor) if !divisor.number.is_divisor() => {
            let place = location(&place.url, &place.below("multipleOf"));
            Err(format!("number at {} has too many digits", quoted(&place)))
        }
        _ => Ok(rules),
    }
}
