//! How a Job ended, from what it and its Pods say. What a Pod says of the image is a hint: whether the image is there, the cloud says. Pure.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt;
use planning::image::{Deed, Done, Failure, FailureClass, StopReason};

use super::known::{Known, Over};
use super::template::{BUILD, WORKER};
use crate::worker::exit;
use crate::worker::report::Report;

/// The reason of a Pod that its node has ended.
const EVICTED: &str = "Evicted";
/// Most characters of what a build said last.
const LAST_WORDS: usize = 1200;

/// What was last known of a Job while it ran: when it has taken too long, its Pods are gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// What held it up.
    pub(super) held: Option<String>,
    /// Whether its program that sends has run.
    pub(super) sends: bool,
}

/// The end of a Job that is over.
pub(super) fn end(known: &Known, over: &Over, pods: &[Pod], before: &Before) -> Result<Done, Failure> {
    let (namespace, uid) = (&known.plan.object.namespace, &known.uid);
    let mut own: Vec<&Pod> = pods.iter().filter(|pod| is_of(pod, namespace, uid)).collect();
    // A Pod that was driven from its node has a successor.
    own.sort_by_key(|pod| pod.metadata.creation_timestamp.clone().map(|time| time.0));
    let pod = own.last().copied();
    if over.reason == "DeadlineExceeded" {
        return Err(late(known, pod, before));
    }
    let Some(pod) = pod else {
        return Err(vanished(&format!("the Job {} left no Pod", known.name)));
    };
    let status = pod.status.clone().unwrap_or_default();
    let ended = terminated(status.container_statuses.as_deref(), WORKER);
    let report = ended.as_ref().and_then(|ended| ended.message.as_deref());
    match report.and_then(|text| Report::read(text, &known.plan)) {
        // Whoever says that it is done has ended well.
        Some(Ok(done)) if over.is_complete => return Ok(done),
        // Whoever ended it has his reasons, and may have them each time.
        Some(Err(failure)) if is_told_to_end(&failure) => return Err(vanished("the Pod of the Job was told to end")),
        Some(Err(failure)) => return Err(failure),
        _ => {}
    }
    let (reason, message) = (status.reason.unwrap_or_default(), status.message.unwrap_or_default());
    // Its containers were killed then, which says nothing of them.
    if reason == EVICTED {
        return Err(of_pod(known, &reason, &message));
    }
    Err(match (built(pod), &ended) {
        (Some(failure), _) => failure,
        (None, Some(ended)) => unsaid(known, ended),
        (None, None) => of_pod(known, &reason, &message),
    })
}

fn is_told_to_end(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::Stopped { why } if why != StopReason::Stalled)
}

/// It took longer than it may.
fn late(known: &Known, pod: Option<&Pod>, before: &Before) -> Failure {
    let is_build = matches!(known.plan.deed, Deed::Build { .. });
    let built = pod.and_then(|pod| terminated(pod.status.as_ref()?.init_container_statuses.as_deref(), BUILD));
    if is_build && (before.sends || built.is_some_and(|ended| ended.exit_code == 0)) {
        return unsent("was not sent within the time that its Job may take");
    }
    let why = StopReason::Stalled;
    let words = "the Job took longer than it may, and was ended";
    let words = match &before.held {
        Some(held) => format!("{words}; before, {held}"),
        None => words.to_owned(),
    };
    Failure::new(FailureClass::Stopped { why }, words)
}

/// The build is not at fault where its image is not taken.
pub(super) fn unsent(why: &str) -> Failure {
    Failure::new(FailureClass::Unavailable, format!("the image was built, and {why}"))
}

/// A Pod that has the label and is somebody else's says nothing.
pub(super) fn is_of(pod: &Pod, namespace: &str, uid: &str) -> bool {
    let mut owners = pod.owner_references().iter();
    pod.namespace().as_deref() == Some(namespace)
        && owners.any(|owner| owner.uid == uid && owner.controller == Some(true))
}

/// How the build failed, if it did.
fn built(pod: &Pod) -> Option<Failure> {
    let status = pod.status.as_ref()?;
    let ended = terminated(status.init_container_statuses.as_deref(), BUILD).filter(|ended| ended.exit_code != 0)?;
    let said = last_words(ended.message.as_deref().unwrap_or_default());
    let why = if ended.reason.as_deref() == Some("OOMKilled") {
        "the build was ended because it needs more memory; raise spec.image.build.resources".to_owned()
    } else {
        format!("the build ended with code {}", ended.exit_code)
    };
    let words = if said.is_empty() {
        why
    } else {
        format!("{why}; its last lines: {said}")
    };
    let exit = ended.exit_code;
    Some(Failure::new(FailureClass::BuildFailed { exit }, words))
}

/// What the program that sends did not say itself.
fn unsaid(known: &Known, ended: &ContainerStateTerminated) -> Failure {
    if ended.reason.as_deref() == Some("OOMKilled") {
        let words = "the program that sends the image was ended because it needs more memory; raise spec.job.resources";
        return Failure::new(FailureClass::OutOfMemory, words.to_owned());
    }
    vanished(&format!(
        "the program of the Job {} ended with code {} and left no word of ours",
        known.name, ended.exit_code
    ))
}

/// The Pod was ended by its node, or never began.
fn of_pod(known: &Known, reason: &str, message: &str) -> Failure {
    let is_build = matches!(known.plan.deed, Deed::Build { .. });
    let is_too_much = reason == EVICTED && message.to_lowercase().contains("emptydir") && message.contains("limit");
    let message = last_words(message);
    if is_build && is_too_much {
        let exit = i32::from(exit::WRONG);
        let words = format!(
            "the build wrote more than its sizeLimit lets it; raise spec.image.build.sizeLimit, or write less: {message}"
        );
        return Failure::new(FailureClass::BuildFailed { exit }, words);
    }
    let why = if message.is_empty() { reason.to_owned() } else { message };
    vanished(&format!("the Pod of the Job {} was ended: {why}", known.name))
}

fn terminated(statuses: Option<&[ContainerStatus]>, name: &str) -> Option<ContainerStateTerminated> {
    let status = statuses?.iter().find(|status| status.name == name)?;
    status.state.as_ref()?.terminated.clone()
}

/// The end of a text in one line, without what a terminal would act on.
pub(super) fn last_words(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.chars().filter(|letter| !letter.is_control()).collect::<String>())
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let whole = lines.join(" | ");
    let letters = whole.chars().count();
    if letters <= LAST_WORDS {
        return whole;
    }
    let end: String = whole.chars().skip(letters - LAST_WORDS).collect();
    format!("…{end}")
}

/// Nothing is known of how it ended.
pub(super) fn vanished(words: &str) -> Failure {
    Failure::new(FailureClass::JobVanished, words.to_owned())
}

#[cfg(test)]
mod tests;
