//! What searches find, whoever asks: an image is one image with whatever credentials it was seen. Remembers, and asks nobody.

use std::collections::BTreeMap;

use crds::providers::Provider;
use planning::image::{OwnedImage, Sightings};

/// When images of each cloud were first found without an object. With which credentials is no matter: those change more often than one looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(BTreeMap<(Provider, String), Sightings>);

impl Memory {
    /// Of this cloud.
    pub(super) fn of(&self, provider: Provider, cloud: &str) -> Sightings {
        let of_cloud = self.0.get(&(provider, cloud.to_owned()));
        of_cloud.cloned().unwrap_or_default()
    }

    /// Adds what one identity has seen; what was seen earlier stays so.
    pub(super) fn add(&mut self, provider: Provider, cloud: &str, sightings: Sightings) {
        let of_cloud = self.0.entry((provider, cloud.to_owned())).or_default();
        for (id, first) in sightings {
            let known = of_cloud.entry(id).or_insert(first);
            *known = first.min(*known);
        }
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
    use std::time::Duration;

    use super::*;

    const CLOUD: &str = "keystone.example";

    fn sightings(seen: &[(&str, u64)]) -> Sightings {
        let seen = seen.iter();
        seen.map(|(id, second)| ((*id).to_owned(), Duration::from_secs(*second)))
            .collect()
    }

    #[test]
    fn what_was_seen_is_known_whoever_asks_next_and_in_its_cloud_alone() {
        let mut memory = Memory::default();
        memory.add(Provider::OpenStack, CLOUD, sightings(&[("a", 5), ("b", 9)]));
        memory.add(Provider::OpenStack, CLOUD, sightings(&[("a", 7), ("c", 7)]));
        let expected = sightings(&[("a", 5), ("b", 9), ("c", 7)]);
        assert_eq!(memory.of(Provider::OpenStack, CLOUD), expected);
        assert_eq!(memory.of(Provider::OpenStack, "other.example"), Sightings::new());
        assert_eq!(memory.of(Provider::FileStore, CLOUD), Sightings::new());
    }

    #[test]
    fn what_one_identity_could_not_delete_is_met_by_the_next_until_it_is_gone() {
        let image = |id: &str| OwnedImage {
            id: id.to_owned(),
            object: "fleet/gone".to_owned(),
            attempt: 1,
            created: "2026-01-01T09:00:00Z".parse().unwrap(),
            verified: true,
            size: None,
            held_elsewhere: false,
        };
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
