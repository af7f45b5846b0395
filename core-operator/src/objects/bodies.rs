//! What has to be there before objects are written: their bodies, and the API server's word that the owner is still wanted.

use std::sync::Arc;

use operator_kit::object::ObjectKey;
use planning::objects::{Attempt, Intent, ObjectAction, Step};
use serde_json::Value;

use super::execute::{Failed, Pass};
use super::intent::Intents;
use super::owner::Owner;

/// Why a step cannot begin.
pub(crate) enum Unprepared {
    /// The API server does not say whether the owner is still wanted, or that it is not.
    Refused(Failed),
    /// The bodies take long to render.
    Awaited,
}

/// The bodies of the objects, or why there are none.
pub(crate) type Bodies = Result<Arc<Intents>, String>;

impl<O: Owner> Pass<'_, O> {
    /// Before the first object is written, the API server itself is asked whether the owner is still wanted, unless it has just taken a write of it.
    pub(super) async fn prepare(
        &self,
        step: &Step<O::Action>,
        owner: &O::Object,
        sure: &mut bool,
        bodies: &mut Option<Bodies>,
    ) -> Result<(), Unprepared> {
        let applies = step.on_objects().any(ObjectAction::is_apply);
        let checks = step
            .on_objects()
            .any(|action| matches!(action, ObjectAction::Check { .. }));
        if applies && !*sure {
            self.owner.still_wanted(owner).await.map_err(Unprepared::Refused)?;
            *sure = true;
        }
        if bodies.is_none() && (applies || checks) {
            *bodies = self.owner.bodies(owner).await?;
        }
        Ok(())
    }

    /// The body to apply and the digest that the plan was made for.
    pub(super) fn intent<'b>(
        &self,
        key: &ObjectKey,
        bodies: Option<&'b Bodies>,
    ) -> Result<(&'b str, &'b Value), Failed> {
        let tried = self.intent_of(key);
        let bodies = match bodies {
            Some(Ok(bodies)) => Some(bodies),
            Some(Err(message)) => return Err(self.remember_failure(key, tried, message)),
            None => None,
        };
        let body = bodies.and_then(|bodies| bodies.bodies.get(key).zip(bodies.planned.get(key)));
        match body {
            Some((body, Intent { digest, .. })) if tried == (Attempt::Intent { digest: digest.clone() }) => {
                Ok((digest, body))
            }
            _ => Err(self.remember_failure(key, tried, "the rendering changed in between")),
        }
    }

    /// To make an object hold what the plan was made for.
    pub(super) fn intent_of(&self, key: &ObjectKey) -> Attempt {
        let planned = self.intents.and_then(|intents| intents.get(key));
        Attempt::Intent {
            digest: planned.map(|planned| planned.digest.clone()).unwrap_or_default(),
        }
    }
}
