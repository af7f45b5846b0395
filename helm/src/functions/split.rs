//! Functions between strings and lists of strings.

use super::{Called, Function, mismatch};
use crate::bounds::{BoundError, check_bytes, check_items, read};
use crate::format;
use crate::text;
use crate::value::Type::{Any, Int, Str};
use crate::value::{Element, List, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("split", &[Str, Str], split),
    Function::new("splitn", &[Str, Int, Str], splitn),
    Function::new("splitList", &[Str, Str], split_list),
    Function::new("join", &[Str, Any], join),
    Function::new("toStrings", &[Any], to_strings),
    Function::new("sortAlpha", &[Any], sort_alpha),
];

/// The parts under the keys `_0`, `_1` and so on.
fn numbered(parts: Vec<&[u8]>) -> Called {
    check_items(parts.len())?;
    let map = Map::of(Element::Str);
    for (index, part) in parts.into_iter().enumerate() {
        map.insert(format!("_{index}"), part);
    }
    Ok(Value::Map(map))
}

fn split(arguments: &[Value]) -> Called {
    let [Value::Str(separator), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    numbered(text::split(text, separator, -1))
}

fn splitn(arguments: &[Value]) -> Called {
    let [Value::Str(separator), Value::Int(limit, _), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    numbered(text::split(text, separator, *limit))
}

fn split_list(arguments: &[Value]) -> Called {
    let [Value::Str(separator), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let parts = text::split(text, separator, -1);
    check_items(parts.len())?;
    Ok(Value::List(List::strings(parts)))
}

/// The elements of any slice as text, without those that are nil; a single value counts as a slice of itself.
fn texts(value: &Value) -> Result<Vec<Vec<u8>>, String> {
    let items: Vec<Value> = match super::lists::elements(value) {
        Some(items) => items,
        None => vec![value.clone()],
    };
    format::texts(&items, format::to_text).map_err(|error| error.to_string())
}

fn join(arguments: &[Value]) -> Called {
    let [Value::Str(separator), list] = arguments else {
        return Err(mismatch());
    };
    let texts = texts(list)?;
    check_bytes(separator.len().saturating_mul(texts.len()))?;
    Ok(Value::from(texts.join(&**separator)))
}

fn to_strings(arguments: &[Value]) -> Called {
    match arguments {
        [Value::List(list)] if list.element() == Element::Str => Ok(Value::List(list.clone())),
        [value] => Ok(Value::List(List::strings(texts(value)?))),
        _ => Err(mismatch()),
    }
}

fn sort_alpha(arguments: &[Value]) -> Called {
    match arguments {
        // Go sorts a list of strings where it stands: who else holds it sees it sorted.
        [Value::List(list)] if list.element() == Element::Str => {
            pay_for_sorting(list.items().iter().filter_map(Value::as_str))?;
            list.sort_strings();
            Ok(Value::List(list.clone()))
        }
        [value] if super::lists::elements(value).is_some() => {
            let mut sorted = texts(value)?;
            pay_for_sorting(sorted.iter().map(Vec::as_slice))?;
            sorted.sort();
            Ok(Value::List(List::strings(sorted)))
        }
        [value] => {
            let text = format::to_text(value).map_err(|error| error.to_string())?;
            Ok(Value::List(List::strings([text])))
        }
        _ => Err(mismatch()),
    }
}

/// Texts may have long beginnings in common.
fn pay_for_sorting<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Result<(), BoundError> {
    let (count, bytes) = texts.fold((0_usize, 0_usize), |(count, bytes), text| {
        (count + 1, bytes + text.len() + size_of::<Value>())
    });
    let rounds = count.checked_ilog2().unwrap_or_default() as usize;
    read(bytes.saturating_mul(rounds))
}
