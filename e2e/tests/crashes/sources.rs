//! kill -9 of the operator while it fetches, keeps and verifies a release of which signatures are required: at every question to the source, and
//! behind every change of the store. The end is always the same and true, nothing on the way was wrong, the store holds the release once and nothing half done, and nothing is
//! applied before the source has shown the signature.
//!
//! Writes to the API server are the business of the other tests of this program, and each single effect on the disk that of the store's own.

use std::{
    collections::BTreeMap,
    fmt, fs,
    future::ready,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Instant,
};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{
    Journey, Operator, eventually,
    journey::{SOON, journey, status},
    lanes::side_by_side,
    positions::every_position,
    releases::harbor_tag,
    storm::Voyage,
    web::{Moment, Stopped, WebServer},
    world::{World, becomes, world},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    LANES, TURN,
    effects::Effects,
    servers::{Kind, Purpose, Source, signed},
};

/// Stands for the address of the source, which is another one in each journey.
const ADDRESS: &str = "ADDRESS-OF-THE-SOURCE";
/// The last request for a look at the release in each journey.
const LOOK: &str = "look";

/// When the operator is killed.
#[derive(Clone, Copy, Debug)]
enum Crash {
    /// At a question to one of the source's servers, counted from 1.
    Question { server: usize, n: usize, moment: Moment },
    /// Behind a change of the store, counted from 1.
    Effect { n: usize },
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Question { server, n, moment } => write!(f, "question {n} of {server} {moment:?}"),
            Self::Effect { n } => write!(f, "effect {n}"),
        }
    }
}

/// The journey without a crash.
struct Survey {
    kind: Kind,
    /// Of each server.
    questions: Vec<Vec<String>>,
    effects: Vec<String>,
    world: World,
    kept: Kept,
}

static INDEX: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Kind::Index));
static GITHUB: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Kind::Github));
static REGISTRY: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Kind::Registry));

fn survey(kind: Kind) -> Result<Survey> {
    let mut survey = None;
    journey(async |journey| {
        survey = Some(undisturbed(journey, kind).await?);
        Ok(())
    })?;
    survey.context("the journey has not been made")
}

const MOMENTS: [Moment; 3] = [Moment::BeforeAnswer, Moment::InTheMiddle, Moment::AfterAnswer];

#[test]
fn a_crash_at_any_question_to_a_source_leads_to_the_same_end_and_applies_nothing_unverified_on_the_way() -> Result<()> {
    crash_at_every_question(&INDEX, |_| Ok(MOMENTS.to_vec()))
}

/// What is fetched from there is kept as what any source gives: unless all positions are asked for, each question is crashed at once, at another
/// moment than the one before it.
fn in_turn(n: usize) -> Result<Vec<Moment>> {
    let every = every_position()?;
    let one = vec![MOMENTS[n % MOMENTS.len()]];
    Ok(if every { MOMENTS.to_vec() } else { one })
}

#[test]
fn a_crash_at_any_question_to_github_leads_to_the_same_end_and_applies_nothing_unverified_on_the_way() -> Result<()> {
    crash_at_every_question(&GITHUB, in_turn)
}

#[test]
fn a_crash_at_any_question_to_a_registry_leads_to_the_same_end_and_applies_nothing_unverified_on_the_way() -> Result<()>
{
    crash_at_every_question(&REGISTRY, in_turn)
}

fn crash_at_every_question(
    survey: &'static LazyLock<Result<Survey>>,
    moments: impl Fn(usize) -> Result<Vec<Moment>>,
) -> Result<()> {
    let survey = survey.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let questions = &survey.questions;
    for wanted in survey.kind.wanted() {
        ensure!(
            questions.iter().flatten().any(|question| question.contains(wanted)),
            "{wanted}: {questions:#?}"
        );
    }
    let mut crashes = Vec::new();
    for (server, questions) in questions.iter().enumerate() {
        for n in 1..=questions.len() {
            let moments = moments(n)?.into_iter();
            crashes.extend(moments.map(|moment| Crash::Question { server, n, moment }));
        }
    }
    suffer(survey, crashes)
}

