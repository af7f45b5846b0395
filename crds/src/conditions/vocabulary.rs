//! The words of conditions. Dashboards and scripts read them, so a word is never renamed.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

/// What a condition is about.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
pub enum ConditionType {
    /// The summary of the others.
    Ready,
    /// Something is being done, or waited for. Only ever True.
    Reconciling,
    /// Nothing will change until somebody acts. Only ever True.
    Stalled,
    /// Nobody works on the object because somebody asked for that; everything else is as it was found last. Only ever True.
    Paused,
    /// The source of releases can be used as configured.
    AssetsClientAPIAvailable,
    /// The source was asked, and its list of releases is known.
    ReleasesSynced,
    /// The provider's release objects are as the template says.
    ProviderClusterStackReleasesSynced,
    /// The release objects are those that are wanted.
    ClusterStackReleasesSynced,
    /// At least one release is ready for use.
    ClusterStackReleaseAvailable,
    /// The files of the release are there and sound.
    ClusterStackReleaseDownloaded,
    /// The provider has done its part, such as node images.
    ProviderClusterStackReleaseReady,
    /// The rendered objects are applied and healthy.
    HelmChartApplied,
    /// The API server of the workload cluster answers.
    ClusterReady,
    /// The list of stages could be read.
    ClusterAddonConfigValidated,
    /// The release contains the chart of a stage.
    HelmChartFound,
    /// The charts of the add-ons could be rendered.
    HelmChartTemplated,
    /// The objects of a stage that deletes are gone.
    HelmChartDeleted,
    /// The conditions around a stage could be evaluated and are met.
    EvaluatedCEL,
    /// Cluster API has called the lifecycle hook that was expected.
    HookServerReady,
    /// The provider has the files of the release. Core's own word for it is another.
    ClusterStackReleaseAssetsReady,
    /// All images of the release are in the OpenStack cloud.
    OpenStackNodeImageReleasesReady,
    /// All images of the release are where they shall be, with providers other than that for OpenStack.
    NodeImageReleasesReady,
    /// The cloud answers, and lets us in.
    CloudAvailable,
    /// The image service of the OpenStack cloud answers.
    OpenStackImageServiceClientAvailable,
    /// The OpenStack cloud has begun to take the image in.
    OpenStackImageImportStarted,
    /// The OpenStack cloud has the whole image.
    OpenStackImageActive,
    /// The bytes of the image can be had.
    SourceAvailable,
    /// The bytes of the image are in the cloud.
    ImageTransferred,
    /// They are what they must be.
    Verified,
}

impl ConditionType {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the condition counts for Ready. Those that do not are about the operator's work, not about the object.
    pub fn is_summarised(self) -> bool {
        self != Self::Ready && !self.is_only_ever_true()
    }

    /// Whether the condition is there only while it holds.
    pub fn is_only_ever_true(self) -> bool {
        matches!(self, Self::Reconciling | Self::Stalled | Self::Paused)
    }
}

/// Why a condition is as it is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
pub enum Reason {
    // Words of the contract, by the type of condition they belong to.
    /// `ClusterReady`: the workload cluster cannot be reached yet.
    ControlPlaneNotReady,
    /// `EvaluatedCEL`: what must hold before a stage does not.
    FailedToEvaluatePreCondition,
    /// `EvaluatedCEL`: what must hold after a stage does not.
    FailedToEvaluatePostCondition,
    /// `HelmChartFound`: a stage names a chart that the release does not contain.
    HelmChartMissing,
    /// `HelmChartTemplated`: the values of the previous release could not be made.
    TemplateOldClusterStackOverwriteFailed,
    /// `HelmChartTemplated`: a chart of the previous release could not be rendered.
    TemplateOldClusterStackFailed,
    /// `HelmChartTemplated`: the values of the release could not be made.
    TemplateNewClusterStackOverwriteFailed,
    /// `HelmChartTemplated`: a chart of the release could not be rendered.
    TemplateNewClusterStackFailed,
    /// `ClusterAddonConfigValidated`: clusteraddon.yaml is wrong.
    ParsingClusterAddonConfigFailed,
    /// `ClusterAddonConfigValidated`, `True`: clusteraddon.yaml lists no stage that is ever run, or some that never are.
    StagesNotUsed,
    /// `ClusterAddonConfigValidated`, `True`: values get the Cluster in another version than clusteraddon.yaml names.
    ClusterVersionNotServed,
    /// `HelmChartApplied`: the API server refused objects, or they could not be rendered.
    FailedToApplyObjects,
    /// `HelmChartApplied`: objects are being applied.
    ObjectsApplyingOngoing,
    /// `HookServerReady`: the hook has not been called.
    HookServerUnresponsive,
    /// `HelmChartDeleted`: objects could not be deleted.
    FailedToDeleteObjects,
    /// `ProviderClusterStackReleasesSynced`: `spec.providerRef` names no object.
    ProviderTemplateNotFound,
    /// `ProviderClusterStackReleasesSynced`, `ClusterStackReleasesSynced`: a write failed.
    FailedToCreateOrUpdate,
    /// `ClusterStackReleaseDownloaded`: the download goes on or waits.
    ReleaseAssetsNotDownloadedYet,
    /// `ClusterStackReleaseDownloaded`: the files are there but wrong.
    IssueWithReleaseAssets,
    /// `ProviderClusterStackReleaseReady`: the provider is at work.
    ProcessOngoing,
    /// `AssetsClientAPIAvailable`: the configuration or credentials of the source cannot be used.
    FailedCreateAssetsClient,
    /// `ReleasesSynced`: the source could not be listed.
    FailedToSync,

