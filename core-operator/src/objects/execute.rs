//! Performs the steps of a plan, and remembers what came of them. Decides nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use kube::{Resource, ResourceExt};
use operator_kit::delete::Version;
use operator_kit::events::Events;
use operator_kit::object::ObjectKey;
use planning::objects::{Action, Intent, ObjectAction, OwnAction, Step};
use tracing::Instrument;

use super::bodies::{Bodies, Unprepared};
use super::memory::ObjectMemories;
use super::owner::Owner;
use super::place::Place;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::spans::{acting, failed};

/// How many requests for one owner are under way at once.
const SIDE_BY_SIDE: usize = 8;

/// One pass over the steps of one plan.
pub(crate) struct Pass<'a, O> {
    pub(crate) clock: &'a Clock,
    pub(crate) metrics: &'a Metrics,
    pub(crate) events: &'a Events,
    /// Where the objects are.
    pub(crate) place: &'a Place,
    /// The mark of the owner.
    pub(crate) part_of: &'a str,
    /// What is remembered of the objects.
    pub(crate) memory: &'a Mutex<ObjectMemories>,
    /// What the plan wants.
    pub(crate) intents: Option<&'a BTreeMap<ObjectKey, Intent>>,
    pub(crate) owner: &'a O,
}

/// What became of the owner itself.
pub(crate) enum Outcome<K> {
    /// It is as in the last answer.
    Current(Arc<K>),
    /// It could not be written, because somebody else did or it is gone: the watch will tell, and this pass is over.
    Refused {
        /// Why.
        message: String,
    },
    /// The bodies of its objects take long to render: it is woken when they are there.
    Awaited(Arc<K>),
}

/// An action that failed. What concerns one object is remembered in its memory; this is for the log.
pub(crate) struct Failed(pub(crate) String);

impl<O: Owner> Pass<'_, O> {
    /// Performs the steps in order.
    pub(crate) async fn run(&self, owner: Arc<O::Object>, steps: &[Step<O::Action>]) -> Outcome<O::Object> {
        let mut current = owner;
        let mut bodies: Option<Bodies> = None;
        let mut sure = false;
        for step in steps {
            match self.prepare(step, &current, &mut sure, &mut bodies).await {
                Ok(()) => {}
                Err(Unprepared::Refused(Failed(message))) => return Outcome::Refused { message },
                Err(Unprepared::Awaited) => return Outcome::Awaited(current),
            }
            let owner = Arc::clone(&current);
            let mut answers: Vec<Result<Option<O::Object>, Failed>> = Vec::new();
            for actions in step.actions.chunks(SIDE_BY_SIDE) {
                let performing = actions
                    .iter()
                    .map(|action| acted(action, self.perform(&owner, action, bodies.as_ref())));
                answers.extend(join_all(performing).await);
            }
            let mut refused = None;
            for answer in answers {
                match answer {
                    Ok(Some(newer)) => {
                        // Written at the version that was read: it was the newest.
                        sure |= newer.meta().resource_version != owner.meta().resource_version
                            && newer.meta().deletion_timestamp.is_none();
                        self.owner.note(&newer);
                        current = Arc::new(newer);
                    }
                    Ok(None) => {}
                    Err(Failed(message)) => {
                        // What lasts is in the conditions, and told with them.
                        tracing::debug!(
                            namespace = owner.namespace(),
                            name = owner.name_any(),
                            error = message,
                            "an action failed"
                        );
                        refused = Some(message);
                    }
                }
            }
            if let Some(message) = refused.filter(|_| step.gate) {
                // What follows a write of the owner rests on it.
                return if step.on_owner().next().is_some() {
                    Outcome::Refused { message }
                } else {
                    Outcome::Current(current)
                };
            }
        }
        Outcome::Current(current)
    }

    async fn perform(
        &self,
        owner: &O::Object,
        action: &Action<O::Action>,
        bodies: Option<&Bodies>,
    ) -> Result<Option<O::Object>, Failed> {
        let action = match action {
            Action::Own(action) => return self.owner.perform(owner, action).await,
            Action::Object(action) => action,
        };
        let performed = match action {
            ObjectAction::Apply { key, why, force } => self.apply(owner, key, *why, *force, bodies).await,
            ObjectAction::Check { key } => self.check(key, bodies).await,
            ObjectAction::Read { key } => self.read(key).await,
            ObjectAction::TakeOver { key } => self.take_over(owner, key).await,
            ObjectAction::Delete {
                key,
                uid,
                resource_version,
            } => self.delete(key, Version { uid, resource_version }).await,
        };
        performed.map(|()| None)
    }
}

/// Does one action within a span.
async fn acted<Own: OwnAction, T>(
    action: &Action<Own>,
    performing: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    let span = acting(action);
    let done = performing.instrument(span.clone()).await;
    if let Err(Failed(message)) = &done {
        failed(&span, message);
    }
    done
}
