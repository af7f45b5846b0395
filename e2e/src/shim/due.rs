//! What is due for one Cluster: a pure decision from what is seen of it, what a test holds back, and what is done already.

use std::collections::{BTreeMap, BTreeSet};

use kube::{ResourceExt, api::DynamicObject};
use serde_json::{Value, json};

use super::{
    Hold,
    contract::{self, Contract, covers},
    kinds::{Kind, Served},
    seen::{Seen, field, is_leaving, text},
};

/// Keeps an object until what it stands for is gone.
pub(super) const FINALIZER: &str = "shim.cluster.x-k8s.io/there";

/// One write. A look does them in their order and stops at the first that fails.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    /// Merges this into an object of the shim.
    Merge {
        kind: Kind,
        name: String,
        patch: Value,
    },
    /// Merges this into its status.
    Report {
        kind: Kind,
        name: String,
        status: Value,
    },
    /// Writes the kubeconfig of the workload cluster into its Secret.
    Publish {
        owner: Value,
    },
    /// Writes what a machine boots with into a Secret.
    Bootstrap {
        secret: String,
        owner: Value,
    },
    RemoveSecret {
        name: String,
    },
    /// Lets a machine run, where they come one by one.
    Admit {
        machine: String,
    },
    BringNode {
        name: String,
        provider_id: String,
        version: String,
    },
    RemoveNode {
        name: String,
    },
}

/// What a test says of one Cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) back: BTreeSet<Hold>,
    /// How many machines may still come up while [`Hold::Machines`] is there.
    pub(super) admitted: usize,
}

impl Held {
    fn is(&self, hold: Hold) -> bool {
        self.back.contains(&hold)
    }
}

/// What was written where the shim does not look.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// The UID of the owner of the kubeconfig's Secret, while that is up to date.
    pub(super) published_for: Option<String>,
    /// The Nodes that were brought: whoever removes one meant it.
    pub(super) nodes: BTreeSet<String>,
    /// The machines that were let up while their object did not say so yet.
    pub(super) admitted: BTreeSet<String>,
}

/// How the kinds are served.
pub(super) type Kinds = BTreeMap<Kind, Served>;

/// Name of the Secret with the kubeconfig of a Cluster.
pub(super) fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// One look at a Cluster.
pub(super) struct Look<'a> {
    pub(super) namespace: &'a str,
    /// The name of the Cluster.
    pub(super) name: &'a str,
    pub(super) seen: &'a Seen,
    pub(super) held: &'a Held,
    pub(super) done: &'a Done,
    pub(super) kinds: &'a Kinds,
    /// Where the workload cluster is.
    pub(super) endpoint: &'a Value,
    /// As Kubernetes writes times.
    pub(super) now: &'a str,
}

