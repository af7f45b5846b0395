//! The files in `crds/yaml`, `crds/providers`, `crds/webhooks`, `crds/hooks` and `crds/cert-manager` are what `crds::manifests` makes.

use std::{env, fs, path::PathBuf};

use crds::manifests::{
    Installation, NAMESPACE, PROVIDER_OPERATOR_RIGHTS, Part, core_operator_roles, provider_operator_roles,
    validating_webhook_configuration,
};
use crds::providers::DEFINITIONS;
use serde::Serialize;
use serde_json::Value;
use strum::IntoEnumIterator;

#[test]
fn committed_manifests_are_the_generated_ones() {
    let regenerate = env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for (name, text) in manifests() {
        let path = directory().join(&name);
        if regenerate {
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
            fs::write(&path, text).expect("the file can be written");
        } else if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "not as generated: {}\nrun: STACKWRIGHT_REGENERATE=1 cargo test -p crds --test generated",
        stale.join(", ")
    );
}

#[test]
fn no_committed_manifest_is_left_over() {
    let generated: Vec<String> = manifests().into_iter().map(|(name, _)| name).collect();
    for folder in Part::iter().map(folder) {
        for entry in fs::read_dir(directory().join(folder)).expect("the folder is there") {
            let entry = entry.expect("the folder can be read");
            if entry.file_type().expect("its type is known").is_dir() {
                // The folder of another part.
                continue;
            }
            let name = entry.file_name().into_string().expect("a UTF-8 name");
            let name = format!("{folder}/{name}");
            assert!(
                generated.contains(&name),
                "crds/{name} is not generated any more: delete it"
            );
        }
    }
}

/// kubectl reads YAML 1.1, where a plain `Off` or `No` is a boolean; the serializer writes YAML 1.2 and would not quote it.
#[test]
fn committed_manifests_mean_the_same_in_yaml_1_1() {
    for (name, text) in manifests() {
        for line in text.lines() {
            let scalar = line
                .rsplit(": ")
                .next()
                .unwrap_or(line)
                .trim_start()
                .trim_start_matches("- ");
            assert!(!is_boolean_in_yaml_1_1(scalar), "{name}: {line}");
        }
    }
}

/// The Go operator reads the Secrets of all tenants, their kubeconfigs among them, and writes every kind of Cluster API.
#[test]
fn f39_the_operator_reads_no_secret_that_nobody_gave_it_and_writes_no_kind_that_is_not_named() {
    for role in core_operator_roles().chain(provider_operator_roles()) {
        let name = role.metadata.name.clone().expect("a name");
        for rule in role.rules.expect("rules") {
            let groups = rule.api_groups.clone().unwrap_or_default();
            let resources = rule.resources.clone().unwrap_or_default();
            let has = |words: &[String], word: &str| words.iter().any(|found| found == word);
            assert!(!has(&groups, "*") && !has(&rule.verbs, "*"), "{rule:?}");
            assert!(!has(&resources, "*") || groups == [crds::PROVIDER_GROUP], "{rule:?}");
            for verb in ["bind", "escalate", "impersonate", "deletecollection"] {
                assert!(!has(&rule.verbs, verb), "{rule:?}");
            }
            // Nobody can give away what he does not have himself.
            let gives = name == "clusterstack-provider-operator-jobs" && rule.verbs == ["create", "delete", "get"];
            assert!(!has(&groups, "rbac.authorization.k8s.io") || gives, "{rule:?}");
            if has(&resources, "secrets") {
                let of_secrets = [
                    "clusterstack-core-operator-secrets",
                    "clusterstack-provider-operator-secrets",
                ];
                // Bound where Clusters are, whose kubeconfigs it reads, and beside which it keeps what their charts drew.
                if name == "clusterstack-core-operator-clusters" {
                    assert_eq!(rule.verbs, ["create", "get", "list", "update", "watch"]);
                    continue;
                }
                assert!(of_secrets.contains(&name.as_str()), "{name}");
                assert_eq!(rule.verbs, ["get"]);
            }
        }
    }
}

/// Each kind that a provider has is named, and no other of their group: a provider of somebody else is its own operator's business.
#[test]
fn the_operator_of_providers_may_work_on_the_kinds_of_providers_alone() {
    let mut named: Vec<&str> = PROVIDER_OPERATOR_RIGHTS
        .iter()
        .filter(|right| right.group == crds::PROVIDER_GROUP)
        .flat_map(|right| right.resources)
        .map(|resource| resource.trim_end_matches("/status"))
        .collect();
    let of_providers = DEFINITIONS
        .iter()
        .map(|definition| [definition.release_plural, definition.image_plural]);
    let mut expected: Vec<&str> = of_providers.flatten().flat_map(|plural| [plural, plural]).collect();
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
}

