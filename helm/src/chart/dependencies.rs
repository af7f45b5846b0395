//! Which subcharts take part in a render, under which names, and which of their values their parents import.

use std::collections::HashSet;

use super::Loaded;
use super::coalesce::{Nulls, Sharing, coalesce, copy_map, merge_tables};
use super::instances::{ChartId, Declared, DeclaredId, Instances};
use super::metadata::{Dependency, ImportValues, Metadata};
use crate::bounds::{BYTES_PER_STEP, BoundError, MAX_DEPTH, check, note_work, spend};
use crate::profile::Profile;
use crate::semver::{Constraints, Library, Version};
use crate::value::{Map, Value};
use crate::warning::Said;

/// What comparing a version with a range takes, about, and how much of their texts is read in about the time of a step.
const STEPS_PER_RANGE: u64 = 8;
const BYTES_PER_RANGE_STEP: usize = 8;

/// How many names of charts are compared in about the time of a step.
const PAIRS_PER_STEP: usize = 16;

/// Names of `Chart.yaml` for which there is no chart at all.
pub(crate) fn missing_dependencies(chart: &Loaded) -> Vec<&str> {
    let charts = chart.dependencies.iter();
    let there: HashSet<&str> = charts.map(|chart| chart.metadata.name.as_str()).collect();
    let wanted = chart.metadata.dependencies.iter().flatten();
    wanted
        .map(|dependency| dependency.name.as_str())
        .filter(|name| !there.contains(name))
        .collect()
}

/// Decides the dependencies for the user's values and imports values into the defaults. The error is Helm's text.
pub(crate) fn process(charts: &mut Instances, values: &Map, warnings: &mut Vec<Said>) -> Result<(), String> {
    let mut process = Process { charts, warnings };
    process.decide(ChartId::ROOT, values, "")?;
    process.import(ChartId::ROOT)
}

/// Goes through the charts as Helm does: a chart that is below several others comes once for each, as the last time has left it.
struct Process<'a> {
    charts: &'a mut Instances,
    warnings: &'a mut Vec<Said>,
}

