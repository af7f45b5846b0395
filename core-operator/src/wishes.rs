//! What people ask for in annotations of an owner of objects, and what has to be tried again because of it.

use crds::labels;
use kube::ResourceExt;

/// What they ask for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    requested_at: Option<String>,
    approved_loss: Option<String>,
}

impl Wishes {
    /// Those of an owner.
    pub(crate) fn of(owner: &impl ResourceExt) -> Self {
        let annotation = |name| owner.annotations().get(name).cloned();
        Self {
            requested_at: annotation(labels::REQUESTED_AT),
            approved_loss: annotation(labels::APPROVE_DATA_LOSS),
        }
    }

    /// Takes note of them; whether there is one that was not heard before. A wish that is taken back asks for nothing.
    pub(crate) fn hear(&mut self, now: Self) -> bool {
        let new = |now: &Option<String>, before: &Option<String>| now.is_some() && now != before;
        let heard = new(&now.requested_at, &self.requested_at) || new(&now.approved_loss, &self.approved_loss);
        *self = now;
        heard
    }
}

#[cfg(test)]
impl Wishes {
    /// A look, and the approval of a loss.
    pub(crate) fn test(requested_at: Option<&str>, approved_loss: Option<&str>) -> Self {
        Self {
            requested_at: requested_at.map(str::to_owned),
            approved_loss: approved_loss.map(str::to_owned),
        }
    }
}
