//! Which of several releases has an object that all of them name.

use std::cmp::Reverse;

use crds::names::ReleaseTag;

use crate::objects::{Holder, Inventoried, Standing};

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

/// What another release that stays has to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Its namespace, where that is not the one of this release.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub release: &'a str,
    /// How it stands to this one.
    pub standing: Standing,
    /// Whether the object carries its mark.
    pub marked: bool,
    /// What it says of the object.
    pub word: Word<'a>,
}

/// What a release says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<'a> {
    /// It has no status yet, so that nobody knows what it has applied.
    Awaited,
    /// What its inventory says.
    Given(Inventoried<'a>),
}

impl Claim<'_> {
    /// Whether its inventory names the object.
    pub fn names_it(&self) -> bool {
        matches!(self.word, Word::Given(Inventoried::Named | Inventoried::Applied(_)))
    }
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
pub fn holder<'a>(claims: impl IntoIterator<Item = Claim<'a>>, applied: bool) -> Option<Holder> {
    let rank = |claim: &Claim<'_>| match claim.word {
        Word::Given(Inventoried::Applied(_)) if claim.standing == Standing::Newer => Some(0),
        Word::Awaited | Word::Given(Inventoried::Named | Inventoried::Applied(_)) if claim.marked => Some(1),
        Word::Given(Inventoried::Applied(_)) if !applied => Some(2),
        _ => None,
    };
    let newest = |claim: &Claim<'_>, rank: u8| (rank == 0).then(|| Reverse(claim.release.parse::<ReleaseTag>().ok()));
    let (_, claim) = claims
        .into_iter()
        .filter_map(|claim| Some((rank(&claim)?, claim)))
        .min_by_key(|(rank, claim)| (*rank, newest(claim, *rank), claim.release, claim.namespace))?;
    Some(Holder {
        namespace: claim.namespace.map(str::to_owned),
        release: claim.release.to_owned(),
        standing: claim.standing,
        digest: match claim.word {
            Word::Given(Inventoried::Applied(digest)) => Some(digest.to_owned()),
            Word::Awaited | Word::Given(Inventoried::No | Inventoried::Named) => None,
        },
    })
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

    fn claim<'a>(release: &'a str, standing: Standing, marked: bool, digest: &'a str) -> Claim<'a> {
        Claim {
            namespace: None,
            release,
            standing,
            marked,
            word: Word::Given(match digest {
                "" => Inventoried::Named,
                digest => Inventoried::Applied(digest),
            }),
        }
    }

    #[test]
    fn the_newest_release_that_applied_an_object_has_it_whatever_mark_it_carries() {
        let (older, newer) = (Standing::Older, Standing::Newer);
        let name = |release: &str| format!("docker-harbor-1-34-{release}");
        let [v1, v3, v9, v10, hash] = ["v1", "v3", "v9", "v10", "v0-sha-ab"].map(name);
        let held = |claims: &[Claim<'_>], applied: bool| holder(claims.to_vec(), applied).map(|holder| holder.release);
        let of = |release: &String| Some(release.clone());
        let cases: [(Vec<Claim<'_>>, Option<String>); 5] = [
            (
                vec![claim(&v9, newer, true, "a"), claim(&v10, newer, false, "b")],
                of(&v10),
            ),
            (
                vec![claim(&v1, older, true, "a"), claim(&v3, newer, false, "b")],
                of(&v3),
            ),
            // It has only named it: the mark decides.
            (
                vec![claim(&v1, older, true, "a"), claim(&v3, newer, false, "")],
                of(&v1),
            ),
            (vec![claim(&v3, newer, true, "")], of(&v3)),
            (vec![claim(&v1, older, false, "a")], None),
        ];
        for (claims, expected) in cases {
            assert_eq!(held(&claims, true), expected, "{claims:?}");
        }
        // Where nothing says who is newer, it stays with those that live on it.
        let lives_on_it = [claim(&hash, Standing::Unrelated, false, "a")];
        assert_eq!((held(&lives_on_it, false), held(&lives_on_it, true)), (of(&hash), None));
    }

    #[test]
    fn a_release_without_a_status_has_what_carries_its_mark_and_one_that_does_not_name_it_has_not() {
        let says = |word: Word<'static>, marked: bool| {
            let claim = claim("docker-harbor-1-34-v1", Standing::Unrelated, marked, "");
            let holder = holder([Claim { word, ..claim }], false);
            holder.map(|holder| holder.digest)
        };
        assert_eq!(says(Word::Awaited, true), Some(None));
        assert_eq!(says(Word::Awaited, false), None);
        assert_eq!(says(Word::Given(Inventoried::No), true), None);
        let applied = Word::Given(Inventoried::Applied("a"));
        assert_eq!(says(applied, false), Some(Some("a".to_owned())));
    }

    #[test]
    fn a_release_of_another_namespace_is_called_with_it() {
        let there = Claim {
            namespace: Some("depot"),
            ..claim("docker-harbor-1-34-v1", Standing::Unrelated, true, "a")
        };
        let here = Claim {
            namespace: None,
            ..there
        };
        let called = |claim: Claim<'_>| holder([claim], true).map(|holder| holder.place());
        assert_eq!(called(there).as_deref(), Some("depot/docker-harbor-1-34-v1"));
        assert_eq!(called(here).as_deref(), Some("docker-harbor-1-34-v1"));
    }
}
