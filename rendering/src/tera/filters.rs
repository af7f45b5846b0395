//! Filters beside Tera's own: such as YAML needs, and one that has to give the same answer every time.

use std::collections::BTreeMap;

use tera::value::Key;
use tera::{Error, Kwargs, Map, State, Tera, TeraResult, Value};

/// Adds them to an engine.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter("json_encode", json_encode);
    tera.register_filter("group_by", group_by);
}

/// JSON, which is YAML too: what makes any value one field, and quotes a text.
fn json_encode(value: &Value, _: Kwargs, _: &State) -> TeraResult<String> {
    serde_json::to_string(value).map_err(|error| Error::message(format!("the value is no JSON: {error}")))
}

/// As Tera's, but groups come in the order of their keys. Tera's have another one in every process.
#[expect(clippy::needless_pass_by_value, reason = "filters get it so")]
fn group_by(items: &[Value], arguments: Kwargs, _: &State) -> TeraResult<Map> {
    let attribute = arguments.must_get::<&str>("attribute")?;
    let mut groups: BTreeMap<Key<'static>, Vec<Value>> = BTreeMap::new();
    for (position, item) in items.iter().enumerate() {
        let Some(value) = item.get_from_path(attribute) else {
            let what = item.name();
            return Err(Error::message(format!("item {position} ({what}) has no {attribute:?}")));
        };
        if !value.is_none() {
            groups.entry(key(value)?).or_default().push(item.clone());
        }
    }
    Ok(groups.into_iter().map(|(key, items)| (key, items.into())).collect())
}

fn key(value: &Value) -> TeraResult<Key<'static>> {
    if let Some(text) = value.as_str() {
        return Ok(Key::from(text.to_owned()));
    }
    let number = value.as_i128().filter(|_| !value.is_f64());
    let key = value.as_bool().map(Key::Bool).or(number.map(Key::from));
    key.ok_or_else(|| Error::message(format!("{} cannot be the name of a group", value.name())))
}
