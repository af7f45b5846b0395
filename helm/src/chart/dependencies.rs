//! Which subcharts take part in a render, under which names, and which of their values their parents import.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::coalesce::{Nulls, Sharing, coalesce, copy_map, merge_tables};
use super::metadata::{Dependency, Metadata};
use super::{File, Loaded};
use crate::bounds::{BYTES_PER_STEP, BoundError, MAX_DEPTH, check, hold, note_work, spend};
use crate::profile::{BelowAlias, Profile};
use crate::schema::Schema;
use crate::semver::{Constraints, Version};
use crate::value::{Map, Value};
use crate::warning::Said;
use crate::yaml::Node;

/// A chart as one render uses it.
#[derive(Clone)]
pub(crate) struct Instance {
    /// What `Chart.yaml` says, with the alias as name and without disabled dependencies.
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) dependencies: Vec<Self>,
    pub(crate) profile: &'static Profile,
    /// Whether its parent declares it.
    pub(crate) is_declared: bool,
    chart: Arc<Loaded>,
    /// Default values, once they are asked for or imports are in them. Not changed from then on.
    values: OnceCell<Map>,
}

/// What was done to the declarations of charts so far, for those that have several aliases.
#[derive(Default)]
struct Seen {
    charts: HashSet<*const Loaded>,
    imported: HashMap<*const Loaded, HashSet<String>>,
}

/// What comparing a version with a range takes, about, and how much of their texts is read in about the time of a step.
const STEPS_PER_RANGE: u64 = 8;
const BYTES_PER_RANGE_STEP: usize = 8;

/// How many names of charts are compared in about the time of a step.
const PAIRS_PER_STEP: usize = 16;

impl Instance {
    /// The chart and all below it, as loaded.
    pub(crate) fn new(chart: &Arc<Loaded>, profile: &'static Profile) -> Self {
        let dependencies = chart.dependencies.iter();
        Self {
            metadata: Arc::clone(&chart.metadata),
            dependencies: dependencies.map(|chart| Self::new(chart, profile)).collect(),
            profile,
            is_declared: false,
            chart: Arc::clone(chart),
            values: OnceCell::new(),
        }
    }

    /// Decides the dependencies for the user's values and imports values into the defaults. The error is Helm's text.
    pub(crate) fn process(&mut self, values: &Map, warnings: &mut Vec<Said>) -> Result<(), String> {
        let mut seen = Seen::default();
        self.decide(values, "", warnings, &mut seen)?;
        self.import(warnings, &mut seen)
    }

    /// The default values, to be copied where they are used.
    pub(crate) fn default_values(&self) -> &Map {
        self.values.get_or_init(
            || match self.chart.values.read_as(self.profile.values_files).map(Node::to_value) {
                Ok(Value::Map(values)) => values,
                _ => Map::new(),
            },
        )
    }

    /// About the bytes that a render takes for it and all charts below it.
    fn memory(&self) -> usize {
        let below = self.dependencies.iter().map(Self::memory).sum::<usize>();
        note_work(1);
        self.chart.memory + below
    }

    /// The name it has without an alias.
    pub(crate) fn loaded_name(&self) -> &str {
        &self.chart.metadata.name
    }

    /// Whether it is said somewhere which charts it needs.
    pub(crate) fn declares(&self) -> bool {
        !self.chart.metadata.dependencies.is_empty()
    }

    pub(crate) fn templates(&self) -> &[File] {
        &self.chart.templates
    }

    pub(crate) fn files(&self) -> &Arc<[File]> {
        &self.chart.files
    }

    pub(crate) fn schema(&self) -> Option<&Schema> {
        self.chart.schema.as_ref()
    }

    /// Names of `Chart.yaml` for which there is no chart at all.
    pub(crate) fn missing_dependencies(&self) -> Vec<&str> {
        let there: HashSet<&str> = self
            .dependencies
            .iter()
            .map(|chart| chart.metadata.name.as_str())
            .collect();
        let wanted = self
            .metadata
            .dependencies
            .iter()
            .map(|dependency| dependency.name.as_str());
        wanted.filter(|name| !there.contains(name)).collect()
    }

    fn satisfies(&self, wanted: &Dependency) -> bool {
        if self.metadata.name != wanted.name {
            return false;
        }
        let version = &self.metadata.version;
        note_work(STEPS_PER_RANGE + ((wanted.version.len() + version.len()) / BYTES_PER_RANGE_STEP) as u64);
        check().is_ok() && is_compatible(&wanted.version, version)
    }

    fn decide(&mut self, values: &Map, path: &str, warnings: &mut Vec<Said>, seen: &mut Seen) -> Result<(), String> {
        if self.metadata.dependencies.is_empty() {
            return Ok(());
        }
        self.rename_seen(seen);
        self.use_declared()?;
        let values = coalesce(self, values, Nulls::Delete, Sharing::Allowed, warnings)?;
        for dependency in &mut Arc::make_mut(&mut self.metadata).dependencies {
            dependency.enabled = by_tags(dependency, &values, warnings);
            if let Some(enabled) = by_condition(dependency, &values, path, warnings) {
                dependency.enabled = enabled;
            }
        }
        let disabled = self
            .metadata
            .dependencies
            .iter()
            .filter(|dependency| !dependency.enabled);
        let disabled: HashSet<String> = disabled.map(|dependency| dependency.name.clone()).collect();
        self.dependencies
            .retain(|chart| !disabled.contains(&chart.metadata.name));
        Arc::make_mut(&mut self.metadata)
            .dependencies
            .retain(|dependency| !disabled.contains(&dependency.name));
        for chart in &mut self.dependencies {
            let path = format!("{path}{}.", chart.metadata.name);
            chart.decide(&values, &path, warnings, seen)?;
        }
        Ok(())
    }

