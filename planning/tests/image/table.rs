//! The table of rules: one test for each, named as what it says. The numbers are the order in which they are asked.

mod absent;
mod before;
mod deletion;
mod failures;
mod records;
mod written;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use planning::image::{
    Cloud, Deed, DeletionPolicy, Done, Execution, Failure, FailureClass, ForeignSeen, Form, ImagePolicy, Intent,
    JobsSight, Kept, Now, Op, OpState, RecordSeen, RecordState, Retry, Sealed, Seen, Sight, Source, Step, Until, Via,
    Wait, WaitReason, Wanted, decide,
};

pub(crate) const KEY: &str = "wanted";
pub(crate) const OTHER: &str = "other";
/// The steady time of every decision here.
pub(crate) const NOW: Duration = Duration::from_secs(10_000);

pub(crate) const fn before(seconds: u64) -> Duration {
    Duration::from_secs(10_000 - seconds)
}

/// Whether a wait is told how it ends: at a moment, or by something that somebody tells or a look shows.
pub(crate) fn ends(wait: &Wait) -> bool {
    match wait.until {
        Until::At(_) => true,
        Until::Again(_) => wait.look.is_some(),
        Until::Told(awaited) => awaited.is_told() || wait.look.is_some(),
    }
}

pub(crate) fn wall() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

pub(crate) fn earlier(seconds: i64) -> Timestamp {
    wall() - SignedDuration::from_secs(seconds)
}

/// The arguments of one decision: an image that is wanted and claimed, of which nothing is there.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) wanted: Wanted,
    pub(crate) kept: Kept,
    pub(crate) seen: Seen,
    pub(crate) op: Option<Op>,
}

pub(crate) fn input() -> Input {
    Input {
        wanted: Wanted {
            key: KEY.to_owned(),
            name: "ubuntu".to_owned(),
            generation: 1,
            identity: Some("secret/1".to_owned()),
            request: None,
            policy: ImagePolicy::Create,
            made_by_others: false,
            adopt: None,
            chosen_id: None,
            deletion: DeletionPolicy::Delete,
            via: Via::Auto,
            fetchable: true,
            build: None,
            digest: None,
            compressed: false,
            format: None,
            execution: Execution::Auto,
            invalid: None,
            paused: false,
            moved: false,
            deleting: None,
            finalizer: true,
            owner_noted: true,
            force_finalize: false,
        },
        kept: Kept {
            attempt: 2,
            key: Some(KEY.to_owned()),
            ..Kept::default()
        },
        seen: Seen {
            cloud: looked(Cloud::default(), before(1)),
            source: Sight::Seen {
                value: Source {
                    size: Some(100),
                    ..Source::default()
                },
                at: before(1),
                fresh: true,
            },
            jobs: JobsSight::Usable,
            abilities: None,
            amended: None,
            unshown: None,
            force_after: Duration::from_hours(1),
            stall: Duration::from_mins(1),
            import_patience: None,
        },
        op: None,
    }
}

impl Input {
    pub(crate) fn now() -> Now {
        Now {
            wall: wall(),
            steady: NOW,
        }
    }

    pub(crate) fn step(&self) -> Step {
        decide(&self.wanted, &self.kept, &self.seen, self.op.as_ref(), Self::now())
    }

    /// With these records of ours in the cloud.
    pub(crate) fn with(records: &[RecordSeen]) -> Self {
        let mut input = input();
        input.seen.cloud = looked(
            Cloud {
                records: records.to_vec(),
                others: Vec::new(),
            },
            before(1),
        );
        input
    }

    /// With these images of others in the cloud.
    pub(crate) fn among(others: &[ForeignSeen]) -> Self {
        let mut input = input();
        input.seen.cloud = looked(
            Cloud {
                records: Vec::new(),
                others: others.to_vec(),
            },
            before(1),
        );
        input
    }

