//! What a pattern is built of, and whether it matches a whole text. Lengths of matchers count characters, positions in texts count bytes;
//! where the library takes one for the other, so do we.

use super::{GlobError, pay_for};
use crate::text::{find, first_rune, runes};

/// The separator of paths.
const SLASH: char = '/';

/// What matches a text or finds itself in one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Matcher {
    Nothing,
    /// Everything without a slash.
    Any,
    Super,
    One(Set),
    Text {
        text: Box<[u8]>,
        length: usize,
    },
    AnyOf {
        matchers: Vec<Self>,
        length: Option<usize>,
    },
    Every(Every),
    Row(Row),
    Tree(Box<Tree>),
    Contains(Box<[u8]>),
    Prefix(Box<[u8]>),
    Suffix(Box<[u8]>),
    /// The two may overlap.
    PrefixSuffix(Box<[u8]>, Box<[u8]>),
    /// A beginning, and no slash behind it.
    PrefixAny(Box<[u8]>),
    /// An end, and no slash before it.
    SuffixAny(Box<[u8]>),
}

/// Which characters one place may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Set {
    List { characters: Vec<char>, is_not: bool },
    Range { low: char, high: char, is_not: bool },
}

/// So many characters or more, and a text that is not among them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Every {
    pub(super) least: usize,
    /// No more characters.
    pub(super) is_exact: bool,
    pub(super) without: Box<str>,
}

/// Matchers of known lengths, one behind the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) length: usize,
    /// Each with its length.
    members: Vec<(usize, Matcher)>,
}

/// A matcher between others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tree {
    value: Matcher,
    left: Option<Matcher>,
    right: Option<Matcher>,
    /// What the sides take at least, in characters; nothing where that is not known.
    margins: (usize, usize),
    length: Option<usize>,
}

impl Matcher {
    pub(super) fn text(text: &str) -> Self {
        Self::Text {
            text: text.as_bytes().into(),
            length: text.chars().count(),
        }
    }

    pub(super) fn row(length: usize, members: Vec<Self>) -> Self {
        let with_length = |member: Self| (member.length().unwrap_or_default(), member);
        let members = members.into_iter().map(with_length).collect();
        Self::Row(Row { length, members })
    }

    /// One alternative is no choice.
    pub(super) fn any_of(mut matchers: Vec<Self>) -> Self {
        if matchers.len() == 1 {
            return matchers.remove(0);
        }
        let length = common_length(&matchers);
        Self::AnyOf { matchers, length }
    }

    /// How many characters it matches, if the library thinks that it knows.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Self::Nothing => Some(0),
            Self::One(_) => Some(1),
            Self::Text { length, .. } => Some(*length),
            Self::AnyOf { length, .. } => *length,
            Self::Row(row) => Some(row.length),
            Self::Tree(tree) => tree.length,
            _ => None,
        }
    }

    /// What it does not match, if that is all there is to say of its characters.
    pub(super) fn excluded(&self) -> Option<&[char]> {
        match self {
            Self::Super => Some(&[]),
            Self::Any => Some(&[SLASH]),
            Self::One(Set::List {
                characters,
                is_not: true,
            }) => Some(characters),
            _ => None,
        }
    }

    /// Whether it matches all of a text.
    pub(super) fn is_match(&self, text: &[u8]) -> Result<bool, GlobError> {
        Ok(match self {
            Self::Nothing => text.is_empty(),
            Self::Any => has_no_slash(text),
            Self::Super => true,
            Self::One(set) => set.is_match(text),
            Self::Text { text: own, .. } => **own == *text,
            Self::AnyOf { matchers, .. } => return any(matchers, text),
            Self::Every(every) => every.is_match(text),
            Self::Row(row) => return row.is_match(text),
            Self::Tree(tree) => return tree.is_match(text),
            Self::Contains(part) => find(text, part).is_some(),
            Self::Prefix(prefix) => text.starts_with(prefix),
            Self::Suffix(suffix) => text.ends_with(suffix),
            Self::PrefixSuffix(prefix, suffix) => text.starts_with(prefix) && text.ends_with(suffix),
            Self::PrefixAny(prefix) => text.strip_prefix(&**prefix).is_some_and(has_no_slash),
            Self::SuffixAny(suffix) => text.strip_suffix(&**suffix).is_some_and(has_no_slash),
        })
    }
}

/// What alternatives have as length: those of unknown length before all others are forgotten.
fn common_length(matchers: &[Matcher]) -> Option<usize> {
    let mut lengths = matchers.iter().map(Matcher::length).skip_while(Option::is_none);
    let first = lengths.next()?;
    lengths.all(|length| length == first).then_some(first)?
}

