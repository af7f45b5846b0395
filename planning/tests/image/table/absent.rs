//! Rules 39 to 45: none of ours is there.

use std::time::Duration;

use planning::image::{
    Algorithm, AttemptReason, Deed, FailureClass, ForeignSeen, HaltReason, ImagePolicy, Intent, Kept, Pinned, Sight,
    Step, Unshown, WaitReason, look_ready,
};

use super::{Input, NOW, OTHER, before, failure, foreign, holds_for, input, is_done, waits_for, writes_attempt};

fn adopting(others: &[ForeignSeen]) -> Input {
    Input::among(others).changed(|input| {
        input.wanted.policy = ImagePolicy::Adopt;
        input.kept = Kept::default();
    })
}

fn sha512(hex: &str) -> Option<Pinned> {
    Some(Pinned {
        algorithm: Algorithm::Sha512,
        hex: hex.to_owned(),
    })
}

#[test]
fn r39_an_image_that_is_asked_for_and_not_there_is_looked_for_each_minute() {
    let wait = waits_for(&adopting(&[]).step(), WaitReason::ImageNotFound);
    assert_eq!(wait.look, Some(before(1) + Duration::from_mins(1)));
}

#[test]
fn r39_several_images_of_a_name_are_told_apart_by_the_user_alone() {
    let several = adopting(&[foreign("one"), foreign("two")]);
    holds_for(&several.step(), HaltReason::Ambiguous);
    let asked = several.changed(|input| input.wanted.adopt = Some("two".to_owned()));
    assert!(matches!(asked.step(), Step::Record(Intent::Image { image }) if image.id == "two"));
}

#[test]
fn r39_an_image_with_other_bytes_than_promised_is_not_used() {
    let differs = adopting(&[foreign("one")]).changed(|input| input.wanted.digest = sha512("ff"));
    holds_for(&differs.step(), HaltReason::SourceMismatch);
}

/// What lies under a name in a registry.
fn named(digit: char) -> ForeignSeen {
    let digest = format!("sha256:{}", digit.to_string().repeat(64));
    ForeignSeen {
        sha512: None,
        digest: Pinned::parse(&digest),
        ..foreign(&format!("registry.example/node@{digest}"))
    }
}

#[test]
fn r39_the_digest_by_which_an_image_is_named_is_held_against_the_specs() {
    let asks = |digit: char| {
        adopting(&[named('a')]).changed(|input| {
            input.wanted.digest = Pinned::parse(&format!("sha256:{}", digit.to_string().repeat(64)));
        })
    };
    assert!(
        matches!(asks('a').step(), Step::Record(Intent::Image { image }) if image.source_digest == asks('a').wanted.digest.map(|digest| digest.to_string()))
    );
    let differs = asks('b').step();
    holds_for(&differs, HaltReason::SourceMismatch);
    let looks = matches!(differs, Step::Hold(halt) if halt.look == Some(before(1) + Duration::from_mins(1)));
    assert!(looks, "somebody else puts it right, and nobody tells");
}

#[test]
fn r39_the_image_that_was_found_first_under_a_name_is_the_one_that_is_trusted() {
    let first = adopting(&[named('a')]);
    let kept = planning::image::after(
        &first.step(),
        &first.wanted,
        &first.kept,
        &first.seen,
        None,
        Input::now(),
    );
    let later = |digit| {
        let kept = kept.clone();
        adopting(&[named(digit)]).changed(|input| input.kept = kept)
    };
    assert!(matches!(later('a').step(), Step::Rest { .. }));
    holds_for(&later('b').step(), HaltReason::SourceMismatch);
    let pinned = later('b').changed(|input| input.wanted.digest = named('b').digest);
    assert!(matches!(pinned.step(), Step::Record(Intent::Image { .. })));
    let other_wish = later('b').changed(|input| input.kept.key = Some(OTHER.to_owned()));
    assert!(matches!(other_wish.step(), Step::Record(Intent::Forget)));
}

