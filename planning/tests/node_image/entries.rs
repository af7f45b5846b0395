//! What the objects of images are called, and what is in them.

use crds::names::{ReleaseStem, ReleaseTag, StackVersion};
use crds::providers::Provider;
use crds::release_files::{Metadata, NodeImages};
use planning::node_image::{EntriesError, ImageEntry, entries, normal_spec, object_name};
use serde_json::{Value, json};

const TAG: &str = "openstack-ferrol-1-27-v4";

fn tag(tag: &str) -> ReleaseTag {
    tag.parse().expect("a tag")
}

fn stem() -> ReleaseStem {
    tag(TAG).stem().clone()
}

fn version(text: &str) -> StackVersion {
    text.parse().expect("a version")
}

fn metadata(node_image: Option<&str>) -> Metadata {
    Metadata {
        cluster_stack: version("v4"),
        kubernetes: "v1.27.8".to_owned(),
        cluster_addon: version("v3"),
        node_image: node_image.map(version),
    }
}

fn asked(provider: Provider, spec: &Value, file: &str) -> Result<Vec<ImageEntry>, EntriesError> {
    let file = NodeImages::parse(file.as_bytes()).expect("a file");
    entries(provider, spec, Some(&file), &tag(TAG), &metadata(Some("v2")))
}

fn images(names: &[&str]) -> String {
    let entry = |name: &&str| {
        format!("- url: https://images.example/{name}\n  createOpts: {{name: {name}, disk_format: qcow2}}\n")
    };
    format!("openStackNodeImages:\n{}", names.iter().map(entry).collect::<String>())
}

#[test]
fn an_object_has_the_name_that_the_go_provider_gives_it() {
    for (image, of_version, expected) in [
        (
            "ubuntu-capi-image-v1.27.8",
            "v2",
            "openstack-ferrol-1-27-ubuntu-capi-image-v1.27.8-v2",
        ),
        ("ubuntu", "v0-sha.abc", "openstack-ferrol-1-27-ubuntu-v0-sha.abc"),
    ] {
        assert_eq!(object_name(&stem(), image, &version(of_version)), expected);
    }
}

#[test]
fn a_name_that_no_object_may_have_is_brought_into_form_and_stays_its_own() {
    let name = |image: &str| object_name(&stem(), image, &version("v2"));
    let odd = [
        "Ubuntu 22.04",
        "ubuntu 22.04",
        "ubuntu_22.04",
        "ubuntu..22",
        "-",
        "ü",
        "docker.io/kindest/node:v1.34.0",
        &"x".repeat(400),
    ];
    let mut names: Vec<String> = odd.iter().map(|image| name(image)).collect();
    for name in &names {
        assert!(
            name.starts_with("openstack-ferrol-1-27-") && name.len() <= 253,
            "{name}"
        );
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(name.bytes().all(fits), "{name}");
    }
    assert!(
        names[0].starts_with("openstack-ferrol-1-27-ubuntu-22-04-v2-"),
        "{}",
        names[0]
    );
    names.sort();
    names.dedup();
    assert_eq!(names.len(), odd.len());
}

