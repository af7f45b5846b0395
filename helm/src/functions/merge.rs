//! Merging maps as the Go library mergo does it, with its odd ideas of what is empty.

use super::defaults::is_empty;
use crate::bounds::{BoundError, Walk, read};
use crate::value::{Map, Value};

/// Merges `source` into `target`, in place.
///
/// Without `overwrites` an entry of the target stays unless it is empty (false, 0, "" and so on). With it the source
/// wins, empty or not. Either way two maps are merged entry by entry, and a map that the target lacks is shared with
/// the source from then on.
pub(super) fn merge(target: &Map, source: &Map, overwrites: bool) -> Result<(), String> {
    Ok(merge_at(target, source, overwrites, &mut Walk::looking(), 0)?)
}

fn merge_at(target: &Map, source: &Map, overwrites: bool, walk: &mut Walk, depth: usize) -> Result<(), BoundError> {
    for (key, value) in source.to_vec() {
        walk.visit(depth)?;
        read(key.len())?;
        let existing = target.get(&key);
        match (&value, &existing) {
            (Value::Nil, _) => {
                if overwrites {
                    target.insert(key, value);
                }
                continue;
            }
            (Value::Map(from), Some(Value::Map(into))) => {
                merge_at(into, from, overwrites, walk, depth + 1)?;
                if !into.is_empty() {
                    continue;
                }
            }
            _ => {}
        }
        if overwrites || existing.as_ref().is_none_or(is_empty) {
            target.insert(key, value);
        }
    }
    Ok(())
}
