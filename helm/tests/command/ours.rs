//! What Helm does not have: refusals, the help, reproducible chance.

use std::path::Path;
use std::process::{Command, Output};

fn call(arguments: &[&str]) -> Output {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/charts");
    Command::new(env!("CARGO_BIN_EXE_helm-template"))
        .args(arguments)
        .current_dir(charts)
        .env_clear()
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn what_would_reach_out_is_refused() {
    for (arguments, reason) in [
        (["plain", "--validate"], "asks a cluster"),
        (["plain", "--dry-run=server"], "asks a cluster"),
        (["plain", "--repo=http://charts.invalid"], "downloads"),
        (["plain", "--dependency-update"], "downloads"),
        (["plain", "--post-renderer=cat"], "starts another program"),
        (["plain", "--enable-dns"], "asks name servers"),
        (["plain", "--verify"], "checks signatures"),
        (
            ["plain", "--values=https://charts.invalid/values.yaml"],
            "is not downloaded here",
        ),
        (["oci://charts.invalid/plain", "--debug"], "is not downloaded here"),
        (
            ["https://charts.invalid/plain.tgz", "--debug"],
            "is not downloaded here",
        ),
    ] {
        let output = call(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).starts_with("Error: "), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(reason),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_seed_and_a_time_make_random_charts_reproducible() {
    let with = |seed: &str| call(&["chance", "--seed", seed, "--now", "1700000000"]).stdout;
    let first = with("1");
    assert!(text(&first).contains("at: 2023-11-14"), "{}", text(&first));
    assert_eq!(first, with("1"));
    assert_ne!(first, with("2"));
    assert_ne!(call(&["chance"]).stdout, call(&["chance"]).stdout);
}

#[test]
fn the_help_names_every_flag_that_does_something() {
    for flag in ["-h", "--help"] {
        let output = call(&[flag]);
        assert!(output.status.success());
        let help = text(&output.stdout);
        for name in [
            "--profile",
            "--show-only",
            "--set-json",
            "--name-template",
            "--output-dir",
            "--seed",
        ] {
            assert!(help.contains(name), "{name}");
        }
    }
}

#[test]
fn an_unknown_profile_is_told_which_there_are() {
    let output = call(&["plain", "--profile", "v2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("v3.19, v4.1"), "{}", text(&output.stderr));
}

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// The last line of an error of a limit that Helm does not have.
fn says_whose_limit_it_is(error: &str) -> bool {
    let last = error.lines().last().unwrap_or_default();
    last.ends_with("see docs/reference/helm-limits.md")
}

/// A value that nests too deeply.
fn deep() -> String {
    format!("{}{}", "{a: ".repeat(300), "}".repeat(300))
}

#[test]
fn a_limit_met_in_any_file_is_told_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    write("deep.yaml", &format!("a: {}\n", deep()));
    std::fs::File::create(path("large"))
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    let (deep_file, large, file) = (path("deep.yaml"), path("large"), format!("a={}", path("large")));
    std::fs::File::create(path("part")).unwrap().set_len(14 << 20).unwrap();
    let parts = (0..5)
        .map(|part| format!("a{part}={}", path("part")))
        .collect::<Vec<_>>()
        .join(",");
    let lists = format!("a={}{}", "[".repeat(300), "]".repeat(300));
    for (arguments, words) in [
        (["plain", "-f", &deep_file], "value nests deeper than"),
        (["plain", "-f", &large], "file is larger than 16777216 bytes"),
        (["plain", "--set-file", &file], "file is larger than 16777216 bytes"),
        (
            ["plain", "--set-file", &parts],
            "files are larger than 67108864 bytes together",
        ),
        (["plain", "--set-json", &lists], "failed parsing --set-json data"),
    ] {
        let output = call(&arguments);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.contains(words) && says_whose_limit_it_is(error), "{error}");
    }
    let deep_text = format!("a: {}\n", deep());
    let ignoring = "#".repeat((1 << 20) + 1);
    let many = "a\n".repeat(10_001);
    for (name, added, words) in [
        ("Chart.yaml", format!("{CHART}{deep_text}"), "value nests deeper than"),
        ("Chart.lock", deep_text, "value nests deeper than"),
        (".helmignore", ignoring, ".helmignore is larger than 1048576 bytes"),
        (".helmignore", many, ".helmignore has more than 10000 rules"),
    ] {
        let chart = tempfile::tempdir().unwrap();
        std::fs::write(chart.path().join("Chart.yaml"), CHART).unwrap();
        std::fs::write(chart.path().join(name), added).unwrap();
        let output = call(&[chart.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(
            error.contains(words) && says_whose_limit_it_is(error),
            "{name}: {error}"
        );
    }
    assert!(!says_whose_limit_it_is(text(
        &call(&["plain", "-f", "nowhere.yaml"]).stderr
    )));
    assert!(!says_whose_limit_it_is(text(&call(&["ignoring-double-star"]).stderr)));
}

#[test]
fn parentheses_are_limited_in_the_name_of_whoever_limits_them() {
    let chart = tempfile::tempdir().unwrap();
    std::fs::create_dir(chart.path().join("templates")).unwrap();
    std::fs::write(chart.path().join("Chart.yaml"), CHART).unwrap();
    let template = format!("a: {{{{ {}1{} }}}}", "(".repeat(10_001), ")".repeat(10_001));
    std::fs::write(chart.path().join("templates/a.yaml"), template).unwrap();
    for (profile, is_ours) in [("v3.19", true), ("v4.1", false), ("v4.3", false)] {
        let output = call(&[chart.path().to_str().unwrap(), "--profile", profile]);
        let error = text(&output.stderr);
        assert!(error.contains("max expression depth exceeded"), "{error}");
        assert_eq!(says_whose_limit_it_is(error), is_ours, "{profile}: {error}");
    }
}

#[test]
fn an_error_of_a_limit_says_that_helm_has_none() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits");
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    std::fs::write(folder.join("Chart.yaml"), CHART).unwrap();
    let stderr = |template: &str, values: &str| {
        std::fs::write(folder.join("values.yaml"), values).unwrap();
        std::fs::write(folder.join("templates/a.yaml"), template).unwrap();
        let output = call(&[folder.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr).to_owned()
    };
    let deep_values = format!("a: {}", deep());
    for (template, values) in [("{{ repeat 99999999 \"x\" }}", ""), ("", &*deep_values)] {
        let error = stderr(template, values);
        assert!(says_whose_limit_it_is(&error), "{error}");
    }
    assert!(!stderr("{{ fail \"x\" }}", "").contains("limit"));
}
