//! What is told of the add-ons of a cluster in events: what took place between two states of their status, and what somebody had left out.

use std::collections::BTreeMap;

use crds::cluster_addon::{AddonVersion, ClusterAddonStatus, StageAction, StagePhase, StageProgress, name_for};
use crds::events::Happening;
use crds::labels::SKIP_HOOK;

use super::answer::first_left;
use super::hook::Hook;
use super::marks::Marks;
use super::presence::AddonSeen;
use crate::stack::Note;

/// What is news in a status that was written: each once, since the next one is compared with this.
pub fn notes(before: &ClusterAddonStatus, after: &ClusterAddonStatus) -> Vec<Note> {
    let note = |(reason, message)| Note {
        warning: false,
        reason,
        message,
    };
    let news = [begun(before, after), stages(before, after), done(before, after)];
    news.into_iter().flatten().map(note).collect()
}

/// Another target takes the place of one: of one that was complete, or of one that was not.
fn begun(before: &ClusterAddonStatus, after: &ClusterAddonStatus) -> Option<(Happening, String)> {
    let (last, next) = (before.target.as_ref()?, after.target.as_ref()?);
    if is_same(last, next) {
        return None;
    }
    let told = if before.applied.as_ref().is_some_and(|applied| is_same(applied, last)) {
        let message = format!(
            "the cluster begins to get {}; it has {}",
            words(next, last),
            named(last)
        );
        (Happening::UpgradeBegun, message)
    } else {
        let message = format!(
            "the cluster gets {} now; {} were not complete",
            words(next, last),
            named(last)
        );
        (Happening::UpgradePreempted, message)
    };
    Some(told)
}

/// The stages that have become done, all together: of one that was done nobody hears again.
fn stages(before: &ClusterAddonStatus, after: &ClusterAddonStatus) -> Option<(Happening, String)> {
    let is_of_target = match (&before.target, &after.target) {
        (Some(last), Some(next)) => is_same(last, next),
        _ => false,
    };
    let mut known: BTreeMap<(&str, StageAction, Option<&str>), usize> = BTreeMap::new();
    for row in before.stages.iter().filter(|row| is_of_target && is_done(row)) {
        *known.entry(key(row)).or_default() += 1;
    }
    let mut done = Vec::new();
    for row in after.stages.iter().filter(|row| is_done(row)) {
        match known.get_mut(&key(row)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => done.push(stage(row)),
        }
    }
    match done.as_slice() {
        [] => None,
        [one] => Some((Happening::StageDone, format!("stage {one} is done"))),
        many => Some((Happening::StageDone, format!("stages {} are done", many.join(", ")))),
    }
}

fn is_done(row: &StageProgress) -> bool {
    row.phase == StagePhase::Done
}

/// A release may list a stage several times; rows that are equal here are counted.
fn key(row: &StageProgress) -> (&str, StageAction, Option<&str>) {
    (&row.name, row.action, row.hook.as_deref())
}

fn stage(row: &StageProgress) -> String {
    let StageProgress { name, action, hook, .. } = row;
    match hook {
        Some(hook) => format!("{name} ({action}) of {hook}"),
        None => format!("{name} ({action})"),
    }
}

/// An upgrade is over. Of the first add-ons of a cluster the stages tell.
fn done(before: &ClusterAddonStatus, after: &ClusterAddonStatus) -> Option<(Happening, String)> {
    let (last, now) = (before.applied.as_ref()?, after.applied.as_ref()?);
    (!is_same(last, now)).then(|| (Happening::UpgradeDone, format!("the cluster has {}", words(now, last))))
}

/// Whether both are the same add-ons; the class that they come from may have another name.
fn is_same(one: &AddonVersion, other: &AddonVersion) -> bool {
    match (&one.digest, &other.digest) {
        (Some(digest), Some(of_other)) => digest == of_other,
        _ => one == other,
    }
}

fn named(version: &AddonVersion) -> String {
    let AddonVersion {
        cluster_stack, version, ..
    } = version;
    format!("the add-ons {version} of {cluster_stack}")
}

/// Where nothing else is another, the values are.
fn words(version: &AddonVersion, than: &AddonVersion) -> String {
    let is_other = AddonVersion {
        digest: None,
        ..version.clone()
    } != AddonVersion {
        digest: None,
        ..than.clone()
    };
    let with = if is_other { "" } else { " with other values" };
    format!("{}{with}", named(version))
}

