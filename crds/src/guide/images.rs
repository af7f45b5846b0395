//! The words of node images: conditions, reasons and events of the objects by which providers bring them.
//!
//! They stand apart from the others because another operator writes them.

use super::Entry;
use crate::{
    conditions::{ConditionType, Reason},
    events::Happening,
};

/// Types of conditions on objects of providers, besides those that every object has.
pub const IMAGE_CONDITIONS: &[Entry<ConditionType>] = &[
    Entry {
        word: ConditionType::ClusterStackReleaseAssetsReady,
        means: "On a provider's release objects. The provider has the files of the release, and they are those that it is pinned to.",
        reader: "While it is `False`, see that the operator of the provider can reach the source, and mend the release there.",
        operator: "Looks again when the release, its source or its digest is another, and after a while.",
    },
    Entry {
        word: ConditionType::OpenStackNodeImageReleasesReady,
        means: "On release objects for OpenStack. All images of the release are in the cloud and can be used.",
        reader: "While it is `False`, look at the image that the message names.",
        operator: "Watches the objects of the images, and makes those that are missing.",
    },
    Entry {
        word: ConditionType::NodeImageReleasesReady,
        means: "The same, with other providers.",
        reader: "The same as for [`OpenStackNodeImageReleasesReady`](#condition-openstacknodeimagereleasesready).",
        operator: "The same.",
    },
    Entry {
        word: ConditionType::CloudAvailable,
        means: "On image objects. The cloud answers, and lets us in. `True` with a reason: it does not just now, and the image was ready before; \
                an outage makes no image bad.",
        reader: "While it is `False`, go by the reason: the Secret, the rights of the project, or the cloud.",
        operator: "Asks again ever later, at most five minutes apart; at once when the Secret is another.",
    },
    Entry {
        word: ConditionType::OpenStackImageServiceClientAvailable,
        means: "On image objects for OpenStack. The image service answers. Says the same as `CloudAvailable`, in the word of the Go provider.",
        reader: "Go by `CloudAvailable`.",
        operator: "The same as for `CloudAvailable`.",
    },
    Entry {
        word: ConditionType::OpenStackImageImportStarted,
        means: "On image objects for OpenStack. The cloud has a record of the image that is more than empty.",
        reader: "Nothing; `ImageTransferred` says more.",
        operator: "Goes on.",
    },
    Entry {
        word: ConditionType::OpenStackImageActive,
        means: "On image objects for OpenStack. The cloud says that it has the whole image. Whether the image is the right one, `Verified` says.",
        reader: "While it is `False`, wait, or go by the reason.",
        operator: "Goes on; what failed is thrown away and begun again.",
    },
    Entry {
        word: ConditionType::SourceAvailable,
        means: "On image objects. The bytes of the image can be had. `True` beside an image that is whole: they were.",
        reader: "While it is `False`, publish the file, or correct `spec.image`.",
        operator: "Asks again, ever later; after three times that the file is not there within ten minutes only when something has changed.",
    },
    Entry {
        word: ConditionType::ImageTransferred,
        means: "On image objects. The bytes of the image are in the cloud.",
        reader: "While it is `False`, wait: `status.transfer` says how far it is. Or go by the reason.",
        operator: "Goes on; a source that breaks off is read on where it was.",
    },
    Entry {
        word: ConditionType::Verified,
        means: "On image objects. The bytes in the cloud are what they must be: those of the digest, or those that were sent. Nothing of ours is ready unverified; of an image of somebody else that was asked for, `Unknown` says that it was not compared.",
        reader: "While it is `False`, go by the reason.",
        operator: "Compares before the image is shown to anybody, and whenever it looks at the cloud.",
    },
];

