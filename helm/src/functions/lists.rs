//! Functions on lists. None of them changes a list; each gives a new one.

use super::{Called, Function, mismatch};
use crate::bounds::{Walk, check_items};
use crate::functions::numbers::to_int64;
use crate::functions::types::deep_equal;
use crate::value::Type::{Any, Int};
use crate::value::{Element, IntType, List, Shape, Value};

/// What Go says when a function asks nil for its type.
pub(super) const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// What Go says of a list with less than no items, or with more than there can be.
pub(super) const NO_LENGTH: &str = "runtime error: makeslice: len out of range";

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("list", &[Any], |arguments| Ok(list_of(arguments.to_vec()))),
    Function::variadic("tuple", &[Any], |arguments| Ok(list_of(arguments.to_vec()))),
    Function::new("append", &[Any, Any], append),
    Function::new("push", &[Any, Any], append),
    Function::new("mustAppend", &[Any, Any], append),
    Function::new("mustPush", &[Any, Any], append),
    Function::new("prepend", &[Any, Any], prepend),
    Function::new("mustPrepend", &[Any, Any], prepend),
    Function::new("first", &[Any], first),
    Function::new("mustFirst", &[Any], first),
    Function::new("last", &[Any], last),
    Function::new("mustLast", &[Any], last),
    Function::new("rest", &[Any], rest),
    Function::new("mustRest", &[Any], rest),
    Function::new("initial", &[Any], initial),
    Function::new("mustInitial", &[Any], initial),
    Function::new("reverse", &[Any], reverse),
    Function::new("mustReverse", &[Any], reverse),
    Function::new("uniq", &[Any], uniq),
    Function::new("mustUniq", &[Any], uniq),
    Function::new("compact", &[Any], compact),
    Function::new("mustCompact", &[Any], compact),
    Function::variadic("without", &[Any, Any], without),
    Function::variadic("mustWithout", &[Any, Any], without),
    Function::new("has", &[Any, Any], has),
    Function::new("mustHas", &[Any, Any], has),
    Function::variadic("slice", &[Any, Any], slice),
    Function::variadic("mustSlice", &[Any, Any], slice),
    Function::variadic("concat", &[Any], concat),
    Function::new("chunk", &[Int, Any], chunk),
    Function::new("mustChunk", &[Int, Any], chunk),
];

fn list_of(items: Vec<Value>) -> Value {
    Value::List(List::new(items))
}

/// The elements of any slice type, nothing for other values.
pub(super) fn elements(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(list) => Some(list.items().to_vec()),
        Value::Bytes(bytes) => Some(
            bytes
                .iter()
                .map(|byte| Value::Int(i64::from(*byte), IntType::Uint8))
                .collect(),
        ),
        Value::Obj(object) => match object.shape() {
            Shape::List(list) => Some(list.items().to_vec()),
            _ => None,
        },
        _ => None,
    }
}

fn items(value: &Value, complaint: &str) -> Result<Vec<Value>, String> {
    match elements(value) {
        Some(items) => Ok(items),
        None if matches!(value, Value::Nil) => Err(NIL_POINTER.to_owned()),
        None => Err(format!("{complaint} {}", value.kind_name())),
    }
}

fn append(arguments: &[Value]) -> Called {
    let [list, value] = arguments else {
        return Err(mismatch());
    };
    let mut items = items(list, "Cannot push on type")?;
    items.push(value.clone());
    Ok(list_of(items))
}

fn prepend(arguments: &[Value]) -> Called {
    let [list, value] = arguments else {
        return Err(mismatch());
    };
    let mut items = items(list, "Cannot prepend on type")?;
    items.insert(0, value.clone());
    Ok(list_of(items))
}

fn first(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    Ok(items(list, "Cannot find first on type")?
        .into_iter()
        .next()
        .unwrap_or_default())
}

fn last(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    Ok(items(list, "Cannot find last on type")?.pop().unwrap_or_default())
}

/// What Go gives where it never makes a slice.
fn never_made() -> Value {
    Value::List(List::nil(Element::Any))
}

