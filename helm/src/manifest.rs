//! From rendered files to manifests: documents, hooks, the order of installation. Knows no templates.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::bounds::{hold, hold_document};
use crate::fields::{self, Setter, Struct, is_field};
use crate::profile::{DocumentRule, Profile};
use crate::template::{Origin, Output};
use crate::text::{self, trim_space};
use crate::warning::Said;
use crate::yaml::{self, Decoded, Node};

/// One document of a rendered file.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The template that it came from: `chart/templates/name.yaml`.
    pub source: String,
    /// The document as the template wrote it, without space before it; from v4.2 on it keeps space at its end, as Helm prints it. Bytes,
    /// because Helm prints whatever stands in a template.
    pub text: Vec<u8>,
    /// What `helm.sh/hook` says, when it is a hook.
    pub hook: Option<Hook>,
    kind: String,
    origin: Arc<Origin>,
    /// Where the text begins in the output of the template.
    start: usize,
    /// Read when somebody asks: what prints manifests needs no data.
    decoded: OnceLock<Decoded>,
}

impl Manifest {
    /// The line of the template, from 1, that the document begins in; none for a language that does not tell.
    pub fn line(&self) -> Option<usize> {
        self.origin.line(self.start)
    }

    /// The line of the template, from 1, that wrote a line of [`Manifest::text`], also from 1: the line of the text itself, or that of the
    /// action which printed it or called what did. Takes time in proportion to the template.
    pub fn template_line(&self, line: usize) -> Option<usize> {
        let mut lines = self.text.split_inclusive(|byte| *byte == b'\n');
        let before: usize = lines.by_ref().take(line.checked_sub(1)?).map(<[u8]>::len).sum();
        let blanks = lines.next()?.iter().take_while(|byte| **byte == b' ').count();
        self.origin.line(self.start + before + blanks)
    }

    /// The line of [`Manifest::text`], from 1, that a field of the document stands on: that of its key, or where an item of a list begins.
    /// The path has the keys, and the positions of items from 0: `["spec", "containers", "0", "image"]`. With
    /// [`Manifest::template_line`], it tells where a field comes from. None where there is no such field, or where lines end with anything but line feeds.
    pub fn line_of(&self, path: &[&str]) -> Option<usize> {
        let complete = complete(&self.text);
        let line = yaml::line_of(&complete, path).or_else(|_| yaml::line_of(&self.text, path));
        line.ok().flatten()
    }

    /// Whether it is a hook that runs as a test.
    pub(crate) fn is_test(&self) -> bool {
        let is_test = |event: &String| TEST_EVENTS.contains(&event.as_str());
        self.hook.as_ref().is_some_and(|hook| hook.events.iter().any(is_test))
    }

    /// The document as data, integers kept as integers; null when there are only comments.
    pub fn document(&self) -> &Node {
        &self.decoded().node
    }

    /// The same, taken out.
    pub fn into_document(mut self) -> Node {
        self.decoded();
        self.decoded.take().unwrap_or_default().node
    }

    /// Keys that a mapping of the document has more than once; the last value won.
    pub fn duplicate_keys(&self) -> &[String] {
        &self.decoded().duplicate_keys
    }

    fn decoded(&self) -> &Decoded {
        // A text that cannot be read became no manifest.
        let read = || decode(&complete(&self.text)).unwrap_or_default();
        self.decoded.get_or_init(read)
    }
}

/// Helm prints and applies a document with a line break behind it, which a block scalar at its end keeps.
fn complete(text: &[u8]) -> Vec<u8> {
    [text, b"\n"].concat()
}

/// Helm's errors are those of the document without the line break.
fn decode(complete: &[u8]) -> Result<Decoded, yaml::Error> {
    let text = complete.strip_suffix(b"\n").unwrap_or(complete);
    yaml::read(complete).or_else(|_| yaml::read(text))
}

/// When a hook runs, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hook {
    /// The events of `helm.sh/hook`, in lower case.
    pub events: Vec<String>,
    /// `helm.sh/hook-weight`, 0 when it is no number.
    pub weight: i64,
    /// `helm.sh/hook-delete-policy`, in lower case.
    pub delete_policies: Vec<String>,
}

/// A rendered document that is no manifest. Displays as Helm's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("YAML parse error on {source_file}: {problem}")]
pub struct ManifestError {
    /// The template that it came from.
    pub source_file: String,
    /// The line in it, from 1, that the document begins in; none for a language that does not tell.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub problem: String,
    /// All that was rendered, as Helm shows it on demand.
    rendered: Vec<u8>,
}

impl ManifestError {
    /// Adds what was rendered, by template path.
    pub(crate) fn with(mut self, files: &BTreeMap<String, Output>) -> Self {
        for (source, Output { text, .. }) in files.iter().filter(|(_, output)| !trim_space(&output.text).is_empty()) {
            write(&mut self.rendered, source, text);
        }
        self
    }

    /// See [`crate::RenderError::debug_output`].
    pub(crate) fn debug_output(&self) -> Vec<u8> {
        [trim_space(&self.rendered), b"\n"].concat()
    }
}

