//! Every input at once, as far as inputs differ: there is always an answer, always the same one, and never one of those that do harm.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use planning::image::{
    Cloud, Deed, Done, FailureClass, ImagePolicy, Op, OpState, RecordSeen, RecordState, Sight, Step, StopReason,
    Verdict, after, decide, judge,
};

use crate::table::{Input, NOW, before, ended, ends, failure, had, op, record, running, sealed, transfer, wall};
use crate::world::script::described;

const STATES: [RecordState; 8] = [
    RecordState::Empty,
    RecordState::Spoilt,
    RecordState::Receiving,
    RecordState::Importing,
    RecordState::Whole,
    RecordState::Withdrawn,
    RecordState::Dead,
    RecordState::Going,
];

pub(crate) const CLASSES: [FailureClass; 24] = [
    FailureClass::Unavailable,
    FailureClass::Throttled,
    FailureClass::Quota,
    FailureClass::Busy,
    FailureClass::Credentials,
    FailureClass::Permission,
    FailureClass::Invalid,
    FailureClass::State,
    FailureClass::Gone,
    FailureClass::Unknown,
    FailureClass::InUse,
    FailureClass::NotOurs,
    FailureClass::Unsupported,
    FailureClass::SourceGone,
    FailureClass::SourceBroken,
    FailureClass::SourceMismatch,
    FailureClass::SourceNotAnImage,
    FailureClass::SourceChanged,
    FailureClass::DigestUnknown,
    FailureClass::Sealing,
    FailureClass::BuildFailed { exit: 1 },
    FailureClass::JobVanished,
    FailureClass::OutOfMemory,
    FailureClass::Stopped {
        why: StopReason::Stalled,
    },
];

/// None, or one in every state, of every attempt, with every mark.
fn records() -> Vec<Option<RecordSeen>> {
    let mut records = vec![None];
    for state in STATES {
        for attempt in 1..=3 {
            for verified in [None, Some("sha256:bb"), Some("sha256:ff")] {
                records.push(Some(RecordSeen {
                    verified: verified.map(str::to_owned),
                    ..record(attempt, state)
                }));
            }
        }
    }
    records
}

fn ops() -> Vec<Option<Op>> {
    let since = before(5);
    let why = StopReason::Changed;
    let mut ops = vec![
        None,
        Some(op(transfer(2), OpState::Queued { since, ahead: 1 })),
        running(transfer(2), 5),
        running(transfer(2), 500),
        running(Deed::Look, 5),
        running(Deed::Look, 500),
        Some(op(transfer(2), OpState::Stopping { since, why })),
        Some(ended(transfer(2), Ok(Done::Sent))),
        Some(ended(Deed::Create { attempt: 2, id: None }, Ok(Done::Taken))),
    ];
    ops.extend(CLASSES.map(|class| Some(ended(transfer(2), Err(failure(class))))));
    ops
}

fn sights(record: Option<&RecordSeen>) -> [Sight<Cloud>; 5] {
    let value = Cloud {
        records: record.cloned().into_iter().collect(),
        others: Vec::new(),
    };
    let failed = |next| Sight::Failed {
        failure: failure(FailureClass::Unavailable),
        since: before(100),
        count: 2,
        next,
    };
    let seen = |value: &Cloud, fresh| Sight::Seen {
        value: value.clone(),
        at: before(1),
        fresh,
    };
    [
        Sight::Unseen,
        seen(&value, true),
        seen(&value, false),
        failed(NOW),
        failed(NOW + Duration::from_secs(9)),
    ]
}

