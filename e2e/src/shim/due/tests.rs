use kube::api::ApiResource;

use super::*;

const NAMESPACE: &str = "fleet";
const CLUSTER: &str = "web";
const NOW: &str = "2026-01-02T03:04:05Z";

/// A Cluster in the middle of its life, and what somebody who plays it has written so far.
struct Play {
    seen: Seen,
    held: Held,
    done: Done,
    kinds: Kinds,
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

fn kinds() -> Kinds {
    let served = |kind: Kind| {
        let api_version = format!("{}/v1beta2", kind.group());
        let resource = ApiResource {
            group: kind.group().to_owned(),
            version: "v1beta2".to_owned(),
            api_version,
            kind: kind.name().to_owned(),
            plural: kind.plural(),
        };
        let contracts = Contract::ALL.to_vec();
        (kind, Served { resource, contracts })
    };
    Kind::ALL.into_iter().map(served).collect()
}

fn reference(kind: Kind) -> Value {
    json!({ "apiGroup": kind.group(), "kind": kind.name(), "name": CLUSTER })
}

impl Play {
    /// What Cluster API makes of a Cluster with one worker; neither it nor we have written a status.
    fn begin() -> Self {
        let cluster = json!({
            "metadata": { "namespace": NAMESPACE, "name": CLUSTER, "uid": "cluster" },
            "spec": {
                "infrastructureRef": reference(Kind::Cluster), "controlPlaneRef": reference(Kind::ControlPlane),
            },
        });
        let named = |uid: &str| json!({ "name": CLUSTER, "uid": uid, "generation": 2, "resourceVersion": "7" });
        let of_machine = json!({
            "name": "web-0", "resourceVersion": "7",
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "web-0", "uid": "machine" }],
        });
        let objects = [
            (
                Kind::Cluster,
                json!({ "metadata": named("infrastructure"), "spec": {} }),
            ),
            (
                Kind::ControlPlane,
                json!({ "metadata": named("plane"), "spec": { "version": "v1.34.0", "replicas": 1 } }),
            ),
            (Kind::Config, json!({ "metadata": of_machine, "spec": {} })),
            (Kind::Machine, json!({ "metadata": of_machine, "spec": {} })),
        ];
        let mut play = Self {
            seen: Seen {
                cluster: Some(object(cluster)),
                objects: objects.map(|(kind, value)| (kind, vec![object(value)])).into(),
                ..Seen::default()
            },
            held: Held::default(),
            done: Done::default(),
            kinds: kinds(),
        };
        play.machine(&json!({}));
        play
    }

    fn machine(&mut self, bootstrap: &Value) {
        let machine = json!({
            "metadata": { "name": "web-0", "uid": "machine" },
            "spec": { "version": "v1.34.0", "bootstrap": bootstrap },
        });
        self.seen.machines.insert("web-0".to_owned(), object(machine));
    }

    fn due(&self) -> Vec<Deed> {
        let look = Look {
            namespace: NAMESPACE,
            name: CLUSTER,
            seen: &self.seen,
            held: &self.held,
            done: &self.done,
            kinds: &self.kinds,
            endpoint: &json!({ "host": "127.0.0.1", "port": 6443 }),
            now: NOW,
        };
        look.due()
    }

    fn object(&self, kind: Kind) -> Value {
        serde_json::to_value(&self.seen.objects[&kind][0]).expect("an object")
    }

    fn change(&mut self, kind: Kind, patch: Value) {
        let mut changed = self.object(kind);
        contract::merge(&mut changed, patch);
        self.seen.objects.insert(kind, vec![object(changed)]);
    }

    fn perform(&mut self, deed: Deed) {
        match deed {
            Deed::Merge { kind, patch, .. } => self.change(kind, patch),
            Deed::Report { kind, status, .. } => self.change(kind, json!({ "status": status })),
            Deed::Publish { owner } => self.done.published_for = owner["uid"].as_str().map(str::to_owned),
            // Cluster API copies the name.
            Deed::Bootstrap { secret, .. } => self.machine(&json!({ "dataSecretName": secret })),
            Deed::Admit { machine } => {
                self.held.admitted -= 1;
                self.done.admitted.insert(machine);
            }
            Deed::BringNode { name, .. } => {
                self.done.nodes.insert(name);
            }
            Deed::RemoveSecret { .. } | Deed::RemoveNode { .. } => {}
        }
    }

    /// Does what is due until nothing is; the answer is what was done, in its order.
    fn settle(&mut self) -> Vec<Deed> {
        let mut done = Vec::new();
        for _ in 0..10 {
            let due = self.due();
            if due.is_empty() {
                return done;
            }
            for deed in due {
                done.push(deed.clone());
                self.perform(deed);
            }
        }
        panic!("it never ends: {:#?}", self.due());
    }
}

