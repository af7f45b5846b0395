//! What an image object asks for, as decisions and providers see it. Made of the object alone, so that the same object always asks for the same. Decides
//! nothing.

use crds::labels;
use crds::providers::image_options as options;
use crds::providers::image_status::NodeImageStatus;
use kube::ResourceExt;
use kube::api::DynamicObject;
use planning::image::{DeletionPolicy, Execution, ImagePolicy, KeyParts, Pinned, Via, Wanted, content_key};
use provider_plugin::{Compression, ContentKey, ImageId, ImageSpec, OwnerId, Reach, Subject};
use serde_json::json;

use super::memory::Basis;
use crate::image_files::is_known;
use crate::kinds::{ImageWish, Kind, Told, spec_of};
use crate::source::is_in_registry;
use crate::worker::ContentSpec;

/// Everything that an object asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) wanted: Wanted,
    /// Under which owner its images are marked, also where the spec cannot be read: the one that they were made with, else the one that is noted.
    pub(super) owner: OwnerId,
    /// What the provider is told; `None` when the spec cannot be read.
    pub(super) image: Option<ImageSpec>,
    pub(super) content: ContentSpec,
}

/// What is known beside the object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<'a> {
    /// Under which name the images of this installation are marked, where the object says no other.
    pub(super) owner: &'a OwnerId,
    /// Which version of the Secret there is.
    pub(super) identity: Option<&'a str>,
    /// Whether objects may go though their images are in use.
    pub(super) force_finalize: bool,
}

/// Reads an object. `wish` is its spec, or what is wrong with it; `check` is what its provider finds wrong with the image.
pub(super) fn asked(
    kind: &Kind,
    object: &DynamicObject,
    wish: Result<&ImageWish, String>,
    status: &NodeImageStatus,
    beside: Beside<'_>,
    check: impl FnOnce(&ImageSpec) -> Result<(), String>,
) -> Asked {
    let noted = annotation(object, labels::IMAGE_OWNER).and_then(|owner| OwnerId::parse(&owner));
    let marked = status.owner.as_deref().and_then(OwnerId::parse);
    // What is in the cloud carries the owner that it was made with, whatever somebody wrote since: under another it would be nobody's.
    let is_noted = noted.is_some() && (marked.is_none() || marked == noted);
    let owner = marked.or(noted).unwrap_or_else(|| beside.owner.clone());
    let mut wanted = Wanted {
        made_by_others: !kind.makes_images,
        ..of_metadata(object, status, beside, is_noted)
    };
    let wish = match wish {
        Ok(wish) => wish,
        Err(words) => {
            wanted.invalid = Some(words);
            return Asked {
                wanted,
                owner,
                image: None,
                content: ContentSpec::default(),
            };
        }
    };
    let told = kind.told(wish);
    let parts = key_parts(kind, object, wish, &told);
    let key = content_key(&parts);
    let image = image(object, wish, status, owner.clone(), &key, told);
    wanted.key = key;
    of_spec(&mut wanted, wish, image.as_ref());
    let refusal = refusal(object, wish);
    let refused = image.as_ref().map(|image| refusal.map_or_else(|| check(image), Err));
    if let Some(Err(words)) = refused {
        wanted.invalid = Some(words);
    }
    let content = content(wish, status, &wanted.key);
    Asked {
        wanted,
        owner,
        image,
        content,
    }
}

/// What was seen holds for these.
pub(super) fn basis(wanted: &Wanted) -> Basis {
    Basis {
        key: wanted.key.clone(),
        generation: wanted.generation,
        identity: wanted.identity.clone(),
        request: wanted.request.clone(),
        adopt: wanted.adopt.clone(),
        goes: wanted.deleting.is_some(),
    }
}

fn annotation(object: &DynamicObject, name: &str) -> Option<String> {
    object
        .annotations()
        .get(name)
        .filter(|value| !value.is_empty())
        .cloned()
}

