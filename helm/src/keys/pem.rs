//! PEM (RFC 7468) as Go writes and reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base64_text;
use crate::text;

/// Bytes under a label.
pub(crate) struct Block {
    pub(crate) label: String,
    pub(crate) bytes: Vec<u8>,
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

const LINE: usize = 64;

/// Writes a block, with its last line end.
pub(crate) fn encode(label: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = STANDARD.encode(bytes);
    while !rest.is_empty() {
        let next = rest.split_off(rest.len().min(LINE));
        text.push_str(&rest);
        text.push('\n');
        rest = next;
    }
    text + &format!("-----END {label}-----\n")
}

/// The first block of a text that is one; what else the text has does not matter.
pub(crate) fn decode(text: &[u8]) -> Option<Block> {
    let mut rest = text;
    loop {
        let end = text::find(rest, END)?;
        let after = &rest[end + END.len()..];
        let begin = rest[..end].windows(BEGIN.len()).rposition(|window| window == BEGIN);
        let begin = begin.filter(|begin| *begin == 0 || rest[begin - 1] == b'\n');
        // The line of the label may itself end where the end begins.
        let block = begin.and_then(|begin| block(&rest[begin + BEGIN.len()..=end], after));
        if block.is_some() {
            return block;
        }
        rest = after;
    }
}

/// The block between its marks: `body` from the label to before the dashes of the end, `after` from the label of the end.
fn block(body: &[u8], after: &[u8]) -> Option<Block> {
    let (first, mut rest) = line(body);
    let label = first.strip_suffix(DASHES)?;
    let closed = line(after).0;
    if closed != [label, DASHES].concat() {
        return None;
    }
    // Headers, of which Go reads no more than that they are some.
    while line(rest).0.contains(&b':') {
        rest = line(rest).1;
    }
    let digits: Vec<u8> = rest.iter().copied().filter(|byte| !b" \t".contains(byte)).collect();
    Some(Block {
        label: text::lossy(label),
        bytes: base64_text::decode(&digits).ok()?,
    })
}

/// The first line without what cannot be seen at its end, and the rest.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (mut line, rest) = match text::find(text, b"\n") {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &text[text.len()..]),
    };
    while let [before @ .., b' ' | b'\t' | b'\r'] = line {
        line = before;
    }
    (line, rest)
}
