//! Reading clusteraddon.yaml on past what is wrong in it.

use std::collections::BTreeSet;

use crds::{
    cluster_addon::StageAction,
    release_files::{
        AddonStage, ClusterAddonConfig, ClusterApiVersion, HOOKS, OnFailure, WaitForCondition, WatchedObject,
        parse_timeout,
    },
};
use serde::de::{DeserializeOwned, IntoDeserializer, value};

use crate::{
    files::conditions::{AFTER, BEFORE},
    marked::{Node, Place, Remark, Scalar},
    pack::{chart::CHART, stack::ADDON, tree::Tree},
};

/// The keys of a mapping: those that there are, and of them those that it must have.
struct Keys {
    known: &'static [&'static str],
    required: &'static [&'static str],
}

/// The key of clusteraddon.yaml with the stages.
const STAGES: &str = "addonStages";
/// The keys of clusteraddon.yaml.
const FILE: Keys = Keys {
    known: &["apiVersion", "kind", "clusterAddonVersion", "clusterApiVersion", STAGES],
    required: &[],
};
/// The keys of a stage.
const STAGE: Keys = Keys {
    known: &["name", "action", BEFORE, AFTER, "timeout", "onFailure"],
    required: &["name", "action"],
};
/// The keys of what a stage waits for.
const CONDITION: Keys = Keys {
    known: &["objects", "conditions"],
    required: &["conditions"],
};
/// The keys of an object that a stage waits for.
const OBJECT: Keys = Keys {
    known: &["key", "apiVersion", "kind", "name", "namespace"],
    required: &["key", "apiVersion", "kind", "name"],
};

/// Reads the file, and finds what is wrong with it.
pub(super) struct Reading<'r> {
    text: &'r str,
    charts: &'r Tree,
    /// Whether the operators refuse the file. Only then is a value wrong: they know best what they take.
    is_refused: bool,
    /// The stages of which it was said that they have no chart.
    missing: BTreeSet<String>,
    found: Vec<Remark>,
}

/// A part of the file, with its path for people, and the byte of the last key before it or the first in it.
struct Part<'n, 't> {
    path: String,
    start: Option<usize>,
    node: &'n Node<'t>,
}

impl<'n, 't> Part<'n, 't> {
    /// What a map has under a key.
    fn under(&self, key: &str) -> Option<Self> {
        let (key, node) = self.node.entry(key)?;
        Some(self.entry(key, node))
    }

    fn entry(&self, key: &Scalar<'_>, node: &'n Node<'t>) -> Self {
        Self {
            path: self.path_of(&key.text),
            start: key.start.or(self.start),
            node,
        }
    }

    /// The elements of a list.
    fn elements(&self, nodes: &'n [Node<'t>]) -> impl Iterator<Item = Self> {
        nodes.iter().enumerate().map(move |(index, node)| Self {
            path: format!("{}[{index}]", self.path),
            start: first_key(node).or(self.start),
            node,
        })
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The byte at which its value begins, or what is known to be near it.
    fn value(&self) -> Option<usize> {
        match self.node {
            Node::Scalar(scalar) => scalar.start.or(self.start),
            _ => self.start,
        }
    }

    /// Whether it says that there is nothing.
    fn is_null(&self) -> bool {
        matches!(self.node, Node::Scalar(scalar) if scalar.is_null)
    }

    /// Whether nothing is written, which is as an empty list or map.
    fn is_blank(&self) -> bool {
        matches!(self.node, Node::Scalar(scalar) if scalar.is_null && scalar.text.is_empty())
    }
}

/// The first key of a map.
fn first_key(node: &Node<'_>) -> Option<usize> {
    match node {
        Node::Map(entries) => entries.first()?.0.start,
        _ => None,
    }
}

