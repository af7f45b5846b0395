//! Equality with `helm template` of Helm 3.19.0, byte for byte: our own charts against recorded answers and, where the lab has the real
//! binary, against the binary; the cluster classes of the corpus against the binary.
//!
//! `STACKWRIGHT_REGENERATE=1` records the answers anew from the binary.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

mod lab;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use helm::yaml::{self, Node};
use helm::{Chart, RenderOptions};

/// One call of `helm template`.
#[derive(Clone, Debug)]
struct Call {
    /// Names the recorded answer.
    name: String,
    chart: PathBuf,
    release: String,
    namespace: String,
    values: &'static str,
    kube_version: Option<&'static str>,
    api_versions: Vec<String>,
    include_crds: bool,
}

impl Call {
    fn new(name: &str, chart: &str) -> Self {
        Self {
            name: name.to_owned(),
            chart: charts().join(chart),
            release: "tested".to_owned(),
            namespace: "ns".to_owned(),
            values: "",
            kube_version: None,
            api_versions: Vec::new(),
            include_crds: false,
        }
    }

    fn with_values(self, values: &'static str) -> Self {
        Self { values, ..self }
    }

    /// What our library answers: the standard output, or the error.
    fn ours(&self) -> String {
        let limits = helm::chart::ArchiveLimits::default();
        let loaded = if self.chart.is_dir() {
            Chart::from_files(files_below(&self.chart), &limits)
        } else {
            Chart::from_archive(&std::fs::read(&self.chart).unwrap(), &limits)
        };
        let chart = match loaded {
            Ok(chart) => chart,
            Err(error) => return format!("Error: {error}\n"),
        };
        let options = RenderOptions {
            kube_version: self.kube_version.map(str::to_owned),
            api_versions: self.api_versions.clone(),
            include_crds: self.include_crds,
            ..RenderOptions::new(&self.release, &self.namespace)
        };
        let values = yaml::parse(self.values.as_bytes()).unwrap();
        match chart.render(&values, &options) {
            Ok(rendering) => String::from_utf8(rendering.stdout()).unwrap(),
            Err(error) => error.stderr(),
        }
    }

    fn theirs(&self, binary: &Path) -> String {
        let mut arguments = vec![
            "template".to_owned(),
            self.release.clone(),
            self.chart.display().to_string(),
        ];
        arguments.extend([
            "--namespace".to_owned(),
            self.namespace.clone(),
            "--values".to_owned(),
            "-".to_owned(),
        ]);
        if let Some(version) = self.kube_version {
            arguments.extend(["--kube-version".to_owned(), version.to_owned()]);
        }
        for version in &self.api_versions {
            arguments.extend(["--api-versions".to_owned(), version.clone()]);
        }
        if self.include_crds {
            arguments.push("--include-crds".to_owned());
        }
        lab::run(binary, &arguments, self.values)
    }