/// Reasons of these conditions, and of `Stalled` and `Reconciling` on objects of providers: what is the matter with the cloud, with the source, with
/// the way between them, with the image.
pub const IMAGE_REASONS: &[Entry<Reason>] = &[
    // The cloud.
    Entry {
        word: Reason::CloudNotSet,
        means: "The Secret does not say which cloud: it has no `clouds.yaml`, or one that cannot be used, or none of that name in it.",
        reader: "Correct the Secret; the message says which key.",
        operator: "Goes on when the Secret is another.",
    },
    Entry {
        word: Reason::SecretNotFound,
        means: "The Secret that `spec.identityRef` names is not in the namespace of the object.",
        reader: "Create it there, or correct the reference.",
        operator: "Looks for it three times a minute.",
    },
    Entry {
        word: Reason::OpenStackImageServiceClientNotSet,
        means: "The cloud has no image service for the region and interface of the Secret, or it cannot be reached.",
        reader: "Go by the reason of `CloudAvailable`.",
        operator: "The same as for `CloudAvailable`.",
    },
    Entry {
        word: Reason::CloudUnavailable,
        means: "The cloud does not answer, or only that it cannot; the message says since when, and when it is asked next.",
        reader: "See that the operator can reach the cloud.",
        operator: "Asks again after a second, then ever later, at most five minutes apart. Images that were ready stay so.",
    },
    Entry {
        word: Reason::CredentialsRejected,
        means: "The cloud does not accept the credentials of the Secret, or the Secret is of a type that is for something else.",
        reader: "Put credentials into the Secret that are good; one of another type has to be made anew, without a type.",
        operator: "Goes on at once when the Secret is another, else tries again every four to five minutes.",
    },
    Entry {
        word: Reason::PermissionDenied,
        means: "The cloud lets us in, and does not permit what is needed, such as images that are public; or the API server does not let the operator read the Secret.",
        reader: "Give the project or user that right, or ask for less: the message says what was refused. For a Secret it names the role that is missing.",
        operator: "Tries again every half hour; at once when the object or its Secret is another, or can be read.",
    },
    Entry {
        word: Reason::QuotaExceeded,
        means: "The project may not have so much; the message has the limit, what is used, and what is needed. One without a limit is of something before the cloud, which takes no body so long.",
        reader: "Delete images that nobody needs, or have the limit raised.",
        operator: "Tries again every four to five minutes; what met it three times while its bytes were sent, every half hour, and at once with another `clusterstack.x-k8s.io/requestedAt`.",
    },
    Entry {
        word: Reason::Throttled,
        means: "The cloud asks for patience.",
        reader: "Nothing.",
        operator: "Leaves the cloud alone as long as it asks for, at most an hour.",
    },
    Entry {
        word: Reason::ImageRefused,
        means: "The cloud refuses the image as it is asked for: an option or a format that it does not take.",
        reader: "Correct what the message names, in the release or in `spec.image`.",
        operator: "Tries nothing more until something of it is another.",
    },
    Entry {
        word: Reason::Unsupported,
        means: "The cloud cannot do what is asked for at all, such as keeping images as large as this one.",
        reader: "Ask for what it can do, or use another cloud; the message says what it is.",
        operator: "Tries nothing more until something of it is another.",
    },
    // The source.
    Entry {
        word: Reason::SourceNotFound,
        means: "There is nothing where the image should be.",
        reader: "Publish the file, or correct its URL.",
        operator: "Looks three times within ten minutes, because a release may be there before its images; then it waits for a change.",
    },
    Entry {
        word: Reason::SourceBroken,
        means: "The source breaks off again and again without a byte in between.",
        reader: "Look at the source, or put the image elsewhere.",
        operator: "Begins again after ten seconds, then ever later, at most five minutes apart.",
    },
    Entry {
        word: Reason::SourceMismatch,
        means: "The bytes have another digest than they must; the message has both.",
        reader: "Find out which of the two is right. Then publish the right file, or the right digest.",
        operator: "Fetches them once more, and if they are still others, nothing until something changes. Nothing of them was shown in the cloud.",
    },
    Entry {
        word: Reason::SourceNotAnImage,
        means: "What the source sends is something else, such as a web page, or is of another format than was promised.",
        reader: "Correct the URL or the format; a URL that needs a login often answers with a page.",
        operator: "Sends nothing of it, and waits for a change.",
    },
    Entry {
        word: Reason::SourceChanged,
        means: "The file at the source was replaced while it was read.",
        reader: "Nothing; give a file that changes a new name each time.",
        operator: "Begins anew after ten seconds, then ever later.",
    },
    Entry {
        word: Reason::DigestUnknown,
        means: "The file of digests that `spec.image.sums` names does not have the image, or has two digests for it.",
        reader: "Correct the file, or `spec.image.sums.name`.",
        operator: "Sends nothing, and waits for a change.",
    },
    // The way between them.
    Entry {
        word: Reason::TransferQueued,
        means: "Other transfers to the same cloud come first; the message says how many.",
        reader: "Wait.",
        operator: "Begins when it is its turn; namespaces take turns.",
    },
    Entry {
        word: Reason::Transferring,
        means: "The bytes are being sent.",
        reader: "Wait; `status.transfer` says how far it is.",
        operator: "Goes on.",
    },
    Entry {
        word: Reason::TransferStalled,
        means: "No byte moved for a minute, or sending came to nothing more than three times in a row; the message says what happened last.",
        reader: "Nothing, unless it comes again and again: then do what the message says, or look at the network between source, operator and cloud.",
        operator: "Breaks it off and begins anew, ever later and at most five minutes apart.",
    },
    Entry {
        word: Reason::OpenStackImageImportNotStartReason,
        means: "Nothing was sent yet.",
        reader: "Wait, or go by the other conditions.",
        operator: "Begins when the cloud, the source and its turn allow it.",
    },
    Entry {
        word: Reason::OpenStackImageNotCreateYet,
        means: "The cloud has no record of the image.",
        reader: "Wait, or go by the other conditions.",
        operator: "Makes one.",
    },
    Entry {
        word: Reason::OpenStackImageNotImportedYet,
        means: "The cloud has a record of the image, and not all of its bytes.",
        reader: "Wait.",
        operator: "Goes on, with a deadline.",
    },
    Entry {
        word: Reason::OpenStackImageImportTimeOutReason,
        means: "The cloud took too long to take the image in.",
        reader: "Nothing; if it comes again, set `spec.transfer.via: Upload`.",
        operator: "Throws the record away and begins anew; after the second time it uploads.",
    },
    Entry {
        word: Reason::Importing,
        means: "The cloud takes the image in by itself.",
        reader: "Wait.",
        operator: "Looks how far it is, until a deadline that depends on the size.",
    },
    Entry {
        word: Reason::ImportFailed,
        means: "The cloud could not take the image in; it seldom says why.",
        reader: "Nothing; if it comes again, see that the cloud can reach the URL.",
        operator: "Throws the record away and begins anew; after the second time it uploads.",
    },
    Entry {
        word: Reason::Building,
        means: "The image is being built.",
        reader: "Wait; the command in `status.execution.logs` shows how it goes.",
        operator: "Waits until the deadline of the build, then transfers what it left.",
    },
    Entry {
        word: Reason::BuildFailed,
        means: "The image could not be built; the message has how it ended and the last lines.",
        reader: "Mend the build; `status.execution.logs` has the command for the rest.",
        operator: "Tries twice more, then waits for a change.",
    },
    Entry {
        word: Reason::OutOfMemory,
        means: "The program of the Job that sends the image was killed, because it needs more memory than it may have.",
        reader: "Raise `spec.job.resources`.",
        operator: "Tries twice more, then waits for a change.",
    },
    Entry {
        word: Reason::SealNotKept,
        means: "What was sent could not be noted in the status of the image, so that its last bytes were kept back; the message says why.",
        reader: "See that the CRDs are those of this version, that whoever sends may write the status, and that the API server can be reached from there.",
        operator: "Tries twice more, then waits for a change. Nothing is ready of which nobody could tell what was sent.",
    },
    Entry {
        word: Reason::JobsUnavailable,
        means: "The work needs a Job, and the operator was started without them, or has not the rights.",
        reader: "Start it with `--jobs`, or set `spec.execution` to another word.",
        operator: "Does nothing for the image until that is so.",
    },
    // The image.
    Entry {
        word: Reason::Verifying,
        means: "The image is being compared with what it must be.",
        reader: "Wait.",
        operator: "Shows it when it is right.",
    },
    Entry {
        word: Reason::TransferOnly,
        means: "`True`: only the way to the cloud could be checked. Nothing says what the bytes must be, or the cloud has converted them; the message has which.",
        reader: "Give the release a digest of the image; a cloud that converts is not asked with `spec.transfer.via: Upload`.",
        operator: "Remembers what was sent, and takes no other bytes for the same image.",
    },
    Entry {
        word: Reason::Unverifiable,
        means: "The image cannot be compared. `False`: the cloud neither tells a digest that can be compared nor gives the image back. `Unknown`: the image is somebody else's and was asked for, and no digest says what it must be, or none of the kind that the cloud tells.",
        reader: "`False`: set `spec.transfer.via: Upload`, or allow the project to read its images. `Unknown`: to know more than who put it there, give the `sha512:` of the image itself as `digest`.",
        operator: "`False`: throws the record away and uploads; if that tells nothing either, it waits for a change. Nothing of ours is ready unverified. `Unknown`: uses the image, as it was told to.",
    },
    Entry {
        word: Reason::ImageMismatch,
        means: "The cloud has other bytes than were sent, or than it had.",
        reader: "Find out who or what changes images in the cloud.",
        operator: "Throws the image away and begins anew; the second time it waits for a change.",
    },
    Entry {
        word: Reason::IssueWithOpenStackImage,
        means: "Something is wrong with the image in the cloud; the message says what.",
        reader: "Go by the reason of `Verified` and `ImageTransferred`.",
        operator: "The same as for these.",
    },
    Entry {
        word: Reason::ImageNameTaken,
        means: "The project has an image of that name that is not ours; a second one would make the name ambiguous for every Cluster.",
        reader: "Use it by the annotation `clusterstack.x-k8s.io/adopt-image` with its id or by `spec.policy: Adopt`, or delete it, or rename it.",
        operator: "Makes nothing and takes nothing until then.",
    },
    Entry {
        word: Reason::ImageAmbiguous,
        means: "Several images of that name could be adopted; the message has their ids.",
        reader: "Say which by the annotation `clusterstack.x-k8s.io/adopt-image`.",
        operator: "Takes none of them.",
    },
    Entry {
        word: Reason::ImageNotFound,
        means: "The image that is to be adopted is not there.",
        reader: "Put it there, or set `spec.policy: Create`.",
        operator: "Looks every minute.",
    },
    Entry {
        word: Reason::ImageDeactivated,
        means: "Somebody deactivated the image in the cloud, so that no machine can be made of it.",
        reader: "Find out why. Then reactivate it, or publish another one.",
        operator: "Does not touch it, looks every half minute, and is ready again when it is active.",
    },
    Entry {
        word: Reason::ImageGone,
        means: "The image was there and is gone.",
        reader: "Nothing, or find out who deleted it.",
        operator: "Brings it again.",
    },
    Entry {
        word: Reason::ImageInUse,
        means: "The image is to go, and the cloud does not delete it while something is made of it.",
        reader: "Nothing, or delete what the message names.",
        operator: "Tries again every hour.",
    },
    Entry {
        word: Reason::ImageDiffers,
        means: "`True`: options of the image are otherwise in the cloud than in `spec.image`, and stay so.",
        reader: "Find out who else writes them, or ask for what the cloud has.",
        operator: "Writes them again after ten minutes. The image stays ready.",
    },
    Entry {
        word: Reason::NodeImageDiffers,
        means: "Two releases have the same version of an image, and other bytes or another URL for it.",
        reader: "Publish the later release with a new version of its images.",
        operator: "Keeps the image of the release that was there first, and does not make the other ready.",
    },
];

