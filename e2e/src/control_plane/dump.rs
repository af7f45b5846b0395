//! What a failed test leaves to look at: the logs, and the objects of every kind that somebody installed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Event, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};

use super::{Access, Identity};
use crate::{lab::workspace, process::tail_of};

/// A dump is for a person who waits for the test's result.
const DUMP_DEADLINE: Duration = Duration::from_secs(30);

/// Dumps a control plane when it is dropped, by a panic or by a `?`, into a folder that it names on standard error;
/// unless the test has called it off at its end.
///
/// The folder is `target/e2e-failures/TEST` of the workspace, and is overwritten by the next failure of that test.
#[must_use = "dropped at once, it dumps at once"]
#[derive(Debug)]
pub struct FailureDump {
    access: Access,
    logs: Vec<PathBuf>,
    called_off: bool,
}

impl FailureDump {
    pub(super) fn new(access: Access, folder: &Path) -> Self {
        Self {
            access,
            logs: vec![folder.to_owned()],
            called_off: false,
        }
    }

    /// Takes along this log, or every `*.log` of this folder.
    pub fn with_logs(mut self, path: &Path) -> Self {
        self.logs.push(path.to_owned());
        self
    }

    /// The test has passed: no dump.
    pub fn call_off(mut self) {
        self.called_off = true;
    }

    /// Writes the dump now, into a folder that is made or emptied.
    pub async fn write(&self, into: &Path) -> Result<()> {
        if into.exists() {
            fs::remove_dir_all(into).with_context(|| format!("failed to empty {}", into.display()))?;
        }
        fs::create_dir_all(into).with_context(|| format!("failed to make {}", into.display()))?;
        for log in self.logs.iter().flat_map(|path| logs_at(path)) {
            let target = into.join(log.file_name().unwrap_or_default());
            fs::copy(&log, &target).with_context(|| format!("failed to copy {}", log.display()))?;
        }
        let client = self.access.client(&Identity::Admin).await?;
        for kind in kinds(&client).await? {
            let objects = Api::<DynamicObject>::all_with(client.clone(), &kind)
                .list(&ListParams::default())
                .await;
            let objects = objects.with_context(|| format!("failed to list {}", kind.plural))?;
            if !objects.items.is_empty() {
                let text = serde_yaml::to_string(&objects.items).context("failed to write objects as YAML")?;
                let dot = if kind.group.is_empty() { "" } else { "." };
                let path = into.join(format!("{}{dot}{}.yaml", kind.plural, kind.group));
                fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Writes the dump into its folder and says on standard error where that is.
    fn write_and_tell(&self) {
        // The test harness names each test's thread after the test.
        let test = thread::current().name().unwrap_or("unnamed").replace("::", "-");
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
        let into = target.join("e2e-failures").join(test);
        // A panic may happen inside of a runtime, and a runtime cannot wait for another one on the same thread.
        let outcome = thread::scope(|scope| {
            let dump = || -> Result<()> {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(async { tokio::time::timeout(DUMP_DEADLINE, self.write(&into)).await })?
            };
            scope.spawn(dump).join()
        });
        match outcome {
            Ok(Ok(())) => eprintln!("the state at the failure is in {}", into.display()),
            Ok(Err(error)) => eprintln!("the dump in {} is incomplete: {error:#}", into.display()),
            Err(_) => eprintln!("the dump in {} is incomplete: it panicked too", into.display()),
        }
        for log in self.logs.iter().skip(1).flat_map(|path| logs_at(path)) {
            eprintln!("last lines of {}:\n{}", log.display(), tail_of(&log));
        }
    }
}

impl Drop for FailureDump {
    fn drop(&mut self) {
        if !self.called_off {
            self.write_and_tell();
        }
    }
}

fn logs_at(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return vec![path.to_owned()];
    };
    let is_log = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "log" || extension == "jsonl")
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_log)
        .collect()
}

/// Everything that a CRD defines, and of the built-in kinds those that operators speak with.
async fn kinds(client: &Client) -> Result<Vec<ApiResource>> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone())
        .list(&ListParams::default())
        .await;
    let mut kinds = vec![
        ApiResource::erase::<Namespace>(&()),
        ApiResource::erase::<Event>(&()),
        ApiResource::erase::<ConfigMap>(&()),
    ];
    for definition in definitions.context("failed to list CRDs")?.items {
        let spec = definition.spec;
        if let Some(version) = spec.versions.iter().find(|version| version.storage) {
            kinds.push(ApiResource {
                api_version: format!("{}/{}", spec.group, version.name),
                group: spec.group.clone(),
                version: version.name.clone(),
                kind: spec.names.kind.clone(),
                plural: spec.names.plural.clone(),
            });
        }
    }
    Ok(kinds)
}
