//! What keeps Clusters from using a release that the stack wants, and how it is told.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crds::conditions::{
    Condition, ConditionStatus, ConditionType, MESSAGE_BYTES, Reason, Severity, cut, find, is_true, one_line,
};
use crds::names::{ReleaseStem, ReleaseTag};

use super::observed::{Listing, Owner, ReleaseView, StackObserved};
use super::select::Selection;

/// How many names a message spells out.
const NAMED: usize = 5;

/// That one release cannot be used. What is to be said of it is made only for the one that a message begins with: there may be a thousand.
pub(super) struct Obstacle<'a> {
    pub(super) tag: &'a ReleaseTag,
    view: Option<&'a ReleaseView>,
    /// How bad it is, and in one word; `Info` while the release is on its way, or on its way out.
    pub(super) severity: Severity,
    pub(super) reason: Reason,
    /// Whether nothing will change until somebody acts.
    pub(super) stalled: bool,
}

/// Whether Clusters of this stack may name the release: what another stack owns can go at any time.
pub(super) fn is_usable(view: &ReleaseView) -> bool {
    view.ready && !view.deleting && !is_of_another_stack(view)
}

fn is_of_another_stack(view: &ReleaseView) -> bool {
    matches!(view.owner, Owner::Other { .. })
}

/// Why Clusters cannot use it: reason and message of the release's Ready, so that nobody has to open the release to learn why it is not.
pub(super) fn explanation(view: &ReleaseView) -> Option<String> {
    if let Owner::Other { name } = &view.owner {
        let reason = Reason::ReleaseOwnedByOtherStack.as_str();
        return Some(format!("{reason}: the release belongs to ClusterStack {name}"));
    }
    let ready = find(&view.conditions, ConditionType::Ready)?;
    if view.deleting && ready.status == ConditionStatus::True {
        return Some(format!("{}: the release is being deleted", Reason::Deleting.as_str()));
    }
    let reason = ready.reason.as_deref()?;
    Some(match ready.message.as_deref() {
        Some(message) if !message.is_empty() => cut(&format!("{reason}: {message}")),
        _ => reason.to_owned(),
    })
}

/// What is in the way of the wanted releases, the worst first, then the newest. Those of another stack are told by their owner, not here.
pub(super) fn obstacles<'a>(observed: &'a StackObserved, selection: &'a Selection) -> Vec<Obstacle<'a>> {
    let views = selection
        .wanted
        .iter()
        .map(|tag| (tag, observed.releases.get(&tag.to_string())));
    let unusable: Vec<_> = views
        .filter(|(_, view)| view.is_none_or(|view| !is_usable(view) && !is_of_another_stack(view)))
        .collect();
    if unusable.is_empty() {
        return Vec::new();
    }
    let at_source = at_source(observed);
    let mut obstacles: Vec<Obstacle> = unusable
        .into_iter()
        .map(|(tag, view)| obstacle(observed, tag, view, at_source.as_ref()))
        .collect();
    obstacles.sort_by_key(|obstacle| (obstacle.severity, Reverse(obstacle.tag)));
    obstacles
}

fn at_source(observed: &StackObserved) -> Option<BTreeSet<&ReleaseTag>> {
    match &observed.listing {
        Listing::Known { releases, .. } => Some(releases.iter().map(|listed| &listed.tag).collect()),
        _ => None,
    }
}

fn obstacle<'a>(
    observed: &StackObserved,
    tag: &'a ReleaseTag,
    view: Option<&'a ReleaseView>,
    at_source: Option<&BTreeSet<&ReleaseTag>>,
) -> Obstacle<'a> {
    let conditions = view.map(|view| view.conditions.as_slice()).unwrap_or_default();
    let is_absent = at_source.is_some_and(|at_source| !at_source.contains(tag));
    let failure = find(conditions, ConditionType::Ready)
        .and_then(|ready| ready.severity)
        .filter(|severity| *severity != Severity::Info);
    let is_deleting = view.is_some_and(|view| view.deleting);
    let (reason, severity) = match failure {
        _ if is_absent && !is_deleting => (Reason::ReleaseNotFound, Severity::Warning),
        _ if is_true(conditions, ConditionType::Paused) => (Reason::Paused, Severity::Warning),
        _ if is_deleting && users(observed, tag).is_some() => (Reason::InUse, Severity::Info),
        _ if is_deleting => (Reason::Deleting, Severity::Info),
        Some(severity) => (fault(conditions), severity),
        None => (Reason::Progressing, Severity::Info),
    };
    Obstacle {
        tag,
        view,
        severity,
        reason,
        stalled: failure.is_some() && is_true(conditions, ConditionType::Stalled),
    }
}

/// What is wrong with a release in one word: its own, unless that only says which part of its files is at fault.
fn fault(conditions: &[Condition]) -> Reason {
    let stated = find(conditions, ConditionType::Ready).and_then(|ready| ready.reason.as_deref()?.parse().ok());
    match stated {
        None | Some(Reason::IssueWithReleaseAssets) => Reason::BrokenRelease,
        Some(Reason::TemplateNewClusterStackFailed) => Reason::RenderFailed,
        Some(reason) => reason,
    }
}

