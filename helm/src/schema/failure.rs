//! What a value lacks to satisfy a schema, as a tree, and Helm's text of it.

use std::fmt::Write as _;

use crate::format::quoted;

/// One finding, with those that led to it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Where in the value, as a JSON pointer.
    at: String,
    kind: Kind,
    causes: Vec<Self>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Several findings of one schema.
    Group,
    /// Findings of a schema that is referred to.
    Reference,
    /// Anything else, in Helm's words.
    Words(String),
}

impl Failure {
    pub(super) fn new(at: String, words: String, causes: Vec<Self>) -> Self {
        let kind = Kind::Words(words);
        Self { at, kind, causes }
    }

    /// One finding for those of one schema, of which there is at least one.
    pub(super) fn of_all(at: String, mut causes: Vec<Self>) -> Self {
        match causes.pop() {
            Some(only) if causes.is_empty() => only,
            last => {
                causes.extend(last);
                let kind = Kind::Group;
                Self { at, kind, causes }
            }
        }
    }

    /// The finding of a schema that refers to the one with this finding.
    pub(super) fn referred(self, at: String) -> Self {
        Self {
            at,
            kind: Kind::Reference,
            causes: self.ungrouped(),
        }
    }

    /// The findings of one schema.
    pub(super) fn ungrouped(self) -> Vec<Self> {
        match self.kind {
            Kind::Group => self.causes,
            _ => vec![self],
        }
    }

    /// The lines about a value that does not satisfy a schema. The first line break is missing.
    pub(super) fn lines(self) -> String {
        let mut text = String::new();
        for cause in self.ungrouped() {
            cause.write(1, &mut text);
        }
        text.strip_prefix('\n').map_or(text.clone(), str::to_owned)
    }

    /// The innermost findings: where they are, and what is wrong there.
    pub(super) fn findings(&self) -> Vec<(String, String)> {
        match &self.kind {
            Kind::Words(words) if self.causes.is_empty() => vec![(self.at.clone(), words.clone())],
            _ => self.causes.iter().flat_map(Self::findings).collect(),
        }
    }

    fn write(&self, indent: usize, text: &mut String) {
        let is_hidden = matches!(self.kind, Kind::Reference) && self.causes.len() == 1;
        if !is_hidden {
            text.push('\n');
            for _ in 1..indent {
                text.push_str("  ");
            }
            let words = match &self.kind {
                Kind::Words(words) => words,
                Kind::Group | Kind::Reference => "validation failed",
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "- at {}: {words}", single_quoted(&self.at));
        }
        for cause in &self.causes {
            cause.write(indent + usize::from(!is_hidden), text);
        }
    }
}

/// A string in single quotes, escaped as in Go source.
pub(super) fn single_quoted(text: &str) -> String {
    let quoted = quoted(text).replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{}'", &quoted[1..quoted.len() - 1])
}

/// Names in single quotes, with commas between them.
pub(super) fn all_single_quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(single_quoted).collect();
    names.join(", ")
}
