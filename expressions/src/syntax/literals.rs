//! Numbers, texts and bytes as they are written.

use super::{tokens::Word, tree::Literal};
use crate::words::cut;

/// A number at the beginning of a text, and its length.
pub(super) fn number(text: &str) -> Result<Option<(usize, Word)>, String> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        let length = hexadecimal.bytes().take_while(u8::is_ascii_hexdigit).count();
        if length > 0 {
            let value = u64::from_str_radix(&hexadecimal[..length], 16);
            return whole(text, length + 2, value.ok()).map(Some);
        }
    }
    let mut length = digits(0);
    let mut is_fraction = false;
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        is_fraction = true;
        length += 1 + digits(length + 1);
    }
    if length == 0 {
        return Ok(None);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            is_fraction = true;
            length += 1 + sign + exponent;
        }
    }
    if !is_fraction {
        return whole(text, length, text[..length].parse().ok()).map(Some);
    }
    match text[..length].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some((length, Word::Literal(Literal::Double(value))))),
        _ => Err(too_large(&text[..length])),
    }
}

/// A whole number, with or without the letter that makes it unsigned.
fn whole(text: &str, length: usize, value: Option<u64>) -> Result<(usize, Word), String> {
    let value = value.ok_or_else(|| too_large(&text[..length]))?;
    match text.as_bytes().get(length) {
        Some(b'u' | b'U') => Ok((length + 1, Word::Literal(Literal::Uint(value)))),
        _ => Ok((length, Word::Whole(value))),
    }
}

fn too_large(number: &str) -> String {
    format!("the number {} is too large", cut(number))
}

/// How the text of a literal is to be read.
#[derive(Clone, Copy)]
struct Manner {
    bytes: bool,
    /// Backslashes stand for themselves.
    raw: bool,
}

/// A text or bytes in quotes at the beginning of a text, and the length with quotes and letters before them.
pub(super) fn quoted(text: &str) -> Result<Option<(usize, Literal)>, String> {
    let mut rest = text;
    let bytes = rest.starts_with(['b', 'B']);
    if bytes {
        rest = &rest[1..];
    }
    let raw = rest.starts_with(['r', 'R']);
    if raw {
        rest = &rest[1..];
    }
    let Some(quote) = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| rest.starts_with(quote))
    else {
        return Ok(None);
    };
    let manner = Manner { bytes, raw };
    let body = &rest[quote.len()..];
    let length = body_length(body, quote, manner).ok_or("a text begins here and is not closed")?;
    let content = unescape(&body[..length], manner)?;
    let literal = if bytes {
        Literal::Bytes(content)
    } else {
        Literal::Text(String::from_utf8(content).map_err(|_| "the text is not valid UTF-8".to_owned())?)
    };
    Ok(Some((text.len() - body.len() + length + quote.len(), literal)))
}

/// How many bytes stand before the closing quote. Only texts in three quotes have several lines.
fn body_length(body: &str, quote: &str, manner: Manner) -> Option<usize> {
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        if body[at..].starts_with(quote) {
            return Some(at);
        }
        if quote.len() == 1 && matches!(character, '\n' | '\r') {
            return None;
        }
        if character == '\\' && !manner.raw {
            characters.next();
        }
    }
    None
}

fn unescape(body: &str, manner: Manner) -> Result<Vec<u8>, String> {
    if manner.raw {
        return Ok(body.as_bytes().to_vec());
    }
    let mut content = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        content.extend_from_slice(&rest.as_bytes()[..at]);
        let length = escape(&rest[at + 1..], manner.bytes, &mut content)
            .ok_or_else(|| format!("the escape {:?} is none of the language", first_characters(&rest[at..])))?;
        rest = &rest[at + 1 + length..];
    }
    content.extend_from_slice(rest.as_bytes());
    Ok(content)
}

fn first_characters(text: &str) -> String {
    text.chars().take(2).collect()
}

/// Appends what the escape says that follows a backslash; gives its length.
fn escape(text: &str, bytes: bool, content: &mut Vec<u8>) -> Option<usize> {
    let kind = text.chars().next()?;
    let plain = match kind {
        'a' => 7,
        'b' => 8,
        't' => b'\t',
        'n' => b'\n',
        'v' => 11,
        'f' => 12,
        'r' => b'\r',
        '\\' | '?' | '"' | '\'' | '`' => text.as_bytes()[0],
        _ => return numbered(text, kind, bytes, content),
    };
    content.push(plain);
    Some(1)
}

/// An escape that gives a byte or a character by its number.
fn numbered(text: &str, kind: char, bytes: bool, content: &mut Vec<u8>) -> Option<usize> {
    let (before, length, radix) = match kind {
        'x' | 'X' => (1, 2, 16),
        'u' if !bytes => (1, 4, 16),
        'U' if !bytes => (1, 8, 16),
        '0'..='3' => (0, 3, 8),
        _ => return None,
    };
    let digits = text.get(before..before + length)?;
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let number = u32::from_str_radix(digits, radix).ok()?;
    if bytes {
        content.push(u8::try_from(number).ok()?);
    } else {
        let mut buffer = [0; 4];
        content.extend_from_slice(char::from_u32(number)?.encode_utf8(&mut buffer).as_bytes());
    }
    Some(before + length)
}
