//! node-images.yaml as each provider reads it, and in which words an entry is refused.

use std::{env, error::Error, fs, io::Write, path::PathBuf};

use crds::{
    providers::{
        docker::DockerImage,
        filestore::FileStoreImage,
        image_options::{Compression, ImageContent},
        openstack::{OpenStackCreateOptions, OpenStackImage},
    },
    release_files::{NODE_IMAGES, NodeImageError, NodeImages, docker_images, filestore_images, openstack_images},
};
use serde_json::{Value, json};

/// That of the release openstack-ferrol-1-27-v4, with a server of nobody.
const FERROL: &str = "\
apiVersion: openstack.infrastructure.clusterstack.x-k8s.io/v1alpha1
openStackNodeImages:
  - url: https://swift.example.com/ubuntu-2204-kube-v1.27/ubuntu-2204-kube-v1.27.8.qcow2
    createOpts:
      name: ubuntu-capi-image-v1.27.8
      disk_format: qcow2
      container_format: bare
      visibility: shared
";

/// That of an Image of the resource controller as current stacks ship it.
const ORC: &str = "\
openStackNodeImages:
  - image:
      resource:
        name: ubuntu-capi-image-v1.32.1
        visibility: private
        tags: [capi]
        protected: true
        properties:
          architecture: x86_64
          hypervisorType: qemu
          minDiskGB: 20
          minMemoryMB: 2048
          hardware:
            cpuCores: 2
            diskBus: scsi
            qemuGuestAgent: true
            rngModel: virtio
            scsiModel: virtio-scsi
            vifModel: virtio
          operatingSystem:
            distro: ubuntu
            version: \"22.04\"
        content:
          diskFormat: qcow2
          download:
            url: https://swift.example.com/ubuntu-2204-kube-v1.32.1.qcow2.xz
            decompress: xz
            hash:
              algorithm: sha256
              value: 1d261cd043f1c16a676be9079984c912df82387be4c6766b122a966e266a080c
";

fn openstack(text: &str) -> Result<Vec<OpenStackImage>, NodeImageError> {
    openstack_images(&NodeImages::parse(text.as_bytes()).expect("a frame"))
}

/// The words of an error and of what is behind it.
fn words(error: &NodeImageError) -> String {
    let behind = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{behind}")
}

#[test]
fn images_of_the_go_provider_are_read_as_it_reads_them() {
    let expected = OpenStackImage {
        url: "https://swift.example.com/ubuntu-2204-kube-v1.27/ubuntu-2204-kube-v1.27.8.qcow2".to_owned(),
        create_opts: OpenStackCreateOptions {
            name: "ubuntu-capi-image-v1.27.8".to_owned(),
            disk_format: Some("qcow2".to_owned()),
            container_format: Some("bare".to_owned()),
            visibility: Some("shared".to_owned()),
            ..OpenStackCreateOptions::default()
        },
        content: ImageContent::default(),
    };
    assert_eq!(openstack(FERROL).expect("an image"), [expected]);
}

#[test]
fn keys_that_only_other_tools_know_are_passed_over() {
    let text = FERROL.replace(
        "    createOpts:\n",
        "    imageDir: ubuntu\n    createOpts:\n      future: 1\n",
    );
    assert_eq!(
        openstack(&text).expect("an image"),
        openstack(FERROL).expect("an image")
    );
}

#[test]
fn what_is_beside_the_url_says_what_the_bytes_must_be() {
    let digest = format!("sha512:{}", "0a".repeat(64));
    let text = FERROL.replace(
        "    createOpts:\n",
        &format!("    digest: {digest}\n    compression: Gzip\n    createOpts:\n"),
    );
    let content = &openstack(&text).expect("an image")[0].content;
    assert_eq!(content.digest.as_deref(), Some(digest.as_str()));
    assert_eq!(content.compression, Some(Compression::Gzip));

    let text = FERROL.replace(
        "    createOpts:\n",
        "    sums: {url: https://swift.example.com/SHA256SUMS, name: ubuntu.qcow2}\n    createOpts:\n",
    );
    let sums = openstack(&text).expect("an image")[0]
        .content
        .sums
        .clone()
        .expect("sums");
    assert_eq!(
        (sums.url.as_str(), sums.name.as_deref()),
        ("https://swift.example.com/SHA256SUMS", Some("ubuntu.qcow2"))
    );

    let text = "openStackNodeImages: [{createOpts: {name: x}, build: {image: builder}}]";
    let image = &openstack(text).expect("an image")[0];
    assert_eq!((image.url.as_str(), image.content.build.is_some()), ("", true));
}

