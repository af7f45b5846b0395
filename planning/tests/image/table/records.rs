//! Rules 20 to 38: images of ours.

use std::time::Duration;

use planning::image::{
    Abilities, Algorithm, Amended, AttemptReason, Cloud, Deed, DeedName, DeletionPolicy, DiscardReason, Drift,
    Execution, FailureClass, Form, HaltReason, ImagePolicy, Intent, JobsSight, Pinned, ReadBack, RecordSeen,
    RecordState, Sight, Source, Step, Until, Via, WaitReason, look_ready,
};

use super::{
    Input, KEY, NOW, OTHER, before, foreign, had, holds_for, is_done, looked, record, retry, sealed, transfer,
    verified, waits_for, writes_attempt,
};

type Change = fn(&mut Input);

fn discard(id: &str, attempt: u32, why: DiscardReason) -> Deed {
    let id = id.to_owned();
    Deed::Discard { id, attempt, why }
}

fn old(attempt: u32) -> RecordSeen {
    RecordSeen {
        id: format!("{OTHER}-{attempt}"),
        key: OTHER.to_owned(),
        ..verified(attempt)
    }
}

fn ready(records: &[RecordSeen]) -> Input {
    Input::with(records).changed(|input| had(input, 2))
}

fn pinned(algorithm: Algorithm, hex: &str) -> Option<Pinned> {
    Some(Pinned {
        algorithm,
        hex: hex.to_owned(),
    })
}

#[test]
fn r20_a_record_that_status_does_not_know_of_is_written_first() {
    let input = Input::with(&[record(5, RecordState::Empty)]);
    writes_attempt(&input.step(), 5, AttemptReason::EarlierLife);
    let lost = Input::with(&[verified(1)]).changed(|input| input.kept = planning::image::Kept::default());
    writes_attempt(&lost.step(), 1, AttemptReason::EarlierLife);
}

#[test]
fn r20_a_content_that_comes_back_gets_a_number_of_its_own() {
    let input = Input::with(&[verified(1)]).changed(|input| input.kept.key = None);
    writes_attempt(&input.step(), 3, AttemptReason::EarlierLife);
}

#[test]
fn r21_beside_a_verified_image_no_other_of_its_content_stays() {
    let lower = ready(&[record(1, RecordState::Empty), verified(2)]);
    is_done(&lower.step(), &discard("wanted-1", 1, DiscardReason::Superseded));
    let later = ready(&[verified(2), record(3, RecordState::Empty)]).changed(|input| input.kept.attempt = 3);
    writes_attempt(&later.step(), 4, AttemptReason::Supersede);
}

#[test]
fn r22_the_image_of_another_content_goes_when_the_wanted_one_is_there() {
    let input = ready(&[old(1), verified(2)]);
    is_done(&input.step(), &discard("other-1", 1, DiscardReason::Superseded));
    let retained = input
        .clone()
        .changed(|input| input.wanted.deletion = DeletionPolicy::Retain);
    is_done(
        &retained.step(),
        &Deed::Relinquish {
            id: "other-1".to_owned(),
        },
    );
    let waits = Input::with(&[old(1), record(2, RecordState::Empty)]);
    is_done(&waits.step(), &transfer(2));
    let in_use = input.changed(|input| input.kept.retry = retry(DeedName::Discard, FailureClass::InUse, 30));
    let soon = NOW + Duration::from_secs(30);
    assert_eq!(in_use.step(), Step::Rest { look: soon });
}

#[test]
fn r23_options_that_differ_are_brought_in_line_once_in_ten_minutes() {
    let drift = vec![Drift {
        field: "min_disk".to_owned(),
        found: "0".to_owned(),
        wanted: "4".to_owned(),
    }];
    let input = ready(&[RecordSeen {
        drift: drift.clone(),
        ..verified(2)
    }]);
    let amend = Deed::Amend {
        id: "wanted-2".to_owned(),
    };
    is_done(&input.step(), &amend);
    let amended = |seconds| {
        let drift = drift.clone();
        input.clone().changed(|input| {
            let at = before(seconds);
            let refused = None;
            input.seen.amended = Some(Amended { drift, at, refused });
        })
    };
    assert!(matches!(amended(599).step(), Step::Rest { .. }));
    is_done(&amended(600).step(), &amend);
}