impl Obstacle<'_> {
    /// What the release says of itself; where the reason tells what is wrong, without the word that it was made from.
    fn explanation(&self) -> String {
        let words = if self.severity == Severity::Info {
            None
        } else {
            self.view.and_then(|view| {
                let message = find(&view.conditions, ConditionType::Ready)?.message.clone()?;
                (!message.is_empty()).then_some(message)
            })
        };
        words
            .or_else(|| self.view.and_then(explanation))
            .unwrap_or_else(|| "not observed yet".to_owned())
    }

    fn words(&self, observed: &StackObserved) -> String {
        match self.reason {
            Reason::ReleaseNotFound => absence(observed, self.tag, self.view),
            Reason::InUse | Reason::Deleting => self.brief_words(observed),
            _ => format!("{} cannot be used yet: {}", self.tag, self.explanation()),
        }
    }

    /// The same where it has been said already that nothing can be used.
    pub(super) fn brief_words(&self, observed: &StackObserved) -> String {
        let tag = self.tag;
        match (self.reason, users(observed, tag)) {
            (Reason::InUse, Some(users)) => {
                let users: Vec<&String> = users.iter().collect();
                format!(
                    "{tag} is being deleted: its class stays while Clusters use it: {}",
                    enumerate(&users)
                )
            }
            (Reason::Deleting, _) => format!("{tag} is being deleted{}", hindrance(self.view)),
            _ => format!("{tag}: {}", self.explanation()),
        }
    }
}

/// The Clusters that hold the class of a release, as far as they are known.
fn users<'a>(observed: &'a StackObserved, tag: &ReleaseTag) -> Option<&'a BTreeSet<String>> {
    let users = observed.used_by.as_ref()?.get(&tag.to_string())?;
    (!users.is_empty()).then_some(users)
}

/// What stands in the way of the deletion of a release, in its own words.
fn hindrance(view: Option<&ReleaseView>) -> String {
    let stalled = view.and_then(|view| find(&view.conditions, ConditionType::Stalled));
    match stalled.and_then(|stalled| stalled.message.as_deref()) {
        Some(message) => format!(": {message}"),
        None => String::new(),
    }
}

/// That the source does not hold the release, and what it does hold: the version may be mistyped.
fn absence(observed: &StackObserved, tag: &ReleaseTag, view: Option<&ReleaseView>) -> String {
    let was_there = view.is_some_and(|view| view.digest.is_some());
    let no_longer = if was_there { "no longer" } else { "not" };
    let source = &observed.source;
    let tags = at_source(observed).unwrap_or_default();
    let offered: Vec<String> = versions(&tags, tag.stem());
    let offered = if offered.is_empty() {
        format!(" no release of {}{}", tag.stem(), stems(&tags))
    } else {
        format!(": {}", enumerate(&offered))
    };
    format!("{tag} is {no_longer} in {source}, which has{offered}")
}

/// That the source holds nothing that the stack follows, and what it holds instead: a field of the spec may be wrong.
pub(super) fn nothing_listed(observed: &StackObserved) -> String {
    let StackObserved { spec, source, .. } = observed;
    let tags = at_source(observed).unwrap_or_default();
    let others = spec.stem().map_or_else(|_| Vec::new(), |stem| versions(&tags, &stem));
    let instead = if others.is_empty() {
        stems(&tags)
    } else {
        format!(", but {}", enumerate(&others))
    };
    format!(
        "{source} has no release of {}-{} for Kubernetes {} in channel {}{instead}",
        spec.provider, spec.name, spec.kubernetes_version, spec.channel
    )
}

/// The versions of a stack among these, newest first.
fn versions(tags: &BTreeSet<&ReleaseTag>, stem: &ReleaseStem) -> Vec<String> {
    let newest_first = tags.iter().rev();
    newest_first
        .filter(|tag| tag.stem() == stem)
        .map(|tag| tag.version().to_string())
        .collect()
}

/// Of which stacks there are releases among these.
fn stems(tags: &BTreeSet<&ReleaseTag>) -> String {
    let stems: BTreeSet<String> = tags.iter().map(|tag| tag.stem().to_string()).collect();
    if stems.is_empty() {
        return ", nor any other".to_owned();
    }
    let stems: Vec<String> = stems.into_iter().collect();
    format!(", but of {}", enumerate(&stems))
}

/// The first of these in words, and the versions of the others; `after` follows what is said of the first. Whatever is too long is cut from the
/// words of the release.
pub(super) fn told(observed: &StackObserved, obstacles: &[&Obstacle], after: &str) -> String {
    let Some((worst, others)) = obstacles.split_first() else {
        return String::new();
    };
    let mut others: Vec<&ReleaseTag> = others.iter().map(|obstacle| obstacle.tag).collect();
    others.sort_by_key(|tag| Reverse(*tag));
    let others: Vec<String> = others.iter().map(|tag| tag.version().to_string()).collect();
    let mut rest = after.to_owned();
    if !others.is_empty() {
        rest.extend(["; also not usable: ", &enumerate(&others)]);
    }
    one_line(&worst.words(observed), MESSAGE_BYTES.saturating_sub(rest.len())) + &rest
}

/// The first few names, and how many more.
pub(super) fn enumerate<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