#[test]
fn nothing_is_deleted_where_nothing_is_ever_made() {
    let away = adopting(&[]).changed(|input| {
        input.wanted.deleting = Some(super::earlier(1));
        input.wanted.identity = None;
        input.seen.cloud = Sight::Unseen;
    });
    assert!(!matches!(away.step(), Step::Finish { .. }));
    let only_looked_for = away.changed(|input| input.wanted.made_by_others = true);
    assert!(matches!(only_looked_for.step(), Step::Finish { left_behind } if left_behind.is_empty()));
}

#[test]
fn r39_an_adopted_image_is_written_once_and_left_alone() {
    let input = adopting(&[foreign("one")]);
    let step = input.step();
    assert!(
        matches!(&step, Step::Record(Intent::Image { image }) if image.adopted),
        "{step:?}"
    );
    let kept = planning::image::after(&step, &input.wanted, &input.kept, &input.seen, None, Input::now());
    let written = input.changed(|input| input.kept = kept);
    assert!(matches!(written.step(), Step::Rest { .. }));
}

#[test]
fn r40_an_image_that_is_missing_is_made() {
    let if_missing =
        |others: &[ForeignSeen]| Input::among(others).changed(|input| input.wanted.policy = ImagePolicy::IfMissing);
    assert!(matches!(
        if_missing(&[foreign("one")]).step(),
        Step::Record(Intent::Image { .. })
    ));
    assert!(matches!(
        if_missing(&[]).step(),
        Step::Do {
            deed: Deed::Create { .. },
            ..
        }
    ));
    let elsewhere = ForeignSeen {
        of_our_project: false,
        ..foreign("one")
    };
    let differs = if_missing(&[elsewhere]).changed(|input| input.wanted.digest = sha512("ff"));
    assert!(matches!(
        differs.step(),
        Step::Do {
            deed: Deed::Create { .. },
            ..
        }
    ));
}

/// What another project gives to everybody in the cloud.
fn given(id: &str) -> ForeignSeen {
    ForeignSeen {
        of_our_project: false,
        of_community: true,
        ..foreign(id)
    }
}

fn if_missing(others: &[ForeignSeen]) -> Input {
    Input::among(others).changed(|input| input.wanted.policy = ImagePolicy::IfMissing)
}

#[track_caller]
fn uses(step: &Step, expected: &str) {
    assert!(
        matches!(step, Step::Record(Intent::Image { image }) if image.id == expected),
        "{step:?}"
    );
}

#[track_caller]
fn makes_one(step: &Step) {
    let deed = Deed::Create { attempt: 2, id: None };
    is_done(step, &deed);
}

#[test]
fn r39_what_anybody_may_have_put_there_is_not_used_by_its_name() {
    makes_one(&if_missing(&[given("theirs")]).step());
    let wait = waits_for(&adopting(&[given("theirs")]).step(), WaitReason::ImageNotFound);
    assert!(wait.message.contains("(theirs) is used only where"), "{}", wait.message);
    // Of the kind that cannot be compared with what the cloud says.
    let sha256 = |input: Input| input.changed(|input| input.wanted.digest = named('a').digest);
    makes_one(&sha256(if_missing(&[given("theirs")])).step());
    waits_for(&sha256(adopting(&[given("theirs")])).step(), WaitReason::ImageNotFound);
}

#[test]
fn r39_what_anybody_may_have_put_there_is_used_by_its_id_or_its_bytes() {
    let named = Input::among(&[given("theirs")]).changed(|input| input.wanted.adopt = Some("theirs".to_owned()));
    uses(&named.step(), "theirs");
    for asks in [if_missing, adopting] {
        let bytes = |hex: &str| asks(&[given("theirs")]).changed(|input| input.wanted.digest = sha512(hex));
        uses(&bytes("aa").step(), "theirs");
        assert!(!matches!(bytes("ff").step(), Step::Record(Intent::Image { .. })));
    }
}

