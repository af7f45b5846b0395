//! The second part: the life of one Cluster and its add-ons, on the real Cluster API and a workload cluster with a real API server.
//!
//! [`acts`] are what happens; [`ground`] is where, [`view`] what is known of it at one moment, and [`play()`] shows that and waits.

mod acts;
mod ground;
mod play;
mod view;

use anyhow::Result;

use self::{ground::Ground, play::Play};
use super::{
    screen::Screen,
    signals::{Signals, Stop},
};
use crate::arguments::DemoArguments;

/// Plays. The answer is the exit code; nothing stays behind but what a failure is explained by.
pub(super) async fn run(arguments: &DemoArguments, screen: &mut Screen, signals: &mut Signals) -> Result<u8> {
    screen.begin("Stackwright: the life of one Cluster and its add-ons on the real Cluster API");
    screen.say(
        "It takes about a minute where little else runs. Cluster API and both API servers are real. Played are those who would make machines: a provider \
         of hosted control planes, and kwok for the kubelets.",
    );
    let mut ground = match signals.unless_asked(Ground::build(&arguments.namespace, screen)).await {
        Ok(ground) => ground,
        // What was started by then ends when it is dropped.
        Err(Stop::Asked(code)) => return Ok(interrupted(screen, code)),
        Err(Stop::Failed(error)) => {
            screen.bad(&format!("{error:#}"));
            return Ok(1);
        }
    };
    let played = Box::pin(play(arguments, &mut ground, screen, signals)).await;
    screen.leave();
    let code = match played {
        Ok(()) => 0,
        Err(Stop::Asked(code)) => interrupted(screen, code),
        Err(Stop::Failed(error)) => {
            screen.bad(&format!("{error:#}"));
            ground.keep_evidence().await;
            screen.say(&format!("The operator's log: {}", ground.log().display()));
            screen.say("What else is known is beside it.");
            1
        }
    };
    match signals.unless_asked(ground.clear()).await {
        Ok(()) => Ok(code),
        Err(Stop::Asked(code)) => Ok(code),
        Err(Stop::Failed(error)) => {
            screen.bad(&format!("{error:#}"));
            Ok(code.max(1))
        }
    }
}

fn interrupted(screen: &mut Screen, code: u8) -> u8 {
    screen.say("Interrupted: cleaning up.");
    code
}

async fn play(
    arguments: &DemoArguments,
    ground: &mut Ground,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<(), Stop> {
    let pause = screen.pause(arguments.pause);
    let mut play = Play::begin(ground, screen, pause);
    Box::pin(signals.unless_asked(play.all_but_the_last())).await?;
    if arguments.keep {
        look_around(&mut play);
        tokio::select! {
            code = signals.next() => if code != super::signals::INTERRUPTED { return Err(Stop::Asked(code)) },
            broken = play.watch() => broken?,
        }
    }
    signals.unless_asked(play.the_last()).await?;
    let (told, waited) = (play.told.clone(), play.waited);
    screen.leave();
    screen.heading("In numbers");
    screen.fact(
        "add-ons",
        &format!(
            "{} objects of two charts; 2 that somebody had broken were put back; 1 release could not be rendered, which was told with the reason, and the next \
             took its place",
            told.objects
        ),
    );
    screen.fact(
        "upgrade",
        &format!("{} to {}, held back once and let go", told.from, told.to),
    );
    screen.fact(
        "seconds",
        &format!(
            "{:.1} in all, {:.1} of them waiting for Cluster API and the operator",
            screen.elapsed().as_secs_f64(),
            waited.as_secs_f64()
        ),
    );
    if !arguments.keep {
        screen.gap();
        screen.say("To look around by hand before everything goes: cargo xtask demo --keep");
    }
    Ok(())
}

/// Tells those who asked for it what there is to look at.
fn look_around(play: &mut Play<'_>) {
    let (management, workload) = (play.ground.kubeconfig(), play.ground.workload_kubeconfig());
    let (namespace, log) = (play.ground.namespace().to_owned(), play.ground.log());
    let screen = &mut *play.screen;
    screen.heading("Look around");
    screen.say("Everything stays until you press Ctrl-C here; then the last act follows. In another terminal:");
    screen.quote(&format!(
        "export KUBECONFIG={}\n\
         kubectl config set-context --current --namespace {namespace}\n\
         kubectl get clusters,clusteraddons,clusterstackreleases\n\
         kubectl describe clusteraddons\n\
         kubectl --kubeconfig {} get deployments,configmaps --all-namespaces",
        management.display(),
        workload.display(),
    ));
    screen.say("The operator's log:");
    screen.quote(&log.display().to_string());
    screen.show(play.view.rows());
}
