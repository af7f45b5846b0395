//! Flags of the program that a Job runs.

use std::path::PathBuf;

use operator_kit::flags::LogArgs;

/// What one Job is told. Nobody but the operator has to write it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// What is to be done: the document that the operator writes.
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,

    /// Who it is in the cloud: a folder with one file for each key of a Secret. Not needed for clouds without one.
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,

    /// A directory for images of the provider filestore, and its name.
    #[cfg(feature = "filestore")]
    #[arg(long, value_name = "NAME=DIR")]
    pub(crate) filestore: Vec<String>,

    /// The file that was built, instead of the one at the URL of the image.
    #[arg(long, value_name = "FILE")]
    pub(crate) artifact: Option<PathBuf>,

    /// Where word is left of how it ended.
    #[arg(long, default_value = "/dev/termination-log", value_name = "FILE")]
    pub(crate) result: PathBuf,

    /// Kubeconfig file; without it the service account of the Pod.
    #[arg(long, env = "STACKWRIGHT_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}
