//! What is asked of a cloud on behalf of no object: which of its images are ours, and to delete one that nobody wants any more. Whoever asks stands in the
//! line of short deeds like everybody else, is told what a shut gate tells, and has as long as one answer may take. Decides nothing about images.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crds::providers::Provider;
use planning::image::{Failure, SHORT_DEED, StopReason};
use provider_plugin::{Discarded, ImageId, Marked, Owned, OwnerId};
use tokio::sync::oneshot;
use tokio::time;

use super::errand::silent;
use super::inprocess::{Desk, InProcess, Shared, stopped};
use super::lanes::Ticket;
use crate::identity::Connection;
use crate::objects::ObjectId;
use crate::worker::Failed;

/// Who asks in the line of a cloud: a party of its own among namespaces, none of which has an empty name.
const NOBODY: &str = "";

/// Told that it is its turn, or why it has none.
pub(super) type Turn = Result<(), Failure>;

/// Somebody who waits for a turn.
pub(super) struct Asking {
    pub(super) connection: Arc<Connection>,
    pub(super) turn: oneshot::Sender<Turn>,
}

/// A place in the line, and afterwards a turn, until this is dropped.
struct Place {
    shared: Arc<Shared>,
    ticket: Ticket,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut desk = self.shared.desk();
        let Desk { lanes, asking, .. } = &mut *desk;
        if asking.remove(&self.ticket.object).is_some() {
            lanes.leave(&self.ticket);
            return;
        }
        lanes.done(&self.ticket);
        drop(desk);
        self.shared.dispatch();
    }
}

impl InProcess {
    /// All images in a cloud that carry this owner, or are held by it.
    ///
    /// # Errors
    /// The cloud cannot be asked now, or did not answer; in words for people, of the class that decisions know.
    pub(crate) async fn owned(
        &self,
        provider: Provider,
        connection: &Arc<Connection>,
        owner: &OwnerId,
    ) -> Result<Vec<Owned>, Failure> {
        let asked = async {
            let store = connection.store().await?;
            Ok(store.owned(owner).await?)
        };
        self.ask(provider, connection, asked).await
    }

    /// Deletes one image that carries these marks.
    ///
    /// # Errors
    /// As [`InProcess::owned`]; also when the image carries others, and was not touched.
    pub(crate) async fn discard(
        &self,
        provider: Provider,
        connection: &Arc<Connection>,
        id: &str,
        marked: &Marked,
    ) -> Result<Discarded, Failure> {
        let id = ImageId(id.to_owned());
        let asked = async {
            let store = connection.store().await?;
            Ok(store.discard(&id, marked).await?)
        };
        self.ask(provider, connection, asked).await
    }

    /// Asks when it is its turn. Dropping the future leaves the line, or ends the call.
    async fn ask<T>(
        &self,
        provider: Provider,
        connection: &Arc<Connection>,
        asked: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, Failure> {
        let _place = self.turn(provider, connection).await?;
        let answered = time::timeout(SHORT_DEED, asked).await;
        let answered = answered.unwrap_or_else(|_| Err(silent(connection)));
        let now = self.0.now();
        self.0.desk().gates.learn(connection, answered.as_ref().err(), now);
        answered.map_err(|failed| failed.failure)
    }

    /// Waits for a turn in the line of the cloud.
    async fn turn(&self, provider: Provider, connection: &Arc<Connection>) -> Result<impl Drop + use<>, Failure> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let ticket = Ticket {
            object: ObjectId {
                provider,
                namespace: NOBODY.to_owned(),
                name: NOBODY.to_owned(),
                uid: NUMBER.fetch_add(1, Ordering::Relaxed).to_string(),
            },
            cloud: connection.cloud().clone(),
            is_long: false,
        };
        let (turn, told) = oneshot::channel();
        let asking = Asking {
            connection: Arc::clone(connection),
            turn,
        };
        self.0.desk().join(&ticket, asking)?;
        let place = Place {
            shared: Arc::clone(&self.0),
            ticket,
        };
        self.0.dispatch();
        match told.await {
            Ok(turn) => turn.map(|()| place),
            // Whoever gives turns gives none any more.
            Err(_) => Err(stopped(StopReason::Draining)),
        }
    }
}

impl Desk {
    /// Takes a place at the end of the line, unless nobody is served any more.
    fn join(&mut self, ticket: &Ticket, asking: Asking) -> Result<(), Failure> {
        if self.is_closed {
            return Err(stopped(StopReason::Draining));
        }
        self.asking.insert(ticket.object.clone(), asking);
        self.lanes.join(ticket.clone());
        Ok(())
    }

    /// Whether it was the turn of somebody who asks for no object, and what he is to be told once the desk is free.
    pub(super) fn asked(&mut self, ticket: &Ticket, now: Duration) -> Option<(oneshot::Sender<Turn>, Turn)> {
        let Asking { connection, turn } = self.asking.remove(&ticket.object)?;
        let told = self.gates.refusal(&connection, now).map_or(Ok(()), Err);
        Some((turn, told))
    }
}
