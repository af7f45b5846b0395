//! The documents that schemas refer to: which URLs and anchors they define, and which draft each part of them follows. Nothing is fetched: a
//! document is the schema of a chart or one of json-schema.org.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::address;
use super::document::{Json, PointerError, escape};
use super::draft::{self, Draft, Place};
use super::failure::Failure;
use super::validate::failure;
use super::{SchemaRules, Urns};
use crate::bounds::{BYTES_PER_STEP, spend};
use crate::format::quoted;
use crate::text;
use crate::url::{HostRule, Url};

/// How many bytes all pointers of a schema may have together.
const MAX_POINTER_BYTES: usize = 64 << 20;

/// A document with all that was found in it so far.
pub(super) struct Root {
    url: String,
    pub(super) document: Rc<Json>,
    resources: Resources,
    /// Where the resource of a URL is.
    pointers: HashMap<String, String>,
    /// Pointers of all subschemas that were looked at.
    collected: HashSet<String>,
}

/// The schemas of a document that have a URL of their own, by pointer.
pub(super) type Resources = HashMap<String, Resource>;

/// A schema with a URL of its own.
pub(super) struct Resource {
    pub(super) pointer: String,
    pub(super) url: String,
    pub(super) draft: Draft,
    anchors: BTreeMap<String, String>,
    dynamic_anchors: HashSet<String>,
}

/// All documents of one compilation. Errors are Helm's texts.
pub(super) struct Registry {
    rules: SchemaRules,
    documents: HashMap<String, Rc<Json>>,
    roots: HashMap<String, Root>,
    /// URNs that stand for the schema `true`, in the order in which they were needed.
    unresolved: Vec<String>,
    pointer_bytes: usize,
}

/// A subschema to look at.
struct Part<'d> {
    node: &'d Json,
    /// The URL of the resource around it.
    base: String,
    pointer: String,
    fallback: Draft,
}

/// A place in a document, as Helm's errors name it.
pub(super) fn location(url: &str, pointer: &str) -> String {
    format!("{url}#{}", address::encode(pointer))
}

impl Registry {
    /// A registry that knows what json-schema.org publishes.
    pub(super) fn new(rules: SchemaRules) -> Self {
        Self {
            rules,
            documents: HashMap::new(),
            roots: HashMap::new(),
            unresolved: Vec::new(),
            pointer_bytes: 0,
        }
    }

    /// A registry that knows a document under a URL besides.
    pub(super) fn with(url: &str, document: Json, rules: SchemaRules) -> Self {
        let mut registry = Self::new(rules);
        registry.documents.insert(url.to_owned(), Rc::new(document));
        registry
    }

    /// The URNs that nothing can load, so that they allow everything.
    pub(super) fn into_unresolved(self) -> Vec<String> {
        self.unresolved
    }

    /// Which hosts URLs may have.
    pub(super) const fn hosts(&self) -> HostRule {
        self.rules.hosts
    }

    /// Counts a pointer that is kept.
    pub(super) fn keep_pointer(&mut self, pointer: &str) -> Result<(), String> {
        self.pointer_bytes += pointer.len();
        if self.pointer_bytes > MAX_POINTER_BYTES {
            return Err("schema is too large".to_owned());
        }
        spend(1 + (pointer.len() / BYTES_PER_STEP) as u64).map_err(|bound| bound.to_string())
    }

    fn load(&mut self, url: &str) -> Result<Rc<Json>, String> {
        if let Some(document) = self.documents.get(url) {
            return Ok(Rc::clone(document));
        }
        let document = match draft::document(url) {
            Some(text) => Json::read(text.as_bytes())?,
            None if self.rules.urns == Urns::AllowAll && is_urn(url, self.hosts()) => {
                self.unresolved.push(url.to_owned());
                Json::Bool(true)
            }
            None => return Err(not_loaded(url, self.hosts())),
        };
        let document = Rc::new(document);
        self.documents.insert(url.to_owned(), Rc::clone(&document));
        Ok(document)
    }

    /// The document of a URL, checked against the metaschema.
    pub(super) fn root(&mut self, url: &str) -> Result<&Root, String> {
        if !self.roots.contains_key(url) {
            let document = self.load(url)?;
            let mut root = Root {
                url: url.to_owned(),
                document: Rc::clone(&document),
                resources: HashMap::new(),
                pointers: HashMap::new(),
                collected: HashSet::new(),
            };
            let whole = Part {
                node: &document,
                base: url.to_owned(),
                pointer: String::new(),
                fallback: Draft::LATEST,
            };
            self.collect(&mut root, whole)?;
            if draft::published(url).is_none() {
                root.check("", &document, self.rules)?;
            }
            self.roots.insert(url.to_owned(), root);
        }
        self.roots.get(url).ok_or_else(|| not_loaded(url, self.rules.hosts))
    }

