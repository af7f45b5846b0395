//! The kinds of providers: everything that objects of the Go provider for OpenStack may say, what is optional beside, and what its users see.

mod schema;

use std::collections::BTreeSet;

use crds::{
    manifests::provider_definitions,
    providers::{
        DEFINITIONS, Provider, ProviderImage,
        docker::DockerNodeImageRelease,
        filestore::{FileStoreClusterStackRelease, FileStoreNodeImageRelease},
        image_options::{Build, Execution, ImageContent, ImagePolicy},
        image_status::{ExecutionForm, ImagePhase, ProviderPhase, SentVia},
        openstack::{OpenStackClusterStackRelease, OpenStackNodeImageRelease},
    },
};
use serde_json::{Value, json};
use strum::IntoEnumIterator;

use schema::{columns, crd, fields, holds, is_bounded, is_described, required};

const RELEASES: &[&str] = &[
    "openstackclusterstackreleases",
    "filestoreclusterstackreleases",
    "dockerclusterstackreleases",
];
const IMAGES: &[&str] = &[
    "openstacknodeimagereleases",
    "filestorenodeimagereleases",
    "dockernodeimagereleases",
];
const KEYS: &[&str] = &["openStackNodeImages", "fileStoreNodeImages", "dockerImages"];

#[test]
fn openstack_kinds_have_every_field_of_cspo() {
    let string = || json!({"type": "string"});
    let identity = json!({"type": "object", "default": {"kind": "Secret", "name": "openstack"}});
    for (plural, path) in [
        ("openstackclusterstackreleases", "spec"),
        ("openstackclusterstackreleasetemplates", "spec.template.spec"),
    ] {
        holds(plural, &[(&format!("{path}.identityRef"), identity.clone())]);
        holds(
            plural,
            &[(
                &format!("{path}.identityRef.kind"),
                json!({"type": "string", "minLength": 1}),
            )],
        );
        holds(plural, &[(&format!("{path}.identityRef.name"), string())]);
        assert_eq!(required(plural, &format!("{path}.identityRef")), ["kind", "name"]);
    }
    let options = |field: &str| format!("spec.image.createOpts.{field}");
    let plural = "openstacknodeimagereleases";
    for field in ["name", "id", "visibility", "container_format", "disk_format"] {
        holds(plural, &[(&options(field), string())]);
    }
    for field in ["min_disk", "min_ram"] {
        holds(plural, &[(&options(field), json!({"type": "integer"}))]);
    }
    for field in ["os_hidden", "protected"] {
        holds(plural, &[(&options(field), json!({"type": "boolean"}))]);
    }
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    holds(
        plural,
        &[
            ("spec.identityRef.kind", json!({"type": "string", "minLength": 1})),
            ("spec.image.url", string()),
            (&options("tags"), json!({"type": "array"})),
            (&options("tags[]"), string()),
            (&options("properties"), texts),
        ],
    );
    for plural in ["openstackclusterstackreleases", plural] {
        holds(
            plural,
            &[
                ("status.ready", json!({"type": "boolean", "default": false})),
                ("status.conditions", json!({"type": "array"})),
            ],
        );
    }
}

/// What the Go provider demands, and nothing else: whatever it accepts is still an object.
#[test]
fn additive_fields_are_optional() {
    let plural = "openstacknodeimagereleases";
    assert_eq!(required(plural, "spec"), ["identityRef", "image"]);
    assert_eq!(required(plural, "spec.image"), ["createOpts", "url"]);
    assert_eq!(required(plural, "spec.image.createOpts"), ["name"]);
    assert!(required("openstackclusterstackreleases", "spec").is_empty());
    for provider in ["openstack", "filestore", "docker"] {
        let plural = format!("{provider}clusterstackreleasetemplates");
        assert_eq!(required(&plural, "spec"), ["template"]);
        assert_eq!(required(&plural, "spec.template"), ["spec"]);
    }
    for plural in IMAGES.iter().copied() {
        assert!(required(plural, "status").is_empty(), "{plural}");
    }
}

#[test]
fn what_is_sealed_of_an_attempt_never_gives_way_to_an_earlier_one() {
    let rule = json!({ "rule": "self >= oldSelf", "message": "what a later attempt has written stays" });
    for plural in IMAGES.iter().copied() {
        let path = "status.transfer.sealed.attempt.x-kubernetes-validations.0";
        holds(plural, &[(path, rule.clone())]);
    }
}

