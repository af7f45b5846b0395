//! Words beside conditions: what events tell, and how objects and releases stand in the rows of a status.

use super::Entry;
use crate::cluster_stack::ReleasePhase;
use crate::events::Happening;
use crate::resource::{Health, SyncStatus};

/// What events tell besides conditions.
pub const HAPPENINGS: &[Entry<Happening>] = &[
    Entry {
        word: Happening::ClusterStackReleaseCreated,
        means: "On a stack. Release objects were created; the message names them.",
        reader: "Nothing.",
        operator: "Makes them ready; their conditions say how far they are.",
    },
    Entry {
        word: Happening::ClusterStackReleaseDeleted,
        means: "On a stack. Release objects were deleted, because nothing asks for them and no Cluster uses them.",
        reader: "Nothing; list a version in `spec.versions` to keep it.",
        operator: "Deletes what they applied.",
    },
    Entry {
        word: Happening::OrphansFound,
        means: "On a stack. The Go operator left ClusterClasses behind whose releases are no more.",
        reader: "Read `status.orphans`; allow what is to go by the annotation `clusterstack.x-k8s.io/approve-orphans`, as \
                 [the page on takeover](takeover.md#what-it-left-behind) says.",
        operator: "Leaves them alone until then.",
    },
    Entry {
        word: Happening::OrphansDeleted,
        means: "On a stack. Such classes were deleted, with their templates, as somebody had allowed.",
        reader: "Nothing.",
        operator: "Forgets them.",
    },
    Entry {
        word: Happening::DriftCorrected,
        means: "On a release or a ClusterAddon. Objects were put back; the message says which fields, and who had changed them.",
        reader: "See that whoever it was does not go on; to keep a change, publish a release that has it.",
        operator: "Puts back again, up to three times in ten minutes, see [`Contested`](#reason-contested).",
    },
    Entry {
        word: Happening::ObjectShared,
        means: "On a release. An object was there before the release that wants it.",
        reader: "Nothing, if that is what you want; else rename the object in the chart.",
        operator: "Writes the fields that the release sets, and leaves the object there when the release goes.",
    },
    Entry {
        word: Happening::ObjectsLeftAlone,
        means: "On a release that goes. It asked for objects of kinds that the operator has not the right to list; the message names the kinds.",
        reader: "Nothing, unless the right was there before: then look for objects with the label of the release, and delete them.",
        operator: "Lets the release go: by its inventory it applied none of them.",
    },
    Entry {
        word: Happening::ProviderNotControlled,
        means: "On a release. The provider's object could not be taken under control.",
        reader: "Mend what the API server says.",
        operator: "Tries again, and does nothing else for the release before.",
    },
    Entry {
        word: Happening::ClusterAddonCreated,
        means: "On a ClusterAddon. It was made, because the class of its Cluster belongs to a cluster stack.",
        reader: "Nothing.",
        operator: "Looks after the add-ons of the cluster; makes it anew when somebody deletes it.",
    },
    Entry {
        word: Happening::ClusterAddonDeleted,
        means: "On a ClusterAddon. It was deleted, because the Cluster that it was made for is gone; one of the same name gets a new one.",
        reader: "Nothing.",
        operator: "Lets it go.",
    },
    Entry {
        word: Happening::ClusterAddonUnused,
        means: "On a ClusterAddon. Somebody made it by hand, and there is no Cluster that it is for; the message says what is wrong with its name, or \
                which Cluster is missing.",
        reader: "Delete it: a Cluster whose class belongs to a cluster stack gets its ClusterAddon by itself. Or make the Cluster that it names.",
        operator: "Leaves it as it is, and works on it when there is a Cluster that it is for.",
    },
    Entry {
        word: Happening::StageDone,
        means: "On a ClusterAddon. Stages of its add-ons became done; the message names them, with what they do and their hook.",
        reader: "Nothing.",
        operator: "Goes on with the next one.",
    },
    Entry {
        word: Happening::UpgradeBegun,
        means: "On a ClusterAddon. Its cluster begins to get other add-ons: its Cluster has another class or another version of Kubernetes, or other values \
                come of it.",
        reader: "Nothing; `status.stages` says how far it is.",
        operator: "Works on the stages of an upgrade, one after the other.",
    },
    Entry {
        word: Happening::UpgradeDone,
        means: "On a ClusterAddon. Its cluster has the add-ons that it was to get.",
        reader: "Nothing.",
        operator: "Deletes what no chart asks for any more, and keeps the rest as it is to be.",
    },
    Entry {
        word: Happening::UpgradePreempted,
        means: "On a ClusterAddon. Its cluster gets other add-ons before those that it was to get were complete; the message names both.",
        reader: "Nothing, if that is what you want.",
        operator: "Goes on with nothing of the former, and begins with the stages of the latter.",
    },
    Entry {
        word: Happening::HookOverridden,
        means: "On a ClusterAddon. Its annotation `clusterstack.x-k8s.io/skip-hook` lets Cluster API go on, although stages of the hook are not done.",
        reader: "Look at these stages; the annotation holds for this class alone.",
        operator: "Answers the hook at once, and works on its stages all the same.",
    },
];

