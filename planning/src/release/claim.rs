//! Which of several releases has an object that all of them name.

use std::cmp::Reverse;

use crds::names::ReleaseTag;
use serde::{Deserialize, Serialize};

use super::observed::Holder;

/// Which stack a release is of, and which version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Namespace of both.
    pub namespace: &'a str,
    /// Name of the ClusterStack that owns the release; none where nobody does.
    pub stack: Option<&'a str>,
    /// Name of the release.
    pub release: &'a str,
}

/// How another release stands to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It is of the same stack, and newer.
    Newer,
    /// It is of the same stack, and older.
    Older,
    /// It is of another stack, or nothing says which of the two is newer.
    #[default]
    Unrelated,
}

/// What another release that stays has to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub release: String,
    /// How it stands to this one.
    pub standing: Standing,
    /// Whether the object carries its mark.
    pub marked: bool,
    /// The digest in its inventory: empty while it has only named the object, `None` where it does not name it.
    pub digest: Option<String>,
    /// Whether it has no status yet, so that nobody knows what it has applied.
    pub silent: bool,
}

/// How `other` stands to `this`.
pub fn standing(this: Member<'_>, other: Member<'_>) -> Standing {
    let one_stack = this.namespace == other.namespace && this.stack.is_some() && this.stack == other.stack;
    let (Ok(ours), Ok(theirs)) = (this.release.parse::<ReleaseTag>(), other.release.parse::<ReleaseTag>()) else {
        return Standing::Unrelated;
    };
    let in_order = ours.version().has_order() && theirs.version().has_order();
    if !one_stack || ours.stem() != theirs.stem() || !in_order || ours == theirs {
        return Standing::Unrelated;
    }
    if theirs > ours {
        Standing::Newer
    } else {
        Standing::Older
    }
}

/// The release that has the object.
///
/// Of the releases of one stack that have applied it the newest has it, whatever mark it carries: that one puts its form back. Otherwise it is the
/// one whose mark it carries. Where that one is gone, a release that has applied the object comes before one that has not (`applied` says whether
/// this one has): a newcomer takes nothing from those that live on it. Of several the first by name.
pub fn holder(claims: impl IntoIterator<Item = Claim>, applied: bool) -> Option<Holder> {
    let rank = |claim: &Claim| match &claim.digest {
        Some(digest) if !digest.is_empty() && claim.standing == Standing::Newer => Some(0),
        Some(_) if claim.marked => Some(1),
        None if claim.marked && claim.silent => Some(1),
        Some(digest) if !digest.is_empty() && !applied => Some(2),
        _ => None,
    };
    let newest = |claim: &Claim, rank: u8| (rank == 0).then(|| Reverse(claim.release.parse::<ReleaseTag>().ok()));
    let (_, claim) = claims
        .into_iter()
        .filter_map(|claim| Some((rank(&claim)?, claim)))
        .min_by_key(|(rank, claim)| (*rank, newest(claim, *rank), claim.release.clone()))?;
    Some(Holder {
        release: claim.release,
        standing: claim.standing,
        digest: claim.digest.unwrap_or_default(),
    })
}

impl Holder {
    /// Whether this release leaves the object to the holder, which has applied another form of it than `wanted`.
    pub(super) fn outranks(&self, wanted: Option<&str>) -> bool {
        self.standing == Standing::Newer && !self.digest.is_empty() && Some(self.digest.as_str()) != wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(text: &str) -> Member<'_> {
        let mut parts = text.split(' ');
        let mut part = || parts.next().expect("three parts");
        Member {
            namespace: part(),
            stack: Some(part()).filter(|stack| *stack != "-"),
            release: part(),
        }
    }

    #[test]
    fn releases_of_one_stack_stand_in_the_order_of_their_versions_and_others_in_none() {
        for (this, other, expected) in [
            (
                "fleet harbor docker-harbor-1-34-v9",
                "fleet harbor docker-harbor-1-34-v10",
                Standing::Newer,
            ),
            (
                "fleet harbor docker-harbor-1-34-v10",
                "fleet harbor docker-harbor-1-34-v9",
                Standing::Older,
            ),
            (
                "fleet harbor docker-harbor-1-34-v2-beta-1",
                "fleet harbor docker-harbor-1-34-v2",
                Standing::Newer,
            ),
            (
                "fleet harbor docker-harbor-1-34-v1",
                "fleet harbor docker-harbor-1-34-v0-sha-ab",
                Standing::Unrelated,
            ),
            (
                "fleet harbor docker-harbor-1-34-v1",
                "fleet second docker-harbor-1-34-v2",
                Standing::Unrelated,
            ),
            (
                "fleet harbor docker-harbor-1-34-v1",
                "depot harbor docker-harbor-1-34-v2",
                Standing::Unrelated,
            ),
            (
                "fleet harbor docker-harbor-1-34-v1",
                "fleet harbor docker-harbor-1-35-v2",
                Standing::Unrelated,
            ),
            (
                "fleet - docker-harbor-1-34-v1",
                "fleet - docker-harbor-1-34-v2",
                Standing::Unrelated,
            ),
            (
                "fleet harbor by-hand",
                "fleet harbor docker-harbor-1-34-v2",
                Standing::Unrelated,
            ),
        ] {
            assert_eq!(standing(member(this), member(other)), expected, "{this}, {other}");
        }
    }

    fn claim(release: &str, standing: Standing, marked: bool, digest: &str) -> Claim {
        Claim {
            release: format!("docker-harbor-1-34-{release}"),
            standing,
            marked,
            digest: Some(digest.to_owned()),
            silent: false,
        }
    }

    #[test]
    fn the_newest_release_that_applied_an_object_has_it_whatever_mark_it_carries() {
        let (older, newer) = (Standing::Older, Standing::Newer);
        let held = |claims: &[Claim], applied: bool| {
            let holder = holder(claims.to_vec(), applied);
            holder.map(|holder| holder.release.trim_start_matches("docker-harbor-1-34-").to_owned())
        };
        let of = |release: &str| Some(release.to_owned());
        for (claims, expected) in [
            (
                vec![claim("v9", newer, true, "a"), claim("v10", newer, false, "b")],
                of("v10"),
            ),
            (
                vec![claim("v1", older, true, "a"), claim("v3", newer, false, "b")],
                of("v3"),
            ),
            // It has only named it: the mark decides.
            (
                vec![claim("v1", older, true, "a"), claim("v3", newer, false, "")],
                of("v1"),
            ),
            (vec![claim("v3", newer, true, "")], of("v3")),
            (vec![claim("v1", older, false, "a")], None),
        ] {
            assert_eq!(held(&claims, true), expected, "{claims:?}");
        }
        // Where nothing says who is newer, it stays with those that live on it.
        let hash = vec![claim("v0-sha-ab", Standing::Unrelated, false, "a")];
        assert_eq!((held(&hash, false), held(&hash, true)), (of("v0-sha-ab"), None));
    }
}
