//! Tags as Go reads them: brackets and commas are part of one. The scanner that we use refuses such tags, and panics at `[!a, b]`.
//!
//! So these characters are replaced by another one of a tag before the text is scanned; no such tag means anything. What is a tag and what is
//! the inside of a scalar or a comment, only the structure of the text tells, which is followed here as far as that needs.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use crate::text::find;

/// What stands for a bracket or a comma.
const SUBSTITUTE: u8 = b';';

/// The text with tags that the scanner takes; nothing for lines that end as no line does anymore, which are not followed.
pub(super) fn harmless(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !has_unusual_tag(text) {
        return Some(Cow::Borrowed(text));
    }
    if has_unusual_breaks(text) {
        return None;
    }
    let mut walk = Walk {
        text: text.to_vec(),
        position: 0,
        flow: 0,
        parent: None,
    };
    while walk.position < walk.text.len() {
        walk.token();
    }
    Some(Cow::Owned(walk.text))
}

/// Whether a line ends in a way that is special to YAML: a carriage return alone, or a separator of Unicode.
fn has_unusual_breaks(text: &[u8]) -> bool {
    let has = |line_break: &str| find(text, line_break.as_bytes()).is_some();
    let is_alone = |at: usize| text.get(at + 1) != Some(&b'\n');
    memchr_iter(b'\r', text).any(is_alone) || ["\u{85}", "\u{2028}", "\u{2029}"].into_iter().any(has)
}

/// Whether something looks like a tag with a character that the scanner does not take.
fn has_unusual_tag(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(mark) = memchr(b'!', rest) {
        rest = &rest[mark + 1..];
        let tag = tag_length(rest);
        if rest[..tag].iter().any(|byte| is_unusual(*byte)) {
            return true;
        }
        rest = &rest[tag..];
    }
    false
}

const fn is_unusual(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']')
}

/// How many bytes of a text may stand in a tag.
fn tag_length(text: &[u8]) -> usize {
    let is_tag = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_;/?:@&=+$,.!~*'()[]%".contains(*byte);
    text.iter().take_while(is_tag).count()
}

/// A way through a text, token by token.
struct Walk {
    text: Vec<u8>,
    position: usize,
    /// How many brackets are open.
    flow: usize,
    /// The column of the dash or key that the next value belongs to.
    parent: Option<usize>,
}

