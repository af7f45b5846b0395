//! Which names the patterns of `.Files.Glob` match, against what the Helm versions answered, recorded in `globs/*.txt`.

use helm::Profile;

use crate::call::{Call, Files, Source};
use crate::{lab, recorded};

const CHART: &str = "apiVersion: v2\nname: globs\nversion: 1.2.3\n";
const OUTPUT: &str = "---\n# Source: globs/templates/out.yaml\nnames: |";

/// The names that the patterns are asked of. Empty files are enough.
const NAMES: [&str; 32] = [
    "a",
    "b",
    "aa",
    "ab",
    "ba",
    "aba",
    "abab.txt",
    "a.txt",
    "b.txt",
    "c.md",
    "d/x.txt",
    "d/é.txt",
    "d/e/f.txt",
    "-.txt",
    "].txt",
    "ä.txt",
    "{a}.txt",
    "a,b.txt",
    "é",
    "éa",
    "aé",
    "d/b",
    "x/y/z.yaml",
    "!",
    "*",
    "?",
    "x/ab",
    "a.b.c",
    "[a].txt",
    "日本.txt",
    "\\",
    "a-b",
];

/// A call whose output has the names that a pattern matches, one a line. Patterns are strings as templates write them.
fn call(pattern: &str) -> Call {
    let template = format!(
        "names: |\n  {{{{- range $name, $_ := .Files.Glob {pattern} }}}}\n  {{{{ $name }}}}\n  {{{{- end }}}}\n"
    );
    let mut files: Files = vec![
        ("Chart.yaml".to_owned(), CHART.into()),
        ("templates/out.yaml".to_owned(), template.into_bytes()),
    ];
    files.extend(NAMES.map(|name| (name.to_owned(), Vec::new())));
    Call::new(pattern, Source::Files(files))
}

/// The names behind each other, or what the error says beyond the place.
fn answer(result: &str) -> String {
    if let Some(names) = result.strip_prefix(OUTPUT) {
        return format!("= {}", names.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    }
    let said = result.find("error calling").unwrap_or_default();
    format!("! {}", result[said..].lines().next().unwrap_or_default())
}

#[test]
fn patterns_match_the_names_that_helm_matched() {
    let files = recorded::files(&lab::room().join("tests/globs"));
    let ours = |pattern: &str, profile| {
        let call = Call {
            profile,
            ..call(pattern)
        };
        answer(&call.ours())
    };
    recorded::compare(Profile::all(), &files, 400, ours, |pattern, binary| {
        answer(&call(pattern).theirs(binary))
    });
}
