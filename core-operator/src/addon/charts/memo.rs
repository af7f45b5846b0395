//! What charts drew at random for one cluster: passwords, keys, certificates, kept in a Secret beside its ClusterAddon so that they are drawn once. It is
//! read once, and written before anything is made of what is new. Nothing of it is ever told, nor what is said of it by those who could see it.
//!
//! The Secret belongs to the Cluster and not to the ClusterAddon: whoever deletes that has it made anew, and nothing in the cluster may change for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crds::cluster_addon::{AddonMemo, ClusterAddon};
use crds::labels;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use planning::digest::digest_of_everything;
use rendering::answers::{Asked, Entry, Questions};
use serde_json::Value;

use super::hidden::Hidden;
use crate::clusters::CLUSTER_API_GROUP;

/// The type of these Secrets: who made another one of the same name keeps it.
pub(crate) const SECRET_TYPE: &str = "clusterstack.x-k8s.io/memo";

/// Where in the Secret it is.
const KEY: &str = "memo";

/// How often it is asked, of a cluster that is looked at, whether the Secret is still there: nobody watches it.
const ASK_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Most bytes of it. An object of the API server has about three times as much, and half as much again for base64.
const MAX_BYTES: usize = 512 << 10;

/// The name of the Secret of a ClusterAddon.
pub(crate) fn secret_name(addon: &str) -> String {
    format!("{addon}-memo")
}

/// Why the memo is not there. What the API server says of a Secret may repeat it, so its code alone is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemoError {
    /// It may be there, but could not be read.
    #[error("failed to read the Secret {name} with what the charts drew at random{}", answered(*.code))]
    Read {
        /// Its name.
        name: String,
        /// What the API server answered, if it did.
        code: Option<u16>,
    },
    /// It could not be written.
    #[error("failed to write the Secret {name} with what the charts drew at random{}", answered(*.code))]
    Write {
        /// Its name.
        name: String,
        /// What the API server answered, if it did.
        code: Option<u16>,
    },
    /// Somebody else has written it since it was read.
    #[error("somebody else wrote the Secret {name} with what the charts drew at random; it is read again")]
    Changed {
        /// Its name.
        name: String,
    },
    /// Somebody else has a Secret of that name.
    #[error(
        "the Secret {name} is not of the type {SECRET_TYPE}, and what the charts draw at random is to be kept there: give it another name"
    )]
    Foreign {
        /// Its name.
        name: String,
    },
    /// A Cluster of the same name left it.
    #[error("the Secret {name} is that of another Cluster of this name, with which it goes; it is looked for again")]
    Left {
        /// Its name.
        name: String,
    },
    /// Nobody knows whose it would be.
    #[error("the ClusterAddon {addon} does not say which Cluster it belongs to, so that nothing can be kept for it")]
    Ownerless {
        /// The name of the ClusterAddon.
        addon: String,
    },
    /// Nobody can read what is in it.
    #[error(
        "the Secret {name} does not hold what the charts drew at random: put back what it held, or delete it, and everything is drawn anew"
    )]
    Unreadable {
        /// Its name.
        name: String,
    },
}

fn answered(code: Option<u16>) -> String {
    code.map(|code| format!(": the API server answers with the code {code}"))
        .unwrap_or_default()
}

fn code_of(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// A chart asks for more than can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the charts draw more than {MAX_BYTES} bytes at random together, which would not fit into their Secret: draw less"
)]
pub(crate) struct TooMuch;

/// The answers by folder of the chart: charts of two folders may have one name.
type Content = BTreeMap<String, Vec<Entry>>;

/// The memo of one cluster, as this process knows it.
#[derive(Default)]
pub(crate) struct Memo {
    /// What the Secret was when it was read or written last; nothing before.
    stored: Option<Stored>,
    /// When somebody asked last whether it is there.
    asked: Option<Timestamp>,
    /// With what was drawn since.
    content: Content,
    /// Of the content, for whoever compares it often.
    digests: BTreeMap<String, String>,
    /// All answers of the content.
    hidden: Hidden,
}

/// A Secret, or that there is none.
#[derive(Clone, Debug, Default)]
struct Stored {
    version: Option<Version>,
    summary: Option<AddonMemo>,
}

/// Of the Secret: its identity and its resourceVersion.
#[derive(Clone, Debug)]
struct Version {
    uid: Option<String>,
    resource: Option<String>,
}

impl fmt::Debug for Memo {
    /// How much it holds, alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memo")
            .field("stored", &self.stored)
            .field("entries", &count(&self.content))
            .finish_non_exhaustive()
    }
}

