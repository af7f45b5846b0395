//! Where the fields of a document stand in its text.

use super::decode::{is_merge, key_text, scalar};
use super::error::Error;
use super::scan::{Content, Id, Source, Written};

/// The line of a text, from 1, that a field of its first document stands on: that of its key, or where an item of a list begins. A path has
/// the keys, and the positions of items from 0. What an alias or a merge key stands for is where it is written.
pub(crate) fn line_of(text: &[u8], path: &[&str]) -> Result<Option<usize>, Error> {
    let source = Source::read(text)?;
    let line = source.root().and_then(|root| source.line_below(root, path));
    Ok(line.filter(|_| !has_other_breaks(text)))
}

/// Whether YAML sees lines where others see none.
fn has_other_breaks(text: &[u8]) -> bool {
    let returns = memchr::memchr_iter(b'\r', text);
    let mut alone = returns.filter(|at| text.get(at + 1) != Some(&b'\n'));
    let is_break = |character| matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}');
    alone.next().is_some() || String::from_utf8_lossy(text).contains(is_break)
}

impl Source {
    fn line_below(&self, id: Id, path: &[&str]) -> Option<usize> {
        let node = self.node(id);
        let Some((first, rest)) = path.split_first() else {
            return Some(node.line);
        };
        match &node.content {
            Content::Map(entries) => {
                let (line, value) = self.entry(entries, first)?;
                if rest.is_empty() {
                    return Some(line);
                }
                self.line_below(value, rest)
            }
            Content::List(items) => self.line_below(*items.get(first.parse::<usize>().ok()?)?, rest),
            Content::Alias { target, .. } => self.line_below(*target, path),
            Content::Scalar { .. } => None,
        }
    }

    /// The line of a key, and its value. The last one counts; a merge key counts where it stands.
    fn entry(&self, entries: &[(Id, Id)], wanted: &str) -> Option<(usize, Id)> {
        entries.iter().rev().find_map(|&(key, value)| {
            if is_merge(self, key) {
                return self.merged(value, wanted);
            }
            let key = self.node(key);
            is_named(key, wanted).then_some((key.line, value))
        })
    }

    /// The first of several maps wins. Reading the document has seen that none of them contains itself.
    fn merged(&self, id: Id, wanted: &str) -> Option<(usize, Id)> {
        match &self.node(id).content {
            Content::Map(entries) => self.entry(entries, wanted),
            Content::List(items) => items.iter().find_map(|&item| self.merged(item, wanted)),
            Content::Alias { target, .. } => self.merged(*target, wanted),
            Content::Scalar { .. } => None,
        }
    }
}

fn is_named(key: &Written, wanted: &str) -> bool {
    let Content::Scalar { text, plain } = &key.content else {
        return false;
    };
    let name = scalar(&key.tag, text, *plain).ok().and_then(|key| key_text(&key).ok());
    name.is_some_and(|name| name == wanted)
}