impl Process<'_> {
    fn decide(&mut self, chart: ChartId, values: &Map, path: &str) -> Result<(), String> {
        let Some(mut declared) = self.charts.declared_by(chart).map(<[_]>::to_vec) else {
            return Ok(());
        };
        self.use_declared(chart, &declared)?;
        let values = coalesce(
            self.charts.at(chart),
            values,
            Nulls::Delete,
            Sharing::Allowed,
            self.warnings,
        )?;
        let mut disabled = HashSet::new();
        for &id in &declared {
            let dependency = &mut self.charts.declared_mut(id).dependency;
            dependency.enabled = by_tags(dependency, &values, self.warnings);
            if let Some(enabled) = by_condition(dependency, &values, path, self.warnings) {
                dependency.enabled = enabled;
            }
            if !dependency.enabled {
                disabled.insert(dependency.name.clone());
            }
        }
        declared.retain(|&id| !disabled.contains(&self.charts.declared(id).name));
        self.charts.set_declared_by(chart, declared);
        let mut used = self.charts.dependencies(chart).to_vec();
        used.retain(|&id| !disabled.contains(self.charts.at(id).name()));
        self.charts.set_dependencies(chart, used.clone());
        for below in used {
            let path = format!("{path}{}.", self.charts.at(below).name());
            self.decide(below, &values, &path)?;
        }
        Ok(())
    }

    /// Keeps charts that nobody declared, then takes one copy of a chart per declaration, under its alias.
    fn use_declared(&mut self, chart: ChartId, declared: &[DeclaredId]) -> Result<(), BoundError> {
        let there = self.charts.dependencies(chart).to_vec();
        spend((declared.len() * there.len() / PAIRS_PER_STEP) as u64)?;
        let is_undeclared = |&below: &ChartId| !declared.iter().any(|&wanted| self.satisfies(below, wanted));
        let mut used: Vec<ChartId> = there.iter().copied().filter(is_undeclared).collect();
        for &wanted in declared {
            let found = there.iter().find(|&&below| self.satisfies(below, wanted));
            let alias = self.charts.declared(wanted).alias.clone();
            if let Some(&found) = found {
                used.push(self.charts.copy(found, &alias)?);
            }
            if !alias.is_empty() {
                self.charts.declared_mut(wanted).dependency.name = alias;
            }
        }
        self.charts.set_dependencies(chart, used);
        check()
    }

    fn satisfies(&self, chart: ChartId, wanted: DeclaredId) -> bool {
        let (chart, wanted) = (self.charts.at(chart), self.charts.declared(wanted));
        let library = self.charts.root().profile().versions;
        is_wanted(chart.name(), chart.version(), wanted, library)
    }

    fn import(&mut self, chart: ChartId) -> Result<(), String> {
        for below in self.charts.dependencies(chart).to_vec() {
            self.import(below)?;
        }
        let Some(declared) = self.charts.declared_by(chart).map(<[_]>::to_vec) else {
            return Ok(());
        };
        let imports: Vec<_> = declared.into_iter().map(|id| self.take_imports(id)).collect();
        // What is imported gets nulls written into it.
        let sharing = if imports.iter().any(|(_, imports)| !imports.is_empty()) {
            Sharing::Forbidden
        } else {
            Sharing::Allowed
        };
        let mut values = coalesce(self.charts.at(chart), &Map::new(), Nulls::Keep, sharing, self.warnings)?;
        let rule = self.charts.root().profile().nulls;
        let imported = Map::new();
        for (name, imports) in &imports {
            for import in imports {
                check()?;
                if import.parent.split('.').count() > MAX_DEPTH {
                    return Err(format!("import-values of {name} nest too deeply"));
                }
                let path = format!("{name}.{}", import.child);
                match table(&values, &path) {
                    Some(child) => merge_tables(&imported, &nested(&import.parent, child), rule, self.warnings),
                    None => self.warnings.push(Said::NoImport {
                        key: missing(&values, &path).to_owned(),
                        chart: (!import.is_by_name).then(|| name.clone()),
                    }),
                }
            }
        }
        if !imported.is_empty() {
            // What was imported is still part of the values.
            values = copy_map(&values);
            merge_tables(&values, &imported, rule, self.warnings);
        }
        self.charts.set_values(chart, values);
        Ok(())
    }

    /// The name of a dependency and what its parent imports from it, which it does not do again: Helm finds what it has imported in
    /// another form and forgets it.
    fn take_imports(&mut self, id: DeclaredId) -> (String, Vec<ImportValues>) {
        let Declared {
            dependency,
            is_imported,
        } = self.charts.declared_mut(id);
        if *is_imported {
            dependency.import_values.clear();
        }
        *is_imported = true;
        (dependency.name.clone(), dependency.import_values.clone())
    }
}

/// Whether a chart of this name and version is one that another chart declares.
fn is_wanted(name: &str, version: &str, wanted: &Dependency, library: Library) -> bool {
    if name != wanted.name {
        return false;
    }
    note_work(STEPS_PER_RANGE + ((wanted.version.len() + version.len()) / BYTES_PER_RANGE_STEP) as u64);
    check().is_ok() && is_compatible(&wanted.version, version, library)
}

/// Whether values may switch off a chart that is in another one: all of it, whatever the other one calls it.
pub(crate) fn can_be_off(chart: &Metadata, parent: &Metadata, library: Library) -> bool {
    let declared = || parent.dependencies.iter().flatten();
    // Helm drops all charts of the name that it decides about.
    let is_decided = |name: &str| declared().any(|other| other.name_in_parent() == name && is_decided_by_values(other));
    let mut uses = declared()
        .filter(|wanted| is_wanted(&chart.name, &chart.version, wanted, library))
        .peekable();
    if uses.peek().is_none() {
        return is_decided(&chart.name);
    }
    uses.all(|wanted| is_decided(wanted.name_in_parent()))
}

