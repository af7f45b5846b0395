//! What a decision about the objects of one owner rests on, besides the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crds::policy::{DriftPolicy, PruneLimit};
use crds::resource::Resource;

use super::inventory::Inventoried;
use super::observed::{Intent, ObjectObserved};
use crate::approval::Approval;
use crate::object_key::{GroupKind, ObjectKey};

/// The objects of one owner, as one look has found them, and how they are to be treated.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSet<'a> {
    /// Of what kind the owner is.
    pub owner: OwnerKind,
    /// What the owner wants now; `None` while nobody knows it.
    pub intents: Option<&'a BTreeMap<ObjectKey, Intent>>,
    /// The inventory, as the owner's status had it.
    pub rows: &'a [Resource],
    /// Every object that the inventory names, an intent wants or a watch shows with the owner's mark.
    pub objects: &'a BTreeMap<ObjectKey, ObjectObserved>,
    /// Whether the watches of these objects show those with other owners' marks too.
    pub shows_others: bool,
    /// Kinds that the owner says it has, which are served and whose watch has not listed yet: it may show objects that nothing else tells of.
    pub unlisted: &'a BTreeSet<GroupKind>,
    /// Why watches have not listed yet, where the API server has said why.
    pub unwatched: &'a BTreeMap<GroupKind, String>,
    /// The kinds that the operator has not the right to list.
    pub forbidden: &'a BTreeSet<GroupKind>,
    /// Objects that are neither written nor removed now, whether or not an intent wants them. Their rows stay.
    pub held: &'a BTreeSet<ObjectKey>,
    /// What becomes of fields that somebody else changes.
    pub drift: DriftPolicy,
    /// How many objects may go.
    pub prune: Prune<'a>,
    /// Whether the owner itself is to go.
    pub deleting: bool,
}

/// How many objects that nobody wants any more may go at once.
#[derive(Clone, Copy, Debug)]
pub struct Prune<'a> {
    /// So many always.
    pub limit: PruneLimit,
    /// What the annotation of the owner says that approves more by their digest.
    pub annotation: Option<&'a str>,
    /// The digest that the status says was approved.
    pub approved: Option<&'a str>,
}

/// Of what kind an owner of objects is. Messages call it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// A ClusterStackRelease.
    Release,
    /// A ClusterAddon.
    Addon,
}

/// As people call one, without an article.
impl fmt::Display for OwnerKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Release => "release",
            Self::Addon => "add-on",
        })
    }
}

impl OwnerKind {
    /// Its object, as whoever annotates it has to name it.
    pub fn object(self) -> &'static str {
        match self {
            Self::Release => "ClusterStackRelease",
            Self::Addon => "ClusterAddon",
        }
    }

    /// What is said of an object that carries the mark of another one.
    pub fn foreign(self) -> String {
        format!("the object belongs to another {self}")
    }
}

impl<'a> ObjectSet<'a> {
    /// The row of an object as the status had it.
    pub fn row(&self, key: &ObjectKey) -> Option<&'a Resource> {
        self.rows.iter().find(|row| {
            row.name == key.name && row.kind == key.kind && row.namespace == key.namespace && row.group == key.group
        })
    }

    /// What the inventory says of an object.
    pub fn inventoried(&self, key: &ObjectKey) -> Inventoried<'a> {
        Inventoried::of(self.row(key))
    }

    /// What the owner wants an object to be.
    pub fn intent(&self, key: &ObjectKey) -> Option<&'a Intent> {
        self.intents?.get(key)
    }

    /// Whether anything of the owner may have been written. What the inventory only names was not, once a watch would show it and does not.
    pub fn may_be_applied(&self) -> bool {
        let written = |object: &ObjectObserved| object.is_ours() || object.served && !object.watched;
        self.rows.iter().any(|row| !row.digest.is_empty()) || self.objects.values().any(written)
    }

    pub(super) fn approval(&self) -> Approval<'a> {
        Approval {
            annotation: self.prune.annotation,
            status: self.prune.approved,
        }
    }
}
