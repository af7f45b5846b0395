//! What stages wait for, before an API server that tells what objects can have.

use super::stages::{NEWER, Reached, STAGED, is_there, lathe, publish_kinds, reaching_through, soon, tide, waits_for};
use super::*;

const INDEX: &str = "/openapi/v3";

/// How often the API server of the cluster was asked what its kinds have.
fn asked(workload: &Server) -> usize {
    let documents = ["", "/api/v1", "/apis/example.org/v1"];
    let asked = |document: &&str| workload.calls_about("OpenAPI", &format!("{INDEX}{document}"));
    documents.iter().map(asked).sum()
}

/// The CRD of the lathes is another.
fn redefine(workload: &Server, words: &str) {
    workload.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "lathes.example.org", "annotations": { "words": words } },
    }));
}

#[test]
fn a_stage_does_not_wait_for_what_the_cluster_cannot_have_and_goes_on_when_it_can() {
    reaching_through(STAGED.path(), &[], 0, async |Reached { server, workload, .. }| {
        // Of the kind nothing was known when the release was made.
        lathe(workload);
        workload.apply(&tide("high"));
        publish_kinds(workload, "rate");
        let begun = tokio::time::Instant::now();
        let words = "`tide.data.level == \"high\" && lathe.spec.speed == 3` does not fit what the API server of the cluster serves: \
                     lathe.spec.speed: there is no field speed; there are rate";
        super::super::until(|| told(server, NAME, "Stalled") == "True/ConditionInvalid").await;
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(waits_for(server), words);
        assert_eq!(told(server, NAME, "EvaluatedCEL"), "False/ConditionInvalid");
        assert!(!is_there(workload));

        // Nobody asks in between.
        sleep(LONG).await;
        let before = asked(workload);
        sleep(5 * LONG).await;
        assert_eq!(asked(workload), before);
        assert_eq!(told(server, NAME, "Ready"), "False/ConditionInvalid");

        publish_kinds(workload, "speed");
        redefine(workload, "speed");
        soon(|| is_there(workload)).await;
        sleep(LONG).await;
        assert!(told(server, NAME, "Ready").starts_with("True/"));
    });
}

#[test]
fn add_ons_that_wait_for_nothing_ask_for_no_schemas() {
    reaching_through(NEWER.path(), &[], 0, async |Reached { workload, .. }| {
        sleep(LONG).await;
        assert!(is_there(workload));
        assert_eq!(asked(workload), 0);
    });
}