    // Ours, of add-ons.
    /// The cluster is not as far as what comes next needs it.
    WaitingForCluster,
    /// The kubeconfig of the cluster asks for what we do not do.
    KubeconfigRefused,
    /// What a stage waits for cannot be meant of what the API server of the cluster serves.
    ConditionInvalid,
    /// A stage takes longer than the release gives it.
    StageDeadlineExceeded,
    /// The release of the class cannot be used yet.
    ReleaseNotReady,
    /// The Cluster has another Kubernetes version than its class is for.
    VersionMismatch,
    /// What charts drew at random is gone, or is another than it was.
    MemoLost,
    /// The values change all the time without anybody having changed the Cluster.
    RenderingUnstable,

    // Ours.
    /// Another `ClusterStack` claims the same release.
    ReleaseOwnedByOtherStack,
    /// Somebody keeps undoing our changes; we have stopped.
    Contested,
    /// The API server does not know a kind that the release needs; ends by itself when the CRD appears.
    KindNotFound,
    /// A release cannot be used because of its files.
    BrokenRelease,
    /// A version that is asked for is not at the source.
    ReleaseNotFound,
    /// The newest release that the source shows is older than one that came from there.
    VersionWentBackwards,
    /// The source does not answer.
    SourceUnavailable,
    /// A tag no longer means the bytes it was pinned to.
    DigestChanged,
    /// A signature is missing or wrong, or could not be checked.
    VerificationFailed,
    /// A field of the spec cannot be used; only an edit helps.
    InvalidSpec,
    /// Live objects differ from the release, and the policy is not to correct them.
    Drifted,
    /// An object is in the form of a newer release of the stack.
    InNewerForm,
    /// Another field manager owns fields of an object that is not ours.
    FieldConflict,
    /// The object belongs to another owner.
    ForeignOwner,
    /// A change cannot be made in place; somebody must delete the object.
    RecreateNeeded,
    /// Applied objects are not healthy yet.
    ObjectsNotHealthy,
    /// More objects would be deleted than `pruneLimit` allows without an approval.
    PruneNotApproved,
    /// Clusters use the release, so it stays.
    InUse,
    /// The object is being deleted.
    Deleting,
    /// A file of the release cannot be rendered.
    RenderFailed,
    /// Work is being done.
    Progressing,
    /// The object waits for something outside.
    Waiting,
    /// `spec.suspend` is set.
    Suspended,
    /// The annotation `cluster.x-k8s.io/paused` is set.
    Paused,
    /// Nothing has been found out yet.
    NotObservedYet,

    // Words of the Go provider for OpenStack, by the type of condition they belong to.
    /// `CloudAvailable`: the Secret does not say which cloud.
    CloudNotSet,
    /// `CloudAvailable`: the Secret is not there.
    SecretNotFound,
    /// `OpenStackImageServiceClientAvailable`: the image service cannot be reached.
    OpenStackImageServiceClientNotSet,
    /// `OpenStackImageImportStarted`: nothing was sent yet.
    OpenStackImageImportNotStartReason,
    /// `OpenStackImageActive`: the cloud has no record of the image.
    OpenStackImageNotCreateYet,
    /// `OpenStackImageActive`: the cloud has a record, and not the whole image.
    OpenStackImageNotImportedYet,
    /// `OpenStackImageActive`: taking the image in took too long.
    OpenStackImageImportTimeOutReason,
    /// `OpenStackImageActive`: something is wrong with the image.
    IssueWithOpenStackImage,

    // Ours, of node images.
    /// The cloud does not answer.
    CloudUnavailable,
    /// The cloud does not accept the credentials.
    CredentialsRejected,
    /// The cloud does not permit what is needed.
    PermissionDenied,
    /// The project may not have so much.
    QuotaExceeded,
    /// The cloud asks for patience.
    Throttled,
    /// The cloud refuses the image as it is asked for.
    ImageRefused,
    /// The cloud cannot do what is asked for.
    Unsupported,
    /// The bytes are not where they should be.
    SourceNotFound,
    /// The source broke off too often.
    SourceBroken,
    /// The bytes have another digest than they must.
    SourceMismatch,
    /// What the source sends is no image.
    SourceNotAnImage,
    /// The source has other bytes than when the transfer began.
    SourceChanged,
    /// The file of digests does not have the image.
    DigestUnknown,
    /// Other transfers to the cloud come first.
    TransferQueued,
    /// Bytes are being sent.
    Transferring,
    /// No byte moved for too long.
    TransferStalled,
    /// The cloud takes the image in by itself.
    Importing,
    /// The cloud could not take the image in.
    ImportFailed,
    /// The image is being built.
    Building,
    /// The image could not be built.
    BuildFailed,
    /// The program of a Job that sends the image needs more memory than it may have.
    OutOfMemory,
    /// What is sent cannot be noted in status.
    SealNotKept,
    /// The image is being compared with what it must be.
    Verifying,
    /// The cloud tells nothing that the image could be compared by.
    Unverifiable,
    /// The cloud has other bytes than were sent.
    ImageMismatch,
    /// The project has an image of the name that is not ours.
    ImageNameTaken,
    /// Several images could be meant.
    ImageAmbiguous,
    /// The image that is to be adopted is not there.
    ImageNotFound,
    /// Somebody deactivated the image.
    ImageDeactivated,
    /// The image was there and is gone.
    ImageGone,
    /// The cloud does not delete the image while it is used.
    ImageInUse,
    /// Options of the image are otherwise in the cloud.
    ImageDiffers,
    /// Two releases have other bytes under the same version of the image.
    NodeImageDiffers,
    /// The work needs a Job, and there are none.
    JobsUnavailable,
    /// Nothing says what the bytes must be; the cloud has what was sent.
    TransferOnly,
}

impl Reason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
