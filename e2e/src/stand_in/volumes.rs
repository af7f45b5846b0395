//! Folders that play the volumes of a Pod. Reads Secrets, `ConfigMaps` and tokens from the API server as a kubelet does.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
        core::v1::{
            ConfigMap, DownwardAPIVolumeFile, KeyToPath, ObjectFieldSelector, Pod, Secret, ServiceAccount,
            ServiceAccountTokenProjection, Volume, VolumeProjection,
        },
    },
};
use kube::{Api, Client, ResourceExt, api::PostParams};

/// What the volume holds when nobody says it.
const MODE: i32 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// A file of a volume: its path there, and its content.
type Files = BTreeMap<String, Vec<u8>>;

/// Fills the folder of a volume, and returns where its content is.
pub(super) async fn prepare(client: &Client, pod: &Pod, volume: &Volume, folders: &Path) -> Result<PathBuf> {
    if let Some(host) = &volume.host_path {
        return Ok(host.path.clone().into());
    }
    let folder = folders.join(&volume.name);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    if volume.empty_dir.is_some() {
        return Ok(folder);
    }
    let reader = Reader { client, pod };
    let (files, mode) = reader
        .files_of(volume)
        .await
        .with_context(|| format!("the volume {} is not ready", volume.name))?;
    write(&folder, &files, mode)?;
    Ok(folder)
}

fn write(folder: &Path, files: &Files, mode: i32) -> Result<()> {
    for (name, content) in files {
        let is_inside = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_inside, "{name} leads out of its volume");
        let path = folder.join(name);
        let what = || format!("failed to write {}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(folder)).with_context(what)?;
        fs::write(&path, content).with_context(what)?;
        let mode = u32::try_from(mode).with_context(what)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).with_context(what)?;
    }
    Ok(())
}

struct Reader<'a> {
    client: &'a Client,
    pod: &'a Pod,
}

impl Reader<'_> {
    async fn files_of(&self, volume: &Volume) -> Result<(Files, i32)> {
        if let Some(secret) = &volume.secret {
            let name = secret.secret_name.clone().unwrap_or_default();
            let files = self.secret(&name, secret.items.as_deref(), secret.optional).await?;
            return Ok((files, secret.default_mode.unwrap_or(MODE)));
        }
        if let Some(map) = &volume.config_map {
            let files = self.config_map(&map.name, map.items.as_deref(), map.optional).await?;
            return Ok((files, map.default_mode.unwrap_or(MODE)));
        }
        if let Some(downward) = &volume.downward_api {
            let files = self.downward(downward.items.as_deref().unwrap_or_default())?;
            return Ok((files, downward.default_mode.unwrap_or(MODE)));
        }
        let Some(projected) = &volume.projected else {
            bail!("the stand-in of the kubelet knows no volume of this kind");
        };
        let mut files = Files::new();
        for source in projected.sources.iter().flatten() {
            files.extend(self.projection(source).await?);
        }
        Ok((files, projected.default_mode.unwrap_or(MODE)))
    }

    async fn projection(&self, source: &VolumeProjection) -> Result<Files> {
        if let Some(token) = &source.service_account_token {
            return Ok(Files::from([(
                token.path.clone(),
                self.token(token).await?.into_bytes(),
            )]));
        }
        if let Some(secret) = &source.secret {
            return self
                .secret(&secret.name, secret.items.as_deref(), secret.optional)
                .await;
        }
        if let Some(map) = &source.config_map {
            return self.config_map(&map.name, map.items.as_deref(), map.optional).await;
        }
        if let Some(downward) = &source.downward_api {
            return self.downward(downward.items.as_deref().unwrap_or_default());
        }
        bail!("the stand-in of the kubelet knows no projection of this kind")
    }

    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    async fn secret(&self, name: &str, items: Option<&[KeyToPath]>, optional: Option<bool>) -> Result<Files> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace());
        let found = secrets
            .get_opt(name)
            .await
            .with_context(|| format!("failed to read the Secret {name}"))?;
        let Some(secret) = found else {
            ensure!(optional == Some(true), "there is no Secret {name}");
            return Ok(Files::new());
        };
        let data = secret.data.unwrap_or_default().into_iter();
        chosen(data.map(|(key, ByteString(value))| (key, value)).collect(), items)
    }

    async fn config_map(&self, name: &str, items: Option<&[KeyToPath]>, optional: Option<bool>) -> Result<Files> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace());
        let found = maps
            .get_opt(name)
            .await
            .with_context(|| format!("failed to read the ConfigMap {name}"))?;
        let Some(map) = found else {
            ensure!(optional == Some(true), "there is no ConfigMap {name}");
            return Ok(Files::new());
        };
        let data = map.data.unwrap_or_default().into_iter();
        chosen(data.map(|(key, value)| (key, value.into_bytes())).collect(), items)
    }

    fn downward(&self, items: &[DownwardAPIVolumeFile]) -> Result<Files> {
        let file = |item: &DownwardAPIVolumeFile| {
            let field = item
                .field_ref
                .as_ref()
                .context("only fields of the Pod are known here")?;
            Ok((item.path.clone(), field_of(self.pod, field)?.into_bytes()))
        };
        items.iter().map(file).collect()
    }

    /// A token that is worth nothing once the Pod is gone.
    async fn token(&self, wanted: &ServiceAccountTokenProjection) -> Result<String> {
        let spec = self.pod.spec.as_ref();
        let account = spec
            .and_then(|spec| spec.service_account_name.clone())
            .unwrap_or_else(|| "default".to_owned());
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), &self.namespace());
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: wanted.audience.clone().map(|audience| vec![audience]),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(self.pod.name_any()),
                    uid: self.pod.uid(),
                }),
                expiration_seconds: Some(wanted.expiration_seconds.unwrap_or(TOKEN_SECONDS)),
            }),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_subresource::<TokenRequest, TokenRequest>("token", &account, &PostParams::default(), &request)
            .await
            .with_context(|| format!("failed to make a token of {account}"))?;
        answer
            .status
            .and_then(|status| status.token)
            .context("there is no token in the answer")
    }
}

/// All keys, or those that are asked for under the paths that are asked for.
fn chosen(mut content: Files, items: Option<&[KeyToPath]>) -> Result<Files> {
    let Some(items) = items else { return Ok(content) };
    let file = |item: &KeyToPath| {
        let value = content
            .remove(&item.key)
            .with_context(|| format!("there is no key {}", item.key))?;
        Ok((item.path.clone(), value))
    };
    items.iter().map(file).collect()
}

/// What a Pod says of itself: `metadata.name`, `metadata.annotations['key']` and their like.
pub(super) fn field_of(pod: &Pod, field: &ObjectFieldSelector) -> Result<String> {
    let (path, key) = match field.field_path.split_once("['") {
        Some((path, key)) => (path, Some(key.trim_end_matches("']"))),
        None => (field.field_path.as_str(), None),
    };
    let of = |values: &BTreeMap<String, String>| {
        if let Some(key) = key {
            return values.get(key).cloned().unwrap_or_default();
        }
        let lines: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
        lines.join("\n")
    };
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => of(pod.labels()),
        "metadata.annotations" => of(pod.annotations()),
        other => bail!("the stand-in of the kubelet does not know the field {other}"),
    })
}
