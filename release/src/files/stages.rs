//! What is worth a word about the list of stages as a whole.

use std::collections::BTreeSet;

use crds::cluster_addon::StageAction;
use crds::release_files::{CLUSTER_ADDON_CONFIG, ClusterAddonConfig, HOOKS};

/// That charts are applied when a cluster is made, and are no part of an upgrade; where a release lists no stages for upgrades, those of creation do that work.
pub(super) fn never_upgraded(config: &ClusterAddonConfig) -> Option<String> {
    let is_of_upgrade = |hook: &&&str| hook.ends_with("Upgrade");
    let stages_of = |hook: &str| config.addon_stages.get(hook).into_iter().flatten();
    // What goes before the end of a cluster is there for all of its life.
    let of_life = HOOKS.iter().filter(|hook| **hook != "BeforeClusterDelete");
    let (of_upgrade, others): (Vec<&str>, Vec<&str>) = of_life.partition(is_of_upgrade);
    let upgraded: BTreeSet<&str> = of_upgrade
        .into_iter()
        .flat_map(|hook| stages_of(hook).map(|stage| stage.name.as_str()))
        .collect();
    let mut left = BTreeSet::new();
    for stage in others.into_iter().flat_map(stages_of) {
        match stage.action {
            StageAction::Apply => left.insert(stage.name.as_str()),
            StageAction::Delete => left.remove(stage.name.as_str()),
        };
    }
    left.retain(|chart| !upgraded.contains(chart));
    if upgraded.is_empty() || left.is_empty() {
        return None;
    }
    let charts = left.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!(
        "{CLUSTER_ADDON_CONFIG}: an upgrade leaves what clusters have of {charts} as it is, because no stage of an upgrade names it; to bring it to this version, \
         too, list it under BeforeClusterUpgrade"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stages: &str) -> Option<String> {
        let config = ClusterAddonConfig::parse(format!("addonStages: {stages}").as_bytes());
        never_upgraded(&config.expect("stages"))
    }

    #[test]
    fn charts_that_an_upgrade_leaves_alone_are_named_where_there_are_stages_of_upgrades() {
        let creation = "AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: csi, action: apply}, \
                        {name: seed, action: apply}, {name: seed, action: delete}]";
        assert_eq!(said(&format!("{{{creation}}}")), None);
        let of_both = said(&format!(
            "{{{creation}, AfterClusterUpgrade: [{{name: ccm, action: apply}}]}}"
        ));
        assert!(of_both.is_some_and(|said| said.contains("what clusters have of cni, csi as it is")));
        let gone_at_the_end = said(&format!(
            "{{{creation}, BeforeClusterUpgrade: [{{name: cni, action: apply}}], BeforeClusterDelete: [{{name: csi, action: delete}}]}}"
        ));
        assert!(gone_at_the_end.is_some_and(|said| said.contains("what clusters have of csi as it is")));
        let deletes = said(&format!(
            "{{{creation}, BeforeClusterUpgrade: [{{name: csi, action: delete}}, {{name: cni, action: apply}}]}}"
        ));
        assert_eq!(deletes, None);
    }
}
