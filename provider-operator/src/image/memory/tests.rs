//! When what was seen still says something.

use planning::image::{DiscardReason, Done, StopReason};
use provider_plugin::{ContentKey, ImageId, Observed, Record};

use super::*;
use crate::stand_ins::{Clay, image, object};

const NOW: Duration = Duration::from_secs(100);

fn basis(generation: i64) -> Basis {
    Basis {
        key: "a".repeat(64),
        generation,
        ..Basis::default()
    }
}

fn memory() -> ImageMemory {
    let mut memory = ImageMemory::default();
    memory.hear(basis(1));
    memory
}

fn ended(deed: Deed, outcome: Result<Done, Failure>) -> Op {
    Op {
        deed,
        key: "a".repeat(64),
        form: Form::InProcess,
        state: OpState::Ended { outcome, at: NOW },
    }
}

fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        message: "no".to_owned(),
        request_id: None,
        retry_after: None,
        quota: None,
    }
}

fn saw(records: Vec<Record>) -> Found {
    Found {
        observed: Some(Observed {
            records,
            others: Vec::new(),
        }),
        ..Found::default()
    }
}

fn verified() -> Record {
    Record {
        id: ImageId("one".to_owned()),
        key: ContentKey::parse(&"a".repeat(64)).expect("a key"),
        attempt: 1,
        holder: asked(false).owner,
        state: provider_plugin::RecordState::Whole,
        size: None,
        sha512: None,
        format: None,
        verified: Some("sha256:00".to_owned()),
        shown: true,
        drift: Vec::new(),
        marker: String::new(),
    }
}

fn asked(others: bool) -> Subject {
    Subject {
        look_for_others: others,
        ..image(&object("fleet", "ubuntu")).subject
    }
}

fn look(memory: &mut ImageMemory, found: &Found) {
    let others = memory.looks_for_others();
    memory.begin(&Deed::Look, &asked(others));
    assert!(memory.end(&ended(Deed::Look, Ok(Done::Looked)), found, NOW));
}

fn is_fresh(memory: &ImageMemory) -> bool {
    matches!(memory.cloud, Sight::Seen { fresh: true, .. })
}

#[test]
fn every_deed_but_looking_makes_another_look_necessary() {
    let id = || "one".to_owned();
    let attempt = 1;
    let staged = false;
    for (deed, stays) in [
        (Deed::Look, true),
        (Deed::Probe, true),
        (Deed::Create { attempt, id: None }, false),
        (
            Deed::Transfer {
                id: id(),
                attempt,
                staged,
            },
            false,
        ),
        (Deed::Import { id: id(), attempt }, false),
        (Deed::ReadBack { id: id(), attempt }, false),
        (Deed::Amend { id: id() }, false),
        (Deed::Relinquish { id: id() }, false),
    ] {
        let mut memory = memory();
        look(&mut memory, &saw(Vec::new()));
        assert!(is_fresh(&memory));
        memory.begin(&deed, &asked(true));
        assert_eq!(is_fresh(&memory), stays, "{deed:?} begins");
        look(&mut memory, &saw(Vec::new()));
        memory.begin(&Deed::Probe, &asked(true));
        // Whatever was begun: it is what ended that counts.
        memory.end(
            &ended(deed.clone(), Err(failure(FailureClass::Unknown))),
            &Found::default(),
            NOW,
        );
        assert_eq!(is_fresh(&memory), deed == Deed::Probe, "{deed:?} ends");
    }
}

#[test]
fn what_was_seen_says_nothing_once_something_else_is_asked_for() {
    let mut memory = memory();
    look(&mut memory, &saw(Vec::new()));
    memory.hear(basis(1));
    assert!(is_fresh(&memory));
    memory.hear(basis(2));
    assert!(!is_fresh(&memory));
    // A look that began before the edit.
    memory.begin(&Deed::Look, &asked(true));
    memory.hear(basis(3));
    memory.end(&ended(Deed::Look, Ok(Done::Looked)), &saw(Vec::new()), NOW);
    assert!(!is_fresh(&memory));
}