/// What the metadata say.
fn of_metadata(object: &DynamicObject, status: &NodeImageStatus, beside: Beside<'_>, owner_noted: bool) -> Wanted {
    let has_finalizer = |finalizer: &String| finalizer == labels::NODE_IMAGE_FINALIZER;
    Wanted {
        // Until the spec says another one; so nothing is forgotten because nobody can read it.
        key: status.content_key.clone().unwrap_or_default(),
        name: String::new(),
        generation: object.metadata.generation.unwrap_or_default(),
        identity: beside.identity.map(str::to_owned),
        request: annotation(object, labels::REQUESTED_AT),
        policy: ImagePolicy::default(),
        made_by_others: false,
        adopt: annotation(object, labels::ADOPT_IMAGE),
        chosen_id: None,
        deletion: DeletionPolicy::default(),
        via: Via::default(),
        fetchable: false,
        build: None,
        digest: None,
        compressed: false,
        format: None,
        execution: Execution::default(),
        invalid: None,
        paused: object.annotations().contains_key(labels::PAUSED),
        moved: object.annotations().contains_key(labels::DELETE_FOR_MOVE),
        deleting: object.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        finalizer: object.finalizers().iter().any(has_finalizer),
        owner_noted,
        force_finalize: beside.force_finalize,
    }
}

/// What the spec says.
fn of_spec(wanted: &mut Wanted, wish: &ImageWish, image: Option<&ImageSpec>) {
    let content = wish.content();
    let wishes = wish.wishes();
    let transfer = wishes.transfer.clone().unwrap_or_default();
    wish.name().clone_into(&mut wanted.name);
    wanted.chosen_id = image.and_then(|image| image.chosen_id.clone()).map(|id| id.0);
    wanted.policy = wishes.policy;
    wanted.deletion = wishes.deletion_policy.unwrap_or_default();
    wanted.via = transfer.via;
    wanted.execution = wishes.execution;
    let has_secrets = content.ca_secret_ref.is_some() || content.credentials_secret_ref.is_some();
    wanted.fetchable = is_on_the_web(wish.url()) && !has_secrets;
    wanted.build = content.build.as_ref().map(options::Build::deadline);
    wanted.digest = content.digest.as_deref().and_then(Pinned::parse);
    wanted.compressed = is_compressed(&content, wish.url());
    wanted.format = image.and_then(|image| image.format.as_ref()).map(ToString::to_string);
}

/// What nobody but whoever wrote the object can put right, and the API server does not refuse in older objects.
fn refusal(object: &DynamicObject, wish: &ImageWish) -> Option<String> {
    let spec = spec_of(object);
    let kind = spec.pointer("/identityRef/kind").and_then(serde_json::Value::as_str);
    if let Some(kind) = kind.filter(|kind| *kind != "Secret") {
        return Some(format!(
            "spec.identityRef names a {kind}; only a Secret of this namespace can be used"
        ));
    }
    let url = wish.url();
    if !url.is_empty() && !is_known(url) {
        let words =
            "spec.image.url has an address of another kind; it must begin with https://, http://, oci:// or release:";
        return Some(words.to_owned());
    }
    (wish.wishes().execution == Execution::Job)
        .then(|| of_job(wish))
        .flatten()
}

/// What only the operator itself can read.
fn of_job(wish: &ImageWish) -> Option<String> {
    let (url, content) = (wish.url(), wish.content());
    if !url.is_empty() && !is_fetched(url) {
        return Some("a Job has no files of releases; set execution to Auto or InProcess".to_owned());
    }
    let has_secrets = content.ca_secret_ref.is_some() || content.credentials_secret_ref.is_some();
    has_secrets.then(|| {
        "a Job is given the Secret of the cloud and no other; leave caSecretRef and credentialsSecretRef out, or set execution to Auto or InProcess"
            .to_owned()
    })
}

