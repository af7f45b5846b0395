//! Functions on slash-separated paths. They look at the text alone.

use super::strings::of_text;
use super::{Called, Function, mismatch};
use crate::value::Type::Str;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", &[Str], |arguments| of_text(arguments, base)),
    Function::new("osBase", &[Str], |arguments| of_text(arguments, base)),
    Function::new("dir", &[Str], |arguments| of_text(arguments, dir)),
    Function::new("osDir", &[Str], |arguments| of_text(arguments, dir)),
    Function::new("clean", &[Str], |arguments| of_text(arguments, clean)),
    Function::new("osClean", &[Str], |arguments| of_text(arguments, clean)),
    Function::new("ext", &[Str], |arguments| of_text(arguments, extension)),
    Function::new("osExt", &[Str], |arguments| of_text(arguments, extension)),
    Function::new("isAbs", &[Str], is_absolute),
    Function::new("osIsAbs", &[Str], is_absolute),
];

fn is_absolute(arguments: &[Value]) -> Called {
    let [Value::Str(path)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::Bool(path.starts_with(b"/")))
}

fn base(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let name = path[..end].rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match (path.is_empty(), name.is_empty()) {
        (true, _) => b".".to_vec(),
        (false, true) => b"/".to_vec(),
        (false, false) => name.to_vec(),
    }
}

fn dir(path: &[u8]) -> Vec<u8> {
    let end = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    clean(&path[..end])
}

/// The shortest path that means the same.
fn clean(path: &[u8]) -> Vec<u8> {
    let is_rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if is_rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (is_rooted, joined.is_empty()) {
        (true, _) => [b"/", &*joined].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

fn extension(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    memchr::memrchr(b'.', name).map_or_else(Vec::new, |dot| name[dot..].to_vec())
}
