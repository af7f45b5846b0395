//! Trust roots as they were parsed: one for all policies that trust the same, as long as any does. Parsing one takes up to a mebibyte of
//! text, and many certificates.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use operator_kit::turns::Turns;
use release::Digest;
use release::bundle::{TrustRoot, TrustRootError};
use tokio::task;

use super::lock;

/// The trust roots of the process.
pub(super) struct Roots {
    known: Arc<Mutex<HashMap<Digest, Weak<TrustRoot>>>>,
    /// In a line for each namespace. One at a time: many policies that trust the same ask at once.
    work: Turns,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            known: Arc::default(),
            work: Turns::new(1),
        }
    }
}

impl Roots {
    /// The trust root in a text that somebody in this namespace trusts; none when the operator ends.
    pub(super) async fn parsed(
        &self,
        namespace: &str,
        json: Vec<u8>,
    ) -> Option<Result<Arc<TrustRoot>, TrustRootError>> {
        let _turn = self.work.take(namespace).await;
        let known = Arc::clone(&self.known);
        task::spawn_blocking(move || {
            let digest = Digest::of(&json);
            if let Some(root) = lock(&known).get(&digest).and_then(Weak::upgrade) {
                return Ok(root);
            }
            let root = Arc::new(TrustRoot::from_json(&json)?);
            let mut known = lock(&known);
            known.retain(|_, root| root.strong_count() > 0);
            known.insert(digest, Arc::downgrade(&root));
            Ok(root)
        })
        .await
        .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &[u8] = include_bytes!("../../../release/src/trust/fuzzing/trusted_root.json");
    const OTHER: &[u8] = include_bytes!("../../../release/src/trust/fuzzing/other_root.json");

    #[tokio::test]
    async fn trust_root_of_many_policies_is_in_memory_once_and_no_longer_than_one_of_them_has_it() {
        let roots = Roots::default();
        let parsed = async |namespace, json: &[u8]| roots.parsed(namespace, json.to_vec()).await.unwrap();
        let first = parsed("fleet", OURS).await.unwrap();
        assert!(Arc::ptr_eq(&first, &parsed("other", OURS).await.unwrap()));
        let other = parsed("fleet", OTHER).await.unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        parsed("fleet", b"{}").await.unwrap_err();
        drop(first);
        parsed("fleet", OURS).await.unwrap();
        assert!(lock(&roots.known).len() <= 2);
        let left = lock(&roots.known).values().filter_map(Weak::upgrade).count();
        assert_eq!(left, 1, "only what somebody has");
    }
}
