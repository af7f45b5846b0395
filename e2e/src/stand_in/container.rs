//! One container as a process: what it is started with, and how it ends.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use kube::ResourceExt;
use serde_json::json;

use super::{Ground, log_of, paths::Paths, status::End, volumes::field_of};
use crate::{Ended, Process, control_plane::write_kubeconfig, image::Image, web::lock};

/// Where programs look for a token of the API server.
const TOKENS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What of a message, and what of a log in its place, comes into the status.
const MESSAGE_BYTES: usize = 4096;
const LOG_BYTES: usize = 2048;
/// A status of this and a signal's number.
const SIGNALLED: i32 = 128;

/// A container that runs. Dropped, all of its processes are gone.
pub(super) struct Running {
    process: Process,
    began: Timestamp,
    folder: PathBuf,
    log: PathBuf,
    tells_its_log: bool,
}

impl Running {
    /// Starts it; `volumes` has the folders of the Pod's volumes by name.
    pub(super) fn start(
        ground: &Ground,
        pod: &Pod,
        container: &Container,
        volumes: &[(String, PathBuf)],
    ) -> Result<Self> {
        let of_pod = ground.folder_of(&pod.namespace().unwrap_or_default(), &pod.name_any());
        let log = log_of(&of_pod, &container.name);
        let folder = log.parent().unwrap_or(&of_pod).to_owned();
        fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let name = container.image.as_deref().unwrap_or_default();
        let image = lock(&ground.images).get(name).cloned();
        let image = image.with_context(|| format!("there is no image {name}"))?;
        let paths = paths(container, &image, volumes, &folder)?;
        let words = words(container, &image, &paths)?;
        // Nothing of our environment is the container's.
        let mut command = Command::new("env");
        command
            .arg("-i")
            .args(environment(ground, pod, container, &paths, &folder)?)
            .args(words);
        command.current_dir(
            container
                .working_dir
                .as_ref()
                .map_or_else(|| folder.clone(), |at| paths.translate(at).into()),
        );
        let process = Process::start(&ground.lab, &container.name, &command, &log)?;
        Ok(Self {
            process,
            began: Timestamp::now(),
            folder,
            log,
            tells_its_log: container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError"),
        })
    }

    pub(super) fn began(&self) -> Timestamp {
        self.began
    }

    /// Waits until it ends by itself.
    pub(super) async fn ends(&mut self) -> Result<Ended> {
        self.process.wait(Duration::MAX / 4).await
    }

    /// Asks it to end, and ends it when it has not done so after this time.
    pub(super) async fn end(&mut self, grace: Duration) -> Result<Ended> {
        match self.process.terminate(grace).await {
            Ok(ended) => Ok(ended),
            Err(_) => self.process.kill9().await,
        }
    }

    /// What its status says.
    pub(super) fn report(&self, ended: Ended) -> End {
        let code = match ended {
            Ended::Status(code) => code,
            Ended::Signal(signal) => SIGNALLED + signal,
        };
        let mut message = last_of(&self.folder.join("message"), MESSAGE_BYTES);
        if message.is_empty() && code != 0 && self.tells_its_log {
            message = last_of(&self.log, LOG_BYTES);
        }
        End {
            code,
            message,
            began: self.began,
            ended: Timestamp::now(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What the program started ends with it, as in a container.
        self.process.kill_group();
    }
}

fn last_of(path: &Path, bytes: usize) -> String {
    let text = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(bytes)..]).into_owned()
}

fn paths(container: &Container, image: &Image, volumes: &[(String, PathBuf)], folder: &Path) -> Result<Paths> {
    let mut paths = Paths::default();
    for (seen, here) in image.files() {
        paths.add(seen, here);
    }
    for mount in container.volume_mounts.iter().flatten() {
        let volume = volumes.iter().find(|(name, _)| *name == mount.name);
        let (_, here) = volume.with_context(|| format!("there is no volume {}", mount.name))?;
        // A path joined with nothing is that of a folder, and the volume may be a file.
        match &mount.sub_path {
            Some(below) => paths.add(&mount.mount_path, &here.join(below)),
            None => paths.add(&mount.mount_path, here),
        }
    }
    let message = container
        .termination_message_path
        .as_deref()
        .unwrap_or("/dev/termination-log");
    paths.add(message, &folder.join("message"));
    Ok(paths)
}

fn words(container: &Container, image: &Image, paths: &Paths) -> Result<Vec<String>> {
    let command = container.command.as_deref().unwrap_or(image.command());
    let words = command.iter().chain(container.args.iter().flatten());
    let words: Vec<String> = words.map(|word| paths.translate(word)).collect();
    if words.is_empty() {
        bail!("neither the container nor its image says what to run");
    }
    Ok(words)
}

/// As `NAME=VALUE`.
fn environment(ground: &Ground, pod: &Pod, container: &Container, paths: &Paths, folder: &Path) -> Result<Vec<String>> {
    let address = ground.server.trim_start_matches("https://");
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "443"));
    let mut environment = vec![
        format!("PATH={}", std::env::var("PATH").unwrap_or_default()),
        format!("HOME={}", folder.display()),
        format!("KUBERNETES_SERVICE_HOST={host}"),
        format!("KUBERNETES_SERVICE_PORT={port}"),
    ];
    if container
        .volume_mounts
        .iter()
        .flatten()
        .any(|mount| mount.mount_path == TOKENS)
    {
        let tokens = paths.translate(TOKENS);
        let path = folder.join("kubeconfig");
        write_kubeconfig(&path, &in_cluster(ground, &tokens))?;
        environment.push(format!("KUBECONFIG={}", path.display()));
    }
    for variable in container.env.iter().flatten() {
        let value = value(pod, variable).with_context(|| format!("the variable {} has no value", variable.name))?;
        environment.push(format!("{}={}", variable.name, paths.translate(&value)));
    }
    Ok(environment)
}

fn value(pod: &Pod, variable: &EnvVar) -> Result<String> {
    let Some(from) = &variable.value_from else {
        return Ok(variable.value.clone().unwrap_or_default());
    };
    let field = from
        .field_ref
        .as_ref()
        .context("only fields of the Pod are known here")?;
    field_of(pod, field)
}

/// What a client inside of a cluster takes from files at fixed paths.
fn in_cluster(ground: &Ground, tokens: &str) -> serde_json::Value {
    let cluster = json!({ "server": ground.server, "certificate-authority": format!("{tokens}/ca.crt") });
    let namespace = fs::read_to_string(format!("{tokens}/namespace")).unwrap_or_else(|_| "default".to_owned());
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "in-cluster", "cluster": cluster }],
        "users": [{ "name": "pod", "user": { "tokenFile": format!("{tokens}/token") } }],
        "contexts": [{ "name": "pod", "context": { "cluster": "in-cluster", "user": "pod", "namespace": namespace } }],
        "current-context": "pod",
    })
}
