//! Functions that cut, pad, search and replace in strings. Positions and lengths are bytes, as in Go.

use std::collections::HashSet;

use super::{Called, Function, mismatch};
use crate::bounds::check_bytes;
use crate::format::{self, quote as go_quote};
use crate::text::{self, find, replace_all};
use crate::value::Type::{Any, Int, Str};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("hello", &[], |_| Ok(Value::from("Hello!"))),
    Function::new("trunc", &[Int, Str], trunc),
    Function::new("substr", &[Int, Int, Str], substr),
    Function::new("trim", &[Str], |arguments| {
        of_text(arguments, |text| text::trim_space(text).to_vec())
    }),
    Function::new("trimAll", &[Str, Str], trim_all),
    Function::new("trimall", &[Str, Str], trim_all),
    Function::new("trimSuffix", &[Str, Str], |arguments| {
        of_two(arguments, |suffix, text| {
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        })
    }),
    Function::new("trimPrefix", &[Str, Str], |arguments| {
        of_two(arguments, |prefix, text| {
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        })
    }),
    Function::new("contains", &[Str, Str], |arguments| {
        of_two(arguments, |part, text| Value::Bool(find(text, part).is_some()))
    }),
    Function::new("hasPrefix", &[Str, Str], |arguments| {
        of_two(arguments, |prefix, text| Value::Bool(text.starts_with(prefix)))
    }),
    Function::new("hasSuffix", &[Str, Str], |arguments| {
        of_two(arguments, |suffix, text| Value::Bool(text.ends_with(suffix)))
    }),
    Function::new("replace", &[Str, Str, Str], replace),
    Function::new("repeat", &[Int, Str], repeat),
    Function::new("indent", &[Int, Str], |arguments| indented(arguments, b"")),
    Function::new("nindent", &[Int, Str], |arguments| indented(arguments, b"\n")),
    Function::variadic("quote", &[Any], |arguments| {
        joined(arguments, |value| Ok(go_quote(&format::to_text(value)?)))
    }),
    Function::variadic("squote", &[Any], |arguments| joined(arguments, single_quoted)),
    Function::variadic("cat", &[Any], |arguments| {
        joined(arguments, |value| format::sprint(std::slice::from_ref(value)))
    }),
    Function::new("toString", &[Any], to_string),
    Function::new("plural", &[Str, Str, Int], plural),
    Function::new("abbrev", &[Int, Str], abbrev),
    Function::new("abbrevboth", &[Int, Int, Str], abbrevboth),
    Function::new("wrap", &[Int, Str], wrap),
    Function::new("wrapWith", &[Int, Str, Str], wrap_with),
];

pub(super) fn of_text(arguments: &[Value], map: impl Fn(&[u8]) -> Vec<u8>) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::from(map(text)))
}

