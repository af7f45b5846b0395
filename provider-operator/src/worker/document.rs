//! A deed as a Job is told of it: one JSON document in an annotation of its Pod, mounted as a file. Reads and writes it; opens nothing.
//!
//! It holds no secret, and says only what one program may be told to do: send an image, or what was built of one.

use crds::providers::Provider;
use planning::image::Deed;
use provider_plugin::{Compression, ImageSpec, Pinned};
use release::http::IpNet;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ContentSpec, WorkPlan};
use crate::objects::ObjectId;

/// The only version so far.
const VERSION: u32 = 1;

/// Longest document in bytes: what the API server lets all annotations of an object have together.
pub(crate) const LARGEST: usize = 256 * 1024;

/// What one Job is to do. Another version of the operator says it in another way, so what is unknown is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Document {
    version: u32,
    /// Whose image.
    object: ObjectOfDocument,
    /// What is done.
    deed: DeedOfDocument,
    /// To which image.
    image: ImageSpec,
    /// What its bytes are.
    #[serde(default)]
    content: ContentOfDocument,
    /// Which of the clouds in the Secret, or which of the stores, is meant.
    pub(crate) cloud: String,
    /// What may be connected to.
    #[serde(default)]
    pub(crate) network: NetworkOfDocument,
    /// Most bytes that a build may leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ObjectOfDocument {
    provider: Provider,
    namespace: String,
    name: String,
    uid: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum DeedOfDocument {
    /// Sends the file at the URL.
    Transfer {
        id: String,
        attempt: u32,
        #[serde(default)]
        staged: bool,
    },
    /// Sends the file that was built.
    Build { id: String, attempt: u32 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContentOfDocument {
    #[serde(default)]
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Pinned>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remembered: Option<Pinned>,
    #[serde(default)]
    compression: Compression,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sums: Option<SumsOfDocument>,
}

/// A file with digests of several files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SumsOfDocument {
    /// Where it is.
    pub(crate) url: String,
    /// The name of the image in it, unless it is the last part of its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

/// What flags of the operator open of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NetworkOfDocument {
    /// Sources without TLS.
    #[serde(default)]
    pub(crate) plain_http: bool,
    /// Networks with sources that are not public, in CIDR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    source_networks: Vec<String>,
    /// Networks with clouds, in CIDR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cloud_networks: Vec<String>,
}

impl NetworkOfDocument {
    /// As flags say it.
    pub(crate) fn new(plain_http: bool, sources: &[IpNet], clouds: &[IpNet]) -> Self {
        let texts = |networks: &[IpNet]| networks.iter().map(ToString::to_string).collect();
        Self {
            plain_http,
            source_networks: texts(sources),
            cloud_networks: texts(clouds),
        }
    }

    /// Networks of sources. What is none was not written by us, and opens nothing.
    pub(crate) fn sources(&self) -> Vec<IpNet> {
        parsed(&self.source_networks)
    }

    /// The same of clouds.
    #[cfg(feature = "openstack")]
    pub(crate) fn clouds(&self) -> Vec<IpNet> {
        parsed(&self.cloud_networks)
    }
}

fn parsed(networks: &[String]) -> Vec<IpNet> {
    networks.iter().filter_map(|network| network.parse().ok()).collect()
}

/// What a Job is told beside the deed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// See [`Document`].
    pub(crate) cloud: String,
    /// See [`Document`].
    pub(crate) network: NetworkOfDocument,
    /// See [`Document`].
    pub(crate) artifact_limit: Option<u64>,
    /// Where digests are.
    pub(crate) sums: Option<SumsOfDocument>,
}

/// There is no such document.
#[derive(Debug, Error)]
pub(crate) enum DocumentError {
    /// A deed that is done in the operator alone.
    #[error("a Job only sends images; this is done in the operator")]
    Compose,
    /// It is larger than an annotation may be.
    #[error("what is asked for of the image has {bytes} bytes, and a Job can be told {LARGEST}; ask for less")]
    Fit {
        /// How large.
        bytes: usize,
    },
    /// It is not JSON, or says what this version does not know.
    #[error("the plan cannot be read; the image of the Job must be of the same version as the operator")]
    Read(#[source] serde_json::Error),
    /// Of another version.
    #[error(
        "the plan is of version {found} and not {VERSION}; the image of the Job must be of the same version as the operator"
    )]
    Version {
        /// Which.
        found: u32,
    },
}

impl Document {
    /// What a Job is told to do this.
    ///
    /// # Errors
    /// The deed is none of a Job.
    pub(crate) fn of(plan: &WorkPlan, surroundings: Surroundings) -> Result<Self, DocumentError> {
        let WorkPlan {
            object,
            deed,
            image,
            // A program looks at nothing, and deletes nothing.
            holder: _,
            goes: _,
            holds: _,
            content,
        } = plan;
        let deed = match deed.clone() {
            Deed::Transfer { id, attempt, staged } => DeedOfDocument::Transfer { id, attempt, staged },
            Deed::Build { id, attempt } => DeedOfDocument::Build { id, attempt },
            _ => return Err(DocumentError::Compose),
        };
        let ObjectId {
            provider,
            namespace,
            name,
            uid,
        } = object.clone();
        let ContentSpec {
            url,
            pinned,
            remembered,
            compression,
            // A Job sends.
            is_fetched: _,
        } = content.clone();
        let Surroundings {
            cloud,
            network,
            artifact_limit,
            sums,
        } = surroundings;
        Ok(Self {
            version: VERSION,
            object: ObjectOfDocument {
                provider,
                namespace,
                name,
                uid,
            },
            deed,
            image: image.clone(),
            content: ContentOfDocument {
                url,
                pinned,
                remembered,
                compression,
                sums,
            },
            cloud,
            network,
            artifact_limit,
        })
    }