impl Memo {
    /// Reads the Secret of a ClusterAddon, unless that was done. One that was there and is no longer is to be written again: what it held is still known here.
    pub(crate) async fn read(
        &mut self,
        client: &Client,
        addon: &ClusterAddon,
        now: Timestamp,
    ) -> Result<(), MemoError> {
        if let Some(stored) = &self.stored {
            let is_there = stored.version.is_some();
            if is_there && self.is_to_be_asked(now) && Self::is_gone(client, addon).await {
                self.stored = Some(Stored::default());
            }
            return Ok(());
        }
        self.asked = Some(now);
        let name = secret_name(&addon.name_any());
        let api: Api<Secret> = api(client, addon);
        let found = api.get_opt(&name).await.map_err(|error| MemoError::Read {
            name: name.clone(),
            code: code_of(&error),
        })?;
        let Some(secret) = found else {
            // What is still known here needs not be drawn again.
            self.stored = Some(Stored::default());
            return Ok(());
        };
        if secret.type_.as_deref() != Some(SECRET_TYPE) {
            return Err(MemoError::Foreign { name });
        }
        let owner = owner(addon)?;
        if !secret.owner_references().iter().any(|one| one.uid == owner.uid) {
            return Err(MemoError::Left { name });
        }
        let data = secret.data.as_ref().and_then(|data| data.get(KEY));
        let content: Option<Content> = data.and_then(|ByteString(bytes)| serde_json::from_slice(bytes).ok());
        let content = content.ok_or(MemoError::Unreadable { name })?;
        self.stored = Some(Stored::of(&secret, &content));
        self.set(content);
        Ok(())
    }

    /// Whether it is time to ask whether the Secret is still there; then it is taken for done.
    fn is_to_be_asked(&mut self, now: Timestamp) -> bool {
        let is_due = self.asked.is_none_or(|asked| now.duration_since(asked) >= ASK_AGAIN);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }

    /// Whether the API server says that there is no Secret. While it says nothing, what is known counts.
    async fn is_gone(client: &Client, addon: &ClusterAddon) -> bool {
        let api: Api<Secret> = api(client, addon);
        let found = api.get_metadata_opt(&secret_name(&addon.name_any())).await;
        matches!(found, Ok(None))
    }

    /// What a chart was answered before.
    pub(crate) fn of(&self, chart: &str) -> Vec<Entry> {
        self.content.get(chart).cloned().unwrap_or_default()
    }

    /// Changes with what a chart was answered.
    pub(crate) fn digest(&mut self, chart: &str) -> String {
        if let Some(digest) = self.digests.get(chart) {
            return digest.clone();
        }
        let digest = digest_of_everything(&self.content.get(chart));
        self.digests.insert(chart.to_owned(), digest.clone());
        digest
    }

    /// Keeps what a chart was answered for the first time. Only here as yet: before anything is made of it, it has to be [written](Self::write).
    pub(crate) fn draw(&mut self, chart: &str, questions: &Questions) -> Result<(), TooMuch> {
        if questions.new.is_empty() {
            return Ok(());
        }
        let mut content = self.content.clone();
        let entries = content.entry(chart.to_owned()).or_default();
        let new: BTreeSet<&Asked> = questions.new.iter().map(|entry| &entry.key).collect();
        entries.retain(|entry| !new.contains(&entry.key));
        entries.extend(questions.new.iter().cloned());
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        if bytes(&content).len() > MAX_BYTES {
            return Err(TooMuch);
        }
        self.set(content);
        Ok(())
    }

    /// Once a target is reached: forgets what none of its charts asks for. Of charts that nobody has rendered all is kept.
    pub(crate) fn keep(&mut self, is_of_release: impl Fn(&str) -> bool, asked: &BTreeMap<&str, BTreeSet<&Asked>>) {
        let mut content = self.content.clone();
        content.retain(|chart, _| is_of_release(chart));
        for (chart, entries) in &mut content {
            if let Some(asked) = asked.get(chart.as_str()) {
                entries.retain(|entry| asked.contains(&entry.key));
            }
        }
        content.retain(|_, entries| !entries.is_empty());
        if content != self.content {
            self.set(content);
        }
    }

    /// What nobody may read, whoever repeats it.
    pub(crate) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    fn set(&mut self, content: Content) {
        let entries = content.values().flatten();
        let answers: Vec<Value> = entries
            .filter_map(|entry| serde_json::to_value(&entry.answer).ok())
            .collect();
        self.hidden = Hidden::of(&answers);
        self.content = content;
        self.digests.clear();
    }

    /// What the Secret holds; nothing before it was read, or where there is none.
    pub(crate) fn stored(&self) -> Option<AddonMemo> {
        self.stored.as_ref()?.summary.clone()
    }

    /// What it has to hold; nothing where no chart has ever drawn anything.
    pub(crate) fn drawn(&self) -> Option<AddonMemo> {
        let is_there = self.stored.as_ref().is_some_and(|stored| stored.summary.is_some());
        (is_there || !self.content.is_empty()).then(|| summary(&self.content))
    }