fn rest(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    let mut items = items(list, "Cannot find rest on type")?;
    if items.is_empty() {
        return Ok(never_made());
    }
    Ok(list_of(items.split_off(1)))
}

fn initial(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    let mut items = items(list, "Cannot find initial on type")?;
    if items.pop().is_none() {
        return Ok(never_made());
    }
    Ok(list_of(items))
}

fn reverse(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    let mut items = items(list, "Cannot find reverse on type")?;
    items.reverse();
    Ok(list_of(items))
}

fn contains(items: &[Value], wanted: &Value, walk: &mut Walk) -> Result<bool, String> {
    for item in items {
        if deep_equal(wanted, item, walk)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    let (mut kept, mut walk) = (Vec::new(), Walk::looking());
    for item in items(list, "Cannot find uniq on type")? {
        if !contains(&kept, &item, &mut walk)? {
            kept.push(item);
        }
    }
    Ok(list_of(kept))
}

fn compact(arguments: &[Value]) -> Called {
    let [list] = arguments else { return Err(mismatch()) };
    let mut items = items(list, "Cannot compact on type")?;
    items.retain(|item| !super::defaults::is_empty(item));
    Ok(list_of(items))
}

fn without(arguments: &[Value]) -> Called {
    let [list, omitted @ ..] = arguments else {
        return Err(mismatch());
    };
    let (mut kept, mut walk) = (Vec::new(), Walk::looking());
    for item in items(list, "Cannot find without on type")? {
        if !contains(omitted, &item, &mut walk)? {
            kept.push(item);
        }
    }
    Ok(list_of(kept))
}

fn has(arguments: &[Value]) -> Called {
    let [wanted, list] = arguments else {
        return Err(mismatch());
    };
    if matches!(list, Value::Nil) {
        return Ok(Value::Bool(false));
    }
    let items = items(list, "Cannot find has on type")?;
    contains(&items, wanted, &mut Walk::looking()).map(Value::Bool)
}

fn slice(arguments: &[Value]) -> Called {
    let [list, indices @ ..] = arguments else {
        return Err(mismatch());
    };
    let items = items(list, "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = indices.first().map_or(0, to_int64);
    let end = indices
        .get(1)
        .map_or_else(|| i64::try_from(items.len()).unwrap_or(i64::MAX), to_int64);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| items.get(start..end));
    let part = part.ok_or_else(|| "reflect.Value.Slice: slice index out of bounds".to_owned())?;
    Ok(match list {
        Value::List(list) => Value::List(List::of(list.element(), part.to_vec())),
        Value::Bytes(bytes) => Value::Bytes(range.map_or(&bytes[..0], |(start, end)| &bytes[start..end]).into()),
        _ => Value::List(List::new(part.to_vec())),
    })
}

fn concat(arguments: &[Value]) -> Called {
    let mut joined = Vec::new();
    for list in arguments {
        match elements(list) {
            Some(items) => {
                check_items(joined.len() + items.len())?;
                joined.extend(items);
            }
            None if matches!(list, Value::Nil) => return Err(NIL_POINTER.to_owned()),
            None => return Err(format!("Cannot concat type {} as list", list.kind_name())),
        }
    }
    if joined.is_empty() {
        return Ok(never_made());
    }
    Ok(list_of(joined))
}

fn chunk(arguments: &[Value]) -> Called {
    let [Value::Int(size, _), list] = arguments else {
        return Err(mismatch());
    };
    let items = items(list, "Cannot chunk type")?;
    let chunks: Vec<&[Value]> = match usize::try_from(*size) {
        Ok(0) => return Err(NO_LENGTH.to_owned()),
        Ok(size) => items.chunks(size).collect(),
        // What Go's arithmetic makes of a negative size: as many chunks as go into the list with the sign turned, and one.
        Err(_) => match (items.len(), size.unsigned_abs()) {
            (1, 2..) => vec![&items],
            (length @ 2.., size) if length as u64 - 1 <= size => vec![],
            _ => return Err(NO_LENGTH.to_owned()),
        },
    };
    let chunks = chunks.into_iter().map(|chunk| Value::List(List::new(chunk.to_vec())));
    Ok(Value::List(List::of(Element::List, chunks.collect())))
}
