//! Where a matcher finds itself in a text, and how many bytes it may take there. Not all matchers tell the first place, nor all lengths.

use super::matcher::{Every, Matcher, Row, Set, before_slash};
use super::{GlobError, pay_for};
use crate::text::{find, runes};

/// A place where a matcher fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    /// The lengths in bytes that it may have there, shortest first.
    pub(super) lengths: Vec<usize>,
}

impl Found {
    fn one(start: usize, length: usize) -> Self {
        Self {
            start,
            lengths: vec![length],
        }
    }
}

impl Matcher {
    pub(super) fn find_in(&self, text: &[u8]) -> Result<Option<Found>, GlobError> {
        Ok(match self {
            Self::Nothing => Some(Found::one(0, 0)),
            Self::Any => Some(Found {
                start: 0,
                lengths: boundaries(0, before_slash(text)),
            }),
            Self::Super => Some(Found {
                start: 0,
                lengths: boundaries(0, text),
            }),
            Self::One(set) => one(set, text),
            Self::Text { text: own, .. } => find(text, own).map(|start| Found::one(start, own.len())),
            Self::AnyOf { matchers, .. } => return any_of(matchers, text),
            Self::Every(of) => every(of, text),
            Self::Row(of) => return row(of, text),
            // The library never looks for a tree.
            Self::Tree(_) => None,
            Self::Contains(part) => find(text, part).map(|start| {
                let end = start + part.len();
                Found {
                    start: 0,
                    lengths: boundaries(end, &text[end..]),
                }
            }),
            Self::Prefix(prefix) => find(text, prefix).map(|start| {
                let lengths = lengths_from(prefix.len(), &text[start + prefix.len()..]);
                Found { start, lengths }
            }),
            Self::PrefixAny(prefix) => find(text, prefix).map(|start| {
                let lengths = lengths_from(prefix.len(), before_slash(&text[start + prefix.len()..]));
                Found { start, lengths }
            }),
            Self::Suffix(suffix) => find(text, suffix).map(|start| Found::one(0, start + suffix.len())),
            Self::SuffixAny(suffix) => find(text, suffix).map(|at| {
                let slash = text[..at].iter().rposition(|byte| *byte == b'/');
                let start = slash.map_or(0, |slash| slash + 1);
                Found::one(start, at + suffix.len() - start)
            }),
            Self::PrefixSuffix(prefix, suffix) => prefix_suffix(prefix, suffix, text),
        })
    }
}

/// Where the characters of a text begin, and its end.
fn boundaries(offset: usize, text: &[u8]) -> Vec<usize> {
    let mut position = offset;
    let mut boundaries = vec![offset];
    for rune in runes(text) {
        position += rune.bytes.len();
        boundaries.push(position);
    }
    boundaries
}

/// Where the characters of a text end. An invalid byte counts as U+FFFD, which has three.
fn ends(text: &[u8]) -> impl Iterator<Item = usize> {
    let mut position = 0;
    runes(text).map(move |rune| {
        let start = position;
        position += rune.bytes.len();
        start + rune.or_replacement().len_utf8()
    })
}

fn lengths_from(least: usize, text: &[u8]) -> Vec<usize> {
    std::iter::once(least)
        .chain(ends(text).map(|end| least + end))
        .collect()
}

fn one(set: &Set, text: &[u8]) -> Option<Found> {
    let mut start = 0;
    for rune in runes(text) {
        let character = rune.or_replacement();
        if set.has(character) {
            return Some(Found::one(start, character.len_utf8()));
        }
        start += rune.bytes.len();
    }
    None
}

/// The first place of all, with the lengths of all that are found there.
fn any_of(matchers: &[Matcher], text: &[u8]) -> Result<Option<Found>, GlobError> {
    let mut first: Option<Found> = None;
    for matcher in matchers {
        pay_for(text.len())?;
        let Some(found) = matcher.find_in(text)? else { continue };
        match &mut first {
            Some(first) if found.start > first.start => {}
            Some(first) if found.start == first.start => {
                first.lengths.extend(found.lengths);
                first.lengths.sort_unstable();
                first.lengths.dedup();
            }
            _ => first = Some(found),
        }
    }
    Ok(first)
}

/// The lengths that each of its conditions allows.
fn every(every: &Every, text: &[u8]) -> Option<Found> {
    let mut lengths: Vec<usize> = ends(text).skip(every.least - 1).collect();
    if every.is_exact {
        let mut most: Vec<usize> = std::iter::once(0).chain(ends(text).take(every.least)).collect();
        most.sort_unstable();
        lengths.retain(|length| most.binary_search(length).is_ok());
    }
    let without = find(text, every.without.as_bytes()).map_or(text, |end| &text[..end]);
    let without = boundaries(0, without);
    lengths.retain(|length| without.binary_search(length).is_ok());
    (!lengths.is_empty()).then_some(Found { start: 0, lengths })
}

/// As many bytes as it has characters.
fn row(row: &Row, text: &[u8]) -> Result<Option<Found>, GlobError> {
    let mut start = 0;
    for rune in runes(text) {
        if text.len() - start < row.length {
            break;
        }
        if row.begins(&text[start..])? {
            return Ok(Some(Found::one(start, row.length)));
        }
        start += rune.bytes.len();
    }
    Ok(None)
}

/// From the first beginning to each end behind it; an end may begin within the beginning.
fn prefix_suffix(prefix: &[u8], suffix: &[u8], text: &[u8]) -> Option<Found> {
    let start = find(text, prefix)?;
    let mut rest = &text[start..];
    let mut lengths = Vec::new();
    while let Some(at) = memchr::memmem::rfind(rest, suffix) {
        lengths.push(at + suffix.len());
        rest = &rest[..at];
    }
    lengths.reverse();
    (!lengths.is_empty()).then_some(Found { start, lengths })
}
