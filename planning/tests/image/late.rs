//! A cloud whose lists are late: what was done there is not done again and again, and an object that is deleted goes in the end.

use crds::conditions::{ConditionType, find};
use planning::image::Step;

use crate::world::object::Spec;
use crate::world::{World, count, told};

fn world(lines: &[&str]) -> World {
    let mut world = World::new(Spec::of(""), true);
    told(&mut world, lines);
    world
}

#[test]
fn a_record_that_no_list_shows_is_made_again_ever_later_and_used_once_it_is_shown() {
    let mut world = world(&["cloud lists late", "settle 20"]);
    let times = count(&world, "creates attempt 1");
    assert!((5..20).contains(&times), "{times} times");
    let transferred = find(&world.status.conditions, ConditionType::ImageTransferred).expect("a condition");
    assert_eq!(transferred.reason.as_deref(), Some("CloudUnavailable"));
    let words = transferred.message.as_deref().unwrap_or_default();
    assert!(words.contains("the cloud does not show it"), "{words}");
    told(&mut world, &["cloud lists at once", "settle 10"]);
    assert!(
        world.status.ready && matches!(world.last, Some(Step::Rest { .. })),
        "{:#?}",
        world.status
    );
}

#[test]
fn what_was_deleted_and_is_still_shown_is_deleted_again_ever_later_until_it_is_not_shown() {
    let mut world = world(&["settle 1", "cloud lists late", "delete", "settle 5"]);
    let times = count(&world, "discards a#1");
    assert!((4..12).contains(&times) && !world.object.gone, "{times} times");
    told(&mut world, &["cloud lists at once", "settle 6"]);
    assert!(world.object.gone && world.left_behind.is_empty());
}

#[test]
fn an_object_that_is_deleted_goes_in_time_though_the_cloud_still_shows_its_image() {
    let world = world(&["settle 1", "cloud lists late", "delete", "settle 70"]);
    let times = count(&world, "discards a#1");
    assert!(times < 40, "{times} times");
    assert!(world.object.gone);
    assert_eq!(world.left_behind, ["a#1"]);
}
