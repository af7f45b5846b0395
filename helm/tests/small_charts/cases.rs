//! Files of cases: reading, writing, asking our library and the real binaries.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use helm::command_line::ValueArguments;
use helm::{ArchiveLimits, Chart, Profile, RenderOptions, json};

const CHART: (&str, &str) = ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
/// How the warnings begin that both of us give for values. Others are told in other words.
const WARNINGS: [&str; 3] = ["skipped value for ", "cannot overwrite table ", "destination for "];
/// How the lines of a question begin.
const QUESTION: [&str; 5] = ["$ ", "< ", "> ", "| ", "\\ "];
/// What stands before the profiles of an answer of ours.
const OURS: &str = "ours ";
/// The name that stands for the user's values among the arguments.
const USER_VALUES: &str = "user.yaml";

/// Files by their paths in the chart.
type Files = Vec<(String, String)>;

/// The cases of one file.
pub(crate) struct Recorded {
    path: PathBuf,
    /// What stands before the first case.
    head: String,
    pub(crate) cases: Vec<Case>,
}

#[derive(Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Comments before it.
    before: String,
    /// Its lines up to the answers, as somebody wrote them.
    question: String,
    options: Vec<String>,
    user_values: String,
    shared: Files,
    files: Files,
    answers: Answers,
    /// What we say otherwise, where that is known.
    own_answers: Answers,
    /// The answer that is read is one of ours.
    is_own: bool,
}

/// The names of profiles and what they say.
type Answers = Vec<(Vec<String>, String)>;

/// The file of what we answer otherwise.
const DIFFERENCES: &str = "differences.txt";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/small_charts")
}

/// All files of cases that we answer as Helm does.
pub(crate) fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.retain(|path| !path.ends_with(DIFFERENCES));
    paths.sort();
    paths
}

pub(crate) fn differences() -> PathBuf {
    folder().join(DIFFERENCES)
}

/// Puts a line of a file to its end: as it is, or with escapes and without an end of its own.
fn add(files: &mut Files, line: &str, is_escaped: bool) {
    let text = &mut files.last_mut().expect("a file has a name").1;
    if is_escaped {
        text.push_str(
            json::decode(format!("\"{line}\"").as_bytes())
                .unwrap()
                .as_text()
                .unwrap(),
        );
    } else {
        writeln!(text, "{line}").unwrap();
    }
}

impl Recorded {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut head, mut before) = (String::new(), String::new());
        let mut shared = Files::new();
        let mut cases: Vec<Case> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if line.starts_with('#') {
                writeln!(before, "{line}").unwrap();
                continue;
            }
            if let Some(name) = line.strip_prefix("== ") {
                cases.push(Case {
                    name: name.to_owned(),
                    before: std::mem::take(&mut before),
                    shared: shared.clone(),
                    ..Case::default()
                });
                continue;
            }
            let Some(case) = cases.last_mut() else {
                writeln!(head, "{}{line}", std::mem::take(&mut before)).unwrap();
                match line.split_at(2) {
                    ("> ", file) => shared.push((file.to_owned(), String::new())),
                    (mark, text) => add(&mut shared, text, mark == "\\ "),
                }
                continue;
            };
            if QUESTION.iter().any(|mark| line.starts_with(mark)) {
                writeln!(case.question, "{line}").unwrap();
            }
            match line.split_at(2) {
                ("$ ", options) => case.options = options.split(' ').map(str::to_owned).collect(),
                ("< ", values) => writeln!(case.user_values, "{values}").unwrap(),
                ("> ", file) => case.files.push((file.to_owned(), String::new())),
                ("| ", text) => add(&mut case.files, text, false),
                ("\\ ", text) => add(&mut case.files, text, true),
                ("= " | "! " | "~ ", _) => writeln!(case.current().last_mut().unwrap().1, "{line}").unwrap(),
                _ => {
                    let own = line.strip_prefix(OURS);
                    let profiles = own.unwrap_or(line).split(' ').map(str::to_owned).collect();
                    case.is_own = own.is_some();
                    case.current().push((profiles, String::new()));
                }
            }
        }
        let path = path.to_owned();
        Self { path, head, cases }
    }

    /// Asks the real binaries and writes what they say.
    pub(crate) fn record(&mut self) {
        each(self.cases.iter_mut(), Case::record);
        self.write();
    }

    /// What we answer otherwise. Profiles that answer alike take turns.
    pub(crate) fn differences(&self) -> Vec<String> {
        let differing = each(self.cases.iter().enumerate(), |(number, case)| {
            let answers = case.answers.iter();
            let differing = answers.filter_map(|(profiles, theirs)| {
                let name = profiles[number % profiles.len()].as_str();
                let ours = case.ours(Profile::by_name(name).unwrap());
                (ours != *theirs).then(|| format!("{} ({name})\n--- helm\n{theirs}--- ours\n{ours}", case.name))
            });
            differing.collect::<String>()
        });
        differing.into_iter().filter(|text| !text.is_empty()).collect()
    }

    fn write(&self) {
        let mut text = self.head.clone();
        for case in &self.cases {
            if !text.is_empty() {
                text.push('\n');
            }
            writeln!(text, "{}== {}", case.before, case.name).unwrap();
            text.push_str(&case.question);
            for (mark, answers) in [("", &case.answers), (OURS, &case.own_answers)] {
                for (profiles, lines) in answers {
                    write!(text, "{mark}{}\n{lines}", profiles.join(" ")).unwrap();
                }
            }
        }
        std::fs::write(&self.path, text).unwrap();
    }
}