    /// Where all aliases of a chart share its declarations, the first one has given these their aliases, and the next ones find no chart
    /// of such a name.
    fn rename_seen(&mut self, seen: &mut Seen) {
        let is_first = seen.charts.insert(Arc::as_ptr(&self.chart));
        if is_first || self.profile.below_alias == BelowAlias::Copied {
            return;
        }
        for declared in &mut Arc::make_mut(&mut self.metadata).dependencies {
            if !declared.alias.is_empty() {
                declared.name.clone_from(&declared.alias);
            }
        }
    }

    /// The names of those dependencies whose imports another alias of the chart has used up.
    fn used_up(&self, seen: &mut Seen) -> HashSet<String> {
        if self.profile.below_alias == BelowAlias::Copied {
            return HashSet::new();
        }
        let used = seen.imported.entry(Arc::as_ptr(&self.chart)).or_default();
        let before = used.clone();
        used.extend(self.metadata.dependencies.iter().map(|declared| declared.name.clone()));
        before
    }

    /// Keeps charts that nobody declared, then takes one chart per declaration, under its alias.
    fn use_declared(&mut self) -> Result<(), BoundError> {
        let declared = &mut Arc::make_mut(&mut self.metadata).dependencies;
        spend((declared.len() * self.dependencies.len() / PAIRS_PER_STEP) as u64)?;
        let is_declared = |chart: &Self| declared.iter().any(|wanted| chart.satisfies(wanted));
        let mut used: Vec<Self> = self
            .dependencies
            .iter()
            .filter(|chart| !is_declared(chart))
            .cloned()
            .collect();
        for wanted in declared {
            let found = self.dependencies.iter().find(|chart| chart.satisfies(wanted));
            hold(found.map_or(0, Self::memory))?;
            let found = found.cloned().map(|mut chart| {
                chart.is_declared = true;
                if !wanted.alias.is_empty() {
                    Arc::make_mut(&mut chart.metadata).name.clone_from(&wanted.alias);
                }
                chart
            });
            used.extend(found);
            if !wanted.alias.is_empty() {
                wanted.name.clone_from(&wanted.alias);
            }
        }
        self.dependencies = used;
        check()
    }

    fn import(&mut self, warnings: &mut Vec<Said>, seen: &mut Seen) -> Result<(), String> {
        for chart in &mut self.dependencies {
            chart.import(warnings, seen)?;
        }
        if self.metadata.dependencies.is_empty() {
            return Ok(());
        }
        // What is imported gets nulls written into it.
        let imports = |dependency: &Dependency| !dependency.import_values.is_empty();
        let sharing = if self.metadata.dependencies.iter().any(imports) {
            Sharing::Forbidden
        } else {
            Sharing::Allowed
        };
        let mut values = coalesce(self, &Map::new(), Nulls::Keep, sharing, warnings)?;
        let rule = self.profile.nulls;
        let imported = Map::new();
        let used_up = self.used_up(seen);
        let dependencies = self.metadata.dependencies.iter();
        for dependency in dependencies.filter(|dependency| !used_up.contains(&dependency.name)) {
            for import in &dependency.import_values {
                check()?;
                if import.parent.split('.').count() > MAX_DEPTH {
                    return Err(format!("import-values of {} nest too deeply", dependency.name));
                }
                let path = format!("{}.{}", dependency.name, import.child);
                match table(&values, &path) {
                    Some(child) => merge_tables(&imported, &nested(&import.parent, child), rule, warnings),
                    None => warnings.push(Said::NoImport {
                        key: missing(&values, &path).to_owned(),
                        chart: (!import.is_by_name).then(|| dependency.name.clone()),
                    }),
                }
            }
        }
        if !imported.is_empty() {
            // What was imported is still part of the values.
            values = copy_map(&values);
            merge_tables(&values, &imported, rule, warnings);
        }
        self.values = values.into();
        Ok(())
    }
}

/// Whether a version is in a range. What cannot be read is not.
pub(crate) fn is_compatible(range: &str, version: &str) -> bool {
    match (Constraints::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}

/// Tags enable a chart unless some are false and none is true.
fn by_tags(dependency: &Dependency, values: &Map, warnings: &mut Vec<Said>) -> bool {
    let Some(tags) = table(values, "tags") else {
        return true;
    };
    let (mut on, mut off) = (false, false);
    for tag in &dependency.tags {
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
    let conditions = dependency
        .condition
        .trim()
        .split(',')
        .filter(|condition| !condition.is_empty());
    for condition in conditions {
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