#[test]
fn a_release_without_the_key_has_no_images() {
    let file = NodeImages::parse(b"apiVersion: x\n").expect("a frame");
    assert_eq!(openstack_images(&file).expect("nothing"), []);
    assert_eq!(filestore_images(&file).expect("nothing"), []);
    assert_eq!(docker_images(&file).expect("nothing"), []);
    let of_another = NodeImages::parse(FERROL.as_bytes()).expect("a frame");
    assert_eq!(filestore_images(&of_another).expect("nothing"), []);
}

#[test]
fn orc_images_become_ours() {
    let images = openstack(ORC).expect("an image");
    assert_eq!(
        serde_json::to_value(&images).expect("JSON"),
        json!([{
            "url": "https://swift.example.com/ubuntu-2204-kube-v1.32.1.qcow2.xz",
            "digest": "sha256:1d261cd043f1c16a676be9079984c912df82387be4c6766b122a966e266a080c",
            "compression": "Xz",
            "createOpts": {
                "name": "ubuntu-capi-image-v1.32.1",
                "visibility": "private",
                "tags": ["capi"],
                "protected": true,
                "container_format": "bare",
                "disk_format": "qcow2",
                "min_disk": 20,
                "min_ram": 2048,
                "properties": {
                    "architecture": "x86_64",
                    "hypervisor_type": "qemu",
                    "hw_cpu_cores": "2",
                    "hw_disk_bus": "scsi",
                    "hw_qemu_guest_agent": "true",
                    "hw_rng_model": "virtio",
                    "hw_scsi_model": "virtio-scsi",
                    "hw_vif_model": "virtio",
                    "os_distro": "ubuntu",
                    "os_version": "22.04",
                },
            },
        }])
    );
    // The controller takes bytes as they are unless it is told otherwise.
    let plain = &openstack(&ORC.replace("            decompress: xz\n", "")).expect("an image")[0];
    assert_eq!(plain.content.compression, Some(Compression::None));
}

#[test]
fn weak_digests_are_refused() {
    for algorithm in ["md5", "sha1"] {
        let error = openstack(&ORC.replace("sha256", algorithm)).expect_err("a weak digest");
        assert_eq!(
            words(&error),
            format!(
                "openStackNodeImages[0].image.resource.content.download.hash.algorithm of node-images.yaml is {algorithm}, which proves \
                 nothing: use sha256 or sha512"
            )
        );
    }
}

