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
/// Longest time that everybody waits because one was asked to: clouds count by account more often than by where requests come from, and who exceeds his
/// own bound must not silence the others for an hour. Where it was meant for all of us, one of them a minute is told so again.
const FOR_EVERYBODY: Duration = Duration::from_mins(1);
/// How long credentials are not shown again that were refused. Short enough that whoever had them accepted again does not wait long, and long enough
/// that a crowd of images does not lock the account.
const REFUSED: Duration = Duration::from_mins(1);

/// Whom a gate keeps out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Gate {
    /// Everybody who asks this cloud: a rate may be counted for whoever sends, and all of us send from one place.
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
        match failure.class {
            FailureClass::Throttled => {
                let asked = failure.retry_after.unwrap_or(THROTTLED).min(LONGEST);
                self.shut(of_identity(connection), now.saturating_add(asked), failure);
                let everybody = asked.min(FOR_EVERYBODY);
                self.shut(of_cloud(connection), now.saturating_add(everybody), failure);
            }
            FailureClass::Credentials => self.shut(of_identity(connection), now.saturating_add(REFUSED), failure),
            _ => {}
        }
    }

    /// Until then, or as long as it is shut already.
    fn shut(&mut self, gate: Gate, until: Duration, failure: &Failure) {
        let is_longer = |(before, _): &(Duration, Failure)| *before >= until;
        if !self.shut.get(&gate).is_some_and(is_longer) {
            self.shut.insert(gate, (until, failure.clone()));
        }
    }

    /// What is told instead of asking, if a gate is shut; of two, by that which opens later.
    pub(super) fn refusal(&self, connection: &Connection, now: Duration) -> Option<Failure> {
        let gates = [of_cloud(connection), of_identity(connection)];
        let (until, failure) = gates
            .iter()
            .filter_map(|gate| self.shut.get(gate))
            .filter(|(until, _)| *until > now)
            .max_by_key(|(until, _)| *until)?;
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