#[test]
fn r24_a_verified_image_is_left_alone_for_ten_minutes() {
    let look = before(1) + look_ready(KEY);
    assert_eq!(ready(&[verified(2)]).step(), Step::Rest { look });
    let records = vec![verified(2)];
    let due = ready(&[]).changed(|input| {
        let at = NOW.saturating_sub(look_ready(KEY));
        let others = Vec::new();
        input.seen.cloud = looked(Cloud { records, others }, at);
    });
    is_done(&due.step(), &Deed::Look);
}

#[test]
fn r24_no_verified_image_is_looked_at_within_ten_minutes_and_not_all_at_once() {
    let mut looks: Vec<Duration> = (0..100).map(|image| look_ready(&format!("image {image}"))).collect();
    looks.sort();
    assert!(
        looks[0] >= Duration::from_mins(10) && looks[99] <= Duration::from_mins(12),
        "{looks:?}"
    );
    assert!(looks[99] > looks[0] + Duration::from_secs(90), "{looks:?}");
}

#[test]
fn r24_a_mark_that_contradicts_the_digest_does_not_count() {
    let input = ready(&[verified(2)]).changed(|input| {
        input.wanted.digest = pinned(Algorithm::Sha256, "cc");
        input.kept.sealed = sealed(2, "aa");
    });
    writes_attempt(&input.step(), 3, AttemptReason::Mismatch);
}

#[test]
fn r24_a_mark_that_contradicts_the_first_use_does_not_count() {
    let mut changed = verified(2);
    changed.verified = Some("sha256:dd".to_owned());
    let step = ready(&[changed]).step();
    writes_attempt(&step, 3, AttemptReason::Unverifiable);
}

#[test]
fn r25_a_lower_attempt_goes_before_the_next_is_created() {
    let input = Input::with(&[record(1, RecordState::Spoilt)]);
    is_done(&input.step(), &discard("wanted-1", 1, DiscardReason::LowerAttempt));
    let rests = input.changed(|input| input.kept.retry = retry(DeedName::Discard, FailureClass::InUse, 30));
    waits_for(&rests.step(), WaitReason::InUse);
}

#[test]
fn r26_the_source_is_asked_before_anything_is_sent() {
    let input = Input::with(&[record(2, RecordState::Empty)]).changed(|input| input.seen.source = Sight::Unseen);
    is_done(&input.step(), &Deed::Probe);
}

#[test]
fn r27_a_source_that_does_not_answer_is_waited_for() {
    let input = Input::with(&[record(2, RecordState::Empty)]).changed(|input| {
        input.seen.source = Sight::Failed {
            failure: super::failure(FailureClass::SourceBroken),
            since: before(10),
            count: 1,
            next: NOW + Duration::from_secs(9),
        };
    });
    waits_for(&input.step(), WaitReason::Source);
}

#[test]
fn r28_an_image_is_built_in_a_job_and_nowhere_else() {
    let input = Input::with(&[record(2, RecordState::Empty)]).changed(|input| {
        input.wanted.build = Some(Duration::from_hours(2));
        input.seen.source = Sight::Unseen;
    });
    assert!(matches!(
        input.step(),
        Step::Do {
            deed: Deed::Build { .. },
            form: Form::Job
        }
    ));
    let in_process = input
        .clone()
        .changed(|input| input.wanted.execution = Execution::InProcess);
    holds_for(&in_process.step(), HaltReason::InvalidSpec);
    let off = input.changed(|input| {
        let why = "start the operator with --jobs".to_owned();
        input.seen.jobs = JobsSight::Off { why };
    });
    holds_for(&off.step(), HaltReason::JobsUnavailable);
    let Step::Hold(halt) = off.step() else {
        panic!("it is held")
    };
    assert!(
        halt.look.is_some_and(|look| look > NOW),
        "nobody tells that Jobs can be had"
    );
}

