//! Which images in a cloud belong to nobody any more, and when one of them may go.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use planning::image::{GRACE, OwnedImage, SEEN_APART, Sightings, Swept, listed, sweep, sweep_again};

fn wall() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

fn owned(id: &str, object: &str, minutes: i64) -> OwnedImage {
    OwnedImage {
        id: id.to_owned(),
        object: object.to_owned(),
        attempt: 1,
        created: wall() - SignedDuration::from_mins(minutes),
        verified: false,
        size: Some(100),
        held_elsewhere: false,
    }
}

fn live(objects: &[&str]) -> BTreeSet<String> {
    objects.iter().map(|object| (*object).to_owned()).collect()
}

/// A first look and one so much later, while these objects exist.
fn twice(images: &[OwnedImage], objects: &[&str], apart: Duration, with_verified: bool) -> [Swept; 2] {
    let live = live(objects);
    let begin = Duration::from_secs(1000);
    let first = sweep(images, Some(&live), &Sightings::new(), wall(), begin, with_verified);
    let later = wall() + SignedDuration::try_from(apart).expect("a short time");
    let second = sweep(
        images,
        Some(&live),
        &first.sightings,
        later,
        begin + apart,
        with_verified,
    );
    [first, second]
}

fn deleted(swept: &Swept) -> Vec<&str> {
    let deeds = swept.deeds.iter().filter(|deed| deed.delete);
    deeds.map(|deed| deed.image.id.as_str()).collect()
}

fn told(swept: &Swept) -> Vec<&str> {
    let deeds = swept.deeds.iter().filter(|deed| deed.is_new);
    deeds.map(|deed| deed.image.id.as_str()).collect()
}

#[test]
fn an_orphan_goes_when_it_was_seen_twice_and_is_told_once() {
    let images = [
        owned("b", "fleet/gone", 90),
        owned("a", "fleet/gone", 90),
        owned("c", "fleet/here", 90),
    ];
    let [first, second] = twice(&images, &["fleet/here"], SEEN_APART, false);
    assert_eq!((told(&first), deleted(&first)), (vec!["a", "b"], vec![]));
    assert_eq!((told(&second), deleted(&second)), (vec![], vec!["a", "b"]));
    let [_, early] = twice(
        &images,
        &["fleet/here"],
        SEEN_APART.saturating_sub(Duration::from_secs(1)),
        false,
    );
    assert_eq!(deleted(&early), Vec::<&str>::new());
}

#[test]
fn a_young_image_is_nobodys_business() {
    let young = [owned("a", "fleet/gone", 29)];
    let [first, second] = twice(&young, &[], SEEN_APART, false);
    assert_eq!((first.deeds.len(), second.deeds.len()), (0, 0));
    // The clock of the cloud may be ahead of ours.
    let future = [owned("a", "fleet/gone", -600)];
    let [_, second] = twice(&future, &[], GRACE, false);
    assert!(second.deeds.is_empty());
}

#[test]
fn a_verified_image_goes_only_when_somebody_says_so() {
    let verified = [OwnedImage {
        verified: true,
        ..owned("a", "fleet/gone", 90)
    }];
    let [first, second] = twice(&verified, &[], SEEN_APART, false);
    assert_eq!((told(&first), deleted(&second)), (vec!["a"], vec![]));
    let [_, second] = twice(&verified, &[], SEEN_APART, true);
    assert_eq!(deleted(&second), ["a"]);
}

#[test]
fn what_another_installation_has_taken_over_is_no_orphan() {
    let images = |held_elsewhere| {
        [true, false].map(|verified| OwnedImage {
            verified,
            held_elsewhere,
            ..owned(if verified { "a" } else { "b" }, "fleet/moved", 90)
        })
    };
    let [first, second] = twice(&images(true), &[], SEEN_APART, true);
    assert_eq!((first, second), (Swept::default(), Swept::default()));
    assert_eq!(listed(&images(true), &live(&[]), wall(), true), []);
    // Given back, it is looked at anew.
    let [first, second] = twice(&images(false), &[], SEEN_APART, true);
    assert_eq!((told(&first), deleted(&second)), (vec!["a", "b"], vec!["a", "b"]));
}

#[test]
fn an_object_that_comes_back_saves_its_image_and_begins_the_wait_anew() {
    let images = [owned("a", "fleet/moved", 90)];
    let [first, _] = twice(&images, &[], SEEN_APART, false);
    let steady = Duration::from_secs(1000) + SEEN_APART;
    let back = sweep(
        &images,
        Some(&live(&["fleet/moved"])),
        &first.sightings,
        wall(),
        steady,
        false,
    );
    assert_eq!(back, Swept::default());
    let again = sweep(&images, Some(&live(&[])), &back.sightings, wall(), steady * 2, false);
    assert_eq!((told(&again), deleted(&again)), (vec!["a"], vec![]));
}

#[test]
fn who_looks_himself_may_have_deleted_what_is_old_enough_and_nobodys() {
    let verified = OwnedImage {
        verified: true,
        ..owned("c", "fleet/gone", 90)
    };
    let images = [
        owned("a", "fleet/gone", 90),
        owned("b", "fleet/gone", 59),
        verified,
        owned("d", "fleet/here", 90),
    ];
    let of = |with_verified| {
        let deeds = listed(&images, &live(&["fleet/here"]), wall(), with_verified);
        deeds
            .into_iter()
            .map(|deed| (deed.image.id, deed.delete))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(false), [("a".to_owned(), true), ("c".to_owned(), false)]);
    assert_eq!(of(true), [("a".to_owned(), true), ("c".to_owned(), true)]);
}

#[test]
fn searches_are_an_hour_apart_and_not_all_at_once() {
    let times: BTreeSet<Duration> = (0..50).map(|round| sweep_again("here", round)).collect();
    assert!(times.len() > 20, "{times:?}");
    let [Some(first), Some(last)] = [times.first(), times.last()] else {
        panic!()
    };
    assert!(
        *first >= Duration::from_mins(54) && *last <= Duration::from_mins(66),
        "{times:?}"
    );
}

#[test]
fn nothing_is_an_orphan_while_the_objects_are_not_all_known() {
    let images = [owned("a", "fleet/gone", 90)];
    let [first, _] = twice(&images, &[], SEEN_APART, false);
    let steady = Duration::from_secs(1000) + SEEN_APART;
    let blind = sweep(&images, None, &first.sightings, wall(), steady, true);
    assert_eq!((blind.deeds.len(), blind.sightings), (0, first.sightings));
}
