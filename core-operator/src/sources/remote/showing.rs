//! Whether a source has shown something for a release, and who is content with it. What it has shown is in the store alone: a release may have a
//! megabyte of signatures, and everybody's releases are remembered.

use std::collections::{HashMap, HashSet};

use release::Evidence;
use tokio::time::Instant;

use super::super::is_recent;

/// That a source has shown what it has for a release.
#[derive(Default)]
pub(super) struct Showing {
    /// Whether that was nothing, so far.
    pub(super) is_nothing: bool,
    /// Whether the source said so since the process started; otherwise it is what was kept.
    is_fresh: bool,
    /// What namespaces think of it: each has its own policy.
    opinions: HashMap<String, Opinion>,
}

/// What a namespace thought of it when it looked last.
struct Opinion {
    is_refusal: bool,
    at: Instant,
}

impl Showing {
    /// Notes that it has shown something, or nothing; now, or before the process started.
    pub(super) fn note(&mut self, is_nothing: bool, is_fresh: bool) {
        self.is_nothing = is_nothing;
        self.is_fresh |= is_fresh;
    }

    /// Adds what the source shows now to what was kept, and gives all of it if that is news. A signature holds although somebody has taken it away, or
    /// it was not to be had: what somebody is content with goes before what is new, and that before what nobody wants.
    pub(super) fn united(&self, kept: &Evidence, shown: &Evidence) -> Option<Evidence> {
        if shown.is_empty() {
            return None;
        }
        let is_of_use = self.opinions.values().any(|opinion| !opinion.is_refusal);
        let mut united = kept.united(shown);
        if !is_of_use && !united.has_all_of(shown) {
            united = shown.united(kept);
        }
        (united != *kept).then_some(united)
    }

    /// Notes what a namespace thinks of it; whether it is a refusal of what the source may have better by now. Of what somebody was content with
    /// until now nobody has asked for better, however often the source was asked for the rest.
    pub(super) fn judge(&mut self, namespace: &str, is_refusal: bool) -> bool {
        let at = Instant::now();
        let before = self.opinions.insert(namespace.to_owned(), Opinion { is_refusal, at });
        let was_content = before.is_some_and(|before| !before.is_refusal);
        is_refusal && (was_content || !self.is_fresh)
    }

    /// Whether it is not good enough for somebody.
    pub(super) fn is_refused(&self) -> bool {
        self.opinions.values().any(|opinion| opinion.is_refusal)
    }

    /// Forgets what all other namespaces think, but for those that looked lately.
    pub(super) fn retain(&mut self, namespaces: &HashSet<String>) {
        self.opinions
            .retain(|namespace, opinion| namespaces.contains(namespace) || is_recent(opinion.at));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    /// These signatures of a list of sums.
    fn signed(signatures: impl IntoIterator<Item = usize>) -> Evidence {
        let signed = |number: usize| json!({ "of": "Sums", "proof": { "Detached": number.to_string() } });
        let signatures: Vec<Value> = signatures.into_iter().map(signed).collect();
        let evidence = json!({ "manifest": null, "sums": "c3Vtcw==", "signatures": signatures, "is_cut": false });
        serde_json::from_value(evidence).unwrap()
    }

    #[tokio::test]
    async fn signatures_that_nobody_wants_keep_no_new_one_out_and_one_that_somebody_wants_stays() {
        let (full, new) = (signed(0..32), signed([100]));
        let mut showing = Showing::default();
        showing.judge("refuses", true);
        let kept = showing.united(&full, &new).expect("it is news");
        assert!(kept.has_all_of(&new));
        assert_eq!(showing.united(&kept, &new), None, "it is known by now");
        showing.judge("is content", false);
        let later = showing.united(&kept, &signed(200..232));
        assert!(later.unwrap_or(kept.clone()).has_all_of(&new));
        // What is not to be had is not missed.
        assert_eq!(showing.united(&kept, &Evidence::default()), None);
    }

    #[tokio::test]
    async fn who_was_content_and_is_not_any_more_has_the_source_asked_once() {
        let mut showing = Showing::default();
        showing.note(false, true);
        assert!(!showing.judge("a", true), "the source has shown what it has");
        assert!(!showing.judge("a", false));
        assert!(showing.judge("a", true), "nobody asked for better since");
        assert!(!showing.judge("a", true), "that is one question");
        assert!(!showing.judge("b", true), "what others think is not the point");
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_refuse_for_themselves_until_they_are_content_or_gone() {
        let mut showing = Showing::default();
        assert!(showing.judge("a", true), "the source was not asked yet");
        showing.judge("b", true);
        showing.judge("a", false);
        assert!(showing.is_refused());
        showing.judge("b", false);
        assert!(!showing.is_refused());
        showing.judge("b", true);
        let others = HashSet::from(["a".to_owned()]);
        showing.retain(&others);
        assert!(showing.is_refused(), "the list may be older than that");
        tokio::time::advance(Duration::from_mins(2)).await;
        showing.retain(&others);
        assert!(!showing.is_refused());
    }
}