#[test]
fn r28_while_jobs_cannot_be_had_the_cloud_is_looked_at_as_often_as_at_rest() {
    for records in [Vec::new(), vec![record(2, RecordState::Empty)]] {
        let seen = |seconds| {
            let others = Vec::new();
            let records = records.clone();
            Input::with(&[]).changed(|input| {
                input.wanted.execution = Execution::Job;
                let why = "start the operator with --jobs".to_owned();
                input.seen.jobs = JobsSight::Off { why };
                input.seen.cloud = looked(Cloud { records, others }, before(seconds));
            })
        };
        let rests = look_ready(KEY).as_secs();
        holds_for(&seen(rests - 1).step(), HaltReason::JobsUnavailable);
        is_done(&seen(rests + 1).step(), &Deed::Look);
    }
}

#[test]
fn r24_an_image_that_was_built_anew_need_not_have_the_bytes_of_the_first() {
    let input = Input::with(&[verified(2)]).changed(|input| {
        input.kept.image = Some(planning::image::CloudImage {
            id: "wanted-1".to_owned(),
            name: "ubuntu".to_owned(),
            size_bytes: None,
            sha512: None,
            source_digest: Some(format!("sha256:{}", "0".repeat(64))),
            adopted: false,
        });
    });
    let is_had = |input: &Input| matches!(input.step(), Step::Record(Intent::Image { .. }));
    assert!(!is_had(&input), "what was trusted first is trusted");
    assert!(is_had(
        &input.changed(|input| input.wanted.build = Some(Duration::from_hours(2)))
    ));
}

#[test]
fn r29_an_empty_record_is_sent_the_bytes_again() {
    let input = Input::with(&[record(2, RecordState::Empty)]);
    is_done(&input.step(), &transfer(2));
    let job = input.changed(|input| input.wanted.execution = Execution::Job);
    assert!(matches!(job.step(), Step::Do { form: Form::Job, .. }));
}

#[test]
fn r29_the_cloud_fetches_what_it_can_and_what_can_be_verified() {
    let input = Input::with(&[record(2, RecordState::Empty)]).changed(|input| {
        input.wanted.via = Via::ServerSide;
        input.wanted.digest = pinned(Algorithm::Sha512, "aa");
        input.seen.abilities = Some(Abilities {
            server_side: true,
            staged: true,
        });
    });
    let import = Deed::Import {
        id: "wanted-2".to_owned(),
        attempt: 2,
    };
    is_done(&input.step(), &import);
    let changes: [Change; 6] = [
        |input| input.wanted.digest = None,
        |input| {
            let value = Source {
                packed: true,
                ..Source::default()
            };
            let (at, fresh) = (before(1), true);
            input.seen.source = Sight::Seen { value, at, fresh };
        },
        |input| input.wanted.compressed = true,
        |input| input.wanted.fetchable = false,
        |input| input.seen.abilities = None,
        |input| input.kept.imports_failed = 2,
    ];
    for change in changes {
        is_done(&input.clone().changed(change).step(), &transfer(2));
    }
    is_done(
        &input.clone().changed(|input| input.kept.imports_failed = 1).step(),
        &import,
    );
    let staged = input.changed(|input| input.wanted.via = Via::Staged);
    assert!(matches!(
        staged.step(),
        Step::Do {
            deed: Deed::Transfer { staged: true, .. },
            ..
        }
    ));
    let failed = |times| staged.clone().changed(|input| input.kept.imports_failed = times);
    is_done(&failed(2).step(), &transfer(2));
    assert_eq!(failed(1).step(), staged.step());
}

