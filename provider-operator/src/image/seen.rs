//! What a provider shows of a cloud, as decisions see it: the plugin's words become those of `planning::image`, and what this process has seen before
//! says since when something is so. Decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use planning::image::{Cloud, Drift, ForeignSeen, Pinned, ReadBack, RecordSeen, RecordState};
use provider_plugin::{Foreign, Format, Observed, OwnerId, Record, RecordState as Shown, cut_words};

/// How long a record is as it is, as far as this process has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Motion {
    state: RecordState,
    marker: String,
    first_seen: Duration,
    moved: Duration,
}

/// What is remembered of the records of one object, by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Motions {
    records: BTreeMap<String, Motion>,
    read_back: BTreeMap<String, ReadBack>,
}

impl Motions {
    /// A record was read from the cloud, or the cloud does not give it.
    pub(super) fn read(&mut self, id: &str, read: ReadBack) {
        self.read_back.insert(id.to_owned(), read);
    }

    /// What this installation saw at this steady time. Records that are not there any more are forgotten.
    pub(super) fn see(&mut self, observed: &Observed, here: Option<&OwnerId>, now: Duration) -> Cloud {
        let records = observed.records.iter();
        let records: Vec<RecordSeen> = records.map(|record| self.record(record, here, now)).collect();
        let is_there = |id: &String| records.iter().any(|record| record.id == *id);
        self.records.retain(|id, _| is_there(id));
        self.read_back.retain(|id, _| is_there(id));
        Cloud {
            records,
            others: observed.others.iter().map(foreign).collect(),
        }
    }

    fn record(&mut self, record: &Record, here: Option<&OwnerId>, now: Duration) -> RecordSeen {
        let Record {
            id,
            key,
            attempt,
            holder,
            state,
            size,
            sha512,
            format,
            verified,
            shown,
            drift,
            marker,
        } = record;
        let (state, words) = state_of(state);
        let before = self.records.get(&id.0);
        let motion = Motion {
            state,
            marker: marker.clone(),
            first_seen: before
                .filter(|before| before.state == state)
                .map_or(now, |before| before.first_seen),
            moved: before
                .filter(|before| before.marker == *marker && before.state == state)
                .map_or(now, |before| before.moved),
        };
        let (first_seen, moved) = (motion.first_seen, motion.moved);
        self.records.insert(id.0.clone(), motion);
        RecordSeen {
            id: id.0.clone(),
            key: key.as_str().to_owned(),
            attempt: *attempt,
            state,
            words: words.filter(|words| !words.is_empty()).map(cut_words),
            // Some have two words for one.
            format: format.clone().map(|format| Format::from(format).to_string()),
            size: *size,
            sha512: sha512.clone(),
            verified: verified.clone(),
            shown: *shown,
            drift: drift.iter().map(drifted).collect(),
            first_seen,
            moved,
            read_back: self.read_back.get(&id.0).cloned(),
            held_elsewhere: here.is_some_and(|here| holder != here),
        }
    }
}

fn drifted(drift: &provider_plugin::Drift) -> Drift {
    let provider_plugin::Drift { field, found, wanted } = drift.clone();
    Drift { field, found, wanted }
}

/// The state, and what the cloud says of it.
fn state_of(shown: &Shown) -> (RecordState, Option<&str>) {
    match shown {
        Shown::Empty => (RecordState::Empty, None),
        Shown::Spoilt { why } => (RecordState::Spoilt, Some(why)),
        Shown::Receiving => (RecordState::Receiving, None),
        Shown::Importing { message } => (RecordState::Importing, Some(message)),
        Shown::Whole => (RecordState::Whole, None),
        Shown::Withdrawn => (RecordState::Withdrawn, None),
        Shown::Dead => (RecordState::Dead, None),
        Shown::Going => (RecordState::Going, None),
    }
}

fn foreign(other: &Foreign) -> ForeignSeen {
    let Foreign {
        id,
        is_of_our_project,
        is_usable,
        is_of_community,
        size,
        sha512,
        digest,
        description,
    } = other.clone();
    ForeignSeen {
        id: id.0,
        of_our_project: is_of_our_project,
        usable: is_usable,
        of_community: is_of_community,
        size,
        sha512,
        digest: digest.and_then(|digest| Pinned::parse(&digest.to_string())),
        description,
    }
}

#[cfg(test)]
mod tests {
    use provider_plugin::{ContentKey, ImageId};

