//! The language of scenarios: one change of the world a line.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::ClusterStackStatus;
use crds::cluster_stack_release::{ClusterStackReleaseSpec, ClusterStackReleaseStatus};
use crds::labels;
use crds::names::ReleaseTag;
use crds::resource::{Resource, SyncStatus};
use jiff::SignedDuration;
use planning::health::HealthState;
use planning::object_key::{GroupKind, ObjectKey};
use planning::objects::Wait;
use planning::release::{ProviderProgress, Waiting};
use planning::stack::StackWaiting;
use serde_json::{Value, json};

use super::api::{NAMESPACE, ReleaseObject, StackObject};
use super::live::{Body, Live, annotation, label};
use super::{Files, Flaw, Process, World};

/// The kinds that scenarios speak of, and their groups.
const KINDS: [(&str, &str); 9] = [
    ("ClusterClass", "cluster.x-k8s.io"),
    ("DockerClusterTemplate", "infrastructure.cluster.x-k8s.io"),
    ("Deployment", "apps"),
    ("ConfigMap", ""),
    ("Secret", ""),
    ("Namespace", ""),
    ("CustomResourceDefinition", "apiextensions.k8s.io"),
    ("DockerClusterStackRelease", crds::PROVIDER_GROUP),
    ("DockerClusterStackReleaseTemplate", crds::PROVIDER_GROUP),
];

/// `Kind/name`, in the namespace of the model where the kind has one, or `Kind/namespace/name`.
pub(crate) fn key(text: &str) -> ObjectKey {
    let (kind, place) = text.split_once('/').expect("Kind/name");
    let (elsewhere, name) = place.split_once('/').unwrap_or((NAMESPACE, place));
    let group = KINDS
        .iter()
        .find(|(known, _)| *known == kind)
        .map_or("example.org", |(_, group)| *group);
    let namespace = if ["Namespace", "CustomResourceDefinition"].contains(&kind) {
        ""
    } else {
        elsewhere
    };
    ObjectKey::new(group, kind, namespace, name)
}

/// What the class chart of a release renders when a scenario does not say more.
pub(crate) fn class_chart(tag: &str) -> BTreeMap<ObjectKey, Body> {
    let class = tag
        .parse::<ReleaseTag>()
        .map_or_else(|_| tag.to_owned(), |tag| tag.class_name().to_string());
    let body = Body::from([("spec/release".to_owned(), tag.to_owned())]);
    BTreeMap::from([
        (key(&format!("ClusterClass/{class}")), body.clone()),
        (key(&format!("DockerClusterTemplate/{tag}-cluster")), body),
    ])
}

/// `Kind/name` and, after a colon, fields `path=value` joined by `&`: the same for every release that names it.
fn object(text: &str) -> (ObjectKey, Body) {
    let (name, fields) = text.split_once(':').unwrap_or((text, ""));
    let mut body = Body::from([("spec/of".to_owned(), "all".to_owned())]);
    for field in fields.split('&').filter(|field| !field.is_empty()) {
        let (path, value) = field.split_once('=').expect("path=value");
        body.insert(field_path(path), value.to_owned());
    }
    (key(name), body)
}

/// `label:x` and `annotation:x` are short for what they say; `keep` for the annotation of Helm.
fn field_path(text: &str) -> String {
    match text {
        "keep" => annotation(labels::RESOURCE_POLICY),
        "part-of" => label(labels::PART_OF),
        "instance" => label(labels::INSTANCE),
        path => path.to_owned(),
    }
}

/// `Kind/name` of a kind that scenarios know, as a reference.
fn reference(text: &str) -> Value {
    let ObjectKey { group, kind, name, .. } = key(text);
    let version = if group == crds::PROVIDER_GROUP {
        "v1alpha1"
    } else {
        "v1"
    };
    let api_version = [group.as_str(), version].join("/");
    json!({"apiVersion": api_version.trim_start_matches('/'), "kind": kind, "name": name})
}

/// `name=value` among the words.
fn option<'line>(words: &[&'line str], name: &str) -> Option<&'line str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn list(text: &str) -> Vec<String> {
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    inner
        .split(',')
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

impl World {
    /// A world whose API server serves all kinds of the model and whose provider has a template.
    pub(crate) fn with_kinds() -> Self {
        let mut world = Self::new();
        world.api.served = KINDS
            .iter()
            .map(|(kind, group)| GroupKind::new(*group, *kind))
            .collect();
        world
    }

