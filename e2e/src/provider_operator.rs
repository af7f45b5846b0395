//! A provider operator of one journey: a process of its own with an identity of its own, which looks after the journey's namespace. Which clouds there are
//! is the business of whoever starts it.

use std::{ffi::OsString, process::Command};

use anyhow::Result;

use crate::{Identity, Journey, Operator, built::Program, operator::sources_of_this_machine};

/// Starts one for these providers, as its user would, with the releases of the journey. Further flags come last, and win.
///
/// Its log is appended to `provider-operator.log` in the folder of the journey, and its cache there outlives it.
pub async fn start(journey: &Journey, providers: &str, flags: impl IntoIterator<Item = OsString>) -> Result<Operator> {
    let identity = Identity::User {
        name: format!("provider-{}", journey.namespace),
        groups: vec!["system:masters".to_owned()],
    };
    let kubeconfig = journey.control_plane().kubeconfig_for(&identity).await?;
    let mut command = Command::new(Program::ProviderOperator.path()?);
    command.arg("--providers").arg(providers);
    command.args(["--local", "--leader-elect=false"]);
    command.args([
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
    ]);
    command.arg("--namespace").arg(&journey.namespace);
    command.arg("--kubeconfig").arg(kubeconfig);
    command.arg("--release-dir").arg(journey.releases.root());
    command.args(sources_of_this_machine(&journey.folder().join("cache-of-the-provider")));
    command.args(flags);
    Operator::start_as(journey.lab(), &command, &journey.folder().join("provider-operator.log"))
}
