//! What the real Helm makes of charts that no tool would make, where our limits do not come first: broken and odd archives, text that is no
//! UTF-8, values of the wrong type. Recorded in `helms.txt`, for our program to answer alike.
//!
//! A case is its name behind `== `, and then the answers, each once with the profiles that gave it and `ok` or `error`: lines of the standard
//! output behind `1 `, of the error from `Error: ` on behind `2 `. `STACKWRIGHT_REGENERATE=1` asks the real binaries again, which
//! `cargo xtask setup` fetches.

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use helm::Profile;
use tempfile::TempDir;

use cases::Case;

/// What one program says.
fn answer(program: &Path, first: &[&str], case: &Case, folder: &Path) -> String {
    let mut command = Command::new(program);
    command
        .args(first)
        .arg(folder.join("c.tgz"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder);
    if case.values.is_some() {
        command.args(["-f", "values.yaml"]);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder.display().to_string(), "HERE");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    let error = errors.find("Error: ").map_or("", |start| &errors[start..]);
    let mut answer = if output.status.success() { "ok\n" } else { "error\n" }.to_owned();
    for (mark, text) in [('1', said.as_str()), ('2', error)] {
        text.lines().for_each(|line| writeln!(answer, "{mark} {line}").unwrap());
    }
    answer
}

fn folder(case: &Case) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.tgz"), &case.archive).unwrap();
    if let Some(values) = &case.values {
        std::fs::write(folder.path().join("values.yaml"), values).unwrap();
    }
    folder
}

/// The answers of a case with the profiles that gave them.
type Answers = Vec<(Vec<String>, String)>;

fn recorded(case: &Case) -> Answers {
    let folder = folder(case);
    let mut answers: Answers = Vec::new();
    for profile in Profile::all() {
        let said = answer(&binary(profile.name), &["template"], case, folder.path());
        match answers.iter_mut().find(|(_, known)| *known == said) {
            Some((profiles, _)) => profiles.push(profile.name.to_owned()),
            None => answers.push((vec![profile.name.to_owned()], said)),
        }
    }
    answers
}

/// The real Helm of a profile.
fn binary(profile: &str) -> PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lab = std::env::var_os("STACKWRIGHT_LAB").map_or_else(|| room.join("../.lab/lab.json"), PathBuf::from);
    let text = std::fs::read(lab).expect("run `cargo xtask setup` first");
    let lab = helm::json::decode(&text).unwrap();
    let path = lab.get("helm").and_then(|helm| helm.get(profile)).unwrap();
    PathBuf::from(path.as_text().unwrap())
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/helms.txt")
}

fn read() -> BTreeMap<String, Answers> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let mut all: BTreeMap<String, Answers> = BTreeMap::new();
    let mut name = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(next) = line.strip_prefix("== ") {
            next.trim_end_matches('\n').clone_into(&mut name);
        } else if let Some((profiles, result)) = line.strip_prefix("@ ").and_then(|line| line.split_once(": ")) {
            let profiles = profiles.split(' ').map(str::to_owned).collect();
            all.entry(name.clone()).or_default().push((profiles, result.to_owned()));
        } else if let Some((_, answer)) = all.get_mut(&name).and_then(|answers| answers.last_mut()) {
            answer.push_str(line);
        }
    }
    all
}

fn write(all: &BTreeMap<String, Answers>) {
    let mut text = String::new();
    for (name, answers) in all {
        writeln!(text, "== {name}").unwrap();
        for (profiles, answer) in answers {
            write!(text, "@ {}: {answer}", profiles.join(" ")).unwrap();
        }
    }
    std::fs::write(file(), text).unwrap();
}

/// Does something with each case, several at once.
fn for_each(cases: &[Case], work: impl Fn(usize, &Case) + Sync) {
    let left = Mutex::new(cases.iter().enumerate());
    let worker = || {
        while let Some((number, case)) = { left.lock().unwrap().next() } {
            work(number, case);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
}

#[test]
fn odd_charts_are_what_they_are_for_helm() {
    let cases = cases::all();
    let mut answers = read();
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|wanted| wanted == "1" || wanted == "helms.txt") {
        let anew = Mutex::new(BTreeMap::new());
        for_each(&cases, |_, case| {
            let recorded = recorded(case);
            anew.lock().unwrap().insert(case.name.clone(), recorded);
        });
        answers = anew.into_inner().unwrap();
        write(&answers);
    }
    assert_eq!(answers.len(), cases.len(), "names are unique, and each has its answers");
    let program = Path::new(env!("CARGO_BIN_EXE_helm-template"));
    let found = Mutex::new(String::new());
    for_each(&cases, |number, case| {
        let folder = folder(case);
        for (profiles, theirs) in &answers[&case.name] {
            // Those that answer alike take turns.
            let profile = &profiles[number % profiles.len()];
            let ours = answer(program, &["--profile", profile], case, folder.path());
            if (ours != *theirs) != case.differs {
                let name = &case.name;
                write!(
                    found.lock().unwrap(),
                    "{name} ({profile})\n--- helm\n{theirs}--- ours\n{ours}"
                )
                .unwrap();
            }
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{found}");
}
