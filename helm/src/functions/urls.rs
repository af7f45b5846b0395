//! `urlParse` and `urlJoin`. The rules are in [`crate::url`].

use super::lists::NIL_POINTER;
use super::{Called, Function, FunctionSet, mismatch};
use crate::url::{HostRule, Url};
use crate::value;
use crate::value::Type::{Map, Str};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("urlParse", &[Str], |arguments| url_parse(arguments, HostRule::Any)),
    Function::new("urlParse", &[Str], |arguments| {
        url_parse(arguments, HostRule::Addresses)
    })
    .since(FunctionSet::V4_0),
    Function::new("urlParse", &[Str], |arguments| {
        url_parse(arguments, HostRule::AddressesAndOneColon)
    })
    .since(FunctionSet::V4_2),
    Function::new("urlJoin", &[Map], url_join),
];

fn url_parse(arguments: &[Value], rule: HostRule) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let url = Url::parse(text, rule).map_err(|problem| format!("unable to parse url: {problem}"))?;
    let parts = value::Map::new();
    parts.insert("hostname", url.host_name());
    parts.insert("userinfo", url.user.map(|user| user.text()).unwrap_or_default());
    parts.insert("scheme", url.scheme);
    parts.insert("host", url.host);
    parts.insert("path", url.path);
    parts.insert("query", url.query);
    parts.insert("opaque", url.opaque);
    parts.insert("fragment", url.fragment);
    Ok(Value::Map(parts))
}

fn url_join(arguments: &[Value]) -> Called {
    let parts = match arguments {
        [Value::Map(parts)] => parts,
        [Value::Nil] => return Ok(Value::from("")),
        _ => return Err(mismatch()),
    };
    let mut url = Url {
        scheme: part(parts, "scheme")?,
        host: part(parts, "host")?,
        path: part(parts, "path")?,
        query: part(parts, "query")?,
        opaque: part(parts, "opaque")?,
        fragment: part(parts, "fragment")?,
        user: None,
    };
    let user = part(parts, "userinfo")?;
    if !user.is_empty() {
        let around = [b"proto://", user.as_slice(), b"@host"].concat();
        // The host is ours, so any rule will do.
        let parsed = Url::parse(&around, HostRule::Any)
            .map_err(|problem| format!("unable to parse userinfo in dict: {problem}"))?;
        url.user = parsed.user;
    }
    Ok(Value::from(url.text()))
}

/// The text of a key, empty where it is absent.
fn part(parts: &value::Map, key: &str) -> Result<Vec<u8>, String> {
    match parts.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Str(text)) => Ok(text.to_vec()),
        Some(Value::Nil) => Err(NIL_POINTER.to_owned()),
        Some(other) => Err(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind_name()
        )),
    }
}
