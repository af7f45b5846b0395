//! `lab demo`: the life of one ClusterStack on a real API server, and then that of one Cluster with its add-ons, shown as they happen.
//!
//! [`clusters`] is the second part. Of the first, [`acts`] are what happens; [`stage`] is where, [`cast`] with which releases. [`watches`] bring what the API server tells into
//! the [`picture`], which [`tree`] lays out, or [`changes`] puts in words, and [`screen`] shows.

mod acts;
mod build_act;
mod cast;
mod changes;
mod clusters;
mod given;
mod image_acts;
mod images;
mod picture;
mod play;
mod screen;
mod signals;
mod stage;
mod summary;
mod text;
mod tree;
mod watches;

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result};

use self::{
    cast::Cast,
    picture::Picture,
    play::Play,
    screen::Screen,
    signals::{Signals, Stop},
    stage::Stage,
    summary::{Summary, Writes},
};
use crate::arguments::{DemoArguments, DemoPart, DemoProvider};

/// Plays. The exit code is 0 when all went well, 1 when an act failed, 130 after Ctrl-C; in each case nothing stays behind but
/// what a failure is explained by.
pub(crate) async fn run(arguments: DemoArguments) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let mut screen = Screen::new();
    let mut code = 0;
    if arguments.part != Some(DemoPart::Clusters) {
        code = stacks(&arguments, &mut screen, &mut signals).await?;
    }
    if code == 0 && arguments.plays_clusters() {
        code = clusters::run(&arguments, &mut screen, &mut signals).await?;
    }
    Ok(code.into())
}

/// The first part; the answer is the exit code.
async fn stacks(arguments: &DemoArguments, screen: &mut Screen, signals: &mut Signals) -> Result<u8> {
    let mut stage = Stage::empty(&arguments.namespace)?;
    let played = Box::pin(play(arguments, &mut stage, screen, signals)).await;
    screen.leave();
    let code = match played {
        Ok(()) => 0,
        Err(Stop::Asked(code)) => {
            screen.say("Interrupted: cleaning up.");
            code
        }
        Err(Stop::Failed(error)) => {
            screen.bad(&format!("{error:#}"));
            if stage.keep_evidence().await {
                screen.say(&format!("The operator's log: {}", stage.log().display()));
                screen.say("What else is known is beside it.");
            }
            1
        }
    };
    match signals.unless_asked(stage.clear(screen)).await {
        Ok(()) => Ok(code),
        Err(Stop::Asked(code)) => Ok(code),
        Err(Stop::Failed(error)) => {
            screen.bad(&format!("{error:#}"));
            Ok(code.max(1))
        }
    }
}

