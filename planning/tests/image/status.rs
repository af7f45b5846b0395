//! What is kept of an image survives being written to its status and read again.

use crds::providers::image_status::{
    Halted as HaltedOfStatus, NodeImageStatus, Sealed as SealedOfStatus, SentVia, TransferStatus,
};
use planning::image::{
    Algorithm, CloudImage, DeedName, FailureClass, HaltReason, Halted, Kept, Pinned, Retry, Sealed, StopReason,
};

use crate::sweep::CLASSES;
use crate::table::{earlier, wall};

const DEEDS: [DeedName; 11] = [
    DeedName::Look,
    DeedName::Probe,
    DeedName::Create,
    DeedName::Import,
    DeedName::Transfer,
    DeedName::Build,
    DeedName::ReadBack,
    DeedName::Publish,
    DeedName::Amend,
    DeedName::Discard,
    DeedName::Relinquish,
];

pub(crate) const HALTS: [HaltReason; 14] = [
    HaltReason::InvalidSpec,
    HaltReason::NameTaken,
    HaltReason::Ambiguous,
    HaltReason::Refused,
    HaltReason::SourceNotFound,
    HaltReason::SourceMismatch,
    HaltReason::SourceNotAnImage,
    HaltReason::DigestUnknown,
    HaltReason::Unverifiable,
    HaltReason::JobsUnavailable,
    HaltReason::BuildFailed,
    HaltReason::OutOfMemory,
    HaltReason::SealNotKept,
    HaltReason::Unsupported,
];

const STOPS: [StopReason; 6] = [
    StopReason::Deleted,
    StopReason::Changed,
    StopReason::Paused,
    StopReason::Stalled,
    StopReason::Fenced,
    StopReason::Draining,
];

fn retry(deed: DeedName, class: FailureClass) -> Retry {
    Retry {
        deed,
        class,
        message: "it did not work".to_owned(),
        count: 3,
        first_time: earlier(90),
        until: wall(),
        identity: Some("secret/7".to_owned()),
        request: Some("now".to_owned()),
        generation: 7,
    }
}

fn halted(reason: HaltReason) -> Halted {
    Halted {
        reason,
        message: "nothing helps".to_owned(),
        key: "wanted".to_owned(),
        generation: 4,
        identity: None,
        request: Some("now".to_owned()),
    }
}

fn everything() -> Kept {
    Kept {
        attempt: 3,
        key: Some("wanted".to_owned()),
        image: Some(CloudImage {
            id: "one".to_owned(),
            name: "ubuntu".to_owned(),
            size_bytes: Some(4_418_633_728),
            sha512: Some("aa".to_owned()),
            source_digest: Some("sha256:bb".to_owned()),
            adopted: true,
        }),
        publishing: Some("two".to_owned()),
        sealed: None,
        retry: None,
        in_vain: Some(retry(DeedName::Transfer, FailureClass::Quota)),
        halted: Some(halted(HaltReason::NameTaken)),
        imports_failed: 1,
        mismatches: 2,
        unverifiable: 3,
    }
}

/// Through the status and through JSON, as the API server stores it.
fn stored(kept: &Kept) -> Kept {
    let mut status = NodeImageStatus::default();
    kept.write_to(&mut status);
    let json = serde_json::to_string(&status).expect("JSON");
    Kept::of_status(&serde_json::from_str(&json).expect("a status"))
}

#[test]
fn everything_that_is_kept_survives() {
    assert_eq!(stored(&Kept::default()), Kept::default());
    assert_eq!(stored(&everything()), everything());
    let stopped = STOPS.map(|why| FailureClass::Stopped { why });
    let builds = [0, -1, 65, 137].map(|exit| FailureClass::BuildFailed { exit });
    for class in CLASSES.into_iter().chain(stopped).chain(builds) {
        for deed in DEEDS {
            let kept = Kept {
                retry: Some(retry(deed, class)),
                ..everything()
            };
            assert_eq!(stored(&kept), kept);
        }
    }
    for reason in HALTS {
        let kept = Kept {
            halted: Some(halted(reason)),
            ..Kept::default()
        };
        assert_eq!(stored(&kept), kept);
    }
}

#[test]
fn what_was_sealed_is_read_from_the_transfer_and_never_written() {
    let sealed = Sealed {
        attempt: 3,
        source_digest: "sha256:bb".to_owned(),
        sha512: "aa".to_owned(),
        bytes: 100,
    };
    let mut status = NodeImageStatus {
        transfer: Some(TransferStatus {
            attempt: 3,
            via: SentVia::Upload,
            sent_bytes: 90,
            total_bytes: Some(100),
            bytes_per_second: 1,
            seconds_left: None,
            last_progress_time: None,
            resumes: 0,
            started_at: None,
            holder: "pod".to_owned(),
            summary: "90 %".to_owned(),
            sealed: Some(SealedOfStatus {
                attempt: 3,
                source_digest: "sha256:bb".to_owned(),
                sha512: "aa".to_owned(),
                size_bytes: 100,
            }),
        }),
        ..NodeImageStatus::default()
    };
    let transfer = status.transfer.clone();
    assert_eq!(Kept::of_status(&status).sealed, Some(sealed));
    everything().write_to(&mut status);
    assert_eq!(status.transfer, transfer);
}

#[test]
fn the_format_of_an_image_stays_with_it() {
    let mut status = NodeImageStatus::default();
    everything().write_to(&mut status);
    if let Some(image) = &mut status.image {
        image.disk_format = Some("qcow2".to_owned());
    }
    let format = |status: &NodeImageStatus| status.image.as_ref().and_then(|image| image.disk_format.clone());
    everything().write_to(&mut status);
    assert_eq!(format(&status).as_deref(), Some("qcow2"));
    let mut other = everything();
    if let Some(image) = &mut other.image {
        "another".clone_into(&mut image.id);
    }
    other.write_to(&mut status);
    assert_eq!(format(&status), None);
}

#[test]
fn words_of_another_version_count_as_not_written() {
    let mut status = NodeImageStatus::default();
    Kept {
        retry: Some(retry(DeedName::Create, FailureClass::Quota)),
        ..everything()
    }
    .write_to(&mut status);
    for class in ["Dancing", "BuildFailed soon", "Stopped Dancing", "Quota 3", ""] {
        if let Some(retry) = &mut status.retry {
            class.clone_into(&mut retry.class);
        }
        assert_eq!(Kept::of_status(&status).retry, None, "{class}");
    }
    status.halted = Some(HaltedOfStatus {
        reason: "Dancing".to_owned(),
        ..HaltedOfStatus::default()
    });
    status.attempt = Some(-3);
    let kept = Kept::of_status(&status);
    assert_eq!((kept.halted, kept.attempt), (None, 0));
}

#[test]
fn a_digest_is_read_as_it_is_written() {
    for text in [
        format!("sha256:{}", "0a".repeat(32)),
        format!("sha512:{}", "f9".repeat(64)),
    ] {
        let pinned = Pinned::parse(&text).expect("a digest");
        assert_eq!(pinned.to_string(), text);
    }
    let is_sha512 = Pinned::parse(&format!("sha512:{}", "f9".repeat(64)));
    assert_eq!(is_sha512.map(|pinned| pinned.algorithm), Some(Algorithm::Sha512));
    for text in ["", "sha256:", "sha256:0a", "md5:0a", "sha512:zz"] {
        assert_eq!(Pinned::parse(text), None, "{text}");
    }
    assert_eq!(Pinned::parse(&format!("sha256:{}", "0A".repeat(32))), None);
}
