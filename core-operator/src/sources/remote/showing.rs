//! What a source has shown for a release, and who is content with it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use release::Evidence;
use tokio::time::Instant;

use super::super::is_recent;

/// What a source has shown for a release.
pub(super) struct Showing {
    pub(super) evidence: Arc<Evidence>,
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
    pub(super) fn new(evidence: Arc<Evidence>, is_fresh: bool) -> Self {
        Self {
            evidence,
            is_fresh,
            opinions: HashMap::new(),
        }
    }

    /// Adds what the source shows now, and gives all of it if that is news. A signature holds although somebody has taken it away, or it was not to
    /// be had: what somebody is content with goes before what is new, and that before what nobody wants.
    pub(super) fn add(&mut self, shown: &Evidence, is_fresh: bool) -> Option<Arc<Evidence>> {
        self.is_fresh |= is_fresh;
        if shown.is_empty() && !self.evidence.is_empty() {
            return None;
        }
        let is_of_use = self.opinions.values().any(|opinion| !opinion.is_refusal);
        let mut united = self.evidence.united(shown);
        if !is_of_use && !united.has_all_of(shown) {
            united = shown.united(&self.evidence);
        }
        if united == *self.evidence {
            return None;
        }
        self.evidence = Arc::new(united);
        Some(Arc::clone(&self.evidence))
    }

    /// Notes what a namespace thinks of it; whether it is a refusal of what the source may have better by now.
    pub(super) fn judge(&mut self, namespace: &str, is_refusal: bool) -> bool {
        let at = Instant::now();
        self.opinions.insert(namespace.to_owned(), Opinion { is_refusal, at });
        is_refusal && !self.is_fresh
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
    fn signed(signatures: impl IntoIterator<Item = usize>) -> Arc<Evidence> {
        let signed = |number: usize| json!({ "of": "Sums", "proof": { "Detached": number.to_string() } });
        let signatures: Vec<Value> = signatures.into_iter().map(signed).collect();
        let evidence = json!({ "manifest": null, "sums": "c3Vtcw==", "signatures": signatures, "is_cut": false });
        Arc::new(serde_json::from_value(evidence).unwrap())
    }

    #[tokio::test]
    async fn signatures_that_nobody_wants_keep_no_new_one_out_and_one_that_somebody_wants_stays() {
        let (full, new) = (signed(0..32), signed([100]));
        let mut showing = Showing::new(Arc::clone(&full), true);
        showing.judge("refuses", true);
        let news = showing.add(&new, true).expect("it is news");
        assert!(news.has_all_of(&new));
        assert_eq!(showing.add(&new, true), None, "it is known by now");
        showing.judge("is content", false);
        showing.add(&signed(200..232), true);
        assert!(showing.evidence.has_all_of(&new));
        // What is not to be had is not missed.
        assert_eq!(showing.add(&Evidence::default(), true), None);
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_refuse_for_themselves_until_they_are_content_or_gone() {
        let mut showing = Showing::new(signed([1]), false);
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