/// Adds a document to what is printed.
pub(crate) fn write(out: &mut Vec<u8>, source: &str, text: &[u8]) {
    for part in [b"---\n# Source: ", source.as_bytes(), b"\n", text, b"\n"] {
        out.extend_from_slice(part);
    }
}

/// The manifests of a release, and what was dropped on the way.
pub(crate) struct Sorted {
    /// In order of installation.
    pub(crate) manifests: Vec<Manifest>,
    /// By kind, as Helm prints them; not the order in which they run.
    pub(crate) hooks: Vec<Manifest>,
}

const EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];

/// The second is how Helm 2 wrote the first.
const TEST_EVENTS: [&str; 2] = ["test", "test-success"];

/// Splits and sorts the rendered files, which are given by template path.
pub(crate) fn sort(
    files: &BTreeMap<String, Output>,
    profile: &Profile,
    warnings: &mut Vec<Said>,
) -> Result<Sorted, ManifestError> {
    let mut sorted = Sorted {
        manifests: Vec::new(),
        hooks: Vec::new(),
    };
    for (source, Output { text, origin }) in files {
        let base = source.rsplit('/').next().unwrap_or_default();
        if base.starts_with('_') || trim_space(text).is_empty() {
            continue;
        }
        for document in split(text, profile.documents) {
            // A document is a part of the text.
            let start = document.as_ptr().addr() - text.as_ptr().addr();
            let Some(manifest) = read(source, document, warnings).map_err(|error| ManifestError {
                line: origin.line(start),
                ..error
            })?
            else {
                continue;
            };
            let list = match manifest.hook {
                Some(_) => &mut sorted.hooks,
                None => &mut sorted.manifests,
            };
            list.push(Manifest {
                origin: Arc::clone(origin),
                start,
                ..manifest
            });
        }
    }
    let order: HashMap<&str, usize> = profile.kind_order.iter().copied().zip(0..).collect();
    for list in [&mut sorted.manifests, &mut sorted.hooks] {
        list.sort_by(|left, right| place(&order, &left.kind).cmp(&place(&order, &right.kind)));
    }
    Ok(sorted)
}

/// Known kinds by their order, then the others by name.
fn place<'k>(order: &HashMap<&str, usize>, kind: &'k str) -> (usize, &'k str) {
    match order.get(kind) {
        Some(&position) => (position, ""),
        None => (usize::MAX, kind),
    }
}

/// The documents of a text, as a profile separates them.
pub(crate) fn documents<'t>(text: &'t [u8], profile: &Profile) -> Vec<&'t [u8]> {
    split(text, profile.documents)
}

/// The documents of a file. A separator right behind another one stays in the document, as in Helm.
fn split(text: &[u8], rule: DocumentRule) -> Vec<&[u8]> {
    let (separator, trim): (Separator, Trim) = match rule {
        DocumentRule::Trimmed => (separator, trim_space),
        DocumentRule::KeepsEndOfFile => (separator, trim_start),
        DocumentRule::KeepsEnds => (line_separator, trim_start),
    };
    let text = trim(text);
    let mut start = Some(0);
    let documents = std::iter::from_fn(move || {
        let from = start?;
        let separator = separator(text, from);
        start = separator.as_ref().map(|separator| separator.end);
        Some(&text[from..separator.map_or(text.len(), |separator| separator.start)])
    });
    documents.map(trim).filter(|document| !document.is_empty()).collect()
}

/// Finds the first separator at or behind a position.
type Separator = fn(&[u8], usize) -> Option<Range<usize>>;

/// Takes space off a text.
type Trim = fn(&[u8]) -> &[u8];

fn trim_start(text: &[u8]) -> &[u8] {
    text::trim_start(text, text::is_space)
}

/// The first line at or behind a position that begins with `---`, with the blanks behind the dashes.
fn line_separator(text: &[u8], from: usize) -> Option<Range<usize>> {
    let begins_line = |dashes: &usize| *dashes == 0 || text[*dashes - 1] == b'\n';
    let mut found = memchr::memmem::find_iter(&text[from..], b"---").map(|at| from + at);
    let dashes = found.find(begins_line)?;
    let is_blank = |byte: &&u8| matches!(byte, b'\t' | b' ');
    let behind = text[dashes + 3..].iter().take_while(is_blank).count();
    Some(dashes..dashes + 3 + behind)
}

/// The first line at or behind a position that begins with `---`, with all space around the dashes. Nothing of the space before them may
/// lie before the position.
fn separator(text: &[u8], from: usize) -> Option<Range<usize>> {
    let is_space = |byte: &u8| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ');
    let begins_line = |dashes: &usize| *dashes == 0 || (*dashes > from && text[*dashes - 1] == b'\n');
    let mut found = memchr::memmem::find_iter(&text[from..], b"---").map(|at| from + at);
    let dashes = found.find(begins_line)?;
    let before = text[from..dashes]
        .iter()
        .rev()
        .take_while(|byte| is_space(byte))
        .count();
    let behind = text[dashes + 3..].iter().take_while(|byte| is_space(byte)).count();
    Some(dashes - before..dashes + 3 + behind)
}

