//! The demo, as a user without a terminal sees it: told to its end, interrupted in a cluster of somebody else, and without its
//! operator.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Seek},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    ControlPlane, Options, eventually,
    kubelet::{self, Kind},
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, api::ListParams};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Several control planes may start at once on two busy cores.
const LINE_DEADLINE: Duration = Duration::from_mins(3);
const SOON: Duration = Duration::from_secs(30);

/// A running demo; everything that it leaves on disk is in a folder of its own.
struct Demo {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    /// What it writes to standard error, which is on the same screen.
    errors: fs::File,
    temporary: TempDir,
}

impl Demo {
    fn start(arguments: &[&str]) -> Result<Self> {
        let temporary = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        let errors = tempfile::tempfile()?;
        command.arg("demo").args(arguments).env("TMPDIR", temporary.path());
        // It is not a test itself, even where one runs it.
        command.env_remove("STACKWRIGHT_SUMMARY");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone()?);
        let mut child = command.spawn().context("failed to start the demo")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            // The receiver goes when the test is over.
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Ok(Self {
            child,
            lines,
            seen: Vec::new(),
            errors,
            temporary,
        })
    }

    /// Reads up to the first line that contains this.
    fn until(&mut self, text: &str) -> Result<()> {
        loop {
            let line = self.lines.recv_timeout(LINE_DEADLINE);
            let line = line.with_context(|| format!("no line with {text:?} after:\n{}", self.seen.join("\n")))?;
            let found = line.contains(text);
            self.seen.push(line);
            if found {
                return Ok(());
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = Pid::from_raw(i32::try_from(self.child.id())?).context("no process id")?;
        Ok(kill_process(id, signal)?)
    }

    /// Reads to the end; the answer is the exit code, and everything that was told, errors last.
    fn end(&mut self) -> Result<(Option<i32>, String)> {
        while let Ok(line) = self.lines.recv_timeout(LINE_DEADLINE) {
            self.seen.push(line);
        }
        let status = self.child.wait()?;
        let mut told = self.seen.join("\n") + "\n";
        self.errors.rewind()?;
        self.errors.read_to_string(&mut told)?;
        Ok((status.code(), told))
    }

    /// Neither a process that works in its folder nor anything in the folder is left.
    async fn left_nothing(&self) -> Result<()> {
        let folder = self.temporary.path();
        eventually(SOON, "everything of the demo to be gone", async || {
            let processes = processes_of(folder);
            ensure!(processes.is_empty(), "these run: {processes:?}");
            let files: Vec<_> = fs::read_dir(folder)?.collect();
            ensure!(files.is_empty(), "these are left: {files:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process ids of programs that were given a path in this folder, with their command lines.
fn processes_of(folder: &Path) -> Vec<(i32, String)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let mut line = String::new();
        fs::File::open(entry.path().join("cmdline"))
            .ok()?
            .read_to_string(&mut line)
            .ok()?;
        Some((id, line.replace('\0', " ")))
    });
    processes
        .filter(|(_, line)| line.contains(&*folder.to_string_lossy()))
        .collect()
}

/// The number before a word in the last line that begins with a key.
fn number(told: &str, key: &str, word: &str) -> Result<u32> {
    let line = told.lines().map(str::trim).rfind(|line| line.starts_with(key));
    let line = line.with_context(|| format!("no line {key} in:\n{told}"))?;
    let words: Vec<_> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let place = words
        .windows(2)
        .find(|pair| pair[1] == word && pair[0].parse::<u32>().is_ok());
    let [number, _] = place.with_context(|| format!("no number of {word} in {line:?}"))? else {
        bail!("two words")
    };
    Ok(number.parse()?)
}

/// The seconds of the last change, and those of the whole part, rounded up.
fn seconds(told: &str) -> Result<(f64, f64)> {
    let changes = told
        .lines()
        .filter_map(|line| line.trim_start().split_once(" s  ")?.0.parse::<f64>().ok());
    let whole = told
        .lines()
        .rev()
        .find_map(|line| line.trim_start().strip_prefix("seconds")?.split_whitespace().next());
    let last = changes.fold(0.0, f64::max);
    let whole: f64 = whole.with_context(|| format!("no seconds in:\n{told}"))?.parse()?;
    Ok((last, whole + 0.1))
}

/// Fails unless these texts are there one after the other.
fn in_this_order<'a>(told: &str, expected: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut rest = told;
    for text in expected {
        let place = rest
            .find(text)
            .with_context(|| format!("{text:?} is missing, or too early, in:\n{told}"))?;
        rest = &rest[place..];
    }
    Ok(())
}

#[tokio::test]
async fn the_first_part_tells_its_six_acts_and_ends_with_numbers() -> Result<()> {
    let mut demo = Demo::start(&["--part", "stacks"])?;
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(0), "{told}");
    let expected = [
        "1/6  Subscribe",
        "7 objects of docker-harbor-1-34-v1: waiting",
        "7 objects of docker-harbor-1-34-v1: synced (ClusterClass,",
        "v1 is usable after",
        "2/6  A new release appears",
        "v2 is usable after",
        "3/6  Somebody deletes a template and edits a class",
        "ClusterClass docker-harbor-1-34-v2: synced (mended after",
        "The template was back after",
        "4/6  An old release is dropped",
        "ClusterStackRelease docker-harbor-1-34-v1: gone",
        "v1 and its 7 objects are gone after",
        "5/6  A broken release appears",
        "its status says why it cannot be used",
        "docker-harbor-1-34-cluster-class-v3.tgz",
        "the stack stays ready",
        "6/6  The stack is deleted",
        "Nothing is left after",
        "In numbers",
    ];
    in_this_order(&told, expected)?;
    assert_eq!(
        number(&told, "objects", "applied")?,
        13,
        "7 of v1 and 6 of v2; what came back was repaired"
    );
    assert_eq!(number(&told, "objects", "repaired")?, 2);
    assert_eq!(number(&told, "objects", "removed")?, 13);
    assert_eq!(number(&told, "objects", "left")?, 0);
    assert!(number(&told, "writes", "by")? >= 28, "one for each object at least");
    assert!(!told.contains('\x1b'), "no escape sequences without a terminal");
    demo.left_nothing().await
}

/// On the real Cluster API: what is told is what its objects and ours say.
#[tokio::test]
async fn the_second_part_tells_the_life_of_a_cluster_and_its_add_ons() -> Result<()> {
    let mut demo = Demo::start(&["--part", "clusters"])?;
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(0), "{told}");
    let expected = [
        "1/5  A cluster is made of a class",
        "Stage network: waiting",
        "readyReplicas",
        "A machine joins.",
        "Stage lighthouse: done",
        "7 objects of two charts are as the release wants them",
        "2/5  Class and Kubernetes are upgraded together",
        "holds Kubernetes back at v1.34.0",
        "BeforeClusterUpgrade",
        "Nodes start Pods again.",
        "Cluster API upgraded Kubernetes to v1.35.0",
        "3/5  Somebody breaks two add-ons",
        "kubectl -n kube-system delete deployment cluster-addon-network",
        "kubectl -n quay edit configmap cluster-addon-lighthouse",
        "Both were put back: a new Deployment",
        "put back ",
        "4/5  A faulty release, and the next",
        "its ClusterAddon says what is wrong",
        "set lamp",
        "The add-ons are those of shim-quay-1-35-v4 after",
        "5/5  The cluster is deleted",
        "The lighthouse went first",
        "In numbers",
    ];
    in_this_order(&told, expected)?;
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("/data/region, changed by somebody"), "{told}");
    let (last, all) = seconds(&told)?;
    assert!(last <= all, "told by the clock of the whole part: {told}");
    assert!(!told.contains("RAN ON"), "that is for the summary of tests: {told}");
    assert!(!told.contains('\x1b'), "no escape sequences without a terminal");
    demo.left_nothing().await
}