fn key_parts(kind: &Kind, object: &DynamicObject, wish: &ImageWish, told: &Told) -> KeyParts {
    let content = wish.content();
    let sums = content.sums.as_ref();
    let of_sums = sums.map(|sums| format!("{} {}", sums.url, sums.name.as_deref().unwrap_or_default()));
    let transfer = wish.wishes().transfer.clone().unwrap_or_default();
    KeyParts {
        provider: kind.name(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        url: wish.url().to_owned(),
        build: content.build.as_ref().map(|build| json!(build).to_string()),
        digest: content.digest.clone().or(of_sums),
        compression: content.compression.unwrap_or_default().to_string(),
        image_name: wish.name().to_owned(),
        format: told.format.as_ref().map(ToString::to_string),
        container_format: told.container_format.clone(),
        stores: transfer.stores,
    }
}

fn image(
    object: &DynamicObject,
    wish: &ImageWish,
    status: &NodeImageStatus,
    owner: OwnerId,
    key: &str,
    told: Told,
) -> Option<ImageSpec> {
    let content = wish.content();
    let transfer = wish.wishes().transfer.clone().unwrap_or_default();
    let Told {
        options,
        format,
        container_format: _,
        chosen_id,
    } = told;
    Some(ImageSpec {
        subject: Subject {
            owner,
            object: format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any()),
            key: ContentKey::parse(key)?,
            name: wish.name().to_owned(),
            recorded: status.image.as_ref().map(|image| ImageId(image.id.clone())),
            made: None,
            attempt: None,
            adopt: annotation(object, labels::ADOPT_IMAGE).map(ImageId),
            // Whoever looks says so.
            look_for_others: true,
            reach: Reach::default(),
            only_recorded: false,
        },
        options,
        format,
        source_digest: pinned(&content),
        chosen_id,
        stores: transfer.stores,
    })
}

fn content(wish: &ImageWish, status: &NodeImageStatus, key: &str) -> ContentSpec {
    let content = wish.content();
    let is_same = status.content_key.as_deref() == Some(key);
    // Two builds of the same need not give the same bytes.
    let is_trusted = is_same && content.build.is_none();
    let image = status.image.as_ref().filter(|image| is_trusted && !image.adopted);
    let remembered = image.and_then(|image| image.source_digest.as_deref());
    let via = wish.wishes().transfer.clone().unwrap_or_default().via;
    ContentSpec {
        url: if is_fetched(wish.url()) {
            wish.url().to_owned()
        } else {
            String::new()
        },
        pinned: pinned(&content),
        remembered: remembered.and_then(|digest| provider_plugin::Pinned::parse(digest).ok()),
        compression: match content.compression.unwrap_or_default() {
            options::Compression::Auto => Compression::Auto,
            options::Compression::None => Compression::None,
            options::Compression::Gzip => Compression::Gzip,
            options::Compression::Xz => Compression::Xz,
            options::Compression::Bzip2 => Compression::Bzip2,
            options::Compression::Zstd => Compression::Zstd,
        },
        is_fetched: via == Via::ServerSide,
    }
}

fn pinned(content: &options::ImageContent) -> Option<provider_plugin::Pinned> {
    let digest = content.digest.as_deref()?;
    // The API server takes no other.
    provider_plugin::Pinned::parse(digest).ok()
}

/// Whether whoever knows the address and has a network can read the file.
fn is_fetched(url: &str) -> bool {
    is_on_the_web(url) || is_in_registry(url)
}