#[test]
fn what_could_not_be_taken_over_is_left_alone_for_a_while_or_until_something_else_is_asked_for() {
    let held = |held| Found {
        held,
        ..saw(Vec::new())
    };
    let mut memory = memory();
    assert!(memory.holds(NOW));
    look(&mut memory, &held(Some(false)));
    // A look that did not try says nothing of it.
    look(&mut memory, &held(None));
    assert!(!memory.holds(NOW + HELD_AGAIN / 2) && memory.holds(NOW + HELD_AGAIN));
    memory.hear(basis(2));
    assert!(memory.holds(NOW));
    look(&mut memory, &held(Some(false)));
    look(&mut memory, &held(Some(true)));
    assert!(memory.holds(NOW));
}

#[test]
fn what_another_installation_has_taken_back_is_left_with_it_until_something_else_is_asked_for() {
    let taken = Found {
        held: Some(true),
        ..saw(Vec::new())
    };
    let mut memory = memory();
    look(&mut memory, &taken);
    assert!(memory.holds(NOW), "it was left behind there");
    look(&mut memory, &taken);
    assert!(
        !memory.holds(NOW + 9 * HELD_AGAIN),
        "they would take it from each other at each look"
    );
    memory.hear(basis(2));
    assert!(memory.holds(NOW));
}

#[test]
fn the_image_before_is_known_by_its_id_until_it_is_discarded() {
    let id = |id: &str| Some(ImageId(id.to_owned()));
    let mut memory = memory();
    // An earlier process has made it, and status says so for the last time.
    assert_eq!(memory.known(id("a"), 1), [id("a"), None]);
    let make = |memory: &mut ImageMemory, attempt, made: &str| {
        let deed = Deed::Create { attempt, id: None };
        memory.begin(&deed, &asked(true));
        let done = Done::Created { id: made.to_owned() };
        memory.end(&ended(deed, Ok(done)), &Found::default(), NOW);
    };
    let discard = |memory: &mut ImageMemory, attempt, gone: &str| {
        let why = DiscardReason::LowerAttempt;
        let deed = Deed::Discard {
            id: gone.to_owned(),
            attempt,
            why,
        };
        memory.begin(&deed, &asked(true));
        memory.end(&ended(deed, Ok(Done::Discarded)), &Found::default(), NOW);
    };
    make(&mut memory, 2, "b");
    assert_eq!(memory.known(None, 2), [id("b"), id("a")]);
    discard(&mut memory, 2, "b");
    make(&mut memory, 3, "c");
    assert_eq!(
        memory.known(None, 3),
        [id("c"), id("a")],
        "an attempt that failed hides nothing"
    );
    assert_eq!(memory.known(id("c"), 3), [id("c"), id("a")]);
    discard(&mut memory, 1, "a");
    assert_eq!(memory.known(id("c"), 3), [id("c"), None]);
}

#[test]
fn an_end_is_taken_once() {
    let mut memory = memory();
    look(&mut memory, &saw(Vec::new()));
    let again = ended(Deed::Look, Err(failure(FailureClass::Unavailable)));
    assert!(!memory.end(&again, &Found::default(), NOW));
    assert!(is_fresh(&memory));
}

#[test]
fn looks_that_fail_come_ever_more_seldom_and_stopped_ones_do_not_count() {
    let mut memory = memory();
    let mut next = |class| {
        memory.begin(&Deed::Look, &asked(true));
        memory.end(&ended(Deed::Look, Err(failure(class))), &Found::default(), NOW);
        match &memory.cloud {
            Sight::Failed { count, next, .. } => Some((*count, next.saturating_sub(NOW).as_secs())),
            _ => None,
        }
    };
    assert_eq!(next(FailureClass::Unavailable), Some((1, 1)));
    assert_eq!(next(FailureClass::Unavailable), Some((2, 2)));
    let why = StopReason::Draining;
    assert_eq!(next(FailureClass::Stopped { why }), None);
}