    /// Performs one command; does not let the drivers run.
    ///
    /// # Panics
    /// On a command that it does not know.
    pub(crate) fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["publish", tag, options @ ..] => self.publish(tag, options),
            ["withdraw", tag] => drop(self.source.releases.remove(*tag)),
            ["rerender", tag, options @ ..] => self.rerender(tag, options),
            ["break", "files", tag, ..] => self.flaw(tag, Some(Flaw::Files(rest(line, 3)))),
            ["break", "chart", tag, ..] => self.flaw(tag, Some(Flaw::Chart(rest(line, 3)))),
            ["mend", tag] => self.flaw(tag, None),
            ["source", "fails", ..] => {
                self.source.outage = Some(rest(line, 2));
                self.source.silent_since.get_or_insert(self.now);
            }
            ["source", "keeps"] => self.source.keeps = true,
            ["source", "answers"] => {
                self.source.outage = None;
                self.source.silent_since = None;
            }
            ["apply", "stack", name, options @ ..] => self.apply_stack(name, options),
            ["delete", "stack", name] => drop(self.api.stacks.remove(*name)),
            ["delete", "release", tag] => self.api.delete_release(tag),
            ["approve", "stack", name] => self.approve_stack(name),
            ["approve", "release", tag] => self.approve_release(tag),
            ["annotate", kind, name, pair] => self.annotate(kind, name, pair),
            ["cluster", cluster, "uses", class, options @ ..] => {
                let own = cluster.split('/').next().unwrap_or_default();
                let namespace = option(options, "classNamespace").unwrap_or(own);
                self.api
                    .clusters
                    .insert((*cluster).to_owned(), (namespace.to_owned(), (*class).to_owned()));
            }
            ["delete", "cluster", cluster] => drop(self.api.clusters.remove(*cluster)),
            ["serve", kind] => drop(self.api.served.insert(key(&format!("{kind}/any")).group_kind())),
            ["unserve", kind] => {
                let group_kind = key(&format!("{kind}/any")).group_kind();
                self.api.served.remove(&group_kind);
                self.api.objects.retain(|key, _| key.group_kind() != group_kind);
            }
            ["template", name, fields @ ..] => self.put_template(name, fields),
            ["refuse", kind, name, ..] if !matches!(*kind, "object") => {
                let subject = format!("{kind} {name}");
                self.faults.refused.insert(subject, rest(line, 3));
            }
            ["accept", kind, name] if !matches!(*kind, "object") => {
                self.faults.refused.remove(&format!("{kind} {name}"));
            }
            ["refer", "release", tag, provider] => self.refer(tag, provider),
            ["delete", "template", name] => drop(self.api.templates.remove(*name)),
            ["progress", tag, done, total, unit] => {
                let number = |text: &str| text.parse().expect("a number");
                let provider = self.api.providers.get_mut(*tag).expect("the provider's object");
                provider.progress = Some(ProviderProgress {
                    done: number(done),
                    total: Some(number(total)),
                    unit: (*unit).to_owned(),
                });
            }
            ["provider", state, tag, ..] => self.provider_says(tag, *state == "ready", &rest(line, 3)),
            ["control", tag, "by", owner] => {
                if let Some(provider) = self.api.providers.get_mut(*tag) {
                    provider.controller = Some((*owner).to_owned());
                }
            }
            ["predecessor", tag, "left", objects] => self.predecessor(tag, objects),
            ["crash"] => self.process = Process::default(),
            ["lose", "status"] => self.lose_status(),
            ["move"] => self.move_elsewhere(),
            ["empty", "store"] => self.store.clear(),
            ["wait", duration] => self.wait(duration.parse::<SignedDuration>().expect("a duration")),
            [verb, "object", name, options @ ..] => self.object_command(verb, &key(name), options, line),
            _ => panic!("unknown command {line:?}"),
        }
    }

    fn object_command(&mut self, verb: &str, key: &ObjectKey, options: &[&str], line: &str) {
        match verb {
            "delete" => {
                if let Some(live) = self.api.objects.get(key).cloned() {
                    self.api.delete(key, &live.uid, &live.resource_version.to_string());
                }
            }
            "create" => self.create_object(key, options),
            "edit" => {
                let manager = option(options, "by").unwrap_or("somebody").to_owned();
                self.api.change(key, |live| edit(live, options, &manager));
            }
            "status" => {
                let state = match options[0] {
                    "InProgress" => HealthState::InProgress,
                    "Failed" => HealthState::Failed,
                    _ => HealthState::Current,
                };
                let message = rest(line, 4);
                self.api.change(key, |live| live.health = (state, message));
            }
            "hold" => self.api.change(key, |live| live.finalizer = true),
            "let-go" => {
                if self.api.objects.get(key).is_some_and(|live| live.deleting) {
                    self.api.objects.remove(key);
                }
                self.api.change(key, |live| live.finalizer = false);
            }
            "refuse" => drop(self.faults.refused.insert(key.to_string(), rest(line, 3))),
            "show" => {
                let fields = self
                    .api
                    .objects
                    .get(key)
                    .map(|live| live.fields.clone())
                    .unwrap_or_default();
                for (path, field) in fields.iter().filter(|(path, _)| !path.starts_with("label/")) {
                    let managers: Vec<&str> = field.managers.iter().map(String::as_str).collect();
                    self.journal
                        .say(format!("{path} = {} of {}", field.value, managers.join(", ")));
                }
            }
            "accept" => drop(self.faults.refused.remove(&key.to_string())),
            "hide" => drop(self.faults.unreadable.insert(key.to_string(), rest(line, 3))),
            "reveal" => drop(self.faults.unreadable.remove(&key.to_string())),
            _ => panic!("unknown command {line:?}"),
        }
    }

    /// An object that somebody else makes.
    fn create_object(&mut self, key: &ObjectKey, options: &[&str]) {
        let manager = option(options, "by").unwrap_or("somebody").to_owned();
        let mut live = Live::new(self.api.uid(), self.api.next());
        edit(&mut live, options, &manager);
        self.api.objects.insert(key.clone(), live);
    }

    fn publish(&mut self, tag: &str, options: &[&str]) {
        let revision = self.source.releases.get(tag).map_or(1, |files| files.revision + 1);
        let mut objects = class_chart(option(options, "chart").unwrap_or(tag));
        objects.extend(
            list(option(options, "objects").unwrap_or_default())
                .iter()
                .map(|text| object(text)),
        );
        let many = option(options, "many").map_or(0, |many| many.parse().expect("a number"));
        objects.extend((0..many).map(|number: u32| object(&format!("ConfigMap/item-{number}"))));
        let files = Files {
            kubernetes_version: option(options, "kubernetes").unwrap_or("v1.34.1").to_owned(),
            published_at: option(options, "at").map(|at| at.parse().expect("a time")),
            revision,
            objects,
            flaw: None,
        };
        self.source.releases.insert(tag.to_owned(), files);
    }

    /// Another version of the operator renders other objects from the same bytes.
    fn rerender(&mut self, tag: &str, options: &[&str]) {
        let mut objects = if options.contains(&"alone") {
            BTreeMap::new()
        } else {
            class_chart(tag)
        };
        objects.extend(
            list(option(options, "objects").unwrap_or_default())
                .iter()
                .map(|text| object(text)),
        );
        for files in self
            .source
            .releases
            .get_mut(tag)
            .into_iter()
            .chain(self.store.get_mut(tag))
        {
            files.objects.clone_from(&objects);
        }
    }

    fn flaw(&mut self, tag: &str, flaw: Option<Flaw>) {
        if let Some(files) = self.source.releases.get_mut(tag) {
            files.flaw = flaw;
        }
    }

    fn apply_stack(&mut self, name: &str, options: &[&str]) {
        let mut spec = match self.api.stacks.get(name) {
            Some(stack) => serde_json::to_value(&stack.spec).expect("a spec"),
            None => json!({"provider": "docker", "name": name, "kubernetesVersion": "1.34", "noProvider": true}),
        };
        for (field, text) in options.iter().filter_map(|word| word.split_once('=')) {
            spec[field] = match (field, text) {
                ("versions", text) => Value::from(list(text)),
                ("providerRef", text) => {
                    spec["noProvider"] = json!(false);
                    reference(text)
                }
                (_, "true" | "false") => Value::from(text == "true"),
                (_, text) => text
                    .parse::<u64>()
                    .ok()
                    .filter(|_| field == "pruneLimit")
                    .map_or_else(|| Value::from(text), Value::from),
            };
        }
        let spec = serde_json::from_value(spec).expect("a spec");
        if let Some(stack) = self.api.stacks.get_mut(name) {
            stack.generation += i64::from(stack.spec != spec);
            stack.spec = spec;
            return;
        }
        let stack = StackObject {
            uid: self.api.uid(),
            generation: 1,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            spec,
            status: ClusterStackStatus::default(),
        };
        self.api.stacks.insert(name.to_owned(), stack);
    }

    fn approve_stack(&mut self, name: &str) {
        let observed = self.observe_stack(name).expect("the stack");
        let digest = planning::stack::plan(&observed, self.now)
            .waiting
            .into_iter()
            .find_map(|waiting| match waiting {
                StackWaiting::PruneApproval { digest, .. } => Some(digest),
                _ => None,
            });
        let stack = self.api.stacks.get_mut(name).expect("the stack");
        stack
            .annotations
            .insert(labels::APPROVE_PRUNE.to_owned(), digest.expect("something to approve"));
    }

    fn approve_release(&mut self, tag: &str) {
        let observed = self.observe_release(tag).expect("the release");
        let digest = planning::release::plan(&observed, self.now)
            .waiting
            .into_iter()
            .find_map(|waiting| match waiting {
                Waiting::Objects(Wait::PruneApproval { digest, .. }) => Some(digest),
                _ => None,
            });
        let release = self.api.releases.get_mut(tag).expect("the release");
        release
            .annotations
            .insert(labels::APPROVE_PRUNE.to_owned(), digest.expect("something to approve"));
    }

    fn annotate(&mut self, kind: &str, name: &str, pair: &str) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let annotations = match kind {
            "stack" => &mut self.api.stacks.get_mut(name).expect("the stack").annotations,
            _ => &mut self.api.releases.get_mut(name).expect("the release").annotations,
        };
        match key.strip_prefix('-') {
            Some(key) => drop(annotations.remove(key)),
            None => drop(annotations.insert(key.to_owned(), value.to_owned())),
        }
    }

    /// Somebody edits what a release refers to.
    fn refer(&mut self, tag: &str, provider: &str) {
        let release = self.api.releases.get_mut(tag).expect("the release");
        release.spec.provider_ref = serde_json::from_value(reference(provider)).expect("a reference");
        release.generation += 1;
    }

    fn put_template(&mut self, name: &str, fields: &[&str]) {
        let spec: serde_json::Map<String, Value> = fields
            .iter()
            .filter_map(|word| word.split_once('='))
            .map(|(field, value)| (field.to_owned(), Value::from(value)))
            .collect();
        self.api.templates.insert(name.to_owned(), json!({"spec": spec}));
    }

    fn provider_says(&mut self, tag: &str, ready: bool, message: &str) {
        let provider = self.api.providers.get_mut(tag).expect("the provider's object");
        provider.ready = ready;
        provider.message = Some(message.to_owned()).filter(|message| !message.is_empty());
    }

    /// A release as the Go operator left it.
    fn predecessor(&mut self, tag: &str, objects: &str) {
        let row = |text: &String| {
            let key = key(text);
            Resource {
                group: key.group,
                version: "v1beta1".to_owned(),
                kind: key.kind,
                namespace: key.namespace,
                name: key.name,
                status: Some(SyncStatus::Synced),
                ..Resource::default()
            }
        };
        let release = ReleaseObject {
            uid: self.api.uid(),
            generation: 1,
            owner: None,
            finalizer: true,
            deleting: false,
            annotations: BTreeMap::new(),
            group_kinds: BTreeSet::new(),
            spec: ClusterStackReleaseSpec::default(),
            status: ClusterStackReleaseStatus {
                ready: true,
                resources: list(objects).iter().map(row).collect(),
                ..ClusterStackReleaseStatus::default()
            },
        };
        self.api.releases.insert(tag.to_owned(), release);
    }

    /// As `clusterctl move` with files: another API server, without status, on which all objects are clusterctl's.
    fn move_elsewhere(&mut self) {
        self.process = Process::default();
        self.lose_status();
        for live in self.api.objects.values_mut() {
            live.hand_over_to(labels::MOVER_FIELD_MANAGER);
        }
    }

    fn lose_status(&mut self) {
        for stack in self.api.stacks.values_mut() {
            stack.status = ClusterStackStatus::default();
        }
        for release in self.api.releases.values_mut() {
            release.status = ClusterStackReleaseStatus::default();
        }
    }
}

/// `path=value` sets, `-path` removes.
fn edit(live: &mut Live, options: &[&str], manager: &str) {
    for word in options {
        match word.split_once('=') {
            Some(("by", _)) => {}
            Some((path, value)) => live.edit(&field_path(path), Some(value), manager),
            None => live.edit(&field_path(word.trim_start_matches('-')), None, manager),
        }
    }
}

/// The words of a line from a position on.
fn rest(line: &str, from: usize) -> String {
    line.split_whitespace().skip(from).collect::<Vec<_>>().join(" ")
}
