//! Which releases a stack wants, which it keeps, and which have to go.

use std::collections::{BTreeMap, BTreeSet};

use crds::conditions::{ConditionStatus, ConditionType, Reason, find};
use crds::names::{Channel, ReleaseStem, ReleaseTag, StackVersion};
use jiff::Timestamp;

use super::observed::{ListedRelease, Listing, Owner, ReleaseView, StackObserved};

/// The outcome of the selection.
#[derive(Default)]
pub(super) struct Selection {
    /// The newest release that the source lists for this stack, when the stack subscribes.
    pub(super) latest: Option<ReleaseTag>,
    /// Why `latest` is not known though the stack subscribes.
    pub(super) latest_unknown: Option<LatestUnknown>,
    /// The newest release before `latest` that is newer than what is ready and that nobody asked for: only the newest is taken by itself.
    pub(super) passed_over: Option<ReleaseTag>,
    /// The newest release that is here, followed by the stack, newer than `latest` and no longer shown by the source.
    pub(super) withheld: Option<ReleaseTag>,
    /// The newest release that is ready.
    pub(super) latest_ready: Option<ReleaseTag>,
    /// The releases that `spec.versions` asks for.
    pub(super) listed: BTreeSet<ReleaseTag>,
    /// Entries of `spec.versions` that are no versions.
    pub(super) invalid: Vec<String>,
    /// The stack's releases that stay or come, in order of version.
    pub(super) wanted: BTreeSet<ReleaseTag>,
    /// The stack's releases that have to go.
    pub(super) unwanted: BTreeSet<ReleaseTag>,
    /// Those of `unwanted` that the source no longer lists, and that are not going yet: what is decided is neither counted nor approved again.
    pub(super) left_source: BTreeSet<ReleaseTag>,
}

impl Selection {
    /// Nobody has approved that so many go.
    pub(super) fn keep_what_left_the_source(&mut self) {
        for tag in &self.left_source {
            self.unwanted.remove(tag);
            self.wanted.insert(tag.clone());
        }
    }
}

/// Why the newest release cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatestUnknown {
    /// The source was not asked yet or does not answer.
    SourceSilent,
    /// The source lists nothing for this stack.
    NothingListed,
    /// Hash releases have no order of their own, and the source does not say when they were published.
    NoOrder,
}

/// Selects for one stack.
pub(super) fn select(observed: &StackObserved, stem: &ReleaseStem, channel: &Channel) -> Selection {
    let owned = owned(observed);
    let published = published(&observed.listing);
    let (listed, invalid) = listed(observed, stem);
    let (latest, latest_unknown) = if observed.spec.auto_subscribe {
        latest(&observed.listing, stem, channel)
    } else {
        (None, None)
    };
    let ready = owned
        .iter()
        .filter(|(_, view)| view.ready && !view.deleting)
        .map(|(tag, _)| tag);
    let is_ready = |tag: &ReleaseTag| owned.get(tag).is_some_and(|view| view.ready && !view.deleting);
    let latest_ready = newest(ready, &published)
        .or_else(|| latest.clone().filter(is_ready))
        .or_else(|| owned_ready_by_name(&owned));
    let mut wanted: BTreeSet<ReleaseTag> = listed.iter().chain(&latest).chain(&latest_ready).cloned().collect();
    for tag in owned.keys() {
        if in_use(observed, tag) || may_be_latest(tag, latest_unknown, latest_ready.as_ref()) {
            wanted.insert(tag.clone());
        }
    }
    wanted.extend(last_resort(&owned, latest_ready.as_ref()));
    let unwanted: BTreeSet<ReleaseTag> = owned.keys().filter(|tag| !wanted.contains(*tag)).cloned().collect();
    let left_source = match &observed.listing {
        Listing::Known { .. } => unwanted
            .iter()
            .filter(|tag| !published.contains_key(*tag) && !owned[*tag].deleting)
            .cloned()
            .collect(),
        _ => BTreeSet::new(),
    };
    let withheld = latest.as_ref().and_then(|latest| {
        let here = owned
            .iter()
            .filter(|(_, view)| !view.deleting && is_from(observed, view));
        withheld(here.map(|(tag, _)| tag), latest, channel, &published)
    });
    let passed_over = latest.as_ref().and_then(|latest| {
        let tags = published.keys().filter(|tag| {
            let newer = latest_ready.as_ref().is_none_or(|ready| *tag > ready);
            newer && *tag < latest && tag.stem() == stem && channel.follows(tag.version().channel())
        });
        let orderly = |tag: &&ReleaseTag| tag.version().has_order() && !wanted.contains(*tag);
        tags.filter(orderly).max().cloned()
    });
    Selection {
        latest,
        latest_unknown,
        passed_over,
        withheld,
        latest_ready,
        listed,
        invalid,
        wanted,
        unwanted,
        left_source,
    }
}

/// Whether the files of a release came from the source that the stack names now: of what came from another one it need not know anything.
fn is_from(observed: &StackObserved, view: &ReleaseView) -> bool {
    view.digest.is_some() && view.source.as_ref() == Some(&observed.source)
}

/// The newest of the releases that are here, where the source shows none as new any more.
fn withheld<'a>(
    here: impl Iterator<Item = &'a ReleaseTag>,
    latest: &ReleaseTag,
    channel: &Channel,
    published: &BTreeMap<ReleaseTag, Option<Timestamp>>,
) -> Option<ReleaseTag> {
    let followed = |tag: &&ReleaseTag| tag.stem() == latest.stem() && channel.follows(tag.version().channel());
    let in_order = |tag: &&ReleaseTag| tag.version().has_order() && latest.version().has_order();
    here.filter(followed)
        .filter(in_order)
        .filter(|tag| *tag > latest && !published.contains_key(*tag))
        .max()
        .cloned()
}

