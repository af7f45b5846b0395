//! What Cluster API's contract has a provider write, as tables: one for each version of the contract. Touches nothing.
//!
//! A CRD says by its labels which versions it fulfils. Each minor of Cluster API takes the newest one that it knows, so a kind that fulfils both
//! has the fields of both: 1.10 reads `status.ready` of the same object of which 1.11 and later read `status.initialization.provisioned`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A version of the contract between Cluster API and its providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// All that Cluster API up to 1.10 knows; later minors still take it.
    V1Beta1,
    /// Since Cluster API 1.11.
    V1Beta2,
}

/// A condition as Cluster API reads it from a control plane: type, status.
type Condition = (&'static str, bool);

impl Contract {
    /// From the older to the newer.
    pub const ALL: [Self; 2] = [Self::V1Beta1, Self::V1Beta2];

    /// As API versions are written, which are named after the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// The label of a CRD whose value names the API versions that fulfil this version of the contract, joined by `_`.
    pub fn label(self) -> String {
        format!("cluster.x-k8s.io/{}", self.name())
    }

    fn provisioned(self) -> Value {
        match self {
            Self::V1Beta1 => json!({ "ready": true }),
            Self::V1Beta2 => json!({ "initialization": { "provisioned": true } }),
        }
    }

    fn data_created(self) -> Value {
        match self {
            Self::V1Beta1 => json!({ "ready": true }),
            Self::V1Beta2 => json!({ "initialization": { "dataSecretCreated": true } }),
        }
    }

    fn initialized(self) -> Value {
        match self {
            Self::V1Beta1 => json!({ "initialized": true, "ready": true }),
            Self::V1Beta2 => json!({ "initialization": { "controlPlaneInitialized": true } }),
        }
    }

    fn counts(self, replicas: i64, up_to_date: i64) -> Value {
        match self {
            Self::V1Beta1 => json!({ "updatedReplicas": up_to_date, "unavailableReplicas": 0 }),
            Self::V1Beta2 => json!({ "upToDateReplicas": up_to_date, "availableReplicas": replicas }),
        }
    }

    fn conditions(self, is_rolling: bool) -> Vec<Condition> {
        match self {
            Self::V1Beta1 => Vec::new(),
            Self::V1Beta2 => vec![
                ("Available", true),
                ("RollingOut", is_rolling),
                ("ScalingUp", false),
                ("ScalingDown", false),
            ],
        }
    }
}

/// The versions of the contract that a CRD with these labels fulfils, each with the newest of its API versions.
pub(super) fn fulfilled(labels: &BTreeMap<String, String>) -> BTreeMap<Contract, String> {
    let newest = |versions: &String| {
        versions
            .split('_')
            .max()
            .filter(|version| !version.is_empty())
            .map(str::to_owned)
    };
    let found = |contract: Contract| Some((contract, labels.get(&contract.label()).and_then(newest)?));
    Contract::ALL.into_iter().filter_map(found).collect()
}

/// The status of an infrastructure cluster that is there.
pub(super) fn infrastructure(contracts: &[Contract]) -> Value {
    merged(contracts, Contract::provisioned)
}

/// The status of an infrastructure machine that runs.
pub(super) fn machine(contracts: &[Contract]) -> Value {
    let mut status = merged(contracts, Contract::provisioned);
    status["addresses"] = json!([{ "type": "InternalIP", "address": "127.0.0.1" }]);
    status
}

/// The status of a bootstrap config whose data is in this Secret.
pub(super) fn bootstrap(contracts: &[Contract], secret: &str) -> Value {
    let mut status = merged(contracts, Contract::data_created);
    status["dataSecretName"] = secret.into();
    status
}

/// What is to be reported of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ControlPlane<'a> {
    /// The Kubernetes version that it runs.
    pub(super) version: &'a str,
    /// Whether it is on its way to another one.
    pub(super) is_rolling: bool,
    /// `None` for a control plane whose size nobody asked for.
    pub(super) replicas: Option<i64>,
    /// Of the object whose spec was read.
    pub(super) generation: i64,
}

