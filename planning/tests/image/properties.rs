//! Any history of faults, crashes and changes ends with the image that is wanted, with a reason that somebody gave, or with nothing left.

use std::time::Duration;

use planning::image::{HaltReason, Step, WaitReason};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner};

use crate::world::cloud::Status;
use crate::world::object::Spec;
use crate::world::{Planted, World};

/// The same cases in every run, so that no merge is stopped by luck; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` explore others.
pub(crate) fn config() -> Config {
    let default = Config {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        max_shrink_iters: 4000,
        ..Config::default()
    };
    let explores = |name| std::env::var_os(name).is_some();
    if explores("PROPTEST_CASES") || explores("PROPTEST_RNG_SEED") {
        return default;
    }
    Config {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        ..default
    }
}

/// Three hours are longer than every wait.
const LONG: Duration = Duration::from_hours(3);
/// As long as nothing should be written at rest.
const DAY: Duration = Duration::from_hours(24);
/// Looks in a day, one in ten minutes.
const LOOKS: u32 = 24 * 60 / 10 + 2;

fn spec() -> impl Strategy<Value = String> {
    let one_of = |choices: &'static [&'static str]| prop::sample::select(choices);
    (
        one_of(&["digest=none", "digest=sha256", "digest=sha512"]),
        one_of(&["via=Upload", "via=ServerSide", "via=Staged"]),
        one_of(&["deletion=Delete", "deletion=Delete", "deletion=Retain"]),
    )
        .prop_map(|(digest, via, deletion)| format!("{digest} {via} {deletion}"))
}

pub(crate) fn work() -> impl Strategy<Value = String> {
    prop_oneof![
        10 => Just("step".to_owned()),
        5 => Just("run".to_owned()),
        4 => (1_u32..40).prop_map(|seconds| format!("pass {seconds}")),
        1 => (40_u32..300).prop_map(|seconds| format!("pass {seconds}")),
        1 => Just("settle 2".to_owned()),
    ]
}

pub(crate) fn processes() -> impl Strategy<Value = String> {
    let one_of = |choices: &'static [&'static str]| prop::sample::select(choices).prop_map(str::to_owned);
    prop_oneof![
        4 => one_of(&["step and lose the answer", "step and crash before", "step and crash after", "step and hang"]),
        2 => (1_u8..4).prop_map(|commands| format!("step and arrive late {commands}")),
        2 => one_of(&["crash", "lag", "sleep"]),
        1 => (0_u8..3).prop_map(|steps| format!("wake {steps}")),
    ]
}

pub(crate) fn troubles() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "cloud down",
        "cloud up",
        "cloud up",
        "cloud dies",
        "cloud full",
        "cloud has room",
        "cloud refuses 1",
        "cloud refuses 2",
        "cloud loses imports 1",
        "cloud leaves staged 1",
        "cloud converts",
        "cloud converts nothing",
        "cloud deletes late",
        "cloud deletes at once",
        "cloud loses deletions 1",
        "image option 7",
        "source breaks 1",
        "source breaks 3",
        "source gone",
        "source html",
        "source answers",
        "source answers",
        "source replaced",
        "source restored",
        "image deactivated",
        "image reactivated",
        "image killed",
        "image deleted",
        "image in use",
        "image free",
    ])
    .prop_map(str::to_owned)
}

pub(crate) fn people() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "edit url=a",
        "edit url=b",
        "edit option=1",
        "edit option=2",
        "edit policy=Create",
        "edit policy=IfMissing",
        "edit policy=Adopt",
        "edit digest=sha256",
        "edit digest=none",
        "edit adopt=theirs",
        "edit adopt=none",
        "edit deletion=Retain",
        "edit via=Upload",
        "edit via=Staged",
        "secret rotates",
        "secret gone",
        "secret back",
        "pause",
        "resume",
        "resume",
        "request",
        "status lost",
        "stranger of our name theirs",
        "stranger with other bytes odd",
        "stranger takes the next id",
        "stranger goes theirs",
        "stranger goes odd",
    ])
    .prop_map(str::to_owned)
}

fn history(processes_weight: u32, troubles_weight: u32, people_weight: u32) -> impl Strategy<Value = Vec<String>> {
    let command = prop_oneof![
        8 => work(),
        processes_weight => processes(),
        troubles_weight => troubles(),
        people_weight => people(),
    ];
    prop::collection::vec(command, 5..80)
}

