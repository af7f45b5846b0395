//! What people type who wait for an object, typed for them.

use std::process::Command;

use anyhow::{Result, bail, ensure};
use crds::conditions::ConditionType;

use crate::{Identity, Journey, Process, journey::SOON};

impl Journey {
    /// Waits by the real `kubectl wait` in two shells, one for each of these conditions of an object (`KIND/NAME`), until either ends. It has to be the
    /// first. The object need not be there yet.
    pub async fn kubectl_waits(&self, object: &str, [awaited, other]: [ConditionType; 2]) -> Result<()> {
        let created = self.kubectl_wait(object, "create").await?.wait(SOON).await?;
        ensure!(created.is_success(), "waiting for the creation of {object} {created}");
        let mut awaiting = self.kubectl_wait(object, &format!("condition={awaited}")).await?;
        let mut never = self.kubectl_wait(object, &format!("condition={other}")).await?;
        tokio::select! {
            ended = awaiting.wait(SOON) => ensure!(ended?.is_success(), "{}", awaiting.tail()),
            ended = never.wait(SOON) => bail!("waiting for {other} {}: {}", ended?, never.tail()),
        }
        Ok(())
    }

    async fn kubectl_wait(&self, object: &str, wanted: &str) -> Result<Process> {
        let name = format!("kubectl-wait-{object}-{wanted}").replace(['/', '='], "-");
        let kubeconfig = self.control_plane().kubeconfig_for(&Identity::Admin).await?;
        let mut command = Command::new(&self.lab().controlplane);
        command
            .args(["kubectl", "wait", object, "--for", wanted, "--timeout=10m"])
            .args(["--namespace", &self.namespace, "--kubeconfig"])
            .arg(kubeconfig)
            // It keeps what it discovered there.
            .env("HOME", self.folder());
        let log = self.folder().join(format!("{name}.log"));
        Process::start(self.lab(), &name, &command, &log)
    }
}
