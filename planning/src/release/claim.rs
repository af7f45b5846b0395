//! Which of several releases has an object that all of them name.

use super::observed::Holder;

/// What another release that stays has to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub release: String,
    /// Whether the object carries its mark.
    pub marked: bool,
    /// The digest in its inventory: empty while it has only named the object, `None` where it does not name it.
    pub digest: Option<String>,
    /// Whether it has no status yet, so that nobody knows what it has applied.
    pub silent: bool,
}

/// The release that has the object: the one whose mark it carries. Where that one is gone, a release that has applied the object comes before one that
/// has not (`applied` says whether this one has): a newcomer takes nothing from those that live on it. Of several the first by name.
pub fn holder(claims: impl IntoIterator<Item = Claim>, applied: bool) -> Option<Holder> {
    let rank = |claim: &Claim| match &claim.digest {
        Some(_) if claim.marked => Some(0),
        None if claim.marked && claim.silent => Some(0),
        Some(digest) if !digest.is_empty() && !applied => Some(1),
        _ => None,
    };
    let (_, claim) = claims
        .into_iter()
        .filter_map(|claim| Some((rank(&claim)?, claim)))
        .min_by(|(left, one), (right, other)| (left, &one.release).cmp(&(right, &other.release)))?;
    Some(Holder {
        release: claim.release,
        digest: claim.digest.unwrap_or_default(),
    })
}
