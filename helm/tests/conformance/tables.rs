//! Rows of tables, one template each, against what Helm made of them, recorded in `tables/*.txt`.
//!
//! The rows state what Go's packages and Helm's libraries do, family by family. Rows that write something are rendered many at a time,
//! as files of one chart; rows that fail are charts of their own.

use std::fmt::Write as _;

use crate::call::{Call, Files, Source, for_each};
use crate::{lab, recorded};

const CHART: &str = "apiVersion: v2\nname: t\nversion: 1.2.3\nappVersion: \"4.5\"\n";
const VALUES: &str = include_str!("../tables/values.yaml");
/// Templates that many rows include.
const HELPERS: &str = include_str!("../tables/helpers.tpl");
/// How many rows make one chart.
const BATCH: usize = 100;

fn file(path: &str, text: &str) -> (String, Vec<u8>) {
    (path.to_owned(), text.as_bytes().to_vec())
}

fn chart(templates: Files, has_helpers: bool) -> Source {
    let mut files = vec![
        file("Chart.yaml", CHART),
        file("values.yaml", VALUES),
        file("note.txt", "l1\nl2\n"),
    ];
    if has_helpers {
        files.push(file("templates/_helpers.tpl", HELPERS));
    }
    files.extend(templates);
    Source::Files(files)
}

/// Writes what each of the rows makes, encoded, on a line of its own.
fn encoding(rows: &[&str]) -> Call {
    let mut output = String::new();
    let mut files: Files = Vec::new();
    for (position, row) in rows.iter().enumerate() {
        let path = format!("templates/_{position}.tpl");
        writeln!(output, "a{position}: {{{{ include \"t/{path}\" . | b64enc | quote }}}}").unwrap();
        files.push(file(&path, row));
    }
    files.push(file("templates/out.yaml", &output));
    Call::new(rows[0], chart(files, true))
}

/// Renders a row as a file of its own.
fn plain(row: &str) -> Call {
    let files = vec![file("templates/row.yaml", row)];
    Call::new(row, chart(files, row.contains("include")))
}

fn error(result: &str) -> String {
    let message = result.split("\n\nUse --debug flag").next().unwrap_or_default();
    format!("! {}", message.trim_end().escape_debug())
}

fn answers(result: &str) -> Option<Vec<String>> {
    let lines = result.strip_prefix("---\n# Source: t/templates/out.yaml\n")?.lines();
    let text = |line: &str| {
        let encoded = line.split('"').nth(1).unwrap();
        format!("= {}", decode(encoded).escape_ascii())
    };
    Some(lines.map(text).collect())
}

fn decode(encoded: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

/// The row that an error names first.
fn failed_row(error: &str, rows: usize) -> Option<usize> {
    let (_, rest) = error.split_once("t/templates/_")?;
    let (number, _) = rest.split_once(".tpl")?;
    number.parse().ok().filter(|number| *number < rows)
}

/// Whether a row changes what others see.
fn is_alone(row: &str) -> bool {
    ["define", "block", ".Template"].iter().any(|word| row.contains(word))
}

/// The answers to rows that may be rendered together.
fn answer_together(rows: &[&str], render: &(impl Fn(&Call) -> String + Sync)) -> Vec<String> {
    let mut answered: Vec<Option<String>> = vec![None; rows.len()];
    loop {
        let open: Vec<usize> = (0..rows.len()).filter(|row| answered[*row].is_none()).collect();
        if open.is_empty() {
            return answered.into_iter().flatten().collect();
        }
        let texts: Vec<&str> = open.iter().map(|row| rows[*row]).collect();
        let result = render(&encoding(&texts));
        if let Some(all) = answers(&result) {
            for (row, answer) in open.iter().zip(all) {
                answered[*row] = Some(answer);
            }
        } else {
            let failed = failed_row(&result, open.len()).map_or(open.clone(), |position| vec![open[position]]);
            for row in failed {
                answered[row] = Some(answer_alone(rows[row], render));
            }
        }
    }
}

/// The answer to a row that fails, or else changes what others see.
fn answer_alone(row: &str, render: &(impl Fn(&Call) -> String + Sync)) -> String {
    let result = render(&plain(row));
    if result.starts_with("Error: ") && !result.starts_with("Error: YAML parse error") {
        return error(&result);
    }
    match answers(&render(&encoding(&[row]))) {
        Some(mut all) => all.remove(0),
        None => error(&result),
    }
}

#[test]
fn rows_render_as_helm_rendered_them() {
    let files = recorded::files(&lab::room().join("tests/tables"));
    recorded::compare_together(&files, 2_500, |rows: &[(&str, &str)], profile, binary| {
        let render = |call: &Call| match binary {
            Some(binary) => call.theirs(binary),
            None => call.clone().of(profile).ours(),
        };
        let is_apart = |(row, answer): &(&str, &str)| is_alone(row) || answer.starts_with('!');
        let mut results: Vec<Option<String>> = vec![None; rows.len()];
        let (apart, together): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(|row| is_apart(&rows[*row]));
        let mut groups: Vec<Vec<usize>> = apart.into_iter().map(|row| vec![row]).collect();
        groups.extend(together.chunks(BATCH).map(<[usize]>::to_vec));
        let answered = for_each(&groups, |group| {
            if let [row] = group[..] {
                return vec![answer_alone(rows[row].0, &render)];
            }
            let texts: Vec<&str> = group.iter().map(|row| rows[*row].0).collect();
            answer_together(&texts, &render)
        });
        for (group, found) in groups.iter().zip(answered) {
            for (row, answer) in group.iter().zip(found) {
                results[*row] = Some(answer);
            }
        }
        results.into_iter().flatten().collect()
    });
}