/// What events tell on objects of providers besides conditions.
pub const IMAGE_HAPPENINGS: &[Entry<Happening>] = &[
    Entry {
        word: Happening::ImageCreated,
        means: "On an image object. A record of the image was made in the cloud; the message has its id.",
        reader: "Nothing.",
        operator: "Sends the bytes.",
    },
    Entry {
        word: Happening::ImageVerified,
        means: "On an image object. The image is in the cloud, and is what it must be.",
        reader: "Nothing.",
        operator: "Shows it, and looks every ten minutes whether that is still so.",
    },
    Entry {
        word: Happening::ImageDiscarded,
        means: "On an image object. An image of ours, or the record of an attempt that failed, was deleted from the cloud; the message says why.",
        reader: "Nothing.",
        operator: "Goes on with the next attempt, if the image is still wanted.",
    },
    Entry {
        word: Happening::ImageAdopted,
        means: "On an image object. An image is used that somebody else put into the cloud, as was asked for.",
        reader: "Nothing.",
        operator: "Neither changes nor deletes it.",
    },
    Entry {
        word: Happening::ImageLeftBehind,
        means: "On an image object that goes. The cloud could not be reached for too long, or another installation works on the images, because the \
                object exists there as well; so the object went without its images. The message has their ids.",
        reader: "Delete them in the cloud, unless an object is for them again.",
        operator: "Reports them as orphans when it reaches the cloud with the same credentials again, but for those that another installation \
                   works on.",
    },
    Entry {
        word: Happening::OrphanFound,
        means: "On an image object of the same cloud. The cloud has an image of ours that no object is for.",
        reader: "Delete it there, unless you know what it is for.",
        operator: "Deletes it when it was never verified and stays an orphan; a verified one only when it was told to.",
    },
    Entry {
        word: Happening::OrphanDeleted,
        means: "On an image object of the same cloud. Such an image was deleted.",
        reader: "Nothing.",
        operator: "Forgets it.",
    },
];