#[test]
fn r39_what_anybody_may_have_put_there_need_not_be_listed_where_its_name_is_not_enough() {
    let sha256 = || named('a').digest;
    for policy in [ImagePolicy::Create, ImagePolicy::IfMissing, ImagePolicy::Adopt] {
        for digest in [None, sha256(), sha512("aa")] {
            for compressed in [false, true] {
                let input = Input::among(&[given("theirs")]).changed(|input| {
                    input.wanted.policy = policy;
                    input.wanted.digest = digest.clone();
                    input.wanted.compressed = compressed;
                });
                let is_used = matches!(input.step(), Step::Record(Intent::Image { .. }));
                let told = format!("{policy:?} {digest:?} {compressed}");
                assert_eq!(input.wanted.may_use_given(), is_used, "{told}");
                let by_id = input.changed(|input| input.wanted.adopt = Some("theirs".to_owned()));
                assert!(!by_id.wanted.may_use_given(), "{told}");
            }
        }
    }
}

#[test]
fn r39_nobody_makes_a_name_ambiguous_by_what_he_gives_to_everybody() {
    for asks in [if_missing, adopting] {
        uses(&asks(&[given("a"), foreign("own"), given("z")]).step(), "own");
        let promised = |others: &[ForeignSeen]| asks(others).changed(|input| input.wanted.digest = sha512("aa"));
        uses(&promised(&[given("a"), foreign("own")]).step(), "own");
        let two = promised(&[given("a"), given("z")]);
        uses(&two.step(), "a");
        // The one that was used first stays the one.
        let first = promised(&[given("z")]);
        let kept = planning::image::after(
            &first.step(),
            &first.wanted,
            &first.kept,
            &first.seen,
            None,
            Input::now(),
        );
        assert!(matches!(
            two.changed(|input| input.kept = kept).step(),
            Step::Rest { .. }
        ));
    }
}

#[test]
fn r39_an_image_that_was_used_and_is_gone_is_not_replaced_by_what_anybody_may_have_put_there() {
    let first = adopting(&[foreign("own")]);
    let kept = planning::image::after(
        &first.step(),
        &first.wanted,
        &first.kept,
        &first.seen,
        None,
        Input::now(),
    );
    let hidden = ForeignSeen {
        usable: false,
        ..foreign("own")
    };
    for others in [vec![given("theirs")], vec![hidden, given("theirs")]] {
        let later = adopting(&others).changed(|input| input.kept = kept.clone());
        waits_for(&later.step(), WaitReason::ImageNotFound);
    }
}

#[test]
fn r40_who_has_said_what_the_bytes_must_be_is_brought_what_is_known_to_have_them() {
    let sha256 = |input: Input| input.changed(|input| input.wanted.digest = named('a').digest);
    let elsewhere = ForeignSeen {
        of_our_project: false,
        ..foreign("public")
    };
    makes_one(&sha256(if_missing(std::slice::from_ref(&elsewhere))).step());
    // One of the name stands where ours would: its user decides.
    holds_for(&sha256(if_missing(&[foreign("own")])).step(), HaltReason::NameTaken);
    let packed = if_missing(std::slice::from_ref(&elsewhere)).changed(|input| {
        input.wanted.digest = sha512("aa");
        input.wanted.compressed = true;
    });
    makes_one(&packed.step());
    uses(&sha256(adopting(&[elsewhere])).step(), "public");
    uses(&sha256(adopting(&[foreign("own")])).step(), "own");
}

#[test]
fn r41_nothing_is_put_beside_an_image_of_the_name() {
    let taken = Input::among(&[foreign("theirs")]);
    holds_for(&taken.step(), HaltReason::NameTaken);
    let elsewhere = ForeignSeen {
        of_our_project: false,
        ..foreign("theirs")
    };
    let unfinished = ForeignSeen {
        usable: false,
        ..foreign("theirs")
    };
    for other in [elsewhere, unfinished] {
        assert!(matches!(Input::among(&[other]).step(), Step::Do { .. }));
    }
}