#[test]
fn a_crash_behind_any_change_of_the_store_leads_to_the_same_end_with_the_release_kept_once() -> Result<()> {
    let survey = INDEX.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let effects = &survey.effects;
    for wanted in [".partial-", "sha256/", "evidence/"] {
        ensure!(effects.iter().any(|effect| effect.contains(wanted)), "{effects:#?}");
    }
    suffer(survey, (1..=effects.len()).map(|n| Crash::Effect { n }).collect())
}

/// Makes a journey for every crash, several at a time, and tells of all that failed.
fn suffer(survey: &'static Survey, crashes: Vec<Crash>) -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (count, begun) = (crashes.len(), Instant::now());
    let name = |crash: &Crash| crash.to_string().replace(' ', "_");
    let outcomes = side_by_side(LANES, crashes, name, |crash| {
        let (mut struck, mut namespace) = (false, String::new());
        let result = journey(async |journey| {
            namespace.clone_from(&journey.namespace);
            disturbed(journey, survey, crash, &mut struck).await
        });
        if let Err(error) = &result {
            eprintln!("{crash} in {namespace}: {error:#}");
        }
        (crash, struck, result.is_ok())
    })?;
    let missed = outcomes.iter().filter(|(_, struck, _)| !struck).count();
    eprintln!(
        "{count} journeys in {:?}; {missed} had less than what to crash at",
        begun.elapsed()
    );
    let failed = outcomes.iter().filter(|(_, _, is_good)| !is_good);
    let failed: Vec<String> = failed.map(|(crash, ..)| crash.to_string()).collect();
    ensure!(
        failed.is_empty(),
        "{} of {count} journeys failed: {failed:#?}",
        failed.len()
    );
    // Questions and effects come together now and then, so journeys differ by a few.
    ensure!(missed * 5 <= count, "{missed} of {count} journeys were not disturbed");
    Ok(())
}

async fn undisturbed(journey: &mut Journey, kind: Kind) -> Result<Survey> {
    let voyage = Voyage::begin(journey).await?;
    let source = given(journey, kind).await?;
    let mut effects = Effects::below(&cache(journey))?;
    let mut operator = Operator::start(journey.lab(), &journey.options)?;
    let tag = harbor_tag("v1");
    let release = tokio::select! {
        release = journey.release_ready(&tag) => release?,
        over = effects.reach(usize::MAX) => return Err(over.err().unwrap_or_else(|| anyhow!("too many effects"))),
    };
    let asked = |server: &WebServer| server.visits().into_iter().map(|visit| visit.target).collect();
    let questions = source.servers().into_iter().map(asked).collect();
    journey.ask_release(&tag, LOOK).await?;
    voyage.rest(journey, &mut operator).await?;
    let world = world(journey).await?;
    operator.check()?;
    let kept = kept(&cache(journey))?;
    kept.is_whole()?;
    let assets = status(&release).assets.context("a pin")?;
    ensure!(
        kept.contents.keys().eq([assets.digest.trim_start_matches("sha256:")]),
        "{kept:?}"
    );
    ensure!(assets.verified_by.is_some(), "{assets:?}");
    ensure!(world.keys().any(|key| key.starts_with("ClusterClass ")), "{world:#?}");
    Ok(Survey {
        kind,
        questions,
        effects: effects.seen().to_vec(),
        world: renamed(&world, &source.address(), ADDRESS)?,
        kept,
    })
}