/// The documents of a file that is no template: nothing in it is a hook, and nothing is sorted.
pub(crate) fn plain(source: &str, text: &[u8], profile: &Profile) -> Result<Vec<Manifest>, ManifestError> {
    let read = |document: &[u8]| {
        let start = document.as_ptr().addr() - text.as_ptr().addr();
        let failed = |problem| ManifestError {
            source_file: source.to_owned(),
            line: Some(text[..start].split(|byte| *byte == b'\n').count()),
            problem,
            rendered: Vec::new(),
        };
        let decoded = decode(&complete(document)).map_err(|error| failed(yaml::convert_error(error)))?;
        hold(decoded.node.memory() + document.len()).map_err(|bound| failed(bound.to_string()))?;
        let kind = decoded.node.get("kind").and_then(Node::as_text).unwrap_or_default();
        Ok(Manifest {
            source: source.to_owned(),
            text: document.to_vec(),
            hook: None,
            kind: kind.to_owned(),
            origin: Arc::default(),
            start: 0,
            decoded: OnceLock::from(decoded),
        })
    };
    documents(text, profile).into_iter().map(read).collect()
}

/// Reads one document; nothing for a hook of an unknown event, which Helm drops.
fn read(source: &str, text: &[u8], warnings: &mut Vec<Said>) -> Result<Option<Manifest>, ManifestError> {
    let failed = |problem| ManifestError {
        source_file: source.to_owned(),
        line: None,
        problem,
        rendered: Vec::new(),
    };
    hold(size_of::<Manifest>() + text.len()).map_err(|bound| failed(bound.to_string()))?;
    let mut complete = complete(text);
    let decoded = OnceLock::new();
    let head = if let Some(skimmed) = yaml::skim(&complete, Head::wants) {
        // Somebody may ask for the data later, when there is no bound anymore.
        hold_document(skimmed.memory).map_err(|bound| failed(bound.to_string()))?;
        Head::read(&skimmed.node)
    } else {
        let document = decode(&complete).map_err(yaml::convert_error).map_err(failed)?;
        hold(document.node.memory()).map_err(|bound| failed(bound.to_string()))?;
        Head::read(&decoded.get_or_init(|| document).node)
    };
    let head = head.map_err(failed)?;
    let mut hook = None;
    let annotations = head.metadata.annotations.unwrap_or_default();
    if let Some(events) = annotations.get("helm.sh/hook") {
        hook = Hook::new(events, &annotations);
        if hook.is_none() {
            warnings.push(Said::UnknownHook { events: events.clone() });
            return Ok(None);
        }
    }
    complete.pop();
    Ok(Some(Manifest {
        source: source.to_owned(),
        text: complete,
        hook,
        kind: head.kind,
        origin: Arc::default(),
        start: 0,
        decoded,
    }))
}

/// What Helm wants to know of every document.
#[derive(Default)]
struct Head {
    api_version: String,
    kind: String,
    metadata: HeadMetadata,
}

#[derive(Default)]
struct HeadMetadata {
    name: String,
    annotations: Option<BTreeMap<String, String>>,
}

impl Struct for Head {
    const NAME: &'static str = "SimpleHead";
    const TYPE: &'static str = "releaseutil.SimpleHead";
    const FIELDS: &'static [(&'static str, Setter<Self>)] = &[
        ("apiVersion", |head, field| field.text(&mut head.api_version)),
        ("kind", |head, field| field.text(&mut head.kind)),
        ("metadata", |head, field| field.inner(&mut head.metadata)),
    ];
}

impl Struct for HeadMetadata {
    const NAME: &'static str = "";
    const TYPE: &'static str =
        r#"struct { Name string "json:\"name\""; Annotations map[string]string "json:\"annotations\"" }"#;
    const FIELDS: &'static [(&'static str, Setter<Self>)] = &[
        ("name", |metadata, field| field.text(&mut metadata.name)),
        ("annotations", |metadata, field| field.pairs(&mut metadata.annotations)),
    ];
}

impl Head {
    /// Whether a key of a document can be one of those that are read here; Go takes any case.
    fn wants(key: &str) -> bool {
        Self::FIELDS.iter().any(|(wanted, _)| is_field(wanted, key))
    }

    fn read(document: &Node) -> Result<Self, String> {
        let mut head = Self::default();
        fields::decode(document, &mut head)?;
        Ok(head)
    }
}

impl Hook {
    fn new(events: &str, annotations: &BTreeMap<String, String>) -> Option<Self> {
        let words = |text: &str| -> Vec<String> { text.split(',').map(|word| word.trim().to_lowercase()).collect() };
        let events = words(events);
        if !events.iter().all(|event| EVENTS.contains(&event.as_str())) {
            return None;
        }
        let text = |name: &str| annotations.get(name).map(String::as_str);
        Some(Self {
            events,
            weight: text("helm.sh/hook-weight")
                .and_then(|weight| weight.parse().ok())
                .unwrap_or(0),
            delete_policies: text("helm.sh/hook-delete-policy").map(words).unwrap_or_default(),
        })
    }
}
