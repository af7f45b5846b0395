//! Directories of releases as operators read them, and the releases that tests put there: our own stack, changed copies
//! of it, and real ones.
//!
//! Packing is the business of the built `kubectl-stacks`.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use crate::{built::Program, lab::workspace, summary};

/// What stands in the name of the archive of a release with its class chart.
pub const CLASS: &str = "-cluster-class-";
/// The same of the archive with its add-ons.
pub const ADD_ONS: &str = "-cluster-addon-";
/// Names a folder with real releases and the objects of a real installation.
const CORPUS_VARIABLE: &str = "STACKWRIGHT_CORPUS";
/// Where operators look below their directory of releases.
const RELEASES: &str = "cluster-stacks";
/// Beside it, so that a release appears there in one piece.
const INCOMING: &str = "incoming";
/// Beside it, so that a release disappears in one piece.
const OUTGOING: &str = "outgoing";
/// The folders of our own stacks.
const HARBOR: &str = "docker-harbor";
const QUAY: &str = "shim-quay";
const YARD: &str = "docker-yard";

/// A directory of releases (`ROOT/cluster-stacks/<tag>/`), for the flag `--release-dir`.
#[derive(Clone, Debug)]
pub struct Releases {
    root: PathBuf,
}

impl Releases {
    /// The directory at `root`, made when it is not there.
    pub fn at(root: &Path) -> Result<Self> {
        for folder in [RELEASES, INCOMING, OUTGOING] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        }
        Ok(Self { root: root.to_owned() })
    }

    /// What `--release-dir` is given.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the files of a release are, or would be.
    pub fn folder_of(&self, tag: &str) -> PathBuf {
        self.root.join(RELEASES).join(tag)
    }

    /// Puts a copy of a release there at once, in place of one with the same tag. The folder's name is the tag.
    pub fn publish(&self, release: &Path) -> Result<()> {
        let tag = release.file_name().context("a release has a name")?;
        self.publish_as(release, &tag.to_string_lossy())
    }

    /// Packs our own stack as it is in `source` (`v1`, `v2` or `v3`) as this version and puts it there; the answer is
    /// its tag.
    pub fn publish_harbor(&self, source: &str, version: &str) -> Result<String> {
        self.publish_stack(&source_of(HARBOR, source), version)
    }

    /// The same for our stack whose clusters [`crate::shim`] plays. Its `v1` is of another Kubernetes minor than its `v2`, and its `v3` is faulty.
    pub fn publish_quay(&self, source: &str, version: &str) -> Result<String> {
        self.publish_stack(&source_of(QUAY, source), version)
    }

    /// The same for our stack of kubeadm's control planes. Its `v1` is of another Kubernetes minor than its `v2`.
    pub fn publish_yard(&self, source: &str, version: &str) -> Result<String> {
        self.publish_stack(&source_of(YARD, source), version)
    }

    /// Packs the source of a stack as this version and puts it there; the answer is its tag.
    pub fn publish_stack(&self, source: &Path, version: &str) -> Result<String> {
        self.pack_and_publish(source, ["--version".as_ref(), version.as_ref()])
    }

    /// The same as the version after the newest one that is there, or as the first: node images that have not changed keep their version.
    pub fn publish_next(&self, source: &Path) -> Result<String> {
        self.pack_and_publish(source, ["--next-after".as_ref(), self.root.join(RELEASES).as_os_str()])
    }

    fn pack_and_publish(&self, source: &Path, version: [&OsStr; 2]) -> Result<String> {
        let place = tempfile::tempdir_in(self.root.join(INCOMING)).context("failed to make a folder")?;
        let release = pack(source, place.path(), version)?;
        self.publish(&release)?;
        let tag = release.file_name().context("a release has a name")?;
        Ok(tag.to_string_lossy().into_owned())
    }

    /// The same under another tag, which the files may contradict.
    pub fn publish_as(&self, release: &Path, tag: &str) -> Result<()> {
        let (incoming, target) = (self.root.join(INCOMING).join(tag), self.folder_of(tag));
        copy(release, &incoming)?;
        if target.exists() {
            self.unpublish(tag)?;
        }
        fs::rename(&incoming, &target).with_context(|| format!("failed to publish {}", target.display()))
    }

    /// Takes a release away at once.
    pub fn unpublish(&self, tag: &str) -> Result<()> {
        let (folder, outgoing) = (self.folder_of(tag), self.root.join(OUTGOING).join(tag));
        fs::rename(&folder, &outgoing).with_context(|| format!("failed to take {} away", folder.display()))?;
        fs::remove_dir_all(&outgoing).with_context(|| format!("failed to remove {}", outgoing.display()))
    }

    /// Changes the files of a release where they are, as somebody who edits them.
    pub fn edit(&self, tag: &str, change: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        change(&self.folder_of(tag))
    }
}