/// Does something with each of them, several at once.
fn each<I: Send, T: Send>(all: impl Iterator<Item = I> + Send, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let left = Mutex::new(all);
    let worker = || {
        std::iter::from_fn(|| left.lock().unwrap().next())
            .map(&work)
            .collect::<Vec<T>>()
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// The lines of an answer: output, error, warnings in any order once. Nothing where there is neither.
fn told<'a>(output: &str, error: &str, warnings: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in output.split_inclusive('\n') {
        let plain = line.strip_suffix('\n').filter(|line| !line.contains(char::is_control));
        match plain {
            Some(line) => writeln!(text, "= {line}").unwrap(),
            None => writeln!(text, "= \\{}", line.escape_debug()).unwrap(),
        }
    }
    error.lines().for_each(|line| writeln!(text, "! {line}").unwrap());
    let warnings = warnings.filter(|warning| WARNINGS.iter().any(|start| warning.starts_with(start)));
    let mut warnings: Vec<&str> = warnings.collect();
    warnings.sort_unstable();
    warnings.dedup();
    for warning in warnings {
        writeln!(text, "~ {warning}").unwrap();
    }
    text
}

/// The answers of all profiles, equal ones once.
fn grouped(said: impl Fn(&'static Profile) -> String) -> Answers {
    let mut answers = Answers::new();
    for profile in Profile::all() {
        let said = said(profile);
        match answers.iter_mut().find(|(_, text)| *text == said) {
            Some((profiles, _)) => profiles.push(profile.name.to_owned()),
            None => answers.push((vec![profile.name.to_owned()], said)),
        }
    }
    answers
}

fn answer<'a>(answers: &'a Answers, profile: &str) -> &'a str {
    let answer = answers
        .iter()
        .find(|(profiles, _)| profiles.iter().any(|name| name == profile));
    answer.map_or("", |(_, text)| text)
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
            files: files.iter().map(owned).collect(),
            ..Self::default()
        }
    }

    fn record(&mut self) {
        self.answers = grouped(|profile| self.theirs(&binary(profile.name)));
        if !self.own_answers.is_empty() {
            self.own_answers = grouped(|profile| self.ours(profile));
        }
    }

    fn current(&mut self) -> &mut Answers {
        if self.is_own {
            &mut self.own_answers
        } else {
            &mut self.answers
        }
    }

    /// What the Helm of a profile said.
    pub(crate) fn answer(&self, profile: &str) -> &str {
        answer(&self.answers, profile)
    }

    /// What we said otherwise.
    pub(crate) fn own_answer(&self, profile: &str) -> &str {
        answer(&self.own_answers, profile)
    }

    /// What stands behind `NAME=` among the options.
    fn options<'a>(&'a self, name: &'a str) -> impl Iterator<Item = String> + 'a {
        let options = self.options.iter();
        options.filter_map(move |option| {
            option
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
                .map(str::to_owned)
        })
    }

    /// What the chart and its rendering say.
    pub(crate) fn ours(&self, profile: &'static Profile) -> String {
        self.rendered(profile)
            .unwrap_or_else(|error| told("", &error, std::iter::empty()))
    }

    fn rendered(&self, profile: &'static Profile) -> Result<String, String> {
        let arguments = ValueArguments {
            files: (!self.user_values.is_empty())
                .then(|| USER_VALUES.to_owned())
                .into_iter()
                .collect(),
            set: self.options("--set").collect(),
            set_json: self.options("--set-json").collect(),
            ..ValueArguments::default()
        };
        let mut user_values = |_: &str| Ok(self.user_values.clone().into_bytes());
        let values = arguments
            .values(profile, &mut user_values)
            .map_err(|error| format!("Error: {error}\n"))?;
        let chart = Chart::from_files(self.all_files(), &ArchiveLimits::default());
        let chart = chart.map_err(|error| format!("Error: {}\n", error.helm_text(profile)))?;
        let name = self.options("--name").next();
        let options = RenderOptions {
            profile,
            kube_version: self.options("--kube-version").next(),
            api_versions: self.options("--api-versions").collect(),
            include_crds: self.options.iter().any(|option| option == "--include-crds"),
            ..RenderOptions::new(name.as_deref().unwrap_or("r"), "ns")
        };
        let rendering = chart.render(&values, &options).map_err(|error| error.stderr())?;
        let warnings: Vec<String> = rendering.warnings.iter().map(ToString::to_string).collect();
        let warnings = warnings.iter().map(String::as_str);
        Ok(told(&String::from_utf8_lossy(&rendering.stdout()), "", warnings))
    }

    pub(crate) fn all_files(&self) -> Vec<(String, Vec<u8>)> {
        let is_own = |name: &str| self.files.iter().any(|(own, _)| own == name);
        let shared = self.shared.iter().filter(|(name, _)| !is_own(name));
        let files = shared
            .chain(&self.files)
            .map(|(name, text)| (name.as_str(), text.as_str()));
        let files: Vec<(&str, &str)> = files.collect();
        let chart = Some(CHART).filter(|_| files.iter().all(|(name, _)| *name != CHART.0));
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.as_bytes().to_vec());
        let mut files: Vec<(String, Vec<u8>)> = chart.into_iter().chain(files).map(owned).collect();
        // As a walk through folders finds them.
        files.sort_by(|(one, _), (other, _)| one.split('/').cmp(other.split('/')));
        files
    }

    fn theirs(&self, binary: &Path) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in self.all_files() {
            let path = folder.path().join("chart").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(folder.path().join(USER_VALUES), &self.user_values).unwrap();
        let options = self.options.iter().filter(|option| !option.starts_with("--name="));
        let name = self.options("--name").next();
        let mut command = Command::new(binary);
        command
            .current_dir(&folder)
            .args([
                "template",
                name.as_deref().unwrap_or("r"),
                "./chart",
                "--namespace",
                "ns",
            ])
            .args(options)
            .env_clear()
            .env("HOME", folder.path());
        if !self.user_values.is_empty() {
            command.args(["-f", USER_VALUES]);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = with_bytes_told(&output.stderr);
        let is_error = |(at, _): &(usize, &str)| *at == 0 || errors.as_bytes()[at - 1] == b'\n';
        if let Some((start, _)) = errors.match_indices("Error: ").find(is_error) {
            return told("", &errors[start..], std::iter::empty());
        }
        let warnings = errors.lines().filter_map(|line| line.split_once("warning: "));
        let warnings: Vec<String> = warnings.map(|(_, warning)| plain(warning)).collect();
        told(&said, "", warnings.iter().map(String::as_str))
    }
}

/// A text with `\xff` for each byte that is no UTF-8.
fn with_bytes_told(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        write!(text, "{}{}", chunk.valid(), chunk.invalid().escape_ascii()).unwrap();
    }
    text
}

/// The text of a warning without the quotes that Helm 4 puts around it.
fn plain(warning: &str) -> String {
    let Some(quoted) = warning.strip_suffix('"').filter(|text| !text.starts_with('"')) else {
        return warning.to_owned();
    };
    quoted.replace("\\\"", "\"")
}
