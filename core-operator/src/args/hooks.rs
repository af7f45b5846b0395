//! Flags of the hook server.

use std::path::PathBuf;

use planning::addon::HookSet;

/// How lifecycle hooks of Cluster API are answered; without effect with --cluster-addons=false.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "the flags are called so")]
pub(crate) struct HookArgs {
    /// Port on which lifecycle hooks of Cluster API are answered (HTTPS, on every address); 0 lets the system choose.
    #[arg(long, default_value_t = crds::hooks::PORT, value_name = "PORT")]
    pub(crate) hook_port: u16,

    /// Folder with tls.crt and tls.key of the hook server, read anew when they change. Without it /tmp/k8s-hook-server/serving-certs is used if
    /// it is there at the start; hooks are not answered otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) hook_cert_dir: Option<PathBuf>,

    /// The hooks that Cluster API knows: those of its version 1.10, or those of 1.12; it calls no hook when it is told of one that it does not know. By itself
    /// the operator sees it in the CRD of ClusterClasses.
    #[arg(long, value_enum, default_value = "auto", value_name = "VERSION")]
    pub(crate) hook_set: HookSetChoice,
}

/// What somebody says about the hooks of Cluster API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HookSetChoice {
    /// What the operator sees
    Auto,
    /// Those of 1.10 and 1.11
    #[value(name = "v1.10")]
    V1_10,
    /// Those of 1.12 and later
    #[value(name = "v1.12")]
    V1_12,
}

impl HookSetChoice {
    /// The set that was chosen, if any.
    pub(crate) fn chosen(self) -> Option<HookSet> {
        match self {
            Self::Auto => None,
            Self::V1_10 => Some(HookSet::V1_10),
            Self::V1_12 => Some(HookSet::V1_12),
        }
    }
}

impl HookArgs {
    /// The flags that were given, where that can be told.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--hook-port", self.hook_port != crds::hooks::PORT),
            ("--hook-cert-dir", self.hook_cert_dir.is_some()),
            ("--hook-set", self.hook_set != HookSetChoice::Auto),
        ];
        flags.into_iter().filter_map(|(flag, given)| given.then_some(flag))
    }
}