#[test]
fn what_the_release_object_says_for_all_images_is_in_each() {
    let job = json!({"resources": {"limits": {"memory": "1Gi"}}, "nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "build"}]});
    let spec = json!({
        "identityRef": {"kind": "Secret", "name": "cloud"}, "deletionPolicy": "Retain", "transfer": {"via": "ServerSide"},
        "execution": "Job", "job": job,
    });
    let found = asked(Provider::OpenStack, &spec, &images(&["b", "a"])).expect("entries");
    let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["openstack-ferrol-1-27-b-v2", "openstack-ferrol-1-27-a-v2"]);
    assert_eq!(
        found[0].spec,
        json!({
            "identityRef": {"kind": "Secret", "name": "cloud"},
            "image": {"url": "https://images.example/b", "createOpts": {"name": "b", "disk_format": "qcow2"}},
            "transfer": {"via": "ServerSide"}, "policy": "Create", "deletionPolicy": "Retain", "execution": "Job", "job": job,
        })
    );
    let spec = json!({"store": "fast"});
    let file = "fileStoreNodeImages:\n- url: https://images.example/a\n  name: a.raw\n";
    let found = asked(Provider::FileStore, &spec, file).expect("entries");
    assert_eq!(found[0].spec["store"], "fast");
    let file = "dockerImages:\n- reference: docker.io/kindest/node:v1.34.0\n";
    let found = asked(Provider::Docker, &json!({}), file).expect("entries");
    assert_eq!(
        found[0].spec,
        json!({"image": {"reference": "docker.io/kindest/node:v1.34.0"}})
    );
}

#[test]
fn a_release_without_images_of_the_provider_needs_nothing() {
    let nothing = entries(Provider::OpenStack, &json!({}), None, &tag(TAG), &metadata(None)).expect("entries");
    assert_eq!(nothing, []);
    assert_eq!(
        asked(Provider::FileStore, &json!({}), &images(&["a"])).expect("entries"),
        []
    );
}

#[test]
fn without_a_version_of_its_own_an_image_has_that_of_the_stack() {
    let file = NodeImages::parse(images(&["a"]).as_bytes()).expect("a file");
    let found = entries(Provider::OpenStack, &json!({}), Some(&file), &tag(TAG), &metadata(None)).expect("entries");
    assert_eq!(found[0].name, "openstack-ferrol-1-27-a-v4");
}

#[test]
fn what_cannot_be_brought_is_an_error_that_says_what() {
    let error = |spec: &Value, file: &str| {
        let error = asked(Provider::OpenStack, spec, file).expect_err("an error");
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        (error.to_string(), cause.unwrap_or_default())
    };
    let (twice, _) = error(&json!({}), &images(&["a", "a"]));
    assert_eq!(
        twice,
        "node-images.yaml asks for the image a twice; give the two different names"
    );
    let (_, cause) = error(&json!({}), "openStackNodeImages:\n- url: https://images.example/a\n");
    assert!(cause.contains("openStackNodeImages[0].createOpts"), "{cause}");
    let (release, _) = error(&json!({"identityRef": 3}), &images(&["a"]));
    assert_eq!(release, "failed to read the spec of the release object");
    let names: Vec<String> = (0..65).map(|number| format!("image-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (many, _) = error(&json!({}), &images(&names));
    assert!(many.contains("65 images; at most 64"), "{many}");
}

#[test]
fn specs_that_mean_the_same_compare_as_the_same() {
    let normal = |spec: Value| normal_spec(Provider::OpenStack, &spec).expect("a spec");
    let plain = json!({"identityRef": {"kind": "Secret", "name": "cloud"}, "image": {"url": "https://x", "createOpts": {"name": "a"}}});
    let mut stored = plain.clone();
    stored["policy"] = json!("Create");
    stored["execution"] = json!("Auto");
    stored["ofALaterVersion"] = json!(1);
    assert_eq!(normal(plain.clone()), normal(stored));
    let changed = |pointer: &str, value: Value| {
        let mut spec = plain.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a path");
        spec.pointer_mut(parent).expect("a parent")[key] = value;
        normal(spec)
    };
    // Options may be amended; where it goes and what it is may not.
    let options = [
        changed("/image/createOpts/min_disk", json!(20)),
        changed("/image/createOpts/tags", json!(["a"])),
        changed("/deletionPolicy", json!("Retain")),
    ];
    for other in options {
        assert_eq!(other.content, normal(plain.clone()).content, "{}", other.spec);
        assert_ne!(other.spec, normal(plain.clone()).spec);
    }
    let contents = [
        changed("/image/url", json!("https://y")),
        changed("/image/digest", json!("sha256:aa")),
        changed("/image/compression", json!("Xz")),
        changed("/image/createOpts/disk_format", json!("raw")),
        changed("/identityRef/name", json!("other")),
    ];
    for other in contents {
        assert_ne!(other.content, normal(plain.clone()).content, "{}", other.spec);
    }
    assert_eq!(normal_spec(Provider::OpenStack, &json!({"image": 3})), None);
}