#[test]
fn where_an_image_lies_cannot_be_changed() {
    let rule = json!({
        "rule": "self == oldSelf",
        "message": "an image stays where it is; delete the object, and make one for the other place",
    });
    holds(
        "filestorenodeimagereleases",
        &[("spec.store.x-kubernetes-validations.0", rule.clone())],
    );
    let secret = json!({ "rule": "self.kind == 'Secret'" });
    let plural = "openstacknodeimagereleases";
    holds(plural, &[("spec.identityRef.x-kubernetes-validations.0", secret)]);
    holds(plural, &[("spec.identityRef.x-kubernetes-validations.1", rule)]);
}

#[test]
fn columns_of_cspo_stay_in_order() {
    let ready = ("Ready", "boolean", ".status.ready");
    let phase = ("Phase", "string", ".status.phase");
    let done = ("Done", "string", ".status.transfer.summary");
    let age = ("Age", "date", ".metadata.creationTimestamp");
    let reason = ("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason");
    let message = ("Message", "string", ".status.conditions[?(@.type=='Ready')].message");
    let image = ("Image", "string", ".status.image.id");
    let attempt = ("Attempt", "integer", ".status.attempt");
    let holder = ("Holder", "string", ".status.transfer.holder");
    for plural in RELEASES.iter().copied() {
        assert_eq!(columns(plural), [ready, phase, age, reason, message], "{plural}");
    }
    for plural in ["openstacknodeimagereleases", "filestorenodeimagereleases"] {
        let expected = [ready, phase, done, age, reason, message, image, attempt, holder];
        assert_eq!(columns(plural), expected, "{plural}");
    }
    assert_eq!(
        columns("dockernodeimagereleases"),
        [ready, phase, age, reason, message, image]
    );
    let wide: BTreeSet<&str> = crd("openstacknodeimagereleases")["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .expect("columns")
        .iter()
        .filter(|column| column["priority"] == 1)
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(wide, BTreeSet::from(["Attempt", "Holder", "Image"]));
}

#[test]
fn kinds_are_named_labelled_and_served_as_the_contract_says() {
    let short_names = [
        ["oscsr", "oscsrt", "osnir"],
        ["fscsr", "fscsrt", "fsnir"],
        ["dcsr", "dcsrt", "dnir"],
    ];
    for (provider, short_names) in Provider::iter().zip(short_names) {
        let definition = provider.definition();
        assert_eq!(definition.provider, provider);
        assert_eq!(provider.to_string().parse(), Ok(provider));
        let template = (
            format!("{}Template", definition.release_kind),
            definition.release_plural.replace("releases", "releasetemplates"),
        );
        let names = [
            (definition.release_kind, definition.release_plural),
            (template.0.as_str(), template.1.as_str()),
            (definition.image_kind, definition.image_plural),
        ];
        let crds = provider_definitions(provider).map(|crd| serde_json::to_value(crd).expect("JSON"));
        for ((crd, (kind, plural)), short) in crds.iter().zip(names).zip(short_names) {
            assert_eq!(crd["metadata"]["name"], format!("{plural}.{}", crds::PROVIDER_GROUP));
            assert_eq!(crd["spec"]["group"], crds::PROVIDER_GROUP);
            assert_eq!(crd["spec"]["scope"], "Namespaced");
            assert_eq!(crd["spec"]["names"]["kind"], kind);
            assert_eq!(crd["spec"]["names"]["plural"], plural);
            assert_eq!(crd["spec"]["names"]["shortNames"], json!([short]));
            let versions = crd["spec"]["versions"].as_array().expect("versions");
            assert_eq!(versions.len(), 1);
            assert_eq!(versions[0]["name"], crds::VERSION);
            let has_status = !kind.ends_with("Template");
            assert_eq!(versions[0]["subresources"]["status"].is_object(), has_status, "{kind}");
            assert_eq!(
                crd["metadata"]["labels"],
                json!({
                    "cluster.x-k8s.io/provider": format!("cluster-stack-provider-{provider}"),
                    "cluster.x-k8s.io/v1beta1": "v1beta1",
                    "clusterstack.x-k8s.io/v1alpha1": "v1alpha1",
                    "clusterctl.cluster.x-k8s.io": "",
                    "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
                })
            );
        }
    }
    let keys = DEFINITIONS.map(|definition| definition.images_key);
    assert_eq!(keys.as_slice(), KEYS);
}

#[test]
fn every_field_is_described_and_none_is_nullable() {
    for provider in Provider::iter() {
        for crd in provider_definitions(provider) {
            is_described(&crd.spec.names.plural);
        }
    }
    assert!(fields("openstacknodeimagereleases").len() > 100);
}

#[test]
fn every_text_and_list_under_a_rule_is_bounded() {
    for provider in Provider::iter() {
        for crd in provider_definitions(provider) {
            is_bounded(&crd.spec.names.plural);
        }
    }
}

/// A cloud's operator may be older or newer than what wrote the object.
#[test]
fn choices_of_a_spec_are_closed_and_words_of_a_status_are_open() {
    holds(
        "openstacknodeimagereleases",
        &[
            (
                "spec.policy",
                json!({"default": "Create", "enum": ["Create", "Adopt", "IfMissing"]}),
            ),
            ("spec.deletionPolicy", json!({"enum": ["Delete", "Retain"]})),
            (
                "spec.execution",
                json!({"default": "Auto", "enum": ["Auto", "InProcess", "Job"]}),
            ),
            (
                "spec.transfer.via",
                json!({"default": "Auto", "enum": ["Auto", "Upload", "ServerSide", "Staged"]}),
            ),
            (
                "spec.image.compression",
                json!({"enum": ["Auto", "None", "Gzip", "Xz", "Bzip2", "Zstd"]}),
            ),
            ("status.phase", json!({"type": "string", "enum": null})),
            ("status.transfer.via", json!({"type": "string", "enum": null})),
            ("status.execution.form", json!({"type": "string", "enum": null})),
        ],
    );
    holds(
        "openstackclusterstackreleases",
        &[("status.phase", json!({"type": "string", "enum": null}))],
    );
    // What a field is for, not what its type is.
    let description = fields("openstackclusterstackreleases")[".spec.policy"]["description"].clone();
    assert_eq!(
        description,
        "Create, Adopt or `IfMissing`, for every image of the release."
    );
    let words = |count: usize, words: &mut dyn Iterator<Item = Value>| {
        let words: BTreeSet<String> = words.map(|word| word.to_string()).collect();
        assert_eq!(words.len(), count, "{words:?}");
    };
    words(10, &mut ImagePhase::iter().map(|phase| json!(phase)));
    words(11, &mut ProviderPhase::iter().map(|phase| json!(phase)));
    words(4, &mut SentVia::iter().map(|via| json!(via)));
    words(3, &mut ExecutionForm::iter().map(|form| json!(form)));
}

#[test]
fn what_an_object_of_cspo_does_not_say_is_as_cspo_does_it() {
    let image: OpenStackNodeImageRelease = serde_json::from_value(json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "OpenStackNodeImageRelease",
        "metadata": {"name": "openstack-ferrol-1-27-ubuntu-capi-image-v1.27.8-v2"},
        "spec": {
            "identityRef": {"kind": "Secret", "name": "openstack"},
            "image": {
                "url": "https://images.example.com/ubuntu.qcow2",
                "createOpts": {"name": "ubuntu-capi-image-v1.27.8", "disk_format": "qcow2", "min_disk": 20, "properties": {"hw_disk_bus": "scsi"}},
            },
        },
        "status": {
            "ready": true,
            "conditions": [{"type": "OpenStackImageActive", "status": "True", "lastTransitionTime": "2024-02-01T10:00:00Z"}],
        },
    }))
    .expect("an object of CSPO");
    let spec = &image.spec;
    assert_eq!(spec.secret(), Some("openstack"));
    assert_eq!(spec.store(), None);
    assert_eq!(spec.url(), "https://images.example.com/ubuntu.qcow2");
    assert_eq!(spec.name(), "ubuntu-capi-image-v1.27.8");
    assert_eq!(
        Value::Object(spec.options()),
        json!({"name": "ubuntu-capi-image-v1.27.8", "disk_format": "qcow2", "min_disk": 20, "properties": {"hw_disk_bus": "scsi"}})
    );
    assert_eq!(*spec.content(), ImageContent::default());
    assert_eq!(spec.wishes().policy, ImagePolicy::Create);
    assert_eq!(spec.wishes().execution, Execution::Auto);
    assert_eq!(spec.wishes().deletion_policy, None);
    let status = image.status.expect("a status");
    assert!(status.ready);
    assert_eq!((status.attempt, status.phase), (None, None));

    let release: OpenStackClusterStackRelease = serde_json::from_value(json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "OpenStackClusterStackRelease",
        "metadata": {"name": "openstack-ferrol-1-27-v4"}, "spec": {},
    }))
    .expect("an object of CSPO");
    assert_eq!(
        serde_json::to_value(&release.spec).expect("JSON"),
        json!({"identityRef": {"kind": "Secret", "name": "openstack"}})
    );
}