/// A template for `cluster-class/templates` that fails in its second line with `set a region`, but not while the release is made: then
/// the namespace is another one.
pub const FAILS_IN_USE: &str = "{{- if ne .Release.Namespace \"default\" }}\n{{ fail \"set a region\" }}\n{{- end }}\n";

/// The kinds of the objects of [`StackSource::with_extras`], in the order in which they are pruned.
pub const EXTRA_KINDS: [(&str, &str); 2] = [
    ("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate"),
    ("v1", "ConfigMap"),
];

/// What makes them.
const EXTRAS: &str = r"{{- range until (int .Values.extras) }}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
metadata:
  name: extra-{{ . }}
spec:
  template:
    spec:
      customImage: registry.example.com/extra:{{ . }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: extra-{{ . }}
data:
  number: {{ . | quote }}
{{- end }}
";

/// The source of a stack, to be changed and packed.
#[derive(Debug)]
pub struct StackSource {
    folder: tempfile::TempDir,
}

impl StackSource {
    /// A copy of our own stack as it is in this version: `v1`, `v2` or `v3`.
    pub fn harbor(version: &str) -> Result<Self> {
        Self::copied(&source_of(HARBOR, version))
    }

    /// The same of our stack whose clusters [`crate::shim`] plays.
    pub fn quay(version: &str) -> Result<Self> {
        Self::copied(&source_of(QUAY, version))
    }

    fn copied(source: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("failed to make a folder")?;
        copy(source, &folder.path().join("stack"))?;
        Ok(Self { folder })
    }

    /// Our own stack with so many further objects of each of the [`EXTRA_KINDS`], named `extra-` and a number.
    pub fn with_extras(count: usize) -> Result<Self> {
        const VALUES: &str = "cluster-class/values.yaml";
        let source = Self::harbor("v1")?;
        source.write("cluster-class/templates/extras.yaml", EXTRAS)?;
        let values = fs::read_to_string(source.path().join(VALUES)).context("failed to read the values")?;
        source.write(VALUES, &format!("{values}\nextras: {count}\n"))?;
        Ok(source)
    }

    /// Replaces a file, or adds it; the path is relative to the stack's folder.
    pub fn write(&self, path: &str, text: &str) -> Result<&Self> {
        let file = self.path().join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
        Ok(self)
    }

    /// Replaces a text in a file, which must contain it.
    pub fn replace(&self, path: &str, from: &str, to: &str) -> Result<&Self> {
        let file = self.path().join(path);
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        ensure!(text.contains(from), "{} does not contain {from:?}", file.display());
        self.write(path, &text.replace(from, to))
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) -> Result<&Self> {
        let file = self.path().join(path);
        fs::remove_file(&file).with_context(|| format!("failed to remove {}", file.display()))?;
        Ok(self)
    }

    /// The stack's folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("stack")
    }
}

/// Stands for the stack's name in the files of the small stack.
const PLACEHOLDER: &str = "STACK";
/// Files that contain it.
const NAMED: [&str; 3] = ["csctl.yaml", "cluster-class/Chart.yaml", "cluster-addon/Chart.yaml"];

