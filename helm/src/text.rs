//! Byte strings the way Go sees them: runes, character classes and case, one invalid byte at a time.

use std::sync::LazyLock;

use regex::Regex;

/// One step through a Go string: the bytes of the next rune, and the rune unless they are not valid UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rune<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) character: Option<char>,
}

impl Rune<'_> {
    /// What Go's range loop gives: U+FFFD for an invalid byte.
    pub(crate) fn or_replacement(self) -> char {
        self.character.unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The runes of a Go string; an invalid byte counts as one rune. Looks no further ahead than a rune, because many take only some.
pub(crate) fn runes(text: &[u8]) -> impl Iterator<Item = Rune<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let rune = first_rune(rest)?;
        rest = &rest[rune.bytes.len()..];
        Some(rune)
    })
}

/// The first rune of a Go string.
#[inline]
pub(crate) fn first_rune(text: &[u8]) -> Option<Rune<'_>> {
    if let Some(byte) = text.first().filter(|byte| byte.is_ascii()) {
        return Some(Rune {
            bytes: &text[..1],
            character: Some(char::from(*byte)),
        });
    }
    let chunk = text[..text.len().min(4)].utf8_chunks().next()?;
    let character = chunk.valid().chars().next();
    Some(Rune {
        bytes: &text[..character.map_or(1, char::len_utf8)],
        character,
    })
}

/// A class of characters, of those that Go knows: up to 1.26 it has Unicode 15.0.
fn class(members: &str) -> Option<Regex> {
    Regex::new(&format!(r"^[{members}&&\p{{age:15.0}}]$")).ok()
}

fn is_in(class: &LazyLock<Option<Regex>>, character: char) -> bool {
    class
        .as_ref()
        .is_some_and(|class| class.is_match(character.encode_utf8(&mut [0; 4])))
}

/// Go's `unicode.IsLetter`; narrower than Rust's alphabetic.
pub(crate) fn is_letter(character: char) -> bool {
    static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"\p{L}"));
    if character.is_ascii() {
        character.is_ascii_alphabetic()
    } else {
        is_in(&LETTER, character)
    }
}

/// Go's `unicode.IsDigit`: decimal digits of any script.
pub(crate) fn is_digit(character: char) -> bool {
    static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"\p{Nd}"));
    if character.is_ascii() {
        character.is_ascii_digit()
    } else {
        is_in(&DIGIT, character)
    }
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_print(character: char) -> bool {
    static PRINT: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"[\p{L}\p{M}\p{N}\p{P}\p{S}]"));
    if character.is_ascii() {
        matches!(character, ' '..='~')
    } else {
        is_in(&PRINT, character)
    }
}

/// Go's `unicode.IsUpper`.
pub(crate) fn is_upper(character: char) -> bool {
    static UPPER: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"\p{Lu}"));
    if character.is_ascii() {
        character.is_ascii_uppercase()
    } else {
        is_in(&UPPER, character)
    }
}

/// Go's `unicode.IsLower`.
pub(crate) fn is_lower(character: char) -> bool {
    static LOWER: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"\p{Ll}"));
    if character.is_ascii() {
        character.is_ascii_lowercase()
    } else {
        is_in(&LOWER, character)
    }
}

/// Go's `unicode.IsPunct`.
pub(crate) fn is_punctuation(character: char) -> bool {
    static PUNCTUATION: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"\p{P}"));
    is_in(&PUNCTUATION, character)
}

/// Go's `unicode.IsNumber`.
pub(crate) fn is_number(character: char) -> bool {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| class(r"\p{N}"));
    if character.is_ascii() {
        character.is_ascii_digit()
    } else {
        is_in(&NUMBER, character)
    }
}

/// Go's `unicode.IsSpace`.
pub(crate) fn is_space(character: char) -> bool {
    match character {
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{85}' | '\u{a0}' => true,
        _ => character as u32 > 0xff && character.is_whitespace(),
    }
}