/// A record of an attempt that went by a stage.
fn by_stage(record: RecordSeen) -> Input {
    Input::with(&[record]).changed(|input| {
        input.wanted.via = Via::Staged;
        input.kept.sealed = sealed(2, "aa");
        input.seen.abilities = Some(Abilities {
            server_side: true,
            staged: true,
        });
    })
}

/// A whole image that the cloud says to be raw, where qcow2 was asked for.
fn converted(via: Via) -> Input {
    let made = RecordSeen {
        format: Some("raw".to_owned()),
        sha512: Some("cc".to_owned()),
        size: Some(1000),
        ..record(2, RecordState::Whole)
    };
    by_stage(made).changed(|input| {
        input.wanted.via = via;
        input.wanted.format = Some("qcow2".to_owned());
    })
}

#[test]
fn r35_what_a_cloud_converts_off_its_stage_counts_by_what_was_sent() {
    let staged = converted(Via::Staged);
    let publishing = Intent::Publishing {
        id: "wanted-2".to_owned(),
        attempt: 2,
    };
    assert_eq!(staged.step(), Step::Record(publishing));
    let noted = staged.changed(|input| input.kept.publishing = Some("wanted-2".to_owned()));
    let source = noted.kept.sealed.as_ref().expect("a seal").source_digest.clone();
    let publish = Deed::Publish {
        id: "wanted-2".to_owned(),
        attempt: 2,
        verified: source,
    };
    is_done(&noted.step(), &publish);
    // What came to the stage must be what was promised, and all of it.
    let other = noted
        .clone()
        .changed(|input| input.wanted.digest = pinned(Algorithm::Sha256, "dd"));
    writes_attempt(&other.step(), 3, AttemptReason::ImportFailed);
    let unsealed = noted.changed(|input| input.kept.sealed = None);
    writes_attempt(&unsealed.step(), 3, AttemptReason::ImportFailed);
}

#[test]
fn r35_another_format_is_another_image_where_nobody_asked_for_it() {
    for (via, why) in [
        (Via::Auto, AttemptReason::Mismatch),
        (Via::Upload, AttemptReason::Mismatch),
        (Via::ServerSide, AttemptReason::Mismatch),
    ] {
        // Not even with the right digest.
        let same = converted(via).changed(|input| {
            let Sight::Seen { value, .. } = &mut input.seen.cloud else {
                panic!("the cloud was seen");
            };
            value.records[0].sha512 = Some("aa".to_owned());
            value.records[0].size = Some(100);
        });
        writes_attempt(&same.step(), 3, why);
        let named = same.changed(|input| input.wanted.format = Some("raw".to_owned()));
        assert!(
            matches!(named.step(), Step::Record(Intent::Publishing { .. })),
            "{via:?}"
        );
    }
    let fetched = converted(Via::ServerSide).changed(|input| input.kept.sealed = None);
    writes_attempt(&fetched.step(), 3, AttemptReason::ImportFailed);
}

#[test]
fn r29_what_does_not_come_off_its_stage_is_sent_the_next_time() {
    for state in [RecordState::Spoilt, RecordState::Dead] {
        writes_attempt(&by_stage(record(2, state)).step(), 3, AttemptReason::ImportFailed);
    }
    let staged = RecordSeen {
        moved: before(61),
        ..record(2, RecordState::Receiving)
    };
    writes_attempt(&by_stage(staged).step(), 3, AttemptReason::ImportStalled);
    let changed = RecordSeen {
        sha512: Some("cc".to_owned()),
        ..record(2, RecordState::Whole)
    };
    writes_attempt(&by_stage(changed).step(), 3, AttemptReason::ImportFailed);
    let id = "wanted-2".to_owned();
    let as_it_was = by_stage(record(2, RecordState::Whole)).step();
    assert_eq!(as_it_was, Step::Record(Intent::Publishing { id, attempt: 2 }));
}

