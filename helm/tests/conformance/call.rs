//! One call of `helm template`, answered by our library and by the real binary.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::GzDecoder;
use helm::answers::{Answers, Refusing};
use helm::chart::ArchiveLimits;
use helm::{Chart, Profile, RenderOptions, yaml};

use crate::lab;

/// The files of a chart by their paths in it.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Where the chart of a call is.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// In a folder or an archive.
    Path(PathBuf),
    /// In memory; written to a folder for the real helm.
    Files(Files),
}

/// The arguments of `helm template`.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) chart: Source,
    pub(crate) release: String,
    pub(crate) namespace: String,
    pub(crate) values: &'static str,
    pub(crate) kube_version: Option<&'static str>,
    pub(crate) api_versions: Vec<String>,
    pub(crate) include_crds: bool,
    /// Whose answer our library gives.
    pub(crate) profile: &'static Profile,
    /// What our library is told of chance and time.
    pub(crate) answers: Arc<dyn Answers>,
}

impl Call {
    /// A call that asks for nothing special.
    pub(crate) fn new(name: impl Into<String>, chart: Source) -> Self {
        Self {
            name: name.into(),
            chart,
            release: "tested".to_owned(),
            namespace: "ns".to_owned(),
            values: "",
            kube_version: None,
            api_versions: Vec::new(),
            include_crds: false,
            profile: Profile::V3_19,
            answers: Arc::new(Refusing),
        }
    }

    pub(crate) fn with_values(self, values: &'static str) -> Self {
        Self { values, ..self }
    }

    /// The same call of another Helm.
    pub(crate) fn of(self, profile: &'static Profile) -> Self {
        Self { profile, ..self }
    }

    /// What our library answers: the standard output, or the error.
    pub(crate) fn ours(&self) -> String {
        let limits = ArchiveLimits::default();
        let loaded = match &self.chart {
            Source::Path(path) if path.is_dir() => Chart::from_files(files_below(path), &limits),
            Source::Path(path) => Chart::from_archive(&std::fs::read(path).unwrap(), &limits),
            Source::Files(files) => Chart::from_files(files.clone(), &limits),
        };
        let chart = match loaded {
            Ok(chart) => chart,
            Err(error) => return format!("Error: {}\n", error.helm_text(self.profile)),
        };
        let options = RenderOptions {
            kube_version: self.kube_version.map(str::to_owned),
            api_versions: self.api_versions.clone(),
            include_crds: self.include_crds,
            profile: self.profile,
            answers: Arc::clone(&self.answers),
            ..RenderOptions::new(&self.release, &self.namespace)
        };
        let values = yaml::parse(self.values.as_bytes()).unwrap();
        match chart.render(&values, &options) {
            Ok(rendering) => String::from_utf8_lossy(&rendering.stdout()).into_owned(),
            Err(error) => error.stderr(),
        }
    }

    /// What the real helm answers, in the same form.
    pub(crate) fn theirs(&self, binary: &Path) -> String {
        let folder = tempfile::tempdir().unwrap();
        let chart = match &self.chart {
            Source::Path(path) => path,
            Source::Files(files) => {
                write_files(folder.path(), files);
                folder.path()
            }
        };
        let chart = chart.display().to_string();
        let mut arguments = vec![
            "template",
            &self.release,
            &chart,
            "--namespace",
            &self.namespace,
            "--values",
            "-",
        ];
        if let Some(version) = self.kube_version {
            arguments.extend(["--kube-version", version]);
        }
        for version in &self.api_versions {
            arguments.extend(["--api-versions", version]);
        }
        if self.include_crds {
            arguments.push("--include-crds");
        }
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        lab::run(binary, &arguments, self.values)
    }
}

/// The files of a folder.
pub(crate) fn files_below(root: &Path) -> Files {
    let mut files = Vec::new();
    let mut pending = lab::entries(root);
    pending.reverse();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(lab::entries(&path).into_iter().rev());
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
    files
}

/// The files of an archive, without the folder around them.
pub(crate) fn files_in(archive: &Path) -> Files {
    let archive = std::fs::File::open(archive).unwrap();
    let mut files = Vec::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut data = Vec::new();
        entry.read_to_end(&mut data).unwrap();
        if let Some((_, name)) = path
            .split_once('/')
            .filter(|(_, name)| !name.ends_with('/') && !name.is_empty())
        {
            files.push((name.to_owned(), data));
        }
    }
    files
}

pub(crate) fn write_files(folder: &Path, files: &Files) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Does something for each call, several at once; gives the results in the order of the calls.
pub(crate) fn for_each<C: Sync, T: Send>(calls: &[C], work: impl Fn(&C) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut results = Vec::new();
        while let Some((position, call)) = calls.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            results.push((position, work(call)));
        }
        results
    };
    let mut results: Vec<_> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The lines around the first difference, for people.
pub(crate) fn difference(ours: &str, theirs: &str) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let line = ours
        .lines()
        .zip(theirs.lines())
        .take_while(|(ours, theirs)| ours == theirs)
        .count();
    let around = |text: &str| text.lines().skip(line).take(4).collect::<Vec<_>>().join("\n    ");
    Some(format!(
        "first difference in line {}\n  ours:\n    {}\n  theirs:\n    {}",
        line + 1,
        around(ours),
        around(theirs)
    ))
}

/// Fails with all differences between our answers and the others.
pub(crate) fn compare(calls: &[Call], theirs: impl Fn(&Call) -> String + Sync) {
    let differences = for_each(calls, |call| {
        difference(&call.ours(), &theirs(call)).map(|difference| format!("{}: {difference}", call.name))
    });
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(
        differences.is_empty(),
        "{} of {} differ from helm\n{}",
        differences.len(),
        calls.len(),
        differences.join("\n")
    );
}