/// Go maps one rune to one rune; Rust knows mappings to several.
pub(crate) fn to_upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => match character {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(character as u32 + 8).unwrap_or(character)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => char::from_u32(character as u32 + 9).unwrap_or(character),
            _ => character,
        },
    }
}

/// Go maps one rune to one rune; the only lower case of two runes in Unicode is that of U+0130.
pub(crate) fn to_lower(character: char) -> char {
    if character == '\u{130}' {
        'i'
    } else {
        character.to_lowercase().next().unwrap_or(character)
    }
}

/// Maps every rune; invalid bytes become U+FFFD, as in Go's `strings.Map`.
pub(crate) fn map_runes(text: &[u8], map: impl Fn(char) -> char) -> Vec<u8> {
    let mut mapped = Vec::with_capacity(text.len());
    for rune in runes(text) {
        push_char(&mut mapped, map(rune.or_replacement()));
    }
    mapped
}

/// Appends one rune in UTF-8.
pub(crate) fn push_char(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Go's `strings.TrimSpace`.
pub(crate) fn trim_space(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text, is_space), is_space)
}

/// Cuts runes from the front as long as they are in the set.
pub(crate) fn trim_start(text: &[u8], is_cut: impl Fn(char) -> bool) -> &[u8] {
    let mut rest = text;
    while let Some(rune) = first_rune(rest).filter(|rune| is_cut(rune.or_replacement())) {
        rest = &rest[rune.bytes.len()..];
    }
    rest
}

/// Cuts runes from the end as long as they are in the set.
pub(crate) fn trim_end(text: &[u8], is_cut: impl Fn(char) -> bool) -> &[u8] {
    let mut rest = text;
    while let Some(last) = rest.len().checked_sub(1) {
        // An ASCII byte is a rune of its own, whatever is before it, so what follows one can be read from there.
        let start = match rest.iter().rposition(u8::is_ascii) {
            Some(ascii) if ascii == last => last,
            Some(ascii) => ascii + 1,
            None => 0,
        };
        let (mut kept, mut length) = (0, 0);
        for rune in runes(&rest[start..]) {
            length += rune.bytes.len();
            if !is_cut(rune.or_replacement()) {
                kept = length;
            }
        }
        if kept > 0 {
            return &rest[..start + kept];
        }
        rest = &rest[..start];
    }
    rest
}

/// The position of the first occurrence.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// Go's `strings.ReplaceAll`: an empty part is found before every rune and at the end.
pub(crate) fn replace_all(text: &[u8], part: &[u8], with: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    if part.is_empty() {
        for rune in runes(text) {
            replaced.extend_from_slice(with);
            replaced.extend_from_slice(rune.bytes);
        }
        replaced.extend_from_slice(with);
        return replaced;
    }
    let mut rest = text;
    while let Some(at) = find(rest, part) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(with);
        rest = &rest[at + part.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// Go's `strings.SplitN`: at most `limit` parts unless it is negative; an empty separator splits after every rune.
pub(crate) fn split<'a>(text: &'a [u8], separator: &[u8], limit: i64) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    if limit == 0 {
        return parts;
    }
    let is_open = |parts: &Vec<_>| limit < 0 || i64::try_from(parts.len()).is_ok_and(|count| count + 1 < limit);
    let mut rest = text;
    if separator.is_empty() {
        while let Some(rune) = first_rune(rest) {
            if !is_open(&parts) {
                break;
            }
            parts.push(rune.bytes);
            rest = &rest[rune.bytes.len()..];
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        return parts;
    }
    while is_open(&parts) {
        let Some(at) = find(rest, separator) else { break };
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

/// Bytes as text, with U+FFFD for what is not UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    // Checking valid text is much faster than looking for what is invalid.
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The byte behind each line break.
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &[u8]) -> Self {
        Self {
            starts: memchr::memchr_iter(b'\n', text).map(|newline| newline + 1).collect(),
        }
    }

    /// The line of a byte, from 1, and its place in that line, from 0.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.starts.partition_point(|start| *start <= offset);
        let start = before.checked_sub(1).map_or(0, |line| self.starts[line]);
        (before + 1, offset - start)
    }
}
