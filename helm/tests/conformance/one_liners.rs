//! One-line templates against what Helm 3.19.0 made of them, recorded in `micro/*.txt`.
//!
//! A case is its template on a line that begins with `> ` and more lines that begin with `| `, then the output after `= ` or
//! the error after `! `, both as Rust would escape them. `STACKWRIGHT_REGENERATE=1` asks the real helm again and rewrites the answers;
//! the name of a file instead of `1` rewrites that one alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helm::answers::{Moment, Seeded};

use crate::call::{Call, Files, Source};
use crate::lab;

/// When our library renders. The real helm reads a clock, so no answer shows the time.
const NOW: Moment = Moment {
    seconds: 1_764_000_000,
    nanoseconds: 123_456_789,
};
/// The file under test. It is a partial, so its output need not be YAML.
const CASE: &str = "templates/_case.tpl";
const OUTPUT: &str = "out: {{ include \"micro/templates/_case.tpl\" . | b64enc | quote }}\n";
const CHART: &str = "apiVersion: v2\nname: micro\nversion: 1.2.3\nappVersion: \"4.5\"\n";

enum Line {
    /// A comment or an empty line, kept as it is.
    Other(String),
    Case {
        template: String,
        answer: String,
    },
}

fn directory() -> PathBuf {
    lab::room().join("tests/micro")
}

fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = Vec::new();
    let mut template: Vec<&str> = Vec::new();
    let finish = |template: &mut Vec<&str>, answer: &str, lines: &mut Vec<Line>| {
        if !template.is_empty() {
            lines.push(Line::Case {
                template: template.join("\n"),
                answer: answer.to_owned(),
            });
            template.clear();
        }
    };
    for line in text.lines() {
        if let Some(part) = line.strip_prefix("> ") {
            finish(&mut template, "", &mut lines);
            template.push(part);
        } else if let Some(part) = line.strip_prefix("| ") {
            template.push(part);
        } else if line.starts_with("= ") || line.starts_with("! ") {
            finish(&mut template, line, &mut lines);
        } else {
            finish(&mut template, "", &mut lines);
            lines.push(Line::Other(line.to_owned()));
        }
    }
    finish(&mut template, "", &mut lines);
    lines
}

fn write(path: &Path, lines: &[Line]) {
    let mut text = String::new();
    for line in lines {
        match line {
            Line::Other(line) => writeln!(text, "{line}").unwrap(),
            Line::Case { template, answer } => {
                writeln!(text, "> {}\n{answer}", template.replace('\n', "\n| ")).unwrap();
            }
        }
    }
    std::fs::write(path, text).unwrap();
}

fn call(template: &str) -> Call {
    let text = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let files: Files = vec![
        text("Chart.yaml", CHART),
        text(CASE, template),
        text("templates/out.yaml", OUTPUT),
        text("note.txt", "l1\nl2\n"),
        text("values.yaml", include_str!("../micro/values.yaml")),
    ];
    Call {
        release: "rel".to_owned(),
        answers: Arc::new(Seeded::new([7; 32], NOW)),
        ..Call::new(template, Source::Files(files))
    }
}

/// The answer to a rendering: its output decoded, or its error.
fn answer(result: &str) -> String {
    let encoded = result.strip_prefix("---\n# Source: micro/templates/out.yaml\nout: \"");
    match encoded.and_then(|rest| rest.strip_suffix("\"\n")) {
        Some(encoded) => format!("= {}", decode(encoded).escape_ascii()),
        None => format!("! {}", result.lines().next().unwrap_or_default().escape_debug()),
    }
}

fn decode(encoded: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

#[test]
fn one_line_templates_render_as_helm_rendered_them() {
    let recording = std::env::var_os("STACKWRIGHT_REGENERATE");
    let paths: Vec<PathBuf> = lab::entries(&directory())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    let (mut differences, mut count) = (String::new(), 0);
    for path in paths {
        let mut lines = read(&path);
        if recording
            .as_ref()
            .is_some_and(|file| file == "1" || path.file_name() == Some(file))
        {
            record(&mut lines);
            write(&path, &lines);
        }
        for line in &lines {
            let Line::Case {
                template,
                answer: expected,
            } = line
            else {
                continue;
            };
            count += 1;
            let found = answer(&call(template).ours());
            if found != *expected {
                let file = path.file_name().unwrap().display();
                writeln!(differences, "{file}: {template}\n  helm: {expected}\n  ours: {found}").unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "of {count} cases these differ:\n{differences}");
    assert!(count > 300, "only {count} cases were found");
}

fn record(lines: &mut [Line]) {
    let binary = lab::helm();
    std::thread::scope(|scope| {
        for part in lines.chunks_mut(64) {
            let binary = &binary;
            scope.spawn(move || {
                for line in part {
                    if let Line::Case {
                        template,
                        answer: recorded,
                    } = line
                    {
                        *recorded = answer(&call(template).theirs(binary));
                    }
                }
            });
        }
    });
}