/// The status of an initialized control plane. No Machines belong to it: it runs elsewhere, as hosted ones do. `old` are the conditions that it has;
/// one that did not change keeps its time.
pub(super) fn control_plane(contracts: &[Contract], plane: &ControlPlane<'_>, old: &[Value], now: &str) -> Value {
    let mut status = merged(contracts, Contract::initialized);
    status["version"] = plane.version.into();
    status["observedGeneration"] = plane.generation.into();
    status["externalManagedControlPlane"] = true.into();
    if let Some(replicas) = plane.replicas {
        let up_to_date = if plane.is_rolling { 0 } else { replicas };
        merge(
            &mut status,
            merged(contracts, |contract| contract.counts(replicas, up_to_date)),
        );
        merge(&mut status, json!({ "replicas": replicas, "readyReplicas": replicas }));
    }
    let of_all = contracts
        .iter()
        .flat_map(|contract| contract.conditions(plane.is_rolling));
    let conditions: Vec<Value> = of_all.map(|condition| dated(condition, old, now)).collect();
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    status
}

fn dated((kind, holds): Condition, old: &[Value], now: &str) -> Value {
    let status = if holds { "True" } else { "False" };
    let same = old.iter().find(|old| old["type"] == kind && old["status"] == status);
    same.cloned().unwrap_or_else(
        || json!({ "type": kind, "status": status, "reason": "Shim", "message": "", "lastTransitionTime": now }),
    )
}

/// The version that a control plane runs next, and whether it is on its way to another one.
///
/// It comes up with the version that is asked for. Later it goes on by one minor at most and never back, as those of kubeadm do; while it is `held` it
/// stays what it is.
pub(super) fn next_version<'a>(runs: Option<&'a str>, asked: &'a str, held: bool) -> (&'a str, bool) {
    if let Some(runs) = runs
        && runs != asked
        && (held || !is_step(runs, asked))
    {
        (runs, true)
    } else {
        (asked, false)
    }
}

fn is_step(from: &str, to: &str) -> bool {
    let (Some(from), Some(to)) = (numbers(from), numbers(to)) else {
        return false;
    };
    from.0 == to.0 && (from.1..=from.1 + 1).contains(&to.1) && from < to
}

/// Major, minor, patch.
fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = version
        .strip_prefix('v')?
        .splitn(3, '.')
        .map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

/// Whether a merge patch with `wanted` would leave `there` as it is.
pub(super) fn covers(there: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => fields
            .iter()
            .all(|(name, wanted)| there.get(name).is_some_and(|there| covers(there, wanted))),
        _ => there == wanted,
    }
}

fn merged(contracts: &[Contract], fields: impl Fn(Contract) -> Value) -> Value {
    let mut all = Value::Object(Map::new());
    for contract in contracts {
        merge(&mut all, fields(*contract));
    }
    all
}

