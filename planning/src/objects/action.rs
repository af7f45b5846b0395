//! The words of a plan: what an executor can be told to do, in which order. Decides nothing.

use serde::{Deserialize, Serialize};

use crate::object_key::ObjectKey;

/// Actions that may run side by side. `Own` is what is written to the owner of the objects itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step<Own> {
    /// What to do, sorted by object. All are tried, whatever becomes of the others.
    pub actions: Vec<Action<Own>>,
    /// Whether the pass ends after this step when one of its actions failed, because what follows builds on it.
    pub gate: bool,
}

/// One thing to do. An executor has no choices: every operand is here. Written as what it contains, which has other names in either.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Action<Own> {
    /// To one of the objects.
    Object(ObjectAction),
    /// To their owner, or to what belongs to it alone.
    Own(Own),
}

/// What is done to one object, in the API server where it lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ObjectAction {
    /// Server-side apply of an object of the rendering.
    Apply {
        /// Which.
        key: ObjectKey,
        /// Why, for events and for the count of reversals.
        why: ApplyReason,
        /// Whether fields of other managers are taken.
        force: bool,
    },
    /// Server-side apply of an object of the rendering as a dry run, to learn whether the live object differs.
    Check {
        /// Which.
        key: ObjectKey,
    },
    /// Read an object by name.
    Read {
        /// Which.
        key: ObjectKey,
    },
    /// Rename what the Go operator owns in an object to our field manager.
    TakeOver {
        /// Which.
        key: ObjectKey,
    },
    /// Delete an object, provided that it is still as it was read: what somebody wants by now has been written since.
    Delete {
        /// Which.
        key: ObjectKey,
        /// Its identity.
        uid: String,
        /// The version that was read.
        resource_version: String,
    },
}

/// Why an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyReason {
    /// It is not there, or not ours yet. One that was there before is marked to stay when the owner goes.
    Create,
    /// The inventory names it, and nothing is known of one that is there: made where there is none, and looked at where there is one.
    Announced,
    /// The owner wants something else than was applied.
    Update,
    /// Somebody changed it.
    Correct,
    /// It is as the owner wants it, and was put here by somebody who moved or restored it.
    Restore,
    /// It carries the mark of nobody: the owner that held it is gone, or somebody changed the mark.
    Adopt,
}

/// An action on the owner itself.
pub trait OwnAction {
    /// What it does, in a word or two.
    fn name(&self) -> &'static str;
}

/// Nothing.
impl<Own> Default for Step<Own> {
    fn default() -> Self {
        Self {
            actions: Vec::new(),
            gate: false,
        }
    }
}

impl<Own> Step<Own> {
    /// What is done to the owner before what follows, which builds on it.
    pub fn own(action: Own) -> Self {
        Self::gate(vec![Action::Own(action)])
    }

    pub(super) fn gate(actions: Vec<Action<Own>>) -> Self {
        Self { actions, gate: true }
    }

    /// What it does to objects.
    pub fn on_objects(&self) -> impl Iterator<Item = &ObjectAction> {
        self.actions.iter().filter_map(|action| match action {
            Action::Object(action) => Some(action),
            Action::Own(_) => None,
        })
    }

    /// What it does to the owner.
    pub fn on_owner(&self) -> impl Iterator<Item = &Own> {
        self.actions.iter().filter_map(|action| match action {
            Action::Object(_) => None,
            Action::Own(action) => Some(action),
        })
    }
}

impl<Own: OwnAction> Action<Own> {
    /// What it does, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Object(action) => action.name(),
            Self::Own(action) => action.name(),
        }
    }

    /// The object that it is about, if it is not about the owner.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object(action) => Some(action.key()),
            Self::Own(_) => None,
        }
    }
}

impl ObjectAction {
    /// What it does, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Check { .. } => "check",
            Self::Read { .. } => "read",
            Self::TakeOver { .. } => "take over",
            Self::Delete { .. } => "delete",
        }
    }

    /// The object that it is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Apply { key, .. }
            | Self::Check { key }
            | Self::Read { key }
            | Self::TakeOver { key }
            | Self::Delete { key, .. } => key,
        }
    }

    /// Whether it writes an object that is wanted.
    pub fn is_apply(&self) -> bool {
        matches!(self, Self::Apply { .. })
    }

    pub(super) fn is_deletion(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }

    pub(super) fn apply(key: &ObjectKey, why: ApplyReason, force: bool) -> Self {
        Self::Apply {
            key: key.clone(),
            why,
            force,
        }
    }
}