fn live(spec: &str, makes_sha512: bool, history: &[String], planted: Option<Planted>) -> World {
    let mut world = World::new(Spec::of(spec), makes_sha512);
    world.planted = planted;
    for line in history {
        if world.violations.is_empty() {
            world.command(line);
        }
    }
    world
}

/// Takes away everything that somebody must take away.
fn heal(world: &mut World) {
    for line in [
        "cloud up",
        "cloud has room",
        "cloud refuses 0",
        "cloud loses imports 0",
        "cloud leaves staged 0",
        "cloud deletes at once",
        "cloud loses deletions 0",
        "source answers",
        "source restored",
        "image reactivated",
        "image free",
        "secret back",
        "resume",
        "wake 0",
        "jobs allowed",
        "jobs have their turn",
        "jobs move",
        "jobs say nothing 0",
        "jobs seen at once",
        "builds fail 0 0",
        "node takes pods",
        "node answers",
    ] {
        world.command(line);
    }
    world.settle(LONG);
    world.check();
}

fn said(history: &[String], words: &str) -> bool {
    history.iter().any(|line| line.starts_with(words))
}

/// Whether somebody did what it is held for.
fn is_held_for(world: &World, reason: HaltReason, history: &[String], asked_again: bool) -> bool {
    let named = world
        .cloud
        .images
        .values()
        .any(|image| image.mark.is_none() && image.named_as_ours);
    let passes = |words: &str| !asked_again && said(history, words);
    match reason {
        HaltReason::NameTaken | HaltReason::Ambiguous => named,
        HaltReason::SourceMismatch => said(history, "source replaced") || named,
        HaltReason::Refused => passes("cloud refuses"),
        HaltReason::SourceNotAnImage => passes("source html"),
        HaltReason::SourceNotFound => passes("source gone"),
        HaltReason::Unverifiable => passes("status lost"),
        HaltReason::BuildFailed => ["builds fail", "jobs stand", "node", "step and hang"]
            .into_iter()
            .any(passes),
        HaltReason::OutOfMemory => passes("pod killed"),
        HaltReason::InvalidSpec
        | HaltReason::DigestUnknown
        | HaltReason::JobsUnavailable
        | HaltReason::SealNotKept
        | HaltReason::Unsupported => false,
    }
}

/// What is wrong with the end of a history, if anything is.
fn wrong_end(world: &World, history: &[String], asked_again: bool) -> Option<String> {
    if let Some(violation) = world.violations.first() {
        return Some(violation.clone());
    }
    if let Some(wrong) = world.wrongly_told().or_else(|| world.job_left()) {
        return Some(wrong);
    }
    let ours: Vec<&String> = world
        .cloud
        .images
        .iter()
        .filter(|(_, image)| image.mark.is_some() && !image.is_going())
        .map(|(id, _)| id)
        .collect();
    if world.object.gone {
        let excused = |id: &&&String| world.orphans.contains(id) || world.left_behind.contains(id);
        let left: Vec<&&String> = ours.iter().filter(|id| !excused(id)).collect();
        let is_left = !left.is_empty() && world.left_behind.is_empty();
        return is_left.then(|| format!("the object is gone and {left:?} are there"));
    }
    let kept = &world.object.kept;
    if said(history, "delete") {
        return Some(format!("the object does not go, having {ours:?} and {kept:?}"));
    }
    match world.last.as_ref() {
        Some(Step::Rest { .. }) => {
            let image = kept.image.as_ref().and_then(|image| world.cloud.images.get(&image.id));
            let adopts = kept.image.as_ref().is_some_and(|image| image.adopted);
            let is_usable = image.is_some_and(|image| image.status == Status::Active && image.shown);
            let is_alone = ours.len() == usize::from(!adopts);
            let is_right = adopts || image.is_some_and(|image| image.option == world.object.spec.option);
            let is_good = is_usable && is_alone && is_right;
            (!is_good).then(|| format!("it rests with {ours:?} and {kept:?}"))
        }
        Some(Step::Hold(halt)) if is_held_for(world, halt.reason, history, asked_again) => None,
        Some(Step::Await(wait)) if wait.reason == WaitReason::ImageNotFound => None,
        step => Some(format!("it ends with {step:?}, having {ours:?} and {kept:?}")),
    }
}