/// The Go operator's installation speaks for all tenants: hooks for every namespace, and a webhook that every Cluster has to pass.
#[test]
fn f40_nothing_that_is_installed_is_a_secret_or_stands_in_the_way_of_clusters_of_others() {
    let installable = [
        "CustomResourceDefinition",
        "ClusterRole",
        "Service",
        "ValidatingWebhookConfiguration",
        // Whose Clusters it is about is for whoever installs it to say, see the tests of hooks.
        "ExtensionConfig",
        "Issuer",
        "Certificate",
        "NetworkPolicy",
    ];
    for (name, text) in manifests() {
        let kind = text.lines().find_map(|line| line.strip_prefix("kind: "));
        assert!(kind.is_some_and(|kind| installable.contains(&kind)), "{name}: {kind:?}");
    }
    let configuration = json(&validating_webhook_configuration(NAMESPACE));
    for webhook in configuration["webhooks"].as_array().expect("webhooks") {
        let asks_about = |resource: &str| {
            webhook["rules"].as_array().is_some_and(|rules| {
                let named = |rule: &Value| rule["resources"].as_array().cloned().unwrap_or_default();
                rules.iter().flat_map(named).any(|named| named == resource)
            })
        };
        let conditions = webhook["matchConditions"].as_array().cloned().unwrap_or_default();
        let is_for_ours = conditions
            .iter()
            .any(|condition| condition["name"] == "class-of-a-cluster-stack");
        assert!(!asks_about("clusters") || is_for_ours, "{webhook:#}");
        assert!(!asks_about("*"), "{webhook:#}");
    }
}

/// In the Go operator's manifests one namespace is written down, wherever it is installed.
#[test]
fn f40_everything_that_is_installed_is_in_the_namespace_that_is_asked_for() {
    let parts = Part::iter().flat_map(|part| {
        part.files(&Installation::in_namespace("fleet-1"))
            .expect("manifests can be written")
    });
    let all: Vec<Value> = parts
        .map(|(name, text)| {
            assert!(!text.contains(NAMESPACE), "{name}: {text}");
            serde_yaml::from_str(&text).expect("a manifest is YAML")
        })
        .collect();
    let of_kind = |kind: &str| {
        let found: Vec<&Value> = all.iter().filter(|manifest| manifest["kind"] == kind).collect();
        assert!(!found.is_empty(), "no {kind}");
        found
    };
    for kind in ["Service", "Issuer", "Certificate"] {
        for manifest in of_kind(kind) {
            assert_eq!(manifest["metadata"]["namespace"], "fleet-1", "{manifest:#}");
        }
    }
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// By path in the folder of the crate.
fn manifests() -> Vec<(String, String)> {
    let files = Part::iter().flat_map(|part| {
        let files = part
            .files(&Installation::in_namespace(NAMESPACE))
            .expect("manifests can be written")
            .into_iter();
        files.map(move |(name, text)| {
            let folder = folder(part);
            (format!("{folder}/{name}.yaml"), format!("{HEADER}{text}"))
        })
    });
    files.collect()
}

/// Where its files are, seen from the folder of the crate. `kubectl apply -f` of one folder installs what is of use together.
fn folder(part: Part) -> &'static str {
    match part {
        Part::Definitions | Part::Roles => "yaml",
        Part::Webhooks => "webhooks",
        Part::Hooks => "hooks",
        Part::Certificates => "cert-manager",
        Part::OpenStack => "providers/openstack",
        Part::FileStore => "providers/filestore",
        Part::Docker => "providers/docker",
        Part::ProviderRoles => "providers",
        Part::Builds => "providers/builds",
    }
}

const HEADER: &str = "# Generated from the crate crds; do not edit.\n";

fn json(manifest: &impl Serialize) -> Value {
    serde_json::to_value(manifest).expect("a manifest is JSON")
}

/// The words beyond `true` and `false`, which the serializer knows.
fn is_boolean_in_yaml_1_1(scalar: &str) -> bool {
    matches!(
        scalar,
        "y" | "Y" | "yes" | "Yes" | "YES" | "n" | "N" | "no" | "No" | "NO" | "on" | "On" | "ON" | "off" | "Off" | "OFF"
    )
}
