//! Merge keys, as in `<<: *defaults`: a map has what the maps have that it names so, but for what it has itself. Go's parser knows them, and so do people who
//! write files for it.

use serde_yaml::{Mapping, Value};

use super::ReleaseFileError;

/// The key of what is merged.
const MERGE: &str = "<<";

/// What a text says with its merge keys followed; nothing if it has none, or is no YAML, which whoever reads it tells.
pub(super) fn merged(text: &[u8]) -> Result<Option<Value>, ReleaseFileError> {
    if !text.windows(MERGE.len()).any(|part| part == MERGE.as_bytes()) {
        return Ok(None);
    }
    let Ok(mut value) = serde_yaml::from_slice(text) else {
        return Ok(None);
    };
    Ok(merge_within(&mut value)?.then_some(value))
}

/// Says whether there was anything to merge.
fn merge_within(value: &mut Value) -> Result<bool, ReleaseFileError> {
    let mut was_any = false;
    match value {
        Value::Mapping(map) => {
            // First within what is merged: it may have been merged itself.
            for value in map.values_mut() {
                was_any |= merge_within(value)?;
            }
            if let Some(merged) = map.remove(MERGE) {
                was_any = true;
                merge(map, merged)?;
            }
        }
        Value::Sequence(items) => {
            for item in items {
                was_any |= merge_within(item)?;
            }
        }
        _ => {}
    }
    Ok(was_any)
}

/// Of several maps the first that has a key.
fn merge(map: &mut Mapping, merged: Value) -> Result<(), ReleaseFileError> {
    let merged = match merged {
        Value::Sequence(maps) => maps,
        one => vec![one],
    };
    for one in merged {
        let Value::Mapping(one) = one else {
            return Err(ReleaseFileError::Merge);
        };
        for (key, value) in one {
            map.entry(key).or_insert(value);
        }
    }
    Ok(())
}