#[test]
fn r29_what_is_built_is_sent_and_judged_as_sent_whatever_way_is_asked_for() {
    for via in [Via::Staged, Via::ServerSide] {
        let built = |record| {
            by_stage(record).changed(|input| {
                input.wanted.via = via;
                input.wanted.build = Some(Duration::from_hours(2));
                input.wanted.digest = pinned(Algorithm::Sha512, "bb");
            })
        };
        for state in [RecordState::Spoilt, RecordState::Dead] {
            let unsealed = built(record(2, state)).changed(|input| input.kept.sealed = None);
            writes_attempt(&unsealed.step(), 3, AttemptReason::Spoilt);
        }
        let stored = |seconds| {
            let moved = before(seconds);
            let state = RecordState::Receiving;
            built(RecordSeen {
                moved,
                ..record(2, state)
            })
        };
        let wait = waits_for(&stored(900).step(), WaitReason::ForeignTransfer);
        assert_eq!(wait.message, "all bytes were sent, and the cloud stores them");
        writes_attempt(&stored(901).step(), 3, AttemptReason::Stalled);
        let changed = RecordSeen {
            sha512: Some("cc".to_owned()),
            ..record(2, RecordState::Whole)
        };
        writes_attempt(&built(changed).step(), 3, AttemptReason::Mismatch);
        let converted = RecordSeen {
            format: Some("raw".to_owned()),
            ..record(2, RecordState::Whole)
        };
        let unsealed = built(converted).changed(|input| {
            input.wanted.format = Some("qcow2".to_owned());
            input.kept.sealed = None;
        });
        writes_attempt(&unsealed.step(), 3, AttemptReason::Mismatch);
    }
}

#[test]
fn r30_a_spoilt_record_gets_the_next_attempt_written_before_it_is_discarded() {
    for state in [RecordState::Spoilt, RecordState::Dead] {
        writes_attempt(&Input::with(&[record(2, state)]).step(), 3, AttemptReason::Spoilt);
    }
}

#[test]
fn r31_a_record_that_does_not_go_is_passed_over_after_five_minutes() {
    let going = |seconds| RecordSeen {
        first_seen: before(seconds),
        ..record(2, RecordState::Going)
    };
    waits_for(&Input::with(&[going(300)]).step(), WaitReason::Going);
    writes_attempt(&Input::with(&[going(301)]).step(), 3, AttemptReason::Lingers);
    let lower = Input::with(&[going(301)]).changed(|input| input.kept.attempt = 3);
    assert!(matches!(
        lower.step(),
        Step::Do {
            deed: Deed::Create { attempt: 3, .. },
            ..
        }
    ));
}

#[test]
fn r32_bytes_of_somebody_else_are_waited_for_a_minute() {
    let receiving = |seconds| RecordSeen {
        moved: before(seconds),
        ..record(2, RecordState::Receiving)
    };
    let wait = waits_for(&Input::with(&[receiving(60)]).step(), WaitReason::ForeignTransfer);
    assert!(matches!(wait.until, Until::At(_)) && wait.look.is_some());
    writes_attempt(&Input::with(&[receiving(61)]).step(), 3, AttemptReason::Stalled);
}

/// The source has said that it gives so many bytes.
fn gives(input: &mut Input, bytes: u64) {
    let value = Source {
        size: Some(bytes),
        ..Source::default()
    };
    let (at, fresh) = (before(1), true);
    input.seen.source = Sight::Seen { value, at, fresh };
}

#[test]
fn r33_who_did_not_begin_an_import_asks_how_much_it_is() {
    let importing = |seconds, size| {
        let record = RecordSeen {
            size,
            first_seen: before(seconds),
            ..record(2, RecordState::Importing)
        };
        Input::with(&[record]).changed(|input| input.seen.source = Sight::Unseen)
    };
    is_done(&importing(10, None).step(), &Deed::Probe);
    waits_for(&importing(10, Some(100)).step(), WaitReason::Importing);
    let said = importing(10, None).changed(|input| input.seen.import_patience = Some(Duration::from_mins(5)));
    waits_for(&said.step(), WaitReason::Importing);
    let silent = importing(10, None).changed(|input| {
        input.seen.source = Sight::Failed {
            failure: super::failure(FailureClass::SourceBroken),
            since: before(1),
            count: 1,
            next: NOW,
        };
    });
    waits_for(&silent.step(), WaitReason::Importing);
    writes_attempt(&importing(901, None).step(), 3, AttemptReason::ImportStalled);
}

