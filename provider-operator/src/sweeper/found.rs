//! What searches find, whoever asks: an image is one image with whatever credentials it was seen. Remembers, and asks nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::providers::Provider;
use planning::image::{OwnedImage, Sightings};

/// When images of each cloud were first found without an object. With which credentials is no matter: those change more often than one looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(BTreeMap<(Provider, String), OfCloud>);

/// What one search makes of one cloud, which may answer to one identity and not to another.
#[derive(Clone, Debug, Default)]
struct OfCloud {
    /// What those have seen who were answered.
    seen: Sightings,
    /// All that they were told of, orphans or not.
    judged: BTreeSet<String>,
    /// What was known before, where somebody was not answered.
    before: Sightings,
}

impl Memory {
    /// Of this cloud. What was known before stays so where nobody was told of it, and somebody may have missed it: what was found to be no orphan any more
    /// is forgotten, so that it is seen twice again before it goes.
    pub(super) fn of(&self, provider: Provider, cloud: &str) -> Sightings {
        let Some(of_cloud) = self.0.get(&(provider, cloud.to_owned())) else {
            return Sightings::new();
        };
        let mut sightings = of_cloud.seen.clone();
        let missed = of_cloud.before.iter().filter(|(id, _)| !of_cloud.judged.contains(*id));
        add(&mut sightings, missed.map(|(id, first)| (id.clone(), *first)));
        sightings
    }

    /// Adds what one identity was told of, and what of that it has seen without an object; what was seen earlier stays so.
    pub(super) fn answered(&mut self, provider: Provider, cloud: &str, owned: &[OwnedImage], sightings: Sightings) {
        let of_cloud = self.0.entry((provider, cloud.to_owned())).or_default();
        add(&mut of_cloud.seen, sightings);
        of_cloud.judged.extend(owned.iter().map(|image| image.id.clone()));
    }

    /// One identity was not answered: this is what was known before.
    pub(super) fn unanswered(&mut self, provider: Provider, cloud: &str, before: Sightings) {
        let of_cloud = self.0.entry((provider, cloud.to_owned())).or_default();
        add(&mut of_cloud.before, before);
    }
}

fn add(known: &mut Sightings, sightings: impl IntoIterator<Item = (String, Duration)>) {
    for (id, first) in sightings {
        let earliest = known.entry(id).or_insert(first);
        *earliest = first.min(*earliest);
    }
}

/// How an orphan is met within one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Nobody has met it before.
    First,
    /// Another identity that sees the same project has, and could not or was not to delete it.
    Again,
    /// Another one has deleted it.
    Gone,
}

/// The orphans of one search of the clouds of a provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Found(BTreeMap<(String, String), Orphan>);

#[derive(Clone, Copy, Debug)]
struct Orphan {
    verified: bool,
    is_gone: bool,
}

impl Found {
    /// Takes note of one.
    pub(super) fn meet(&mut self, cloud: &str, image: &OwnedImage) -> Meeting {
        let key = (cloud.to_owned(), image.id.clone());
        match self.0.get(&key) {
            Some(Orphan { is_gone: true, .. }) => Meeting::Gone,
            Some(_) => Meeting::Again,
            None => {
                let orphan = Orphan {
                    verified: image.verified,
                    is_gone: false,
                };
                self.0.insert(key, orphan);
                Meeting::First
            }
        }
    }

    /// It was deleted.
    pub(super) fn gone(&mut self, cloud: &str, image: &OwnedImage) {
        if let Some(orphan) = self.0.get_mut(&(cloud.to_owned(), image.id.clone())) {
            orphan.is_gone = true;
        }
    }

    /// Those that are still there: in which cloud, and whether verified.
    pub(super) fn left(&self) -> impl Iterator<Item = (&str, bool)> {
        let left = self.0.iter().filter(|(_, orphan)| !orphan.is_gone);
        left.map(|((cloud, _), orphan)| (cloud.as_str(), orphan.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVIDER: Provider = Provider::OpenStack;
    const CLOUD: &str = "keystone.example";

    fn sightings(seen: &[(&str, u64)]) -> Sightings {
        let seen = seen.iter();
        seen.map(|(id, second)| ((*id).to_owned(), Duration::from_secs(*second)))
            .collect()
    }

    fn image(id: &str) -> OwnedImage {
        OwnedImage {
            id: id.to_owned(),
            object: "fleet/gone".to_owned(),
            attempt: 1,
            created: "2026-01-01T09:00:00Z".parse().unwrap(),
            verified: true,
            size: None,
            held_elsewhere: false,
        }
    }

    #[test]
    fn what_was_seen_is_known_whoever_asks_next_and_in_its_cloud_alone() {
        let mut memory = Memory::default();
        memory.answered(PROVIDER, CLOUD, &[], sightings(&[("a", 5), ("b", 9)]));
        memory.answered(PROVIDER, CLOUD, &[], sightings(&[("a", 7), ("c", 7)]));
        let expected = sightings(&[("a", 5), ("b", 9), ("c", 7)]);
        assert_eq!(memory.of(PROVIDER, CLOUD), expected);
        assert_eq!(memory.of(PROVIDER, "other.example"), Sightings::new());
        assert_eq!(memory.of(Provider::FileStore, CLOUD), Sightings::new());
    }

    #[test]
    fn who_is_not_answered_keeps_what_nobody_else_has_judged_and_nothing_more() {
        let before = sightings(&[("has-its-object-again", 1), ("orphan", 2), ("of-another-project", 3)]);
        let told = ["has-its-object-again", "orphan"].map(image);
        for is_first in [true, false] {
            let mut memory = Memory::default();
            if is_first {
                memory.unanswered(PROVIDER, CLOUD, before.clone());
            }
            memory.answered(PROVIDER, CLOUD, &told, sightings(&[("orphan", 2)]));
            if !is_first {
                memory.unanswered(PROVIDER, CLOUD, before.clone());
            }
            let expected = sightings(&[("orphan", 2), ("of-another-project", 3)]);
            assert_eq!(memory.of(PROVIDER, CLOUD), expected, "asked first: {is_first}");
        }
        let mut memory = Memory::default();
        memory.unanswered(PROVIDER, CLOUD, before.clone());
        assert_eq!(memory.of(PROVIDER, CLOUD), before, "nobody was answered");
    }

    #[test]
    fn what_one_identity_could_not_delete_is_met_by_the_next_until_it_is_gone() {
        let mut found = Found::default();
        assert_eq!(found.meet(CLOUD, &image("a")), Meeting::First);
        assert_eq!(found.meet(CLOUD, &image("b")), Meeting::First);
        assert_eq!(found.meet("other.example", &image("a")), Meeting::First);
        assert_eq!(found.meet(CLOUD, &image("a")), Meeting::Again);
        found.gone(CLOUD, &image("a"));
        assert_eq!(found.meet(CLOUD, &image("a")), Meeting::Gone);
        assert_eq!(
            found.left().collect::<Vec<_>>(),
            [(CLOUD, true), ("other.example", true)]
        );
    }
}
