//! A rendering as `helm template` writes it, and what its flags leave out of it.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::chart::wildcards::{Pattern, Steps};
use crate::manifest::{Manifest, documents, write};
use crate::profile::Profile;
use crate::render::Rendering;
use crate::text::trim_space;

/// What is printed of a rendering. The default is everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printing {
    /// Hooks are printed. `--no-hooks` says no.
    pub hooks: bool,
    /// Hooks that are tests are printed. `--skip-tests` says no.
    pub tests: bool,
    /// `--show-only`: patterns of template paths without the chart's name, as `templates/*.yaml`. None for all manifests.
    pub only: Vec<String>,
}

impl Default for Printing {
    fn default() -> Self {
        Self {
            hooks: true,
            tests: true,
            only: Vec::new(),
        }
    }
}

/// A pattern of [`Printing::only`] that fits no manifest. Displays as Helm's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not find template {0} in chart")]
pub struct NotInChart(pub String);

impl Rendering {
    /// What `helm template` writes to its standard output, byte for byte.
    pub fn stdout(&self) -> Vec<u8> {
        self.all(&Printing::default())
    }

    /// The same with its flags.
    pub fn print(&self, printing: &Printing, profile: &Profile) -> Result<Vec<u8>, NotInChart> {
        let all = self.all(printing);
        if printing.only.is_empty() {
            return Ok(all);
        }
        let documents: Vec<(&[u8], String)> = documents(&all, profile)
            .into_iter()
            .filter_map(|document| Some((document, source(document)?)))
            .collect();
        let mut out = Vec::new();
        for pattern in &printing.only {
            let before = out.len();
            for (document, _) in documents.iter().filter(|(_, source)| fits(pattern, source)) {
                out.extend_from_slice(b"---\n");
                out.extend_from_slice(document);
                out.push(b'\n');
            }
            if out.len() == before {
                return Err(NotInChart(pattern.clone()));
            }
        }
        Ok(out)
    }

    /// The hooks that are printed.
    pub fn hooks_for(&self, printing: &Printing) -> impl Iterator<Item = &Manifest> {
        let Printing { hooks, tests, only: _ } = *printing;
        let wanted = move |hook: &&Manifest| hooks && (tests || !hook.is_test());
        self.hooks.iter().filter(wanted)
    }

    fn all(&self, printing: &Printing) -> Vec<u8> {
        let texts = self.manifests.iter().chain(&self.hooks);
        let texts = texts.map(|manifest| manifest.source.len() + manifest.text.len());
        let files = self.crds.iter().map(|crd| crd.source.len() + crd.data.len());
        let sizes = texts.chain(files).map(|size| size + "---\n# Source: \n\n".len());
        let mut out = Vec::with_capacity(sizes.sum());
        for crd in &self.crds {
            write(&mut out, &crd.source, &crd.data);
        }
        for manifest in &self.manifests {
            write(&mut out, &manifest.source, &manifest.text);
        }
        // What is written begins with dashes, so that only its end can be space.
        out.truncate(trim_space(&out).len());
        out.push(b'\n');
        for hook in self.hooks_for(printing) {
            write(&mut out, &hook.source, &hook.text);
        }
        out
    }
}

/// What a printed document says it came from, without the chart's name.
fn source(document: &[u8]) -> Option<String> {
    static SOURCE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("# Source: [^/]+/(.+)").expect("a constant pattern compiles"));
    let source = SOURCE.captures(document)?.get(1)?;
    Some(String::from_utf8_lossy(source.as_bytes()).into_owned())
}

fn fits(pattern: &str, source: &str) -> bool {
    Pattern::new(pattern).is_some_and(|pattern| pattern.matches(source, &mut Steps(u64::MAX)))
}
