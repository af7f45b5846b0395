//! Arguments that set values against what the Helm versions made of them, recorded in `arguments/*.txt`: one argument in each line, the flag before it.
//! Files are named from the folder of this crate on.

use helm::chart::ArchiveLimits;
use helm::command_line::ValueArguments;
use helm::{Chart, Profile, RenderOptions};

use crate::call::{Files, write_files};
use crate::{lab, recorded};

/// JSON hides which numbers are integers of Go, what prints shows it.
const OUTPUT: &str = "out: {{ print (toJson .Values) \" \" .Values | b64enc }}\n";
const START: &str = "---\n# Source: set/templates/out.yaml\nout: ";

fn chart() -> Files {
    let text = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    vec![
        text("Chart.yaml", "apiVersion: v2\nname: set\nversion: 1.2.3\n"),
        text("templates/out.yaml", OUTPUT),
    ]
}

/// Flags with their arguments.
fn flags(question: &str) -> impl Iterator<Item = (&str, &str)> {
    question.lines().map(|line| line.split_once(' ').unwrap_or((line, "")))
}

fn ours(question: &str, profile: &'static Profile) -> String {
    let mut arguments = ValueArguments::default();
    for (flag, argument) in flags(question) {
        let kind = match flag {
            "-f" => &mut arguments.files,
            "--set-json" => &mut arguments.set_json,
            "--set" => &mut arguments.set,
            "--set-string" => &mut arguments.set_string,
            "--set-file" => &mut arguments.set_file,
            "--set-literal" => &mut arguments.set_literal,
            other => panic!("{other} sets no values"),
        };
        kind.push(argument.to_owned());
    }
    let mut read = |name: &str| {
        std::fs::read(lab::room().join(name)).map_err(|_| format!("open {name}: no such file or directory"))
    };
    let values = match arguments.values(profile, &mut read) {
        Ok(values) => values,
        Err(error) => return answer(&format!("Error: {error}\n")),
    };
    let chart = Chart::from_files(chart(), &ArchiveLimits::default()).unwrap();
    let options = RenderOptions {
        profile,
        ..RenderOptions::new("tested", "ns")
    };
    match chart.render(&values, &options) {
        Ok(rendering) => answer(&String::from_utf8_lossy(&rendering.stdout())),
        Err(error) => answer(&error.stderr()),
    }
}

fn answer(result: &str) -> String {
    use base64::Engine as _;
    match result.strip_prefix(START) {
        Some(encoded) => {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(encoded.trim_end())
                .unwrap();
            format!("= {}", bytes.escape_ascii())
        }
        None => format!("! {}", result.trim_end().escape_debug()),
    }
}

#[test]
fn arguments_set_the_values_that_helm_set() {
    let files = recorded::files(&lab::room().join("tests/arguments"));
    recorded::compare(Profile::all(), &files, 100, ours, |question, binary| {
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path(), &chart());
        let chart = folder.path().display().to_string();
        let mut arguments = vec!["template".to_owned(), "tested".to_owned(), chart];
        for (flag, argument) in flags(question) {
            arguments.extend([flag.to_owned(), argument.to_owned()]);
        }
        answer(&lab::run(binary, &arguments, ""))
    });
}
