//! The kinds of an operator of a provider, as the API server has them: found, and held against the contract. Makes nothing that stays.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use crds::PROVIDER_GROUP;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{
    US,
    rows::{Report, Row},
};

/// The label of the contract that a CRD is written for; behind it, the versions.
const CONTRACT: &str = crds::labels::CONTRACT_V1ALPHA1;
const SUFFIX: &str = "ClusterStackRelease";

/// The kinds that a test needs.
pub(super) struct Kinds {
    /// Of release objects.
    pub(super) release: ApiResource,
    /// Of templates; absent when there is none.
    pub(super) template: Option<ApiResource>,
    /// Of objects of images, where the operator has such.
    pub(super) image: Option<ApiResource>,
}

impl Kinds {
    /// Finds the kinds and judges them; `None` when there is nothing to go on with.
    pub(super) async fn find(client: &Client, kind: &str, report: &mut Report) -> Result<Option<Self>> {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let listed = definitions.list(&ListParams::default()).await;
        let listed = listed.context("unable to list CRDs")?.items;
        let by_kind: BTreeMap<&str, &CustomResourceDefinition> = listed
            .iter()
            .filter(|definition| definition.spec.group == PROVIDER_GROUP)
            .map(|definition| (definition.spec.names.kind.as_str(), definition))
            .collect();
        let template_kind = format!("{kind}Template");
        let pair = [kind, &template_kind].map(|kind| by_kind.get(kind).copied());
        for (kind, found) in [kind, &template_kind].into_iter().zip(pair) {
            judge(kind, found, &listed, report);
        }
        if let [Some(release), Some(template)] = pair {
            report.pass(Row::M1, format!("{} and {}", release.name_any(), template.name_any()));
            label(&[release, template], report);
        }
        let image_kind = format!("{}NodeImageRelease", kind.strip_suffix(SUFFIX).unwrap_or(kind));
        let image = by_kind.get(image_kind.as_str()).copied().and_then(resource);
        let Some(release) = pair[0]
            .filter(|definition| is_namespaced(definition))
            .and_then(resource)
        else {
            return Ok(None);
        };
        let template = pair[1]
            .filter(|definition| is_namespaced(definition))
            .and_then(resource);
        Ok(Some(Self {
            release,
            template,
            image,
        }))
    }

    /// Whether a template of this spec is taken as it is, without making one.
    pub(super) async fn try_template(&self, client: &Client, (namespace, spec): (&str, &Value), report: &mut Report) {
        let Some(resource) = &self.template else {
            return report.skip(Row::M2, "there is no kind of templates");
        };
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, resource);
        let template = DynamicObject::new(US, resource).data(json!({ "spec": { "template": { "spec": spec } } }));
        let trial = PostParams {
            dry_run: true,
            field_manager: Some(US.to_owned()),
        };
        let verdict = match api.create(&trial, &template).await {
            Err(error) => Err(format!("a template with this spec is refused: {error}")),
            Ok(taken) => match taken.data.pointer("/spec/template/spec") {
                Some(kept) if contains(kept, spec) => Ok(format!("{} takes it", resource.kind)),
                Some(kept) => Err(format!("of the spec {spec} a template keeps {kept}")),
                None => Err("a template loses its spec.template.spec: the schema does not have it".to_owned()),
            },
        };
        report.judge(Row::M2, verdict);
    }
}

/// One of both kinds, and what is wrong with it.
fn judge(kind: &str, found: Option<&CustomResourceDefinition>, all: &[CustomResourceDefinition], report: &mut Report) {
    let Some(definition) = found else {
        let elsewhere = all.iter().find(|definition| definition.spec.names.kind == kind);
        let reason = match elsewhere {
            Some(other) => format!(
                "{kind} is in the group {}; it must be {PROVIDER_GROUP}",
                other.spec.group
            ),
            None => format!("there is no CRD for {kind} in {PROVIDER_GROUP}"),
        };
        return report.fail(Row::M1, reason);
    };
    if !is_namespaced(definition) {
        report.fail(Row::M1, format!("{kind} is in no namespace"));
    }
}

/// S7.
fn label(pair: &[&CustomResourceDefinition], report: &mut Report) {
    let without = pair.iter().find(|definition| {
        let told = definition
            .labels()
            .get(CONTRACT)
            .map(String::as_str)
            .unwrap_or_default();
        let served = definition.spec.versions.iter().filter(|version| version.served);
        let named: Vec<&str> = served.map(|version| version.name.as_str()).collect();
        // Versions are separated as in labels of Cluster API.
        !told.split('_').any(|version| named.contains(&version))
    });
    report.judge(
        Row::S7,
        match without {
            None => Ok(format!("both have {CONTRACT}")),
            Some(definition) => Err(format!(
                "{} has no label {CONTRACT} with a version that it serves",
                definition.name_any()
            )),
        },
    );
}

fn is_namespaced(definition: &CustomResourceDefinition) -> bool {
    definition.spec.scope == "Namespaced"
}

/// How the API server is asked for objects of the kind: in the version that is stored if it is served, or else in any.
fn resource(definition: &CustomResourceDefinition) -> Option<ApiResource> {
    let served: Vec<_> = definition
        .spec
        .versions
        .iter()
        .filter(|version| version.served)
        .collect();
    let version = served.iter().find(|version| version.storage).or(served.first())?;
    let names = &definition.spec.names;
    let kind = GroupVersionKind::gvk(&definition.spec.group, &version.name, &names.kind);
    Some(ApiResource::from_gvk_with_plural(&kind, &names.plural))
}

/// Whether everything that is wanted is there; the API server adds defaults.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| live.get(key).is_some_and(|live| contains(live, value))),
        _ => live == wanted,
    }
}
