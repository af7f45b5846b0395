//! One-line templates against what the Helm versions made of them, recorded in `micro/*.txt`.

use std::sync::Arc;

use helm::answers::{Moment, Seeded};

use helm::Profile;

use crate::call::{Call, Files, Source};
use crate::{lab, recorded};

/// When our library renders. The real helm reads a clock, so no answer shows the time.
const NOW: Moment = Moment {
    seconds: 1_764_000_000,
    nanoseconds: 123_456_789,
};
/// The file under test. It is a partial, so its output need not be YAML.
const CASE: &str = "templates/_case.tpl";
const OUTPUT: &str = "out: {{ include \"micro/templates/_case.tpl\" . | b64enc | quote }}\n";
/// What Helm adds to many errors.
const HINT: &str = "\n\nUse --debug flag to render out invalid YAML\n";
const CHART: &str = "apiVersion: v2\nname: micro\nversion: 1.2.3\nappVersion: \"4.5\"\n";

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
        None => format!(
            "! {}",
            result.trim_end_matches(HINT).trim_end_matches('\n').escape_debug()
        ),
    }
}

fn decode(encoded: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

#[test]
fn one_line_templates_render_as_helm_rendered_them() {
    let files = recorded::files(&lab::room().join("tests/micro"));
    let ours = |template: &str, profile| answer(&call(template).of(profile).ours());
    recorded::compare(Profile::all(), &files, 300, ours, |template, binary| {
        answer(&call(template).theirs(binary))
    });
}
