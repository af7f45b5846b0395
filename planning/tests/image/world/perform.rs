//! How a step is performed, and what can go wrong then.

use planning::image::{
    Amended, AttemptReason, CloudImage, Deed, DiscardReason, Done, Failure, FailureClass, Form, HaltReason, Intent,
    Kept, Op, OpState, ReadBack, RecordState, Settlement, Sight, Source, Step,
};

use super::cloud::{Image, Status, failure, sha256, sha512};
use super::object::Object;
use super::operator::failed;
use super::{Arrival, Giving, Mishap, Planted, World};

impl World {
    pub(super) fn perform(&mut self, who: usize, step: &Step, mut kept: Kept, mishap: Mishap) {
        if mishap == Mishap::CrashBefore {
            return self.crash(who);
        }
        self.misbehave(who, step);
        if self.planted == Some(Planted::ForgetsAttempt) && matches!(step, Step::Record(Intent::Forget)) {
            kept.attempt = 0;
        }
        match step {
            Step::Record(_) => {
                self.write(who, |object| object.kept = kept);
            }
            Step::Settle(settlement) => {
                let is_noted = *settlement == Settlement::Nothing || self.write(who, |object| object.kept = kept);
                if is_noted && mishap != Mishap::AnswerLost {
                    self.forget(who);
                }
            }
            Step::Claim => {
                self.write(who, |object| (object.finalizer, object.owner_noted) = (true, true));
            }
            Step::Finish { left_behind } => {
                // Nobody could see what there is; the sweeper finds it.
                if !self.cloud.up {
                    let ours = self.cloud.images.iter().filter(|(_, image)| image.mark.is_some());
                    self.orphans.extend(ours.map(|(id, _)| id.clone()));
                }
                self.left_behind.clone_from(left_behind);
                self.write(who, |object| (object.finalizer, object.gone) = (false, true));
            }
            Step::Stop(why) => self.stop(who, *why),
            Step::Do { deed, form } => self.begin(who, deed, *form, mishap),
            Step::Await(_) | Step::Rest { .. } | Step::Hold(_) => {}
        }
        if mishap == Mishap::CrashAfter || matches!(mishap, Mishap::Late(_)) {
            self.crash(who);
        }
    }

    /// A write that knows the version, by whoever leads; says whether it was accepted.
    fn write(&mut self, who: usize, change: impl FnOnce(&mut Object)) -> bool {
        if who != self.leader || self.operators[who].cached.version != self.object.version {
            return false;
        }
        let before = self.object.clone();
        change(&mut self.object);
        if self.object != before {
            self.object.version += 1;
            self.writes += 1;
        }
        self.operators[who].cached = self.object.clone();
        true
    }

    fn begin(&mut self, who: usize, deed: &Deed, form: Form, mishap: Mishap) {
        let (now, key) = (self.steady, self.operators[who].cached.spec.key());
        if self.operators[who].op.is_some() {
            self.violations.push(format!("{deed:?} is begun beside something else"));
        }
        let state = OpState::Running {
            since: now,
            moved: now,
            bytes: None,
        };
        self.operators[who].op = Some(Op {
            deed: deed.clone(),
            key,
            form,
            state,
        });
        if mishap == Mishap::Hangs {
            return;
        }
        if form == Form::Job {
            return self.begin_job(who, deed, mishap);
        }
        let outcome = match deed {
            Deed::Look => {
                self.looks += 1;
                if self.planted == Some(Planted::TakesImagesByName) {
                    self.mark_by_name(who);
                }
                let looked = self.operators[who].look(&self.cloud, now);
                if self.planted == Some(Planted::SendsToSpoiltRecords) {
                    self.look_past_spoilt(who);
                }
                looked.map(|()| Done::Looked)
            }
            Deed::Probe => self.probe(who),
            Deed::ReadBack { id, .. } => self.read_back(who, id),
            Deed::Transfer { id, staged, .. } => match self.receive(who, id, *staged) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            Deed::Build { .. } => panic!("nothing is built by an operator itself"),
            short => {
                let sender = self.operators[who].cached.clone();
                if let Mishap::Late(commands) = mishap {
                    self.arrivals.push(Arrival {
                        commands,
                        deed: short.clone(),
                        sender,
                    });
                    return;
                }
                self.answer(short, &sender)
            }
        };
        if let (Ok(Done::Created { id }), true) = (&outcome, who != self.leader) {
            self.orphans.push(id.clone());
        }
        self.remember(who, deed, &outcome);
        let is_lost = mishap == Mishap::AnswerLost && outcome.is_ok() && !matches!(deed, Deed::Look | Deed::Probe);
        let lost = || Err(failure(FailureClass::Unknown));
        self.end(who, if is_lost { lost() } else { outcome });
    }

