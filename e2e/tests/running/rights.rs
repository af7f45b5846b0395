//! An operator with its own roles, which are enough and allow nothing else; and one that lacks rights: it says which, once each, where people
//! look.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease, labels,
    manifests::{OperatorRole, VERBS_OF_OBJECTS},
};
use e2e::{
    Identity, Journey, Operator, eventually,
    journey::{SOON, journey, status},
    operator::sources_of_this_machine,
    own_roles::{ACCOUNT, bind_for_secrets, may, with_its_own_roles},
    provider,
    registry::{PASSWORD, Registry},
    releases::StackSource,
};
use http::StatusCode;
use k8s_openapi::api::{rbac::v1::ClusterRoleBinding, scheduling::v1::PriorityClass};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use crate::{STACK, elapse, log_lines};

/// Without these the operator can do nothing.
const ESSENTIAL: [&str; 4] = [
    "ClusterStack",
    "ClusterStackRelease",
    "ClusterAddon",
    "CustomResourceDefinition",
];

#[test]
fn an_operator_without_rights_is_not_ready_and_says_once_which_are_missing() -> Result<()> {
    journey(async |journey| {
        let nobody = Identity::service_account(&journey.namespace, "nobody");
        journey.options.kubeconfig = journey.control_plane().kubeconfig_for(&nobody).await?;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        let log = operator.log().to_owned();
        eventually(SOON, "the missing rights to be told", async || told_once(&log)).await?;
        let (status, body) = operator.health("/readyz").await?;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
        for kind in ESSENTIAL {
            let missing = format!("the right to watch {kind}: ");
            let line = body.lines().find(|line| line.contains(&missing));
            let line = line.with_context(|| format!("nothing of {kind} in {body}"))?;
            ensure!(line.contains("cannot list resource"), "{line}");
        }
        // Several attempts of each watch.
        elapse(Duration::from_secs(8)).await?;
        told_once(&log)?;
        operator.kill().await
    })
}

/// A release that wants to make its maker the administrator of everything.
#[test]
fn f39_with_its_own_roles_an_operator_installs_and_removes_releases_and_lets_none_reach_beyond() -> Result<()> {
    journey(async |journey| {
        let user = with_its_own_roles(journey).await?;
        let tag = journey.installed().await?;
        ensure!(!may(journey, &user, "get", "secrets").await?, "no stack names a Secret");
        ensure!(
            !may(journey, &user, "list", "secrets").await?,
            "nor would it have to list them"
        );

        let name = format!("administrator-of-{}", journey.namespace);
        let source = StackSource::harbor("v2")?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io" }],
        });
        source.write(
            "cluster-class/templates/binding.yaml",
            &serde_yaml::to_string(&binding)?,
        )?;
        let greedy = journey.releases.publish_stack(&source.path(), "v2")?;
        journey.stack(STACK, json!({ "versions": ["v1", "v2"] })).await?;
        let log = journey.operator()?.log().to_owned();
        eventually(SOON, "the missing right to be told", async || {
            let lines = log_lines(&log)?;
            let told = |line: &Value| {
                line["kind"]
                    .as_str()
                    .is_some_and(|kind| kind.starts_with("ClusterRoleBinding."))
                    && line["message"] == "not allowed to watch; give the operator the right"
            };
            ensure!(lines.iter().any(told), "{} lines", lines.len());
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let release = journey.ask_release(&greedy, "now").await?;
        ensure!(!status(&release).ready, "{release:#?}");
        let bindings = Api::<ClusterRoleBinding>::all(journey.client.clone());
        ensure!(bindings.get_opt(&name).await?.is_none(), "it was bound");
        journey.usable(STACK, "v1").await?;

        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        journey.gone::<ClusterStackRelease>(&greedy).await?;
        Ok(())
    })
}

