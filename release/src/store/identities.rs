//! What the identities of sources without digests turned out to stand for. A source may say another one for the same files each time, so that of
//! those that stand for one release only the last are kept.

use std::collections::BTreeMap;

use crate::Digest;

/// How many stand for one release at most: more sources than have the same files, and ask for them.
const MOST: usize = 32;

/// By identity the digest, and in which turn that was noted.
#[derive(Debug, Default)]
pub(super) struct Identities {
    noted: BTreeMap<Digest, (Digest, u64)>,
    turn: u64,
}

impl Identities {
    pub(super) fn get(&self, identity: Digest) -> Option<Digest> {
        self.noted.get(&identity).map(|(digest, _)| *digest)
    }

    /// Notes what an identity stands for; gives the one that is forgotten for it.
    pub(super) fn note(&mut self, identity: Digest, digest: Digest) -> Option<Digest> {
        self.turn += 1;
        self.noted.insert(identity, (digest, self.turn));
        let same = self.noted.iter().filter(|(_, (noted, _))| *noted == digest);
        let oldest = same.clone().min_by_key(|(_, (_, turn))| *turn);
        let oldest = oldest.map(|(identity, _)| *identity).filter(|_| same.count() > MOST)?;
        self.noted.remove(&oldest);
        Some(oldest)
    }

    /// Forgets what stands for a release.
    pub(super) fn forget(&mut self, digest: Digest) -> Vec<Digest> {
        let outdated = self.noted.extract_if(.., |_, (noted, _)| *noted == digest);
        outdated.map(|(identity, _)| identity).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_identities_without_end_the_last_are_kept() {
        let mut identities = Identities::default();
        let (same, other) = (Digest::of(b"same"), Digest::of(b"other"));
        identities.note(Digest::of(b"of another"), other);
        let identity = |number: usize| Digest::of(number.to_string().as_bytes());
        for number in 0..3 * MOST {
            let dropped = number.checked_sub(MOST).map(identity);
            assert_eq!(identities.note(identity(number), same), dropped);
        }
        assert_eq!(identities.get(identity(3 * MOST - 1)), Some(same));
        assert_eq!(identities.noted.len(), MOST + 1);
        assert_eq!(identities.forget(same).len(), MOST);
        assert_eq!(identities.get(Digest::of(b"of another")), Some(other));
    }
}
