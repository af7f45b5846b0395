//! What is odd about a list of stages that can be read.

use super::course::Stages;
use super::hook::Hook;
use crate::objects::summary;

/// What of the list is never run, or that there is nothing to run. The Go operator passes over it without a word, so that it is no fault of a release that is
/// there; whoever wrote it hardly meant it.
pub(super) fn unused(stages: &Stages) -> Option<String> {
    let Stages::Listed(config) = stages else {
        return None;
    };
    let listed = || config.addon_stages.iter().filter(|(_, stages)| !stages.is_empty());
    let unknown: Vec<String> = listed()
        .filter(|(hook, _)| Hook::named(hook).is_none())
        .map(|(hook, _)| hook.clone())
        .collect();
    let is_none_run = listed().count() == unknown.len();
    let nothing =
        "so the cluster gets no add-ons; if it shall have some, list their charts under addonStages in a new version";
    match (unknown.is_empty(), is_none_run) {
        (true, false) => None,
        (true, true) => Some(format!("clusteraddon.yaml of the release lists no stages, {nothing}")),
        (false, is_none_run) => {
            let names = Hook::ALL.map(Hook::name).join(", ");
            let message = format!(
                "clusteraddon.yaml of the release has stages under {}, which are never run, because no lifecycle hook is called so; there are {names}",
                summary(&unknown)
            );
            Some(if is_none_run {
                format!("{message}. It lists no others, {nothing}")
            } else {
                message
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use crds::release_files::{ClusterAddonConfig, HOOKS};

    use super::*;

    fn said(addon_stages: &str) -> Option<String> {
        let config = ClusterAddonConfig::parse(format!("addonStages: {addon_stages}").as_bytes());
        unused(&Stages::Listed(config.expect("stages")))
    }

    #[test]
    fn stages_that_are_never_run_are_told_and_that_there_are_none() {
        let good = "AfterControlPlaneInitialized: [{name: cni, action: apply}]";
        assert_eq!(said(&format!("{{{good}, name: []}}")), None);
        assert_eq!(unused(&Stages::Single), None);
        for none in ["{}", "{AfterControlPlaneInitialized: []}", "{name: []}"] {
            let said = said(none).expect(none);
            assert!(
                said.starts_with("clusteraddon.yaml of the release lists no stages, so the cluster gets no add-ons"),
                "{said}"
            );
        }
        let misspelt = "AfterControlPlaneInitialised: [{name: csi, action: apply}]";
        let one_of_two = said(&format!("{{{good}, {misspelt}}}")).expect("one is never run");
        assert!(
            one_of_two.contains("has stages under AfterControlPlaneInitialised, which are never run")
                && !one_of_two.contains("no add-ons"),
            "{one_of_two}"
        );
        let all = said(&format!("{{{misspelt}}}")).expect("none is run");
        assert!(
            all.contains("no lifecycle hook") && all.contains("so the cluster gets no add-ons"),
            "{all}"
        );
    }

    #[test]
    fn the_hooks_of_release_files_are_those_that_are_run() {
        assert_eq!(HOOKS, Hook::ALL.map(Hook::name));
    }
}
