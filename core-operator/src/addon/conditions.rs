//! How the conditions of stages are: the objects that they are about are read in the workload cluster, and the expression is evaluated over them. While a
//! stage waits for a condition its objects are followed: whatever becomes of them wakes the add-on, and nobody asks again in between.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::cluster_addon::{ClusterAddonStatus, StagePhase};
use crds::release_files::{WaitForCondition, WatchedObject};
use expressions::{Expression, Missing, Outcome, STEPS, evaluate, parse};
use operator_kit::client::OBJECT_LIMIT;
use operator_kit::failure::chain;
use operator_kit::object::{ObjectKey, json_of};
use operator_kit::parts::MOST_PARTS;
use planning::addon::{ConditionSeen, Stage, StageConditions, StageKey, Verdict, outdated};
use serde_json::Value;
use tokio::time::Instant;

use super::allowance::{Allowance, Limits, Spent};
use super::charts::Hidden;
use super::served::Judge;
use crate::objects::Place;

/// What the objects of a condition may take together: as much as one answer.
const LIMITS: Limits = Limits {
    bytes: OBJECT_LIMIT,
    parts: MOST_PARTS,
    time: Duration::from_mins(1),
};

/// What was seen of conditions.
#[derive(Default)]
pub(super) struct Evaluated {
    /// Sorted by stage.
    pub(super) conditions: Vec<StageConditions>,
    /// An object of one could not be read. Nothing tells when it can be.
    pub(super) is_unread: bool,
    /// When to look again at what the API server publishes of its kinds, if nothing happens by then.
    pub(super) again: Option<Instant>,
}

/// Evaluates the conditions of those of these stages that somebody waits for. What is hidden may stand in the objects that they are about.
pub(super) async fn conditions(
    judge: &mut Judge<'_>,
    stages: &[Stage],
    awaited: &BTreeSet<StageKey>,
    hidden: &Hidden,
) -> Evaluated {
    let mut seen = Evaluated::default();
    for stage in stages.iter().filter(|stage| awaited.contains(&stage.key)) {
        let conditions = StageConditions {
            key: stage.key.clone(),
            pre: told(seen.condition(judge, stage.pre.as_ref()).await, hidden),
            post: told(seen.condition(judge, stage.post.as_ref()).await, hidden),
        };
        seen.conditions.push(conditions);
    }
    seen.conditions.sort_by(|one, other| one.key.cmp(&other.key));
    seen
}

fn told(seen: ConditionSeen, hidden: &Hidden) -> ConditionSeen {
    match seen {
        ConditionSeen::Fails { message } => fails(hidden.without(&message)),
        ConditionSeen::Invalid { message } => ConditionSeen::Invalid {
            message: hidden.without(&message),
        },
        ConditionSeen::Holds | ConditionSeen::Unknown => seen,
    }
}

impl Evaluated {
    async fn condition(&mut self, judge: &mut Judge<'_>, condition: Option<&WaitForCondition>) -> ConditionSeen {
        let Some(condition) = condition else {
            return ConditionSeen::Unknown;
        };
        let expression = match parse(&condition.conditions) {
            Ok(expression) => expression,
            Err(error) => return fails(chain(&error)),
        };
        let checked = judge.check(condition, &expression).await;
        let again = checked.again.map(Instant::from_std);
        self.again = self.again.into_iter().chain(again).min();
        match checked.verdict {
            Verdict::Unfit { message } => ConditionSeen::Invalid { message },
            Verdict::Unsettled { message } => fails(message),
            Verdict::Fits { note } => {
                let seen = self.evaluated(judge.place, condition, &expression).await;
                noted(seen, note)
            }
        }
    }

    /// How it is with the objects as they are now.
    async fn evaluated(
        &mut self,
        place: &Place,
        condition: &WaitForCondition,
        expression: &Expression,
    ) -> ConditionSeen {
        let mut objects = BTreeMap::new();
        let mut allowance = Allowance::new(LIMITS);
        for object in &condition.objects {
            match read(place, object, &mut allowance).await {
                Ok(found) => drop(objects.insert(object.key.clone(), found)),
                Err(message) => {
                    self.is_unread = true;
                    return fails(message);
                }
            }
        }
        let mut of_status = objects.iter().filter(|(key, _)| expression.reads(key, "status"));
        let outdated = of_status.find_map(|(key, found)| outdated(key, found.as_ref()?));
        if let Some(message) = outdated {
            return fails(message);
        }
        match evaluate(expression, &objects, STEPS) {
            Outcome::Holds => ConditionSeen::Holds,
            outcome => fails(words(&outcome, &condition.objects)),
        }
    }
}

