//! The types of conditions.

use super::Entry;
use crate::conditions::ConditionType;

/// Every type that this version writes, in the order in which people meet them.
pub const CONDITIONS: &[Entry<ConditionType>] = &[
    Entry {
        word: ConditionType::Ready,
        means: "On stacks, releases and ClusterAddons. All conditions below hold, those left out that are about the operator's own work. A stack is ready when \
                every version in `spec.versions` can be used, and, with `spec.autoSubscribe`, the source could be listed and at least one \
                release can be used. What stands beside that, and what a stack says to which nothing is asked for, is a reason of `True`.",
        reader: "While it is `False`, go by its reason and message: they are those of the worst of the others. A stack that is not ready may \
                 still have releases that can be used: the column USABLE names them.",
        operator: "Finds it out anew at every look, and writes it when it is another.",
    },
    Entry {
        word: ConditionType::Reconciling,
        means: "On stacks, releases and ClusterAddons. Something is being done or waited for. It is there only while that is so.",
        reader: "Wait; the message says for what.",
        operator: "Goes on by itself, and takes the condition away when there is nothing more to do.",
    },
    Entry {
        word: ConditionType::Stalled,
        means: "On stacks, releases and ClusterAddons. Nothing gets better until somebody acts. It is there only while that is so.",
        reader: "Do what its reason asks for. `kubectl wait --for=condition=Stalled` ends where `--for=condition=Ready` never would.",
        operator: "Keeps what there is, watches what has to be mended, and goes on when that has changed. What the API server refused is tried \
                   again after a second, then ever later, at most five minutes apart.",
    },
    Entry {
        word: ConditionType::Paused,
        means: "On stacks, releases and ClusterAddons. Nobody works on the object because somebody asked for that. It is there only while that is so; all else \
                in the status is from before.",
        reader: "Nothing, or take the pause back: see [`Paused`](#reason-paused) and [`Suspended`](#reason-suspended).",
        operator: "Nothing, until it is taken back.",
    },
    Entry {
        word: ConditionType::AssetsClientAPIAvailable,
        means: "On stacks. The source of releases can be used as it is configured.",
        reader: "While it is `False`, correct what the message names, in `spec.source` or a Secret.",
        operator: "Tries it again with every poll of the source.",
    },
    Entry {
        word: ConditionType::ReleasesSynced,
        means: "On stacks. The source was asked, and its list of releases is known.",
        reader: "While it is `False`, see that the operator can [reach the source](sources.md).",
        operator: "Asks again at `spec.interval` while the source answers, and ever more rarely while it does not, always again.",
    },
    Entry {
        word: ConditionType::ProviderClusterStackReleasesSynced,
        means: "On stacks with a provider. The provider's release objects are as the template says.",
        reader: "While it is `False`, mend the template, its kind or the reference, as the reason says.",
        operator: "Watches the template and the provider's objects; another template reaches all of them.",
    },
    Entry {
        word: ConditionType::ClusterStackReleasesSynced,
        means: "On stacks. The release objects are those that are asked for, and each that `spec.versions` names can be used.",
        reader: "While it is `False`, go by the reason; it is that of the release at fault, which the message names.",
        operator: "Goes on with all other releases.",
    },
    Entry {
        word: ConditionType::ClusterStackReleaseAvailable,
        means: "On stacks that ask for a release. At least one can be used. `True` with a reason: a release that nobody named is at fault.",
        reader: "While it is `False`, go by the reason. With `spec.autoSubscribe` only the newest release of the channel is taken; to use one \
                 before it, add that to `spec.versions`.",
        operator: "Keeps the release that was used before, until the newer one is ready.",
    },
    Entry {
        word: ConditionType::ClusterStackReleaseDownloaded,
        means: "On releases: their files are there and sound, and signed as the policy asks. `True` with a reason: what is applied stands, \
                although something is the matter with the files. On ClusterAddons: the release of the class can be used.",
        reader: "While it is `False`, mend the release at its source.",
        operator: "Looks again when the source has changed. Nothing is applied before it holds; what is applied stays.",
    },
    Entry {
        word: ConditionType::ProviderClusterStackReleaseReady,
        means: "On releases. The provider has done its part, such as node images; always so for a stack with `spec.noProvider`.",
        reader: "While it is `False`, look at the provider's release object and its operator.",
        operator: "Watches the provider's object. Nothing is applied for the first time before it holds.",
    },
    Entry {
        word: ConditionType::HelmChartTemplated,
        means: "On releases and ClusterAddons. Never `True`: it is there only while a chart cannot be rendered, or the values of add-ons cannot be made, or either takes long.",
        reader: "Publish a version with a chart that can; the message has file and line.",
        operator: "Renders again when the release or what is asked of it changes.",
    },
    Entry {
        word: ConditionType::HelmChartApplied,
        means: "On releases and ClusterAddons. All objects are applied and healthy. `True` with a reason: some differ and are left so.",
        reader: "While it is `False`, go by the reason; the rows in `status.resources` say how each object is.",
        operator: "Watches every object of the release, and goes on with those that can be brought in line.",
    },
    Entry {
        word: ConditionType::ClusterReady,
        means: "On ClusterAddons. The API server of the cluster answers.",
        reader: "While it is `False`, look at the Cluster and its control plane.",
        operator: "Watches both.",
    },
    Entry {
        word: ConditionType::ClusterAddonConfigValidated,
        means: "On ClusterAddons. The list of stages of the release could be read. It is there once that was tried.",
        reader: "While it is `False`, mend `clusteraddon.yaml` at the source.",
        operator: "Reads it again when the release is another. What is applied stays.",
    },
    Entry {
        word: ConditionType::HelmChartFound,
        means: "On ClusterAddons. Never `True`: it is there only while the release does not have the chart of a stage.",
        reader: "Publish a version that has it.",
        operator: "Goes on when the release is another.",
    },
    Entry {
        word: ConditionType::EvaluatedCEL,
        means: "On ClusterAddons. Never `True`: it is there only while a stage waits for what must hold before or after it.",
        reader: "Wait, or go by the message: it names the part that does not hold, with its value.",
        operator: "Watches the objects that are asked about, and goes on as soon as all holds.",
    },
    Entry {
        word: ConditionType::HookServerReady,
        means: "On ClusterAddons. Never `True`: it is there only while the next stage waits for the moment in the life of its cluster that it is for.",
        reader: "Wait; the message says which moment.",
        operator: "Watches the Cluster. It does not need to be called for that.",
    },
    Entry {
        word: ConditionType::HelmChartDeleted,
        means: "On ClusterAddons. Never `True`: it is there only while the objects of a stage that deletes are not gone.",
        reader: "Wait, or go by the reason.",
        operator: "Goes on when they are gone.",
    },
];
