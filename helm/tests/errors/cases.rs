//! Files of cases: reading, writing, asking our library and the real binaries.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use helm::{ArchiveLimits, Chart, Profile, RenderOptions, json, yaml};

const CHART: (&str, &str) = ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");

pub(crate) struct Case {
    pub(crate) name: String,
    options: Vec<String>,
    files: Vec<(String, String)>,
    /// The names of profiles and what they say.
    answers: Vec<(Vec<String>, String)>,
}

pub(crate) fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
}

pub(crate) fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            cases.push(Case {
                name: name.to_owned(),
                options: Vec::new(),
                files: Vec::new(),
                answers: Vec::new(),
            });
            continue;
        }
        let case = cases.last_mut().expect("a file begins with a case");
        match line.get(..2).zip(line.get(2..)) {
            Some(("$ ", options)) => case.options = options.split(' ').map(str::to_owned).collect(),
            Some(("> ", file)) => case.files.push((file.to_owned(), String::new())),
            Some(("| ", text)) => writeln!(case.files.last_mut().unwrap().1, "{text}").unwrap(),
            Some(("! ", text)) => writeln!(case.answers.last_mut().unwrap().1, "{text}").unwrap(),
            _ => {
                let profiles = line.split(' ').map(str::to_owned).collect();
                case.answers.push((profiles, String::new()));
            }
        }
    }
    cases
}

pub(crate) fn write(path: &Path, cases: &[Case]) {
    let mut text = String::new();
    for case in cases {
        writeln!(text, "== {}", case.name).unwrap();
        if !case.options.is_empty() {
            writeln!(text, "$ {}", case.options.join(" ")).unwrap();
        }
        for (file, lines) in &case.files {
            writeln!(text, "> {file}").unwrap();
            lines.lines().for_each(|line| writeln!(text, "| {line}").unwrap());
        }
        for (profiles, lines) in &case.answers {
            writeln!(text, "{}", profiles.join(" ")).unwrap();
            lines.lines().for_each(|line| writeln!(text, "! {line}").unwrap());
        }
        text.push('\n');
    }
    std::fs::write(path, text).unwrap();
}

/// Asks the real binaries.
pub(crate) fn record(cases: &mut [Case]) {
    for case in cases {
        case.answers.clear();
        for profile in Profile::all() {
            let said = case.theirs(&binary(profile.name));
            match case.answers.iter_mut().find(|(_, text)| *text == said) {
                Some((profiles, _)) => profiles.push(profile.name.to_owned()),
                None => case.answers.push((vec![profile.name.to_owned()], said)),
            }
        }
    }
}

fn binary(profile: &str) -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.lab/lab.json");
    let lab = std::env::var_os("STACKWRIGHT_LAB").map_or(lab, PathBuf::from);
    let text = std::fs::read(lab).expect("run `cargo xtask setup` first");
    let lab = json::decode(&text).unwrap();
    let path = lab.get("helm").and_then(|helm| helm.get(profile)).unwrap();
    PathBuf::from(path.as_text().unwrap())
}

impl Case {
    /// A case that is in no file.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Self {
            name: String::new(),
            options: Vec::new(),
            files: files.iter().map(owned).collect(),
            answers: Vec::new(),
        }
    }

    pub(crate) fn answer(&self, profile: &str) -> &str {
        let answers = &mut self.answers.iter();
        let answer = answers.find(|(profiles, _)| profiles.iter().any(|name| name == profile));
        answer.map_or("", |(_, text)| text)
    }

    /// What the chart and its rendering say; nothing when all is right.
    pub(crate) fn ours(&self, profile: &'static Profile) -> String {
        let chart = match Chart::from_files(self.all_files(), &ArchiveLimits::default()) {
            Ok(chart) => chart,
            Err(error) => return format!("Error: {}\n", error.helm_text(profile)),
        };
        let option = |name: &str| self.options.iter().find_map(|option| option.strip_prefix(name));
        let options = RenderOptions {
            profile,
            kube_version: option("--kube-version=").map(str::to_owned),
            ..RenderOptions::new(option("--name=").unwrap_or("r"), "ns")
        };
        let rendered = chart.render(&yaml::parse(b"").unwrap(), &options);
        let said = rendered.err().map(|error| error.stderr());
        said.unwrap_or_default()
    }

    pub(crate) fn all_files(&self) -> Vec<(String, Vec<u8>)> {
        let files = self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let has_chart = self.files.iter().any(|(name, _)| name == CHART.0);
        let chart = Some(CHART).filter(|_| !has_chart);
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.as_bytes().to_vec());
        chart.into_iter().chain(files).map(owned).collect()
    }

    fn theirs(&self, binary: &Path) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in self.all_files() {
            let path = folder.path().join("chart").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let options = self.options.iter().filter(|option| !option.starts_with("--name="));
        let name = self.options.iter().find_map(|option| option.strip_prefix("--name="));
        let output = Command::new(binary)
            .current_dir(&folder)
            .args(["template", name.unwrap_or("r"), "./chart", "--namespace", "ns"])
            .args(options)
            .env_clear()
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_error = |(at, _): &(usize, &str)| *at == 0 || errors.as_bytes()[at - 1] == b'\n';
        let start = errors.match_indices("Error: ").find(is_error);
        start.map_or(String::new(), |(start, _)| errors[start..].to_owned())
    }
}
