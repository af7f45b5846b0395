//! One deed, from what it is told to what it brings: a call of the store, and what belongs before and after it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use operator_kit::failure::chain;
use planning::image::{Abilities, Algorithm, Deed, Done, FailureClass, Pinned, ReadBack, Source};
use provider_plugin::{
    Attempt, CloudError, Compression, Content, ContentPlan, Created, Discarded, ImageId, ImageSpec, ImageStore, Marked,
    Observed, OwnerId, Probe, Record, RecordState, Report, Sent, packed_at_source,
};
use tokio::time::{self, Instant};

use super::{ContentSpec, Failed, Found, Whose, WorkPlan, Worked, read_back, sums};
use crate::source::Files;

/// How long a look waits for what it takes over from another installation.
const HOLDING: Duration = Duration::from_secs(5);
/// A look that took so long has no time left to take anything over, of the minute that it may take with the way to the cloud.
const PROMPT: Duration = Duration::from_secs(45);

/// Does one deed and says how it went. Dropping the future is the cancel, at any await: the next look shows what is left of it.
///
/// It tries nothing again but what breaks off within one transfer, and has no deadline but for silence: whoever calls it sets one for what should be
/// short. A deed that reads bytes fails as `Invalid` without `files`.
pub(crate) async fn work(
    plan: &WorkPlan,
    store: &dyn ImageStore,
    files: Option<&Files>,
    report: Arc<dyn Report>,
) -> Worked {
    let mut found = Found::default();
    let working = Working {
        plan,
        store,
        files,
        report,
    };
    let outcome = working.done(&mut found).await;
    // Afterwards: what is found out on the way takes away.
    let able = store.capabilities();
    found.abilities = Some(Abilities {
        server_side: able.server_side,
        staged: able.staged,
    });
    Worked { outcome, found }
}

struct Working<'a> {
    plan: &'a WorkPlan,
    store: &'a dyn ImageStore,
    files: Option<&'a Files>,
    report: Arc<dyn Report>,
}