    use super::*;

    fn record(id: &str, state: Shown, marker: &str) -> Record {
        Record {
            id: ImageId(id.to_owned()),
            key: ContentKey::parse(&"a".repeat(64)).expect("a key"),
            attempt: 3,
            holder: OwnerId::parse("here").expect("an owner"),
            state,
            size: Some(7),
            sha512: Some("b".repeat(128)),
            format: Some("qcow2".to_owned()),
            verified: Some("sha256:00".to_owned()),
            shown: true,
            drift: vec![provider_plugin::Drift {
                field: "min_disk".to_owned(),
                found: "1".to_owned(),
                wanted: "2".to_owned(),
            }],
            marker: marker.to_owned(),
        }
    }

    fn see(motions: &mut Motions, records: Vec<Record>, second: u64) -> Vec<RecordSeen> {
        let observed = Observed {
            records,
            others: Vec::new(),
        };
        motions.see(&observed, None, Duration::from_secs(second)).records
    }

    #[test]
    fn every_word_of_a_provider_has_one_of_decisions() {
        let why = "bad bytes".to_owned();
        let message = String::new();
        for (shown, state, words) in [
            (Shown::Empty, RecordState::Empty, None),
            (
                Shown::Spoilt { why: why.clone() },
                RecordState::Spoilt,
                Some(why.clone()),
            ),
            (Shown::Receiving, RecordState::Receiving, None),
            (
                Shown::Importing { message: why.clone() },
                RecordState::Importing,
                Some(why),
            ),
            (Shown::Importing { message }, RecordState::Importing, None),
            (Shown::Whole, RecordState::Whole, None),
            (Shown::Withdrawn, RecordState::Withdrawn, None),
            (Shown::Dead, RecordState::Dead, None),
            (Shown::Going, RecordState::Going, None),
        ] {
            let seen = see(&mut Motions::default(), vec![record("one", shown, "m")], 5).remove(0);
            assert_eq!(
                seen,
                RecordSeen {
                    id: "one".to_owned(),
                    key: "a".repeat(64),
                    attempt: 3,
                    state,
                    words,
                    format: Some("qcow2".to_owned()),
                    size: Some(7),
                    sha512: Some("b".repeat(128)),
                    verified: Some("sha256:00".to_owned()),
                    shown: true,
                    drift: vec![Drift {
                        field: "min_disk".to_owned(),
                        found: "1".to_owned(),
                        wanted: "2".to_owned(),
                    }],
                    first_seen: Duration::from_secs(5),
                    moved: Duration::from_secs(5),
                    read_back: None,
                    held_elsewhere: false,
                }
            );
        }
    }

    #[test]
    fn what_another_installation_holds_is_seen_as_such() {
        let observed = Observed {
            records: vec![record("one", Shown::Whole, "m")],
            others: Vec::new(),
        };
        for (looked, expected) in [("here", false), ("there", true)] {
            let looked = OwnerId::parse(looked);
            let seen = Motions::default().see(&observed, looked.as_ref(), Duration::ZERO);
            assert_eq!(seen.records[0].held_elsewhere, expected, "{looked:?} looked");
        }
    }

    #[test]
    fn a_record_moves_when_its_marker_does_and_is_as_old_as_its_state() {
        let mut motions = Motions::default();
        let mut times = |state, marker, second| {
            let seen = see(&mut motions, vec![record("one", state, marker)], second).remove(0);
            (seen.first_seen.as_secs(), seen.moved.as_secs())
        };
        assert_eq!(times(Shown::Receiving, "1", 10), (10, 10));
        assert_eq!(times(Shown::Receiving, "1", 20), (10, 10));
        assert_eq!(times(Shown::Receiving, "2", 30), (10, 30));
        assert_eq!(times(Shown::Whole, "2", 40), (40, 40));
    }

    #[test]
    fn what_was_read_is_known_as_long_as_the_record_is_there() {
        let mut motions = Motions::default();
        motions.read("one", ReadBack::Refused);
        let mut read = |records| {
            see(&mut motions, records, 1)
                .first()
                .and_then(|record| record.read_back.clone())
        };
        assert_eq!(read(vec![record("one", Shown::Whole, "1")]), Some(ReadBack::Refused));
        assert_eq!(read(Vec::new()), None);
        assert_eq!(read(vec![record("one", Shown::Whole, "1")]), None);
    }
}