fn position(deeds: &[Deed], what: impl Fn(&Deed) -> bool) -> Option<usize> {
    deeds.iter().position(what)
}

fn is_report_of(kind: Kind) -> impl Fn(&Deed) -> bool {
    move |deed| matches!(deed, Deed::Report { kind: of, .. } if *of == kind)
}

#[test]
fn a_cluster_comes_up_in_the_order_of_the_contract_and_is_then_left_alone() {
    let mut play = Play::begin();
    let done = play.settle();
    let steps = [
        position(&done, |deed| matches!(deed, Deed::Publish { .. })),
        position(
            &done,
            |deed| matches!(deed, Deed::Merge { patch, .. } if patch["spec"]["controlPlaneEndpoint"] != Value::Null),
        ),
        position(&done, is_report_of(Kind::Cluster)),
        position(&done, is_report_of(Kind::ControlPlane)),
        position(&done, |deed| matches!(deed, Deed::Bootstrap { .. })),
        position(&done, is_report_of(Kind::Config)),
        position(&done, is_report_of(Kind::Machine)),
        position(&done, |deed| matches!(deed, Deed::BringNode { .. })),
    ];
    assert!(
        steps.iter().all(Option::is_some) && steps.is_sorted(),
        "{steps:?} of {done:#?}"
    );
    assert_eq!(play.object(Kind::Machine)["spec"]["providerID"], "shim://fleet/web-0");
    for kind in Kind::ALL {
        assert_eq!(play.object(kind)["metadata"]["finalizers"], json!([FINALIZER]));
    }
}

#[test]
fn what_is_held_back_does_not_happen_and_what_follows_from_it_neither() {
    for (hold, reported, bootstrapped, node) in [
        (Hold::Infrastructure, [false, false, false, false], false, false),
        (Hold::Initialization, [true, false, false, false], false, false),
        (Hold::Machines, [true, true, true, false], true, false),
        (Hold::Kubeconfig, [true, true, true, true], true, true),
        (Hold::Upgrade, [true, true, true, true], true, true),
        (Hold::Deletion, [true, true, true, true], true, true),
    ] {
        let mut play = Play::begin();
        play.held.back.insert(hold);
        let done = play.settle();
        let of_kinds = Kind::ALL.map(|kind| position(&done, is_report_of(kind)).is_some());
        assert_eq!(of_kinds, reported, "{hold:?}");
        assert_eq!(
            position(&done, |deed| matches!(deed, Deed::Bootstrap { .. })).is_some(),
            bootstrapped,
            "{hold:?}"
        );
        assert_eq!(
            position(&done, |deed| matches!(deed, Deed::BringNode { .. })).is_some(),
            node,
            "{hold:?}"
        );
        let published = position(&done, |deed| matches!(deed, Deed::Publish { .. })).is_some();
        assert_eq!(published, hold != Hold::Kubeconfig, "{hold:?}");

        play.held.back.remove(&hold);
        play.settle();
        assert!(play.done.nodes.contains("web-0"), "{hold:?} released");
    }
}

#[test]
fn machines_that_are_admitted_come_up_one_by_one() {
    let mut play = Play::begin();
    play.held.back.insert(Hold::Machines);
    play.settle();
    assert!(play.done.nodes.is_empty());
    play.held.admitted = 1;
    play.settle();
    assert_eq!((play.held.admitted, play.done.nodes.len()), (0, 1));
}

