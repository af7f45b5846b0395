//! The text that our scanner gets, where it differs from the one that is read: it is in UTF-8, ends with a line break, and has nothing that our
//! scanner takes otherwise than Go's.

use std::borrow::Cow;

use libyaml_safer::{Event, Mark};

use super::error::Error;

/// The text is read again for each colon that is hidden.
const MAX_HIDDEN_COLONS: usize = 64;

/// What ends a line for our scanner and for Go's.
const LINE_BREAKS: [&str; 5] = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"];

/// What says at the beginning of a text that it is in Unicode.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// How many bytes of what begins here end a line; none when it goes on.
pub(super) fn line_break(text: &[u8]) -> usize {
    match text {
        [b'\r', b'\n', ..] | [0xc2, 0x85, ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
        _ => 0,
    }
}

/// A text and where marks point in it. The scanner panics when a text ends inside a line of a block scalar or behind a backslash, so
/// an unfinished last line gets a line break, and what that changes is taken back.
pub(super) struct Text<'a> {
    pub(super) complete: Cow<'a, [u8]>,
    /// What stands before the last line, if that has only blanks.
    pub(super) before_blanks: Option<&'a [u8]>,
    /// A line break was added.
    pub(super) completed: bool,
    /// What stands for colons, and for how many.
    pub(super) hidden_colons: Option<(char, usize)>,
    /// What stands for byte order marks.
    hidden_boms: Option<char>,
    /// Marks do not count a byte order mark.
    bom: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let blanks = text.iter().rev().take_while(|byte| **byte == b' ').count();
        let (before, _) = text.split_at(text.len() - blanks);
        let ends_line = |text: &[u8]| LINE_BREAKS.iter().any(|end| text.ends_with(end.as_bytes()));
        let completed = !text.is_empty() && !ends_line(text);
        let mut text = Self {
            before_blanks: Some(before).filter(|before| completed && ends_line(before)),
            complete: if completed {
                Cow::Owned([text, b"\n"].concat())
            } else {
                Cow::Borrowed(text)
            },
            completed,
            hidden_colons: None,
            hidden_boms: None,
            bom: if text.starts_with(BOM) { BOM.len() } else { 0 },
        };
        text.hide_boms();
        text
    }

    /// Puts something without a meaning for byte order marks that begin a line: Go's scanner skips them at the beginning of a text only.
    fn hide_boms(&mut self) {
        let first = BOM[0];
        if !self.complete.get(1..).is_some_and(|rest| rest.contains(&first)) {
            return;
        }
        let begins_line = |position: usize| {
            LINE_BREAKS
                .iter()
                .any(|end| self.complete[..position].ends_with(end.as_bytes()))
        };
        let marks = self.complete.windows(BOM.len()).enumerate();
        let marks = marks.filter(|&(position, bytes)| bytes == BOM && begins_line(position));
        let marks: Vec<usize> = marks.map(|(position, _)| position).collect();
        let Some(stand_in) = self.unused_character().filter(|_| !marks.is_empty()) else {
            return;
        };
        self.hidden_boms = Some(stand_in);
        for position in marks {
            stand_in.encode_utf8(&mut self.complete.to_mut()[position..position + BOM.len()]);
        }
    }

    pub(super) fn position(&self, index: u64) -> usize {
        usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_add(self.bom)
            .min(self.complete.len())
    }

    /// Puts something without a meaning for a colon that our scanner refuses: one before a bracket or comma, which Go's takes as the end
    /// of a plain scalar. Says whether it did.
    pub(super) fn hide_colon(&mut self, position: usize) -> bool {
        let hidden = match self.hidden_colons {
            Some((stand_in, count)) => Some((stand_in, count + 1)),
            None => self.unused_character().map(|unused| (unused, 1)),
        };
        let Some((stand_in, _)) = hidden.filter(|(_, count)| *count <= MAX_HIDDEN_COLONS) else {
            return false;
        };
        self.hidden_colons = hidden;
        let mut bytes = [0; 4];
        let bytes = stand_in.encode_utf8(&mut bytes).bytes();
        self.complete.to_mut().splice(position..=position, bytes);
        true
    }

    /// Puts an end for the beginning of a list or map, which parsers refuse there in the same words.
    pub(super) fn close_bracket(&mut self, position: usize) {
        if let Some(bracket) = self.complete.to_mut().get_mut(position) {
            *bracket = if *bracket == b'[' { b']' } else { b'}' };
        }
    }

    pub(super) fn has_empty_brackets(&self, position: usize) -> bool {
        match self.complete.get(position..) {
            Some([b'[', rest @ ..]) => rest.trim_ascii_start().starts_with(b"]"),
            Some([b'{', rest @ ..]) => rest.trim_ascii_start().starts_with(b"}"),
            _ => false,
        }
    }

    /// A character for private use that does not occur.
    pub(super) fn unused_character(&self) -> Option<char> {
        let text = str::from_utf8(&self.complete).ok()?;
        ('\u{e000}'..='\u{e0ff}').find(|&character| !text.contains(character))
    }

    /// A scalar as it was before colons and byte order marks were hidden.
    pub(super) fn restored(&self, scalar: String) -> String {
        let scalar = match self.hidden_colons {
            Some((stand_in, _)) => scalar.replace(stand_in, ":"),
            None => scalar,
        };
        match self.hidden_boms {
            Some(stand_in) => scalar.replace(stand_in, "\u{feff}"),
            None => scalar,
        }
    }

    /// What Go says of the first bytes that are no character.
    pub(super) fn invalid_character(&self) -> &'static str {
        let text = &self.complete[..self.complete.len() - usize::from(self.completed)];
        let valid = str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
        let Some((&leading, trailing)) = text[valid..].split_first() else {
            return "incomplete UTF-8 octet sequence";
        };
        let more = match leading {
            0xc0..0xe0 => 1,
            0xe0..0xf0 => 2,
            0xf0..0xf8 => 3,
            _ => return "invalid leading UTF-8 octet",
        };
        let Some(trailing) = trailing.get(..more) else {
            return "incomplete UTF-8 octet sequence";
        };
        match (leading, trailing[0]) {
            _ if trailing.iter().any(|octet| octet & 0xc0 != 0x80) => "invalid trailing UTF-8 octet",
            (0xc0 | 0xc1, _) | (0xe0, ..0xa0) | (0xf0, ..0x90) => "invalid length of a UTF-8 sequence",
            _ => "invalid Unicode character",
        }
    }

    /// What Go says of quotes that nothing closes. A backslash at the very end escapes nothing, where the added line break is something to escape.
    pub(super) fn unclosed_quotes(&self, quote: Option<Mark>) -> &'static str {
        let text = &self.complete[..self.complete.len() - usize::from(self.completed)];
        let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
        let is_double = quote.is_some_and(|quote| self.complete.get(self.position(quote.index)) == Some(&b'"'));
        if is_double && backslashes % 2 == 1 {
            "found unknown escape character"
        } else {
            "found unexpected end of stream"
        }
    }

    /// Whether the added line break is the end of what was written.
    pub(super) fn takes_added_break(&self, event: &Event) -> bool {
        self.completed && self.position(event.end_mark.index) == self.complete.len()
    }

    /// The line of a mark, counted from zero. A scalar that is cut off ends where the text ends, and so does a key without a value that
    /// goes on in the last line; whatever else misses something there misses it on a new line, with or without a line break before.
    pub(super) fn line(&self, mark: Mark, error: &libyaml_safer::Error) -> u64 {
        let behind = self.completed && self.position(mark.index) == self.complete.len();
        let is_in_last_line = match error.problem() {
            "found unexpected end of stream" => true,
            "could not find expected ':'" => error.context_mark().is_some_and(|key| self.goes_on_to_the_end(key)),
            _ => false,
        };
        mark.line - u64::from(behind && is_in_last_line && mark.line > 0)
    }

    /// Whether a key has several lines and its last scalar is a plain one, which takes all blanks and line breaks behind it.
    fn goes_on_to_the_end(&self, key: Mark) -> bool {
        let written = &self.complete[self.position(key.index)..self.complete.len() - 1];
        let has_break = LINE_BREAKS
            .map(str::as_bytes)
            .iter()
            .any(|end| written.windows(end.len()).any(|part| part == *end));
        let has_comment = || {
            written
                .windows(2)
                .any(|pair| pair[0].is_ascii_whitespace() && pair[1] == b'#')
        };
        if !has_break || has_comment() {
            return false;
        }
        let mut content = written.trim_ascii();
        while let [b'&' | b'!' | b'*', ..] = content {
            let property = content.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
            content = content[property..].trim_ascii_start();
        }
        match content {
            [b'[' | b'{', .., last] => !b"[]{},\"'".contains(last),
            [] | [b'"' | b'\'' | b'[' | b'{', ..] => false,
            _ => true,
        }
    }
}