fn any(matchers: &[Matcher], text: &[u8]) -> Result<bool, GlobError> {
    for matcher in matchers {
        pay_for(text.len())?;
        if matcher.is_match(text)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_no_slash(text: &[u8]) -> bool {
    before_slash(text).len() == text.len()
}

/// The text up to the first slash.
pub(super) fn before_slash(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b'/').next().unwrap_or_default()
}

impl Set {
    pub(super) fn no_slash() -> Self {
        Self::List {
            characters: vec![SLASH],
            is_not: true,
        }
    }

    pub(super) fn has(&self, character: char) -> bool {
        match self {
            Self::List { characters, is_not } => characters.contains(&character) != *is_not,
            Self::Range { low, high, is_not } => (*low..=*high).contains(&character) != *is_not,
        }
    }

    /// No character counts as U+FFFD.
    fn is_match(&self, text: &[u8]) -> bool {
        let mut runes = runes(text);
        let character = runes
            .next()
            .map_or(char::REPLACEMENT_CHARACTER, crate::text::Rune::or_replacement);
        runes.next().is_none() && self.has(character)
    }
}

impl Every {
    fn is_match(&self, text: &[u8]) -> bool {
        let count = runes(text).count();
        let is_enough = count >= self.least && !(self.is_exact && count > self.least);
        is_enough && find(text, self.without.as_bytes()).is_none()
    }
}

impl Row {
    fn is_match(&self, text: &[u8]) -> Result<bool, GlobError> {
        Ok(runes(text).count() == self.length && self.begins(text)?)
    }

    /// Whether a text begins with it.
    pub(super) fn begins(&self, text: &[u8]) -> Result<bool, GlobError> {
        let mut from = 0;
        for (length, member) in &self.members {
            let Some(taken) = first_bytes(&text[from..], *length) else {
                return Ok(false);
            };
            pay_for(taken)?;
            let end = from + taken;
            let Some(part) = text.get(from..end) else {
                let length = text.len();
                return Err(GlobError::Cut { end, length });
            };
            if !member.is_match(part)? {
                return Ok(false);
            }
            from = end;
        }
        Ok(true)
    }
}

/// How many bytes a member of a row gets for its characters: of the last one only the first byte. For no characters it gets all there are, and
/// one byte where there are none.
fn first_bytes(text: &[u8], characters: usize) -> Option<usize> {
    let (mut count, mut last, mut end) = (0, 0, 0);
    for rune in runes(text) {
        last = end;
        end += rune.bytes.len();
        count += 1;
        if count == characters {
            break;
        }
    }
    (count >= characters).then_some(last + 1)
}

impl Tree {
    pub(super) fn new(value: Matcher, left: Option<Matcher>, right: Option<Matcher>) -> Self {
        let side_length = |side: &Option<Matcher>| side.as_ref().map_or(Some(0), Matcher::length);
        let (before, after) = (side_length(&left), side_length(&right));
        let sum = |before: usize| Some(before + value.length()? + after?);
        Self {
            margins: (before.unwrap_or(0), after.unwrap_or(0)),
            length: before.and_then(sum),
            value,
            left,
            right,
        }
    }

    /// Looks for the middle where the sides leave place for it, whose characters count as bytes.
    fn is_match(&self, text: &[u8]) -> Result<bool, GlobError> {
        if self.length.is_some_and(|length| length > text.len()) {
            return Ok(false);
        }
        let (mut offset, after) = self.margins;
        let limit = text.len().saturating_sub(after);
        while offset < limit {
            pay_for(limit - offset)?;
            let Some(found) = self.value.find_in(&text[offset..limit])? else {
                return Ok(false);
            };
            let start = offset + found.start;
            if is_side(self.left.as_ref(), &text[..start])? {
                for length in found.lengths.iter().rev() {
                    let rest = text.get(start + length..).unwrap_or_default();
                    if is_side(self.right.as_ref(), rest)? {
                        return Ok(true);
                    }
                }
            }
            offset = start + first_rune(&text[start..]).map_or(0, |rune| rune.bytes.len());
        }
        Ok(false)
    }
}

/// Nothing may stand where no matcher does.
fn is_side(side: Option<&Matcher>, text: &[u8]) -> Result<bool, GlobError> {
    pay_for(text.len())?;
    side.map_or(Ok(text.is_empty()), |side| side.is_match(text))
}
