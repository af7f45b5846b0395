//! Clouds that asked for patience, and identities that a cloud does not know: whoever comes meanwhile is told at once what the last one was told, and
//! the cloud is left alone. Reads no clock.

use std::collections::HashMap;
use std::time::Duration;

use planning::image::{Failure, FailureClass};
use provider_plugin::CloudName;

use crate::identity::Connection;
use crate::worker::{Failed, Whose};

/// How long a cloud is left alone that does not say how long it wants to be.
const THROTTLED: Duration = Duration::from_secs(5);
/// Longest time that a cloud may ask us to wait, as decisions have it.
const LONGEST: Duration = Duration::from_hours(1);
/// How long credentials are not shown again that were refused. Short enough that whoever had them accepted again does not wait long, and long enough
/// that a crowd of images does not lock the account.
const REFUSED: Duration = Duration::from_mins(1);

/// Whom a gate keeps out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Gate {
    /// Everybody who asks this cloud: a rate is counted for whoever sends, and all of us send from one place.
    Cloud(CloudName),
    /// Who comes to this cloud with these credentials.
    Identity(CloudName, String, String),
}

/// Gates that are shut.
#[derive(Debug, Default)]
pub(super) struct Gates {
    shut: HashMap<Gate, (Duration, Failure)>,
}

impl Gates {
    /// Takes note of how a deed failed, if it did.
    pub(super) fn learn(&mut self, connection: &Connection, failed: Option<&Failed>, now: Duration) {
        self.shut.retain(|_, (until, _)| *until > now);
        let Some(Failed {
            failure,
            whose: Whose::Cloud,
        }) = failed
        else {
            return;
        };
        let (gate, time) = match failure.class {
            FailureClass::Throttled => {
                let asked = failure.retry_after.unwrap_or(THROTTLED);
                (of_cloud(connection), asked.min(LONGEST))
            }
            FailureClass::Credentials => (of_identity(connection), REFUSED),
            _ => return,
        };
        self.shut.insert(gate, (now.saturating_add(time), failure.clone()));
    }

    /// What is told instead of asking, if a gate is shut.
    pub(super) fn refusal(&self, connection: &Connection, now: Duration) -> Option<Failure> {
        let gates = [of_cloud(connection), of_identity(connection)];
        let (until, failure) = gates
            .iter()
            .filter_map(|gate| self.shut.get(gate))
            .find(|(until, _)| *until > now)?;
        Some(Failure {
            retry_after: Some(until.saturating_sub(now)),
            ..failure.clone()
        })
    }
}

fn of_cloud(connection: &Connection) -> Gate {
    Gate::Cloud(connection.cloud().clone())
}

fn of_identity(connection: &Connection) -> Gate {
    let (name, version) = connection.identity();
    Gate::Identity(connection.cloud().clone(), name.to_owned(), version.to_owned())
}