#[test]
fn a_control_plane_whose_upgrade_is_held_is_on_its_way_and_keeps_its_version() {
    let mut play = Play::begin();
    play.settle();
    play.held.back.insert(Hold::Upgrade);
    play.change(
        Kind::ControlPlane,
        json!({ "spec": { "version": "v1.35.0" }, "metadata": { "generation": 3 } }),
    );
    play.settle();
    let status = play.object(Kind::ControlPlane)["status"].clone();
    assert_eq!(
        (&status["version"], &status["observedGeneration"]),
        (&json!("v1.34.0"), &json!(3))
    );
    assert_eq!(
        (&status["updatedReplicas"], &status["upToDateReplicas"]),
        (&json!(0), &json!(0))
    );
    play.held.back.clear();
    play.settle();
    let status = play.object(Kind::ControlPlane)["status"].clone();
    assert_eq!(
        (&status["version"], &status["upToDateReplicas"]),
        (&json!("v1.35.0"), &json!(1))
    );
}

#[test]
fn what_is_deleted_goes_when_what_it_stands_for_is_cleared_away() {
    let leaving = json!({ "metadata": { "deletionTimestamp": NOW, "finalizers": ["others", FINALIZER] } });
    for (kind, cleared) in [
        (Kind::Cluster, None),
        (
            Kind::ControlPlane,
            Some(Deed::RemoveSecret {
                name: "web-kubeconfig".to_owned(),
            }),
        ),
        (
            Kind::Config,
            Some(Deed::RemoveSecret {
                name: "web-0".to_owned(),
            }),
        ),
        (
            Kind::Machine,
            Some(Deed::RemoveNode {
                name: "web-0".to_owned(),
            }),
        ),
    ] {
        let mut play = Play::begin();
        play.settle();
        play.held.back.insert(Hold::Deletion);
        play.change(kind, leaving.clone());
        assert_eq!(play.settle(), [], "{kind:?} held");
        play.held.back.clear();
        let let_go = json!({ "metadata": { "finalizers": ["others"], "resourceVersion": "7" } });
        let name = if matches!(kind, Kind::Cluster | Kind::ControlPlane) {
            "web"
        } else {
            "web-0"
        };
        let let_go = Deed::Merge {
            kind,
            name: name.to_owned(),
            patch: let_go,
        };
        let expected: Vec<_> = cleared.into_iter().chain([let_go]).collect();
        assert_eq!(play.settle(), expected, "{kind:?}");
    }
}

#[test]
fn a_paused_cluster_is_left_alone() {
    let mut play = Play::begin();
    let cluster = play.seen.cluster.as_mut().expect("a Cluster");
    cluster.data["spec"]["paused"] = json!(true);
    assert_eq!(play.due(), []);
}

#[test]
fn kinds_of_others_and_objects_that_nobody_refers_to_are_none_of_its_business() {
    let mut play = Play::begin();
    let cluster = play.seen.cluster.as_mut().expect("a Cluster");
    cluster.data["spec"]["infrastructureRef"]["kind"] = json!("DockerCluster");
    cluster.data["spec"]["controlPlaneRef"]["name"] = json!("other");
    let done = play.settle();
    let is_mark = |deed: &Deed| matches!(deed, Deed::Merge { patch, .. } if patch["metadata"] != Value::Null);
    assert!(done.iter().all(is_mark), "{done:#?}");
}

#[test]
fn a_machine_that_is_on_its_way_out_brings_no_node() {
    let mut play = Play::begin();
    play.settle();
    play.done.nodes.clear();
    let machine = play.seen.machines.get_mut("web-0").expect("a Machine");
    let mut leaving = serde_json::to_value(&*machine).expect("a Machine");
    leaving["metadata"]["deletionTimestamp"] = json!(NOW);
    *machine = object(leaving);
    assert_eq!(play.due(), []);
}
