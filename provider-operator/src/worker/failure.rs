//! What a cloud or a source said went wrong, in the words of decisions: one class for each, the message as it is, and whose failure it was. Decides
//! nothing about what follows.

use std::error::Error;

use planning::image::{Failure, FailureClass, Quota};
use provider_plugin::sums::SumsError;
use provider_plugin::{CloudError, ContentError, ErrorClass, SourceError, cut_words};

/// A deed that did not do what it should.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failed {
    /// As decisions see it.
    pub(crate) failure: Failure,
    /// Who failed.
    pub(crate) whose: Whose,
}

/// Who failed: what a source says of itself keeps nobody from a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The cloud, or we on its behalf.
    Cloud,
    /// The source of the bytes, or the bytes.
    Source,
}

impl Failed {
    /// A failure with these words, which are cut to what a message may have.
    pub(crate) fn new(class: FailureClass, words: impl AsRef<str>, whose: Whose) -> Self {
        let failure = Failure::new(class, cut_words(words.as_ref()));
        Self { failure, whose }
    }
}

impl From<CloudError> for Failed {
    fn from(error: CloudError) -> Self {
        let below = error.source.as_deref();
        let is_of_content = below.is_some_and(<dyn Error + Send + Sync>::is::<ContentError>);
        let whose = if is_of_content { Whose::Source } else { Whose::Cloud };
        let quota = error.quota.as_deref().cloned();
        let failed = Self::new(class_of(error.class, whose), error.to_string(), whose);
        Self {
            failure: Failure {
                request_id: error.request_id,
                retry_after: error.retry_after,
                quota: quota.map(|quota| Box::new(of_quota(quota))),
                ..failed.failure
            },
            whose,
        }
    }
}

impl From<SourceError> for Failed {
    fn from(error: SourceError) -> Self {
        let whose = Whose::Source;
        let failed = Self::new(class_of(error.class, whose), &error.message, whose);
        Self {
            failure: Failure {
                retry_after: error.retry_after,
                ..failed.failure
            },
            whose,
        }
    }
}

impl From<SumsError> for Failed {
    fn from(error: SumsError) -> Self {
        Self::new(FailureClass::DigestUnknown, error.to_string(), Whose::Source)
    }
}

/// Decisions know one word for a cloud that does not answer, and another one for a source.
fn class_of(class: ErrorClass, whose: Whose) -> FailureClass {
    match class {
        ErrorClass::Unavailable if whose == Whose::Source => FailureClass::SourceBroken,
        ErrorClass::Unavailable => FailureClass::Unavailable,
        ErrorClass::Throttled => FailureClass::Throttled,
        ErrorClass::Quota => FailureClass::Quota,
        ErrorClass::Busy => FailureClass::Busy,
        ErrorClass::Credentials => FailureClass::Credentials,
        ErrorClass::Permission => FailureClass::Permission,
        ErrorClass::Invalid => FailureClass::Invalid,
        ErrorClass::State => FailureClass::State,
        ErrorClass::Gone => FailureClass::Gone,
        ErrorClass::Unknown => FailureClass::Unknown,
        ErrorClass::InUse => FailureClass::InUse,
        ErrorClass::NotOurs => FailureClass::NotOurs,
        ErrorClass::Unsupported => FailureClass::Unsupported,
        ErrorClass::SourceGone => FailureClass::SourceGone,
        ErrorClass::SourceBroken => FailureClass::SourceBroken,
        ErrorClass::SourceMismatch => FailureClass::SourceMismatch,
        ErrorClass::SourceNotAnImage => FailureClass::SourceNotAnImage,
        ErrorClass::SourceChanged => FailureClass::SourceChanged,
        ErrorClass::Sealing => FailureClass::Sealing,
    }
}

fn of_quota(quota: provider_plugin::Quota) -> Quota {
    let provider_plugin::Quota {
        resource,
        limit,
        used,
        requested,
    } = quota;
    Quota {
        resource,
        limit,
        used,
        requested,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_class_of_a_cloud_is_known_to_decisions_by_its_name() {
        let names = [
            "Unavailable",
            "Throttled",
            "Quota",
            "Busy",
            "Credentials",
            "Permission",
            "Invalid",
            "State",
            "Gone",
            "Unknown",
            "InUse",
            "NotOurs",
            "Unsupported",
            "SourceGone",
            "SourceBroken",
            "SourceMismatch",
            "SourceNotAnImage",
            "SourceChanged",
            "Sealing",
        ];
        for name in names {
            let class: ErrorClass = name.parse().unwrap();
            let failed = Failed::from(CloudError::new(class, "look", "for a reason"));
            assert_eq!(format!("{:?}", failed.failure.class), name);
            assert_eq!(failed.failure.message, "unable to look: for a reason");
            assert_eq!(failed.whose, Whose::Cloud);
        }
    }

    #[test]
    fn what_a_cloud_says_besides_is_kept() {
        let mut error = CloudError::new(ErrorClass::Quota, "create the image", "no room");
        error.request_id = Some("req-1".to_owned());
        error.retry_after = Some(Duration::from_secs(7));
        error.quota = Some(Box::new(provider_plugin::Quota {
            resource: "image_size_total".to_owned(),
            limit: Some(8),
            used: Some(7),
            requested: Some(2),
        }));
        let failure = Failed::from(error).failure;
        assert_eq!(failure.request_id.as_deref(), Some("req-1"));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        let quota = failure.quota.unwrap();
        assert_eq!((quota.resource.as_str(), quota.limit), ("image_size_total", Some(8)));
        assert_eq!((quota.used, quota.requested), (Some(7), Some(2)));
    }

    #[test]
    fn a_source_that_does_not_answer_is_no_cloud_that_does_not() {
        let source = || SourceError::new(ErrorClass::Unavailable, "https://images.example/a gave nothing");
        let content = CloudError::of_content("send the image", source().into());
        for failed in [Failed::from(source()), Failed::from(content)] {
            assert_eq!(failed.failure.class, FailureClass::SourceBroken);
            assert_eq!(failed.whose, Whose::Source);
        }
    }
}