/// What does not hold may be waited for in vain where it could not be checked.
fn noted(seen: ConditionSeen, note: Option<String>) -> ConditionSeen {
    match (seen, note) {
        (ConditionSeen::Fails { message }, Some(note)) => {
            fails(format!("{message}; as to the schemas of the API server: {note}"))
        }
        (seen, _) => seen,
    }
}

/// Follows the objects that these stages wait for, and no others. One that changed after it was read is told of all the same: each is told of once when it is
/// followed.
pub(super) async fn follow(place: &Place, stages: &[Stage], awaited: &BTreeSet<StageKey>, status: &ClusterAddonStatus) {
    let waiting = stages.iter().filter(|stage| awaited.contains(&stage.key));
    let conditions = waiting.filter_map(|stage| condition_of(stage, status));
    let objects: BTreeSet<ObjectKey> = conditions
        .flat_map(|condition| &condition.objects)
        .map(key_of)
        .collect();
    place.objects.keep_named(|key| objects.contains(key));
    for key in &objects {
        place.follow_named(key).await;
    }
}

/// The condition that a stage waits for, as the status has it: the n-th row of a hook is that of its n-th stage, of which two may have the same chart.
fn condition_of<'s>(stage: &'s Stage, status: &ClusterAddonStatus) -> Option<&'s WaitForCondition> {
    let StageKey {
        hook,
        index,
        name,
        action,
    } = &stage.key;
    let mut rows = status
        .stages
        .iter()
        .filter(|row| row.hook.as_deref() == Some(hook.name()));
    let row = rows.nth(*index);
    let is_after = row.is_some_and(|row| {
        row.phase == StagePhase::WaitingForPostCondition && row.name == *name && row.action == *action
    });
    if is_after {
        stage.post.as_ref()
    } else {
        stage.pre.as_ref()
    }
}

fn fails(message: String) -> ConditionSeen {
    ConditionSeen::Fails { message }
}

/// The object as the API server has it now; nothing where there is none.
async fn read(place: &Place, object: &WatchedObject, allowance: &mut Allowance) -> Result<Option<Value>, String> {
    let (key, (_, version)) = (key_of(object), group_and_version(object));
    let spent = |spent: Spent| format!("the condition reads {spent}, up to the {key}: let it be about less");
    let found = allowance.wait(place.read_in(&key, version)).await.map_err(spent)?;
    let found = found.map_err(|error| format!("failed to read the {key}: {}", chain(&error)))?;
    let found = found.map(json_of);
    if let Some(found) = &found {
        allowance.take(found).map_err(spent)?;
    }
    Ok(found)
}

fn key_of(object: &WatchedObject) -> ObjectKey {
    let (group, _) = group_and_version(object);
    ObjectKey::new(group, &object.kind, &object.namespace, &object.name)
}

fn group_and_version(object: &WatchedObject) -> (&str, &str) {
    object.api_version.split_once('/').unwrap_or(("", &object.api_version))
}

/// What does not hold, for people: the first part of the expression, with what its sides are. Where one of the objects is a Secret they are not said: they may
/// be what is in it.
fn words(outcome: &Outcome, objects: &[WatchedObject]) -> String {
    match outcome {
        Outcome::Holds => "it holds".to_owned(),
        Outcome::Fails { conjunct, .. } if objects.iter().any(is_secret) => {
            format!("`{conjunct}` is false; its values are not shown, since it may ask for what is in a Secret")
        }
        Outcome::Wrong { .. } if objects.iter().any(is_secret) => {
            "the expression cannot be evaluated; why is not told, because it is about a Secret".to_owned()
        }
        Outcome::Fails { conjunct, sides } => {
            let sides: Vec<String> = sides
                .iter()
                .map(|side| format!("{} is {}", side.text, side.value))
                .collect();
            if sides.is_empty() {
                format!("`{conjunct}` is false")
            } else {
                format!("`{conjunct}` is false: {}", sides.join(", "))
            }
        }
        Outcome::Missing(Missing::Object { object }) => {
            let named = objects.iter().find(|named| named.key == *object);
            named.map_or_else(
                || format!("{object} is not there yet"),
                |WatchedObject {
                     kind, namespace, name, ..
                 }| match namespace.as_str() {
                    "" => format!("the {kind} {name} is not there yet"),
                    namespace => format!("the {kind} {namespace}/{name} is not there yet"),
                },
            )
        }
        Outcome::Missing(Missing::Path { path }) => format!("{path} is not there yet"),
        Outcome::Wrong { message } => message.clone(),
    }
}