#[test]
fn a_cloud_that_could_not_even_be_asked_is_looked_at_as_soon_as_it_can_be() {
    let mut memory = memory();
    let connection = Arc::new(Clay::default()).connection("east", "uid/1");
    memory.refuse(&failure(FailureClass::Permission), NOW);
    assert!(matches!(memory.cloud, Sight::Failed { .. }));
    memory.opened(&connection);
    assert_eq!(memory.cloud, Sight::Unseen);
    // What the cloud itself said holds for as long as it does.
    memory.begin(&Deed::Look, &asked(true));
    let denied = Err(failure(FailureClass::Permission));
    memory.end(&ended(Deed::Look, denied), &Found::default(), NOW);
    memory.opened(&connection);
    assert!(matches!(memory.cloud, Sight::Failed { .. }));
}

#[test]
fn images_of_others_are_looked_for_unless_ours_is_there() {
    let mut memory = memory();
    assert!(memory.looks_for_others());
    look(&mut memory, &saw(vec![verified()]));
    assert!(!memory.looks_for_others() && is_fresh(&memory));
    look(&mut memory, &saw(Vec::new()));
    assert!(!is_fresh(&memory), "ours is gone, and nobody looked for others");
    assert!(memory.looks_for_others());
    look(&mut memory, &saw(Vec::new()));
    assert!(is_fresh(&memory));
}

#[test]
fn nobody_looks_for_images_of_others_for_the_sake_of_what_is_to_go() {
    let mut memory = memory();
    memory.hear(Basis { goes: true, ..basis(2) });
    assert!(!memory.looks_for_others());
    look(&mut memory, &saw(Vec::new()));
    assert!(is_fresh(&memory), "there is no more to look for");
    memory.begin(&Deed::Look, &asked(false));
    let away = Err(failure(FailureClass::Unavailable));
    memory.end(&ended(Deed::Look, away), &Found::default(), NOW);
    assert!(!memory.looks_for_others());
}

#[test]
fn an_image_of_another_content_says_nothing_of_whose_the_new_name_is() {
    let mut memory = memory();
    look(&mut memory, &saw(vec![verified()]));
    assert!(is_fresh(&memory) && !memory.looks_for_others());
    memory.hear(Basis {
        key: "b".repeat(64),
        ..basis(2)
    });
    assert!(memory.looks_for_others(), "the image that is there has the old name");
    memory.begin(&Deed::Look, &asked(false));
    assert!(memory.end(&ended(Deed::Look, Ok(Done::Looked)), &saw(vec![verified()]), NOW));
    assert!(!is_fresh(&memory), "nobody looked who has the new name");
}