#[tokio::test]
async fn the_second_part_can_be_interrupted_and_leaves_nothing() -> Result<()> {
    let mut demo = Demo::start(&["--part", "clusters"])?;
    demo.until("Stage network: waiting")?;
    demo.signal(Signal::INT)?;
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(130), "{told}");
    demo.left_nothing().await
}

/// What the demo tells of node images, wherever they go to.
fn told_of_images(kind: &str) -> Vec<String> {
    let of_kind = |words: &str| format!("{kind} docker-harbor-1-34-{words}");
    [
        "1/8  Subscribe",
        &of_kind("harbor-node-v1: sending ("),
        "In the middle of it the source goes away",
        &of_kind("harbor-node-v1: ready (48 MiB, verified)"),
        "7 objects of docker-harbor-1-34-v1: waiting",
        "The source was asked for the rest alone, from ",
        "2/8  A new release appears",
        "nothing was sent",
        "4/8  An old release is dropped",
        "The node image stays, because v2 needs it.",
        "6/8  A node image is given up on its way",
        &of_kind("harbor-node-next-v2: sending ("),
        "The platform team changes its mind",
        &of_kind("harbor-node-next-v2: gone"),
        "no half image, and no trace of one",
        "7/8  A node image is built by a Job",
        "cat image image > twice",
        &of_kind("harbor-node-built-v3: building"),
        "Job img-",
        "Pod img-",
        "The script is done",
        "kubectl logs -n stackwright-demo img-",
        "a disk for harbor: first its boot code",
        "done: a raw disk of 64 MiB",
        &of_kind("harbor-node-built-v3: ready (64 MiB,"),
        "The other container of the Pod sent the 64 MiB, and verified them",
        "8/8  The stack is deleted",
        "Job img-",
        "Nothing is left after",
        "The node images went, each with its last release",
        "In numbers",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The demo with node images, played to its end.
async fn play_with_images(provider: &str, kind: &str) -> Result<()> {
    let mut demo = Demo::start(&["--provider", provider])?;
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(0), "{told}");
    in_this_order(&told, told_of_images(kind).iter().map(String::as_str))?;
    assert_eq!(
        number(&told, "objects", "applied")?,
        19,
        "6 of the release whose image is built, beside those without images"
    );
    let (kind, _) = kubelet::best()?;
    let ran = match kind {
        Kind::Real => "Pods run on that node, in containers",
        Kind::StandIn => "Pods run as processes of this machine and in no containers, because it has no node: ",
    };
    assert!(told.contains(ran), "{told}");
    assert_eq!(number(&told, "objects", "left")?, 0);
    assert!(!told.contains('\x1b'), "no escape sequences without a terminal");
    demo.left_nothing().await
}

#[tokio::test]
async fn with_node_images_in_a_directory_the_demo_shows_them_going_on_shared_given_up_and_built() -> Result<()> {
    play_with_images("filestore", "FileStoreNodeImageRelease").await
}

#[tokio::test]
async fn with_a_real_glance_the_demo_shows_the_same() -> Result<()> {
    if openstack_lab::real::Installed::find()?.is_none() {
        return Ok(());
    }
    play_with_images("openstack", "OpenStackNodeImageRelease").await
}

#[tokio::test]
async fn releases_that_cannot_play_are_named_with_what_is_wrong() -> Result<()> {
    let place = tempfile::tempdir()?;
    let directory = place.path().to_str().context("a path")?;
    let (code, told) = Demo::start(&["--releases", directory])?.end()?;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("<provider>-<name>-<major>-<minor>-<version>"), "{told}");
    assert!(!told.contains("starting"), "nothing is started for that: {told}");

    let release = place.path().join("docker-harbor-1-34-v1");
    fs::create_dir(&release)?;
    fs::write(release.join("metadata.yaml"), "not metadata")?;
    let mut demo = Demo::start(&["--releases", directory])?;
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(1), "{told}");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = "docker-harbor-1-34-v1 cannot be used, and the demo needs releases that can: unable to use the release \
                  docker-harbor-1-34-v1: metadata.yaml: is not what this file must be";
    assert!(told.contains(reason), "{told}");
    Ok(())
}