impl<'r> Reading<'r> {
    /// Of the text of the file, beside its charts.
    pub(super) fn new(text: &'r str, charts: &'r Tree, is_refused: bool) -> Self {
        Self {
            text,
            charts,
            is_refused,
            missing: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    /// All that is wrong.
    pub(super) fn into_found(self) -> Vec<Remark> {
        self.found
    }

    /// What could be understood: every stage is in its place, and each condition that is there can be checked.
    pub(super) fn file(&mut self, node: &Node<'_>) -> ClusterAddonConfig {
        let file = Part {
            path: String::new(),
            start: None,
            node,
        };
        let mut config = ClusterAddonConfig::default();
        let meant = self.keys(&file, &FILE);
        if let Some(version) = file.under("clusterApiVersion") {
            self.word::<ClusterApiVersion>(&version);
        }
        let is_listed = match file.under(STAGES) {
            Some(hooks) => {
                let mut seen = BTreeSet::new();
                for (hook, node) in self.entries(&hooks).unwrap_or_default() {
                    let list = hooks.entry(hook, node);
                    if !seen.insert(&*hook.text) {
                        let words = "is there twice: the stages of the first list would never be run";
                        self.wrong(list.start, format!("{}: {words}", list.path));
                    }
                    let stages = self.stages(hook, &list);
                    config.addon_stages.insert(hook.text.clone().into_owned(), stages);
                }
                !self.found.is_empty() || !config.addon_stages.values().all(Vec::is_empty)
            }
            None => meant.contains(STAGES) || !matches!(node, Node::Map(_)),
        };
        if !is_listed {
            self.wrong(None, format!("has no {STAGES}; list the charts of {ADDON} there"));
        }
        config
    }

    fn stages(&mut self, hook: &Scalar<'_>, stages: &Part<'_, '_>) -> Vec<AddonStage> {
        if !HOOKS.contains(&&*hook.text) {
            let (hook, known) = (&hook.text, HOOKS.join(", "));
            let words = format!("there is no hook {hook:?}, so its stages would never be run; the hooks are {known}");
            self.wrong(stages.start, words);
        }
        let items = self.items(stages).unwrap_or_default();
        stages.elements(items).map(|stage| self.stage(&stage)).collect()
    }

    fn stage(&mut self, stage: &Part<'_, '_>) -> AddonStage {
        self.keys(stage, &STAGE);
        if let Some(action) = stage.under("action") {
            self.word::<StageAction>(&action);
        }
        if let Some(on_failure) = stage.under("onFailure").filter(|part| !part.is_null()) {
            self.word::<OnFailure>(&on_failure);
        }
        if let Some(timeout) = stage.under("timeout").filter(|part| !part.is_null())
            && let Some(text) = self.scalar(&timeout)
            && let Err(error) = parse_timeout(&text)
        {
            self.unreadable(&timeout, &error.to_string());
        }
        let name = stage.under("name").and_then(|name| self.chart(&name));
        AddonStage {
            name: name.unwrap_or_default(),
            // Nobody asks this one.
            action: StageAction::Apply,
            wait_for_pre_condition: stage.under(BEFORE).and_then(|condition| self.condition(&condition)),
            wait_for_post_condition: stage.under(AFTER).and_then(|condition| self.condition(&condition)),
            timeout: None,
            on_failure: None,
        }
    }

    /// The name of a stage, which is that of its chart. Of several stages without the same chart the first one is told.
    fn chart(&mut self, name: &Part<'_, '_>) -> Option<String> {
        let chart = self.scalar(name)?;
        let is_there = self.charts.files.contains_key(&format!("{chart}/{CHART}"));
        if !is_there && self.missing.insert(chart.clone()) {
            let advice = format!("create {ADDON}/{chart}/{CHART} or remove the stage");
            self.wrong(name.value(), format!("the stage {chart:?} has no chart; {advice}"));
        }
        Some(chart)
    }

    fn condition(&mut self, condition: &Part<'_, '_>) -> Option<WaitForCondition> {
        if condition.is_null() {
            return None;
        }
        self.keys(condition, &CONDITION);
        let objects = match condition.under("objects") {
            Some(objects) => self.objects(&objects),
            None => Some(Vec::new()),
        };
        let conditions = self.scalar_under(condition, "conditions");
        Some(WaitForCondition {
            objects: objects?,
            conditions: conditions?,
        })
    }

    fn objects(&mut self, objects: &Part<'_, '_>) -> Option<Vec<WatchedObject>> {
        let items = self.items(objects)?;
        let mut taken = BTreeSet::new();
        // To the last one, also where one is wrong.
        let read = objects.elements(items).map(|object| self.object(&object, &mut taken));
        let read: Vec<_> = read.collect();
        read.into_iter().collect()
    }

    fn object(&mut self, object: &Part<'_, '_>, taken: &mut BTreeSet<String>) -> Option<WatchedObject> {
        let meant = self.keys(object, &OBJECT);
        let key = object.under("key").and_then(|key| self.variable(&key, taken));
        let api_version = self.scalar_under(object, "apiVersion");
        // A namespace that is misspelt is not told to be missing besides.
        let kind = self.scalar_under(object, "kind");
        let kind = kind.filter(|_| !meant.contains("namespace"));
        let name = self.scalar_under(object, "name");
        let namespace = self.scalar_under(object, "namespace");
        // Of an unknown kind nothing is checked; but without its key it would seem that there is no such object.
        Some(WatchedObject {
            key: key?,
            api_version: api_version.unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            name: name.unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
        })
    }

    /// The key of an object, if the expression can have it for a variable.
    fn variable(&mut self, key: &Part<'_, '_>, taken: &mut BTreeSet<String>) -> Option<String> {
        let name = self.scalar(key)?;
        let words = if !expressions::is_variable(&name) {
            "cannot be a variable of the expression: take letters, digits and _, no digit first, and no word that the language reserves"
        } else if taken.insert(name.clone()) {
            return Some(name);
        } else {
            "is the key of an object before, too: give each its own"
        };
        self.wrong(key.value(), format!("{}: {name:?} {words}", key.path));
        None
    }

    /// Finds keys that there are not, and those that are missing. Gives the ones that may be meant by what there is instead.
    fn keys(&mut self, part: &Part<'_, '_>, Keys { known, required }: &Keys) -> BTreeSet<&'static str> {
        let (mut seen, mut meant) = (BTreeSet::new(), BTreeSet::new());
        let Some(entries) = self.entries(part) else {
            return meant;
        };
        // A key without a place was not read.
        for (key, _) in entries
            .iter()
            .filter(|(key, _)| key.start.is_some() || !key.text.is_empty())
        {
            let (word, start) = (&*key.text, key.start.or(part.start));
            let path = part.path_of(word);
            if !known.contains(&word) {
                meant.extend(expressions::nearest(word, known.iter().copied()));
                let advice = expressions::instead(word, known.iter().copied());
                self.wrong(start, format!("{path}: there is no such key{advice}"));
            } else if !seen.insert(word) && self.is_refused {
                self.wrong(start, format!("{path}: is there twice"));
            }
        }
        for key in required
            .iter()
            .filter(|key| !seen.contains(*key) && !meant.contains(*key))
        {
            self.unreadable(part, &format!("the key {key} is missing"));
        }
        meant
    }

    fn entries<'n, 't>(&mut self, part: &Part<'n, 't>) -> Option<&'n [(Scalar<'t>, Node<'t>)]> {
        match part.node {
            Node::Map(entries) => Some(entries),
            Node::Unread => None,
            _ if part.is_blank() => Some(&[]),
            _ => {
                self.unreadable(part, "must be a map");
                None
            }
        }
    }

