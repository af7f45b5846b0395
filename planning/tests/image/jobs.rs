//! Images that Jobs send or build: whatever becomes of the Jobs, of nodes and of whoever follows them, the image comes or goes as it does without them, one
//! Job at a time works for it, and none is left over.

use crds::conditions::{ConditionType, find};
use planning::image::{FailureClass, HaltReason, Step, WaitReason};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::properties::{config, first_broken, people, processes, story, troubles, work};
use crate::world::object::Spec;
use crate::world::{Planted, World, count, told};

/// One that Jobs send, or one that they build.
fn spec() -> impl Strategy<Value = String> {
    let one_of = |choices: &'static [&'static str]| prop::sample::select(choices);
    let deletion = || one_of(&["deletion=Delete", "deletion=Delete", "deletion=Retain"]);
    let sent = (
        one_of(&["digest=none", "digest=sha256", "digest=sha512"]),
        one_of(&["via=Upload", "via=Upload", "via=ServerSide", "via=Staged"]),
        deletion(),
    )
        .prop_map(|(digest, via, deletion)| format!("execution=Job {digest} {via} {deletion}"));
    let built = (one_of(&["via=Upload", "via=Staged"]), deletion())
        .prop_map(|(via, deletion)| format!("build=yes {via} {deletion}"));
    prop_oneof![sent, built]
}

/// What becomes of Jobs and of nodes.
fn cluster() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "jobs barred",
        "jobs allowed",
        "jobs allowed",
        "jobs in line",
        "jobs have their turn",
        "jobs stand",
        "jobs move",
        "jobs move",
        "jobs say nothing 1",
        "jobs seen late 2",
        "jobs seen late 5",
        "jobs told to go",
        "jobs deleted",
        "builds fail 1 1",
        "builds fail 3 2",
        "builds fail 65 1",
        "node takes nothing",
        "node takes pods",
        "node takes pods",
        "node silent",
        "node answers",
        "pod evicted",
        "pod killed",
        "pod driven away",
    ])
    .prop_map(str::to_owned)
}

/// What people change that makes a Job of something else, or the other way round.
fn forms() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "edit execution=Job",
        "edit execution=Job",
        "edit execution=Auto",
        "edit build=yes",
        "edit build=no",
    ])
    .prop_map(str::to_owned)
}

