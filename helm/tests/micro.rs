//! One-line templates against what Helm 3.19.0 made of them, recorded in `micro/*.txt`.
//!
//! A case is its template on a line that begins with `> ` and more lines that begin with `| `, then the output after `= ` or
//! the error after `! `, both as Rust would escape them. `STACKWRIGHT_REGENERATE=1` asks the real helm again and rewrites the answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod lab;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use helm::RenderOptions;
use helm::chart::{ArchiveLimits, Chart};
use helm::yaml::Node;

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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/micro")
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

fn files(template: &str) -> Vec<(String, Vec<u8>)> {
    [
        ("Chart.yaml", CHART),
        (CASE, template),
        ("templates/out.yaml", OUTPUT),
        ("note.txt", "l1\nl2\n"),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .chain([(
        "values.yaml".to_owned(),
        std::fs::read(directory().join("values.yaml")).unwrap(),
    )])
    .collect()
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

fn ours(template: &str) -> String {
    let chart = Chart::from_files(files(template), &ArchiveLimits::default()).unwrap();
    match chart.render(&Node::empty_map(), &RenderOptions::new("rel", "ns")) {
        Ok(rendering) => String::from_utf8(rendering.stdout()).unwrap(),
        Err(error) => error.stderr(),
    }
}

fn theirs(binary: &Path, template: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files(template) {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let arguments = [
        "template",
        "rel",
        &directory.path().display().to_string(),
        "--namespace",
        "ns",
    ];
    lab::run(binary, &arguments.map(str::to_owned), "")
}

#[test]
fn one_line_templates_render_as_helm_rendered_them() {
    let is_recording = std::env::var_os("STACKWRIGHT_REGENERATE").is_some();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    let (mut differences, mut count) = (String::new(), 0);
    for path in paths {
        let mut lines = read(&path);
        if is_recording {
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
            let found = answer(&ours(template));
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
    let binary = lab::required_helm();
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
                        *recorded = answer(&theirs(binary, template));
                    }
                }
            });
        }
    });
}