#[tokio::test]
async fn interrupted_in_a_given_cluster_the_demo_leaves_it_as_it_was() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    let (namespaces, definitions) = (
        Api::<Namespace>::all(client.clone()),
        Api::<CustomResourceDefinition>::all(client),
    );
    let kubeconfig = control_plane.kubeconfig_path();
    let mut demo = Demo::start(&[
        "--kubeconfig",
        kubeconfig.to_str().context("a path")?,
        "--namespace",
        "harbour",
        "--provider",
        "filestore",
    ])?;
    // Then there are a release with all of its objects, an image that is whole, and one that is not.
    demo.until("harbor-node-next-v2: sending (")?;
    assert!(namespaces.get_opt("harbour").await?.is_some());
    demo.signal(Signal::INT)?;
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("No image is built here"), "{told}");
    assert!(namespaces.get_opt("harbour").await?.is_none(), "{told}");
    let left = definitions.list_metadata(&ListParams::default()).await?.items;
    assert!(left.is_empty(), "{left:?}");
    demo.left_nothing().await?;
    control_plane.stop().await
}

#[tokio::test]
async fn without_its_operator_the_demo_fails_and_names_the_log() -> Result<()> {
    let mut demo = Demo::start(&[])?;
    demo.until("1/6")?;
    let folder = demo.temporary.path().to_owned();
    let operators = processes_of(&folder)
        .into_iter()
        .filter(|(_, line)| line.contains("core-operator --kubeconfig"));
    let ids: Vec<_> = operators.map(|(id, _)| id).collect();
    for id in ids {
        // The second one is its guard, which may be gone by now.
        let _ = kill_process(Pid::from_raw(id).context("no process id")?, Signal::KILL);
    }
    let (code, told) = demo.end()?;
    assert_eq!(code, Some(1), "{told}");
    let named = told
        .lines()
        .find_map(|line| line.trim().strip_prefix("The operator's log: "));
    let log = Path::new(named.with_context(|| format!("no log in:\n{told}"))?);
    assert!(fs::read_to_string(log)?.contains("metrics endpoint is up"), "{told}");
    assert!(told.contains(" of 6 failed"), "{told}");
    assert_eq!(processes_of(&folder), [], "{told}");
    Ok(())
}
