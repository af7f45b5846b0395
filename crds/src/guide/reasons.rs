//! The reasons of conditions; most are reasons of events too.

use super::Entry;
use crate::conditions::Reason;

/// Every reason that this version writes: what passes by itself, what is wrong with a release, its objects, its source, its provider, what the
/// operator would rather be told first, and what is meant to be so.
pub const REASONS: &[Entry<Reason>] = &[
    Entry {
        word: Reason::NotObservedYet,
        means: "Nothing has been found out yet; what holds with this reason held when it was last looked at.",
        reader: "Wait: it is a matter of seconds after a start. If it stays, `/readyz` says what the operator cannot see.",
        operator: "Looks.",
    },
    Entry {
        word: Reason::Progressing,
        means: "Work is being done.",
        reader: "Wait; the message says for what.",
        operator: "Goes on by itself.",
    },
    Entry {
        word: Reason::Waiting,
        means: "No release is taken by itself: hash releases without a date have no order, or the stack neither lists versions nor subscribes.",
        reader: "Name a release in `spec.versions`, or set `spec.autoSubscribe`.",
        operator: "Keeps what there is.",
    },
    Entry {
        word: Reason::ObjectsApplyingOngoing,
        means: "Objects are being applied.",
        reader: "Wait.",
        operator: "Goes on wave by wave: what others need comes first.",
    },
    Entry {
        word: Reason::ObjectsNotHealthy,
        means: "Objects are applied and not healthy yet.",
        reader: "Look at the objects that the message names, with the words of whoever works on them.",
        operator: "Watches them; a health that changes all the time is read ever more seldom, in the end every ten seconds.",
    },
    Entry {
        word: Reason::Deleting,
        means: "The object is being deleted.",
        reader: "Wait; the message says for what.",
        operator: "Deletes what it applied, first the `ClusterClass`, so that nothing goes while Cluster API keeps it for a Cluster, then the rest \
                   in the reverse order, and lets the release go when it has seen that all of it is gone.",
    },
    Entry {
        word: Reason::InUse,
        means: "The release is to go, but Clusters use its class.",
        reader: "Move the Clusters that the message names to another class, or leave it so: nothing is in a hurry.",
        operator: "Keeps the release with all its objects, tells what becomes of them without putting it back, and deletes it when \
                   the last of the Clusters has moved or is gone.",
    },
    // What holds add-ons up.
    Entry {
        word: Reason::WaitingForCluster,
        means: "The cluster is not as far as the next stage of add-ons needs it; the message says which moment of its life is waited for.",
        reader: "Wait; the Cluster says how far it is. If the message names a field that its control plane does not have, the provider of that has to write it.",
        operator: "Begins the stage when that moment comes, whether Cluster API calls its hook or not.",
    },
    Entry {
        word: Reason::ControlPlaneNotReady,
        means: "The API server of the cluster cannot be reached yet, or not just now; the message says why.",
        reader: "Wait, or look at the Cluster, its control plane and the way there.",
        operator: "Tries again, ever later, and at once when Cluster API says that the cluster is there or its kubeconfig is another. Other clusters do \
                   not wait for it, and what is applied stays.",
    },
    Entry {
        word: Reason::KubeconfigRefused,
        means: "The kubeconfig of the cluster asks for something that the operator does not do for it, such as running a program; the message names the field.",
        reader: "Mend the Secret, or whatever makes it.",
        operator: "Uses nothing of it, and reads it again when the Secret is another.",
    },
    Entry {
        word: Reason::FailedToEvaluatePreCondition,
        means: "What must hold before a stage of add-ons begins does not hold yet; the message names the part that does not, with its value.",
        reader: "Wait, or see to the objects of the cluster that the condition is about.",
        operator: "Begins the stage as soon as it holds.",
    },
    Entry {
        word: Reason::FailedToEvaluatePostCondition,
        means: "What must hold after a stage of add-ons does not hold yet; the message names the part that does not, with its value.",
        reader: "Wait, or see to the objects of the cluster that the condition is about.",
        operator: "Goes on with the next stage as soon as it holds.",
    },
    Entry {
        word: Reason::ConditionInvalid,
        means: "What must hold before or after a stage of add-ons cannot be meant of the objects that the API server of the cluster serves: a kind \
                there has no such field, or never such a value. The message names the field, and what the schema has instead.",
        reader: "Take another release, or let the cluster serve what the condition is about; nothing comes of waiting.",
        operator: "Does not wait for the deadline: what comes after the stage waits, unless the release says to continue. It looks again when the \
                   cluster serves something else, or when the Cluster gets another release.",
    },
    Entry {
        word: Reason::StageDeadlineExceeded,
        means: "A stage of add-ons takes longer than its release gives it; the message says what it waits for.",
        reader: "See to that, take another release, or let the cluster go on without the stage, by the command that the Cluster says in its condition \
                 `TopologyReconciled`.",
        operator: "Tries on, and goes on by itself once it is done.",
    },
    // What is wrong with a release.
    Entry {
        word: Reason::ReleaseAssetsNotDownloadedYet,
        means: "The source does not have the release, or not all of it, or it is being downloaded; the message says which, and how far it is.",
        reader: "Wait, or publish it.",
        operator: "Looks with every poll of the source, and in a directory at once; a download that failed is begun again after ten seconds, then \
                   ever later, at most a quarter of an hour (or `spec.interval`, if that is longer) apart.",
    },
    Entry {
        word: Reason::IssueWithReleaseAssets,
        means: "A file of the release is wrong; the message names it.",
        reader: "Mend it at the source, or publish a new version.",
        operator: "Applies nothing of it. It looks again when the source has other bytes; where a source tells no digests, after an hour.",
    },
    Entry {
        word: Reason::BrokenRelease,
        means: "The files of a release are at fault: on a stack, and as the reason of `Stalled`.",
        reader: "Mend what the message names; on a stack it names the release.",
        operator: "Goes on with the other releases, and with this one when its files have changed.",
    },
    Entry {
        word: Reason::VerificationFailed,
        means: "No [signature](verification.md) of the release is good, or none could be checked; the message says why.",
        reader: "Sign the release, or correct the key or its Secret.",
        operator: "With the mode `Warn` it uses the release all the same, with `Require` it refuses it: nothing of it is applied, what is applied \
                   stays and is not repaired. Signatures are looked for again with every poll, keys are read again every minute.",
    },
    Entry {
        word: Reason::DigestChanged,
        means: "The tag means other bytes than those that were pinned.",
        reader: "Find out who moved the tag. Then publish a new version, or delete the ClusterStackRelease to accept the new bytes.",
        operator: "Refuses the new bytes. What was downloaded is kept, stays in use and ready; what came from a directory is not ready, because \
                   the old files are gone, and stays as it is.",
    },
    Entry {
        word: Reason::ReleaseNotFound,
        means: "A version that is asked for is not at the source, or the source lists none; on a release that is ready: its files left the \
                source, so that nothing can be repaired.",
        reader: "Publish it, or correct `spec.versions`, `spec.channel` or `spec.kubernetesVersion`.",
        operator: "Looks with every poll. What is applied stays, and is watched.",
    },
    Entry {
        word: Reason::TemplateNewClusterStackFailed,
        means: "The class chart, or on a ClusterAddon a chart of the add-ons, cannot be rendered; the message has file and line.",
        reader: "Publish a new version; `kubectl stacks release create` finds this before.",
        operator: "Keeps what is applied. What took too long is tried again by itself, later each time, and the release is not `Stalled`.",
    },
    Entry {
        word: Reason::RenderFailed,
        means: "What [`TemplateNewClusterStackFailed`](#reason-templatenewclusterstackfailed) says, on a stack and as the reason of `Stalled`; on a ClusterAddon also that the values of its charts cannot be made.",
        reader: "Publish a new version that renders, or correct what the values are made of; of a ClusterAddon, `HelmChartTemplated` and `HelmChartFound` say what is wrong.",
        operator: "The same.",
    },
    Entry {
        word: Reason::ParsingClusterAddonConfigFailed,
        means: "The file `clusteraddon.yaml` of the release cannot be used; the message says where.",
        reader: "Mend it at the source, or publish a new version.",
        operator: "Keeps what is applied in the cluster, and goes on when the file has changed.",
    },
    Entry {
        word: Reason::StagesNotUsed,
        means: "The list of stages of the release can be read, and it has none, or stages under names that are no lifecycle hooks, which are never run. It stands beside a `True`: whoever lists no stages gets no add-ons.",
        reader: "Nothing, if that is meant. Otherwise list the charts under the hooks of [hooks.md](hooks.md) in a new version; `kubectl stacks release create` finds this before.",
        operator: "Runs all other stages. A cluster without any counts as ready.",
    },
    Entry {
        word: Reason::ClusterVersionNotServed,
        means: "The management cluster does not serve Clusters in the version that the values of the release are written for, so that they get another one, which the message names. It stands beside a `True`.",
        reader: "Name the version that is served as `clusterApiVersion` in `clusteraddon.yaml`, correct the templates of values for it, and publish a new version.",
        operator: "Makes the values of what the API server gives. A template that stumbles over that says so with `HelmChartTemplated`.",
    },
    Entry {
        word: Reason::HelmChartMissing,
        means: "A stage names a chart that the release does not have; the message names both.",
        reader: "Publish a version that has it; `kubectl stacks release create` finds this before.",
        operator: "Applies nothing of that stage, nor of those after it. What is applied stays.",
    },
    Entry {
        word: Reason::TemplateNewClusterStackOverwriteFailed,
        means: "The values of the add-ons cannot be made from the release and the Cluster, or a Secret or ConfigMap that the Cluster names for them cannot \
                be taken; the message has file and line, or the name.",
        reader: "Publish a new version, or correct what the values are made of; for a Secret or ConfigMap see [values.md](values.md#values-from-secrets-and-configmaps).",
        operator: "Looks after the charts with the values that it made for them before, of the same release; where it knows none, because it began anew or the \
                   release is another, what is applied stays as it is. Makes them again when the release, the Cluster or what it names is another.",
    },
    Entry {
        word: Reason::RenderingUnstable,
        means: "The values of the add-ons come out different again and again, although nobody changed the spec of the Cluster: they are made of something \
                that changes by itself; the message names it.",
        reader: "Publish a version whose values are not made of that.",
        operator: "Keeps what is applied, and follows the values no further until that has changed.",
    },
    // What is wrong with its objects.
    Entry {
        word: Reason::FailedToApplyObjects,
        means: "The API server refused objects; the message has its words.",
        reader: "Mend what it says: a quota, a webhook, a missing right, the chart.",
        operator: "Tries each again after a second, then ever later, at most five minutes apart, and at once when the release changes. Objects \
                   that have to wait for one of these are not applied yet; all others are.",
    },
    Entry {
        word: Reason::KindNotFound,
        means: "The API server does not serve a kind that the release or the provider needs.",
        reader: "Install the CRDs that the message names.",
        operator: "Watches the CRDs, and goes on when the kind is served.",
    },
    Entry {
        word: Reason::Drifted,
        means: "Objects differ from the release, or are gone, and stay so: `spec.drift` is not `Correct`, or the files of the release cannot be \
                had.",
        reader: "Put them back, or set `spec.drift: Correct`; bring the files back.",
        operator: "Watches. With `Warn` a release whose objects only differ stays ready, and their rows are `not-synced`.",
    },
    Entry {
        word: Reason::InNewerForm,
        means: "Another release of the stack brings an object of the same name in another form. The newest one that is there [has it](operating.md#objects-that-several-releases-bring); the \
                message names both.",
        reader: "Nothing. Put the version into the name of an object that every release needs in its own form.",
        operator: "Leaves the object to the newer release, and takes it back when that one goes, except where this would lose stored data. \
                   The release stays ready.",
    },
    Entry {
        word: Reason::Contested,
        means: "Somebody undid our changes three times in ten minutes.",
        reader: "Stop the other writer, whom the message names.",
        operator: "Leaves the object alone until the time that the message says, then tries again; at once when the release, the \
                   ClusterAddon, or the stack of an object of a provider is annotated with `requestedAt`.",
    },
    Entry {
        word: Reason::FailedToDeleteObjects,
        means: "Objects could not be deleted.",
        reader: "Mend what the API server says; often it is a finalizer of somebody else.",
        operator: "Tries again after a second, then ever later, at most five minutes apart. A release that is to go stays until all is gone.",
    },
    // What is wrong with its source.
    Entry {
        word: Reason::FailedCreateAssetsClient,
        means: "The source cannot be used as it is configured.",
        reader: "Correct `spec.source`, or the Secret that the message names.",
        operator: "Reads both again after ten seconds, then ever later, at most a quarter of an hour (or `spec.interval`, if that is longer) \
                   apart; at once when the stack is annotated with `requestedAt`. Releases that are there stay usable.",
    },
    Entry {
        word: Reason::FailedToSync,
        means: "The source could not be listed; of a remote one the message says since when, how often it was tried, and when next.",
        reader: "See that the operator can [reach it](sources.md).",
        operator: "Asks again after ten seconds, then ever later, at most a quarter of an hour (or `spec.interval`, if that is longer) apart, \
                   and never before the source wants it. Releases that were applied stay usable, and are repaired as long as their files are \
                   here.",
    },
    Entry {
        word: Reason::VersionWentBackwards,
        means: "The newest release that the source shows is older than one that is here and that the source does not show any more.",
        reader: "Find out whether somebody withdrew it. If so, and on purpose, delete its ClusterStackRelease. If not, somebody may be holding \
                 releases back, so that what is mended does not arrive: look at the source by another way.",
        operator: "Keeps what is in use and the newest that is ready; the older one is installed beside it. Says so until the source shows \
                   the release, or a newer one, again.",
    },
    Entry {
        word: Reason::SourceUnavailable,
        means: "On a release that is ready: its files cannot be had now, so that nothing can be repaired. On objects of providers: the files of the release, or the bytes of an image, cannot be had now.",
        reader: "See that the operator can [reach the source](sources.md).",
        operator: "Watches what is applied, and asks the source as for `FailedToSync`. Images that are in the cloud stay ready.",
    },
    // What is wrong with its provider, or with the stack.
    Entry {
        word: Reason::ProcessOngoing,
        means: "The provider is at work, or its object does not exist yet; the message has what its `status` tells: `phase`, `message` (or that of its condition Ready) and `progress` (`done`, `total`, `unit`).",
        reader: "Look at the provider's release object and its operator.",
        operator: "Watches the object, and goes on when it is ready; of words that change all the time it repeats the newest every five seconds. What is applied already stays.",
    },
    Entry {
        word: Reason::ProviderTemplateNotFound,
        means: "`spec.providerRef` names no object.",
        reader: "Create it in the namespace of the stack, or correct the reference.",
        operator: "Watches the kind, and goes on when the template is there. The provider's objects that exist stay as they are.",
    },
    Entry {
        word: Reason::ForeignOwner,
        means: "The provider's object of this name is controlled by somebody else.",
        reader: "Remove the other owner, or give the stack another name.",
        operator: "Does not touch the object, and goes on when it is free.",
    },
    Entry {
        word: Reason::FailedToCreateOrUpdate,
        means: "A write of a release or of the provider's object was refused.",
        reader: "Mend what the API server says.",
        operator: "Tries again after a second, then ever later, at most five minutes apart.",
    },
    Entry {
        word: Reason::ReleaseOwnedByOtherStack,
        means: "Another stack of the namespace has the release.",
        reader: "Take the version out of one of the two, or move one to another namespace.",
        operator: "Touches nothing of the release for this stack, and takes it when the other stack has let it go.",
    },
    Entry {
        word: Reason::InvalidSpec,
        means: "A field cannot be used as it is; the message names it.",
        reader: "Edit it.",
        operator: "Goes on with what the field does not concern, and with the rest when the object was edited. Nothing is deleted for it.",
    },
    // What add-ons of a cluster wait for.
    Entry {
        word: Reason::ReleaseNotReady,
        means: "The release of the class cannot be used, or is not there; the message says why.",
        reader: "Look at the ClusterStackRelease.",
        operator: "Watches it. What was applied stays.",
    },
    Entry {
        word: Reason::VersionMismatch,
        means: "The Cluster has another Kubernetes version than its class is for.",
        reader: "Set the version, or the class, that the message names; whoever writes one after the other need do nothing.",
        operator: "Applies nothing until both fit together. What was applied stays.",
    },
    Entry {
        word: Reason::MemoLost,
        means: "The Secret with what random functions of the charts gave is gone: certificates and passwords of the add-ons are drawn anew. It is an event.",
        reader: "Find out who deleted the Secret. Whoever has to have the old values puts the Secret back from a backup.",
        operator: "Draws anew, records what it drew before it applies any of it, and goes on.",
    },
    // What is meant to be so, or has to be approved.
    Entry {
        word: Reason::PruneNotApproved,
        means: "More would be deleted in one pass than `spec.pruneLimit` allows.",
        reader: "Find out why so much is left out. Then set the annotation that the message names, or publish what is missing.",
        operator: "Deletes none of it before the approval. An approval is of exactly these objects and holds until the last of them is gone, also after a restart: \
                   when others are left out, or these were made again since, it asks again.",
    },
    Entry {
        word: Reason::Suspended,
        means: "`spec.suspend` is set; the rest of the status is from before.",
        reader: "Nothing, or unset it.",
        operator: "Creates, changes and deletes no release of the stack; releases that exist are still kept in line.",
    },
    Entry {
        word: Reason::Paused,
        means: "The annotation `cluster.x-k8s.io/paused` is set; the rest of the status is from before. On a stack: that of one of its releases. \
                On a ClusterAddon also: that of its Cluster, or `spec.paused` there.",
        reader: "Nothing, or remove it where the message says.",
        operator: "On a stack: creates, changes and deletes no release. On a release: applies, puts back and deletes no object. On a ClusterAddon: the \
                   same in its cluster, and hooks that wait for its stages hold the Cluster up.",
    },
];

/// Words of the contract and of ours that this version does not write: they belong to add-ons, or to what is refused otherwise.
pub const REASONS_OF_LATER_VERSIONS: &[Reason] = &[
    Reason::TemplateOldClusterStackOverwriteFailed,
    Reason::TemplateOldClusterStackFailed,
    Reason::HookServerUnresponsive,
    Reason::FieldConflict,
    Reason::RecreateNeeded,
];