    /// As a text on one line.
    ///
    /// # Errors
    /// It is too long.
    pub(crate) fn text(&self) -> Result<String, DocumentError> {
        let text = serde_json::to_string(self).map_err(DocumentError::Read)?;
        if text.len() > LARGEST / 2 {
            // Half of the place is for what others put there.
            return Err(DocumentError::Fit { bytes: text.len() });
        }
        Ok(text)
    }

    /// What such a text says.
    ///
    /// # Errors
    /// Somebody else wrote it, or another version.
    pub(crate) fn read(text: &str) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_str(text).map_err(DocumentError::Read)?;
        if version != VERSION {
            return Err(DocumentError::Version { found: version });
        }
        serde_json::from_str(text).map_err(DocumentError::Read)
    }

    /// The deed with all that it is about.
    pub(crate) fn plan(&self) -> WorkPlan {
        let ObjectOfDocument {
            provider,
            namespace,
            name,
            uid,
        } = self.object.clone();
        let ContentOfDocument {
            url,
            pinned,
            remembered,
            compression,
            sums: _,
        } = self.content.clone();
        WorkPlan {
            object: ObjectId {
                provider,
                namespace,
                name,
                uid,
            },
            deed: match self.deed.clone() {
                DeedOfDocument::Transfer { id, attempt, staged } => Deed::Transfer { id, attempt, staged },
                DeedOfDocument::Build { id, attempt } => Deed::Build { id, attempt },
            },
            image: self.image.clone(),
            holder: self.image.subject.owner.clone(),
            goes: false,
            holds: false,
            content: ContentSpec {
                url,
                pinned,
                remembered,
                compression,
                is_fetched: false,
            },
        }
    }

    /// Where digests are.
    pub(crate) fn sums(&self) -> Option<&SumsOfDocument> {
        self.content.sums.as_ref()
    }

    /// Of which attempt.
    pub(crate) fn attempt(&self) -> u32 {
        match self.deed {
            DeedOfDocument::Transfer { attempt, .. } | DeedOfDocument::Build { attempt, .. } => attempt,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::stand_ins::{object, plan};

    fn document(deed: Deed) -> Document {
        let mut plan = plan(&object("fleet", "ubuntu"), deed);
        plan.content.url = "https://images.example/u".to_owned();
        plan.content.pinned = Pinned::parse(&format!("sha256:{}", "ab".repeat(32))).ok();
        let networks = ["10.0.0.0/8".parse().expect("a network")];
        let surroundings = Surroundings {
            cloud: "openstack".to_owned(),
            network: NetworkOfDocument::new(true, &networks, &networks),
            artifact_limit: Some(9),
            sums: Some(SumsOfDocument {
                url: "https://images.example/SHA256SUMS".to_owned(),
                name: None,
            }),
        };
        Document::of(&plan, surroundings).expect("a document")
    }

    fn sends() -> Deed {
        Deed::Transfer {
            id: "one".to_owned(),
            attempt: 3,
            staged: false,
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        for deed in [
            sends(),
            Deed::Build {
                id: "one".to_owned(),
                attempt: 3,
            },
        ] {
            let document = document(deed.clone());
            let read = Document::read(&document.text().expect("a text")).expect("a document");
            assert_eq!(read, document);
            let plan = read.plan();
            assert_eq!((plan.deed, read.attempt()), (deed, 3));
            assert_eq!(plan.object, object("fleet", "ubuntu"));
            assert_eq!(plan.content.url, "https://images.example/u");
            assert_eq!(read.network.sources().len() + read.network.clouds().len(), 2);
        }
    }

    #[test]
    fn a_job_can_be_told_to_send_and_nothing_else() {
        let discard = Deed::Discard {
            id: "one".to_owned(),
            attempt: 3,
            why: planning::image::DiscardReason::Deleted,
        };
        for deed in [Deed::Look, discard] {
            let plan = plan(&object("fleet", "ubuntu"), deed);
            let told = Document::of(&plan, Surroundings::default());
            assert!(matches!(told, Err(DocumentError::Compose)), "{told:?}");
        }
        let text = document(sends()).text().expect("a text");
        let other = text.replace("\"transfer\":", "\"discard\":");
        assert!(Document::read(&other).is_err());
    }

    #[test]
    fn what_this_version_does_not_know_is_refused_with_what_to_do() {
        let text = document(sends()).text().expect("a text");
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        value["object"]["colour"] = "red".into();
        let refused = Document::read(&value.to_string()).expect_err("refused").to_string();
        assert!(refused.contains("same version"), "{refused}");
        let later = text.replace("\"version\":1", "\"version\":2");
        assert!(matches!(
            Document::read(&later),
            Err(DocumentError::Version { found: 2 })
        ));
    }

    #[test]
    fn what_does_not_fit_is_told_before_anything_is_made() {
        let mut plan = plan(&object("fleet", "ubuntu"), sends());
        plan.content.url = format!("https://images.example/{}", "u".repeat(LARGEST));
        let document = Document::of(&plan, Surroundings::default()).expect("a document");
        assert!(matches!(document.text(), Err(DocumentError::Fit { .. })));
    }
}
