//! Flags of the Go operator for what this version does not do yet: a Deployment that was made for it starts ours as it is.

use std::path::PathBuf;

/// Flags without effect.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LaterArgs {
    /// Of the Go operator; without effect, as this version answers no hooks of Cluster API.
    #[arg(long, value_name = "PORT")]
    hook_port: Option<u16>,

    /// As --hook-port.
    #[arg(long, value_name = "DIR")]
    hook_cert_dir: Option<PathBuf>,
}

impl LaterArgs {
    /// The flags that were given, for a word in the log.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("--hook-port", self.hook_port.is_some()),
            ("--hook-cert-dir", self.hook_cert_dir.is_some()),
        ];
        flags
            .into_iter()
            .filter_map(|(flag, given)| given.then_some(flag))
            .collect()
    }
}
