//! Charts made to grow: what twice the output costs.

use std::{
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use helm::{Chart, chart::ArchiveLimits, yaml::Node};

use super::{options, peak, report::Growth, template};

/// Renders of each size, of which the fastest counts: what else the machine does only adds, and to the longer ones more.
const RENDERS: usize = 40;

/// Processes render so many times as much, so that their output does not fit into a pipe and they can be looked at.
const LARGER: usize = 4;

/// A way to grow: its name, a size, and the files of a chart of some size.
type Kind = (&'static str, usize, fn(usize) -> Vec<(String, String)>);

const KINDS: [Kind; 5] = [
    ("many templates", 300, |size| {
        let file = |number: usize| {
            (
                format!("templates/{number}.yaml"),
                format!("{}\n", object(&number.to_string())),
            )
        };
        (0..size).map(file).collect()
    }),
    ("long ranges", 4_000, |size| {
        let body = object("{{ . }}-{{ $.Release.Name }}");
        vec![(
            "templates/a.yaml".to_owned(),
            format!("{{{{ range until {size} }}}}\n---\n{body}\n{{{{ end }}}}"),
        )]
    }),
    ("deep includes", 400, |size| {
        let step =
            "{{ define \"deep\" }}{{ if gt (int .) 0 }}# {{ . }}\n{{ include \"deep\" (sub . 1) }}{{ end }}{{ end }}";
        // Text that is handed up grows with the square of the depth, in Helm too; so each chain is as deep, and there are more of them.
        let chains = "{{ range until 4 }}{{ include \"deep\" 200 }}{{ end }}".repeat(size / 100);
        vec![(
            "templates/a.yaml".to_owned(),
            format!("{step}{}\n{chains}", object("a")),
        )]
    }),
    ("large values", 4_000, |size| {
        let values: Vec<String> = (0..size)
            .map(|number| format!("  key{number}: {{name: value-{number}, on: true}}\n"))
            .collect();
        let values = values.concat();
        vec![
            ("values.yaml".to_owned(), format!("data:\n{values}")),
            (
                "templates/a.yaml".to_owned(),
                format!("{}\ndata:\n{{{{ toYaml .Values.data | indent 2 }}}}\n", object("a")),
            ),
        ]
    }),
    ("many tpl", 2_000, |size| {
        let body = object("{{ tpl (printf \"{{ .Release.Name }}-%d\" .) $ }}");
        vec![(
            "templates/a.yaml".to_owned(),
            format!("{{{{ range until {size} }}}}\n---\n{body}\n{{{{ end }}}}"),
        )]
    }),
];

fn object(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{name}\"\n  labels:\n    app: {{{{ $.Chart.Name }}}}"
    )
}

/// Every kind in one size and in twice the size: the time in this process, the memory in one of `program`.
pub(super) fn measure(program: &Path) -> Result<Vec<Growth>> {
    let measured = KINDS.iter().map(|(kind, size, files)| {
        let (single, double) = (chart(files(*size))?, chart(files(2 * size))?);
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        let options = options();
        let mut bytes = (0, 0);
        for _ in 0..RENDERS {
            let begin = Instant::now();
            let rendering = black_box(single.render(&Node::Null, &options)?);
            once.push(begin.elapsed());
            bytes.0 = rendering.stdout().len();
            let begin = Instant::now();
            let rendering = black_box(double.render(&Node::Null, &options)?);
            twice.push(begin.elapsed());
            bytes.1 = rendering.stdout().len();
        }
        Ok(Growth {
            kind: (*kind).to_owned(),
            single_bytes: bytes.0,
            double_bytes: bytes.1,
            single_ms: fastest(&once),
            double_ms: fastest(&twice),
            single_mib: memory(program, files(LARGER * size))?,
            double_mib: memory(program, files(2 * LARGER * size))?,
        })
    });
    measured.collect()
}

/// The peak of a process that renders a folder with these files.
fn memory(program: &Path, files: Vec<(String, String)>) -> Result<f64> {
    let folder = tempfile::tempdir().context("failed to make a folder")?;
    for (name, text) in with_metadata(files) {
        let path = folder.path().join(&name);
        let parent = path.parent().unwrap_or(folder.path());
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("failed to write {name}"))?;
    }
    peak(&mut template(program, folder.path()))
}

fn fastest(times: &[Duration]) -> f64 {
    let fastest = times.iter().min().copied().unwrap_or_default();
    fastest.as_secs_f64() * 1_000.0
}

fn chart(files: Vec<(String, String)>) -> Result<Chart> {
    let files = with_metadata(files)
        .map(|(name, text)| (name, text.into_bytes()))
        .collect();
    Ok(Chart::from_files(files, &ArchiveLimits::default())?)
}

fn with_metadata(files: Vec<(String, String)>) -> impl Iterator<Item = (String, String)> {
    let metadata = "apiVersion: v2\nname: grown\nversion: 1.0.0\n";
    files
        .into_iter()
        .chain([("Chart.yaml".to_owned(), metadata.to_owned())])
}