impl Working<'_> {
    async fn done(&self, found: &mut Found) -> Result<Done, Failed> {
        let (store, image) = (self.store, &self.plan.image);
        let owner = &image.subject.owner;
        match &self.plan.deed {
            Deed::Look => {
                let begun = Instant::now();
                let mut observed = store.observe(&image.subject, image).await?;
                if self.plan.holds && !self.plan.goes {
                    found.held = self.hold(&mut observed, begun.elapsed() < PROMPT).await;
                }
                found.observed = Some(observed);
                found.looked = Some(self.plan.holder.clone());
                Ok(Done::Looked)
            }
            Deed::Probe => {
                found.source = Some(self.probe().await?);
                Ok(Done::Probed)
            }
            Deed::Create { attempt, id } => self.create(*attempt, id.as_deref()).await,
            Deed::Transfer { id, attempt, staged } => {
                self.transfer(&image_id(id), *attempt, *staged).await?;
                Ok(Done::Sent)
            }
            Deed::Import { id, .. } => {
                store.import(&image_id(id), image, &self.plan.content.url).await?;
                Ok(Done::ImportBegun)
            }
            // It was built before, and is among the files.
            Deed::Build { id, attempt } => {
                self.transfer(&image_id(id), *attempt, false).await?;
                Ok(Done::Sent)
            }
            Deed::ReadBack { id, .. } => self.read_back(&image_id(id), found).await,
            Deed::Publish { id, verified, .. } => {
                store.publish(&image_id(id), image, verified).await?;
                Ok(Done::Published)
            }
            Deed::Amend { id } => {
                store.amend(&image_id(id), image).await?;
                Ok(Done::Amended)
            }
            Deed::Discard { id, attempt, why: _ } => self.discard(&image_id(id), *attempt).await,
            Deed::Relinquish { id } => {
                store.relinquish(&image_id(id), owner, self.must_hold()).await?;
                Ok(Done::Relinquished)
            }
        }
    }

    async fn discard(&self, id: &ImageId, attempt: Attempt) -> Result<Done, Failed> {
        let marked = Marked {
            holder: self.must_hold().cloned(),
            ..self.plan.image.subject.marked(attempt)
        };
        match self.store.discard(id, &marked).await? {
            Discarded::Gone | Discarded::Going | Discarded::WasGone => Ok(Done::Discarded),
        }
    }

    /// Who must hold what is cleared away: an object that goes takes nothing with it that another installation has taken over since the last look.
    fn must_hold(&self) -> Option<&OwnerId> {
        self.plan.goes.then_some(&self.plan.holder)
    }

    /// Says to the cloud who works on the images of the object now, where it says another one: else that one might take them for left behind. The look does
    /// not fail by it, and waits for it a few seconds: a later one tries it again, long before anybody deletes anything. Says whether all of it was done, if
    /// there was anything to do.
    async fn hold(&self, observed: &mut Observed, is_in_time: bool) -> Option<bool> {
        let holder = &self.plan.holder;
        let is_elsewhere = |record: &&mut Record| record.holder != *holder && record.state != RecordState::Going;
        let mut elsewhere: Vec<_> = observed.records.iter_mut().filter(is_elsewhere).collect();
        if elsewhere.is_empty() {
            return None;
        }
        if !is_in_time {
            tracing::warn!(object = %self.plan.object, "the look took too long to take its images over; it is tried again");
            return Some(false);
        }
        let held = join_all(elsewhere.iter().map(|record| self.hold_one(&record.id, &record.holder))).await;
        for (record, _) in elsewhere.iter_mut().zip(&held).filter(|(_, is_held)| **is_held) {
            record.holder.clone_from(holder);
        }
        Some(held.into_iter().all(|is_held| is_held))
    }

    async fn hold_one(&self, id: &ImageId, before: &OwnerId) -> bool {
        let (owner, holder) = (&self.plan.image.subject.owner, &self.plan.holder);
        let error = match time::timeout(HOLDING, self.store.hold(id, owner, holder)).await {
            Ok(Ok(())) => {
                tracing::info!(
                    object = %self.plan.object,
                    image = %id,
                    before = before.as_str(),
                    "took the image over from another installation"
                );
                return true;
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("the cloud did not answer within {} seconds", HOLDING.as_secs()),
        };
        tracing::warn!(
            object = %self.plan.object,
            image = %id,
            error,
            "the image could not be taken over; it is tried again"
        );
        false
    }

    /// The source first: a cloud is asked for room for something that is there.
    async fn probe(&self) -> Result<Source, Failed> {
        let files = self.files()?;
        let probe = files.image.probe().await?;
        let content = &self.plan.content;
        let pinned = sums::pinned(content, files, &probe).await?;
        let is_packed = self.is_packed(files, &probe).await?;
        let preflight = self.store.preflight(&self.plan.image, probe.size).await?;
        Ok(Source {
            size: probe.size,
            ranges: probe.ranges,
            // What the spec says need not be told again.
            digest: pinned
                .filter(|_| content.pinned.is_none())
                .map(|pinned| of_plugin(&pinned)),
            packed: is_packed,
            warnings: preflight.warnings,
        })
    }

    /// Whether the file is packed, where nobody but its beginning says so and nobody else would notice: a cloud that fetches it has the promised bytes.
    async fn is_packed(&self, files: &Files, probe: &Probe) -> Result<bool, Failed> {
        let content = &self.plan.content;
        if !content.is_fetched || content.compression != Compression::Auto {
            return Ok(false);
        }
        let format = self.plan.image.format.as_ref();
        let found = packed_at_source(Arc::clone(&files.image), probe, format).await;
        let found = found.map_err(|error| CloudError::of_content("read the beginning of the image", error))?;
        Ok(found.is_some())
    }

    async fn create(&self, attempt: u32, chosen: Option<&str>) -> Result<Done, Failed> {
        let image = ImageSpec {
            chosen_id: chosen.map(image_id),
            ..self.plan.image.clone()
        };
        let created = self.store.create(&image, attempt).await?;
        let (owner, holder) = (&self.plan.image.subject.owner, &self.plan.holder);
        // It is marked with its owner, who may be another one: who deletes the object next must know whose it is.
        if let (Created::New(id) | Created::Ours(id), true) = (&created, owner != holder) {
            self.hold_one(id, owner).await;
        }
        Ok(match created {
            Created::New(ImageId(id)) => Done::Created { id },
            Created::Ours(ImageId(id)) => Done::Ours { id },
            Created::Taken => Done::Taken,
        })
    }

    async fn transfer(&self, id: &ImageId, attempt: u32, staged: bool) -> Result<Sent, Failed> {
        let files = self.files()?;
        let ContentSpec {
            url: _,
            pinned: _,
            remembered,
            compression,
            is_fetched: _,
        } = &self.plan.content;
        let probe = files.image.probe().await?;
        let pinned = sums::pinned(&self.plan.content, files, &probe).await?;
        let plan = ContentPlan {
            attempt,
            pinned,
            remembered: remembered.clone(),
            compression: *compression,
            format: self.plan.image.format.clone(),
        };
        let content = Content::new(Arc::clone(&files.image), probe, plan, Arc::clone(&self.report));
        let (store, image, report) = (self.store, &self.plan.image, self.report.as_ref());
        Ok(if staged {
            store.stage(id, image, content, report).await?
        } else {
            store.transfer(id, image, content, report).await?
        })
    }

    async fn read_back(&self, id: &ImageId, found: &mut Found) -> Result<Done, Failed> {
        let read = match self.store.read_back(id).await {
            Ok(bytes) => read_back::read(bytes, self.report.as_ref()).await,
            Err(error) => Err(error.into()),
        };
        match read {
            Ok(read) => {
                found.read_back = Some(read);
                Ok(Done::ReadBack)
            }
            Err(failed) => {
                let is_refused = matches!(
                    failed.failure.class,
                    FailureClass::Unsupported | FailureClass::Invalid | FailureClass::Permission
                );
                found.read_back = is_refused.then_some(ReadBack::Refused);
                Err(failed)
            }
        }
    }

    fn files(&self) -> Result<&Files, Failed> {
        self.files.ok_or_else(|| {
            let words = "nothing says where the bytes of the image come from; give it a url";
            Failed::new(FailureClass::Invalid, words, Whose::Source)
        })
    }
}

fn image_id(id: &str) -> ImageId {
    ImageId(id.to_owned())
}

fn of_plugin(pinned: &provider_plugin::Pinned) -> Pinned {
    Pinned {
        algorithm: match pinned.algorithm() {
            provider_plugin::Algorithm::Sha256 => Algorithm::Sha256,
            provider_plugin::Algorithm::Sha512 => Algorithm::Sha512,
        },
        hex: pinned.hex().to_owned(),
    }
}

#[cfg(test)]
mod tests;
