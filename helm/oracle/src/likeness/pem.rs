//! PEM blocks as they stand in manifests: indented, or on one line with `\n` between.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A block, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pem<'a> {
    /// As in `BEGIN CERTIFICATE`.
    pub(super) label: &'a [u8],
    pub(super) der: Vec<u8>,
    layout: Layout<'a>,
}

/// How it is broken into lines. The length of the last one depends on what is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout<'a> {
    breaks: BTreeSet<&'a [u8]>,
    widths: BTreeSet<usize>,
}

impl<'a> Pem<'a> {
    /// Of a text that begins and ends with the markers; nothing where the body is no base64.
    pub(super) fn read(block: &'a [u8]) -> Option<Self> {
        let after = block.strip_prefix(b"-----BEGIN ")?;
        let (label, after) = after.split_at(memchr::memmem::find(after, b"-----")?);
        let body = after[5..].strip_suffix(b"-----")?.strip_suffix(label)?;
        let body = body.strip_suffix(b"-----END ")?;
        let (lines, breaks) = lines(body);
        let der = STANDARD.decode(lines.concat()).ok().filter(|der| !der.is_empty())?;
        let (last, whole) = lines.split_last()?;
        let widths: BTreeSet<_> = whole.iter().map(|line| line.len()).collect();
        let fits = widths.iter().all(|width| last.len() <= *width);
        fits.then_some(Self {
            label,
            der,
            layout: Layout { breaks, widths },
        })
    }
}

/// Why a block is not laid out like the real ones. What is in it is looked at in [`super::x509`].
pub(super) fn check(theirs: &[Vec<u8>], ours: &[u8]) -> Result<(), String> {
    let Some(ours) = Pem::read(ours) else {
        return Err("the PEM block cannot be read".to_owned());
    };
    let theirs: Option<Vec<_>> = theirs.iter().map(|block| Pem::read(block)).collect();
    let Some(theirs) = theirs else {
        return Err("Helm's PEM block cannot be read".to_owned());
    };
    if theirs.iter().all(|block| block.label != ours.label) {
        return Err("Helm has a PEM block of another kind here".to_owned());
    }
    if theirs.iter().all(|block| block.layout != ours.layout) {
        return Err("Helm breaks the PEM block into lines otherwise".to_owned());
    }
    Ok(())
}

/// The body's lines, and what is between them and around.
fn lines(body: &[u8]) -> (Vec<&[u8]>, BTreeSet<&[u8]>) {
    let (mut lines, mut breaks) = (Vec::new(), BTreeSet::new());
    let mut rest = body;
    while !rest.is_empty() {
        let (separator, after) = rest.split_at(separator(rest));
        if !separator.is_empty() {
            breaks.insert(separator);
        }
        let (line, after) = after.split_at(after.iter().take_while(|byte| is_base64(**byte)).count());
        if !line.is_empty() {
            lines.push(line);
        } else if separator.is_empty() {
            // Nothing that belongs into a block: it is no base64 then.
            lines.push(after);
            break;
        }
        rest = after;
    }
    (lines, breaks)
}

/// How long the line break is that a text begins with; an escaped one is a line break, too.
fn separator(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(byte) = text.get(length) {
        let escaped = text[length..].iter().take_while(|byte| **byte == b'\\').count();
        length += match byte {
            b'\\' if matches!(text.get(length + escaped), Some(b'n' | b'r')) => escaped + 1,
            byte if byte.is_ascii_whitespace() => 1,
            _ => break,
        };
    }
    length
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