#[test]
fn an_entry_that_is_wrong_is_named_with_its_field() {
    let first = "openStackNodeImages[0]";
    let download = "openStackNodeImages[0].image.resource.content.download";
    for (text, expected) in [
        (
            FERROL.replace("      name: ubuntu-capi-image-v1.27.8\n", ""),
            format!("node-images.yaml has no {first}.createOpts.name"),
        ),
        (
            FERROL.replace("name: ubuntu-capi-image-v1.27.8", "name: \"\""),
            format!("node-images.yaml has no {first}.createOpts.name"),
        ),
        (
            format!("{FERROL}  - url: https://swift.example.com/other.qcow2\n"),
            "node-images.yaml has no openStackNodeImages[1].createOpts".to_owned(),
        ),
        (
            format!("{FERROL}      min_disk: much\n"),
            format!(
                "unable to read {first}.createOpts.min_disk of node-images.yaml: invalid type: string \"much\", expected i64"
            ),
        ),
        (
            format!("{FERROL}      properties: {{hw_qemu_guest_agent: true}}\n"),
            format!("unable to read {first}.createOpts.properties of node-images.yaml: invalid type: boolean `true`"),
        ),
        (
            format!("{FERROL}    digest: md5:0123\n"),
            format!("{first}.digest of node-images.yaml is no digest: use sha256: or sha512:"),
        ),
        (
            format!("{FERROL}    digest: sha256:{}\n", "A".repeat(64)),
            format!("{first}.digest of node-images.yaml is no digest"),
        ),
        (
            format!("{FERROL}    digest: sha256:0\n    sums: {{url: https://x}}\n"),
            format!("{first}.digest and {first}.sums of node-images.yaml exclude each other"),
        ),
        (
            format!("{FERROL}    build: {{image: builder}}\n"),
            format!("{first}.url and {first}.build of node-images.yaml exclude each other"),
        ),
        (
            format!("{FERROL}    compression: lzma\n"),
            format!("unable to read {first}.compression of node-images.yaml: unknown variant `lzma`"),
        ),
        (
            format!("{FERROL}    image: {{resource: {{}}}}\n"),
            format!("{first}.image and {first}.url of node-images.yaml exclude each other"),
        ),
        (
            ORC.replace(
                "          hardware:\n",
                "          hardware:\n            tpmModel: crb\n",
            ),
            format!(
                "{first}.image.resource.properties.hardware.tpmModel of node-images.yaml is not known in this version"
            ),
        ),
        (
            ORC.replace("        protected: true\n", "        owner: me\n"),
            format!("{first}.image.resource.owner of node-images.yaml is not known in this version"),
        ),
        (
            ORC.replace(
                "      resource:\n",
                "      managementPolicy: unmanaged\n      resource:\n",
            ),
            format!("{first}.image.managementPolicy of node-images.yaml is not known in this version"),
        ),
        (
            ORC.replace("diskBus: scsi", "diskBus: [scsi]"),
            format!(
                "{first}.image.resource.properties.hardware.diskBus of node-images.yaml must be text, a number or a boolean"
            ),
        ),
        (
            ORC.replace("decompress: xz", "decompress: zip"),
            format!("unable to read {download}.decompress of node-images.yaml: unknown variant `zip`"),
        ),
        (
            ORC.replace("algorithm: sha256", "algorithm: sha512"),
            format!("{download}.hash.value of node-images.yaml is no digest"),
        ),
        (
            ORC.replace("algorithm: sha256", "algorithm: crc32"),
            format!("{download}.hash.algorithm of node-images.yaml is no digest: use sha256 or sha512"),
        ),
        (
            "openStackNodeImages: [{image: {resource: {name: x}}}]".to_owned(),
            format!("node-images.yaml has no {first}.image.resource.content"),
        ),
        (
            "openStackNodeImages: [{image: 1}]".to_owned(),
            format!("unable to read {first}.image of node-images.yaml"),
        ),
    ] {
        let error = openstack(&text).expect_err(&expected);
        assert!(words(&error).starts_with(&expected), "{}\n{expected}", words(&error));
    }
}

/// A release says where its images are. Were it to say with which Secret too, it could have any Secret of the namespace sent to itself.
#[test]
fn a_release_chooses_no_secret() {
    for field in ["caSecretRef", "credentialsSecretRef"] {
        for (file, images) in [
            (FERROL.to_owned(), "openStackNodeImages"),
            (
                "fileStoreNodeImages:\n  - url: https://x\n    name: x\n".to_owned(),
                "fileStoreNodeImages",
            ),
        ] {
            let text = format!("{file}    {field}: {{name: openstack}}\n");
            let file = NodeImages::parse(text.as_bytes()).expect("a frame");
            let read = match images {
                "openStackNodeImages" => openstack_images(&file).map(drop),
                _ => filestore_images(&file).map(drop),
            };
            assert_eq!(
                words(&read.expect_err("a Secret")),
                format!(
                    "{images}[0].{field} of node-images.yaml names a Secret, which a release may not choose: leave it out"
                )
            );
        }
    }
}

