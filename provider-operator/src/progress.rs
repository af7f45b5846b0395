//! How far a transfer is, written where people and a later life of this process look: `status.transfer` of the image's object. Says nothing about what
//! it means, and writes nothing else.
//!
//! Written by server-side apply: now and then while bytes move, and once, before the last of them leaves, the seal: what was sent. The two have
//! managers of their own, so that progress which arrives late cannot take the seal away. Both name the uid of the object, so that nothing is told
//! of another one by the same name.

mod words;

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use crds::labels::PROGRESS_FIELD_MANAGER;
use crds::providers::image_status::{Sealed, SentVia, TransferStatus};
use crds::{PROVIDER_GROUP, VERSION};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use operator_kit::failure::{Class, class_of};
use planning::image::Deed;
use provider_plugin::{Meter, Progress, Seal, SealError, Stage};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{self, Instant};

use crate::objects::ObjectId;
use crate::worker::WorkPlan;

/// Field manager of `status.transfer.sealed`.
const SEAL_FIELD_MANAGER: &str = "stackwright-seal";
/// Longest time between two writes while bytes move.
const EVERY: Duration = Duration::from_secs(10);
/// Shortest time, however fast they move.
const NOT_BEFORE: Duration = Duration::from_secs(1);
/// So many parts of all bytes are worth a write.
const PARTS: u64 = 20;
/// How long the last write may take: whoever waits for the end of the transfer waits for it too.
const LAST: Duration = Duration::from_secs(5);
/// How long the seal is tried to be stored, with pauses of a second. The cloud waits for the last bytes meanwhile.
const SEALING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);

/// Writes the progress of all transfers of this process.
#[derive(Clone)]
pub(crate) struct Ledgers {
    client: Client,
    holder: String,
}

impl Ledgers {
    /// `holder`: who transfers, as `status.transfer.holder` shows it. Writes through this client, which refuses them once another process leads.
    pub(crate) fn new(client: Client, holder: String) -> Self {
        Self { client, holder }
    }

    /// A ledger for a deed that sends an image; none for others.
    pub(crate) fn open(&self, plan: &WorkPlan) -> Option<Ledger> {
        let (attempt, staged) = match &plan.deed {
            Deed::Transfer { attempt, staged, .. } => (attempt, *staged),
            Deed::Build { attempt, .. } => (attempt, false),
            _ => return None,
        };
        let object = plan.object.clone();
        let definition = object.provider.definition();
        let kind = GroupVersionKind::gvk(PROVIDER_GROUP, VERSION, definition.image_kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, definition.image_plural);
        Some(Ledger {
            api: Api::namespaced_with(self.client.clone(), &object.namespace, &resource),
            resource,
            object,
            attempt: i64::from(*attempt),
            via: if staged { SentVia::Staged } else { SentVia::Upload },
            holder: self.holder.clone(),
            started: Timestamp::now(),
            progress: watch::Sender::new(None),
        })
    }
}

/// Writes the progress of one transfer.
pub(crate) struct Ledger {
    api: Api<DynamicObject>,
    resource: ApiResource,
    object: ObjectId,
    attempt: i64,
    via: SentVia,
    holder: String,
    started: Timestamp,
    progress: watch::Sender<Option<Progress>>,
}

/// What was written last.
struct Written {
    at: Instant,
    sent: u64,
    stage: Stage,
}

/// What is known of a transfer while it is written down.
struct Course {
    begun: Instant,
    /// Of the stage that is told.
    meter: Meter,
    stage: Stage,
    written: Option<Written>,
}

impl Ledger {
    /// Takes note of how far it is. Never waits; all but the last may be skipped.
    pub(crate) fn note(&self, progress: Progress) {
        self.progress.send_replace(Some(progress));
    }

    /// Returns when the seal is stored. Tries again for half a minute where that may help.
    pub(crate) async fn seal(&self, seal: &Seal) -> Result<(), SealError> {
        let sealed = Sealed {
            attempt: i64::from(seal.attempt),
            source_digest: seal.source_digest.clone(),
            sha512: seal.sha512.clone(),
            size_bytes: whole(seal.bytes),
        };
        let transfer = json!({
            "attempt": self.attempt,
            "via": self.via,
            "sentBytes": self.progress.borrow().map_or(0, |progress| whole(progress.sent)),
            "sealed": sealed,
        });
        let end = Instant::now() + SEALING;
        loop {
            let written = time::timeout_at(end, self.write(SEAL_FIELD_MANAGER, &transfer)).await;
            let error = match written {
                Ok(Ok(stored)) => return self.is_stored(&stored, &sealed),
                Ok(Err(error)) if is_final(&error) => return Err(unsealed(&error.to_string())),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the API server did not answer".to_owned(),
            };
            if Instant::now() + PAUSE >= end {
                return Err(unsealed(&error));
            }
            time::sleep(PAUSE).await;
        }
    }