#[test]
fn unknown_words_and_times_of_a_status_do_not_make_an_object_unreadable() {
    let image: OpenStackNodeImageRelease = serde_json::from_value(json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "OpenStackNodeImageRelease", "metadata": {"name": "x"},
        "spec": {"identityRef": {"kind": "Secret", "name": "openstack"}, "image": {"url": "https://x", "createOpts": {"name": "x"}}},
        "status": {
            "ready": false, "phase": "Dancing", "future": 1,
            "execution": {"form": "Elsewhere"},
            "transfer": {"attempt": 2, "via": "Pigeon", "sentBytes": 1, "lastProgressTime": "never", "startedAt": "2026-11-21T10:45:08+99:99"},
            "retry": {"reason": "QuotaExceeded", "firstTime": "once", "until": "2026-11-21T10:45:08Z"},
            "lastFailure": {"reason": "SourceBroken", "time": "then"},
        },
    }))
    .expect("an object of a later version");
    let status = image.status.expect("a status");
    assert_eq!(status.phase, Some(ImagePhase::Unknown));
    assert_eq!(status.execution.expect("told").form, ExecutionForm::Unknown);
    let transfer = status.transfer.expect("a transfer");
    assert_eq!((transfer.via, transfer.started_at), (SentVia::Unknown, None));
    assert_eq!(status.retry.expect("a retry").first_time.0, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(status.last_failure.expect("a failure").time, None);
}