fn is_secret(object: &WatchedObject) -> bool {
    group_and_version(object).0.is_empty() && object.kind == "Secret"
}

#[cfg(test)]
mod tests {
    use crds::cluster_addon::{StageAction, StageProgress};
    use crds::release_files::OnFailure;
    use operator_kit::crd_watch::CrdWatch;
    use operator_kit::discovery::Discovery;
    use operator_kit::in_memory::{Server, WORKLOAD};
    use operator_kit::objects::{Marked, ObjectWatches};
    use planning::addon::Hook;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::super::served::{Checks, Library};
    use super::*;

    /// What is said of an expression over one Deployment.
    fn said(text: &str, deployment: Option<Value>) -> String {
        said_of(("apps/v1", "Deployment"), text, deployment)
    }

    fn said_of((api_version, kind): (&str, &str), text: &str, found: Option<Value>) -> String {
        let object = WatchedObject {
            key: "harbor".to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "quay".to_owned(),
            namespace: "kube-system".to_owned(),
        };
        let objects = BTreeMap::from([("harbor".to_owned(), found)]);
        words(
            &evaluate(&parse(text).expect("an expression"), &objects, STEPS),
            &[object],
        )
    }

    fn place(server: &Server, stop: &CancellationToken) -> Place {
        let client = server.client();
        let discovery = Discovery::new(client.clone());
        let marked = Marked::by("label", "one");
        Place {
            crds: CrdWatch::start_elsewhere(client.clone(), discovery.clone(), stop.clone()),
            objects: ObjectWatches::new(client.clone(), discovery.clone(), marked, stop.clone()).0,
            client,
            discovery,
        }
    }

