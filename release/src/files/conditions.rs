//! What stages wait for: whether it can be meant of objects of these kinds. A misspelt field would otherwise be waited for in vain.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    conditions::one_line,
    names::KubernetesMinor,
    release_files::{AddonStage, CLUSTER_ADDON_CONFIG, ClusterAddonConfig, WaitForCondition},
};
use expressions::{Finding, ObjectKind, Position, Schemas, Severity};
use serde_json::Value;

use crate::marked::{Node, Place, Remark, Scalar};

/// The key of what a stage waits for before it begins.
pub(crate) const BEFORE: &str = "waitForPreCondition";
/// The key of what a stage waits for before it is done.
pub(crate) const AFTER: &str = "waitForPostCondition";
/// Notes that are kept, however many conditions there are.
const MOST_NOTES: usize = 32;
/// Faults of one condition that are kept: more than anybody mends before the next try.
const MOST_FAULTS: usize = 20;
/// Bytes of the name of a stage, and of a hook, that are told.
const NAME_BYTES: usize = 100;

/// What there is to say of all conditions.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Why they cannot hold, or do not say what is meant; in the order of the file.
    pub(crate) faults: Vec<Remark>,
    /// How many others there are.
    pub(crate) more: usize,
    /// What could not be checked, a sentence each.
    pub(super) notes: Vec<String>,
}

/// A condition and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Condition<'c> {
    pub(crate) hook: &'c str,
    /// The index of the stage in its list.
    pub(crate) index: usize,
    stage: &'c AddonStage,
    /// The key in the stage.
    pub(crate) key: &'static str,
    pub(crate) waits: &'c WaitForCondition,
}

/// Something to say of a condition.
struct Said {
    severity: Severity,
    /// Where in the expression, unless it is about the whole.
    position: Option<Position>,
    words: String,
}

/// The groups of the API of which the conditions need definitions that Kubernetes itself does not bring.
pub(crate) fn groups(stages: &ClusterAddonConfig) -> BTreeSet<String> {
    let built_in = Schemas::built_in();
    let kinds = conditions(stages).flat_map(|condition| kinds(condition.waits).into_values());
    let unknown = kinds.filter(|kind| !built_in.describes(kind));
    unknown
        .filter_map(|kind| Some(kind.api_version.split_once('/')?.0.to_owned()))
        .collect()
}

/// What is known of the kinds in a cluster of this version, to which charts bring these definitions.
pub(crate) fn schemas(definitions: Vec<Value>, kubernetes: KubernetesMinor) -> Schemas {
    let mut schemas = Schemas::of_kubernetes((kubernetes.major().into(), kubernetes.minor()));
    for definition in definitions {
        schemas.add_definition(definition);
    }
    schemas
}

/// Finds conditions that cannot hold, or do not say what is meant, and what could not be checked. The text is that of the file.
pub(crate) fn check(stages: &ClusterAddonConfig, text: &str, schemas: &Schemas) -> Checked {
    let (mut faults, mut notes) = (Vec::new(), Vec::new());
    let (mut more, mut more_notes) = (0, 0);
    for condition in conditions(stages) {
        let before = faults.len();
        for said in condition.look(schemas) {
            let (kept, most, more) = match said.severity {
                // The first one in the file may be of the condition that is looked at last.
                Severity::Error => (&mut faults, before + MOST_FAULTS, &mut more),
                Severity::Note => (&mut notes, MOST_NOTES, &mut more_notes),
            };
            if kept.len() < most {
                kept.push((condition, said));
            } else {
                *more += 1;
            }
        }
    }
    // Nobody asks for places where there is nothing to say.
    let is_silent = faults.is_empty() && notes.is_empty();
    let file = if is_silent { None } else { Node::read(text).ok() };
    let remark = |(condition, said): (Condition<'_>, Said)| condition.remark(&said, text, file.as_ref());
    let mut faults: Vec<_> = faults.into_iter().map(remark).collect();
    faults.sort_by_key(|fault| fault.place);
    let notes = notes.into_iter().map(remark);
    let mut notes: Vec<_> = notes.map(|note| note.told(&CLUSTER_ADDON_CONFIG)).collect();
    if more_notes > 0 {
        notes.push(format!("{CLUSTER_ADDON_CONFIG}: {more_notes} more of the kind"));
    }
    Checked { faults, more, notes }
}

/// All conditions. One that says nothing at all is none.
pub(crate) fn conditions(stages: &ClusterAddonConfig) -> impl Iterator<Item = Condition<'_>> {
    let hooks = stages.addon_stages.iter();
    let stages = hooks.flat_map(|(hook, stages)| stages.iter().enumerate().map(move |stage| (hook.as_str(), stage)));
    let conditions = stages.flat_map(|(hook, (index, stage))| {
        let both = [
            (BEFORE, stage.wait_for_pre_condition.as_ref()),
            (AFTER, stage.wait_for_post_condition.as_ref()),
        ];
        both.into_iter().filter_map(move |(key, waits)| {
            Some(Condition {
                hook,
                index,
                stage,
                key,
                waits: waits?,
            })
        })
    });
    conditions.filter(|Condition { waits, .. }| !waits.conditions.trim().is_empty() || !waits.objects.is_empty())
}

