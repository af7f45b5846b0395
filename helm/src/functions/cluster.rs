//! Functions that look at the world around a render.

use super::{Called, Function, mismatch};
use crate::answers::{Answer, Ask, Lookup, wrong_kind};
use crate::value::Type::Str;
use crate::value::Value;
use crate::yaml::Node;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::asking("lookup", &[Str, Str, Str, Str], lookup),
    // Helm asks the network only when it is told to by a flag of its own.
    Function::new("getHostByName", &[Str], |_| Ok(Value::from(""))),
];

/// Without a cluster nothing is found.
fn lookup(mut ask: Ask<'_>) -> Called {
    let [
        Value::Str(api_version),
        Value::Str(kind),
        Value::Str(namespace),
        Value::Str(name),
    ] = ask.arguments
    else {
        return Err(mismatch());
    };
    let [api_version, kind, namespace, name] =
        [api_version, kind, namespace, name].map(|text| String::from_utf8_lossy(text).into_owned());
    let lookup = Lookup {
        api_version,
        kind,
        namespace,
        name,
    };
    match ask.looked_up(&lookup)? {
        Answer::Object(object @ Node::Map(_)) => Ok(object.to_value()),
        other => Err(wrong_kind("an object", &other)),
    }
}
