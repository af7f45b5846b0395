//! A cluster that was there before the demo: what it has stays as it is, what the demo adds to it goes again.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use crds::{ClusterStack, ClusterStackRelease, PROVIDER_GROUP, VERSION, providers::Provider};
use e2e::{Operator, eventually};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams},
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
    core::GroupVersionKind,
};
use serde_json::Value;

use super::{acts::STACK, text::count};

/// Others use the cluster too.
const DELETION_DEADLINE: Duration = Duration::from_mins(1);

pub(super) struct Given {
    pub(super) client: Client,
    pub(super) kubeconfig: PathBuf,
    /// The CRDs that the demo added, or was about to.
    pub(super) added: Vec<Value>,
    /// The demo made its namespace.
    pub(super) namespaced: bool,
}

impl Given {
    pub(super) async fn reach(path: &Path) -> Result<Self> {
        let kubeconfig = path
            .canonicalize()
            .with_context(|| format!("unable to find {}", path.display()))?;
        let unreadable = || format!("unable to use the kubeconfig {}", path.display());
        let read = Kubeconfig::read_from(&kubeconfig)
            .map_err(unquoted)
            .with_context(unreadable)?;
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.with_context(unreadable)?).with_context(unreadable)?;
        Ok(Self {
            client,
            kubeconfig,
            added: Vec::new(),
            namespaced: false,
        })
    }

    /// Those CRDs that the cluster does not have. The others stay as they are: somebody works with them.
    pub(super) async fn absent(&self, definitions: Vec<Value>) -> Result<Vec<Value>> {
        let there = self.definitions().await?;
        let mut absent = definitions;
        absent.retain(|definition| !there.contains(name_of(definition)));
        Ok(absent)
    }

    /// Takes back what was added; releases and their node images go by the hand of the operators, which end then.
    pub(super) async fn restore(
        self,
        namespace: &str,
        operators: Vec<Operator>,
        provider: Option<Provider>,
    ) -> Result<()> {
        if self.namespaced {
            self.delete_stack(namespace).await?;
        }
        if self.namespaced
            && let Some(provider) = provider
        {
            self.images_are_gone(namespace, provider).await?;
        }
        for operator in operators {
            operator.stop().await?;
        }
        if self.namespaced {
            self.delete_namespace(namespace).await?;
        }
        let mut deleted = BTreeSet::new();
        for definition in &self.added {
            if self.delete_definition(definition).await? {
                deleted.insert(name_of(definition).to_owned());
            }
        }
        eventually(DELETION_DEADLINE, "the CRDs to be gone", async || {
            let left = self.definitions().await?.intersection(&deleted).count();
            ensure!(left == 0, "{} left", count(left, "CRD"));
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// The names of all CRDs.
    async fn definitions(&self) -> Result<BTreeSet<String>> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let there = api.list_metadata(&ListParams::default()).await;
        let there = there.context("failed to list CRDs")?;
        Ok(there.iter().map(ResourceExt::name_any).collect())
    }

    async fn delete_stack(&self, namespace: &str) -> Result<()> {
        let stacks: Api<ClusterStack> = Api::namespaced(self.client.clone(), namespace);
        gone_or(stacks.delete(STACK, &DeleteParams::default()).await.map(drop))
            .context("failed to delete the stack")?;
        let releases: Api<ClusterStackRelease> = Api::namespaced(self.client.clone(), namespace);
        // Kubernetes would do that, half a minute after it has seen their CRD for the first time.
        let deleted = releases
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await;
        gone_or(deleted.map(drop)).context("failed to delete the releases")?;
        eventually(DELETION_DEADLINE, "the releases to be gone", async || {
            let left = releases.list_metadata(&ListParams::default()).await?.items;
            ensure!(left.is_empty(), "{} left", count(left.len(), "release"));
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits for the objects of the provider, which the provider operator takes its hand off when their images are gone.
    async fn images_are_gone(&self, namespace: &str, provider: Provider) -> Result<()> {
        let definition = provider.definition();
        let kinds = [
            (definition.release_kind, definition.release_plural),
            (definition.image_kind, definition.image_plural),
        ];
        for (kind, plural) in kinds {
            let resource =
                ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(PROVIDER_GROUP, VERSION, kind), plural);
            let objects: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
            eventually(DELETION_DEADLINE, "the node images to be gone", async || {
                let left = objects.list_metadata(&ListParams::default()).await?.items;
                ensure!(left.is_empty(), "{} left", count(left.len(), "object"));
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        Ok(())
    }

    async fn delete_namespace(&self, name: &str) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        gone_or(namespaces.delete(name, &DeleteParams::default()).await.map(drop))
            .context("failed to delete the namespace")?;
        eventually(
            DELETION_DEADLINE,
            format!("the namespace {name} to be gone"),
            async || match namespaces.get_opt(name).await? {
                None => Ok(()),
                Some(_) => Err(anyhow!("it is being deleted")),
            },
        )
        .await
    }

    /// A CRD takes all of its objects with it; should somebody have made one meanwhile, it stays, and the answer is false.
    async fn delete_definition(&self, definition: &Value) -> Result<bool> {
        let name = name_of(definition);
        let text = |path: &str| {
            definition
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (group, version) = (text("/spec/group"), text("/spec/versions/0/name"));
        let kind = ApiResource {
            api_version: format!("{group}/{version}"),
            group,
            version,
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
        };
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let found = objects.list_metadata(&ListParams::default().limit(1)).await;
        if found.is_ok_and(|found| !found.items.is_empty()) {
            return Ok(false);
        }
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        gone_or(api.delete(name, &DeleteParams::default()).await.map(drop))
            .with_context(|| format!("failed to delete the CRD {name}"))?;
        Ok(true)
    }
}

/// The parser shows the lines around a mistake, and they may hold a credential.
fn unquoted(error: KubeconfigError) -> anyhow::Error {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => anyhow!("its YAML is broken at line {}, column {}", place.line(), place.column()),
            None => anyhow!("its YAML is broken"),
        },
        other => other.into(),
    }
}

fn name_of(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}

/// That something is not there is as good as having deleted it.
fn gone_or(deleted: kube::Result<()>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other,
    }
}
