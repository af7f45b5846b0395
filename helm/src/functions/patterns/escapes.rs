//! Escapes in Go's regular expressions that stand for one character.

use super::{error, read};

/// The character that an escape stands for.
pub(super) fn escaped(text: &str) -> Result<(char, &str), String> {
    let mut characters = text[1..].chars();
    let Some(first) = characters.next() else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let mut rest = characters.as_str();
    let character = match first {
        'a' => Some('\u{7}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        '0' | '1'..='7' if first == '0' || rest.starts_with(|digit: char| digit.is_digit(8)) => {
            let length = rest
                .bytes()
                .take(2)
                .take_while(|digit| (b'0'..=b'7').contains(digit))
                .count();
            let digits = &text[1..2 + length];
            rest = &rest[length..];
            u32::from_str_radix(digits, 8).ok().and_then(char::from_u32)
        }
        'x' => {
            let (code, after) = hexadecimal(rest);
            rest = after;
            code
        }
        _ if first.is_ascii() && !first.is_ascii_alphanumeric() => Some(first),
        _ => None,
    };
    match character {
        Some(character) => Ok((character, rest)),
        None => Err(error("invalid escape sequence", read(text, rest))),
    }
}

/// `41` or `{1F600}`, and how far Go reads before it gives up.
fn hexadecimal(text: &str) -> (Option<char>, &str) {
    let Some(body) = text.strip_prefix('{') else {
        let end = text.char_indices().nth(2).map_or(text.len(), |(end, _)| end);
        let (digits, rest) = text.split_at(end);
        let code = if digits.len() == 2 {
            u32::from_str_radix(digits, 16).ok()
        } else {
            None
        };
        return (code.and_then(char::from_u32), rest);
    };
    let (mut code, mut length) = (0, 0);
    for digit in body.chars().map_while(|digit| digit.to_digit(16)) {
        (code, length) = (code * 16 + digit, length + 1);
        if code > u32::from(char::MAX) {
            return (None, &body[length..]);
        }
    }
    let rest = &body[length..];
    let code = char::from_u32(code).filter(|_| length > 0);
    let after = rest.char_indices().nth(1).map_or("", |(next, _)| &rest[next..]);
    if rest.starts_with('}') {
        (code, after)
    } else {
        (None, after)
    }
}