/// The releases that are this stack's, by tag.
fn owned(observed: &StackObserved) -> BTreeMap<ReleaseTag, &ReleaseView> {
    observed
        .releases
        .iter()
        .filter(|(_, view)| matches!(view.owner, Owner::Us | Owner::FormerSelf))
        .filter_map(|(name, view)| Some((name.parse::<ReleaseTag>().ok()?, view)))
        .collect()
}

fn published(listing: &Listing) -> BTreeMap<ReleaseTag, Option<Timestamp>> {
    match listing {
        Listing::Known { releases, .. } => releases
            .iter()
            .map(|listed| (listed.tag.clone(), listed.published_at))
            .collect(),
        _ => BTreeMap::new(),
    }
}

fn listed(observed: &StackObserved, stem: &ReleaseStem) -> (BTreeSet<ReleaseTag>, Vec<String>) {
    let mut listed = BTreeSet::new();
    let mut invalid = Vec::new();
    for text in &observed.spec.versions {
        let tag = text
            .parse::<StackVersion>()
            .and_then(|version| ReleaseTag::new(stem.clone(), version));
        match tag {
            Ok(tag) => drop(listed.insert(tag)),
            Err(_) => invalid.push(text.clone()),
        }
    }
    invalid.sort();
    invalid.dedup();
    (listed, invalid)
}

fn latest(listing: &Listing, stem: &ReleaseStem, channel: &Channel) -> (Option<ReleaseTag>, Option<LatestUnknown>) {
    let Listing::Known { releases, .. } = listing else {
        return (None, Some(LatestUnknown::SourceSilent));
    };
    let candidates: Vec<&ListedRelease> = releases
        .iter()
        .filter(|listed| listed.tag.stem() == stem && channel.follows(listed.tag.version().channel()))
        .collect();
    if candidates.is_empty() {
        return (None, Some(LatestUnknown::NothingListed));
    }
    let published = candidates
        .iter()
        .map(|listed| (listed.tag.clone(), listed.published_at))
        .collect();
    match newest(candidates.iter().map(|listed| &listed.tag), &published) {
        Some(tag) => (Some(tag), None),
        None => (None, Some(LatestUnknown::NoOrder)),
    }
}

/// The newest of some releases: by version where all versions have an order, by date of publication otherwise, `None` where a date is missing.
fn newest<'a>(
    tags: impl Iterator<Item = &'a ReleaseTag>,
    published: &BTreeMap<ReleaseTag, Option<Timestamp>>,
) -> Option<ReleaseTag> {
    let tags: Vec<&ReleaseTag> = tags.collect();
    if tags.iter().all(|tag| tag.version().has_order()) {
        return tags.into_iter().max().cloned();
    }
    let dated: Option<Vec<(Timestamp, &ReleaseTag)>> = tags
        .into_iter()
        .map(|tag| Some((published.get(tag).copied().flatten()?, tag)))
        .collect();
    dated?.into_iter().max().map(|(_, tag)| tag.clone())
}

/// Some ready release has to be named even where nothing orders them; the greatest by name is at least always the same.
fn owned_ready_by_name(owned: &BTreeMap<ReleaseTag, &ReleaseView>) -> Option<ReleaseTag> {
    owned
        .iter()
        .rev()
        .find(|(_, view)| view.ready && !view.deleting)
        .map(|(tag, _)| tag.clone())
}

/// While Clusters are not known yet, every class counts as used.
fn in_use(observed: &StackObserved, tag: &ReleaseTag) -> bool {
    observed.used_by.as_ref().is_none_or(|used_by| {
        used_by
            .get(&tag.to_string())
            .is_some_and(|clusters| !clusters.is_empty())
    })
}

/// While the newest release is not known, whatever could be it stays: an outage of the source changes nothing that is there.
fn may_be_latest(tag: &ReleaseTag, unknown: Option<LatestUnknown>, latest_ready: Option<&ReleaseTag>) -> bool {
    unknown.is_some()
        && latest_ready.is_none_or(|ready| !tag.version().has_order() || !ready.version().has_order() || tag > ready)
}

/// What stays although nothing else asks for it, because it is, or may turn out to be, the best there is to use.
///
/// A release that has not been looked at since its status was lost may be ready, and one that was installed may be ready again soon:
/// neither goes before a newer one is ready.
fn last_resort(owned: &BTreeMap<ReleaseTag, &ReleaseView>, latest_ready: Option<&ReleaseTag>) -> Vec<ReleaseTag> {
    let stays = |tag: &ReleaseTag, view: &ReleaseView| match latest_ready {
        Some(ready) => tag > ready && is_unobserved(view),
        None => is_unobserved(view) || find(&view.conditions, ConditionType::HelmChartApplied).is_some(),
    };
    owned
        .iter()
        .filter(|(tag, view)| stays(tag, view))
        .map(|(tag, _)| tag.clone())
        .collect()
}

/// Whether nothing has been found out about the release since it was made or since its status was lost.
fn is_unobserved(view: &ReleaseView) -> bool {
    find(&view.conditions, ConditionType::Ready).is_none_or(|ready| {
        ready.status == ConditionStatus::Unknown || ready.reason.as_deref() == Some(Reason::NotObservedYet.as_str())
    })
}
