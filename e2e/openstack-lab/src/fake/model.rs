//! What the services hold: images, the ids of those that are gone, tokens. It decides nothing; what may become of an image is said where it
//! is sent, imported or changed.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{identity::Session, upload::Received};

/// Where an image stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Queued,
    Saving,
    Uploading,
    Importing,
    Active,
    Deactivated,
    Killed,
    PendingDelete,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Saving => "saving",
            Self::Uploading => "uploading",
            Self::Importing => "importing",
            Self::Active => "active",
            Self::Deactivated => "deactivated",
            Self::Killed => "killed",
            Self::PendingDelete => "pending_delete",
        }
    }
}

/// What the owner of an image may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Amendable {
    pub(super) name: Option<String>,
    pub(super) visibility: String,
    pub(super) protected: bool,
    pub(super) hidden: bool,
    pub(super) min_disk: u64,
    pub(super) min_ram: u64,
    pub(super) disk_format: Option<String>,
    pub(super) container_format: Option<String>,
    pub(super) tags: BTreeSet<String>,
    pub(super) properties: BTreeMap<String, String>,
}

/// An import and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) message: String,
}

/// An image.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) id: String,
    /// The later, the greater.
    pub(super) number: u64,
    pub(super) project: &'static str,
    pub(super) owner: String,
    pub(super) status: Status,
    pub(super) fields: Amendable,
    /// Of the bytes that were sent; left behind also by those that were refused.
    pub(super) sums: Option<Sums>,
    pub(super) data: Option<Bytes>,
    pub(super) staged: Option<Received>,
    /// The store still has the bytes of an upload that was refused.
    pub(super) is_spoilt: bool,
    /// The import that holds the lock.
    pub(super) import: Option<String>,
    pub(super) importing_to: Option<String>,
    pub(super) failed_import: Option<String>,
    pub(super) tasks: Vec<Task>,
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
}

/// What is known of bytes.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) size: u64,
    pub(super) virtual_size: Option<u64>,
    /// Glance's is an md5; here it is no more than a sign that bytes came.
    pub(super) checksum: String,
    pub(super) sha512: String,
}

impl Image {
    pub(super) fn new(id: String, number: u64, project: &'static str, owner: String, fields: Amendable) -> Self {
        let now = Timestamp::now();
        Self {
            id,
            number,
            project,
            owner,
            status: Status::Queued,
            fields,
            sums: None,
            data: None,
            staged: None,
            is_spoilt: false,
            import: None,
            importing_to: None,
            failed_import: None,
            tasks: Vec::new(),
            created: now,
            updated: now,
        }
    }

    /// As it is told.
    pub(super) fn shown(&self) -> Value {
        let mut shown: Map<String, Value> = Map::new();
        let fields = &self.fields;
        for (key, value) in &fields.properties {
            shown.insert(key.clone(), value.clone().into());
        }
        let marks = [
            ("os_glance_import_task", &self.import),
            ("os_glance_importing_to_stores", &self.importing_to),
            ("os_glance_failed_import", &self.failed_import),
        ];
        for (mark, value) in marks {
            if let Some(value) = value {
                shown.insert(mark.to_owned(), value.clone().into());
            }
        }
        let sums = self.sums.as_ref();
        let own = json!({
            "id": self.id, "name": fields.name, "status": self.status.word(), "owner": self.owner,
            "visibility": fields.visibility, "protected": fields.protected, "os_hidden": fields.hidden,
            "min_disk": fields.min_disk, "min_ram": fields.min_ram, "tags": fields.tags,
            "disk_format": fields.disk_format, "container_format": fields.container_format,
            "size": sums.map(|sums| sums.size), "virtual_size": sums.and_then(|sums| sums.virtual_size),
            "checksum": sums.map(|sums| &sums.checksum),
            "os_hash_algo": sums.map(|_| "sha512"), "os_hash_value": sums.map(|sums| &sums.sha512),
            "created_at": seconds(self.created), "updated_at": seconds(self.updated),
            "self": format!("/v2/images/{}", self.id), "file": format!("/v2/images/{}/file", self.id),
            "schema": "/v2/schemas/image",
        });
        if let Value::Object(own) = own {
            shown.extend(own);
        }
        Value::Object(shown)
    }

    pub(super) fn touch(&mut self) {
        self.updated = Timestamp::now();
    }

    /// Whether somebody of this project may look at it.
    pub(super) fn is_shown_to(&self, project: &str) -> bool {
        self.project == project || ["public", "community"].contains(&self.fields.visibility.as_str())
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) images: BTreeMap<String, Image>,
    /// The ids of images that are gone; they stay taken.
    pub(super) gone: BTreeSet<String>,
    pub(super) sessions: BTreeMap<String, Session>,
    /// Application credentials that are worth nothing any more.
    pub(super) revoked: BTreeSet<String>,
    count: u64,
}

impl State {
    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// A token for a session.
    pub(super) fn remember(&mut self, session: Session) -> String {
        let token = format!("gAAAAA-token-{}", self.number());
        self.sessions.insert(token.clone(), session);
        token
    }

    /// An id that nothing has.
    pub(super) fn id(&mut self) -> String {
        let name = format!("{} {}", self.number(), Timestamp::now());
        Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).to_string()
    }
}
