//! One process of the operator: what it has seen, what it has under way and what it thinks the object says.

use std::collections::BTreeMap;
use std::time::Duration;

use planning::image::{
    Abilities, Amended, Cloud as CloudSeen, Drift, Failure, ForeignSeen, JobsSight, Op, ReadBack, RecordSeen,
    RecordState, Seen, Sight, Source, Unshown, look_again,
};

use super::cloud::{Cloud, Image, Status, sha512};
use super::desk::Desk;
use super::object::Object;

/// What was known of one record.
#[derive(Clone, Debug)]
struct Memory {
    state: RecordState,
    first_seen: Duration,
    marker: u64,
    moved: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub(crate) cached: Object,
    pub(crate) op: Option<Op>,
    /// The connection of a transfer that is under way, and when it began.
    pub(crate) connection: Option<(u64, Duration)>,
    pub(crate) cloud: Sight<CloudSeen>,
    pub(crate) source: Sight<Source>,
    pub(crate) amended: Option<Amended>,
    pub(crate) unshown: Option<Unshown>,
    pub(crate) read_back: BTreeMap<String, ReadBack>,
    /// Its watch is slow.
    pub(crate) lags: bool,
    /// What it knows of Jobs.
    pub(crate) desk: Desk,
    records: BTreeMap<String, Memory>,
    asked: Option<(i64, u32, u32)>,
}

impl Operator {
    pub(crate) fn new(object: &Object) -> Self {
        Self {
            cached: object.clone(),
            op: None,
            connection: None,
            cloud: Sight::Unseen,
            source: Sight::Unseen,
            amended: None,
            unshown: None,
            read_back: BTreeMap::new(),
            lags: false,
            desk: Desk::default(),
            records: BTreeMap::new(),
            asked: None,
        }
    }

    pub(crate) fn seen(&self, jobs: JobsSight) -> Seen {
        Seen {
            cloud: self.cloud.clone(),
            source: self.source.clone(),
            jobs,
            abilities: Some(Abilities {
                server_side: true,
                staged: true,
            }),
            amended: self.amended.clone(),
            unshown: self.unshown.clone(),
            force_after: Duration::from_hours(1),
            stall: Duration::from_mins(1),
            import_patience: None,
        }
    }

    /// What was seen says nothing any more once something else is asked for.
    pub(crate) fn notice_what_is_asked(&mut self) {
        let cached = &self.cached;
        let asked = (cached.generation, cached.spec.request, cached.secret);
        if self.asked != Some(asked) {
            self.asked = Some(asked);
            self.cloud = outdated(self.cloud.clone());
            self.source = Sight::Unseen;
        }
    }

    pub(crate) fn outdate_cloud(&mut self) {
        self.cloud = outdated(self.cloud.clone());
    }

    pub(crate) fn look(&mut self, cloud: &Cloud, now: Duration) -> Result<(), Failure> {
        if !cloud.up || self.cached.secret == 0 {
            let failure = super::cloud::failure(planning::image::FailureClass::Unavailable);
            self.cloud = failed(&self.cloud, &failure, &self.cached.spec.key(), now);
            return Err(failure);
        }
        let mut value = CloudSeen::default();
        let listed = cloud.listed();
        for (id, image) in listed {
            if let Some(record) = self.record(id, image, cloud.makes_sha512, now) {
                value.records.push(record);
            } else if image.named_as_ours || self.cached.spec.adopt.as_ref() == Some(id) {
                value.others.push(ForeignSeen {
                    id: id.clone(),
                    of_our_project: true,
                    usable: image.status == Status::Active,
                    of_community: false,
                    size: image.content.map(u64::from),
                    sha512: image.content.map(sha512).filter(|_| cloud.makes_sha512),
                    digest: None,
                    description: id.clone(),
                });
            }
        }
        let is_there = |id: &String, _: &mut Memory| listed.contains_key(id);
        self.records.retain(is_there);
        let unshown = self.unshown.take();
        self.unshown = unshown.and_then(|unshown| unshown.unless_shown(&value));
        self.cloud = Sight::Seen {
            value,
            at: now,
            fresh: true,
        };
        Ok(())
    }

    fn record(&mut self, id: &str, image: &Image, makes_sha512: bool, now: Duration) -> Option<RecordSeen> {
        let mark = image.mark.as_ref()?;
        let state = match image.status {
            Status::Queued if image.spoilt => RecordState::Spoilt,
            Status::Queued => RecordState::Empty,
            Status::Saving(_) | Status::Uploading(_) => RecordState::Receiving,
            Status::Going(_) => RecordState::Going,
            Status::Importing(_) => RecordState::Importing,
            Status::Active => RecordState::Whole,
            Status::Deactivated => RecordState::Withdrawn,
            Status::Killed => RecordState::Dead,
        };
        let before = self.records.get(id).cloned();
        let memory = Memory {
            state,
            marker: image.marker,
            first_seen: before
                .as_ref()
                .filter(|before| before.state == state)
                .map_or(now, |before| before.first_seen),
            moved: before
                .filter(|before| before.marker == image.marker)
                .map_or(now, |before| before.moved),
        };
        self.records.insert(id.to_owned(), memory.clone());
        let wanted = self.cached.spec.option;
        let drift = Drift {
            field: "min_disk".to_owned(),
            found: image.option.to_string(),
            wanted: wanted.to_string(),
        };
        Some(RecordSeen {
            id: id.to_owned(),
            key: mark.key.clone(),
            attempt: mark.attempt,
            state,
            words: None,
            format: Some(image.format().to_owned()),
            size: image.content.map(u64::from),
            sha512: image.content.map(sha512).filter(|_| makes_sha512),
            verified: image.verified.clone(),
            shown: image.shown,
            drift: if image.option == wanted {
                Vec::new()
            } else {
                vec![drift]
            },
            first_seen: memory.first_seen,
            moved: memory.moved,
            read_back: self.read_back.get(id).cloned(),
            held_elsewhere: false,
        })
    }
}

fn outdated<T>(sight: Sight<T>) -> Sight<T> {
    match sight {
        Sight::Seen { value, at, fresh: _ } => Sight::Seen {
            value,
            at,
            fresh: false,
        },
        Sight::Unseen | Sight::Failed { .. } => Sight::Unseen,
    }
}

pub(crate) fn failed<T>(before: &Sight<T>, failure: &Failure, key: &str, now: Duration) -> Sight<T> {
    let (since, count) = match before {
        Sight::Failed { since, count, .. } => (*since, count + 1),
        Sight::Unseen | Sight::Seen { .. } => (now, 1),
    };
    Sight::Failed {
        failure: failure.clone(),
        since,
        count,
        next: now + look_again(failure, key, count),
    }
}