async fn disturbed(journey: &mut Journey, survey: &Survey, crash: Crash, struck: &mut bool) -> Result<()> {
    let voyage = Voyage::begin(journey).await?;
    let (tag, cache, source) = (harbor_tag("v1"), cache(journey), given(journey, survey.kind).await?);
    let stopped = first_life(journey, &source, crash, struck).await?;
    // Of an answer that is on its way as a whole nobody knows what it has done, and a redirect has no middle.
    let is_whole = |target: &str| match crash {
        Crash::Question { moment, .. } => {
            moment == Moment::AfterAnswer || moment == Moment::InTheMiddle && target.contains("/assets/")
        }
        Crash::Effect { .. } => false,
    };
    if let Some(Stopped { target, .. }) = stopped.as_ref().filter(|stopped| !is_whole(&stopped.target)) {
        fits(source.purpose(target), &kept(&cache)?).with_context(|| format!("the store at {target}"))?;
    }
    let is_shown = source.has_shown_the_signature();
    if !is_shown {
        nothing_is_applied(journey).await?;
    }
    drop(stopped);

    let source = Arc::new(source);
    let asked = Arc::clone(&source);
    let is_signature = move |_, target: &str| asked.purpose(target) == Purpose::Signature;
    let signer = source.servers()[source.signer()];
    let withheld = (!is_shown).then(|| signer.stop_at(Moment::BeforeAnswer, is_signature));
    let mut operator = Operator::start(journey.lab(), &journey.options)?;
    let withheld = match withheld {
        Some(withheld) => Some(withheld.wait(SOON).await?),
        None => None,
    };
    if let Some(withheld) = withheld {
        // A look is answered before what is decided by it is written: the second answer tells that the first look is over.
        journey.ask_release(&tag, "first look").await?;
        journey.ask_release(&tag, LOOK).await?;
        nothing_is_applied(journey).await?;
        withheld.go_on();
    } else {
        journey.ask_release(&tag, LOOK).await?;
    }
    let wanted = renamed(&survey.world, ADDRESS, &source.address())?;
    becomes(journey, &wanted).await?;
    eventually(SOON, "the release to be kept once", || {
        let is_once = || {
            let kept = kept(&cache)?;
            kept.is_whole()?;
            ensure!(kept.contents == survey.kept.contents, "{kept:?}");
            Ok(())
        };
        ready(is_once())
    })
    .await?;
    voyage.judge(journey).await?;
    operator.check()
}

/// From the start of the operator to its end; with the question at which it was killed.
async fn first_life(journey: &Journey, source: &Source, crash: Crash, struck: &mut bool) -> Result<Option<Stopped>> {
    let tag = harbor_tag("v1");
    let is_ready = journey.release_ready(&tag);
    match crash {
        Crash::Question { server, n, moment } => {
            let arrest = source.servers()[server].stop_at(moment, move |number, _| number == n);
            let operator = Operator::start(journey.lab(), &journey.options)?;
            let stopped = tokio::select! {
                stopped = arrest.wait(SOON) => Some(stopped?),
                ready = is_ready => ready.map(|_| None)?,
            };
            *struck = stopped.is_some();
            operator.kill().await?;
            Ok(stopped)
        }
        Crash::Effect { n } => {
            let mut effects = Effects::below(&cache(journey))?;
            let operator = Operator::start(journey.lab(), &journey.options)?;
            tokio::select! {
                reached = effects.reach(n) => { reached?; *struck = true; }
                ready = is_ready => drop(ready?),
            }
            // Sooner than the way of a kill.
            operator.pause()?;
            operator.kill().await?;
            Ok(None)
        }
    }
}

/// The source with the release, the key, a stack that requires the signature, and an operator that may ask this machine.
async fn given(journey: &mut Journey, kind: Kind) -> Result<Source> {
    let source = Source::start(kind).await?;
    journey.apply(Source::secret()).await?;
    let key = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key" }, "stringData": { "cosign.pub": signed()?.key },
    });
    journey.apply(key).await?;
    let verification = json!({ "mode": "Require", "cosign": { "publicKeySecretRef": { "name": "key" } } });
    let spec = json!({ "versions": ["v1"], "source": source.source(), "verification": verification });
    journey.stack("harbor", spec).await?;
    journey.options.flags.extend([
        "--allow-plain-http".into(),
        "--allow-source-network=127.0.0.0/8".into(),
        format!("--cache-dir={}", cache(journey).display()).into(),
    ]);
    Ok(source)
}

