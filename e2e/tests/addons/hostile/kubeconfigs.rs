//! Kubeconfigs that would lead the operator elsewhere, or make it do what it has no reason to do.

use std::fs;

use anyhow::{Context, Result};
use crds::conditions::ConditionType;
use e2e::{ControlPlane, Identity};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::{Attack, bait::Bait, bombs::laughter};

/// As much as a Secret can hold.
const ROOM: usize = (1 << 20) - 64;

/// What is wrong with a kubeconfig, and what is told of it.
type Wrong<'a> = (&'static str, &'a str, Box<dyn Fn(&mut Parts<'_>)>);

/// The parts of a kubeconfig that say where to go, and as whom.
struct Parts<'a> {
    cluster: &'a mut Value,
    user: &'a mut Value,
}

/// A good one of somebody who may do everything with `ConfigMaps` there and read no Secret, and a class whose chart looks one up: nobody else reads it
/// for the chart.
pub(super) async fn beyond_its_rights(workload: &ControlPlane, class: &str) -> Result<Attack> {
    const NAME: &str = "looks-beyond-its-rights";
    const GROUP: &str = "rbac.authorization.k8s.io";
    let namespace = "kube-system";
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": { "name": NAME },
        "rules": [
            { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"] },
            {
                "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "verbs": ["get", "list", "watch"],
            },
        ],
    }))?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": NAME },
        "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": NAME }],
        "roleRef": { "kind": "ClusterRole", "apiGroup": GROUP, "name": NAME },
    }))?;
    let (client, as_it_is) = (workload.client(), PostParams::default());
    Api::all(client.clone()).create(&as_it_is, &role).await?;
    Api::all(client).create(&as_it_is, &binding).await?;
    let path = workload
        .kubeconfig_for(&Identity::service_account(namespace, NAME))
        .await?;
    let kubeconfig = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(Attack {
        cluster: NAME.to_owned(),
        class: Some(class.to_owned()),
        kubeconfig: Some(kubeconfig),
        words: vec!["failed to look up v1 Secret for a chart: secrets \"treasure\" is forbidden".to_owned()],
        ..Attack::default()
    })
}

/// All that are refused for a field, made of a good one. A decoy would be asked by whoever followed them.
pub(super) fn refused(good: &str, bait: &Bait, decoy: &str) -> Result<Vec<Attack>> {
    let good: Value = serde_yaml::from_str(good).context("a kubeconfig is no YAML")?;
    let mut attacks = Vec::new();
    for (name, words, spoil) in of_users(bait).into_iter().chain(of_clusters(bait, decoy)) {
        let mut kubeconfig = good.clone();
        let [cluster, user] = [("clusters", "cluster"), ("users", "user")].map(|(list, part)| {
            let taken = kubeconfig.pointer_mut(&format!("/{list}/0/{part}")).map(Value::take);
            (format!("/{list}/0/{part}"), taken.unwrap_or_default())
        });
        let (mut cluster, mut user) = (cluster, user);
        spoil(&mut Parts {
            cluster: &mut cluster.1,
            user: &mut user.1,
        });
        for (place, part) in [cluster, user] {
            *kubeconfig.pointer_mut(&place).context("a part of a kubeconfig")? = part;
        }
        attacks.push(refused_by(name, words, kubeconfig.to_string().into_bytes()));
    }
    let shapeless = [
        ("shapeless", "the kubeconfig cannot be read", vec![b'['; ROOM]),
        (
            "endless-text",
            "the kubeconfig has no current-context",
            [b"server: ".to_vec(), vec![b'x'; ROOM]].concat(),
        ),
        (
            "laughing-kubeconfig",
            "the kubeconfig cannot be read",
            format!("{}clusters: *i\nusers: *i\ncontexts: *i\n", laughter()).into_bytes(),
        ),
    ];
    attacks.extend(
        shapeless
            .into_iter()
            .map(|(name, words, text)| refused_by(name, words, text)),
    );
    attacks.push(Attack {
        secret_type: "Opaque",
        ..refused_by("opaque", "the Secret is not of type", good.to_string().into_bytes())
    });
    Ok(attacks)
}

fn refused_by(name: &str, words: &str, kubeconfig: Vec<u8>) -> Attack {
    Attack {
        cluster: name.to_owned(),
        kubeconfig: Some(kubeconfig),
        condition: ConditionType::ClusterReady,
        reason: Some("KubeconfigRefused"),
        words: vec![words.to_owned()],
        ..Attack::default()
    }
}

/// Sets a field of the user besides what it is by.
fn user(field: &'static str, value: Value) -> Box<dyn Fn(&mut Parts<'_>)> {
    Box::new(move |parts: &mut Parts<'_>| parts.user[field] = value.clone())
}

fn cluster(field: &'static str, value: Value) -> Box<dyn Fn(&mut Parts<'_>)> {
    Box::new(move |parts: &mut Parts<'_>| parts.cluster[field] = value.clone())
}

fn of_users(bait: &Bait) -> Vec<Wrong<'static>> {
    let program = bait.file("run.sh");
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": program, "interactiveMode": "Never",
        "env": [{ "name": "A", "value": super::CANARY }],
    });
    let provider = json!({ "name": "gcp", "config": { "cmd-path": program, "access-token": super::CANARY } });
    vec![
        ("exec", "the field exec, which would run a program", user("exec", exec)),
        (
            "auth-provider",
            "the field auth-provider",
            user("auth-provider", provider),
        ),
        (
            "client-certificate",
            "the field client-certificate, which names a file",
            user("client-certificate", bait.file("client.crt").into()),
        ),
        (
            "client-key",
            "the field client-key, which names a file",
            user("client-key", bait.file("client.key").into()),
        ),
        (
            "token-file",
            "the field tokenFile, which names a file",
            user("tokenFile", bait.file("token").into()),
        ),
        ("password", "the field password", user("password", super::CANARY.into())),
        (
            "impersonation",
            "the field as, which would make us somebody else",
            user("as", super::CANARY.into()),
        ),
    ]
}

fn of_clusters(bait: &Bait, decoy: &str) -> Vec<Wrong<'static>> {
    let server = |url: String| cluster("server", url.into());
    let proxy = format!("http://somebody:{}@{decoy}", super::CANARY);
    vec![
        (
            "authority-file",
            "the field certificate-authority, which names a file",
            cluster("certificate-authority", bait.file("ca.crt").into()),
        ),
        ("proxy", "the field proxy-url", cluster("proxy-url", proxy.into())),
        (
            "insecure",
            "the field insecure-skip-tls-verify",
            cluster("insecure-skip-tls-verify", true.into()),
        ),
        (
            "user-in-url",
            "has a user or a password",
            server(format!("https://somebody:{}@{decoy}", super::CANARY)),
        ),
        (
            "plain-http",
            "has to begin with https://",
            server(format!("http://{decoy}")),
        ),
        (
            "metadata-service",
            "is at an address where no cluster is",
            server("https://169.254.169.254".to_owned()),
        ),
        (
            "mapped-metadata-service",
            "is at an address where no cluster is",
            server("https://[::ffff:100.100.100.200]".to_owned()),
        ),
        (
            "nowhere",
            "is at an address where no cluster is",
            server("https://0.0.0.0:6443".to_owned()),
        ),
        (
            "no-url",
            "of the kubeconfig is no URL",
            server(super::CANARY.to_owned()),
        ),
    ]
}