/// The hooks that somebody lets a cluster of this class go on without, as long as there is something of them that is left out.
pub fn overridden(marks: &Marks, class: &str, status: &ClusterAddonStatus) -> Option<Note> {
    // What a call of the hook would be held up by: stages of hooks before count, too, as those of creation do where a release lists none for upgrades.
    let is_left = |hook: Hook| {
        first_left(status, hook.last_of_moment())
            .is_some_and(|row| hook != Hook::BeforeClusterDelete || row.hook.as_deref() == Some(hook.name()))
    };
    let hooks = Hook::ALL
        .into_iter()
        .filter(|hook| marks.skips(*hook, class) && is_left(*hook));
    let hooks: Vec<&str> = hooks.map(Hook::name).collect();
    (!hooks.is_empty()).then(|| Note {
        warning: true,
        reason: Happening::HookOverridden,
        message: format!(
            "Cluster API goes on without the stages of {} that are not done, as the annotation {SKIP_HOOK} says; they are worked on all the same",
            hooks.join(", ")
        ),
    })
}

/// What is said of a ClusterAddon of this name that nobody works on, because there is no Cluster that it is for: none that is called as it says, or one whose
/// ClusterAddon is called otherwise. The Go operator makes none without an owner, so that one with an owner is left without a word.
pub fn stray(seen: &AddonSeen, name: &str, cluster: Option<&str>) -> Option<Note> {
    if seen.owner.is_some() || seen.deleting || seen.moving {
        return None;
    }
    let message = match cluster {
        Some(cluster) if name == name_for(cluster) => format!(
            "there is no Cluster {cluster} in its namespace, and nothing is done before there is one with the class of a cluster stack; such a Cluster \
             gets its ClusterAddon by itself, so this one can be deleted"
        ),
        Some(cluster) => format!(
            "nothing is done with it: the ClusterAddon of the Cluster {cluster} is called {}, and comes by itself where the class of the Cluster is that of \
             a cluster stack; this one can be deleted",
            name_for(cluster)
        ),
        None => "nothing is done with it: spec.clusterRef names no Cluster; it can be deleted".to_owned(),
    };
    Some(Note {
        warning: true,
        reason: Happening::ClusterAddonUnused,
        message,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn version(version: &str, values: &str) -> AddonVersion {
        AddonVersion {
            cluster_stack: format!("docker-harbor-1-34-{version}"),
            version: version.to_owned(),
            kubernetes_version: Some("v1.34.0".to_owned()),
            digest: Some(format!("{version} {values}")),
        }
    }

    fn row(name: &str, phase: StagePhase) -> StageProgress {
        StageProgress {
            name: name.to_owned(),
            action: StageAction::Apply,
            hook: Some(Hook::BeforeClusterUpgrade.name().to_owned()),
            phase,
            reason: None,
            since: None,
            deadline: None,
            message: None,
            passed_over: false,
        }
    }

    fn status(target: Option<&AddonVersion>, applied: Option<&AddonVersion>, done: &[&str]) -> ClusterAddonStatus {
        let phase = |name: &str| {
            if done.contains(&name) {
                StagePhase::Done
            } else {
                StagePhase::Pending
            }
        };
        ClusterAddonStatus {
            target: target.cloned(),
            applied: applied.cloned(),
            stages: ["cni", "ccm"].map(|name| row(name, phase(name))).into(),
            ..ClusterAddonStatus::default()
        }
    }

    /// What is told of these states of a status, one after the other.
    fn told(states: &[ClusterAddonStatus]) -> Vec<(Happening, String)> {
        let pairs = states.windows(2);
        let notes = pairs.flat_map(|pair| notes(&pair[0], &pair[1]));
        notes.map(|note| (note.reason, note.message)).collect()
    }

    #[test]
    fn an_upgrade_is_told_from_its_begin_to_its_end_and_each_stage_once() {
        let (one, two) = (version("v1", ""), version("v2", ""));
        let states = [
            ClusterAddonStatus::default(),
            status(Some(&one), None, &["cni"]),
            status(Some(&one), Some(&one), &["cni", "ccm"]),
            status(Some(&one), Some(&one), &["cni", "ccm"]),
            status(Some(&two), Some(&one), &[]),
            status(Some(&two), Some(&one), &["cni"]),
            status(Some(&two), Some(&two), &["cni", "ccm"]),
        ];
        let told = told(&states);
        let words: Vec<(Happening, &str)> = told.iter().map(|(what, words)| (*what, words.as_str())).collect();
        assert_eq!(
            words,
            [
                (
                    Happening::StageDone,
                    "stage cni (apply) of BeforeClusterUpgrade is done"
                ),
                (
                    Happening::StageDone,
                    "stage ccm (apply) of BeforeClusterUpgrade is done"
                ),
                (
                    Happening::UpgradeBegun,
                    "the cluster begins to get the add-ons v2 of docker-harbor-1-34-v2; it has the add-ons v1 of docker-harbor-1-34-v1"
                ),
                (
                    Happening::StageDone,
                    "stage cni (apply) of BeforeClusterUpgrade is done"
                ),
                (
                    Happening::StageDone,
                    "stage ccm (apply) of BeforeClusterUpgrade is done"
                ),
                (
                    Happening::UpgradeDone,
                    "the cluster has the add-ons v2 of docker-harbor-1-34-v2"
                ),
            ]
        );
    }

    #[test]
    fn other_values_are_called_so_and_another_name_of_the_class_is_no_news() {
        let (one, other) = (version("v1", ""), version("v1", "other values"));
        let all = ["cni", "ccm"];
        let states = [
            status(Some(&one), Some(&one), &all),
            status(Some(&other), Some(&other), &all),
        ];
        let reasons: Vec<Happening> = told(&states).iter().map(|(what, _)| *what).collect();
        assert_eq!(
            reasons,
            [Happening::UpgradeBegun, Happening::StageDone, Happening::UpgradeDone]
        );
        assert!(told(&states)[2].1.ends_with("with other values"), "{:?}", told(&states));
        let renamed = AddonVersion {
            cluster_stack: "docker-harbor-1-34-v9".to_owned(),
            ..one.clone()
        };
        let states = [
            status(Some(&one), Some(&one), &all),
            status(Some(&renamed), Some(&renamed), &all),
        ];
        assert_eq!(told(&states), []);
    }

    #[test]
    fn a_target_that_comes_before_the_last_one_was_complete_preempts_it() {
        let (one, two, three) = (version("v1", ""), version("v2", ""), version("v3", ""));
        let states = [
            status(Some(&two), Some(&one), &["cni"]),
            status(Some(&three), Some(&one), &[]),
        ];
        let told = told(&states);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, Happening::UpgradePreempted);
        assert!(
            told[0].1.contains("-v3 now") && told[0].1.contains("-v2 were not complete"),
            "{told:?}"
        );
    }

    #[test]
    fn a_hook_that_somebody_overrides_is_told_while_something_of_it_is_left_out() {
        let class = "docker-harbor-1-34-v2";
        let marks = Marks {
            skipped: BTreeSet::from([
                (Hook::BeforeClusterUpgrade, class.to_owned()),
                (Hook::BeforeClusterDelete, class.to_owned()),
            ]),
            ..Marks::default()
        };
        let left = status(None, None, &["cni"]);
        let note = overridden(&marks, class, &left).expect("a note");
        assert!(note.warning && note.reason == Happening::HookOverridden);
        assert!(
            note.message.contains("the stages of BeforeClusterUpgrade that"),
            "{}",
            note.message
        );
        // The stages of creation lead an upgrade where a release lists none for it.
        let mut single = left.clone();
        for row in &mut single.stages {
            row.hook = Some(Hook::AfterControlPlaneInitialized.name().to_owned());
        }
        assert_eq!(overridden(&marks, class, &single), Some(note));
        assert_eq!(overridden(&marks, "another", &left), None);
        assert_eq!(overridden(&Marks::default(), class, &left), None);
        assert_eq!(overridden(&marks, class, &status(None, None, &["cni", "ccm"])), None);
    }

    #[test]
    fn a_cluster_addon_that_somebody_made_for_no_cluster_is_told_why_nothing_comes_of_it() {
        let by_hand = AddonSeen::default();
        let told = |seen: &AddonSeen, name: &str, cluster| {
            let note = stray(seen, name, cluster)?;
            assert!(note.warning && note.reason == Happening::ClusterAddonUnused);
            Some(note.message)
        };
        for (name, cluster, words) in [
            (
                "cluster-addon-warf",
                Some("warf"),
                "there is no Cluster warf in its namespace, ",
            ),
            (
                "wharf",
                Some("wharf"),
                " of the Cluster wharf is called cluster-addon-wharf, ",
            ),
            ("wharf", None, "spec.clusterRef names no Cluster"),
        ] {
            let message = told(&by_hand, name, cluster).expect("a note");
            assert!(message.contains(words), "{message}");
        }
        let owned = AddonSeen {
            owner: Some("uid-0".to_owned()),
            ..by_hand.clone()
        };
        let deleting = AddonSeen {
            deleting: true,
            ..by_hand.clone()
        };
        let moving = AddonSeen {
            moving: true,
            ..by_hand
        };
        for seen in [owned, deleting, moving] {
            assert_eq!(told(&seen, "wharf", Some("wharf")), None, "{seen:?}");
        }
    }
}
