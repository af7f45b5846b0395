//! Which handlers are named to Cluster API, and what it does when one of them does not answer.

use serde::{Deserialize, Serialize};

use super::hook::Hook;

/// The hooks that a minor of Cluster API knows. It takes a list of handlers as a whole: with one for a hook that it does not know, it calls none
/// (`internal/runtime/client/client.go` 1.10.5:630).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookSet {
    /// Those of 1.10 and 1.11.
    V1_10,
    /// Those of 1.12 to 1.14.
    V1_12,
}

impl HookSet {
    /// The set of the Cluster API whose CRD of ClusterClasses is there. Its version that is stored has the field `spec.upgrade` since 1.12, and nothing that is
    /// there in every installation says the minor (seen in 1.10.5, 1.12.0, 1.13.6 and 1.14.2).
    pub fn of_classes(has_upgrade: bool) -> Self {
        if has_upgrade { Self::V1_12 } else { Self::V1_10 }
    }

    /// Whether the minor calls it.
    pub fn knows(self, hook: Hook) -> bool {
        self == Self::V1_12
            || !matches!(
                hook,
                Hook::BeforeControlPlaneUpgrade | Hook::BeforeWorkersUpgrade | Hook::AfterWorkersUpgrade
            )
    }

    /// A handler for each hook that the minor knows, in the order of a life.
    pub fn handlers(self) -> impl Iterator<Item = Handler> {
        Hook::ALL
            .into_iter()
            .filter(move |hook| self.knows(*hook))
            .map(Handler::of)
    }
}

/// What answers one hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    /// Its hook.
    pub hook: Hook,
    /// Its name, a part of the path of its calls: `before-cluster-upgrade`. The Go operator names its own so.
    pub name: String,
    /// What becomes of a cluster when nobody answers.
    pub failure_policy: FailurePolicy,
}

/// What Cluster API does when a handler is not there or says nothing in time. What it answers counts in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The cluster waits, and the handler is called again.
    Fail,
    /// The cluster goes on.
    Ignore,
}

impl FailurePolicy {
    /// As Cluster API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

impl Handler {
    /// The handler of a hook.
    pub fn of(hook: Hook) -> Self {
        Self {
            hook,
            name: name(hook),
            failure_policy: failure_policy(hook),
        }
    }
}

/// Words with dashes between them.
fn name(hook: Hook) -> String {
    let mut name = String::new();
    for letter in hook.name().chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// A cluster waits for an operator that is down only where going on could not be made good: a step of an upgrade that begins without what has to be there before, and a
/// deletion that leaves load balancers and volumes behind. Cluster API knows no classes here, so that clusters of others wait as well. Everything else is derived from
/// the Cluster when somebody looks again, however late.
fn failure_policy(hook: Hook) -> FailurePolicy {
    match hook {
        Hook::BeforeClusterUpgrade
        | Hook::BeforeControlPlaneUpgrade
        | Hook::AfterControlPlaneUpgrade
        | Hook::BeforeWorkersUpgrade
        | Hook::BeforeClusterDelete => FailurePolicy::Fail,
        Hook::BeforeClusterCreate
        | Hook::AfterControlPlaneInitialized
        | Hook::AfterWorkersUpgrade
        | Hook::AfterClusterUpgrade => FailurePolicy::Ignore,
    }
}
