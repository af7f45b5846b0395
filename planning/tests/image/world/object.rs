//! One object as an API server keeps it: a version that every write must know, and a source for its bytes.

use std::time::Duration;

use jiff::Timestamp;
use planning::image::{Algorithm, DeletionPolicy, Execution, ImagePolicy, Kept, Pinned, Via, Wanted};

use super::cloud::{sha256, sha512};

/// How long a build may take.
const BUILD_DEADLINE: Duration = Duration::from_mins(10);

/// What users write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// `a` or `b`: a source, or a recipe where the image is built.
    pub(crate) url: char,
    pub(crate) build: bool,
    pub(crate) execution: Execution,
    pub(crate) digest: Option<Algorithm>,
    pub(crate) option: u32,
    pub(crate) policy: ImagePolicy,
    pub(crate) adopt: Option<String>,
    pub(crate) deletion: DeletionPolicy,
    pub(crate) via: Via,
    pub(crate) paused: bool,
    pub(crate) request: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) spec: Spec,
    pub(crate) generation: i64,
    pub(crate) version: u64,
    pub(crate) kept: Kept,
    pub(crate) finalizer: bool,
    pub(crate) owner_noted: bool,
    pub(crate) deleting: Option<Timestamp>,
    pub(crate) gone: bool,
    /// Of the Secret, which is not part of the object; 0 when it is not there.
    pub(crate) secret: u32,
}

/// What is at an URL in the beginning, which is what digests are of.
pub(crate) fn published(url: char) -> u32 {
    match url {
        'a' => 1,
        _ => 2,
    }
}

impl Spec {
    pub(crate) fn key(&self) -> String {
        if self.build {
            return format!("{}.built", self.url);
        }
        let digest = match self.digest {
            None => "",
            Some(Algorithm::Sha256) => "-sha256",
            Some(Algorithm::Sha512) => "-sha512",
        };
        format!("{}{digest}", self.url)
    }

    /// Nobody knows what is built before it is.
    pub(crate) fn pinned(&self) -> Option<Pinned> {
        let content = published(self.url);
        self.digest.filter(|_| !self.build).map(|algorithm| Pinned {
            algorithm,
            hex: match algorithm {
                Algorithm::Sha256 => sha256(content),
                Algorithm::Sha512 => sha512(content),
            },
        })
    }
}

impl Object {
    pub(crate) fn new(spec: Spec) -> Self {
        Self {
            spec,
            generation: 1,
            version: 1,
            kept: Kept::default(),
            finalizer: false,
            owner_noted: false,
            deleting: None,
            gone: false,
            secret: 1,
        }
    }

    pub(crate) fn wanted(&self) -> Wanted {
        let spec = &self.spec;
        Wanted {
            key: spec.key(),
            name: "ubuntu".to_owned(),
            generation: self.generation,
            identity: (self.secret > 0).then(|| format!("secret/{}", self.secret)),
            request: (spec.request > 0).then(|| spec.request.to_string()),
            policy: spec.policy,
            made_by_others: false,
            adopt: spec.adopt.clone(),
            chosen_id: None,
            deletion: spec.deletion,
            via: spec.via,
            fetchable: !spec.build,
            build: spec.build.then_some(BUILD_DEADLINE),
            digest: spec.pinned(),
            compressed: false,
            format: Some("qcow2".to_owned()),
            execution: spec.execution,
            invalid: None,
            paused: spec.paused,
            moved: false,
            deleting: self.deleting,
            finalizer: self.finalizer,
            owner_noted: self.owner_noted,
            force_finalize: false,
        }
    }
}
