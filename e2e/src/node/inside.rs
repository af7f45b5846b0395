//! The first process in the namespaces of a node: prepares what the programs find there whatever they are told, starts them, and buries every
//! process that loses its parent. When it ends, the kernel ends all others.
//!
//! Everything that it changes is seen in these namespaces alone.

use std::{
    env, fs,
    io::ErrorKind,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{WaitOptions, wait};
use serde::{Deserialize, Serialize};

use super::configuration::{KUBECONFIG, NAME, SOCKET, Snapshotter, containerd};
use crate::lab::NodePrograms;

/// In the folder of the node: what is to be done.
pub(super) const ORDER: &str = "node.json";
/// What the programs use wherever they are told to be.
const USED_FOLDERS: [&str; 5] = [
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/log/containers",
    "/run/containerd",
    "/run/netns",
];
/// Settings of the whole machine that a kubelet changes unless they have these values.
const SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];
const DEADLINE: Duration = Duration::from_mins(2);
const INTERVAL: Duration = Duration::from_millis(20);

/// What the first process has to know.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) programs: NodePrograms,
    /// The address that the kubelet gives as that of the node.
    pub(super) address: String,
}

/// Runs the node whose folder this is until one of its programs ends, which is an error. The namespaces have to be its own.
pub fn run(folder: &Path) -> Result<()> {
    ensure!(
        std::process::id() == 1,
        "this is for the first process of a node: the tests start it"
    );
    let order = fs::read(folder.join(ORDER)).context("failed to read what to do")?;
    let order: Order = serde_json::from_slice(&order).context("failed to understand what to do")?;
    let scratch = folder.join("scratch");
    cover(folder, &scratch)?;
    call("ip", &["link", "set", "lo", "up"])?;
    let containerd = start_containerd(folder, &order.programs, snapshotter(&scratch)?)?;
    // Images are imported from outside meanwhile.
    let kubeconfig = folder.join(KUBECONFIG);
    until("the control plane", || kubeconfig.exists())?;
    let kubelet = start_kubelet(folder, &order)?;
    bury(&[("containerd", &containerd), ("kubelet", &kubelet)])
}

/// Gives the programs empty folders, and settings that they need not change.
fn cover(folder: &Path, scratch: &Path) -> Result<()> {
    fs::create_dir_all(scratch).context("failed to make a folder")?;
    let mut covered = Vec::new();
    for used in USED_FOLDERS.map(Path::new) {
        let place = place_for(used, folder);
        if !covered.contains(&place) {
            fs::create_dir_all(&place).with_context(|| format!("failed to make {}", place.display()))?;
            call("mount", &["-t", "tmpfs", "tmpfs", text(&place)?])?;
            covered.push(place);
        }
        fs::create_dir_all(used).with_context(|| format!("failed to make {}", used.display()))?;
    }
    for (name, value) in SETTINGS {
        let (copy, setting) = (scratch.join(name.replace('/', "-")), Path::new("/proc/sys").join(name));
        if setting.exists() {
            fs::write(&copy, format!("{value}\n")).with_context(|| format!("failed to write {}", copy.display()))?;
            call("mount", &["--bind", text(&copy)?, text(&setting)?])?;
        }
    }
    Ok(())
}

/// The folder itself where it is there, else the nearest above that is: nothing is made on the machine's own disk. Not what holds the files of the
/// node, though.
fn place_for(used: &Path, folder: &Path) -> PathBuf {
    let needed = |place: &Path| {
        let home = env::home_dir().unwrap_or_default();
        place.parent().is_none() || folder.starts_with(place) || home.starts_with(place)
    };
    let existing = used.ancestors().find(|place| place.is_dir());
    existing.filter(|place| !needed(place)).unwrap_or(used).to_owned()
}

/// Whether layers can be mounted over layers here.
fn snapshotter(scratch: &Path) -> Result<Snapshotter> {
    let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| scratch.join(name));
    for folder in [&lower, &upper, &work, &merged] {
        fs::create_dir_all(folder).context("failed to make a folder")?;
    }
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    Ok(
        match call("mount", &["-t", "overlay", "overlay", "-o", &layers, text(&merged)?]) {
            Ok(()) => Snapshotter::Overlay,
            Err(_) => Snapshotter::Native,
        },
    )
}

fn start_containerd(folder: &Path, programs: &NodePrograms, snapshotter: Snapshotter) -> Result<Child> {
    let configuration = folder.join("containerd.toml");
    fs::write(&configuration, containerd(folder, programs, snapshotter)).context("failed to write containerd.toml")?;
    let mut command = Command::new(programs.containerd.join("containerd"));
    command.arg("--config").arg(&configuration);
    // It starts its shims, runc and the plugins by name.
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths = env::join_paths(
        [programs.containerd.clone()]
            .into_iter()
            .chain(env::split_paths(&paths)),
    );
    command.env("PATH", paths.context("a folder of PATH cannot be passed on")?);
    let child = start(command, &folder.join("containerd.log"))?;
    until("containerd", || UnixStream::connect(folder.join(SOCKET)).is_ok())?;
    Ok(child)
}

fn start_kubelet(folder: &Path, order: &Order) -> Result<Child> {
    let mut command = Command::new(order.programs.kubelet.join("kubelet"));
    command
        .arg("--config")
        .arg(folder.join("kubelet.yaml"))
        .arg("--kubeconfig")
        .arg(folder.join(KUBECONFIG))
        .args(["--hostname-override", NAME, "--node-ip", &order.address])
        .arg("--root-dir")
        .arg(folder.join("kubelet"))
        .arg("--cert-dir")
        .arg(folder.join("kubelet/pki"));
    start(command, &folder.join("kubelet.log"))
}

fn start(mut command: Command, log: &Path) -> Result<Child> {
    let output = fs::File::create(log).with_context(|| format!("failed to make {}", log.display()))?;
    let errors = output.try_clone().context("failed to share a log")?;
    command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("failed to start {}", command.get_program().display()))
}

/// Returns when one of these has ended; whoever else ends is forgotten.
fn bury(programs: &[(&str, &Child)]) -> Result<()> {
    loop {
        let ended = wait(WaitOptions::empty()).context("failed to wait for the processes of the node")?;
        let Some((id, status)) = ended else { continue };
        let id = u32::try_from(id.as_raw_nonzero().get()).unwrap_or_default();
        if let Some((name, _)) = programs.iter().find(|(_, child)| child.id() == id) {
            bail!("{name} has ended: {status:?}");
        }
    }
}

fn until(what: &str, mut reached: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + DEADLINE;
    while !reached() {
        ensure!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// Runs a program of the machine to its end.
pub(super) fn call(program: &str, arguments: &[&str]) -> Result<()> {
    let said = match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no {program} on this machine"),
        said => said.with_context(|| format!("failed to run {program}"))?,
    };
    ensure!(
        said.status.success(),
        "{program} {} ends with {}: {}",
        arguments.join(" "),
        said.status,
        String::from_utf8_lossy(&said.stderr).trim()
    );
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not text", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_made_in_a_covered_one_unless_the_node_lives_there() {
        let elsewhere = Path::new("/somewhere/else");
        assert_eq!(place_for(Path::new("/proc/no/such"), elsewhere), Path::new("/proc"));
        assert_eq!(place_for(Path::new("/proc/self"), elsewhere), Path::new("/proc/self"));
        let within = Path::new("/proc/home");
        assert_eq!(
            place_for(Path::new("/proc/no/such"), within),
            Path::new("/proc/no/such")
        );
    }
}
