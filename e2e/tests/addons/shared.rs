//! A Cluster whose class is in another namespace, from which Cluster API asks nobody (A16).

use anyhow::{Result, ensure};
use e2e::{Journey, shim::cluster};

use crate::ground::{CLUSTER, Ground, Scope, class, course_of, each_of_run};

/// The extension is for the namespace of the class alone.
async fn nobody_is_asked(journey: &mut Journey, ground: &mut Ground) -> Result<()> {
    let class = class(journey, "v1", "v1").await?;
    ground.settle_in(journey.another_namespace().await?).await?;
    let mut web = cluster(CLUSTER, &class, "v1.34.0", 1);
    web["metadata"]["namespace"] = ground.home.as_str().into();
    web["spec"]["topology"]["classNamespace"] = journey.namespace.as_str().into();
    journey.apply(web).await?;
    ground.complete(journey, &class, "v1").await?;
    let page = journey.operator()?.metrics_page().await?;
    ensure!(!page.contains("stackwright_hook_answers_total{hook="), "{page}");
    Ok(())
}

/// A16, and a hook that is never called.
#[test]
fn a16_a_cluster_of_another_namespace_gets_its_add_ons_although_no_hook_is_called() -> Result<()> {
    each_of_run(|release| course_of(Scope::All, release, nobody_is_asked))
}
