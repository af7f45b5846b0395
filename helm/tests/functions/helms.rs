//! A one-line template, rendered by our library and by the real helms of the lab.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use helm::answers::{Moment, Seeded};
use helm::template::{Executor, Limits, Templates, on_deep_stack};
use helm::value::{Map, Value};
use helm::{Profile, yaml};

/// When our library renders. The real helms read a clock, so no answer shows the time.
const NOW: Moment = Moment {
    seconds: 1_764_000_000,
    nanoseconds: 123_456_789,
};
/// The file under test. It is a partial, so its output need not be YAML.
const CASE: &str = "templates/_case.tpl";
const OUTPUT: &str = "out: {{ include \"c/templates/_case.tpl\" . | b64enc | quote }}\n";
const START: &str = "---\n# Source: c/templates/out.yaml\n";
const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.2.3\n";
const VALUES: &str = include_str!("values.yaml");

/// The profiles in the order in which answers name them.
pub(crate) fn profiles() -> [&'static Profile; 4] {
    ["v3.19", "v4.1", "v4.2", "v4.3"].map(|name| Profile::by_name(name).unwrap())
}

/// The folder of the recorded facts.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/functions")
}

/// Whether the answers of a file are to be asked for again.
pub(crate) fn is_recording(file: &str) -> bool {
    let wanted = std::env::var_os("STACKWRIGHT_REGENERATE");
    wanted.is_some_and(|wanted| wanted == "1" || wanted == file)
}

/// What our library makes of templates. They are executed alone, without manifests, because there are thousands of them.
pub(crate) fn ours(templates: &[&str], profile: &'static Profile) -> Vec<String> {
    let answers = || templates.iter().map(|template| executed(template, profile)).collect();
    on_deep_stack(answers).unwrap()
}

fn executed(template: &str, profile: &'static Profile) -> String {
    let mut templates = Templates::new(profile.functions());
    templates.parse("gotpl", OUTPUT.as_bytes()).unwrap();
    if let Err(error) = templates.parse("c/templates/_case.tpl", template.as_bytes()) {
        return answer(&format!("Error: {}", error.helm_text()));
    }
    let root = Map::new();
    root.insert("Values", yaml::parse(VALUES.as_bytes()).unwrap().to_value());
    let answers = Arc::new(Seeded::new([7; 32], NOW));
    let mut executor = Executor::new(&templates, Limits::default(), answers);
    match executor.execute("gotpl", Value::Map(root)) {
        Ok(output) => answer(&format!("{START}{}", String::from_utf8_lossy(&output))),
        Err(error) => answer(&error.to_string()),
    }
}

/// The real helm of a profile.
pub(crate) fn binary(profile: &Profile) -> PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lab = std::env::var_os("STACKWRIGHT_LAB").map_or_else(|| room.join("../.lab/lab.json"), PathBuf::from);
    let text =
        std::fs::read(&lab).unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask setup` first", lab.display()));
    let lab = helm::json::decode(&text).expect("the lab description is JSON");
    let path = lab.get("helm").and_then(|helm| helm.get(profile.name));
    path.and_then(|path| path.as_text().map(PathBuf::from))
        .expect("the lab has no such helm: run `cargo xtask setup` first")
}

/// What a real helm makes of a template.
pub(crate) fn theirs(template: &str, binary: &Path) -> String {
    answer(&rendered(&chart(template), binary))
}

/// The whole output of a real helm for one file.
pub(crate) fn output(file: &str, binary: &Path) -> String {
    rendered(&[("Chart.yaml", CHART), ("templates/out.yaml", file)], binary)
}

/// What a real helm writes for a chart, or its error.
fn rendered(files: &[(&str, &str)], binary: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    for (path, text) in files {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    let child = Command::new(binary)
        .args(["template", "rel"])
        .arg(folder.path())
        .args(["--namespace", "ns"])
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return text(&output.stdout);
    }
    let errors = text(&output.stderr);
    errors
        .find("Error: ")
        .map_or_else(|| errors.clone(), |start| errors[start..].to_owned())
}

fn chart(template: &str) -> [(&'static str, &str); 4] {
    [
        ("Chart.yaml", CHART),
        ("values.yaml", VALUES),
        (CASE, template),
        ("templates/out.yaml", OUTPUT),
    ]
}

/// The output of the template, or what its error says beyond the place. Places are a matter of other tests.
fn answer(result: &str) -> String {
    let encoded = result.strip_prefix(START).and_then(|rest| rest.strip_prefix("out: \""));
    if let Some(encoded) = encoded.and_then(|rest| rest.strip_suffix("\"\n")) {
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        return format!("= {}", bytes.escape_ascii());
    }
    let (error, _) = result.split_once("\n\nUse --debug").unwrap_or((result, ""));
    let words: Vec<&str> = error.split_ascii_whitespace().collect();
    let text = words.join(" ");
    let said = text.splitn(3, ">: ").nth(2).unwrap_or(&text);
    format!("! {}", said.escape_debug())
}
