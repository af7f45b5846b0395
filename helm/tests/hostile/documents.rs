//! YAML, JSON and TOML that unfold, nest or repeat beyond what a reader should follow.

use helm::yaml::{self, Node, read};
use helm::{ArchiveLimits, Chart, Limits, RenderOptions};

use crate::build::{CHART, error, file, render, repeated};

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let below = level - 1;
        let line = format!(
            "a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}]\n"
        );
        text.push_str(&line);
    }
    assert!(read(text.as_bytes()).is_err());
}

#[test]
fn deep_nesting_is_refused() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        assert!(read(text.as_bytes()).is_err());
        assert!(helm::json::decode(text.as_bytes()).is_err());
    }
}

/// What a template says of a text that a function reads.
fn said(template: &str) -> String {
    error(vec![file("templates/a.yaml", template)])
}

#[test]
fn aliases_explode_nowhere() {
    let bomb = format!(
        "a0: &a0 [x, x, x, x, x, x, x, x]\n{}",
        repeated(12, |level| {
            let alias = format!("*a{level}, ").repeat(8);
            format!("a{}: &a{} [{alias}]\n", level + 1, level + 1)
        })
    );
    let excessive = "document contains excessive aliasing";
    let quoted = bomb.replace('\n', "\\n");
    for (place, files) in [
        ("values", vec![file("values.yaml", &bomb)]),
        (
            "metadata",
            vec![file("Chart.yaml", format!("name: c\nversion: 1.0.0\n{bomb}"))],
        ),
        ("lock", vec![file("Chart.lock", &bomb)]),
        ("manifest", vec![file("templates/a.yaml", &bomb)]),
        (
            "fromYaml",
            vec![file(
                "templates/a.yaml",
                format!("a: {{{{ (fromYaml \"{quoted}\").Error | fail }}}}"),
            )],
        ),
    ] {
        let error = error(files);
        assert!(
            error.contains(excessive) || error.contains("more than 500000 parts"),
            "{place}: {error}"
        );
    }
}

#[test]
fn merge_keys_that_explode_are_refused() {
    let keys = repeated(1_000, |number| format!("k{number}: 1, "));
    let merges = repeated(5_000, |number| format!("b{number}: {{<<: *a}}\n"));
    let error = error(vec![file("values.yaml", format!("a: &a {{{keys}}}\n{merges}"))]);
    assert!(
        error.contains("excessive aliasing") || error.contains("more than"),
        "{error}"
    );
}

#[test]
fn an_anchor_within_itself_is_refused() {
    for text in [
        "a: &a [*a]\n",
        "a: &a {b: *a}\n",
        "&a [b, *a]\n",
        "a: &a {<<: *a}\n",
        "&a {<<: [*a]}\n",
    ] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("contains itself"), "{text}: {error}");
    }
}

#[test]
fn tags_with_commas_and_brackets_are_tags() {
    for (text, read_as) in [
        ("a: [!x, b]\n", Some("a:\n- b\n")),
        ("a: [!x,1 b, !!str, 5]\n", Some("a:\n- b\n- \"5\"\n")),
        ("a: !x,y b\n", Some("a: b\n")),
        ("a: |\n  !x, y\nb: [!x, y]\n", Some("a: |\n  !x, y\nb:\n- \"y\"\n")),
        ("a: [!x]\n", None),
        ("a: {!x, b}\n", Some("a:\n  b: null\n")),
    ] {
        let found = read(text.as_bytes()).map(|decoded| yaml::emit(&decoded.node)).ok();
        assert_eq!(found.as_deref(), read_as, "{text}");
    }
}

#[test]
fn many_tag_directives_are_refused() {
    let directives = repeated(100_000, |number| format!("%TAG !a{number}! tag:x\n"));
    let error = read(format!("{directives}---\na: 1\n").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("more than 500000 parts"), "{error}");
}