impl Walk {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.position + ahead).copied()
    }

    fn column(&self) -> usize {
        let before = self.text[..self.position].iter().rev();
        before.take_while(|byte| **byte != b'\n').count()
    }

    fn is_blank_at(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
    }

    fn token(&mut self) {
        let Some(byte) = self.byte(0) else { return };
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.position += 1,
            b'#' => self.skip_line(),
            b'[' | b'{' => self.bracket(true),
            b']' | b'}' => self.bracket(false),
            b'-' | b'?' | b':' if self.is_blank_at(1) => {
                if byte != b':' && self.flow == 0 {
                    self.parent = Some(self.column());
                }
                self.position += 1;
            }
            b',' | b'?' | b':' if self.flow > 0 => self.position += 1,
            b'!' => self.tag(),
            b'&' | b'*' => self.anchor(),
            b'|' | b'>' if self.flow == 0 => {
                self.skip_line();
                self.skip_deeper();
            }
            b'"' | b'\'' => self.quoted(byte),
            b'-' | b'.' | b'%' if self.is_marker() => self.parent = None,
            _ => self.plain(),
        }
    }

    fn bracket(&mut self, opens: bool) {
        self.flow = if opens {
            self.flow + 1
        } else {
            self.flow.saturating_sub(1)
        };
        self.position += 1;
    }

    fn tag(&mut self) {
        let length = 1 + tag_length(&self.text[self.position + 1..]);
        let tag = &mut self.text[self.position..self.position + length];
        tag.iter_mut()
            .filter(|byte| is_unusual(**byte))
            .for_each(|byte| *byte = SUBSTITUTE);
        self.position += length;
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.position..];
        self.position += memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    }

    fn anchor(&mut self) {
        self.position += 1;
        while self
            .byte(0)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        {
            self.position += 1;
        }
    }

    /// Passes a line that is a directive or begins or ends a document.
    fn is_marker(&mut self) -> bool {
        let rest = &self.text[self.position..];
        if self.column() > 0 || !(rest.starts_with(b"---") || rest.starts_with(b"...") || rest.starts_with(b"%")) {
            return false;
        }
        if rest.starts_with(b"%") {
            self.skip_line();
        } else {
            self.position += 3;
        }
        true
    }

    /// Passes the lines that belong to a scalar: those deeper than its parent, and empty ones.
    fn skip_deeper(&mut self) {
        while self.position < self.text.len() {
            let rest = &self.text[self.position..];
            let indent = rest.iter().take_while(|byte| **byte == b' ').count();
            let is_empty = matches!(rest.get(indent), None | Some(b'\r' | b'\n'));
            if !is_empty && self.parent.is_none_or(|parent| indent <= parent) && !(self.parent.is_none() && indent > 0)
            {
                return;
            }
            self.skip_line();
        }
    }

    fn quoted(&mut self, quote: u8) {
        let column = self.column();
        self.position += 1;
        while let Some(byte) = self.byte(0) {
            self.position += 1;
            if byte == b'\\' && quote == b'"' {
                self.position += 1;
            } else if byte == quote {
                if quote == b'"' || self.byte(0) != Some(quote) {
                    break;
                }
                self.position += 1;
            }
        }
        self.position = self.position.min(self.text.len());
        if self.flow == 0 && self.byte(0) == Some(b':') {
            self.parent = Some(column);
        }
    }

    fn plain(&mut self) {
        let column = self.column();
        self.position += 1;
        while let Some(byte) = self.byte(0) {
            let ends = match byte {
                b'\n' => self.flow == 0,
                b':' => {
                    self.is_blank_at(1) || self.flow > 0 && self.byte(1).is_some_and(|next| b",[]{}".contains(&next))
                }
                b'#' => self.text[self.position - 1].is_ascii_whitespace(),
                b',' | b'[' | b']' | b'{' | b'}' => self.flow > 0,
                _ => false,
            };
            if ends {
                break;
            }
            self.position += 1;
        }
        if self.flow > 0 {
            return;
        }
        match self.byte(0) {
            Some(b':') => self.parent = Some(column),
            // A comment ends the scalar.
            Some(b'\n') => {
                self.position += 1;
                self.skip_deeper();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn only_tags_change() {
        for (text, changed) in [
            ("a: [!x, b]", "a: [!x; b]"),
            ("a: [1, !x]\n", "a: [1, !x;\n"),
            ("a: !x,y [b]\n", "a: !x;y [b]\n"),
            ("[ # c, !d, e\n !x, b]", "[ # c, !d, e\n !x; b]"),
            (
                "[&a !x, 'it''s !y, z', \"\\\" !z, z\"]",
                "[&a !x; 'it''s !y, z', \"\\\" !z, z\"]",
            ),
            ("[a !x, b, {c: !y, d: 1}]", "[a !x, b, {c: !y; d: 1}]"),
            (
                "a: b !x, c\nd: |\n  !x, y\n\n  !z, z\ne: [!x, 1]\n",
                "a: b !x, c\nd: |\n  !x, y\n\n  !z, z\ne: [!x; 1]\n",
            ),
            (
                "- a: >-\n    [!x, y\n  b: [!x, 1]\n",
                "- a: >-\n    [!x, y\n  b: [!x; 1]\n",
            ),
            ("a: b\n  [!x, c]\nd: [!x, y]\n", "a: b\n  [!x, c]\nd: [!x; y]\n"),
            ("- b\n  !x, c\n- !x, y\n", "- b\n  !x, c\n- !x; y\n"),
            ("a: |\nb: [!x, y]\n", "a: |\nb: [!x; y]\n"),
            ("\"k, !x\": [!x, y]\n", "\"k, !x\": [!x; y]\n"),
            ("{\"a\": ?!1, 2}", "{\"a\": ?!1; 2}"),
            ("[&a?!x, y]", "[&a?!x; y]"),
            ("--- !x, [y]\n...\n", "--- !x; [y]\n...\n"),
        ] {
            assert_eq!(harmless(text.as_bytes()).as_deref(), Some(changed.as_bytes()), "{text}");
        }
        assert!(harmless("a\u{85}: [!x, b]".as_bytes()).is_none());
        assert!(harmless("a\u{85}: b".as_bytes()).is_some());
    }
}
