//! What a control plane says of its Kubernetes version, whatever its kind.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The versions of a control plane. The paths are those of both contracts of Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPlaneSeen {
    /// `spec.version`: what it shall have. Cluster API writes it.
    pub wanted: Option<String>,
    /// `status.version`: the lowest that its machines have. Absent until the first of them is there.
    pub reached: Option<String>,
    /// Whether it says that its API server answered once: `status.initialization.controlPlaneInitialized` (v1beta2), `status.initialized` (v1beta1).
    pub initialized: bool,
}

impl ControlPlaneSeen {
    /// Reads a control plane; what is not there, or is no text, is absent.
    pub fn of(control_plane: &Value) -> Self {
        let text = |pointer: &str| {
            let text = control_plane.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let flag = |pointer: &str| control_plane.pointer(pointer).and_then(Value::as_bool) == Some(true);
        Self {
            wanted: text("/spec/version"),
            reached: text("/status/version"),
            initialized: flag("/status/initialization/controlPlaneInitialized") || flag("/status/initialized"),
        }
    }

    /// Whether it has a version and is not on the way to another one.
    ///
    /// Cluster API: provisioning while `status.version` is not set, upgrading while `spec.version` is the greater one or has other build metadata
    /// (`internal/contract/controlplane.go`, `IsProvisioning` and `IsUpgrading`, 1.10.5 to 1.14.2).
    pub fn is_settled(&self) -> bool {
        let (Some(wanted), Some(reached)) = (&self.wanted, &self.reached) else {
            return false;
        };
        wanted == reached || older(wanted, reached)
    }

    /// The field without which nobody knows which version it has or is on the way to.
    pub(super) fn unsaid(&self) -> Option<&'static str> {
        match (&self.wanted, &self.reached) {
            (_, None) => Some("status.version"),
            (None, Some(_)) => Some("spec.version"),
            (Some(_), Some(_)) => None,
        }
    }

    /// Whether it shall have this version and has it.
    pub fn is_at(&self, version: &str) -> bool {
        self.wanted.as_deref() == Some(version) && self.is_settled()
    }
}

/// Whether a version is older than another one. What cannot be told from each other is not.
fn older(version: &str, other: &str) -> bool {
    match (numbers(version), numbers(other)) {
        (Some(version), Some(other)) => version.cmp(&other) == Ordering::Less,
        _ => false,
    }
}

/// Major, minor and patch; what follows these does not order versions here.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split(['-', '+']).next()?;
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_is_settled_where_cluster_api_would_let_it_take_the_next_version() {
        for (wanted, reached, settled) in [
            (Some("v1.33.1"), Some("v1.33.1"), true),
            (Some("v1.34.0"), Some("v1.33.9"), false),
            (Some("v1.33.10"), Some("v1.33.9"), false),
            (Some("v1.33.9"), Some("v1.33.10"), true),
            (Some("v1.33.1+b"), Some("v1.33.1+a"), false),
            (Some("v1.33.1-rc.1"), Some("v1.33.1"), false),
            (Some("v1.33.1"), None, false),
            (None, Some("v1.33.1"), false),
            (Some("newest"), Some("newest"), true),
            (Some("newest"), Some("v1.33.1"), false),
        ] {
            let seen = ControlPlaneSeen {
                wanted: wanted.map(str::to_owned),
                reached: reached.map(str::to_owned),
                initialized: true,
            };
            assert_eq!(seen.is_settled(), settled, "{seen:?}");
        }
    }
}