/// Every combination, one after another.
pub(crate) fn every(mut look_at: impl FnMut(&Input)) -> u32 {
    let ops = ops();
    let mut count = 0;
    for record in records() {
        for cloud in sights(record.as_ref()) {
            for flags in 0..16_u8 {
                for policy in [ImagePolicy::Create, ImagePolicy::Adopt, ImagePolicy::IfMissing] {
                    let mut input = crate::table::input();
                    input.seen.cloud = cloud.clone();
                    input.wanted.policy = policy;
                    input.wanted.paused = flags & 1 > 0;
                    input.wanted.deleting = (flags & 2 > 0).then(wall);
                    input.wanted.identity = input.wanted.identity.filter(|_| flags & 4 == 0);
                    if flags & 8 > 0 {
                        had(&mut input, 2);
                        input.kept.sealed = sealed(2, "aa");
                        input.kept.publishing = Some("wanted-2".to_owned());
                    }
                    for op in &ops {
                        input.op.clone_from(op);
                        look_at(&input);
                        count += 1;
                    }
                }
            }
        }
    }
    count
}

fn is_active(op: &Op) -> bool {
    !matches!(op.state, OpState::Ended { .. })
}

/// What must not be answered.
fn harm(input: &Input, step: &Step) -> Option<&'static str> {
    let Input { wanted, kept, seen, op } = input;
    match step {
        Step::Do { .. } if op.as_ref().is_some_and(is_active) => Some("something is begun beside something else"),
        Step::Do {
            deed: Deed::Discard { attempt, .. },
            ..
        } if wanted.deleting.is_none() && *attempt >= kept.attempt => Some("what status has not given up is deleted"),
        Step::Do {
            deed: Deed::Publish { id, attempt, verified },
            ..
        } => {
            let Sight::Seen { value, .. } = &seen.cloud else {
                return Some("something unseen is shown");
            };
            let record = value.records.iter().find(|record| record.id == *id)?;
            let verdict = judge(record, wanted, kept, seen);
            let is_right = verdict == Verdict::Matches(verified.clone());
            let is_written = kept.publishing.as_ref() == Some(id) && kept.attempt == *attempt;
            (!is_right || !is_written).then_some("something is shown that is not judged or not written")
        }
        Step::Await(wait) => (!ends(wait)).then_some("a wait does not end"),
        _ => None,
    }
}

#[test]
fn every_input_has_one_answer_and_none_does_harm() {
    let count = every(|input| {
        let step = input.step();
        if let Some(harm) = harm(input, &step) {
            panic!("{harm}: {step:?} for {input:#?}");
        }
        let now = Input::now();
        let again = decide(&input.wanted, &input.kept, &input.seen, input.op.as_ref(), now);
        assert_eq!(step, again);
        let kept = after(&step, &input.wanted, &input.kept, &input.seen, input.op.as_ref(), now);
        assert!(kept.attempt >= input.kept.attempt, "{step:?}");
    });
    assert!(count > 500_000, "{count}");
}

/// What is done about every record while nothing is under way, for people to read.
fn told() -> String {
    let mut text = String::from("# The record of attempt 2 is the one that status names; the image was had before.\n");
    for (title, deleting, adopts) in [
        ("wanted", false, false),
        ("somebody else's wanted", false, true),
        ("deleted", true, false),
    ] {
        let _infallible = writeln!(text, "\n{title}:");
        for record in records() {
            let mut input = Input::with(record.as_slice());
            had(&mut input, 2);
            input.kept.sealed = sealed(2, "aa");
            input.wanted.deleting = deleting.then(wall);
            if adopts {
                input.wanted.policy = ImagePolicy::Adopt;
            }
            let what = record.map_or("nothing".to_owned(), |record| {
                let mark = record
                    .verified
                    .map_or("no mark".to_owned(), |mark| format!("mark {mark}"));
                format!("{:?} {}, {mark}", record.state, record.attempt)
            });
            let _infallible = writeln!(text, "{what:<32} {}", described(&input.step()));
        }
    }
    text
}

#[test]
fn what_is_done_about_every_record_is_as_written() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/image/table.golden");
    let told = told();
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some() {
        fs::write(&golden, &told).expect("the golden file");
    }
    let written = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(told, written, "STACKWRIGHT_REGENERATE=1 accepts what is right");
}