/// Whether a cloud could fetch it.
fn is_on_the_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Whether the bytes at the source are not those that are sent; of what is found out on the way, its name says it.
fn is_compressed(content: &options::ImageContent, url: &str) -> bool {
    match content.compression.unwrap_or_default() {
        options::Compression::None => false,
        options::Compression::Auto => {
            let name = if is_in_registry(url) {
                url
            } else {
                url.split(['?', '#']).next().unwrap_or_default()
            };
            [".gz", ".xz", ".bz2", ".zst"].iter().any(|end| name.ends_with(end))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crds::providers::Provider;
    use serde_json::Value;

    use super::*;

    fn object(spec: &Value, annotations: &[(&str, &str)]) -> DynamicObject {
        let kind = Kind::of(Provider::OpenStack).expect("it is compiled in");
        let mut object = DynamicObject::new("ubuntu", &kind.images()).within("fleet");
        let annotations = annotations
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        object.metadata.annotations = Some(annotations.collect());
        object.metadata.generation = Some(4);
        object.data(json!({ "spec": spec }))
    }

    fn of(object: &DynamicObject, status: &NodeImageStatus, check: Result<(), String>) -> Asked {
        let kind = Kind::of(Provider::OpenStack).expect("it is compiled in");
        let owner = OwnerId::parse("here").expect("an owner");
        let beside = Beside {
            owner: &owner,
            identity: Some("uid/7"),
            force_finalize: false,
        };
        let wish = kind.wish(object).map_err(|error| error.to_string());
        asked(
            kind,
            object,
            wish.as_ref().map_err(Clone::clone),
            status,
            beside,
            |_| check,
        )
    }

    fn spec(url: &str) -> Value {
        json!({
            "identityRef": { "kind": "Secret", "name": "cloud" },
            "image": { "url": url, "digest": format!("sha512:{}", "ab".repeat(64)), "createOpts": { "name": "ubuntu", "disk_format": "qcow2", "id": "chosen" } },
            "transfer": { "via": "ServerSide", "stores": ["fast"] }, "policy": "IfMissing", "deletionPolicy": "Retain", "execution": "Job",
        })
    }

    #[test]
    fn an_object_asks_for_what_its_spec_and_annotations_say() {
        let object = object(
            &spec("https://images.example/u.qcow2"),
            &[
                (labels::REQUESTED_AT, "now"),
                (labels::PAUSED, ""),
                (labels::ADOPT_IMAGE, "theirs"),
            ],
        );
        let asked = of(&object, &NodeImageStatus::default(), Ok(()));
        let wanted = &asked.wanted;
        assert_eq!(wanted.key.len(), 64);
        assert_eq!(
            (wanted.name.as_str(), wanted.generation, wanted.identity.as_deref()),
            ("ubuntu", 4, Some("uid/7"))
        );
        assert_eq!(
            (wanted.policy, wanted.deletion, wanted.via, wanted.execution),
            (
                ImagePolicy::IfMissing,
                DeletionPolicy::Retain,
                Via::ServerSide,
                Execution::Job
            )
        );
        assert!(wanted.fetchable && wanted.paused && !wanted.compressed && !wanted.owner_noted && !wanted.finalizer);
        assert_eq!(
            (wanted.request.as_deref(), wanted.adopt.as_deref()),
            (Some("now"), Some("theirs"))
        );
        assert_eq!(wanted.chosen_id.as_deref(), Some("chosen"));
        let image = asked.image.expect("an image");
        assert_eq!(
            (image.subject.object.as_str(), image.subject.owner.as_str()),
            ("fleet/ubuntu", "here")
        );
        assert_eq!(
            (image.stores.as_slice(), image.format),
            (&["fast".to_owned()][..], Some("qcow2".to_owned().into()))
        );
        assert_eq!(image.source_digest, asked.content.pinned);
        assert!(asked.content.is_fetched);
    }

    #[test]
    fn an_owner_that_is_noted_on_the_object_moves_along_with_it() {
        let object = object(&spec("https://images.example/u"), &[(labels::IMAGE_OWNER, "there")]);
        let asked = of(&object, &NodeImageStatus::default(), Ok(()));
        assert!(asked.wanted.owner_noted);
        assert_eq!(asked.image.expect("an image").subject.owner.as_str(), "there");
    }

    #[test]
    fn an_owner_that_images_were_marked_with_stays_and_is_noted_again_where_somebody_wrote_another() {
        let status = NodeImageStatus {
            owner: Some("there".to_owned()),
            ..NodeImageStatus::default()
        };
        for (annotation, noted) in [("there", true), ("elsewhere", false), ("no word", false), ("", false)] {
            let object = object(&spec("https://images.example/u"), &[(labels::IMAGE_OWNER, annotation)]);
            let asked = of(&object, &status, Ok(()));
            assert_eq!(asked.wanted.owner_noted, noted, "{annotation:?}");
            assert_eq!(asked.image.expect("an image").subject.owner.as_str(), "there");
        }
    }

    #[test]
    fn an_owner_is_known_also_where_the_spec_cannot_be_read_so_that_claiming_ends() {
        for (marked, annotation, owner) in [
            (Some("there"), "elsewhere", "there"),
            (Some("there"), "", "there"),
            (None, "there", "there"),
            (Some("no word"), "there", "there"),
            (None, "no word", "here"),
            (None, "", "here"),
        ] {
            let status = NodeImageStatus {
                owner: marked.map(str::to_owned),
                ..NodeImageStatus::default()
            };
            let read = |annotation: &str| {
                let object = object(&json!({ "image": 7 }), &[(labels::IMAGE_OWNER, annotation)]);
                of(&object, &status, Ok(()))
            };
            let asked = read(annotation);
            assert!(asked.image.is_none());
            assert_eq!(asked.owner.as_str(), owner, "{marked:?} {annotation:?}");
            assert!(read(owner).wanted.owner_noted, "{marked:?} {annotation:?}");
        }
    }

    #[test]
    fn other_bytes_are_another_content_and_other_options_are_not() {
        let key = |spec: &Value| of(&object(spec, &[]), &NodeImageStatus::default(), Ok(())).wanted.key;
        let before = spec("https://images.example/u.qcow2");
        let mut options = before.clone();
        options["image"]["createOpts"]["min_disk"] = json!(7);
        options["deletionPolicy"] = json!("Delete");
        assert_eq!(key(&before), key(&options));
        for (pointer, value) in [
            ("/image/url", json!("https://images.example/v.qcow2")),
            ("/image/digest", json!(format!("sha256:{}", "ab".repeat(32)))),
            ("/image/createOpts/name", json!("debian")),
            ("/image/createOpts/disk_format", json!("raw")),
            ("/transfer/stores", json!(["slow"])),
        ] {
            let mut other = before.clone();
            *other.pointer_mut(pointer).expect("a field") = value;
            assert_ne!(key(&before), key(&other), "{pointer}");
        }
    }

    #[test]
    fn what_cannot_be_read_or_used_is_said_and_forgets_nothing() {
        let status = NodeImageStatus {
            content_key: Some("k".repeat(64)),
            ..NodeImageStatus::default()
        };
        let unreadable = of(&object(&json!({ "image": 7 }), &[]), &status, Ok(()));
        assert!(unreadable.wanted.invalid.is_some() && unreadable.image.is_none());
        assert_eq!(Some(unreadable.wanted.key), status.content_key);
        let refused = of(
            &object(&spec("https://images.example/u"), &[]),
            &status,
            Err("no".to_owned()),
        );
        assert_eq!(refused.wanted.invalid.as_deref(), Some("no"));
        let mut other = spec("https://images.example/u");
        other["identityRef"]["kind"] = json!("ConfigMap");
        let foreign = of(&object(&other, &[]), &status, Ok(()));
        assert!(foreign.wanted.invalid.is_some_and(|words| words.contains("ConfigMap")));
    }

    #[test]
    fn a_file_in_a_registry_is_read_by_jobs_too_and_fetched_by_no_cloud() {
        let of_url = |url: &str| {
            let mut spec = spec(url);
            spec["execution"] = json!("Job");
            of(&object(&spec, &[]), &NodeImageStatus::default(), Ok(()))
        };
        let url = "oci://registry.example/disks/ubuntu:v1#u.qcow2.xz";
        let asked = of_url(url);
        assert_eq!(asked.wanted.invalid, None);
        assert!(!asked.wanted.fetchable && asked.wanted.compressed);
        assert_eq!(asked.content.url, url);
        let of_release = of_url("release:u.qcow2").wanted.invalid;
        assert!(of_release.is_some_and(|words| words.contains("set execution to Auto")));
        let other = of_url("ftp://images.example/u").wanted.invalid;
        assert!(other.is_some_and(|words| words.contains("oci://")));
    }

    #[test]
    fn what_was_trusted_at_first_use_is_trusted_for_the_same_content_alone() {
        let object = object(&spec("https://images.example/u.qcow2.xz"), &[]);
        let digest = format!("sha256:{}", "cd".repeat(32));
        let mut status = NodeImageStatus {
            image: Some(crds::providers::image_status::CloudImage {
                source_digest: Some(digest.clone()),
                ..Default::default()
            }),
            ..NodeImageStatus::default()
        };
        let first = of(&object, &status, Ok(()));
        assert!(first.wanted.compressed);
        assert_eq!(first.content.remembered, None);
        status.content_key = Some(first.wanted.key);
        let again = of(&object, &status, Ok(()));
        assert_eq!(again.content.remembered.map(|digest| digest.to_string()), Some(digest));
    }
}