fn kinds(condition: &WaitForCondition) -> BTreeMap<String, ObjectKind> {
    let objects = condition.objects.iter();
    objects
        .map(|object| {
            let kind = ObjectKind::new(object.api_version.clone(), object.kind.clone());
            (object.key.clone(), kind)
        })
        .collect()
}

impl Condition<'_> {
    /// What is wrong with it, and what could not be checked.
    fn look(&self, schemas: &Schemas) -> Vec<Said> {
        let kinds = kinds(self.waits);
        let mut taken = BTreeSet::new();
        let mut objects = self.waits.objects.iter();
        if let Some(object) = objects.find(|object| !taken.insert(object.key.as_str())) {
            let key = one_line(&object.key, NAME_BYTES);
            let words = format!("two objects have the key {key:?}; give each its own");
            return vec![Said::wrong(None, words)];
        }
        match expressions::parse(&self.waits.conditions) {
            Ok(expression) => {
                let findings = expressions::check(&expression, &kinds, schemas);
                findings.into_iter().map(Said::from).collect()
            }
            Err(error) => vec![Said::wrong(error.position(), error.problem())],
        }
    }

    /// The same for people. Where the file does not show the place exactly, they are told that in the expression.
    fn remark(&self, said: &Said, text: &str, file: Option<&Node<'_>>) -> Remark {
        let place = file.and_then(|file| self.place(said.position, text, file));
        let is_exact = place.is_some_and(|place| place.column.is_some());
        let position = said.position.filter(|_| !is_exact);
        let within = position.map_or_else(String::new, |position| format!("{position} of the expression: "));
        let (stage, hook) = (one_line(&self.stage.name, NAME_BYTES), one_line(self.hook, NAME_BYTES));
        Remark {
            place,
            words: format!("{} of the stage {stage:?} of {hook}: {within}{}", self.key, said.words),
        }
    }

    /// Where the file has it, with its key.
    pub(crate) fn node<'f, 't>(&self, file: &'f Node<'t>) -> Option<(&'f Scalar<'t>, &'f Node<'t>)> {
        let (_, hooks) = file.entry("addonStages")?;
        let (_, stages) = hooks.entry(self.hook)?;
        stages.item(self.index)?.entry(self.key)
    }

    fn place(&self, position: Option<Position>, text: &str, file: &Node<'_>) -> Option<Place> {
        let (key, condition) = self.node(file)?;
        let expression = condition.entry("conditions");
        if let (Some(position), Some((key, Node::Scalar(value)))) = (position, expression) {
            return Place::within(text, key, value, position);
        }
        key.start.map(|start| Place::line_of(text, start))
    }
}

impl Said {
    fn wrong(position: Option<Position>, words: String) -> Self {
        Self {
            severity: Severity::Error,
            position,
            words,
        }
    }
}

impl From<Finding> for Said {
    fn from(finding: Finding) -> Self {
        Self {
            severity: finding.severity,
            position: Some(finding.position),
            words: format!("{}: {}", finding.path, finding.message),
        }
    }
}