    /// Writes how far it is while `work` does, and a last time when it is over. Nothing is written any more when the future is dropped.
    pub(crate) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let mut course = Course {
            begun: Instant::now(),
            meter: Meter::default(),
            stage: Stage::Sending,
            written: None,
        };
        let done = {
            let mut work = pin!(work);
            tokio::select! {
                biased;
                done = &mut work => done,
                never = self.keep(&mut course) => match never {},
            }
        };
        // Whoever waits for the end reads in the cloud how it went; this is for people.
        let _ = time::timeout(LAST, self.end(course)).await;
        done
    }

    async fn keep(&self, course: &mut Course) -> Infallible {
        let mut told = self.progress.subscribe();
        loop {
            let progress = *told.borrow_and_update();
            match progress.and_then(|progress| Some((progress, course.due(&progress)?))) {
                Some((progress, at)) if at <= Instant::now() => {
                    // What is not written now is with the next write.
                    let transfer = self.transfer(&progress, &course.meter);
                    let _ = self.write(PROGRESS_FIELD_MANAGER, &transfer).await;
                    course.written = Some(Written {
                        at: Instant::now(),
                        sent: progress.sent,
                        stage: progress.stage,
                    });
                }
                Some((_, at)) => {
                    tokio::select! {
                        _ = told.changed() => {}
                        () = time::sleep_until(at) => {}
                    }
                }
                None => {
                    // The sender is ours, so that this never fails.
                    let _ = told.changed().await;
                }
            }
        }
    }

    async fn end(&self, mut course: Course) -> Result<(), Error> {
        let progress = *self.progress.borrow();
        if let Some(progress) = progress.filter(|progress| course.due(progress).is_some()) {
            let transfer = self.transfer(&progress, &course.meter);
            self.write(PROGRESS_FIELD_MANAGER, &transfer).await?;
        }
        Ok(())
    }

    fn transfer(&self, progress: &Progress, meter: &Meter) -> Value {
        let left = meter.left(progress.total);
        let transfer = TransferStatus {
            attempt: self.attempt,
            via: self.via,
            sent_bytes: whole(taken(progress)),
            total_bytes: progress.total.map(whole),
            bytes_per_second: whole(meter.rate()),
            seconds_left: left.map(|left| whole(left.as_secs())),
            last_progress_time: Some(now()),
            resumes: i64::from(progress.resumes),
            started_at: Some(Time(self.started)),
            holder: self.holder.clone(),
            summary: words::summary(progress, meter.rate(), left),
            sealed: None,
        };
        // A struct of texts and numbers is always JSON.
        serde_json::to_value(transfer).unwrap_or_default()
    }

    async fn write(&self, manager: &str, transfer: &Value) -> Result<DynamicObject, Error> {
        let intent = json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": { "name": self.object.name, "namespace": self.object.namespace, "uid": self.object.uid },
            "status": { "transfer": transfer },
        });
        let params = PatchParams::apply(manager).force();
        self.api
            .patch_status(&self.object.name, &params, &Patch::Apply(intent))
            .await
    }

    /// Whoever looks later finds what is in the answer, and nothing else counts.
    fn is_stored(&self, stored: &DynamicObject, sealed: &Sealed) -> Result<(), SealError> {
        let found = &stored.data["status"]["transfer"]["sealed"];
        if serde_json::to_value(sealed).is_ok_and(|sealed| *found == sealed) {
            return Ok(());
        }
        Err(unsealed(&format!(
            "the API server does not keep status.transfer.sealed of {}",
            self.object
        )))
    }
}

impl Course {
    /// Takes the measure of the progress, and says when it is written, where it says something new.
    fn due(&mut self, progress: &Progress) -> Option<Instant> {
        if self.stage != progress.stage {
            // What is counted now begins anew.
            (self.stage, self.meter) = (progress.stage, Meter::default());
        }
        self.meter.moved(self.begun.elapsed(), progress.sent);
        let Some(written) = &self.written else {
            return Some(Instant::now());
        };
        if (written.sent, written.stage) == (progress.sent, progress.stage) {
            return None;
        }
        let moved = progress.sent.abs_diff(written.sent);
        let is_much = progress.total.is_some_and(|total| moved >= total / PARTS);
        Some(written.at + if is_much { NOT_BEFORE } else { EVERY })
    }
}

/// What the cloud has taken: all of it, while that is read back. Whoever watches sees it grow and never shrink.
fn taken(progress: &Progress) -> u64 {
    match progress.stage {
        Stage::ReadingBack => progress.total.unwrap_or(progress.sent),
        Stage::Reading | Stage::Sending => progress.sent,
    }
}

/// Whether trying again is of no use: the object is another one or gone, or the write is refused.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Api(status) if matches!(status.code, 403 | 404 | 409) => true,
        error => class_of(error) == Class::Terminal,
    }
}

fn unsealed(why: &str) -> SealError {
    SealError {
        message: format!("what was sent could not be noted in status, so that the last bytes were kept back: {why}"),
    }
}

fn now() -> Time {
    Time(Timestamp::now())
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
