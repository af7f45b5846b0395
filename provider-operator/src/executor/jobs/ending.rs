//! How a Job ended, from what it and its Pods say. What a Pod says of the image is a hint: whether the image is there, the cloud says. Pure.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt;
use planning::image::{Deed, Done, Failure, FailureClass, StopReason};

use super::known::{Known, Over};
use super::template::{BUILD, WORKER};
use crate::worker::exit;
use crate::worker::report::Report;

/// Most characters of what a build said last.
const LAST_WORDS: usize = 1200;

/// The end of a Job that is over.
pub(super) fn end(known: &Known, over: &Over, pods: &[Pod]) -> Result<Done, Failure> {
    let mut own: Vec<&Pod> = pods.iter().filter(|pod| is_of(pod, known)).collect();
    // A Pod that was driven from its node has a successor.
    own.sort_by_key(|pod| pod.metadata.creation_timestamp.clone().map(|time| time.0));
    let pod = own.last().copied();
    if over.reason == "DeadlineExceeded" {
        let why = StopReason::Stalled;
        let words = "the Job took longer than it may, and was ended".to_owned();
        return Err(Failure::new(FailureClass::Stopped { why }, words));
    }
    let Some(pod) = pod else {
        return Err(vanished(&format!("the Job {} left no Pod", known.name)));
    };
    if let Some(failure) = built(pod) {
        return Err(failure);
    }
    let status = pod.status.clone().unwrap_or_default();
    let ended = terminated(status.container_statuses.as_deref(), WORKER);
    let report = ended.as_ref().and_then(|ended| ended.message.as_deref());
    match (report.and_then(|text| Report::read(text, &known.plan)), &ended) {
        // Whoever says that it is done has ended well.
        (Some(Ok(done)), _) if over.is_complete => Ok(done),
        (Some(Err(failure)), _) => Err(failure),
        (_, Some(ended)) => Err(unsaid(known, ended)),
        (_, None) => Err(of_pod(
            known,
            &status.reason.unwrap_or_default(),
            &status.message.unwrap_or_default(),
        )),
    }
}

/// A Pod that has the label and is somebody else's says nothing.
fn is_of(pod: &Pod, known: &Known) -> bool {
    let mut owners = pod.owner_references().iter();
    pod.namespace().as_ref() == Some(&known.plan.object.namespace)
        && owners.any(|owner| owner.uid == known.uid && owner.controller == Some(true))
}

/// How the build failed, if it did.
fn built(pod: &Pod) -> Option<Failure> {
    let status = pod.status.as_ref()?;
    let ended = terminated(status.init_container_statuses.as_deref(), BUILD).filter(|ended| ended.exit_code != 0)?;
    let said = last_words(ended.message.as_deref().unwrap_or_default());
    let why = if ended.reason.as_deref() == Some("OOMKilled") {
        "the build was ended because it needs more memory than its limits give".to_owned()
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
        return Failure::new(FailureClass::Unknown, words.to_owned());
    }
    vanished(&format!(
        "the program of the Job {} ended with code {} and left no word of ours",
        known.name, ended.exit_code
    ))
}

/// The Pod was ended by its node, or never began.
fn of_pod(known: &Known, reason: &str, message: &str) -> Failure {
    let is_build = matches!(known.plan.deed, Deed::Build { .. });
    let is_too_much = reason == "Evicted" && message.to_lowercase().contains("emptydir") && message.contains("limit");
    let message = last_words(message);
    if is_build && is_too_much {
        let exit = i32::from(exit::WRONG);
        let words = format!("the build left more than its sizeLimit lets it: {message}");
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
fn last_words(text: &str) -> String {
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