    pub(crate) fn changed(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

pub(crate) fn looked(value: Cloud, at: Duration) -> Sight<Cloud> {
    Sight::Seen { value, at, fresh: true }
}

pub(crate) fn record(attempt: u32, state: RecordState) -> RecordSeen {
    RecordSeen {
        id: format!("{KEY}-{attempt}"),
        key: KEY.to_owned(),
        attempt,
        state,
        words: None,
        format: None,
        size: Some(100),
        sha512: Some("aa".to_owned()),
        verified: None,
        shown: false,
        drift: Vec::new(),
        first_seen: before(10),
        moved: before(10),
        read_back: None,
        held_elsewhere: false,
    }
}

pub(crate) fn verified(attempt: u32) -> RecordSeen {
    RecordSeen {
        verified: Some("sha256:bb".to_owned()),
        shown: true,
        ..record(attempt, RecordState::Whole)
    }
}

/// As status says it once an image is there.
pub(crate) fn had(input: &mut Input, attempt: u32) {
    input.kept.image = Some(planning::image::CloudImage {
        id: format!("{KEY}-{attempt}"),
        name: "ubuntu".to_owned(),
        size_bytes: Some(100),
        sha512: Some("aa".to_owned()),
        source_digest: Some("sha256:bb".to_owned()),
        adopted: false,
    });
}

pub(crate) fn sealed(attempt: u32, sha512: &str) -> Option<Sealed> {
    Some(Sealed {
        attempt,
        source_digest: "sha256:bb".to_owned(),
        sha512: sha512.to_owned(),
        bytes: 100,
    })
}

pub(crate) fn foreign(id: &str) -> ForeignSeen {
    ForeignSeen {
        id: id.to_owned(),
        of_our_project: true,
        usable: true,
        of_community: false,
        size: Some(100),
        sha512: Some("aa".to_owned()),
        digest: None,
        description: "somebody's".to_owned(),
    }
}

pub(crate) fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        message: "it did not work".to_owned(),
        request_id: None,
        retry_after: None,
        quota: None,
    }
}

pub(crate) fn op(deed: Deed, state: OpState) -> Op {
    Op {
        deed,
        key: KEY.to_owned(),
        form: Form::InProcess,
        state,
    }
}

/// Under way, moved last so many seconds ago.
pub(crate) fn running(deed: Deed, seconds: u64) -> Option<Op> {
    let since = before(seconds);
    Some(op(
        deed,
        OpState::Running {
            since,
            moved: since,
            bytes: None,
        },
    ))
}

pub(crate) fn ended(deed: Deed, outcome: Result<Done, Failure>) -> Op {
    op(deed, OpState::Ended { outcome, at: before(1) })
}

pub(crate) fn transfer(attempt: u32) -> Deed {
    Deed::Transfer {
        id: format!("{KEY}-{attempt}"),
        attempt,
        staged: false,
    }
}

pub(crate) fn retry(deed: planning::image::DeedName, class: FailureClass, seconds: i64) -> Option<Retry> {
    Some(Retry {
        deed,
        class,
        message: "it did not work".to_owned(),
        count: 1,
        first_time: earlier(60),
        until: earlier(-seconds),
        identity: Some("secret/1".to_owned()),
        request: None,
        generation: 1,
    })
}

#[track_caller]
pub(crate) fn is_done(step: &Step, deed: &Deed) {
    assert!(matches!(step, Step::Do { deed: done, .. } if done == deed), "{step:?}");
}

#[track_caller]
pub(crate) fn waits_for(step: &Step, reason: WaitReason) -> Wait {
    match step {
        Step::Await(wait) if wait.reason == reason => wait.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn holds_for(step: &Step, reason: planning::image::HaltReason) {
    assert!(matches!(step, Step::Hold(halt) if halt.reason == reason), "{step:?}");
}

#[track_caller]
pub(crate) fn writes_attempt(step: &Step, expected: u32, expected_why: planning::image::AttemptReason) {
    let Step::Record(Intent::Attempt { number, key, why }) = step else {
        panic!("{step:?}")
    };
    assert_eq!((*number, key.as_str(), *why), (expected, KEY, expected_why));
}
