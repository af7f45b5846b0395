//! What `docs/how-to/new-provider.md` has people type and read, held against what is generated: by its words, and by a shell that types it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use clap::Parser;

use super::super::{Name, edits};
use crate::{Chore, workspace::Workspace};

/// A shell in which everything is built already and nothing waits for ever. The rest is as the page has it.
const SHELL: &str = r#"set -eu
cargo() {
    case "$*" in
        "xtask control-plane kubectl wait "* | "xtask control-plane kubectl delete "*)
            shift
            "$PROGRAMS/lab" "$@" --timeout=120s
            ;;
        "xtask control-plane kubectl "*)
            shift
            "$PROGRAMS/lab" "$@" --request-timeout=60s
            ;;
        "xtask control-plane "*)
            shift
            "$PROGRAMS/lab" "$@"
            ;;
        "xtask conformance-provider "*)
            shift
            "$PROGRAMS/lab" "$@" --rest=5 --deadline=120 --json=rows.json
            ;;
        "run -p cli -- "*)
            shift 4
            "$STACKS" "$@"
            ;;
        "run -p provider-operator -- "*)
            shift 4
            exec "$PROGRAMS/provider-operator" "$@" --cache-dir=operator.cache \
                --metrics-bind-address=127.0.0.1:0 --health-probe-bind-address=127.0.0.1:0
            ;;
        *)
            echo "nobody knows how to do this without cargo: cargo $*" >&2
            exit 1
            ;;
    esac
}
operator=
end() {
    if [ -n "$operator" ]; then
        kill "$operator" && wait "$operator" || true
    fi
    "$PROGRAMS/lab" control-plane down
}
trap end EXIT
"#;

/// The page as it lies there.
pub(super) fn page(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.root.join("docs/how-to/new-provider.md")).expect("the page is there")
}

/// The blocks for a shell in a section, in their order.
fn blocks<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, behind) = page
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("there is a section {heading}"));
    let section = behind.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split("\n```").next().unwrap_or_default())
        .collect()
}

/// The provider that the page makes, as the first of its commands is understood.
pub(super) fn name_on(page: &str) -> Name {
    let command = blocks(page, "Begin").first().copied().expect("it begins");
    let words = command.split_whitespace().skip(1);
    let understood = crate::Arguments::try_parse_from(words).expect("a command of xtask");
    let Chore::NewProvider(made) = understood.chore else {
        panic!("{command} makes no provider");
    };
    Name::parse(&made.name, made.prefix.as_deref()).expect("a name")
}

/// What the page says of its provider and what nobody generates.
pub(super) fn made_up(page: &str, workspace: &Workspace) -> Vec<String> {
    let name = name_on(page);
    let page = page.replace("NAME", &name.word);
    let mut generated: Vec<(String, String)> = edits::new_files(&name).collect();
    for path in edits::changed_files() {
        let text = fs::read_to_string(workspace.root.join(path)).expect("a file");
        let changed = edits::changed(path, &text, &name).expect("it can be changed");
        generated.push((path.to_owned(), changed));
    }
    let is_of_it = |words: &str| words.to_ascii_lowercase().contains(&name.word);
    let is_path = |word: &&str| word.contains('/') && is_of_it(word) && !word.contains(char::is_whitespace);
    let paths = page.split('`').skip(1).step_by(2).filter(is_path);
    let is_there = |path: &str| {
        let ends = |file: &str| {
            file.strip_suffix(path)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let begins = |file: &str| file.strip_prefix(path).is_some_and(|behind| behind.starts_with('/'));
        generated.iter().any(|(file, _)| ends(file) || begins(file))
    };
    let of_no_file = paths.filter(|path| !is_there(path));
    let words = page.split(|letter: char| !is_in_word(letter) && letter != '.');
    let words = words
        .map(|word| word.trim_matches(['.', '-']))
        .filter(|word| is_of_it(word));
    let is_said = |word: &str| {
        generated
            .iter()
            .any(|(path, text)| has_word(path, word) || has_word(text, word))
    };
    let of_no_text = words.filter(|word| !is_said(word));
    of_no_file.chain(of_no_text).map(str::to_owned).collect()
}

fn is_in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

/// Whether it stands there by itself, and not as a part of another word.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !before.is_some_and(is_in_word) && !behind.is_some_and(is_in_word)
    })
}

/// What is typed, for a provider of this name in the place of that of the page.
fn script(page: &str, name: &Name) -> String {
    let on_page = name_on(page);
    let page = page
        .replace(&on_page.key(), &name.key())
        .replace(&on_page.word, &name.word)
        .replace(&on_page.prefix, &name.prefix)
        .replace("/tmp/stack", "stack");
    let (run, test) = (blocks(&page, "Run it"), blocks(&page, "The contract"));
    let ([cluster, operator, release], [test]) = (&run[..], &test[..]) else {
        panic!("three blocks run it, and one tests it");
    };
    let delete = name.fill("cargo xtask control-plane kubectl delete {{name}}clusterstackreleases --all");
    format!("{SHELL}{cluster}\n(\n{operator}\n) > operator.log 2>&1 &\noperator=$!\n{release}\n{delete}\n{test}\n")
}

/// Types it in a copy of the workspace in which the provider, the operator and the lab are built; the answer is what was found of the rows of the contract.
pub(super) fn type_in(copy: &Path, programs: &Path, workspace: &Workspace, name: &Name) -> serde_json::Value {
    let home = copy.join("home");
    fs::create_dir_all(&home).expect("a folder is made");
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(script(&page(workspace), name))
        .current_dir(copy)
        .stdin(Stdio::null())
        .env("HOME", &home)
        .env("PROGRAMS", programs)
        .env("STACKS", workspace.built("debug").join("kubectl-stacks"))
        .env("STACKWRIGHT_LAB", workspace.lab().join("lab.json"))
        .env_remove(super::EVERYTHING);
    let answer = shell.output().expect("a shell runs");
    let read = |file: &str| fs::read_to_string(copy.join(file)).unwrap_or_default();
    assert!(
        answer.status.success(),
        "{}{}\nthe operator: {}",
        String::from_utf8_lossy(&answer.stdout),
        String::from_utf8_lossy(&answer.stderr),
        read("operator.log")
    );
    serde_json::from_str(&read("rows.json")).expect("rows")
}