#[test]
fn a_driver_reads_the_specs_of_all_providers_alike() {
    let file: FileStoreNodeImageRelease = serde_json::from_value(json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "FileStoreNodeImageRelease", "metadata": {"name": "x"},
        "spec": {"image": {"name": "disk.raw", "format": "raw", "build": {"image": "builder", "deadline": "90m"}}, "execution": "Job"},
    }))
    .expect("an image");
    assert_eq!((file.spec.store(), file.spec.secret()), (Some("default"), None));
    assert_eq!(
        Value::Object(file.spec.options()),
        json!({"name": "disk.raw", "format": "raw"})
    );
    assert_eq!((file.spec.url(), file.spec.wishes().execution), ("", Execution::Job));
    let content = file.spec.content();
    let build = content.build.as_ref().expect("a build");
    assert_eq!(build.deadline(), std::time::Duration::from_mins(90));
    assert_eq!(
        (build.artifact.as_str(), build.size_limit.0.as_str()),
        ("image", "20Gi")
    );
    let unreadable = Build {
        deadline: "soon".to_owned(),
        ..build.clone()
    };
    assert_eq!(unreadable.deadline(), Build::DEADLINE);

    let digest = format!("sha256:{}", "a".repeat(64));
    let docker: DockerNodeImageRelease = serde_json::from_value(json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "DockerNodeImageRelease", "metadata": {"name": "x"},
        "spec": {"image": {"reference": "docker.io/kindest/node:v1.34.0", "digest": digest}, "pullSecretRef": {"name": "pull"}},
    }))
    .expect("an image");
    assert_eq!((docker.spec.secret(), docker.spec.url()), (Some("pull"), ""));
    assert_eq!(docker.spec.name(), "docker.io/kindest/node:v1.34.0");
    assert_eq!(docker.spec.content().digest.as_deref(), Some(digest.as_str()));
    // It is somebody else's, whatever happens.
    assert_eq!(docker.spec.wishes().policy, ImagePolicy::Adopt);
    let kinds = [kind_of(&file.spec), kind_of(&docker.spec)];
    assert_eq!(kinds, ["FileStoreNodeImageRelease", "DockerNodeImageRelease"]);

    let release: FileStoreClusterStackRelease = serde_json::from_value(json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "FileStoreClusterStackRelease",
        "metadata": {"name": "docker-harbor-1-34-v1"}, "spec": {"deletionPolicy": "Retain"},
    }))
    .expect("a release");
    assert_eq!(
        serde_json::to_value(&release.spec).expect("JSON"),
        json!({"store": "default", "deletionPolicy": "Retain"})
    );
}

fn kind_of<S: ProviderImage>(_: &S) -> &'static str {
    S::definition().image_kind
}
