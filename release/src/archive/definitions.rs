//! Definitions of kinds that charts bring in their `crds` folders, for the check of conditions about objects of these kinds.
//!
//! They are read where a condition needs them, and so far as they are small: what is not read is not checked.

use std::collections::BTreeSet;

use crds::release_files::bound_aliases;
use serde::Deserialize;
use serde_json::Value;

use crate::description::bracket_too_many_of;

/// Bytes of one definition that is read. The parser takes a hundred times as much for a moment; most real ones have less than this.
const MAX_BYTES: usize = 256 << 10;
/// Brackets in one definition, so that length times brackets stays what it is for descriptions.
const MAX_BRACKETS: usize = 256;
/// Bytes of all definitions of an archive together.
const MAX_BYTES_TOGETHER: usize = 1 << 20;

const KIND: &str = "CustomResourceDefinition";

/// The definitions of some groups of the API.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Definitions {
    pub(crate) found: Vec<Value>,
    read: usize,
}

impl Definitions {
    /// Whether a file of an archive is where charts have their definitions: in `crds`, of the chart itself or of one that lies in it unpacked.
    pub(super) fn lie_in(parts: &[String]) -> bool {
        let [_, folders @ .., file] = parts else { return false };
        let below_charts = folders
            .chunks(2)
            .find(|pair| pair[0] != "charts")
            .map(|pair| pair[0].as_str());
        let is_yaml = [".yaml", ".yml", ".json"].iter().any(|ending| file.ends_with(ending));
        is_yaml && below_charts == Some("crds")
    }

    /// Takes those of the groups out of a file. What is none, or too large, is passed over: it is Helm that reads these files, not the check.
    pub(super) fn take(&mut self, text: &str, groups: &BTreeSet<String>) {
        for document in text.split("\n---") {
            let is_wanted = document.contains(KIND) && groups.iter().any(|group| document.contains(group.as_str()));
            let is_small = document.len() <= MAX_BYTES
                && self.read + document.len() <= MAX_BYTES_TOGETHER
                && bracket_too_many_of(document.as_bytes(), MAX_BRACKETS).is_none()
                && bound_aliases(document.trim_start_matches('-').as_bytes()).is_ok();
            if !is_wanted || !is_small {
                continue;
            }
            self.read += document.len();
            let documents = serde_yaml::Deserializer::from_str(document.trim_start_matches('-'));
            let read = documents.map_while(|document| Value::deserialize(document).ok());
            self.found.extend(read.filter(|value| {
                let group = value.pointer("/spec/group").and_then(Value::as_str);
                value["kind"] == KIND && group.is_some_and(|group| groups.contains(group))
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(group: &str) -> String {
        format!("apiVersion: apiextensions.k8s.io/v1\nkind: {KIND}\nspec:\n  group: {group}\n")
    }

    fn found(text: &str) -> usize {
        let mut definitions = Definitions::default();
        definitions.take(text, &BTreeSet::from(["example.org".to_owned()]));
        definitions.found.len()
    }

    #[test]
    fn definitions_lie_in_the_crds_folder_of_a_chart_or_of_one_within() {
        let lie = |path: &str| {
            let parts: Vec<_> = path.split('/').map(str::to_owned).collect();
            Definitions::lie_in(&parts)
        };
        assert!(lie("cni/crds/a.yaml") && lie("cni/crds/v1/a.yml") && lie("cni/charts/sub/crds/a.json"));
        for path in [
            "crds/a.yaml",
            "cni/a.yaml",
            "cni/templates/crds/a.yaml",
            "cni/crds/README.md",
            "cni/charts/crds.yaml",
        ] {
            assert!(!lie(path), "{path}");
        }
    }

    #[test]
    fn only_definitions_of_the_groups_are_kept() {
        let text = format!(
            "---\n{}---\n{}---\nkind: [\n---\n{}",
            definition("example.org"),
            definition("other.org"),
            definition("example.org")
        );
        assert_eq!(found(&text), 2);
    }

    #[test]
    fn what_would_keep_the_parser_busy_is_passed_over() {
        let padded = |padding: &str| format!("{}# {padding}\n", definition("example.org"));
        assert_eq!(found(&padded("short")), 1);
        assert_eq!(found(&padded(&"x".repeat(MAX_BYTES))), 0);
        assert_eq!(found(&padded(&"[".repeat(MAX_BRACKETS + 1))), 0);
        let named = |times| {
            format!(
                "{}a: [&a {}{}]\n",
                definition("example.org"),
                "x".repeat(10_000),
                ", *a".repeat(times)
            )
        };
        assert_eq!((found(&named(10)), found(&named(1_000))), (1, 0));
        let many = format!("{}\n---\n", padded(&"x".repeat(MAX_BYTES - 200))).repeat(10);
        assert!(found(&many) <= MAX_BYTES_TOGETHER / (MAX_BYTES - 200));
    }
}
