//! Charts that mean harm without a template: what they declare multiplies, nests or hides work. Each ends with an error that says what it
//! took too much of, with the limits that every render has.

use helm::chart::ArchiveLimits;
use helm::yaml::Node;
use helm::{Chart, Profile, RenderOptions};

use crate::build::{CHART, File, error, file, repeated};

const SUBCHART: &str = "apiVersion: v2\nname: s\nversion: 1.0.0\n";
const HELD: &str = "values and documents take more than 134217728 bytes";

/// Why a chart does not load or render as a profile does it.
fn error_as(profile: &'static Profile, files: Vec<File>) -> String {
    let options = RenderOptions {
        profile,
        ..RenderOptions::new("r", "ns")
    };
    match Chart::from_files(files, &ArchiveLimits::default()) {
        Err(error) => error.to_string(),
        Ok(chart) => chart.render(&Node::Null, &options).map(|_| ()).unwrap_err().to_string(),
    }
}

fn aliases_of(name: &str, count: usize) -> String {
    let aliases = repeated(count, |number| {
        format!("- {{name: {name}, version: 1.0.0, alias: a{number}}}\n")
    });
    format!("dependencies:\n{aliases}")
}

#[test]
fn a_chart_under_many_aliases_is_not_copied_beyond_the_limit() {
    let values = format!("a: [{}]", "1,".repeat(20_000));
    let files = vec![
        file("Chart.yaml", format!("{CHART}{}", aliases_of("s", 1_000))),
        file("charts/s/Chart.yaml", SUBCHART),
        file("charts/s/values.yaml", values),
    ];
    assert!(error(files).contains(HELD));
}

#[test]
fn aliases_of_charts_with_aliases_end_at_the_limit() {
    let mut files = Vec::new();
    let mut folder = String::new();
    for level in 0..12 {
        let below = format!("s{}", level + 1);
        let declared = if level < 11 {
            aliases_of(&below, 10)
        } else {
            String::new()
        };
        let chart = format!("apiVersion: v2\nname: s{level}\nversion: 1.0.0\n{declared}");
        files.push(file(format!("{folder}Chart.yaml"), chart));
        folder = format!("{folder}charts/{below}/");
    }
    // In Helm 3 the aliases below are found for one alias alone.
    assert!(error_as(Profile::V4_3, files).contains(HELD));
}

#[test]
fn charts_that_aliases_share_are_not_walked_beyond_the_limit() {
    let mut files = Vec::new();
    let mut folder = String::new();
    let keywords = format!("keywords: [{}]\n", "a,".repeat(1_000));
    for level in 0..20 {
        let below = format!("s{}", level + 1);
        let aliases = aliases_of(&below, 3).replace("alias:", "condition: \"on\", alias:");
        let declared = if level < 19 { aliases } else { String::new() };
        let chart = format!("apiVersion: v2\nname: s{level}\nversion: 1.0.0\n{keywords}{declared}");
        files.push(file(format!("{folder}Chart.yaml"), chart));
        files.push(file(format!("{folder}values.yaml"), "a0: {\"on\": false}"));
        folder = format!("{folder}charts/{below}/");
    }
    // The first alias has nothing below it, so that all others in Helm 3 share what is.
    assert!(error_as(Profile::V3_19, files).contains(HELD));
}

#[test]
fn globals_are_not_copied_to_charts_beyond_the_limit() {
    let globals = repeated(2_000, |number| format!("  k{number}: {{a: 1}}\n"));
    let mut files = vec![
        file("Chart.yaml", CHART),
        file("values.yaml", format!("global:\n{globals}")),
    ];
    for number in 0..200 {
        let chart = format!("apiVersion: v2\nname: s{number}\nversion: 1.0.0\n");
        files.push(file(format!("charts/s{number}/Chart.yaml"), chart));
    }
    assert!(error(files).contains(HELD));
}

#[test]
fn values_are_not_imported_below_any_number_of_keys() {
    let parent = "a.".repeat(100_000);
    let declared = format!(
        "dependencies:\n- {{name: s, version: 1.0.0, import-values: [{{child: exports, parent: {parent}b}}]}}\n"
    );
    let files = vec![
        file("Chart.yaml", format!("{CHART}{declared}")),
        file("charts/s/Chart.yaml", SUBCHART),
        file("charts/s/values.yaml", "exports: {a: 1}"),
    ];
    assert!(error(files).contains("import-values of s nest too deeply"));
}

#[test]
fn values_of_all_charts_together_are_bounded() {
    let values = repeated(20_000, |number| format!("k{number}: {{a: 1}}\n"));
    let mut files = vec![file("Chart.yaml", CHART)];
    for number in 0..14 {
        let chart = format!("apiVersion: v2\nname: s{number}\nversion: 1.0.0\n");
        files.push(file(format!("charts/s{number}/Chart.yaml"), chart));
        files.push(file(format!("charts/s{number}/values.yaml"), &values));
    }
    let error = error(files);
    assert!(
        error.contains("values of the charts take more than 134217728 bytes"),
        "{error}"
    );
}

#[test]
fn work_on_files_is_paid_for() {
    let with = |work: &str| {
        vec![
            file("Chart.yaml", CHART),
            file("data", "line\n".repeat(200_000)),
            file(
                "templates/a.yaml",
                format!("\n{{{{ range until 400000 }}}}{work}{{{{ end }}}}"),
            ),
        ]
    };
    for work in ["{{ $x := $.Files.Get \"data\" }}", "{{ range $.Files }}{{ end }}"] {
        let error = error(with(work));
        assert!(
            error.contains("templates make more than") || error.contains("template takes more than"),
            "{work}: {error}"
        );
        assert!(error.contains("c/templates/a.yaml:2:"), "{work}: {error}");
    }
    let error = error(with("{{ $x := $.Files.Glob (repeat 5000 \"a\") }}"));
    assert!(error.contains("glob is longer than 4096 bytes"), "{error}");
}

#[test]
fn texts_for_tpl_are_kept_within_the_output_limit() {
    let template = "{{ range until 100000 }}{{ tpl (printf \"{{ %s1%s }}%d\" (repeat 999 \"(\") (repeat 999 \")\") .) $ }}{{ end }}";
    let error = error(vec![file("Chart.yaml", CHART), file("templates/a.yaml", template)]);
    assert!(
        error.contains("templates make more than 134217728 bytes"),
        "{error:.300}"
    );
}

#[test]
fn numbers_at_the_edge_of_their_range_are_formatted() {
    let template = "a: {{ printf \"%*d\" (int64 \"-9223372036854775808\") 1 | quote }}";
    let chart = Chart::from_files(
        vec![file("Chart.yaml", CHART), file("templates/a.yaml", template)],
        &ArchiveLimits::default(),
    )
    .unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns")).unwrap();
    assert!(String::from_utf8(rendering.stdout()).unwrap().contains("BADWIDTH"));
}
