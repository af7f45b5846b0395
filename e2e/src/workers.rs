//! What Jobs of the provider operator need beside a kubelet: the images that their containers are of, and an operator that is the same user as they
//! are. It makes no Jobs; the operator does.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    built::Program,
    image::Image,
    kubelet::{Kind, Kubelet},
};

/// The image with a shell, `cat` and `sleep`, in which scripts build.
pub const SHELL: &str = "lab.local/shell:1";
/// The image with the operator, of whose program Jobs are made.
pub const WORKER: &str = "lab.local/provider-operator:1";
/// The user that the containers of Jobs are.
const USER: u32 = 65532;

/// Makes both images known to a kubelet.
pub fn import(kubelet: &Kubelet) -> Result<()> {
    kubelet.import_image(&Image::shell(SHELL))?;
    // Without certificates of authorities, which nobody needs in a lab.
    kubelet.import_image(&Image::new(WORKER).program(&Program::ProviderOperator.path()?, "/provider-operator"))
}

/// The flags by which the operator makes Jobs of that image. `store` is a directory that they have as the store `default`.
pub fn flags(store: Option<&Path>) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec!["--jobs".into(), format!("--worker-image={WORKER}").into()];
    if let Some(store) = store {
        let mut volume = OsString::from("--job-volume=default=host:");
        volume.push(store);
        flags.push(volume);
    }
    flags
}

/// The same command as the user that Jobs are: who writes to a directory beside them has to be. The stand-in runs all as the user that it is itself.
pub fn as_jobs(kind: Kind, command: Command) -> Command {
    if kind == Kind::StandIn {
        return command;
    }
    let mut same = Command::new("setpriv");
    same.args([
        format!("--reuid={USER}"),
        format!("--regid={USER}"),
        "--clear-groups".to_owned(),
        // Who becomes another user is not told any more when its guard dies, unless it asks for that anew.
        "--pdeathsig=KILL".to_owned(),
    ]);
    same.arg(command.get_program()).args(command.get_args());
    same
}

/// Gives a file or folder to the user that Jobs are, and to nobody else.
pub fn give_to_jobs(kind: Kind, path: &Path) -> Result<()> {
    if kind == Kind::StandIn {
        return Ok(());
    }
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    chown(path, Some(USER), Some(USER))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .with_context(|| format!("failed to give {} to Jobs", path.display()))
}