    fn remember(&mut self, who: usize, deed: &Deed, outcome: &Result<Done, Failure>) {
        let now = self.steady;
        let operator = &mut self.operators[who];
        if matches!(deed, Deed::Amend { .. }) {
            let drift = match &operator.cloud {
                Sight::Seen { value, .. } => value.records.iter().flat_map(|record| record.drift.clone()).collect(),
                Sight::Unseen | Sight::Failed { .. } => Vec::new(),
            };
            let refused = outcome.as_ref().err().cloned();
            operator.amended = Some(Amended {
                drift,
                at: now,
                refused,
            });
        }
        if let Err(failure) = outcome
            && matches!(deed, Deed::Probe)
        {
            operator.source = failed(&operator.source, failure, &operator.cached.spec.key(), now);
        }
    }

    /// What something short does when it arrives.
    pub(super) fn answer(&mut self, deed: &Deed, sender: &Object) -> Result<Done, Failure> {
        self.watch_deed(deed, sender);
        if sender.secret == 0 {
            return Err(failure(FailureClass::Credentials));
        }
        self.cloud
            .short(deed, &sender.spec.key(), sender.spec.option, self.steady)
    }

    fn probe(&mut self, who: usize) -> Result<Done, Failure> {
        match self.giving {
            Giving::Nothing => return Err(failure(FailureClass::SourceGone)),
            Giving::Html => return Err(failure(FailureClass::SourceNotAnImage)),
            Giving::Bytes | Giving::Broken(_) => {}
        }
        if !self.cloud.up {
            return Err(failure(FailureClass::Unavailable));
        }
        if !self.cloud.room {
            return Err(failure(FailureClass::Quota));
        }
        let value = Source {
            size: Some(u64::from(self.given())),
            ranges: true,
            ..Source::default()
        };
        self.operators[who].source = Sight::Seen {
            value,
            at: self.steady,
            fresh: true,
        };
        Ok(Done::Probed)
    }

    fn read_back(&mut self, who: usize, id: &str) -> Result<Done, Failure> {
        if !self.cloud.up {
            return Err(failure(FailureClass::Unavailable));
        }
        let image = self.cloud.images.get(id).ok_or_else(|| failure(FailureClass::Gone))?;
        let Some(content) = image.content.filter(|_| image.status == Status::Active) else {
            return Err(failure(FailureClass::State));
        };
        let found = ReadBack::Found {
            sha256: sha256(content),
            sha512: sha512(content),
            bytes: u64::from(content),
        };
        self.operators[who].read_back.insert(id.to_owned(), found);
        Ok(Done::ReadBack)
    }

    fn receive(&mut self, who: usize, id: &str, staged: bool) -> Result<(), Failure> {
        match self.giving {
            Giving::Nothing => return Err(failure(FailureClass::SourceGone)),
            Giving::Html => return Err(failure(FailureClass::SourceNotAnImage)),
            Giving::Bytes | Giving::Broken(_) => {}
        }
        self.connections += 1;
        self.cloud.receive(id, self.connections, staged)?;
        self.operators[who].connection = Some((self.connections, self.steady));
        Ok(())
    }