    fn items<'n, 't>(&mut self, part: &Part<'n, 't>) -> Option<&'n [Node<'t>]> {
        match part.node {
            Node::List(items) => Some(items),
            Node::Unread => None,
            _ if part.is_blank() => Some(&[]),
            _ => {
                self.unreadable(part, "must be a list");
                None
            }
        }
    }

    fn scalar_under(&mut self, part: &Part<'_, '_>, key: &str) -> Option<String> {
        part.under(key).and_then(|found| self.scalar(&found))
    }

    fn scalar(&mut self, part: &Part<'_, '_>) -> Option<String> {
        match part.node {
            Node::Scalar(scalar) => Some(scalar.text.clone().into_owned()),
            Node::Unread => None,
            Node::List(_) | Node::Map(_) => {
                self.unreadable(part, "must be a text");
                None
            }
        }
    }

    /// Finds out whether a word is one of those that this type has.
    fn word<T: DeserializeOwned>(&mut self, part: &Part<'_, '_>) {
        let Some(text) = self.scalar(part) else { return };
        let word: value::StrDeserializer<'_, value::Error> = text.as_str().into_deserializer();
        if let Err(error) = T::deserialize(word) {
            self.unreadable(part, &error.to_string());
        }
    }

    /// What no operator would take.
    fn unreadable(&mut self, part: &Part<'_, '_>, words: &str) {
        if self.is_refused {
            let path = Some(&part.path).filter(|path| !path.is_empty());
            let path = path.map_or_else(String::new, |path| format!("{path}: "));
            self.wrong(part.value(), format!("{path}{words}"));
        }
    }

    fn wrong(&mut self, start: Option<usize>, words: String) {
        self.found.push(Remark {
            place: start.map(|start| Place::line_of(self.text, start)),
            words,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::Serialize;

    use super::*;

    fn keys_of(written: &impl Serialize) -> BTreeSet<String> {
        let text = serde_yaml::to_string(written).unwrap();
        let Node::Map(entries) = Node::read(&text).unwrap() else {
            panic!("{text}")
        };
        entries.into_iter().map(|(key, _)| key.text.into_owned()).collect()
    }

    fn set(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn what_an_operator_reads_of_a_stage_is_known() {
        let object = WatchedObject {
            key: "agent".to_owned(),
            api_version: "apps/v1".to_owned(),
            kind: "DaemonSet".to_owned(),
            name: "agent".to_owned(),
            namespace: "kube-system".to_owned(),
        };
        let condition = WaitForCondition {
            objects: vec![object.clone()],
            conditions: "true".to_owned(),
        };
        let stage = AddonStage {
            name: "network".to_owned(),
            action: StageAction::Apply,
            wait_for_pre_condition: Some(condition.clone()),
            wait_for_post_condition: Some(condition.clone()),
            timeout: Some(Duration::from_mins(1)),
            on_failure: Some(OnFailure::Stop),
        };
        assert_eq!(keys_of(&object), set(OBJECT.known));
        assert_eq!(keys_of(&condition), set(CONDITION.known));
        assert_eq!(keys_of(&stage), set(STAGE.known));
        let mut file = keys_of(&ClusterAddonConfig::default());
        file.extend(set(&["apiVersion", "kind", "clusterAddonVersion"]));
        assert_eq!(file, set(FILE.known));
    }

    /// What is found in a file with no charts beside it, which tells of them, too.
    fn found(text: &str) -> Vec<String> {
        let (charts, is_refused) = (Tree::default(), ClusterAddonConfig::parse(text.as_bytes()).is_err());
        let mut reading = Reading::new(text, &charts, is_refused);
        reading.file(&Node::read(text).unwrap());
        let mut found = reading.into_found();
        found.sort_by_key(|remark| remark.place);
        found.iter().map(|remark| remark.told(&"file")).collect()
    }

    #[test]
    fn what_the_operators_refuse_is_found_and_what_they_take_is_not() {
        let stage =
            |more: &str| format!("addonStages:\n  BeforeClusterUpgrade:\n  - name: cni\n    action: apply\n{more}");
        let chart = "file:3: the stage \"cni\" has no chart; create cluster-addon/cni/Chart.yaml or remove the stage";
        for taken in [
            "    timeout:\n    onFailure: ~\n    waitForPreCondition: null\n",
            "    waitForPreCondition: {conditions: true}\n",
            "    waitForPreCondition: {objects: , conditions: 'true'}\n",
            "  BeforeClusterDelete:\n",
        ] {
            assert_eq!(found(&stage(taken)), [chart], "{taken}");
        }
        // The operators take the last list.
        assert_eq!(
            found(&stage("  BeforeClusterUpgrade:\n  - {name: cni, action: apply}\n")),
            [
                chart,
                "file:5: addonStages.BeforeClusterUpgrade: is there twice: the stages of the first list would never be run"
            ]
        );
        let path = "addonStages.BeforeClusterUpgrade[0]";
        for (refused, words) in [
            (
                "    waitForPreCondition: []\n",
                "file:5: {}.waitForPreCondition: must be a map",
            ),
            (
                "    waitForPreCondition:\n      objects: []\n",
                "file:5: {}.waitForPreCondition: the key conditions is missing",
            ),
            (
                "    waitForPreCondition:\n      objects:\n        agent: {}\n      conditions: 'true'\n",
                "file:6: {}.waitForPreCondition.objects: must be a list",
            ),
            ("    timeout: [5m]\n", "file:5: {}.timeout: must be a text"),
            (
                "    onFailure:\n      retry\n",
                "file:6: {}.onFailure: unknown variant `retry`, expected `stop` or `continue`",
            ),
            ("    action: apply\n", "file:5: {}.action: is there twice"),
        ] {
            assert_eq!(
                found(&stage(refused)),
                [chart, words.replace("{}", path).as_str()],
                "{refused}"
            );
        }
        assert_eq!(found("- addonStages"), ["file: must be a map"]);
        assert_eq!(found("addonStages: 5"), ["file:1: addonStages: must be a map"]);
    }
}
