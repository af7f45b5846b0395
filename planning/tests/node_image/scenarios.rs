//! Several releases that share images, and what is left of them in the end.

use planning::node_image::Files;

use crate::table::entry;
use crate::world::World;

const OLD: &str = "openstack-ferrol-1-27-v3";
const NEW: &str = "openstack-ferrol-1-27-v4";

fn two() -> World {
    let mut world = World::default();
    world.publish(OLD, vec![entry("shared", "x"), entry("old", "x")]);
    world.publish(NEW, vec![entry("shared", "x"), entry("new", "x")]);
    world.settle();
    world
}

#[test]
fn two_releases_bring_a_shared_image_once() {
    let world = two();
    assert_eq!(world.ready(), [OLD, NEW]);
    assert_eq!(world.images.keys().collect::<Vec<_>>(), ["new", "old", "shared"]);
    assert_eq!(world.owners("shared"), [OLD, NEW]);
    assert_eq!(world.owners("old"), [OLD]);
}

#[test]
fn a_release_that_goes_takes_only_what_nobody_else_needs() {
    let mut world = two();
    world.delete(OLD);
    world.settle();
    assert_eq!(world.ready(), [NEW]);
    assert!(!world.releases.contains_key(OLD));
    assert_eq!(world.images.keys().collect::<Vec<_>>(), ["new", "shared"]);
    world.delete(NEW);
    world.settle();
    assert!(world.images.is_empty() && world.releases.is_empty());
}

#[test]
fn two_that_go_at_once_leave_nothing_behind() {
    let mut world = two();
    world.delete(OLD);
    world.delete(NEW);
    // Both decide on what they saw before the other did anything.
    let (old, new) = (world.pass(OLD), world.pass(NEW));
    world.perform(OLD, old);
    world.perform(NEW, new);
    assert_eq!(
        world.owners("shared"),
        [NEW],
        "the second write was of an older version"
    );
    world.settle();
    assert!(world.images.is_empty() && world.releases.is_empty());
}

#[test]
fn a_finalizer_stays_until_the_images_are_gone() {
    let mut world = two();
    world.delete(OLD);
    for _ in 0..3 {
        let actions = world.pass(OLD);
        world.perform(OLD, actions);
    }
    assert!(world.images["old"].view.deleting);
    assert!(world.releases.contains_key(OLD));
    world.bring_images();
    let actions = world.pass(OLD);
    world.perform(OLD, actions);
    assert!(!world.releases.contains_key(OLD));
}

#[test]
fn an_image_with_other_bytes_keeps_the_release_in_use_as_it_is() {
    let mut world = World::default();
    world.publish(OLD, vec![entry("shared", "x")]);
    world.settle();
    world.publish(NEW, vec![entry("shared", "y")]);
    world.settle();
    assert_eq!(world.ready(), [OLD]);
    assert_eq!(world.images["shared"].view.content, "x");
    assert_eq!(world.owners("shared"), [OLD]);
    // Once nobody else needs the old bytes, the new ones are brought.
    world.delete(OLD);
    world.settle();
    assert_eq!(world.ready(), [NEW]);
    assert_eq!(world.images["shared"].view.content, "y");
}

#[test]
fn a_release_that_needs_an_image_again_which_goes_gets_another_one() {
    let mut world = World::default();
    world.publish(OLD, vec![entry("shared", "x")]);
    world.settle();
    let uid = world.images["shared"].view.uid.clone();
    world.delete(OLD);
    let actions = world.pass(OLD);
    world.perform(OLD, actions);
    world.publish(NEW, vec![entry("shared", "x")]);
    world.settle();
    assert_eq!(world.ready(), [NEW]);
    assert_ne!(world.images["shared"].view.uid, uid);
    assert_eq!(world.owners("shared"), [NEW]);
}

#[test]
fn an_image_that_left_the_release_is_let_go() {
    let mut world = two();
    world.replace(NEW, vec![entry("new", "x")]);
    world.settle();
    assert_eq!(world.owners("shared"), [OLD]);
    world.replace(OLD, Vec::new());
    world.settle();
    assert_eq!(world.images.keys().collect::<Vec<_>>(), ["new"]);
    assert_eq!(world.ready(), [OLD, NEW]);
}

#[test]
fn a_source_that_is_away_and_a_lost_process_change_nothing() {
    let mut world = two();
    world.writes = 0;
    for name in [OLD, NEW] {
        world.release(name).files = Files::NotRead;
        world.release(name).status_written_at = None;
    }
    world.settle();
    assert_eq!(
        (world.ready(), world.images.len(), world.writes),
        (vec![OLD, NEW], 3, 0)
    );
    for name in [OLD, NEW] {
        world.release(name).files = Files::Missing {
            message: "there is nothing".to_owned(),
        };
    }
    world.settle();
    assert_eq!((world.ready(), world.images.len()), (vec![OLD, NEW], 3));
}

#[test]
fn a_release_at_rest_writes_nothing() {
    let mut world = two();
    world.writes = 0;
    for _ in 0..10 {
        world.settle();
    }
    assert_eq!(world.writes, 0);
}