/// What a merge patch without `null` does.
pub(super) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[Contract] = &Contract::ALL;
    const OLD: &[Contract] = &[Contract::V1Beta1];
    const NEW: &[Contract] = &[Contract::V1Beta2];

    fn plane(is_rolling: bool, replicas: Option<i64>) -> ControlPlane<'static> {
        ControlPlane {
            version: "v1.34.0",
            is_rolling,
            replicas,
            generation: 3,
        }
    }

    #[test]
    fn a_crd_says_by_its_labels_what_it_fulfils() {
        let labels = |labels: &[(&str, &str)]| {
            let owned = labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            owned.collect::<BTreeMap<_, _>>()
        };
        let both = [
            ("cluster.x-k8s.io/v1beta1", "v1alpha1_v1beta1"),
            ("cluster.x-k8s.io/v1beta2", "v1beta2"),
            ("cluster.x-k8s.io/provider", "shim"),
        ];
        let of_both = [
            (Contract::V1Beta1, "v1beta1".to_owned()),
            (Contract::V1Beta2, "v1beta2".to_owned()),
        ];
        assert_eq!(fulfilled(&labels(&both)), BTreeMap::from(of_both.clone()));
        assert_eq!(fulfilled(&labels(&both[1..])), BTreeMap::from([of_both[1].clone()]));
        assert_eq!(fulfilled(&labels(&[("cluster.x-k8s.io/v1beta2", "")])), BTreeMap::new());
        assert_eq!(fulfilled(&labels(&[])), BTreeMap::new());
    }

    #[test]
    fn each_version_of_the_contract_has_its_fields() {
        let provisioned = json!({ "initialization": { "provisioned": true } });
        assert_eq!(infrastructure(OLD), json!({ "ready": true }));
        assert_eq!(infrastructure(NEW), provisioned);
        assert_eq!(
            infrastructure(BOTH),
            json!({ "ready": true, "initialization": { "provisioned": true } })
        );
        let addresses = json!([{ "type": "InternalIP", "address": "127.0.0.1" }]);
        assert_eq!(machine(OLD), json!({ "ready": true, "addresses": addresses }));
        assert_eq!(
            machine(NEW),
            json!({ "initialization": { "provisioned": true }, "addresses": addresses })
        );
        assert_eq!(
            bootstrap(OLD, "data"),
            json!({ "ready": true, "dataSecretName": "data" })
        );
        assert_eq!(
            bootstrap(NEW, "data"),
            json!({ "initialization": { "dataSecretCreated": true }, "dataSecretName": "data" })
        );
    }

    #[test]
    fn a_control_plane_is_told_of_in_the_words_of_each_version() {
        assert_eq!(
            control_plane(OLD, &plane(false, Some(3)), &[], "now"),
            json!({
                "version": "v1.34.0", "observedGeneration": 3, "externalManagedControlPlane": true,
                "initialized": true, "ready": true,
                "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "unavailableReplicas": 0,
            })
        );
        let status = control_plane(NEW, &plane(true, Some(3)), &[], "now");
        let told = |kind: &str| {
            let conditions = status["conditions"].as_array().expect("conditions");
            let found = conditions.iter().find(|condition| condition["type"] == kind);
            found.expect(kind)["status"].as_str().expect("a status").to_owned()
        };
        assert_eq!(
            ["Available", "RollingOut", "ScalingUp", "ScalingDown"].map(told),
            ["True", "True", "False", "False"]
        );
        let mut rest = status.clone();
        rest.as_object_mut().expect("a status").remove("conditions");
        assert_eq!(
            rest,
            json!({
                "version": "v1.34.0", "observedGeneration": 3, "externalManagedControlPlane": true,
                "initialization": { "controlPlaneInitialized": true },
                "replicas": 3, "readyReplicas": 3, "upToDateReplicas": 0, "availableReplicas": 3,
            })
        );
        let unsized_plane = control_plane(BOTH, &plane(false, None), &[], "now");
        assert_eq!(unsized_plane["replicas"], Value::Null, "nobody asked for a size");
        assert_eq!(unsized_plane["initialized"], true);
        assert_eq!(unsized_plane["initialization"]["controlPlaneInitialized"], true);
    }

    #[test]
    fn a_condition_that_did_not_change_keeps_its_time() {
        let first = control_plane(NEW, &plane(false, None), &[], "then");
        let old = first["conditions"].as_array().expect("conditions");
        assert_eq!(control_plane(NEW, &plane(false, None), old, "now"), first);
        let rolling = control_plane(NEW, &plane(true, None), old, "now");
        let conditions = rolling["conditions"].as_array().expect("conditions").iter();
        let times: Vec<_> = conditions
            .map(|condition| condition["lastTransitionTime"].clone())
            .collect();
        assert_eq!(times, ["then", "now", "then", "then"], "only RollingOut changed");
    }

    #[test]
    fn a_control_plane_goes_on_by_one_minor_at_most_and_never_back() {
        for (runs, asked, held, expected) in [
            (None, "v1.34.0", false, ("v1.34.0", false)),
            (None, "v1.34.0", true, ("v1.34.0", false)),
            (Some("v1.34.0"), "v1.34.0", true, ("v1.34.0", false)),
            (Some("v1.34.0"), "v1.34.2", false, ("v1.34.2", false)),
            (Some("v1.34.0"), "v1.35.1", false, ("v1.35.1", false)),
            (Some("v1.34.0"), "v1.35.1", true, ("v1.34.0", true)),
            (Some("v1.34.0"), "v1.36.0", false, ("v1.34.0", true)),
            (Some("v1.34.2"), "v1.34.0", false, ("v1.34.2", true)),
            (Some("v1.34.0"), "latest", false, ("v1.34.0", true)),
        ] {
            assert_eq!(next_version(runs, asked, held), expected, "{runs:?} to {asked}");
        }
    }

    #[test]
    fn nothing_is_written_that_is_there() {
        let there = json!({ "ready": true, "initialization": { "provisioned": true, "other": 1 }, "list": [1, 2] });
        for wanted in [
            json!({}),
            json!({ "ready": true }),
            json!({ "initialization": { "provisioned": true } }),
        ] {
            assert!(covers(&there, &wanted), "{wanted}");
        }
        for wanted in [
            json!({ "ready": false }),
            json!({ "list": [1] }),
            json!({ "initialization": { "new": true } }),
        ] {
            assert!(!covers(&there, &wanted), "{wanted}");
        }
        assert!(!covers(&Value::Null, &json!({ "ready": true })));
    }
}