/// As much of each as these weights say: processes, clusters, clouds and sources, people.
fn history(weights: [u32; 4]) -> impl Strategy<Value = Vec<String>> {
    let [of_processes, of_cluster, of_troubles, of_people] = weights;
    let command = prop_oneof![
        8 => work(),
        // A build and what is not taken by a node take longer than what is sent.
        1 => Just("settle 20".to_owned()),
        of_processes => processes(),
        of_cluster => cluster(),
        of_troubles => troubles(),
        of_people => prop_oneof![4 => people(), 1 => forms()],
    ];
    prop::collection::vec(command, 5..80)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_becomes_of_jobs_and_nodes_the_image_comes(
        spec in spec(), sha512 in any::<bool>(), history in history([1, 8, 1, 1])
    ) {
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_happens_to_processes_their_jobs_are_found_again(
        spec in spec(), sha512 in any::<bool>(), history in history([8, 3, 1, 1])
    ) {
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_people_change_and_clouds_do_one_job_at_a_time_works_for_an_image(
        spec in spec(), sha512 in any::<bool>(), history in history([3, 3, 3, 5])
    ) {
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_happened_before_no_job_is_left_of_what_is_deleted(
        spec in spec(), sha512 in any::<bool>(), before in history([3, 4, 2, 2]), after in history([3, 4, 2, 0])
    ) {
        let delete = std::iter::once("delete".to_owned());
        let history: Vec<String> = before.into_iter().chain(delete).chain(after).collect();
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }
}

/// What the first history says that a planted fault spoils.
fn noticed(planted: Planted) -> Option<String> {
    first_broken(&(spec(), history([4, 2, 1, 4])), |(spec, history)| {
        story(&spec, true, &history, Some(planted))
    })
}

#[test]
fn the_model_notices_who_forgets_jobs_and_who_waits_for_none() {
    for (planted, rule) in [
        // It is beside another one, or left over.
        (Planted::FindsNoJobs, "a Job "),
        (Planted::WaitsForNoJob, "a Job works alone for its object"),
    ] {
        let found = noticed(planted).unwrap_or_else(|| panic!("nothing notices {planted:?}"));
        let first = found.lines().next().unwrap_or_default();
        assert!(
            found.starts_with(rule),
            "{planted:?} is noticed by another rule: {first}"
        );
    }
}

fn world(spec: &str, lines: &[&str]) -> World {
    let mut world = World::new(Spec::of(spec), true);
    told(&mut world, lines);
    world
}

/// It rests, after so many attempts, and of so many Jobs the logs are still there.
#[track_caller]
fn is_there(world: &World, attempts: u32, jobs: usize) {
    let rests = matches!(world.last, Some(Step::Rest { .. }));
    assert!(world.status.ready && rests, "{:#?}", world.log);
    assert_eq!(world.job_left(), None);
    assert_eq!((world.object.kept.attempt, world.cluster.jobs.len()), (attempts, jobs));
}

#[test]
fn a_job_whose_making_nobody_answered_is_found_and_not_made_again() {
    for (spec, before, deed) in [
        ("execution=Job", 10, "sends a#1 in a Job"),
        ("build=yes", 8, "builds a.built#1 in a Job"),
    ] {
        let steps = vec!["step"; before];
        let mut world = world(spec, &steps);
        told(&mut world, &["step and lose the answer", "settle 5"]);
        assert_eq!(count(&world, deed), 1, "{:#?}", world.log);
        is_there(&world, 1, 1);
        assert_eq!(world.cluster.made, 1);
    }
}

#[test]
fn an_image_that_is_whole_is_shown_though_its_job_could_not_say_so() {
    let world = world("execution=Job", &["jobs say nothing 1", "settle 3"]);
    assert_eq!(count(&world, "notes JobVanished"), 1, "{:#?}", world.log);
    assert_eq!(count(&world, "sends a#1 in a Job"), 1, "{:#?}", world.log);
    is_there(&world, 1, 1);
}

#[test]
fn a_job_that_is_gone_is_made_again_whoever_deleted_it() {
    for gone in ["jobs deleted", "jobs told to go", "pod evicted"] {
        let mut world = world("build=yes", &["run", "pass 10"]);
        told(&mut world, &[gone, "settle 5"]);
        assert_eq!(count(&world, "builds a.built#1 in a Job"), 2, "{:#?}", world.log);
        is_there(&world, 1, 1);
    }
}

#[test]
fn a_job_that_somebody_deletes_again_and_again_is_told_of_and_comes_when_he_does_not() {
    let mut world = world("build=yes", &["run"]);
    for _ in 0..4 {
        told(&mut world, &["jobs told to go", "run", "pass 10", "run"]);
    }
    let retry = world.object.kept.retry.clone().expect("it is tried again");
    assert_eq!((retry.class, retry.count), (FailureClass::JobVanished, 4));
    assert!(
        matches!(&world.last, Some(Step::Await(wait)) if wait.reason == WaitReason::Retry),
        "{:#?}",
        world.log
    );
    let failure = world.status.last_failure.as_ref().expect("it is told");
    assert!(failure.message.starts_with("the Job was deleted"), "{failure:?}");
    told(&mut world, &["settle 5"]);
    is_there(&world, 1, 1);
}

#[test]
fn a_build_that_fails_with_one_code_and_another_is_tried_three_times_too() {
    let mut world = world("build=yes", &["builds fail 1 1", "run", "pass 10", "pass 40", "run"]);
    // The next one is gone before it ends.
    told(&mut world, &["pass 80", "run", "pass 10", "pod evicted", "run"]);
    told(
        &mut world,
        &["builds fail 2 1", "settle 3", "builds fail 1 1", "settle 10"],
    );
    assert_eq!(count(&world, "notes BuildFailed"), 3, "{:#?}", world.log);
    assert_eq!(count(&world, "builds a.built#1 in a Job"), 4, "{:#?}", world.log);
    assert!(
        matches!(&world.last, Some(Step::Hold(halt)) if halt.reason == HaltReason::BuildFailed),
        "{:#?}",
        world.log
    );
}

#[test]
fn a_job_whose_node_does_not_answer_holds_up_its_image_no_longer_than_another_attempt() {
    let mut world = world("build=yes", &["run", "pass 5", "jobs stand", "node silent"]);
    told(&mut world, &["jobs told to go", "settle 4"]);
    assert_eq!(count(&world, "notes Taken, attempt 2 is next"), 1, "{:#?}", world.log);
    told(&mut world, &["jobs move", "settle 3"]);
    assert!(world.status.ready && world.object.kept.attempt == 2, "{:#?}", world.log);
    assert_eq!(world.cluster.jobs.len(), 2, "the node still says nothing of the first");
    told(&mut world, &["node answers", "settle 1"]);
    is_there(&world, 2, 1);
}

#[test]
fn a_build_that_fails_is_tried_three_times_and_again_when_somebody_asks() {
    let mut world = world("build=yes", &["builds fail 1 3", "settle 20"]);
    assert_eq!(count(&world, "builds a.built#1 in a Job"), 3, "{:#?}", world.log);
    assert!(
        matches!(&world.last, Some(Step::Hold(halt)) if halt.reason == HaltReason::BuildFailed),
        "{:?}",
        world.last
    );
    told(&mut world, &["request", "settle 3"]);
    is_there(&world, 1, 1);
}

#[test]
fn a_job_that_cannot_be_had_or_does_not_begin_is_told_of_and_comes_when_it_can() {
    for (hinders, lets, words) in [
        ("jobs barred", "jobs allowed", "a Job is needed and cannot be had"),
        ("node takes nothing", "node takes pods", "its Job does not go on"),
        ("jobs in line", "jobs have their turn", "1 other is before it in line"),
    ] {
        let mut world = world("execution=Job", &[hinders, "settle 2"]);
        let transferred = find(&world.status.conditions, ConditionType::ImageTransferred).expect("a condition");
        let message = transferred.message.as_deref().unwrap_or_default();
        assert!(message.contains(words), "after {hinders}: {message}");
        told(&mut world, &[lets, "settle 10"]);
        is_there(&world, 1, 1);
    }
}

#[test]
fn what_is_deleted_while_a_job_works_for_it_goes_with_the_job() {
    for spec in ["execution=Job", "build=yes"] {
        let world = world(spec, &["run", "pass 10", "delete", "settle 2"]);
        assert!(world.object.gone && world.left_behind.is_empty(), "{:#?}", world.log);
        let ours = world.cloud.images.values().filter(|image| image.mark.is_some());
        assert_eq!((ours.count(), world.job_left()), (0, None));
    }
}