#[test]
fn of_a_verified_image_no_more_is_looked_at_than_itself_until_something_happens() {
    let (one, hour) = (ImageId("one".to_owned()), Duration::from_hours(1));
    let mut memory = memory();
    let enough = |memory: &ImageMemory, after| memory.needs_only(Some(&one), NOW + after);
    assert!(!enough(&memory, Duration::ZERO), "nothing was seen");
    look(&mut memory, &saw(vec![verified()]));
    assert!(enough(&memory, Duration::ZERO));
    assert!(!memory.needs_only(None, NOW) && !memory.needs_only(Some(&ImageId("two".to_owned())), NOW));
    assert!(!enough(&memory, hour), "what came beside it is seen within an hour");
    // Seeing itself does not put that off, and what is not as it was is not enough to know.
    let sees_one = Subject {
        only_recorded: true,
        ..asked(false)
    };
    memory.begin(&Deed::Look, &sees_one);
    let op = ended(Deed::Look, Ok(Done::Looked));
    assert!(memory.end(&op, &saw(vec![verified()]), NOW + Duration::from_mins(59)));
    assert!(enough(&memory, Duration::from_mins(59)) && !enough(&memory, hour));
    memory.begin(&Deed::Look, &sees_one);
    let withdrawn = Record {
        state: provider_plugin::RecordState::Withdrawn,
        ..verified()
    };
    assert!(memory.end(&op, &saw(vec![withdrawn.clone()]), NOW));
    assert!(!is_fresh(&memory) && !enough(&memory, Duration::ZERO));

    let rival = Record {
        id: ImageId("two".to_owned()),
        ..verified()
    };
    for records in [vec![withdrawn], vec![verified(), rival]] {
        look(&mut memory, &saw(records.clone()));
        look(&mut memory, &saw(records));
        assert!(is_fresh(&memory) && !enough(&memory, Duration::ZERO));
    }
    look(&mut memory, &saw(vec![verified()]));
    memory.begin(&Deed::Amend { id: one.0.clone() }, &asked(false));
    assert!(!enough(&memory, Duration::ZERO), "something of ours is under way");
    look(&mut memory, &saw(vec![verified()]));
    memory.hear(basis(2));
    assert!(!enough(&memory, Duration::ZERO), "something else is asked for");
}

#[test]
fn what_was_made_is_remembered_and_counted_until_a_look_has_shown_it() {
    let mut memory = memory();
    let deed = || Deed::Create { attempt: 1, id: None };
    let id = || "one".to_owned();
    for (times, done) in [(1, Done::Created { id: id() }), (2, Done::Ours { id: id() })] {
        memory.begin(&deed(), &asked(true));
        assert!(memory.end(&ended(deed(), Ok(done)), &Found::default(), NOW));
        look(&mut memory, &saw(Vec::new()));
        assert_eq!(memory.unshown.as_ref().map(|unshown| unshown.times), Some(times));
    }
    assert_eq!((memory.made(1), memory.made(2)), (Some(ImageId(id())), None));
    look(&mut memory, &saw(vec![verified()]));
    assert_eq!(memory.unshown, None);
    assert!(memory.made(1).is_some(), "the next list need not show it");
}

#[test]
fn a_source_that_failed_is_asked_anew() {
    let mut memory = memory();
    memory.begin(&Deed::Probe, &asked(true));
    let found = Found {
        source: Some(Source::default()),
        ..Found::default()
    };
    memory.end(&ended(Deed::Probe, Ok(Done::Probed)), &found, NOW);
    assert!(matches!(memory.source, Sight::Seen { fresh: true, .. }));
    let deed = Deed::Transfer {
        id: "one".to_owned(),
        attempt: 1,
        staged: false,
    };
    memory.begin(&deed, &asked(true));
    let broke = Err(failure(FailureClass::SourceChanged));
    memory.end(&ended(deed, broke), &Found::default(), NOW);
    assert_eq!(memory.source, Sight::Unseen);
}

#[test]
fn the_end_of_a_job_that_was_only_found_is_taken_once_and_makes_another_look_necessary() {
    let mut memory = memory();
    look(&mut memory, &saw(Vec::new()));
    let deed = Deed::Transfer {
        id: "one".to_owned(),
        attempt: 1,
        staged: false,
    };
    let found = Op {
        form: Form::Job,
        ..ended(deed.clone(), Ok(Done::Sent))
    };
    assert!(memory.end(&found, &Found::default(), NOW));
    assert!(!is_fresh(&memory));
    look(&mut memory, &saw(Vec::new()));
    memory.begin(&deed, &asked(true));
    let failed = Op {
        form: Form::Job,
        ..ended(deed, Err(failure(FailureClass::Unknown)))
    };
    // One that was begun is no other.
    assert!(memory.end(&failed, &Found::default(), NOW));
    look(&mut memory, &saw(Vec::new()));
    assert!(!memory.end(&failed, &Found::default(), NOW) && is_fresh(&memory));
}
