//! What the shim sees of one Cluster, and how it reads that. Touches nothing.

use std::collections::BTreeMap;

use kube::{
    ResourceExt,
    api::{DynamicObject, ObjectMeta},
};
use serde_json::Value;

use super::kinds::Kind;

/// The label by which an object says to which Cluster it belongs.
pub(super) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// With this annotation an object is left alone.
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Everything of one Cluster, as the watches have it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// `None` when there is none, or none any more.
    pub(super) cluster: Option<DynamicObject>,
    /// Cluster API's, by name.
    pub(super) machines: BTreeMap<String, DynamicObject>,
    /// Those of the shim.
    pub(super) objects: BTreeMap<Kind, Vec<DynamicObject>>,
}

impl Seen {
    /// Somebody moves or mends it: providers keep their hands off.
    pub(super) fn is_paused(&self) -> bool {
        let cluster = self.cluster.as_ref();
        cluster.is_some_and(|cluster| field(cluster, "/spec/paused").is_some_and(|paused| paused == true))
    }

    /// The object to which this reference of the Cluster leads, when it is there and stays.
    pub(super) fn referenced(&self, reference: &str, kind: Kind) -> Option<&DynamicObject> {
        let cluster = self.cluster.as_ref()?;
        let of_kind = text(cluster, &format!("/spec/{reference}/kind")) == Some(kind.name());
        let name = text(cluster, &format!("/spec/{reference}/name")).filter(|_| of_kind)?;
        self.staying(kind)
            .find(|object| object.metadata.name.as_deref() == Some(name))
    }

    /// The objects of a kind that are not on their way out.
    pub(super) fn staying(&self, kind: Kind) -> impl Iterator<Item = &DynamicObject> {
        self.all(kind).filter(|object| !is_leaving(&object.metadata))
    }

    /// The objects of a kind that nobody has paused.
    pub(super) fn all(&self, kind: Kind) -> impl Iterator<Item = &DynamicObject> {
        let all = self.objects.get(&kind).into_iter().flatten();
        all.filter(|object| !object.annotations().contains_key(PAUSED))
    }

    /// The Machine that owns an object, unless it is on its way out.
    pub(super) fn machine_of(&self, object: &DynamicObject) -> Option<&DynamicObject> {
        let owner = object.owner_references().iter().find(|owner| owner.kind == "Machine")?;
        let machine = self.machines.get(&owner.name)?;
        (machine.metadata.uid.as_ref() == Some(&owner.uid) && !is_leaving(&machine.metadata)).then_some(machine)
    }
}

pub(super) fn is_leaving(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

pub(super) fn field<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    object.data.pointer(pointer)
}

/// A field of text that says something.
pub(super) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a str> {
    field(object, pointer)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}