impl Look<'_> {
    /// Everything that is due now; more may be when this is done and seen.
    pub(super) fn due(&self) -> Vec<Deed> {
        if self.seen.is_paused() {
            return Vec::new();
        }
        let mut due = self.marks();
        due.extend(self.infrastructure());
        due.extend(self.control_plane());
        due.extend(self.configs());
        // Workload clusters may be away: what needs them comes last.
        let (machines, nodes) = self.machines();
        due.extend(machines);
        due.extend(self.leaving());
        due.extend(nodes);
        due
    }

    /// Everything that stays is kept until it has been cleared away.
    fn marks(&self) -> Vec<Deed> {
        let unmarked = |object: &&DynamicObject| !object.finalizers().iter().any(|mark| mark == FINALIZER);
        let mark = |kind: Kind| {
            let objects = self.seen.staying(kind).filter(unmarked);
            objects.map(move |object| {
                let with_ours = object.finalizers().iter().cloned().chain([FINALIZER.to_owned()]);
                finalizers(kind, object, &with_ours.collect::<Vec<_>>())
            })
        };
        Kind::ALL.into_iter().flat_map(mark).collect()
    }

    /// The kubeconfig comes first: Cluster API tries at once, and after a failure again in 30 seconds.
    fn infrastructure(&self) -> Vec<Deed> {
        let infrastructure = self.seen.referenced("infrastructureRef", Kind::Cluster);
        let owner = self.seen.referenced("controlPlaneRef", Kind::ControlPlane);
        let (Some(infrastructure), Some(owner)) = (infrastructure, owner) else {
            return Vec::new();
        };
        let mut due = Vec::new();
        if !self.held.is(Hold::Kubeconfig) && self.done.published_for != owner.uid() {
            let owner = self.owner(Kind::ControlPlane, owner);
            due.push(Deed::Publish { owner });
        }
        if self.held.is(Hold::Infrastructure) {
            return due;
        }
        if text(infrastructure, "/spec/controlPlaneEndpoint/host").is_none() {
            let patch = json!({ "spec": { "controlPlaneEndpoint": self.endpoint } });
            due.push(merge(Kind::Cluster, infrastructure, patch));
        }
        due.extend(report(
            Kind::Cluster,
            infrastructure,
            contract::infrastructure(self.contracts(Kind::Cluster)),
        ));
        due
    }

    fn control_plane(&self) -> Option<Deed> {
        let infrastructure = self.seen.referenced("infrastructureRef", Kind::Cluster)?;
        let plane = self.seen.referenced("controlPlaneRef", Kind::ControlPlane)?;
        let runs = text(plane, "/status/version");
        let is_provisioned = covers(
            field(infrastructure, "/status").unwrap_or(&Value::Null),
            &contract::infrastructure(self.contracts(Kind::Cluster)),
        );
        if runs.is_none() && (self.held.is(Hold::Initialization) || !is_provisioned) {
            return None;
        }
        let asked = text(plane, "/spec/version")?;
        let (version, is_rolling) = contract::next_version(runs, asked, self.held.is(Hold::Upgrade));
        let reported = contract::ControlPlane {
            version,
            is_rolling,
            replicas: field(plane, "/spec/replicas").and_then(Value::as_i64),
            generation: plane.metadata.generation.unwrap_or_default(),
        };
        let old = field(plane, "/status/conditions").and_then(Value::as_array);
        let old = old.map(Vec::as_slice).unwrap_or_default();
        let status = contract::control_plane(self.contracts(Kind::ControlPlane), &reported, old, self.now);
        report(Kind::ControlPlane, plane, status)
    }

    /// A worker joins what is there: before, nobody knows what it would boot with.
    fn configs(&self) -> Vec<Deed> {
        let plane = self.seen.referenced("controlPlaneRef", Kind::ControlPlane);
        if plane.and_then(|plane| text(plane, "/status/version")).is_none() {
            return Vec::new();
        }
        let configs = self.seen.staying(Kind::Config);
        let configs = configs.filter(|config| text(config, "/status/dataSecretName").is_none());
        configs
            .flat_map(|config| {
                let secret = config.name_any();
                let status = contract::bootstrap(self.contracts(Kind::Config), &secret);
                let owner = self.owner(Kind::Config, config);
                let written = Deed::Bootstrap { secret, owner };
                [written].into_iter().chain(report(Kind::Config, config, status))
            })
            .collect()
    }

    /// What is due for machines, and for their Nodes.
    fn machines(&self) -> (Vec<Deed>, Vec<Deed>) {
        let (mut due, mut nodes) = (Vec::new(), Vec::new());
        let mut admitted = self.held.admitted;
        for object in self.seen.staying(Kind::Machine) {
            let Some(machine) = self.seen.machine_of(object) else {
                continue;
            };
            if text(machine, "/spec/bootstrap/dataSecretName").is_none() {
                continue;
            }
            let name = machine.name_any();
            let provider_id = self.provider_id(&name);
            if text(object, "/spec/providerID").is_none() {
                if self.held.is(Hold::Machines) && !self.done.admitted.contains(&name) {
                    if admitted == 0 {
                        continue;
                    }
                    admitted -= 1;
                    due.push(Deed::Admit { machine: name.clone() });
                }
                let patch = json!({ "spec": { "providerID": provider_id } });
                due.push(merge(Kind::Machine, object, patch));
            }
            due.extend(report(
                Kind::Machine,
                object,
                contract::machine(self.contracts(Kind::Machine)),
            ));
            if !self.done.nodes.contains(&name) {
                let version = text(machine, "/spec/version").unwrap_or_default().to_owned();
                nodes.push(Deed::BringNode {
                    name,
                    provider_id,
                    version,
                });
            }
        }
        (due, nodes)
    }

    /// Clears away what objects stand for that are to go, and lets them go.
    fn leaving(&self) -> Vec<Deed> {
        if self.held.is(Hold::Deletion) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for kind in Kind::ALL {
            let is_ours = |object: &&DynamicObject| object.finalizers().iter().any(|mark| mark == FINALIZER);
            let leaving = self
                .seen
                .all(kind)
                .filter(|object| is_leaving(&object.metadata))
                .filter(is_ours);
            for object in leaving {
                due.extend(self.cleared(kind, object));
                let others = object.finalizers().iter().filter(|mark| *mark != FINALIZER).cloned();
                due.push(finalizers(kind, object, &others.collect::<Vec<_>>()));
            }
        }
        due
    }

    fn cleared(&self, kind: Kind, object: &DynamicObject) -> Option<Deed> {
        match kind {
            Kind::Cluster => None,
            Kind::ControlPlane => Some(Deed::RemoveSecret {
                name: kubeconfig_secret(self.name),
            }),
            Kind::Config => {
                text(object, "/status/dataSecretName").map(|name| Deed::RemoveSecret { name: name.to_owned() })
            }
            Kind::Machine => {
                let id = text(object, "/spec/providerID")?;
                let name = id.strip_prefix(&self.provider_id(""))?;
                Some(Deed::RemoveNode { name: name.to_owned() })
            }
        }
    }

    fn provider_id(&self, machine: &str) -> String {
        format!("shim://{}/{machine}", self.namespace)
    }

    fn contracts(&self, kind: Kind) -> &[Contract] {
        self.kinds
            .get(&kind)
            .map(|served| served.contracts.as_slice())
            .unwrap_or_default()
    }

    fn owner(&self, kind: Kind, object: &DynamicObject) -> Value {
        let resource = self.kinds.get(&kind).map(|served| &served.resource);
        json!({
            "apiVersion": resource.map(|resource| resource.api_version.as_str()), "kind": kind.name(),
            "name": object.name_any(), "uid": object.uid(), "controller": true,
        })
    }
}

fn merge(kind: Kind, object: &DynamicObject, patch: Value) -> Deed {
    let name = object.name_any();
    Deed::Merge { kind, name, patch }
}

/// Others write finalizers too: the list is that of the object that was seen, or it is not written.
fn finalizers(kind: Kind, object: &DynamicObject, finalizers: &[String]) -> Deed {
    let version = object.resource_version();
    merge(
        kind,
        object,
        json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } }),
    )
}

fn report(kind: Kind, object: &DynamicObject, status: Value) -> Option<Deed> {
    let there = field(object, "/status").unwrap_or(&Value::Null);
    let name = object.name_any();
    (!covers(there, &status)).then_some(Deed::Report { kind, name, status })
}

#[cfg(test)]
mod tests;
