//! Which images a release asks for: from the source of the release that made the object, pinned to the digest that was noted on it; without that, from the
//! source that the operator was started with, pinned to what was read first. Asks the API server for the release, and never waits for a source.

use crds::cluster_stack_release::ReleaseAssets;
use crds::names::ReleaseTag;
use crds::{ClusterStackRelease, labels};
use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt};
use operator_kit::failure::words_of;
use planning::node_image::{Files, entries};
use release::Digest;

use crate::context::{Context, Served};
use crate::image_files::pinned;
use crate::kinds::spec_of;
use crate::supply::{Hindrance, Opened, Supplied, Why};

/// What is known of the files of a release now.
pub(super) async fn files(context: &Context, served: &Served, release: &DynamicObject) -> Files {
    let tag: ReleaseTag = match release.name_any().parse() {
        Ok(tag) => tag,
        Err(error) => {
            return Files::Broken {
                message: format!("the object is not named like a release: {error}"),
            };
        }
    };
    let digest = pinned(release);
    if digest.is_none() && release.annotations().contains_key(labels::DIGEST) {
        return Files::Unusable {
            message: format!(
                "the annotation {} is no digest of a release; correct it",
                labels::DIGEST
            ),
        };
    }
    let namespace = release.namespace().unwrap_or_default();
    if let Some(supplied) = digest.and_then(|digest| context.supply.find(&namespace, &tag, digest)) {
        return ready(served, release, &tag, &supplied);
    }
    let source = match maker(&context.client, release, &namespace).await {
        Ok(maker) => maker.and_then(|maker| maker.spec.source),
        Err(message) => return Files::Unavailable { message, outage: None },
    };
    match context.supply.open(source.as_ref(), &namespace, &tag, digest) {
        Opened::Coming => Files::NotRead,
        Opened::Ready(supplied) => ready(served, release, &tag, &supplied),
        Opened::Hindered(hindrance) => hindered(hindrance, digest),
    }
}

/// The release that made the object; `None` where nobody did, as with the provider alone.
async fn maker(
    client: &Client,
    release: &DynamicObject,
    namespace: &str,
) -> Result<Option<ClusterStackRelease>, String> {
    let owners = release.owner_references();
    let is_maker = |owner: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference| {
        let group = owner.api_version.split('/').next();
        owner.controller == Some(true) && owner.kind == "ClusterStackRelease" && group == Some(crds::GROUP)
    };
    let Some(owner) = owners.iter().find(is_maker) else {
        return Ok(None);
    };
    let api: Api<ClusterStackRelease> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(&owner.name).await.map_err(|error| words_of(&error))?;
    // Another one of the name has made others.
    Ok(found.filter(|found| found.uid().as_deref() == Some(owner.uid.as_str())))
}

fn ready(served: &Served, release: &DynamicObject, tag: &ReleaseTag, supplied: &Supplied) -> Files {
    let files = supplied.files.release();
    let (provider, spec) = (served.kind.provider(), spec_of(release));
    match entries(provider, &spec, supplied.images.as_ref(), tag, &files.metadata) {
        Ok(images) => Files::Ready {
            images,
            assets: ReleaseAssets {
                digest: files.digest.to_string(),
                size: i64::try_from(files.size()).ok(),
                source: supplied.source.clone(),
                verified_by: None,
            },
        },
        Err(error) => Files::Broken {
            message: operator_kit::failure::chain(&error),
        },
    }
}

fn hindered(hindrance: Hindrance, pinned: Option<Digest>) -> Files {
    let Hindrance { why, message, outage } = hindrance;
    match why {
        Why::Unusable => Files::Unusable { message },
        Why::Unavailable => Files::Unavailable { message, outage },
        Why::Missing => Files::Missing { message },
        Why::Broken => Files::Broken { message },
        Why::Differs(found) => Files::DigestDiffers {
            pinned: pinned.map(|digest| digest.to_string()).unwrap_or_default(),
            found: found.to_string(),
        },
    }
}