fn of_two(arguments: &[Value], map: impl Fn(&[u8], &[u8]) -> Value) -> Called {
    let [Value::Str(first), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    Ok(map(first, text))
}

fn trunc(arguments: &[Value]) -> Called {
    let [Value::Int(count, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let kept = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let cut = match kept < text.len() {
        true if *count < 0 => &text[text.len() - kept..],
        true => &text[..kept],
        false => text,
    };
    Ok(Value::from(cut))
}

fn substr(arguments: &[Value]) -> Called {
    let [Value::Int(start, _), Value::Int(end, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (start, end) = match (*start, *end) {
        (start, end) if start < 0 => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        both => both,
    };
    let position = |number: i64| usize::try_from(number).ok().filter(|position| *position <= text.len());
    match (position(start), position(end)) {
        (Some(from), Some(to)) if from <= to => Ok(Value::from(&text[from..to])),
        (_, Some(_)) => Err(format!("runtime error: slice bounds out of range [{start}:{end}]")),
        (_, None) if end < 0 => Err(format!("runtime error: slice bounds out of range [:{end}]")),
        (_, None) => Err(format!(
            "runtime error: slice bounds out of range [:{end}] with length {length}"
        )),
    }
}

fn trim_all(arguments: &[Value]) -> Called {
    let [Value::Str(cutset), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let cutset: HashSet<char> = text::runes(cutset).map(text::Rune::or_replacement).collect();
    let is_cut = |character: char| cutset.contains(&character);
    Ok(Value::from(text::trim_end(text::trim_start(text, is_cut), is_cut)))
}

fn replace(arguments: &[Value]) -> Called {
    let [Value::Str(old), Value::Str(new), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let places = if old.is_empty() {
        text.len() + 1
    } else {
        memchr::memmem::find_iter(text, &**old).count()
    };
    check_bytes(text.len().saturating_add(places.saturating_mul(new.len())))?;
    Ok(Value::from(replace_all(text, old, new)))
}

fn repeated(count: i64, text: &[u8]) -> Result<Vec<u8>, String> {
    let count = usize::try_from(count).map_err(|_| "strings: negative Repeat count".to_owned())?;
    check_bytes(count.saturating_mul(text.len()))?;
    Ok(text.repeat(count))
}

fn repeat(arguments: &[Value]) -> Called {
    let [Value::Int(count, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::from(repeated(*count, text)?))
}

fn indented(arguments: &[Value], before: &[u8]) -> Called {
    let [Value::Int(spaces, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let pad = repeated(*spaces, b" ")?;
    let lines = memchr::memchr_iter(b'\n', text).count() + 1;
    check_bytes(lines.saturating_mul(pad.len()))?;
    let mut indented = before.to_vec();
    indented.extend_from_slice(&pad);
    for byte in text.iter() {
        indented.push(*byte);
        if *byte == b'\n' {
            indented.extend_from_slice(&pad);
        }
    }
    Ok(Value::from(indented))
}

/// The texts of the arguments that are not nil, with spaces between them.
fn joined(arguments: &[Value], to_text: impl Fn(&Value) -> Result<Vec<u8>, format::FormatError>) -> Called {
    let texts = format::texts(arguments, to_text).map_err(|error| error.to_string())?;
    Ok(Value::from(texts.join(&b' ')))
}

fn single_quoted(value: &Value) -> Result<Vec<u8>, format::FormatError> {
    let printed = format::sprint(std::slice::from_ref(value))?;
    Ok([b"'", &*printed, b"'"].concat())
}

fn to_string(arguments: &[Value]) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    format::to_text(value)
        .map(Value::from)
        .map_err(|error| error.to_string())
}

fn plural(arguments: &[Value]) -> Called {
    let [one, many, Value::Int(count, _)] = arguments else {
        return Err(mismatch());
    };
    Ok(if *count == 1 { one.clone() } else { many.clone() })
}

fn abbrev(arguments: &[Value]) -> Called {
    let [Value::Int(width, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::from(if *width < 4 {
        text.to_vec()
    } else {
        abbreviated(text, 0, *width)
    }))
}

fn abbrevboth(arguments: &[Value]) -> Called {
    let [Value::Int(left, _), Value::Int(right, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let is_too_narrow = *right < 4 || (*left > 0 && *right < 7);
    Ok(Value::from(if is_too_narrow {
        text.to_vec()
    } else {
        abbreviated(text, *left, *right)
    }))
}

/// An abbreviation of at most `width` bytes that shows what stands at `offset`. The width is at least 4.
fn abbreviated(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    if text.len() <= width {
        return text.to_vec();
    }
    let shown = width - 3;
    let offset = usize::try_from(offset).unwrap_or(0).min(text.len() - shown);
    if offset <= 4 {
        return [&text[..shown], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + shown < text.len() {
        let rest = &text[offset..];
        // What is left after the first mark may itself be too narrow to abbreviate.
        let rest = if shown < 4 {
            Vec::new()
        } else {
            abbreviated(rest, 0, i64::try_from(shown).unwrap_or(i64::MAX))
        };
        return [b"...", &*rest].concat();
    }
    [b"...", &text[text.len() - shown..]].concat()
}

fn wrap(arguments: &[Value]) -> Called {
    let [Value::Int(width, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::from(wrapped(text, *width, b"\n", false)))
}

fn wrap_with(arguments: &[Value]) -> Called {
    let [Value::Int(width, _), Value::Str(separator), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let separator: &[u8] = if separator.is_empty() { b"\n" } else { separator };
    check_bytes(text.len().saturating_mul(separator.len()))?;
    Ok(Value::from(wrapped(text, *width, separator, true)))
}

/// Breaks a text at spaces; words longer than the width are cut only when that is asked for.
fn wrapped(text: &[u8], width: i64, separator: &[u8], cuts_words: bool) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut rest = text;
    let mut wrapped = Vec::with_capacity(text.len());
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        let space = memchr::memrchr(b' ', &rest[..=width]);
        let (line, skipped) = match space {
            Some(space) => (space, 1),
            None if cuts_words => (width, 0),
            None => match memchr::memchr(b' ', &rest[width..]) {
                Some(space) => (width + space, 1),
                None => break,
            },
        };
        wrapped.extend_from_slice(&rest[..line]);
        wrapped.extend_from_slice(separator);
        rest = &rest[line + skipped..];
    }
    wrapped.extend_from_slice(rest);
    wrapped
}