/// Writes the source of a small stack of this name, with so many templates of workers, into a folder: for where many stacks are needed.
pub fn write_small_stack(folder: &Path, name: &str, workers: usize) -> Result<()> {
    copy(&workspace().join("e2e/stacks/bench"), folder)?;
    let replace = |file: &str, from: &str, to: &str| {
        let path = folder.join(file);
        let what = || format!("failed to write {}", path.display());
        let text = fs::read_to_string(&path).with_context(what)?;
        fs::write(&path, text.replace(from, to)).with_context(what)
    };
    for file in NAMED {
        replace(file, PLACEHOLDER, name)?;
    }
    replace(
        "cluster-class/values.yaml",
        "workers: 1",
        &format!("workers: {workers}"),
    )
}

/// The tag of a release of our own stack: `docker-harbor-1-34-<version>`, with dashes.
pub fn harbor_tag(version: &str) -> String {
    format!("docker-harbor-1-34-{}", version.replace('.', "-"))
}

fn source_of(stack: &str, version: &str) -> PathBuf {
    workspace().join("e2e/stacks").join(stack).join(version)
}

fn pack(stack: &Path, output: &Path, version: [&OsStr; 2]) -> Result<PathBuf> {
    let mut command = Command::new(Program::KubectlStacks.path()?);
    command.args(["release", "create"]).arg(stack);
    command.arg("--output").arg(output).args(version);
    let answer = command.output().context("failed to start kubectl-stacks")?;
    let said = String::from_utf8_lossy(&answer.stdout);
    ensure!(
        answer.status.success(),
        "kubectl-stacks made no release of {}: {}",
        stack.display(),
        String::from_utf8_lossy(&answer.stderr)
    );
    let folder = said.lines().next().and_then(|line| line.split_once(" created: "));
    let (_, folder) = folder.with_context(|| format!("kubectl-stacks names no folder: {said}"))?;
    Ok(PathBuf::from(folder))
}

/// The archive of a release in whose name this stands.
pub fn archive(release: &Path, part: &str) -> Result<PathBuf> {
    let files = fs::read_dir(release).with_context(|| format!("failed to list {}", release.display()))?;
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let archive = files.iter().map(fs::DirEntry::path).find(|path| {
        let path = path.to_string_lossy();
        path.ends_with(".tgz") && path.contains(part)
    });
    archive.with_context(|| format!("no {part} in {}", release.display()))
}

/// Packs an archive anew with so many bytes of this at a path, in place of what is there.
pub fn put_into(archive: &Path, path: &Path, size: u64, content: impl Read) -> Result<()> {
    let before = fs::read(archive).with_context(|| format!("failed to read {}", archive.display()))?;
    let file = fs::File::create(archive).with_context(|| format!("failed to write {}", archive.display()))?;
    let mut packed = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
    for entry in tar::Archive::new(GzDecoder::new(before.as_slice())).entries()? {
        let mut entry = entry?;
        let (mut header, other) = (entry.header().clone(), entry.path()?.into_owned());
        if other != path {
            packed.append_data(&mut header, &other, &mut entry)?;
        }
    }
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    packed.append_data(&mut header, path, content.take(size))?;
    packed.into_inner()?.finish()?;
    Ok(())
}

/// The folder of real releases and objects, when there is one. Without it a test says so on standard error and shows less.
pub fn corpus() -> Option<PathBuf> {
    let folder = env::var_os(CORPUS_VARIABLE).map(PathBuf::from);
    if folder.is_none() {
        summary::test_is_reduced(&format!(
            "does not run with real releases, because {CORPUS_VARIABLE} is not set"
        ));
    }
    folder
}

/// Copies a folder with everything in it; the copy can be written by its owner. Links are copied as links.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let what = || format!("failed to copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(what)?;
    for entry in fs::read_dir(from).with_context(what)? {
        let entry = entry.with_context(what)?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type().with_context(what)?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            let goal = fs::read_link(entry.path()).with_context(what)?;
            std::os::unix::fs::symlink(goal, &target).with_context(what)?;
        } else {
            fs::copy(entry.path(), &target).with_context(what)?;
            fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).with_context(what)?;
        }
    }
    Ok(())
}
