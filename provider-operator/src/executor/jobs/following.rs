//! What follows from what the API server shows of Jobs: whoever was told to end is waited for, whoever is over is asked how, and what holds one up is looked
//! for. What becomes of it on the desk, the desk decides.

use std::sync::Arc;

use operator_kit::failure::chain;
use tokio::time;

use super::beginning::{held_up, is_before_sending};
use super::desk::Target;
use super::ending::{end, vanished};
use super::known::{Known, Over, Stage};
use super::{FIRST_LOOK, GONE, LOOKS, PAUSE, Shared, TRIES};
use crate::objects::ObjectId;

impl Shared {
    /// Ends a Job, and waits until it is gone.
    pub(super) async fn remove(self: &Arc<Self>, object: &ObjectId, target: &Target) {
        let end = self.steady.now() + GONE;
        let mut is_told = false;
        while self.steady.now() < end && self.desk().is_stopping(object, &target.uid) {
            let asked = if is_told {
                let there = self.hands.is_there(object, &target.name, &target.uid).await;
                there.map(|is_there| !is_there)
            } else {
                self.hands.delete(object, &target.name, &target.uid).await
            };
            match asked {
                Ok(true) => break,
                Ok(false) => is_told = true,
                Err(error) => tracing::debug!(%object, error = chain(&error), "unable to end a Job; it is tried again"),
            }
            time::sleep(PAUSE).await;
        }
        if self.desk().end_stopped(object, &target.uid, self.steady.now()) {
            (self.wake)(object);
        }
        self.dispatch();
    }

    /// The end of a Job is in the status of its object.
    pub(super) async fn settle(&self, object: &ObjectId, stays: Option<Target>) {
        if let Some(Target { name, uid }) = stays {
            for _ in 0..TRIES {
                match self.hands.note(object, &name, &uid).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::debug!(%object, error = chain(&error), "unable to note the end of a Job; it is tried again");
                        time::sleep(PAUSE).await;
                    }
                }
            }
        }
        self.hands.disallow(object).await;
    }

    /// What the watch shows of a Job.
    pub(super) fn see(self: &Arc<Self>, known: Known) {
        let now = self.steady.now();
        let object = known.plan.object.clone();
        if self.desk().is_left_over(&known) {
            self.clear_away(&known);
        }
        let (news, asks) = self.desk().see(&known, now);
        if news {
            (self.wake)(&object);
        }
        if known.stage == Stage::Begins {
            self.look_after(&object, known.uid.clone());
        }
        if news && known.stage == Stage::Goes {
            // Whoever deletes it does not tell when to wait no longer.
            let (shared, object) = (Arc::clone(self), object.clone());
            let target = Target {
                name: known.name.clone(),
                uid: known.uid.clone(),
            };
            self.one_by_one(&object.clone(), async move { shared.remove(&object, &target).await });
        }
        if let (true, Stage::Over(over)) = (asks, known.stage.clone()) {
            let shared = Arc::clone(self);
            self.one_by_one(&object, async move { shared.ask(known, over).await });
        }
    }

    /// Ends a Job that nobody waits for. What cannot be done is done when it is seen again.
    fn clear_away(self: &Arc<Self>, known: &Known) {
        let (shared, object) = (Arc::clone(self), known.plan.object.clone());
        let (name, uid) = (known.name.clone(), known.uid.clone());
        self.tasks.spawn(async move {
            for _ in 0..TRIES {
                match shared.hands.delete(&object, &name, &uid).await {
                    Ok(_) => break,
                    Err(error) => {
                        tracing::debug!(%object, error = chain(&error), "unable to end a Job that was left over; it is tried again");
                        time::sleep(PAUSE).await;
                    }
                }
            }
        });
    }

    /// Looks from time to time why this Job does not begin, as nobody else tells what its Pods wait for. Ends with the beginning, and with this process.
    pub(super) fn look_after(self: &Arc<Self>, object: &ObjectId, uid: String) {
        if !self.desk().look_after(object, &uid) {
            return;
        }
        let (shared, object) = (Arc::clone(self), object.clone());
        tokio::spawn(async move {
            let mut pause = FIRST_LOOK;
            loop {
                time::sleep(pause).await;
                if !shared.desk().looks_on(&object, &uid) {
                    return;
                }
                match shared.hands.pods(&object).await {
                    Ok(pods) => {
                        let is_anew = is_before_sending(&object, &uid, &pods)
                            && shared.desk().begin_anew(&object, &uid, shared.steady.now());
                        let held = held_up(&object, &uid, &pods);
                        let is_held = shared.desk().hold(&object, &uid, held);
                        if is_anew || is_held {
                            (shared.wake)(&object);
                        }
                    }
                    Err(error) => {
                        tracing::debug!(%object, error = chain(&error), "unable to see why a Job does not begin; it is tried again");
                    }
                }
                pause = LOOKS.min(pause * 2);
            }
        });
    }

    /// Asks the Pods of a Job that is over how it went.
    async fn ask(self: &Arc<Self>, known: Known, over: Over) {
        let object = &known.plan.object;
        let before = self.desk().before(object, &known.uid);
        let mut outcome = None;
        for _ in 0..TRIES {
            match self.hands.pods(object).await {
                Ok(pods) => {
                    outcome = Some(end(&known, &over, &pods, &before));
                    break;
                }
                Err(error) => {
                    tracing::debug!(%object, error = chain(&error), "unable to read how a Job ended; it is tried again");
                    time::sleep(PAUSE).await;
                }
            }
        }
        let outcome = outcome.unwrap_or_else(|| Err(vanished("nobody could be asked how the Job ended")));
        self.desk().over(object, &known.uid, outcome, self.steady.now());
        (self.wake)(object);
        self.dispatch();
    }

    /// Jobs with these identities are not there any more.
    pub(super) fn gone(self: &Arc<Self>, uids: &[String]) {
        let now = self.steady.now();
        for uid in uids {
            let object = self.desk().gone(uid, now);
            if let Some(object) = object {
                (self.wake)(&object);
                self.dispatch();
            }
        }
    }
}