    fn golden(&self) -> PathBuf {
        tests().join("goldens").join(format!("{}.txt", self.name))
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn charts() -> PathBuf {
    tests().join("charts")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn files_below(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut pending = entries(root);
    pending.reverse();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(entries(&path).into_iter().rev());
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
    files
}

/// The calls on our own charts.
fn own_calls() -> Vec<Call> {
    let mut calls = vec![
        Call::new("umbrella", "umbrella"),
        Call {
            include_crds: true,
            ..Call::new("umbrella-with-crds", "umbrella")
        },
        Call::new("umbrella-by-condition", "umbrella").with_values("{first: {enabled: false}, leaf: {enabled: true}}"),
        Call::new("umbrella-by-tag", "umbrella").with_values("{tags: {extras: false, more: true}, middle: {inner: {enabled: false}}}"),
        Call::new("umbrella-by-other-tag", "umbrella").with_values("tags: {extras: true, more: false}"),
        Call::new("umbrella-odd-switches", "umbrella").with_values("{first: {enabled: maybe}, ignored: false, tags: {extras: 1}}"),
        Call::new("umbrella-values", "umbrella").with_values(
            "{global: {zone: null, deep: {both: user}}, first: {port: null, nested: {part: text}, global: {deep: {mine: user}}}, middle: {inner: {extra: []}}, taken: null}",
        ),
        Call::new("order", "order"),
        Call::new("sequence", "sequence"),
        Call::new("files", "files"),
        Call::new("values", "values"),
        Call::new("values-of-user", "values").with_values(
            "{port: 1e6, nothing: 1, table: {a: null, new: null, b: [1]}, list: null, dropped: null, scalar: {a: 1}, added: {x: null, y: [null]}}",
        ),
        Call {
            kube_version: Some("v1.29.3-gke.7"),
            api_versions: vec!["example.invalid/v1".to_owned(), "example.invalid/v1/Kind".to_owned()],
            ..Call::new("values-of-cluster", "values")
        },
        Call {
            kube_version: Some("1.19.0"),
            ..Call::new("values-of-old-cluster", "values")
        },
        Call {
            kube_version: Some("new"),
            ..Call::new("values-of-no-cluster", "values")
        },
        Call {
            release: "Not-A-Name".to_owned(),
            ..Call::new("release-name", "values")
        },
    ];
    for chart in entries(&charts().join("errors")) {
        let name = chart.file_name().unwrap().to_str().unwrap().to_owned();
        calls.push(Call::new(&format!("errors/{name}"), &format!("errors/{name}")));
    }
    calls
}

/// The lines around the first difference, for people.
fn difference(ours: &str, theirs: &str) -> Option<String> {
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

fn compare(calls: &[Call], theirs: impl Fn(&Call) -> String) {
    let mut report = String::new();
    let mut differing = 0;
    for call in calls {
        if let Some(difference) = difference(&call.ours(), &theirs(call)) {
            differing += 1;
            writeln!(report, "{}: {difference}", call.name).unwrap();
        }
    }
    assert!(
        differing == 0,
        "{differing} of {} differ from helm\n{report}",
        calls.len()
    );
}

#[test]
fn own_charts_render_as_helm_rendered_them() {
    let calls = own_calls();
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some() {
        let binary = lab::required_helm();
        std::fs::create_dir_all(tests().join("goldens/errors")).unwrap();
        for call in &calls {
            std::fs::write(call.golden(), call.theirs(&binary)).unwrap();
        }
    }
    compare(&calls, |call| {
        std::fs::read_to_string(call.golden()).unwrap_or_else(|error| panic!("{}: {error}", call.golden().display()))
    });
}

#[test]
fn own_charts_render_as_helm_renders_them() {
    let Some(binary) = lab::helm() else {
        eprintln!("REDUCED: no real helm in the lab; `cargo xtask setup` provides it");
        return;
    };
    compare(&own_calls(), |call| call.theirs(&binary));
}

#[test]
fn cluster_classes_of_the_corpus_render_as_helm_renders_them() {
    let Some(corpus) = std::env::var_os("STACKWRIGHT_CORPUS").map(PathBuf::from) else {
        eprintln!("REDUCED: STACKWRIGHT_CORPUS is not set, no real cluster class was rendered");
        return;
    };
    let binary = lab::required_helm();
    let mut calls = Vec::new();
    let is_class = |path: &PathBuf| {
        path.to_string_lossy().contains("cluster-class") && path.extension().is_some_and(|end| end == "tgz")
    };
    for release in entries(&corpus.join("releases")) {
        let tag = release.file_name().unwrap().to_string_lossy().into_owned();
        let class: Vec<&str> = tag.splitn(5, '-').take(4).collect();
        for chart in entries(&release).into_iter().filter(is_class) {
            calls.push(Call {
                chart,
                release: class.join("-"),
                namespace: "cluster".to_owned(),
                ..Call::new(&tag, "")
            });
        }
    }
    for chart in entries(&corpus.join("charts")).into_iter().filter(is_class) {
        let name = chart.display().to_string();
        calls.push(Call {
            chart,
            release: "docker-scs-1-30".to_owned(),
            ..Call::new(&name, "")
        });
    }
    assert!(calls.len() > 5, "the corpus has only {} cluster classes", calls.len());
    compare(&calls, |call| call.theirs(&binary));
}

#[test]
fn documents_are_the_text_as_data() {
    let chart = Chart::from_files(
        files_below(&charts().join("order")),
        &helm::chart::ArchiveLimits::default(),
    )
    .unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("tested", "ns")).unwrap();
    assert!(rendering.manifests.len() > 10);
    for manifest in rendering.manifests.iter().chain(&rendering.hooks) {
        assert_eq!(
            manifest.document,
            yaml::read(manifest.text.as_bytes()).unwrap().node,
            "{}",
            manifest.source
        );
    }
    let hook = rendering.hooks[0].hook.as_ref().unwrap();
    assert_eq!(
        (hook.weight, hook.events.as_slice()),
        (5, &["pre-install".to_owned(), "post-upgrade".to_owned()][..])
    );
    assert_eq!(rendering.warnings, ["skipping unknown hook: \"bogus\""]);
}