#[test]
fn f39_with_its_own_roles_an_operator_reads_the_secrets_of_stacks_and_makes_the_objects_of_providers() -> Result<()> {
    const REPOSITORY: &str = "kaas/stacks";
    journey(async |journey| {
        let user = with_its_own_roles(journey).await?;
        bind_for_secrets(journey, &user, OperatorRole::Secrets).await?;
        for verb in ["list", "update", "delete"] {
            ensure!(!may(journey, &user, verb, "secrets").await?, "{verb}");
        }
        let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
        journey.apply(registry.secret(PASSWORD)?).await?;
        let tag = registry.publish(&journey.releases, ("v1", "v1"), REPOSITORY)?;
        provider::install(journey).await?;
        provider::template(journey, "small").await?;
        let sources = sources_of_this_machine(&journey.folder().join("cache"));
        journey.options.flags.extend(sources);
        journey.operate().await?;
        let spec = json!({
            "versions": ["v1"], "source": registry.source(REPOSITORY), "noProvider": false, "providerRef": provider::reference(),
        });
        journey.stack(STACK, spec).await?;
        provider::reports(journey, &tag, ("small", true)).await?;
        journey.release_ready(&tag).await?;
        provider::template(journey, "large").await?;
        provider::reports(journey, &tag, ("large", true)).await?;
        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        Ok(())
    })
}

/// In our words, and in nobody else's.
fn told_once(log: &Path) -> Result<()> {
    let lines = log_lines(log)?;
    for kind in ESSENTIAL.into_iter().chain(["Cluster.cluster.x-k8s.io"]) {
        let of_kind: Vec<_> = lines.iter().filter(|line| line["kind"] == kind).collect();
        let words = "not allowed to watch; give the operator the right";
        let once = of_kind.len() == 1 && of_kind[0]["level"] == "WARN" && of_kind[0]["message"] == words;
        ensure!(once, "{kind}: {lines:#?}");
    }
    let theirs = |target: &str| target.starts_with("kube");
    ensure!(
        !lines.iter().any(|line| line["target"].as_str().is_some_and(theirs)),
        "{lines:#?}"
    );
    Ok(())
}

/// Objects that stay when their release goes, one of them without a namespace, and the right to make such.
async fn with_kept_objects(journey: &Journey, source: &StackSource) -> Result<()> {
    let name = format!("kept-of-{}", journey.namespace);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
        "rules": [{
            "apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"],
            "verbs": VERBS_OF_OBJECTS.iter().chain(&["create"]).collect::<Vec<_>>(),
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": journey.namespace }],
    });
    for object in [role, binding] {
        journey.apply_for_all(object).await?;
    }
    let metadata = json!({ "name": name, "annotations": { labels::RESOURCE_POLICY: labels::RESOURCE_POLICY_KEEP } });
    let class =
        json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 7 });
    let template = json!({
        "apiVersion": TEMPLATES, "kind": "DockerMachineTemplate", "metadata": metadata,
        "spec": { "template": { "spec": { "customImage": "kept" } } },
    });
    for (file, object) in [("class", class), ("template", template)] {
        let path = format!("cluster-class/templates/kept-{file}.yaml");
        source.write(&path, &serde_yaml::to_string(&object)?)?;
    }
    Ok(())
}

const TEMPLATES: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

#[test]
fn f39_with_its_own_roles_an_operator_of_one_namespace_adopts_what_a_release_left_behind() -> Result<()> {
    journey(async |journey| {
        with_its_own_roles(journey).await?;
        let mut tags = Vec::new();
        for version in ["v1", "v2"] {
            let source = StackSource::harbor(version)?;
            with_kept_objects(journey, &source).await?;
            tags.push((version, journey.releases.publish_stack(&source.path(), version)?));
        }
        journey.operate().await?;
        let name = format!("kept-of-{}", journey.namespace);
        let classes = Api::<PriorityClass>::all(journey.client.clone());
        for (version, tag) in tags {
            journey.stack(STACK, json!({ "versions": [version] })).await?;
            journey.release_ready(&tag).await?;
            let mark = labels::part_of("ClusterStackRelease", &journey.namespace, &tag);
            let template = journey.objects(TEMPLATES, "DockerMachineTemplate").get(&name).await?;
            for found in [template.labels(), classes.get(&name).await?.labels()] {
                ensure!(found.get(labels::PART_OF) == Some(&mark), "{version}: {found:?}");
            }
            journey.delete::<ClusterStack>(STACK).await?;
            journey.gone::<ClusterStackRelease>(&tag).await?;
        }
        classes.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    })
}
