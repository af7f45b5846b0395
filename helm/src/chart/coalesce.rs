//! How chart defaults, parents' sections, globals and the user's values become one tree.
//!
//! Works on shared maps, because which maps are the same object is visible to templates that change them.

use std::collections::HashSet;

use super::instances::Instance;
use crate::bounds::{check, note_held, note_work};
use crate::format;
use crate::profile::NullRule;
use crate::value::{Bytes, List, Map, Value};
use crate::warning::Said;

/// The key whose value every subchart gets from its parent.
const GLOBAL: &str = "global";

/// What a null over a default does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// It deletes the default.
    Delete,
    /// It stays; used where the result is coalesced once more.
    Keep,
}

/// Whether the result may share maps with the default values that it is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// It is only read, also as default values.
    Allowed,
    /// Somebody may change it.
    Forbidden,
}

/// Whose the table is that lies below another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// The default values of a chart: never changed, and copied where something of them is taken.
    Pristine,
    /// Part of the values as well: what is taken stays the same object, and nulls are written into it.
    Shared,
}

/// Lays values over the defaults of a chart and all charts below it.
pub(crate) fn coalesce(
    chart: Instance<'_>,
    values: &Map,
    nulls: Nulls,
    sharing: Sharing,
    warnings: &mut Vec<Said>,
) -> Result<Map, String> {
    let values = copy_map(values);
    let mut coalescer = Coalescer {
        nulls,
        rule: chart.profile().nulls,
        warnings,
    };
    coalescer.chart(chart, &values, "", sharing)?;
    Ok(values)
}

/// Lays `over` over `base` without a chart; `over` is changed and wins.
pub(crate) fn merge_tables(over: &Map, base: &Map, rule: NullRule, warnings: &mut Vec<Said>) {
    let mut coalescer = Coalescer {
        nulls: Nulls::Keep,
        rule,
        warnings,
    };
    coalescer.tables(over, base, "", Nulls::Keep, Below::Shared);
}

struct Coalescer<'a> {
    nulls: Nulls,
    rule: NullRule,
    warnings: &'a mut Vec<Said>,
}

