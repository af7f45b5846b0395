//! Who is given the files of a release: whoever has been let in by its source, and nobody who knows its digest alone.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use super::keeping::tests::{eventually_has, filled, on_a_runtime, supply};
use super::*;
use crate::every_call::FIRST;

/// What becomes of asking so.
async fn opened(supply: &Supply, source: Option<&Source>, namespace: &str, digest: Digest) -> Opened {
    let tag = FIRST.parse().unwrap();
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        match supply.open(source, namespace, &tag, Some(digest)) {
            Opened::Coming => {}
            opened => return opened,
        }
        assert!(Instant::now() < end, "it neither comes nor is hindered");
        sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_release_is_found_by_its_digest_in_namespaces_that_have_opened_it_and_in_no_other() {
    on_a_runtime(async {
        let cache = TempDir::new().unwrap();
        let [first, _] = filled(&cache).await;
        let (supply, tag) = (supply(&cache), FIRST.parse().unwrap());
        assert!(matches!(opened(&supply, None, "fleet", first).await, Opened::Ready(_)));
        assert!(supply.find("fleet", &tag, first).is_some());
        assert!(supply.find("other", &tag, first).is_none());
        assert!(matches!(
            supply.open(None, "other", &tag, Some(first)),
            Opened::Ready(_)
        ));
        assert!(supply.find("other", &tag, first).is_some());
    });
}

#[test]
fn what_one_source_gave_is_not_taken_from_the_disk_for_another_one() {
    on_a_runtime(async {
        let cache = TempDir::new().unwrap();
        let [first, _] = filled(&cache).await;
        let source: Source = serde_json::from_value(json!({ "http": { "url": "https://127.0.0.1:9" } })).unwrap();
        let ask = async |supply: &Supply| opened(supply, Some(&source), "fleet", first).await;
        let before = supply(&cache);
        assert!(
            matches!(ask(&before).await, Opened::Hindered(_)),
            "the source, which is not there, was not asked"
        );
        // Once it has given it, it need not be there.
        let place = before.0.connector.place(Some(&source), "fleet").unwrap();
        let origin = before.0.connector.connection(&place).id();
        let store = before.0.store().await.unwrap();
        before.keep(&Needed::from([(FIRST.to_owned(), BTreeSet::from([first]))]));
        eventually_has(store, 1).await;
        let tag = FIRST.parse().unwrap();
        store.vouch(&tag, first, origin, Arc::default()).await.unwrap();
        assert!(matches!(ask(&supply(&cache)).await, Opened::Ready(_)));
    });
}