fn is_decided_by_values(dependency: &Dependency) -> bool {
    let has_tags = dependency.tags.as_ref().is_some_and(|tags| !tags.is_empty());
    has_tags || conditions(dependency).next().is_some()
}

/// The paths of values that decide about a chart.
fn conditions(dependency: &Dependency) -> impl Iterator<Item = &str> {
    let conditions = dependency.condition.trim().split(',');
    conditions.filter(|condition| !condition.is_empty())
}

/// Whether a version is in a range. What cannot be read is not.
pub(crate) fn is_compatible(range: &str, version: &str, library: Library) -> bool {
    let range = Constraints::parse(range.as_bytes(), library);
    match (range, Version::parse(version.as_bytes(), library)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}

/// The position of the newest of these versions that is in a range, as the Helm version of a profile reads both; none where none is. Of equal
/// ones the first.
pub fn newest_in_range(range: &str, versions: &[&str], profile: &Profile) -> Option<usize> {
    let library = profile.versions;
    let range = Constraints::parse(range.as_bytes(), library).ok()?;
    let read = |text: &str| Version::parse(text.as_bytes(), library).ok();
    let versions = versions.iter().enumerate();
    let fitting =
        versions.filter_map(|(position, text)| Some((read(text).filter(|version| range.check(version))?, position)));
    let newest = fitting.max_by(|(left, first), (right, second)| left.cmp(right).then(second.cmp(first)));
    newest.map(|(_, position)| position)
}

/// Tags enable a chart unless some are false and none is true.
fn by_tags(dependency: &Dependency, values: &Map, warnings: &mut Vec<Said>) -> bool {
    let Some(tags) = table(values, "tags") else {
        return true;
    };
    let (mut on, mut off) = (false, false);
    for tag in dependency.tags.iter().flatten() {
        match tags.get(tag) {
            Some(Value::Bool(true)) => on = true,
            Some(Value::Bool(false)) => off = true,
            Some(_) => warnings.push(Said::Tag {
                tag: tag.clone(),
                chart: dependency.name.clone(),
            }),
            None => {}
        }
    }
    on || !off
}

/// The first boolean that a condition path leads to.
fn by_condition(dependency: &Dependency, values: &Map, path: &str, warnings: &mut Vec<Said>) -> Option<bool> {
    for condition in conditions(dependency) {
        note_work(1 + (path.len() / BYTES_PER_STEP) as u64);
        if check().is_err() {
            return None;
        }
        match value_at(values, &format!("{path}{condition}")) {
            Some(Value::Bool(enabled)) => return Some(enabled),
            Some(_) => warnings.push(Said::Condition {
                path: condition.to_owned(),
                chart: dependency.name.clone(),
            }),
            None => {}
        }
    }
    None
}

/// The map at a path of keys.
pub(crate) fn table(values: &Map, path: &str) -> Option<Map> {
    path.split('.').try_fold(values.clone(), |map, key| match map.get(key) {
        Some(Value::Map(inner)) => Some(inner),
        _ => None,
    })
}

/// The first key of a path that leads to no map.
fn missing<'p>(values: &Map, path: &'p str) -> &'p str {
    let mut map = values.clone();
    for key in path.split('.') {
        match map.get(key) {
            Some(Value::Map(inner)) => map = inner,
            _ => return key,
        }
    }
    ""
}

/// What is at a path of keys, unless it is a map.
fn value_at(values: &Map, path: &str) -> Option<Value> {
    let value = match path.rsplit_once('.') {
        Some((parent, key)) => table(values, parent)?.get(key)?,
        None => values.get(path)?,
    };
    (!matches!(value, Value::Map(_))).then_some(value)
}

/// A map that has another one at a path, `.` for the root.
fn nested(path: &str, map: Map) -> Map {
    if path == "." {
        return map;
    }
    path.rsplit('.')
        .fold(map, |inner, key| std::iter::once((key, inner)).collect())
}