#[test]
fn images_of_a_directory_have_a_name_and_perhaps_a_format() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let text = format!(
        "fileStoreNodeImages:\n  - {{url: https://x/y.raw, name: y.raw, format: raw, digest: {digest}}}\n  - {{name: z, build: {{image: b}}}}\n"
    );
    let images = filestore_images(&NodeImages::parse(text.as_bytes()).expect("a frame")).expect("images");
    let expected = FileStoreImage {
        url: "https://x/y.raw".to_owned(),
        name: "y.raw".to_owned(),
        format: Some("raw".to_owned()),
        content: ImageContent {
            digest: Some(digest),
            ..ImageContent::default()
        },
    };
    assert_eq!(images[0], expected);
    assert!(images[1].content.build.is_some());
    let nameless = NodeImages::parse(b"fileStoreNodeImages: [{url: https://x}]").expect("a frame");
    assert_eq!(
        words(&filestore_images(&nameless).expect_err("no name")),
        "node-images.yaml has no fileStoreNodeImages[0].name"
    );
}

#[test]
fn images_of_a_registry_are_references_under_either_key() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let images = |text: &str| docker_images(&NodeImages::parse(text.as_bytes()).expect("a frame"));
    let expected = DockerImage {
        reference: "docker.io/kindest/node:v1.34.0".to_owned(),
        digest: Some(digest.clone()),
    };
    for key in ["reference", "url"] {
        let text = format!("dockerImages: [{{{key}: \"docker.io/kindest/node:v1.34.0\", digest: \"{digest}\"}}]");
        assert_eq!(images(&text).expect("an image"), std::slice::from_ref(&expected));
    }
    for (text, expected) in [
        (
            "dockerImages: [{}]".to_owned(),
            "node-images.yaml has no dockerImages[0].reference",
        ),
        (
            "dockerImages: [{url: a, reference: b}]".to_owned(),
            "dockerImages[0].reference and dockerImages[0].url of node-images.yaml exclude each other",
        ),
        (
            format!("dockerImages: [{{url: a, digest: \"sha512:{}\"}}]", "0".repeat(128)),
            "dockerImages[0].digest of node-images.yaml is no digest: use sha256: and 64 hexadecimal digits",
        ),
    ] {
        let error = images(&text).expect_err(expected);
        assert!(words(&error).starts_with(expected), "{}", words(&error));
    }
}

#[test]
fn images_of_real_releases_and_takeovers_are_read() {
    let Some(corpus) = env::var_os("STACKWRIGHT_CORPUS").map(PathBuf::from) else {
        // Not by a macro: the harness keeps what those write to itself when a test passes.
        let said = "REDUCED: STACKWRIGHT_CORPUS is not set, so no images of real releases are read\n";
        std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
        return;
    };
    let ferrol =
        fs::read(corpus.join("releases/openstack-ferrol-1-27-v4").join(NODE_IMAGES)).expect("the corpus has it");
    let images = openstack_images(&NodeImages::parse(&ferrol).expect("a frame")).expect("images");
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].create_opts.name, "ubuntu-capi-image-v1.27.8");
    assert!(images[0].url.starts_with("https://"));

    // Images of the resource controller that current stacks ship, as a release of ours could have them.
    let text =
        fs::read_to_string(corpus.join("takeover/images.openstack.k-orc.cloud.yaml")).expect("the corpus has it");
    let list: Value = serde_yaml::from_str(&text).expect("YAML");
    let entries: Vec<Value> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| {
            let mut resource = item["spec"]["resource"].clone();
            resource["name"] = item["metadata"]["name"].clone();
            json!({ "image": { "resource": resource } })
        })
        .collect();
    assert!(!entries.is_empty());
    let file = serde_yaml::to_string(&json!({ "openStackNodeImages": entries })).expect("YAML");
    let images = openstack(&file).expect("images");
    assert_eq!(images.len(), entries.len());
    for image in images {
        assert!(image.content.digest.is_some(), "{image:?}");
        assert_eq!(image.create_opts.properties["hw_scsi_model"], "virtio-scsi");
    }
}
