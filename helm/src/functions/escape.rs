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
    // Missing values and pointers print as in an action, with the spaces of `print`.
    let (mut printed, mut previous_is_string) = (Vec::new(), true);
    for argument in arguments {
        let is_string = matches!(argument, Value::Str(_) | Value::Nil);
        if !is_string && !previous_is_string {
            printed.push(b' ');
        }
        match argument {
            Value::Str(text) => printed.extend_from_slice(text),
            Value::Nil => printed.extend_from_slice(b"<no value>"),
            other => printed.extend(format::sprint_target(other).map_err(|error| error.to_string())?),
        }
        previous_is_string = is_string;
    }
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
