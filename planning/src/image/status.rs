//! What is kept of an image, as its status has it: read and written without loss, to the second. Decides nothing.
//!
//! What another version wrote and this one does not know counts as not written: it is found out again.

use crds::providers::image_status::{
    CloudImage as ImageOfStatus, Halted as HaltedOfStatus, NodeImageStatus, Retry as RetryOfStatus,
    Sealed as SealedOfStatus, Setbacks,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::FailureClass;
use super::kept::{CloudImage, Halted, Kept, Retry, Sealed};
use super::wording::{halt_reason, reason_of_failure, reason_of_halt};

impl Kept {
    /// What the status says.
    pub fn of_status(status: &NodeImageStatus) -> Self {
        let setbacks = status.setbacks.unwrap_or_default();
        let transfer = status.transfer.as_ref();
        let sealed = transfer.and_then(|transfer| transfer.sealed.as_ref()).map(sealed);
        let attempt = status.attempt.map_or(0, count);
        Self {
            // A status that was put back by hand may be older than its seal, which never falls.
            attempt: sealed.as_ref().map_or(attempt, |sealed| attempt.max(sealed.attempt)),
            key: status.content_key.clone(),
            image: status.image.as_ref().map(image),
            publishing: status.publishing.clone(),
            sealed,
            retry: status.retry.as_ref().and_then(retry),
            in_vain: status.in_vain.as_ref().and_then(retry),
            halted: status.halted.as_ref().and_then(halted),
            imports_failed: count(setbacks.imports_failed),
            mismatches: count(setbacks.mismatches),
            unverifiable: count(setbacks.unverifiable),
        }
    }

    /// Writes it into a status, all but what was sealed: that is of whoever transfers the image, and of nobody else.
    pub fn write_to(&self, status: &mut NodeImageStatus) {
        let Self {
            attempt,
            key,
            image,
            publishing,
            sealed: _,
            retry,
            in_vain,
            halted,
            imports_failed,
            mismatches,
            unverifiable,
        } = self;
        let setbacks = Setbacks {
            imports_failed: (*imports_failed).into(),
            mismatches: (*mismatches).into(),
            unverifiable: (*unverifiable).into(),
        };
        status.attempt = (*attempt > 0).then(|| (*attempt).into());
        status.content_key.clone_from(key);
        status.image = image
            .as_ref()
            .map(|image| image_of_status(image, status.image.as_ref()));
        status.publishing.clone_from(publishing);
        status.retry = retry.as_ref().map(retry_of_status);
        status.in_vain = in_vain.as_ref().map(retry_of_status);
        status.halted = halted.as_ref().map(halted_of_status);
        status.setbacks = (setbacks != Setbacks::default()).then_some(setbacks);
    }
}

fn sealed(sealed: &SealedOfStatus) -> Sealed {
    Sealed {
        attempt: count(sealed.attempt),
        source_digest: sealed.source_digest.clone(),
        sha512: sealed.sha512.clone(),
        bytes: amount(sealed.size_bytes),
    }
}

fn image(image: &ImageOfStatus) -> CloudImage {
    CloudImage {
        id: image.id.clone(),
        name: image.name.clone(),
        size_bytes: image.size_bytes.map(amount),
        sha512: image.sha512.clone(),
        source_digest: image.source_digest.clone(),
        adopted: image.adopted,
    }
}

/// The format of the same image stays, which only whoever looked at the cloud knows.
fn image_of_status(image: &CloudImage, before: Option<&ImageOfStatus>) -> ImageOfStatus {
    let same = before.filter(|before| before.id == image.id);
    ImageOfStatus {
        id: image.id.clone(),
        name: image.name.clone(),
        size_bytes: image.size_bytes.map(amount_of_status),
        sha512: image.sha512.clone(),
        source_digest: image.source_digest.clone(),
        disk_format: same.and_then(|before| before.disk_format.clone()),
        adopted: image.adopted,
    }
}

fn retry(retry: &RetryOfStatus) -> Option<Retry> {
    Some(Retry {
        deed: of_word(&retry.deed)?,
        class: class(&retry.class)?,
        message: retry.message.clone(),
        count: count(retry.count),
        first_time: retry.first_time.0,
        until: retry.until.0,
        identity: retry.identity.clone(),
        request: retry.request.clone(),
        generation: retry.generation,
    })
}

fn retry_of_status(retry: &Retry) -> RetryOfStatus {
    RetryOfStatus {
        reason: reason_of_failure(retry.class).as_str().to_owned(),
        message: retry.message.clone(),
        deed: word(&retry.deed),
        class: class_word(retry.class),
        count: retry.count.into(),
        first_time: whole_seconds(retry.first_time),
        until: whole_seconds(retry.until),
        identity: retry.identity.clone(),
        request: retry.request.clone(),
        generation: retry.generation,
    }
}

fn halted(halted: &HaltedOfStatus) -> Option<Halted> {
    Some(Halted {
        reason: halt_reason(&halted.reason)?,
        message: halted.message.clone(),
        key: halted.key.clone(),
        generation: halted.generation,
        identity: halted.identity.clone(),
        request: halted.request.clone(),
    })
}

fn halted_of_status(halted: &Halted) -> HaltedOfStatus {
    HaltedOfStatus {
        reason: reason_of_halt(halted.reason).as_str().to_owned(),
        message: halted.message.clone(),
        key: halted.key.clone(),
        generation: halted.generation,
        identity: halted.identity.clone(),
        request: halted.request.clone(),
    }
}

/// A class as one word, and behind a blank what it says besides.
fn class_word(class: FailureClass) -> String {
    match class {
        FailureClass::BuildFailed { exit } => format!("BuildFailed {exit}"),
        FailureClass::Stopped { why } => format!("Stopped {}", word(&why)),
        class => word(&class),
    }
}

fn class(text: &str) -> Option<FailureClass> {
    match text.split_once(' ') {
        None => of_word(text),
        Some(("BuildFailed", exit)) => Some(FailureClass::BuildFailed {
            exit: exit.parse().ok()?,
        }),
        Some(("Stopped", why)) => Some(FailureClass::Stopped { why: of_word(why)? }),
        Some(_) => None,
    }
}

/// The name of a variant without operands.
fn word(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(word)) => word,
        // Only variants with operands are written otherwise.
        _ => String::new(),
    }
}

fn of_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::from(word)).ok()
}

fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

fn amount(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn amount_of_status(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Times in Kubernetes have no fractions.
pub(super) fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}