/// The text in UTF-8, with a byte order mark where our scanner needs one: its first two bytes may say that it is in UTF-16.
pub(super) fn decoded(text: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    let unit: fn([u8; 2]) -> u16 = match text {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        // Our scanner takes these for the beginning of a mark, which must then be whole.
        [0xef | 0xfe | 0xff, ..] if !text.starts_with(BOM) => return Ok(Cow::Owned([BOM, text].concat())),
        _ => return Ok(Cow::Borrowed(text)),
    };
    let (units, odd) = text[2..].as_chunks();
    let mut units = units.iter().copied().map(unit).peekable();
    let mut text = String::with_capacity(units.len());
    // Go's scanner skips a mark that follows the first one, in UTF-8 as in UTF-16.
    text.push('\u{feff}');
    while let Some(first) = units.next() {
        let problem = match first {
            0xd800..0xdc00 if units.peek().is_none() => "incomplete UTF-16 surrogate pair",
            0xd800..0xdc00 => "expected low surrogate area",
            _ => "unexpected low surrogate area",
        };
        let pair = [
            first,
            units
                .next_if(|next| (0xdc00..0xe000).contains(next) && (0xd800..0xdc00).contains(&first))
                .unwrap_or_default(),
        ];
        let length = 1 + usize::from((0xd800..0xdc00).contains(&first));
        let character = char::decode_utf16(pair.into_iter().take(length)).next();
        text.push(
            character
                .and_then(Result::ok)
                .ok_or_else(|| Error::syntax(None, problem))?,
        );
    }
    if !odd.is_empty() {
        return Err(Error::syntax(None, "incomplete UTF-16 character"));
    }
    Ok(Cow::Owned(text.into_bytes()))
}
