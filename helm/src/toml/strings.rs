//! Strings of a TOML text: four ways to write one, and their escapes.

use super::Dialect;
use super::cursor::{Cursor, END, Problem, Read, is_line_end};
use crate::format::{quote, quote_char};
use crate::text::{lossy, push_char};

/// How a string is written.
#[derive(Clone, Copy)]
struct Style {
    quote: char,
    is_long: bool,
}

/// Reads a value that begins with the quote that was passed.
pub(super) fn value(cursor: &mut Cursor<'_>, quote: char, dialect: Dialect) -> Read<Vec<u8>> {
    let is_long = if cursor.accept(quote)? {
        if !cursor.accept(quote)? {
            return Ok(Vec::new());
        }
        true
    } else {
        false
    };
    string(cursor, Style { quote, is_long }, dialect)
}

/// Reads a part of a key that begins with the quote that was passed.
pub(super) fn key(cursor: &mut Cursor<'_>, quote: char, dialect: Dialect) -> Read<Vec<u8>> {
    string(cursor, Style { quote, is_long: false }, dialect)
}

fn string(cursor: &mut Cursor<'_>, style: Style, dialect: Dialect) -> Read<Vec<u8>> {
    let raw = if style.is_long {
        long(cursor, style, dialect)?
    } else {
        short(cursor, style, dialect)?
    };
    if style.quote == '"' {
        unescaped(cursor, raw, style)
    } else {
        Ok(raw.to_vec())
    }
}

/// What stands between single quotes of any kind.
fn short<'t>(cursor: &mut Cursor<'t>, style: Style, dialect: Dialect) -> Read<&'t [u8]> {
    let start = cursor.position();
    loop {
        let raw = cursor.since(start);
        match cursor.next()? {
            END => {
                let expected = if style.quote == '"' { "'\"'" } else { "\"'\"" };
                return Err(cursor.wrong_about(END, format!("unexpected EOF; expected {expected}")));
            }
            character if is_line_end(character) => {
                return Err(cursor.wrong_before("strings cannot contain newlines"));
            }
            '\\' if style.quote == '"' => escape(cursor, start, dialect)?,
            character if character == style.quote => return Ok(raw),
            _ => {}
        }
    }
}

/// What stands between triple quotes, without the line end behind the first three. One or two quotes may stand anywhere, also before
/// the last three.
fn long<'t>(cursor: &mut Cursor<'t>, style: Style, dialect: Dialect) -> Read<&'t [u8]> {
    let start = cursor.position();
    loop {
        let raw = cursor.since(start);
        match cursor.next()? {
            END => {
                let expected = if style.quote == '"' { "'\"\"\"'" } else { "\"'''\"" };
                return Err(cursor.wrong_about(END, format!("unexpected EOF; expected {expected}")));
            }
            '\\' if style.quote == '"' => {
                if is_line_end(cursor.peek()?) {
                    cursor.next()?;
                } else {
                    escape(cursor, start, dialect)?;
                }
            }
            character if character == style.quote => {
                if !cursor.accept(style.quote)? {
                    continue;
                }
                if !cursor.accept(style.quote)? {
                    continue;
                }
                if cursor.peek()? != style.quote {
                    return Ok(without_first_line_end(raw));
                }
                if is_sixth(cursor.since(start), style) {
                    let message = if style.quote == '"' {
                        "unexpected '\"\"\"\"\"\"'"
                    } else {
                        "unexpected \"''''''\""
                    };
                    return Err(cursor.wrong(message));
                }
                cursor.go_back(2);
            }
            _ => {}
        }
    }
}

/// Whether five quotes are before the next one, of which the first is not escaped.
fn is_sixth(raw: &[u8], style: Style) -> bool {
    match style.quote {
        '"' => raw.ends_with(b"\"\"\"\"\"") && !raw.ends_with(b"\\\"\"\"\"\""),
        _ => raw.ends_with(b"'''''"),
    }
}

fn without_first_line_end(raw: &[u8]) -> &[u8] {
    raw.strip_prefix(b"\n")
        .or_else(|| raw.strip_prefix(b"\r\n"))
        .unwrap_or(raw)
}

/// Passes what follows a backslash.
fn escape(cursor: &mut Cursor<'_>, start: usize, dialect: Dialect) -> Read<()> {
    let (digits, words) = match cursor.next()? {
        'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\' => return Ok(()),
        'e' if dialect == Dialect::V1_1 => return Ok(()),
        'x' if dialect == Dialect::V1_1 => (2, "two hexadecimal digits after '\\x'"),
        'u' => (4, "four hexadecimal digits after '\\u'"),
        'U' => (8, "eight hexadecimal digits after '\\U'"),
        other => {
            let message = format!("invalid escape in string '\\{other}'");
            return Err(if other == END {
                cursor.wrong_before(message)
            } else {
                cursor.wrong(message)
            });
        }
    };
    for _ in 0..digits {
        let digit = cursor.next()?;
        if !digit.is_ascii_hexdigit() {
            let found = lossy(&quote(cursor.since(start)));
            return Err(cursor.wrong_about(digit, format!("expected {words}, but got {found} instead")));
        }
    }
    Ok(())
}

/// The string that was written with escapes.
fn unescaped(cursor: &Cursor<'_>, raw: &[u8], style: Style) -> Read<Vec<u8>> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(position) = rest.iter().position(|byte| *byte == b'\\') {
        text.extend_from_slice(&rest[..position]);
        rest = &rest[position + 1..];
        if style.is_long {
            let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if rest[..blanks].contains(&b'\n') {
                rest = &rest[blanks..];
                continue;
            }
        }
        let Some((&letter, behind)) = rest.split_first() else {
            break;
        };
        rest = behind;
        let digits = match letter {
            b'b' => push(&mut text, '\u{8}'),
            b't' => push(&mut text, '\t'),
            b'n' => push(&mut text, '\n'),
            b'f' => push(&mut text, '\u{c}'),
            b'r' => push(&mut text, '\r'),
            b'e' => push(&mut text, '\u{1b}'),
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            b' ' | b'\t' => {
                return Err(cursor.wrong(format!("invalid escape: '\\{}'", char::from(letter))));
            }
            other => push(&mut text, char::from(other)),
        };
        if digits > 0 {
            let (code, behind) = rest.split_at(digits);
            rest = behind;
            push_char(&mut text, rune(cursor, code)?);
        }
    }
    text.extend_from_slice(rest);
    Ok(text)
}

fn push(text: &mut Vec<u8>, character: char) -> usize {
    push_char(text, character);
    0
}

fn rune(cursor: &Cursor<'_>, code: &[u8]) -> Result<char, Problem> {
    let code = lossy(code);
    let number = u32::from_str_radix(&code, 16).unwrap_or(u32::MAX);
    char::from_u32(number).ok_or_else(|| cursor.wrong(format!("Escaped character '\\u{code}' is not valid UTF-8.")))
}

/// A rune in an error, as Go quotes it.
pub(super) fn shown(character: char) -> String {
    quote_char(character)
}