    /// What a planted fault does besides or beforehand.
    fn misbehave(&mut self, who: usize, step: &Step) {
        let Some(planted) = self.planted else { return };
        let mut sender = self.operators[who].cached.clone();
        let kept = sender.kept.clone();
        let deed = match (planted, step) {
            (
                Planted::DiscardsBeforeItIsWritten,
                Step::Record(Intent::Attempt {
                    why: AttemptReason::Spoilt | AttemptReason::Stalled | AttemptReason::ImportFailed,
                    ..
                }),
            ) => {
                let (Some(key), attempt) = (&kept.key, kept.attempt) else {
                    return;
                };
                Deed::Discard {
                    id: super::cloud::id_of(key, attempt),
                    attempt,
                    why: DiscardReason::LowerAttempt,
                }
            }
            (Planted::PublishesBeforeItIsWritten, Step::Record(Intent::Publishing { id, attempt })) => Deed::Publish {
                id: id.clone(),
                attempt: *attempt,
                verified: kept
                    .sealed
                    .as_ref()
                    .map(|sealed| sealed.source_digest.clone())
                    .unwrap_or_default(),
            },
            (
                Planted::PublishesWhatDiffers,
                Step::Record(Intent::Attempt {
                    why: AttemptReason::Mismatch | AttemptReason::ImportFailed,
                    ..
                }),
            ) => {
                let (Some(key), Some(pinned)) = (&kept.key, sender.spec.pinned()) else {
                    return;
                };
                let id = super::cloud::id_of(key, kept.attempt);
                // As if it had been written before.
                sender.kept.publishing = Some(id.clone());
                Deed::Publish {
                    id,
                    attempt: kept.attempt,
                    verified: pinned.to_string(),
                }
            }
            (Planted::CreatesBeforeItIsWritten, Step::Record(Intent::Attempt { number, .. })) => Deed::Create {
                attempt: *number,
                id: None,
            },
            (Planted::FinishesWithoutLooking, _) => return self.finish_early(who),
            (
                Planted::PublishesTwo,
                Step::Do {
                    deed: Deed::Publish { id, verified, .. },
                    ..
                },
            ) => return self.publish_a_twin(id, verified),
            (Planted::ShowsUnverified, Step::Record(Intent::Publishing { id, .. })) => {
                return self.cloud.moved(id, |image| image.shown = true);
            }
            (Planted::AdoptsUnasked, Step::Hold(halt)) if halt.reason == HaltReason::NameTaken => {
                return self.adopt_by_name(who);
            }
            _ => return,
        };
        // A fault of ours has no answer that anybody waits for.
        let _answer = self.answer(&deed, &sender);
    }

    fn finish_early(&mut self, who: usize) {
        let cached = &self.operators[who].cached;
        if cached.deleting.is_some() && cached.finalizer {
            self.write(who, |object| (object.finalizer, object.gone) = (false, true));
        }
    }

    /// The same image once more, under another id.
    fn publish_a_twin(&mut self, id: &str, verified: &str) {
        let Some(image) = self.cloud.images.get(id) else { return };
        let twin = Image {
            verified: Some(verified.to_owned()),
            shown: true,
            ..image.clone()
        };
        self.cloud.images.insert(format!("{id} again"), twin);
    }

    /// Whatever stands in the way by its name is used.
    fn adopt_by_name(&mut self, who: usize) {
        let mut images = self.cloud.images.iter();
        let Some((id, _)) = images.find(|(_, image)| image.mark.is_none() && image.named_as_ours) else {
            return;
        };
        let image = CloudImage {
            id: id.clone(),
            name: "ubuntu".to_owned(),
            size_bytes: None,
            sha512: None,
            source_digest: None,
            adopted: true,
        };
        self.write(who, |object| object.kept.image = Some(image));
    }

    fn look_past_spoilt(&mut self, who: usize) {
        if let Sight::Seen { value, .. } = &mut self.operators[who].cloud {
            for record in &mut value.records {
                if record.state == RecordState::Spoilt {
                    record.state = RecordState::Empty;
                }
            }
        }
    }

    /// Whatever has the name is marked as ours.
    fn mark_by_name(&mut self, who: usize) {
        let attempt = self.operators[who].cached.kept.attempt;
        let key = self.operators[who].cached.spec.key();
        for image in self.cloud.images.values_mut() {
            if image.mark.is_none() && image.named_as_ours {
                image.mark = Some(super::cloud::Mark {
                    key: key.clone(),
                    attempt,
                });
            }
        }
    }
}