#[test]
fn r33_an_import_has_a_quarter_of_an_hour_and_the_time_its_size_takes() {
    let importing = |seconds, bytes| {
        let record = RecordSeen {
            first_seen: before(seconds),
            ..record(2, RecordState::Importing)
        };
        Input::with(&[record]).changed(|input| gives(input, bytes))
    };
    waits_for(&importing(900, 0).step(), WaitReason::Importing);
    writes_attempt(&importing(901, 0).step(), 3, AttemptReason::ImportStalled);
    waits_for(&importing(901, 200 * 1024 * 1024).step(), WaitReason::Importing);
}

#[test]
fn r33_an_import_has_as_long_as_somebody_said() {
    let importing = |seconds| {
        let record = RecordSeen {
            first_seen: before(seconds),
            ..record(2, RecordState::Importing)
        };
        Input::with(&[record]).changed(|input| {
            gives(input, 200 * 1024 * 1024);
            input.seen.import_patience = Some(Duration::from_mins(5));
        })
    };
    waits_for(&importing(300).step(), WaitReason::Importing);
    writes_attempt(&importing(301).step(), 3, AttemptReason::ImportStalled);
}

#[test]
fn r34_what_is_shown_is_written_first() {
    let input = Input::with(&[record(2, RecordState::Whole)]).changed(|input| input.kept.sealed = sealed(2, "aa"));
    let id = "wanted-2".to_owned();
    assert_eq!(
        input.step(),
        Step::Record(Intent::Publishing {
            id: id.clone(),
            attempt: 2
        })
    );
    let written = input.changed(|input| input.kept.publishing = Some(id.clone()));
    let verified = "sha256:bb".to_owned();
    is_done(
        &written.step(),
        &Deed::Publish {
            id,
            attempt: 2,
            verified,
        },
    );
}

#[test]
fn r34_an_image_that_the_cloud_fetched_is_compared_with_the_pinned_sha512() {
    let input = Input::with(&[record(2, RecordState::Whole)])
        .changed(|input| input.wanted.digest = pinned(Algorithm::Sha512, "aa"));
    assert!(matches!(input.step(), Step::Record(Intent::Publishing { .. })));
}

#[test]
fn r35_an_image_that_differs_is_never_shown() {
    let input = Input::with(&[record(2, RecordState::Whole)]).changed(|input| {
        input.kept.sealed = sealed(2, "ee");
        input.kept.publishing = Some("wanted-2".to_owned());
    });
    writes_attempt(&input.step(), 3, AttemptReason::Mismatch);
    let longer = input.changed(|input| {
        input.kept.sealed = sealed(2, "aa").map(|sealed| planning::image::Sealed { bytes: 101, ..sealed });
    });
    writes_attempt(&longer.step(), 3, AttemptReason::Mismatch);
}

#[test]
fn r36_what_cannot_be_compared_is_read_back() {
    let whole = record(2, RecordState::Whole);
    let with = |read_back| {
        let record = RecordSeen {
            read_back,
            ..whole.clone()
        };
        Input::with(&[record]).changed(|input| input.wanted.digest = pinned(Algorithm::Sha256, "bb"))
    };
    let deed = Deed::ReadBack {
        id: "wanted-2".to_owned(),
        attempt: 2,
    };
    is_done(&with(None).step(), &deed);
    let found = |sha256: &str| {
        with(Some(ReadBack::Found {
            sha256: sha256.to_owned(),
            sha512: "aa".to_owned(),
            bytes: 100,
        }))
    };
    assert!(matches!(found("bb").step(), Step::Record(Intent::Publishing { .. })));
    writes_attempt(&found("cc").step(), 3, AttemptReason::Mismatch);
}