#[test]
fn documents_in_other_encodings_are_read_or_refused() {
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let whole = utf16("\u{feff}a: ö\n");
    assert_eq!(read(&whole).map(|decoded| yaml::emit(&decoded.node)).unwrap(), "a: ö\n");
    assert!(read(&whole[..whole.len() - 1]).is_err());
    for surrogates in [
        &b"\xff\xfe\x00\xd8a\x00"[..],
        b"\xff\xfe\x00\xdc",
        b"\xfe\xff\xd8\x00",
        b"\xff\xfe\x00\xd8",
    ] {
        assert!(read(surrogates).is_err(), "{surrogates:?}");
    }
}

#[test]
fn a_manifest_may_take_no_more_memory_than_a_document_may() {
    let error = said("{{ repeat 100000 \"- {b: {}}\\n\" }}");
    assert!(error.contains("document takes more than 50331648 bytes"), "{error}");
    let error = said("{{ repeat 19 (print \"---\\na:\\n\" (repeat 12000 \"- {b: {}}\\n\")) }}");
    assert!(
        error.contains("values and documents take more than 134217728 bytes"),
        "{error}"
    );
}

#[test]
fn toml_under_long_keys_is_paid_for() {
    let key = "{{ $k := repeat 4000000 \"a\" }}";
    for line in ["x%d=1", "x%d.y=1", "x%d={}", "x%d=[]"] {
        let lines = format!(
            "{{{{ $l := list }}}}{{{{ range until 100 }}}}{{{{ $l = append $l (printf \"{line}\" .) }}}}{{{{ end }}}}"
        );
        let template = format!("{key}{lines}{{{{ fromToml (printf \"[%s]\\n%s\" $k (join \"\\n\" $l)) }}}}");
        let files = vec![file("Chart.yaml", CHART), file("templates/a.yaml", template)];
        let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
        let options = RenderOptions {
            limits: Limits {
                steps: 200_000,
                ..Limits::default()
            },
            ..RenderOptions::new("r", "ns")
        };
        let error = chart.render(&Node::Null, &options).map(|_| ()).unwrap_err().to_string();
        let is_bound = error.contains("takes more");
        assert!(is_bound, "{line}: {error}");
    }
}

#[test]
fn toml_that_nests_or_counts_too_far_is_refused() {
    for (text, reason) in [
        (
            "(printf \"a=%s\" (repeat 100000 \"[\"))",
            "nests deeper than 250 levels",
        ),
        (
            "(printf \"a=%s\" (repeat 100000 \"{a=\"))",
            "nests deeper than 250 levels",
        ),
        (
            "(printf \"%sa=1\" (repeat 100000 \"a.\"))",
            "nests deeper than 250 levels",
        ),
        (
            "(printf \"[%sa]\" (repeat 100000 \"a.\"))",
            "nests deeper than 250 levels",
        ),
        ("(printf \"a=[%s]\" (repeat 600000 \"1,\"))", "more than 500000 parts"),
    ] {
        let error = said(&format!("{{{{ fromToml {text} }}}}"));
        assert!(error.contains(reason), "{text}: {error}");
    }
    for (text, reason) in [
        ("(printf \"a=1%s\" (repeat 1000000 \"1\"))", "out of range for int64"),
        ("(printf \"a=1e%s\" (repeat 1000000 \"1\"))", "out of range for float64"),
        ("(printf \"a=%s\" (repeat 1000000 \"1-\"))", "invalid datetime"),
        ("(printf \"a=0x%s\" (repeat 1000000 \"f\"))", "out of range for int64"),
    ] {
        let error = said(&format!(
            "{{{{ $e := (fromToml {text}).Error }}}}{{{{ fail (print (trunc 100 $e) (trunc -100 $e)) }}}}"
        ));
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn numbers_of_a_million_digits_are_numbers_or_texts() {
    let digits = "9".repeat(1_000_000);
    for (text, start) in [
        (format!("a: {digits}\n"), "a: 9999"),
        (format!("a: 0.{digits}\n"), "a: 1"),
        (format!("a: 1e{digits}\n"), "a: 1e9999"),
        (format!("a: 0x{digits}\n"), "a: 0x9999"),
    ] {
        let found = read(text.as_bytes()).map(|decoded| yaml::emit(&decoded.node)).unwrap();
        assert!(found.starts_with(start), "{found:.40}");
    }
    assert!(render(vec![file("values.yaml", format!("a: {digits}\n"))]).is_ok());
}
