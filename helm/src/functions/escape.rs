//! `html`, `js`, `urlquery`: the printed arguments, made harmless for where they go.

use super::{Called, Function};
use crate::format;
use crate::text::{is_print, push_char, runes};
use crate::value::Type::Any;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("html", &[Any], |arguments| escaped(arguments, html)),
    Function::variadic("js", &[Any], |arguments| escaped(arguments, js)),
    Function::variadic("urlquery", &[Any], |arguments| escaped(arguments, url_query)),
];

fn escaped(arguments: &[Value], escape: fn(&[u8]) -> Vec<u8>) -> Called {
    // A missing value prints as in an action, not as in `print`.
    let printable: Vec<Value> = arguments
        .iter()
        .map(|argument| match argument {
            Value::Nil => Value::from("<no value>"),
            other => other.clone(),
        })
        .collect();
    let printed = format::sprint(&printable).map_err(|error| error.to_string())?;
    Ok(Value::from(escape(&printed)))
}

fn html(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => push_char(&mut escaped, char::REPLACEMENT_CHARACTER),
            b'"' => escaped.extend_from_slice(b"&#34;"),
            b'\'' => escaped.extend_from_slice(b"&#39;"),
            b'&' => escaped.extend_from_slice(b"&amp;"),
            b'<' => escaped.extend_from_slice(b"&lt;"),
            b'>' => escaped.extend_from_slice(b"&gt;"),
            _ => escaped.push(*byte),
        }
    }
    escaped
}

fn js(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for rune in runes(text) {
        let character = rune.or_replacement();
        match character {
            '\\' | '\'' | '"' => {
                escaped.push(b'\\');
                escaped.extend_from_slice(rune.bytes);
            }
            '<' | '>' | '&' | '=' | '\0'..' ' => {
                escaped.extend_from_slice(format!("\\u{:04X}", character as u32).as_bytes());
            }
            _ if character.is_ascii() || is_print(character) => escaped.extend_from_slice(rune.bytes),
            _ => escaped.extend_from_slice(format!("\\u{:04X}", character as u32).as_bytes()),
        }
    }
    escaped
}

fn url_query(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => escaped.push(b'+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(*byte),
            _ => escaped.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    escaped
}
