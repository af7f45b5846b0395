//! Texts cut into lines of tokens, so that what is drawn in one place does not blur its neighbours.

use memchr::{memchr_iter, memmem};

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters and digits, and what base64 has beside them.
    Word,
    /// A hash of bcrypt, which has marks among its letters.
    Hash,
    /// A moment as RFC 3339 writes it, without its zone.
    Moment,
    /// A PEM block with all its lines.
    Pem,
    /// One byte of anything else.
    Mark,
}

/// A line, which is longer than one line of the text where there is a PEM block in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Counted from 1, in the text.
    pub(super) number: usize,
    pub(super) tokens: Vec<Token<'a>>,
}

pub(super) fn lines(text: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut number = 1;
    let mut line = Line {
        number,
        tokens: Vec::new(),
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (length, kind) = first(rest);
        let (bytes, after) = rest.split_at(length);
        rest = after;
        number += memchr_iter(b'\n', bytes).count();
        line.tokens.push(Token { bytes, kind });
        if bytes == b"\n" {
            let tokens = Vec::new();
            lines.push(std::mem::replace(&mut line, Line { number, tokens }));
        }
    }
    lines.push(line);
    lines
}

/// The text that a token begins with, and what it is. There is at least one byte.
fn first(text: &[u8]) -> (usize, Kind) {
    if let Some(length) = pem_block(text) {
        return (length, Kind::Pem);
    }
    if is_like(text, b"$2a$00$") && text.len() >= 60 && text[7..60].iter().all(|byte| is_of_bcrypt(*byte)) {
        return (60, Kind::Hash);
    }
    if is_like(text, b"0000-00-00T00:00:00") || is_like(text, b"0000-00-00 00:00:00") {
        return (19, Kind::Moment);
    }
    let word = text.iter().take_while(|byte| is_of_word(**byte)).count();
    if word == 0 {
        return (1, Kind::Mark);
    }
    let padding = text[word..].iter().take_while(|byte| **byte == b'=').count();
    let ends = text.get(word + padding).is_none_or(|byte| !is_of_word(*byte));
    let padded = (1..=2).contains(&padding) && ends && (word + padding).is_multiple_of(4);
    (word + if padded { padding } else { 0 }, Kind::Word)
}

/// Whether a text begins with the pattern, in which `0` stands for any digit.
fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let fits = |(byte, wanted): (&u8, &u8)| {
        if *wanted == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == wanted
        }
    };
    text.len() >= pattern.len() && text.iter().zip(pattern).all(fits)
}

fn is_of_bcrypt(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/')
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_')
}

fn pem_block(text: &[u8]) -> Option<usize> {
    let after = text.strip_prefix(b"-----BEGIN ")?;
    let label = &after[..memmem::find(after, b"-----")?];
    let end = [b"-----END ".as_slice(), label, b"-----"].concat();
    memmem::find(text, &end).map(|start| start + end.len())
}