async fn play(
    arguments: &DemoArguments,
    stage: &mut Stage,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<(), Stop> {
    screen.begin(match arguments.provider {
        DemoProvider::None => "Stackwright: the life of one ClusterStack on a real Kubernetes API server",
        DemoProvider::Filestore => {
            "Stackwright: the life of one ClusterStack and its node images, which come into a directory"
        }
        DemoProvider::Openstack => {
            "Stackwright: the life of one ClusterStack and its node images, which come into a real Glance"
        }
    });
    screen.say(if arguments.provider == DemoProvider::None {
        "It takes less than a minute where little else runs. Ctrl-C ends it at any moment and leaves nothing behind."
    } else {
        "It takes little more than a minute where little else runs. Ctrl-C ends it at any moment and leaves nothing behind."
    });
    let cast = signals.unless_asked(set_up(arguments, stage, screen)).await?;
    let pause = screen.pause(arguments.pause);
    let picture = Picture::of(stage.namespace(), acts::INTRUDER);
    let mut play = Play::begin(&cast, stage, screen, picture, pause)?;
    signals.unless_asked(play.all_but_the_last()).await?;
    if arguments.keep {
        look_around(&mut play)?;
        tokio::select! {
            code = signals.next() => if code != signals::INTERRUPTED { return Err(Stop::Asked(code)) },
            broken = play.watch() => broken?,
        }
    }
    signals.unless_asked(play.the_last()).await?;
    let metrics = signals.unless_asked(async { play.stage.metrics().await }).await?;
    let summary = Summary {
        usable: 1 + [&cast.second, &cast.built].into_iter().flatten().count(),
        tally: play.picture.tally(),
        writes: metrics.iter().map(Writes::counted_in).sum(),
        images: play.images_played(),
        elapsed: play.screen.elapsed(),
        waited: play.waited,
    };
    play.screen.leave();
    play.screen.heading("In numbers");
    for (key, text) in summary.lines() {
        play.screen.fact(key, &text);
    }
    if !arguments.keep && !arguments.plays_clusters() {
        play.screen.gap();
        play.screen
            .say("To look around by hand before everything goes: cargo xtask demo --keep");
    }
    Ok(())
}

async fn set_up(arguments: &DemoArguments, stage: &mut Stage, screen: &mut Screen) -> Result<Cast> {
    let folder = stage.folder().to_owned();
    if arguments.provider == DemoProvider::None {
        let cast = pick(arguments, screen, &folder).await?;
        stage.build(arguments.kubeconfig.as_deref(), false, screen).await?;
        stage.operate(cast.release_dir(), screen).await?;
        return Ok(cast);
    }
    // What takes images listens where Pods reach it.
    stage.build(arguments.kubeconfig.as_deref(), true, screen).await?;
    stage.make_images(arguments.provider, screen).await?;
    let images = stage.images().context("the demo has no node images")?;
    let packing = async { Cast::harbor_with(images, &folder) };
    let cast = screen
        .step(
            "packing the stack docker-harbor in a few versions, with node images",
            packing,
        )
        .await?;
    stage.operate(cast.release_dir(), screen).await?;
    Ok(cast)
}

/// The releases of a demo without node images.
async fn pick(arguments: &DemoArguments, screen: &mut Screen, folder: &Path) -> Result<Cast> {
    if let Some(directory) = &arguments.releases {
        let reading = async { Cast::from_directory(directory, folder) };
        let what = format!("reading releases in {}", directory.display());
        return screen.step(&what, reading).await;
    }
    let packing = async { Cast::harbor(folder) };
    screen
        .step("packing the stack docker-harbor in three versions", packing)
        .await
}

/// Tells those who asked for it what there is to look at.
fn look_around(play: &mut Play<'_>) -> Result<()> {
    let (kubeconfig, namespace) = (play.stage.kubeconfig()?, play.stage.namespace().to_owned());
    let releases = play.cast.release_dir().join("cluster-stacks");
    let (log, requests) = (play.stage.log(), play.stage.audit_log());
    let images = play
        .stage
        .images()
        .map(|images| images.provider().definition().image_plural);
    let images = images.map_or_else(String::new, |plural| format!(",{plural}"));
    let screen = &mut *play.screen;
    screen.heading("Look around");
    screen.say("Everything stays until you press Ctrl-C here; then the last act follows. In another terminal:");
    screen.quote(&format!(
        "export KUBECONFIG={}\n\
         kubectl config set-context --current --namespace {namespace}\n\
         kubectl get clusterstacks,clusterstackreleases,clusterclasses{images}\n\
         kubectl describe clusterstackreleases {}",
        kubeconfig.display(),
        play.cast.broken
    ));
    screen.say(
        "Delete or edit what you like, and see it come back in the tree. The fourth time within ten minutes it stays as it \
         is, and the release says that it is contested.",
    );
    screen.say("Put releases here, or take them away:");
    screen.quote(&releases.display().to_string());
    screen.say("The operator's log:");
    screen.quote(&log.display().to_string());
    if let Some(requests) = requests {
        screen.say("Every request to the API server:");
        screen.quote(&requests.display().to_string());
    }
    screen.show(play.picture.rows());
    Ok(())
}