/// The whole story; says what is wrong.
pub(crate) fn story(spec: &str, sha512: bool, history: &[String], planted: Option<Planted>) -> Result<(), String> {
    let mut world = live(spec, sha512, history, planted);
    let told = |world: &World, wrong: String| {
        let from = world.log.len().saturating_sub(60);
        Err(format!("{wrong}\n{}", world.log[from..].join("\n")))
    };
    if let Some(violation) = world.violations.first().cloned() {
        return told(&world, violation);
    }
    heal(&mut world);
    if let Some(wrong) = wrong_end(&world, history, false) {
        return told(&world, wrong);
    }
    world.command("request");
    world.settle(LONG);
    world.check();
    if let Some(wrong) = wrong_end(&world, history, true) {
        return told(&world, wrong);
    }
    let (writes, looks, words) = (world.writes, world.looks, world.told);
    let waits = matches!(&world.last, Some(Step::Await(_)));
    world.settle(DAY);
    world.check();
    if let Some(wrong) = wrong_end(&world, history, true) {
        return told(&world, wrong);
    }
    if let Some(job) = world.cluster.jobs.first() {
        return told(&world, format!("a Job stays for more than a day: {job:?}"));
    }
    if world.told != words {
        return told(
            &world,
            format!("at rest what is told changes {} times", world.told - words),
        );
    }
    if world.writes != writes || !waits && world.looks - looks > LOOKS {
        let looks = world.looks - looks;
        return told(
            &world,
            format!("at rest it looks {looks} times and writes {}", world.writes - writes),
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_to_processes_the_image_comes(spec in spec(), sha512 in any::<bool>(), history in history(8, 1, 1)) {
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_clouds_and_sources_do_the_image_comes(spec in spec(), sha512 in any::<bool>(), history in history(1, 6, 1)) {
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_people_change_the_image_that_is_wanted_comes(spec in spec(), sha512 in any::<bool>(), history in history(3, 3, 5)) {
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_happened_before_nothing_is_left_of_what_is_deleted(
        spec in spec(), sha512 in any::<bool>(), before in history(4, 4, 2), after in history(4, 3, 0)
    ) {
        let delete = std::iter::once("delete".to_owned());
        let history: Vec<String> = before.into_iter().chain(delete).chain(after).collect();
        story(&spec, sha512, &history, None).map_err(TestCaseError::fail)?;
    }
}

/// What is told of the first of these histories that breaks a rule.
pub(crate) fn first_broken<S: Strategy>(
    histories: &S,
    story: impl Fn(S::Value) -> Result<(), String>,
) -> Option<String> {
    let mut runner = TestRunner::new(Config {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    });
    let found = runner.run(histories, |history| story(history).map_err(TestCaseError::fail));
    match found {
        Err(TestError::Fail(reason, _)) => Some(reason.message().to_owned()),
        _ => None,
    }
}

/// What the first history says that a planted fault spoils.
fn noticed(planted: Planted) -> Option<String> {
    let deletes = history(4, 4, 2).prop_map(|mut history| {
        history.insert(history.len() / 2, "delete".to_owned());
        history
    });
    let replaced = history(4, 5, 1).prop_map(|mut history| {
        history.insert(0, "source replaced".to_owned());
        history
    });
    let histories = prop_oneof![history(4, 5, 3), history(4, 5, 3), deletes, replaced];
    first_broken(&(spec(), any::<bool>(), histories), |(spec, sha512, history)| {
        story(&spec, sha512, &history, Some(planted))
    })
}

#[test]
fn the_model_notices_each_planted_fault() {
    for (planted, rule) in [
        (
            Planted::DiscardsBeforeItIsWritten,
            "only what status gave up is deleted",
        ),
        (Planted::PublishesBeforeItIsWritten, "only what status names is shown"),
        (Planted::PublishesWhatDiffers, "what is verified is what was promised"),
        (Planted::CreatesBeforeItIsWritten, "only what status names is created"),
        (Planted::SendsToSpoiltRecords, "it ends with"),
        (Planted::TakesImagesByName, "what is not ours stays as it is"),
        (Planted::FinishesWithoutLooking, "the object is gone and"),
        (Planted::PublishesTwo, "one image of a content is verified"),
        (Planted::ShowsUnverified, "nothing is shown that is not verified"),
        (Planted::ForgetsAttempt, "attempts never fall"),
        (Planted::AdoptsUnasked, "nothing is taken over that nobody asked for"),
        (Planted::ForgetsToLook, "every wait ends"),
    ] {
        let found = noticed(planted).unwrap_or_else(|| panic!("nothing notices {planted:?}"));
        let first = found.lines().next().unwrap_or_default();
        assert!(
            found.starts_with(rule),
            "{planted:?} is noticed by another rule: {first}"
        );
    }
}