#[test]
fn r37_what_nobody_can_tell_about_is_made_anew() {
    let record = RecordSeen {
        read_back: Some(ReadBack::Refused),
        ..record(2, RecordState::Whole)
    };
    let refused = Input::with(std::slice::from_ref(&record))
        .changed(|input| input.wanted.digest = pinned(Algorithm::Sha256, "bb"));
    writes_attempt(&refused.step(), 3, AttemptReason::Unverifiable);
    let without_seal = Input::with(&[RecordSeen {
        read_back: None,
        ..record
    }]);
    writes_attempt(&without_seal.step(), 3, AttemptReason::Unverifiable);
}

#[test]
fn r38_an_image_that_an_admin_withdrew_is_left_to_the_admin() {
    let current = Input::with(&[record(2, RecordState::Withdrawn)]);
    assert!(waits_for(&current.step(), WaitReason::Deactivated).look.is_some());
    let lower = RecordSeen {
        state: RecordState::Withdrawn,
        ..verified(1)
    };
    waits_for(&Input::with(&[lower]).step(), WaitReason::Deactivated);
}

#[test]
fn r32_what_was_sent_as_a_whole_has_the_time_that_its_size_takes_to_be_stored() {
    let receiving = |seconds, sealed: Option<planning::image::Sealed>| {
        let record = RecordSeen {
            moved: before(seconds),
            ..record(2, RecordState::Receiving)
        };
        Input::with(&[record]).changed(|input| input.kept.sealed = sealed)
    };
    let large = |attempt| {
        sealed(attempt, "aa").map(|sealed| planning::image::Sealed {
            bytes: 600 * 2 * 1024 * 1024,
            ..sealed
        })
    };
    let wait = waits_for(&receiving(1500, large(2)).step(), WaitReason::ForeignTransfer);
    assert_eq!(wait.message, "all bytes were sent, and the cloud stores them");
    writes_attempt(&receiving(1501, large(2)).step(), 3, AttemptReason::Stalled);
    writes_attempt(&receiving(61, large(1)).step(), 3, AttemptReason::Stalled);
}

#[test]
fn r35_what_a_cloud_fetched_and_changed_is_sent_in_the_end() {
    let fetched = || {
        Input::with(&[record(2, RecordState::Whole)]).changed(|input| {
            input.wanted.via = Via::ServerSide;
            input.wanted.digest = pinned(Algorithm::Sha512, "cc");
        })
    };
    writes_attempt(&fetched().step(), 3, AttemptReason::ImportFailed);
    let sent = fetched().changed(|input| input.kept.sealed = sealed(2, "cc"));
    writes_attempt(&sent.step(), 3, AttemptReason::Mismatch);
}

/// A whole image of ours, beside one of this project with the same name.
fn beside_a_stranger(policy: ImagePolicy) -> Input {
    Input::with(&[record(2, RecordState::Whole)]).changed(|input| {
        input.wanted.policy = policy;
        input.kept.sealed = sealed(2, "aa");
        let records = vec![record(2, RecordState::Whole)];
        let others = vec![foreign("theirs")];
        input.seen.cloud = looked(Cloud { records, others }, before(1));
    })
}

#[test]
fn r34_nothing_is_shown_under_a_name_that_was_taken_meanwhile() {
    let taken = beside_a_stranger(ImagePolicy::Create);
    holds_for(&taken.step(), HaltReason::NameTaken);
    let about_to = taken.changed(|input| input.kept.publishing = Some("wanted-2".to_owned()));
    holds_for(&about_to.step(), HaltReason::NameTaken);
    let if_missing = beside_a_stranger(ImagePolicy::IfMissing);
    writes_attempt(&if_missing.step(), 3, AttemptReason::Supersede);
}
