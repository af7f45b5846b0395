//! Memory: what a render may take at most with the default limits ([`helm::Limits`] says it), measured in a process of its own.

use helm::chart::ArchiveLimits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions};

use crate::build::{CHART, File, file};

/// What one render may take, chart included, in KiB.
const MOST: u64 = 512 << 10;

/// Templates that keep as much as they can.
const TEMPLATES: &[&str] = &[
    "{{ $l := list }}{{ range until 200 }}{{ $l = append $l (until 400000) }}{{ end }}",
    "{{ $l := list }}{{ $d := until 400000 }}{{ range until 200 }}{{ $l = append $l (deepCopy $d) }}{{ end }}",
    "{{ $l := list }}{{ range until 50 }}{{ $l = append $l (split \",\" (repeat 100000 \"a,\")) }}{{ end }}",
    "{{ $l := until 200000 }}{{ range until 50 }}{{ $x := chunk 1 $l }}{{ end }}",
    "{{ $s := repeat 100000 \"ab\" }}{{ range until 50 }}{{ $x := regexFindAll \"a|b\" $s -1 }}{{ end }}",
    "{{ $l := list }}{{ range until 50 }}{{ $l = append $l (fromYaml (printf \"a: [%s]\" (repeat 20000 \"{a: 1},\"))) }}{{ end }}",
    "{{ $l := until 100000 }}{{ range until 50 }}{{ $x := toJson $l | fromJsonArray }}{{ end }}",
    "{{ $d := dict }}{{ range $i := until 20000 }}{{ $_ := set $d (toString $i) (repeat 4000 \"x\") }}{{ end }}",
    "{{ define \"a\" }}{{ repeat 60000 \"x\" }}{{ if lt . 900 }}{{ include \"a\" (add . 1 | int) }}{{ end }}{{ end }}{{ include \"a\" 0 }}",
    "{{ $a := repeat 16000000 \"x\" }}{{ $b := upper $a }}{{ $c := b64enc (trunc 12000000 $b) }}{{ $d := quote $a }}",
    "{{ repeat 9 (print \"---\\na:\\n\" (repeat 12000 \"- {b: {}}\\n\")) }}",
];

/// Values of all charts, parsed templates, what templates keep and documents, all of them at once.
fn everything() -> Vec<File> {
    let mut files = vec![file("Chart.yaml", CHART)];
    for number in 0..8 {
        files.push(file(
            format!("charts/s{number}/Chart.yaml"),
            format!("name: s{number}\nversion: 1.0.0\n"),
        ));
        files.push(file(
            format!("charts/s{number}/values.yaml"),
            format!("l:\n{}", "- {a: b}\n".repeat(15_000)),
        ));
    }
    for number in 0..8 {
        files.push(file(
            format!("templates/_{number}.tpl"),
            "{{/* x */}}{{ 1 }}".repeat(80_000),
        ));
    }
    let keep = "{{ $l := list }}{{ range until 50 }}{{ if lt (len $l) 28 }}{{ $l = append $l (until 30000) }}{{ end }}{{ end }}";
    let documents = "{{ repeat 8 (print \"---\\na:\\n\" (repeat 12000 \"- {b: {}}\\n\")) }}";
    files.push(file("templates/a.yaml", [keep, documents].concat()));
    files
}

fn render(files: Vec<File>) {
    let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
    if let Ok(rendering) = chart.render(&Node::Null, &RenderOptions::new("r", "ns")) {
        rendering.manifests.iter().for_each(|manifest| {
            manifest.document();
        });
    }
}

#[test]
#[ignore = "a process of its own, which another test starts and measures"]
fn everything_that_takes_memory() {
    for template in TEMPLATES {
        render(vec![file("Chart.yaml", CHART), file("templates/a.yaml", template)]);
    }
    render(everything());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{most}");
}

#[test]
#[cfg(target_os = "linux")]
fn no_render_takes_more_memory_than_the_limits_promise() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "memory::everything_that_takes_memory",
        "--ignored",
        "--nocapture",
    ]);
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let most = said
        .split("VmHWM:")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap();
    let most: u64 = most.parse().unwrap();
    eprintln!("at most {} MiB", most >> 10);
    assert!(most < MOST, "{most} KiB");
    // Nothing of it was refused before it could take any.
    assert!(most > 100 << 10, "{most} KiB");
}