fn cache(journey: &Journey) -> PathBuf {
    journey.folder().join("cache")
}

/// Fails when there is more in the namespace than the stack and its release, or that is ready.
async fn nothing_is_applied(journey: &Journey) -> Result<()> {
    let world = world(journey).await?;
    for (name, object) in &world {
        let is_ours = name.starts_with("ClusterStack ") || name.starts_with("ClusterStackRelease ");
        ensure!(is_ours, "{name} was applied before the signature was shown");
        let is_ready = object["object"]["status"]["ready"] == Value::Bool(true);
        ensure!(!is_ready, "{name} was ready before the signature was shown");
    }
    Ok(())
}

/// The same world with another text in the place of this one.
fn renamed(world: &World, from: &str, to: &str) -> Result<World> {
    Ok(serde_json::from_str(&serde_json::to_string(world)?.replace(from, to))?)
}

/// What a store holds.
#[derive(Debug)]
struct Kept {
    /// Digests of the files of releases, by name, by the digest of the release.
    contents: BTreeMap<String, BTreeMap<String, String>>,
    evidence: Vec<String>,
    identities: Vec<String>,
    /// Names in each workspace.
    workspaces: BTreeMap<String, Vec<String>>,
}

impl Kept {
    /// One release with its signature, and one process that has nothing half done.
    fn is_whole(&self) -> Result<()> {
        let digests: Vec<_> = self.contents.keys().collect();
        ensure!(digests.len() == 1, "releases: {digests:?}");
        let is_its = |name: &String| name.starts_with(digests[0].as_str());
        ensure!(
            self.evidence.len() == 1 && self.evidence.iter().all(is_its),
            "{:?}",
            self.evidence
        );
        ensure!(self.identities.is_empty(), "{:?}", self.identities);
        let is_idle = self.workspaces.len() <= 1 && self.workspaces.values().flatten().all(|name| name == "lock");
        ensure!(is_idle, "left over: {:?}", self.workspaces);
        Ok(())
    }
}

/// Fails when the store of the dead is not at the step that the question belongs to: the crash would not be where it is meant to be.
fn fits(purpose: Purpose, kept: &Kept) -> Result<()> {
    if purpose == Purpose::Order {
        return Ok(());
    }
    if purpose != Purpose::File {
        ensure!(
            kept.contents.len() == 1,
            "signatures are looked for without the release: {kept:?}"
        );
        let is_begun = purpose == Purpose::Signature || kept.evidence.is_empty();
        ensure!(is_begun, "there was evidence before the signature: {:?}", kept.evidence);
        return Ok(());
    }
    let half_done = kept
        .workspaces
        .values()
        .flatten()
        .filter(|name| *name != "lock")
        .count();
    ensure!(kept.workspaces.len() == 1 && half_done > 0, "{:?}", kept.workspaces);
    Ok(())
}

fn kept(cache: &Path) -> Result<Kept> {
    let mut contents = BTreeMap::new();
    for digest in names(&cache.join("sha256"))? {
        let folder = cache.join("sha256").join(&digest);
        let files = names(&folder)?.into_iter().map(|name| {
            let content = fs::read(folder.join(&name))?;
            Ok((name, format!("{:x}", Sha256::digest(content))))
        });
        contents.insert(digest, files.collect::<Result<_>>()?);
    }
    let mut workspaces = BTreeMap::new();
    for name in names(cache)?.into_iter().filter(|name| name.starts_with(".partial-")) {
        let inside = names(&cache.join(&name))?;
        workspaces.insert(name, inside);
    }
    Ok(Kept {
        contents,
        evidence: names(&cache.join("evidence"))?,
        identities: names(&cache.join("identities"))?,
        workspaces,
    })
}

/// The names in a folder; none if it is not there.
fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let entries = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = entries.collect::<Result<_>>()?;
    names.sort();
    Ok(names)
}