/// Whether an object is as its release wants it: `status.resources[].status`.
pub const SYNC: &[Entry<SyncStatus>] = &[
    Entry {
        word: SyncStatus::Synced,
        means: "The object is as the release wants it.",
        reader: "Nothing.",
        operator: "Watches the object.",
    },
    Entry {
        word: SyncStatus::NotSynced,
        means: "The object is not as the release wants it, or not yet; `error` says why, and `manager` who else writes its fields.",
        reader: "Go by `error` and by the reason of `HelmChartApplied`. Without an `error`, wait.",
        operator: "Applies it as soon as that can be done; [`FailedToApplyObjects`](#reason-failedtoapplyobjects), \
                   [`Drifted`](#reason-drifted) and [`Contested`](#reason-contested) say when.",
    },
];

/// How an object is: `status.resources[].health`.
pub const HEALTH: &[Entry<Health>] = &[
    Entry {
        word: Health::Current,
        means: "The object has become what its spec says.",
        reader: "Nothing.",
        operator: "Watches the object.",
    },
    Entry {
        word: Health::InProgress,
        means: "The object is on the way.",
        reader: "Wait; if it stays so, look at the object and at the controller that works on it.",
        operator: "The release is not ready before; it looks when the object changes.",
    },
    Entry {
        word: Health::Failed,
        means: "The object says itself that it failed.",
        reader: "Read its conditions: `kubectl describe` the object.",
        operator: "The release is not ready meanwhile. The object is not made anew: that may cost what it holds.",
    },
    Entry {
        word: Health::Terminating,
        means: "The object is being deleted.",
        reader: "If it stays so, a finalizer waits for somebody: its name says for whom.",
        operator: "Applies it again when it is gone, if the release still wants it and `spec.drift` is `Correct`.",
    },
    Entry {
        word: Health::Unknown,
        means: "It cannot be told how the object is, or nobody has looked yet.",
        reader: "Nothing.",
        operator: "Looks, and does not hold the release back for it.",
    },
];

/// What is being done to make a release ready: `status.summary[].phase` of a stack.
pub const PHASES: &[Entry<ReleasePhase>] = &[
    Entry {
        word: ReleasePhase::DownloadingAssets,
        means: "The files of the release are fetched, or cannot be had or used.",
        reader: "Wait, or go by the message beside it and by `ClusterStackReleaseDownloaded` of the release.",
        operator: "Goes on when they are there.",
    },
    Entry {
        word: ReleasePhase::ProviderWork,
        means: "The provider does its part, such as node images.",
        reader: "Wait, or look at the provider's release object.",
        operator: "Goes on when the provider is ready.",
    },
    Entry {
        word: ReleasePhase::ApplyingObjects,
        means: "Objects are applied, or are not healthy yet, or are refused.",
        reader: "Wait, or go by the message beside it and by `HelmChartApplied` of the release.",
        operator: "Goes on with what can be applied.",
    },
    Entry {
        word: ReleasePhase::Done,
        means: "The release can be used.",
        reader: "Nothing: name its class in a Cluster.",
        operator: "Keeps it so.",
    },
    Entry {
        word: ReleasePhase::Unknown,
        means: "Nothing has been found out yet, or the release belongs to another stack.",
        reader: "Wait, or go by the message beside it.",
        operator: "Looks.",
    },
];