#[test]
fn r41_whom_images_of_others_hold_up_at_once_does_not_look_again_at_once() {
    let differs = adopting(&[foreign("one")]).changed(|input| input.wanted.digest = sha512("ff"));
    for (held, reason) in [
        (Input::among(&[foreign("theirs")]), HaltReason::NameTaken),
        (adopting(&[foreign("one"), foreign("two")]), HaltReason::Ambiguous),
        (differs, HaltReason::SourceMismatch),
    ] {
        for image in 0..100 {
            let key = format!("image {image}");
            let held = held.clone().changed(|input| {
                input.wanted.key.clone_from(&key);
                input.kept.key = Some(key.clone());
            });
            let step = held.step();
            holds_for(&step, reason);
            // The same time as that of images that are ready, of which the test of rule 24 says that it is spread.
            let look = Some(before(1) + look_ready(&key));
            assert!(matches!(&step, Step::Hold(halt) if halt.look == look), "{step:?}");
        }
    }
}

#[test]
fn r42_the_source_is_asked_before_anything_is_created_unless_it_is_built() {
    let unseen = input().changed(|input| input.seen.source = Sight::Unseen);
    is_done(&unseen.step(), &Deed::Probe);
    let built = unseen.changed(|input| input.wanted.build = Some(Duration::from_hours(1)));
    assert!(matches!(
        built.step(),
        Step::Do {
            deed: Deed::Create { .. },
            ..
        }
    ));
}

#[test]
fn r43_nothing_is_created_while_the_source_does_not_answer() {
    let input = input().changed(|input| {
        input.seen.source = Sight::Failed {
            failure: failure(FailureClass::SourceGone),
            since: before(10),
            count: 1,
            next: NOW + Duration::from_secs(9),
        };
    });
    waits_for(&input.step(), WaitReason::Source);
}

#[test]
fn r44_the_first_attempt_and_that_of_another_content_are_written() {
    let first = input().changed(|input| input.kept = Kept::default());
    writes_attempt(&first.step(), 1, AttemptReason::First);
    let other = input().changed(|input| input.kept.key = None);
    writes_attempt(&other.step(), 3, AttemptReason::OtherContent);
    let edited = other.changed(|input| input.kept.key = Some(OTHER.to_owned()));
    assert_eq!(edited.step(), Step::Record(Intent::Forget));
}

#[test]
fn r45_the_attempt_of_status_is_created_with_the_chosen_id_in_the_first() {
    let create = |attempt, id: Option<&str>| {
        let id = id.map(str::to_owned);
        Deed::Create { attempt, id }
    };
    let chosen = input().changed(|input| input.wanted.chosen_id = Some("mine".to_owned()));
    is_done(&chosen.step(), &create(2, None));
    let first = chosen.changed(|input| input.kept.attempt = 1);
    is_done(&first.step(), &create(1, Some("mine")));
}

#[test]
fn r45_a_record_that_was_made_and_is_not_shown_is_made_again_ever_later() {
    let deed = || Deed::Create { attempt: 2, id: None };
    let made = |deed, times, seconds| {
        input().changed(|input| {
            input.seen.unshown = Some(Unshown {
                deed,
                times,
                at: before(seconds),
            });
        })
    };
    let wait = waits_for(&made(deed(), 1, 0).step(), WaitReason::Retry);
    assert!(
        wait.look
            .is_some_and(|look| look > NOW && look <= NOW + Duration::from_secs(2))
    );
    is_done(&made(deed(), 1, 3).step(), &deed());
    waits_for(&made(deed(), 9, 230).step(), WaitReason::Retry);
    is_done(&made(deed(), 9, 301).step(), &deed());
    let earlier = Deed::Create { attempt: 1, id: None };
    is_done(&made(earlier, 9, 0).step(), &deed());
}