    /// Sees to it that a part of a document is known as a schema, also where no keyword puts one.
    pub(super) fn ensure(&mut self, url: &str, pointer: &str) -> Result<(), String> {
        let hosts = self.hosts();
        let root = self.root(url)?;
        if root.collected.contains(pointer) {
            return Ok(());
        }
        let document = Rc::clone(&root.document);
        root.at(pointer)?;
        let around = root.resource(pointer).ok_or_else(|| not_loaded(url, hosts))?;
        let (base, fallback) = (around.url.clone(), around.draft);
        let (Some(mut root), Ok(node)) = (self.roots.remove(url), document.at(pointer)) else {
            return Err(not_loaded(url, hosts));
        };
        let part = Part {
            node,
            base,
            pointer: pointer.to_owned(),
            fallback,
        };
        self.collect(&mut root, part)?;
        root.check(pointer, node, self.rules)?;
        self.roots.insert(url.to_owned(), root);
        Ok(())
    }

    fn collect(&mut self, root: &mut Root, part: Part<'_>) -> Result<(), String> {
        if root.collected.contains(&part.pointer) {
            return Ok(());
        }
        self.keep_pointer(&part.pointer)?;
        root.collected.insert(part.pointer.clone());
        let Json::Map(entries) = part.node else {
            if part.pointer.is_empty() {
                root.add(Resource::new(part.pointer, part.base, part.fallback));
            }
            return Ok(());
        };
        let (draft, base) = self.enter(root, &part)?;
        let base_pointer = root.pointers.get(&base).cloned().unwrap_or_default();
        let url = root.url.clone();
        let resource = root
            .resources
            .get_mut(&base_pointer)
            .ok_or_else(|| not_loaded(&base, self.hosts()))?;
        resource.collect_anchors(entries, &part.pointer, &url)?;
        let fallback = resource.draft;
        for (keyword, place) in draft.places() {
            let Some(node) = entries.get(keyword) else { continue };
            let pointer = format!("{}/{}", part.pointer, escape(keyword));
            let inner = |node, pointer| Part {
                node,
                base: base.clone(),
                pointer,
                fallback,
            };
            match (place, node) {
                (Place::Value, node) => self.collect(root, inner(node, pointer))?,
                (Place::Items, Json::List(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        self.collect(root, inner(item, format!("{pointer}/{index}")))?;
                    }
                }
                (Place::Entries, Json::Map(entries)) => {
                    for (key, entry) in entries {
                        self.collect(root, inner(entry, format!("{pointer}/{}", escape(key))))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The draft of a subschema and the URL of its resource, which begins here if it has an identifier.
    fn enter(&mut self, root: &mut Root, part: &Part<'_>) -> Result<(Draft, String), String> {
        let mut draft = self.draft(&root.url, part)?;
        let mut names_draft = part.node.get("$schema").and_then(Json::as_text).is_some();
        let mut id = identifier(draft, part.node);
        if id.is_none() && !part.pointer.is_empty() {
            (draft, names_draft) = (part.fallback, false);
            id = identifier(draft, part.node);
        }
        let base = match id {
            Some(id) => {
                address::join(&part.base, id, self.hosts())
                    .map_err(|_| format!("error in parsing id at {}", quoted(&location(&root.url, &part.pointer))))?
                    .0
            }
            None if part.pointer.is_empty() => part.base.clone(),
            None => return Ok((draft, part.base.clone())),
        };
        match root.pointers.get(&base) {
            Some(other) if *other != part.pointer => Err(format!(
                "duplicate id {} in {} at {} and {}",
                quoted(&base),
                quoted(&root.url),
                quoted(&part.pointer),
                quoted(other)
            )),
            Some(_) => Ok((draft, base)),
            None => {
                let own = if names_draft { draft } else { part.fallback };
                root.add(Resource::new(part.pointer.clone(), base.clone(), own));
                Ok((draft, base))
            }
        }
    }

    /// The draft that `$schema` names, directly or through documents of json-schema.org.
    fn draft(&mut self, url: &str, part: &Part<'_>) -> Result<Draft, String> {
        let mut document = None;
        let mut seen = HashSet::new();
        loop {
            let node = document.as_deref().unwrap_or(part.node);
            let Some(named) = node.get("$schema").and_then(Json::as_text) else {
                return Ok(part.fallback);
            };
            let (named, fragment) = address::split(named);
            if let Some(draft) = Draft::by_url(named).filter(|_| fragment.is_empty()) {
                return Ok(draft);
            }
            let named = named.to_owned();
            if let Err(problem) = Url::parse(named.as_bytes(), self.hosts()) {
                let place = location(url, &part.pointer);
                return Err(format!("invalid $schema in {}: {problem}", quoted(&place)));
            }
            if document.is_none() && part.pointer.is_empty() && named == url {
                return Err(format!("draft {} is not supported", quoted(&named)));
            }
            if !seen.insert(named.clone()) {
                return Err(format!("cycle in resolving $schema in {}", quoted(&named)));
            }
            document = Some(self.load(&named)?);
        }
    }
}

fn is_urn(url: &str, hosts: HostRule) -> bool {
    Url::parse(url.as_bytes(), hosts).is_ok_and(|url| url.scheme == b"urn")
}

/// Why a document is not there, in Helm's words as far as it has any: it would look in the network and on the disk.
fn not_loaded(url: &str, hosts: HostRule) -> String {
    let problem = match Url::parse(url.as_bytes(), hosts) {
        Err(problem) => problem,
        Ok(parsed) => match parsed.scheme.as_slice() {
            b"http" | b"https" => format!("HTTP request failed for {url}: schemas are not fetched from the network"),
            b"file" => {
                let path = text::lossy(&parsed.path);
                format!("open {path}: schemas are not read from files")
            }
            _ => format!("no URLLoader registered for {}", quoted(url)),
        },
    };
    format!("failing loading {}: {problem}", quoted(url))
}

/// The identifier of a subschema, without fragment.
fn identifier(draft: Draft, node: &Json) -> Option<&str> {
    if draft < Draft::V2019 && node.get("$ref").is_some() {
        return None;
    }
    let id = node.get(draft.id_keyword())?.as_text()?;
    Some(address::split(id).0).filter(|id| !id.is_empty())
}

impl Root {
    fn add(&mut self, resource: Resource) {
        self.pointers.insert(resource.url.clone(), resource.pointer.clone());
        self.resources.insert(resource.pointer.clone(), resource);
    }

    /// What is at a pointer.
    pub(super) fn at(&self, pointer: &str) -> Result<&Json, String> {
        let place = || quoted(&location(&self.url, pointer));
        self.document.at(pointer).map_err(|error| match error {
            PointerError::Invalid => format!("invalid json-pointer {}", place()),
            PointerError::NotFound => format!("json-pointer in {} not found", place()),
        })
    }

    /// The innermost resource around a pointer.
    pub(super) fn resource(&self, pointer: &str) -> Option<&Resource> {
        let mut pointer = pointer;
        loop {
            if let Some(resource) = self.resources.get(pointer) {
                return Some(resource);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }

    /// The pointer that a URL and a fragment mean; nothing when they belong to another document.
    pub(super) fn resolve(&self, url: &str, fragment: &str) -> Result<Option<String>, String> {
        let pointer = if url == self.url {
            Some("")
        } else {
            self.pointers.get(url).map(String::as_str)
        };
        let Some(resource) = pointer.and_then(|pointer| self.resources.get(pointer)) else {
            return Ok(None);
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(Some(format!("{}{fragment}", resource.pointer)));
        }
        match resource.anchors.get(fragment) {
            Some(pointer) => Ok(Some(pointer.clone())),
            None => Err(format!(
                "anchor in {} not found in schema {}",
                quoted(&location(&resource.url, fragment)),
                quoted(&self.url)
            )),
        }
    }

    /// Checks a part against the metaschema of its draft.
    fn check(&self, pointer: &str, node: &Json, rules: SchemaRules) -> Result<(), String> {
        let draft = self.resource(pointer).map_or(Draft::LATEST, |resource| resource.draft);
        let metaschema = draft.metaschema()?;
        match failure(metaschema, node, rules, Some(&self.resources))?.map(Failure::lines) {
            None => Ok(()),
            Some(lines) => Err(format!(
                "{} is not valid against metaschema: jsonschema validation failed with '{}'\n{lines}",
                quoted(&location(&self.url, pointer)),
                metaschema.location()
            )),
        }
    }
}

impl Resource {
    fn new(pointer: String, url: String, draft: Draft) -> Self {
        Self {
            pointer,
            url,
            draft,
            anchors: BTreeMap::new(),
            dynamic_anchors: HashSet::new(),
        }
    }

    /// Its dynamic anchors and where they are.
    pub(super) fn dynamic_anchors(&self) -> impl Iterator<Item = (&String, &String)> {
        self.anchors
            .iter()
            .filter(|(name, _)| self.dynamic_anchors.contains(*name))
    }

    fn collect_anchors(
        &mut self,
        entries: &BTreeMap<String, Json>,
        pointer: &str,
        document: &str,
    ) -> Result<(), String> {
        let text = |keyword: &str| entries.get(keyword).and_then(Json::as_text);
        if self.draft < Draft::V2019 {
            let id = text(self.draft.id_keyword()).filter(|_| !entries.contains_key("$ref"));
            let Some(id) = id else { return Ok(()) };
            let (_, fragment) = address::split_decoded(id)
                .map_err(|_| format!("error in parsing anchor at {}", quoted(&location(document, pointer))))?;
            if fragment.is_empty() || fragment.starts_with('/') {
                return Ok(());
            }
            return self.add_anchor(&fragment, pointer, document);
        }
        if let Some(name) = text("$anchor") {
            self.add_anchor(name, pointer, document)?;
        }
        if self.draft >= Draft::V2020
            && let Some(name) = text("$dynamicAnchor")
        {
            self.add_anchor(name, pointer, document)?;
            self.dynamic_anchors.insert(name.to_owned());
        }
        Ok(())
    }

    fn add_anchor(&mut self, name: &str, pointer: &str, document: &str) -> Result<(), String> {
        match self.anchors.get(name) {
            Some(other) if other != pointer => Err(format!(
                "duplicate anchor {} in {} at {} and {}",
                quoted(name),
                quoted(document),
                quoted(other),
                quoted(pointer)
            )),
            _ => {
                self.anchors.insert(name.to_owned(), pointer.to_owned());
                Ok(())
            }
        }
    }
}
