//! Go's `strconv.Quote`: double quotes, escapes for everything that does not print, `\x` for invalid bytes.

use crate::text::{is_print, push_char, runes};

/// A string in double quotes, as Go source would write it.
pub(crate) fn quote(text: &[u8]) -> Vec<u8> {
    quote_with(text, '"', is_print)
}

/// The same for text.
pub(crate) fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&quote(text.as_bytes())).into_owned()
}

/// A character in single quotes, for messages.
pub(crate) fn quote_char(character: char) -> String {
    String::from_utf8_lossy(&quote_rune(character, false)).into_owned()
}

/// The same with every rune outside ASCII escaped.
pub(super) fn quote_ascii(text: &[u8]) -> Vec<u8> {
    quote_with(text, '"', |character| character.is_ascii() && is_print(character))
}

/// A rune in single quotes.
pub(super) fn quote_rune(character: char, is_ascii: bool) -> Vec<u8> {
    quote_with(character.encode_utf8(&mut [0; 4]).as_bytes(), '\'', |character| {
        is_print(character) && (!is_ascii || character.is_ascii())
    })
}

fn quote_with(text: &[u8], delimiter: char, is_plain: impl Fn(char) -> bool) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    push_char(&mut quoted, delimiter);
    for rune in runes(text) {
        match rune.character {
            None => quoted.extend_from_slice(format!("\\x{:02x}", rune.bytes[0]).as_bytes()),
            Some(character) if character == delimiter || character == '\\' => {
                quoted.push(b'\\');
                push_char(&mut quoted, character);
            }
            Some(character) if is_plain(character) => push_char(&mut quoted, character),
            Some(character) => quoted.extend_from_slice(escape(character).as_bytes()),
        }
    }
    push_char(&mut quoted, delimiter);
    quoted
}

fn escape(character: char) -> String {
    let code = character as u32;
    match character {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\0'..'\u{20}' | '\u{7f}' => format!("\\x{code:02x}"),
        _ if code < 0x1_0000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}