    /// Writes the Secret, if it holds something else. It must be the one that was read.
    pub(crate) async fn write(&mut self, client: &Client, addon: &ClusterAddon) -> Result<(), MemoError> {
        let name = secret_name(&addon.name_any());
        let Some(stored) = self.stored.clone() else {
            return Err(MemoError::Changed { name });
        };
        if self.drawn() == stored.summary {
            return Ok(());
        }
        let mut secret = secret(addon, &name, &self.content)?;
        let api: Api<Secret> = api(client, addon);
        let parameters = PostParams {
            field_manager: Some(labels::FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let written = match stored.version {
            None => api.create(&parameters, &secret).await,
            Some(Version { uid, resource }) => {
                secret.metadata.uid = uid;
                secret.metadata.resource_version = resource;
                api.replace(&name, &parameters, &secret).await
            }
        };
        match written {
            Ok(written) => {
                self.stored = Some(Stored::of(&written, &self.content));
                Ok(())
            }
            Err(error) => {
                // Also where nobody knows whether it was written.
                self.stored = None;
                Err(match code_of(&error) {
                    Some(404 | 409) => MemoError::Changed { name },
                    code => MemoError::Write { name, code },
                })
            }
        }
    }

    /// The Secret is read again when it is needed.
    pub(crate) fn doubt(&mut self) {
        self.stored = None;
    }
}

impl Stored {
    fn of(secret: &Secret, content: &Content) -> Self {
        Self {
            version: Some(Version {
                uid: secret.uid(),
                resource: secret.resource_version(),
            }),
            summary: Some(summary(content)),
        }
    }
}

fn api(client: &Client, addon: &ClusterAddon) -> Api<Secret> {
    Api::namespaced(client.clone(), &addon.namespace().unwrap_or_default())
}

fn count(content: &Content) -> usize {
    content.values().map(Vec::len).sum()
}

fn summary(content: &Content) -> AddonMemo {
    AddonMemo {
        digest: digest_of_everything(content),
        entries: i64::try_from(count(content)).unwrap_or(i64::MAX),
    }
}

fn bytes(content: &Content) -> Vec<u8> {
    // Maps with texts as keys, of lists of plain types.
    serde_json::to_vec(content).unwrap_or_default()
}

/// The Cluster that owns a ClusterAddon. `clusterctl move` keeps it right.
fn owner(addon: &ClusterAddon) -> Result<OwnerReference, MemoError> {
    let is_cluster = |owner: &&OwnerReference| {
        let group = owner.api_version.split_once('/').map(|(group, _)| group);
        owner.kind == "Cluster" && group == Some(CLUSTER_API_GROUP)
    };
    let owner = addon.owner_references().iter().find(is_cluster);
    let owner = owner.cloned().ok_or_else(|| MemoError::Ownerless {
        addon: addon.name_any(),
    })?;
    Ok(OwnerReference {
        controller: None,
        block_owner_deletion: None,
        ..owner
    })
}

fn secret(addon: &ClusterAddon, name: &str, content: &Content) -> Result<Secret, MemoError> {
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: addon.namespace(),
            labels: Some(BTreeMap::from([(labels::CLUSTERCTL_MOVE.to_owned(), String::new())])),
            owner_references: Some(vec![owner(addon)?]),
            ..ObjectMeta::default()
        },
        type_: Some(SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([(KEY.to_owned(), ByteString(bytes(content)))])),
        ..Secret::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a template asked for, with an answer of so many bytes.
    fn drawn(template: &str, bytes: usize) -> Questions {
        let entry = json!({
            "template": template, "function": "randAlphaNum", "arguments": "", "occurrence": 0, "answer": { "text": "x".repeat(bytes) },
        });
        let entry: Entry = serde_json::from_value(entry).expect("an entry");
        Questions {
            memo: vec![entry.key.clone()],
            new: vec![entry],
            lookups: Vec::new(),
        }
    }

    #[test]
    fn what_does_not_fit_into_the_secret_is_not_drawn_and_what_was_drawn_stays() {
        let mut memo = Memo::default();
        assert_eq!(memo.draw("one", &drawn("a", MAX_BYTES / 2)), Ok(()));
        let before = memo.drawn();
        assert_eq!(memo.draw("two", &drawn("a", MAX_BYTES / 2)), Err(TooMuch));
        assert_eq!(memo.drawn(), before);
        assert_eq!((memo.of("one").len(), memo.of("two").len()), (1, 0));
    }

    #[test]
    fn charts_of_two_folders_have_answers_of_their_own_even_where_their_templates_have_one_name() {
        let mut memo = Memo::default();
        let nothing = memo.digest("one");
        assert_eq!(memo.draw("one", &drawn("a", 20)), Ok(()));
        assert_eq!(memo.digest("two"), nothing);
        assert_ne!(memo.digest("one"), nothing);
        assert!(memo.of("two").is_empty());
    }

    #[test]
    fn nothing_that_was_drawn_is_in_what_is_said_of_a_memo() {
        let mut memo = Memo::default();
        assert_eq!(memo.draw("one", &drawn("a", 20)), Ok(()));
        let said = format!("{memo:?} {:?}", memo.drawn());
        assert!(!said.contains("xxx"), "{said}");
    }
}