impl Coalescer<'_> {
    fn chart(&mut self, chart: Instance<'_>, values: &Map, prefix: &str, sharing: Sharing) -> Result<(), String> {
        let prefix = concat(prefix, chart.name());
        check()?;
        self.defaults(chart, values, &prefix, sharing);
        // Charts of one name write into one section.
        let mut names = HashSet::new();
        let sharing = if chart.dependencies().all(|chart| names.insert(chart.name())) {
            sharing
        } else {
            Sharing::Forbidden
        };
        for subchart in chart.dependencies() {
            let name = subchart.name();
            let section = match values.get(name) {
                None => {
                    let section = Map::new();
                    values.insert(name, section.clone());
                    section
                }
                Some(Value::Map(section)) => section,
                Some(other) => return Err(format!("type mismatch on {name}: {}", printed(&other, b"%t"))),
            };
            self.globals(&section, values, &prefix);
            check()?;
            self.chart(subchart, &section, &prefix, sharing)?;
        }
        Ok(())
    }

    fn defaults(&mut self, chart: Instance<'_>, values: &Map, prefix: &str, sharing: Sharing) {
        for (key, default) in &*chart.default_values().entries() {
            let is_subchart = || {
                let mut names = chart.dependencies().map(|chart| chart.name().as_bytes());
                names.any(|name| *name == **key)
            };
            let Some(value) = values.get(key) else {
                // Sections of subcharts and globals are what later steps write into.
                let is_read = sharing == Sharing::Allowed && **key != *GLOBAL.as_bytes() && !is_subchart();
                let default = if is_read && !self.drops_nulls() {
                    default.clone()
                } else {
                    copy(default)
                };
                if self.nulls == Nulls::Keep || self.is_kept(&default) {
                    values.insert(Bytes::clone(key), default);
                }
                continue;
            };
            match (value, default) {
                (Value::Nil, _) if self.nulls == Nulls::Delete => {
                    values.remove(key);
                }
                (Value::Map(value), Value::Map(default)) => {
                    let nulls = if is_subchart() { Nulls::Keep } else { self.nulls };
                    let prefix = concat(prefix, &lossy(key));
                    if nulls == Nulls::Delete && self.drops_nulls() {
                        let default = copy_map(default);
                        drop_nulls(&default);
                        self.tables(&value, &default, &prefix, nulls, Below::Shared);
                    } else {
                        self.tables(&value, default, &prefix, nulls, Below::Pristine);
                    }
                }
                (Value::Map(_), Value::Nil) => {}
                (Value::Map(_), _) => {
                    self.warn(237, format!("skipped value for {prefix}.{}: Not a table.", lossy(key)));
                }
                _ => {}
            }
        }
    }

    fn drops_nulls(&self) -> bool {
        self.rule == NullRule::DropDefaultNulls
    }

    /// Whether a default that nothing covers stays; the nulls inside go if those of defaults do.
    fn is_kept(&self, default: &Value) -> bool {
        if !self.drops_nulls() {
            return true;
        }
        if let Value::Map(default) = default {
            drop_nulls(default);
        }
        !matches!(default, Value::Nil)
    }

    /// Copies the parent's globals down. What the parent has wins, tables merge.
    fn globals(&mut self, section: &Map, parent: &Map, prefix: &str) {
        let own = match section.get(GLOBAL) {
            None => Map::new(),
            Some(Value::Map(own)) => own,
            Some(_) => {
                return self.warn(
                    138,
                    "skipping globals because destination global is not a table.".to_owned(),
                );
            }
        };
        let inherited = match parent.get(GLOBAL) {
            None => Map::new(),
            Some(Value::Map(inherited)) => inherited,
            Some(_) => return self.warn(145, "skipping globals because source global is not a table.".to_owned()),
        };
        for (key, value) in inherited.to_vec() {
            match (value, own.get(&key)) {
                (Value::Map(value), existing) => {
                    // The first level is copied, everything below stays shared with the parent.
                    let table: Map = value.to_vec().into_iter().collect();
                    note_held(table.own_bytes());
                    match existing {
                        Some(Value::Map(existing)) => {
                            let prefix = concat(prefix, &lossy(&key));
                            self.tables(&table, &existing, &prefix, Nulls::Keep, Below::Shared);
                        }
                        Some(_) => {
                            let key = lossy(&key);
                            self.say(
                                161,
                                format!("Conflict: cannot merge map onto non-map for {key:?}. Skipping."),
                            );
                            continue;
                        }
                        None => {}
                    }
                    own.insert(key, table);
                }
                (_, Some(Value::Map(_))) => self.say(175, format!("key {} is table. Skipping", lossy(&key))),
                (value, _) => {
                    own.insert(key, value);
                }
            }
        }
        section.insert(GLOBAL, own);
    }

    fn tables(&mut self, over: &Map, base: &Map, prefix: &str, nulls: Nulls, below: Below) {
        note_work(base.len() as u64);
        let bases = base.to_vec();
        if self.rule != NullRule::Delete && below == Below::Shared {
            // Later versions write the nulls into the table below as well.
            for (key, _) in over
                .to_vec()
                .into_iter()
                .filter(|(_, value)| matches!(value, Value::Nil))
            {
                base.insert(key, Value::Nil);
            }
        }
        for (key, value) in bases {
            let full = || concat(prefix, &lossy(&key));
            let covers = self.rule == NullRule::Delete || !matches!(value, Value::Nil);
            match (over.get(&key), value) {
                (Some(Value::Nil), _) if nulls == Nulls::Delete && covers => {
                    over.remove(&key);
                }
                (Some(Value::Nil), _) if self.rule != NullRule::Delete => {}
                (None, value) => {
                    let value = match below {
                        Below::Pristine => copy(&value),
                        Below::Shared => value,
                    };
                    over.insert(key, value);
                }
                (Some(Value::Map(over)), Value::Map(value)) => self.tables(&over, &value, &full(), nulls, below),
                (Some(_), Value::Map(value)) => {
                    let value = printed(&Value::Map(value), b"%v");
                    self.warn(
                        298,
                        format!("cannot overwrite table with non table for {} ({value})", full()),
                    );
                }
                (Some(Value::Map(_)), value) if !matches!(value, Value::Nil) => {
                    let value = printed(&value, b"%v");
                    self.warn(
                        301,
                        format!(
                            "destination for {} is a table. Ignoring non-table value ({value})",
                            full()
                        ),
                    );
                }
                _ => {}
            }
        }
    }

    /// Says what Helm 3.19 says in a line of its own, as a warning.
    fn warn(&mut self, line: u16, words: String) {
        self.push(line, true, words);
    }

    /// Likewise, but not as a warning.
    fn say(&mut self, line: u16, words: String) {
        self.push(line, false, words);
    }

    fn push(&mut self, line: u16, is_warning: bool, words: String) {
        note_held(words.len());
        self.warnings.push(Said::Values {
            line,
            is_warning,
            words,
        });
    }
}

/// Removes the nulls of a table and of all tables below it, but not those in lists.
fn drop_nulls(table: &Map) {
    for (key, value) in table.to_vec() {
        match value {
            Value::Nil => {
                table.remove(&key);
            }
            Value::Map(inner) => drop_nulls(&inner),
            _ => {}
        }
    }
}

/// A copy that shares nothing with the original.
pub(crate) fn copy_map(map: &Map) -> Map {
    note_work(map.len() as u64);
    let mut entries = map.entries().clone();
    entries.values_mut().for_each(unshare);
    entries.into()
}

fn copy(value: &Value) -> Value {
    let mut copy = value.clone();
    unshare(&mut copy);
    copy
}

/// Puts a copy in the place of what can change. Lists cannot, but what is in them can.
fn unshare(value: &mut Value) {
    match value {
        Value::Map(map) => *map = copy_map(map),
        Value::List(list)
            if list
                .items()
                .iter()
                .any(|item| matches!(item, Value::Map(_) | Value::List(_))) =>
        {
            let mut items = list.items().to_vec();
            items.iter_mut().for_each(unshare);
            *list = List::of(list.element(), items);
        }
        _ => {}
    }
}

fn concat(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

fn lossy(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

pub(crate) fn printed(value: &Value, verb: &[u8]) -> String {
    format::sprintf(verb, std::slice::from_ref(value)).map_or_else(|error| error.to_string(), |text| lossy(&text))
}