    #[tokio::test]
    async fn a_condition_about_more_than_fits_into_one_answer_is_told_and_the_rest_is_not_read() {
        let server = Server::new(&WORKLOAD, None);
        server.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kube-system" } }));
        let names = ["a", "b", "c", "d", "e", "f"];
        for name in names {
            server.apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "kube-system" },
                "data": { "text": "x".repeat(2 << 20) },
            }));
        }
        let object = |name: &str| WatchedObject {
            key: name.to_owned(),
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: name.to_owned(),
            namespace: "kube-system".to_owned(),
        };
        let condition = |names: &[&str]| WaitForCondition {
            objects: names.iter().copied().map(object).collect(),
            conditions: "a.data.text != \"\"".to_owned(),
        };
        let stop = CancellationToken::new();
        let _stop = stop.clone().drop_guard();
        let place = place(&server, &stop);
        let (library, mut checks) = (Library::default(), Checks::default());
        let mut judge = Judge {
            place: &place,
            library: &library,
            version: None,
            checks: &mut checks,
        };
        let mut seen = Evaluated::default();
        let few = seen.condition(&mut judge, Some(&condition(&names[..3]))).await;
        assert_eq!(few, ConditionSeen::Holds);
        let all = seen.condition(&mut judge, Some(&condition(&names))).await;
        let words = "the condition reads more than 8388608 bytes of objects, up to the ConfigMap kube-system/d: let it be about less; \
                     as to the schemas of the API server: their index cannot be used, because it answers with the code 404";
        assert_eq!(all, fails(words.to_owned()));
        let asked = names.map(|name| server.calls_about("ConfigMap", name));
        assert_eq!(asked, [2, 2, 2, 1, 0, 0]);
    }

    #[test]
    fn what_does_not_hold_is_said_with_its_values() {
        let deployment = || Some(json!({ "status": { "readyReplicas": 1 } }));
        let cases = [
            (
                said("harbor.status.readyReplicas == 1", None),
                "the Deployment kube-system/quay is not there yet",
            ),
            (
                said(
                    "harbor.status.readyReplicas > 0 && harbor.status.readyReplicas == 2",
                    deployment(),
                ),
                "`harbor.status.readyReplicas == 2` is false: harbor.status.readyReplicas is 1",
            ),
            (
                said("harbor.status.replicas == 2", deployment()),
                "harbor.status.replicas is not there yet",
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn what_is_in_a_secret_is_said_to_nobody() {
        let secret = || Some(json!({ "data": { "password": "c2FsYW1pcw==" } }));
        let other = "harbor.data.password == \"other\"";
        assert!(said_of(("v1", "ConfigMap"), other, secret()).contains("c2FsYW1pcw"));
        for text in [
            other,
            "int(harbor.data.password) > 1",
            "harbor.data.password.matches(\"^a\")",
        ] {
            let said = said_of(("v1", "Secret"), text, secret());
            assert!(!said.is_empty() && !said.contains("c2FsYW1pcw"), "{said}");
        }
        let said = said_of(("v1", "Secret"), other, secret());
        assert!(said.starts_with(&format!("`{other}` is false; ")), "{said}");
    }

    #[test]
    fn a_stage_is_followed_by_the_condition_that_it_waits_for() {
        let condition = |conditions: &str| WaitForCondition {
            objects: Vec::new(),
            conditions: conditions.to_owned(),
        };
        let stage = Stage {
            key: StageKey {
                hook: Hook::AfterControlPlaneInitialized,
                index: 0,
                name: "network".to_owned(),
                action: StageAction::Apply,
            },
            opens: Hook::AfterControlPlaneInitialized,
            timeout: Duration::from_mins(30),
            on_failure: OnFailure::Stop,
            pre: Some(condition("before")),
            post: Some(condition("after")),
        };
        let waits_for = |hook: &str, phase: StagePhase| {
            let row = json!({ "name": "network", "action": "apply", "hook": hook, "phase": phase });
            let status = ClusterAddonStatus {
                stages: vec![serde_json::from_value(row).expect("a row")],
                ..ClusterAddonStatus::default()
            };
            condition_of(&stage, &status).map(|condition| condition.conditions.clone())
        };
        let own = Hook::AfterControlPlaneInitialized.name();
        assert_eq!(
            waits_for(own, StagePhase::WaitingForPreCondition).as_deref(),
            Some("before")
        );
        assert_eq!(
            waits_for(own, StagePhase::WaitingForPostCondition).as_deref(),
            Some("after")
        );
        let other = Hook::BeforeClusterUpgrade.name();
        assert_eq!(
            waits_for(other, StagePhase::WaitingForPostCondition).as_deref(),
            Some("before")
        );
    }

    #[test]
    fn of_two_stages_of_one_chart_each_is_followed_by_its_own_condition() {
        let hook = Hook::BeforeClusterUpgrade;
        let stage = |index: usize| Stage {
            key: StageKey {
                hook,
                index,
                name: "network".to_owned(),
                action: StageAction::Apply,
            },
            opens: hook,
            timeout: Duration::from_mins(30),
            on_failure: OnFailure::Stop,
            pre: Some(WaitForCondition {
                objects: Vec::new(),
                conditions: format!("before {index}"),
            }),
            post: Some(WaitForCondition {
                objects: Vec::new(),
                conditions: format!("after {index}"),
            }),
        };
        // One of another hook before them counts for nothing.
        let rows = [
            (Hook::AfterControlPlaneInitialized, StagePhase::Done),
            (hook, StagePhase::WaitingForPostCondition),
            (hook, StagePhase::WaitingForPreCondition),
        ];
        let row = |(hook, phase): (Hook, StagePhase)| -> StageProgress {
            let row = json!({ "name": "network", "action": "apply", "hook": hook.name(), "phase": phase });
            serde_json::from_value(row).expect("a row")
        };
        let status = ClusterAddonStatus {
            stages: rows.map(row).to_vec(),
            ..ClusterAddonStatus::default()
        };
        let waits_for = |index: usize| {
            let stage = stage(index);
            condition_of(&stage, &status).map(|condition| condition.conditions.clone())
        };
        assert_eq!(waits_for(0).as_deref(), Some("after 0"));
        assert_eq!(waits_for(1).as_deref(), Some("before 1"));
    }
}
