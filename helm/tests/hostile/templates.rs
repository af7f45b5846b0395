//! Templates that mean harm end with an error that says which limit they broke: soon, in bounded memory, without a stack overflow.

use helm::chart::ArchiveLimits;
use helm::template::Limits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions};

fn render(template: &str, limits: Limits) -> Result<String, String> {
    let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let files = vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("templates/_t.tpl", template),
        file("templates/a.yaml", "a: {{ include \"c/templates/_t.tpl\" . | len }}\n"),
    ];
    let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
    let options = RenderOptions {
        limits,
        ..RenderOptions::new("r", "ns")
    };
    match chart.render(&Node::Null, &options) {
        Ok(rendering) => Ok(String::from_utf8(rendering.stdout()).unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

const NESTED_NAME: &str = "rendering template has a nested reference name: a: unable to execute template";
const DEPTH: &str = "exceeded maximum template depth (20000)";
const BYTES: &str = "result is larger than 16777216 bytes";
const ITEMS: &str = "value has more than 500000 parts";
const NESTED: &str = "value nests deeper than 250 levels, or contains itself";
const VISITS: &str = "values take more than 5000000 steps to compare";
const STEPS: &str = "template takes more than 400000 steps";
const OUTPUT: &str = "templates make more than 134217728 bytes";
const PARENTHESES: &str = "max expression depth exceeded";
const CONTROLS: &str = "text nests more than 10000 control structures";
const PRINTF: &str = "printf width or precision is larger than 1000000";

/// 5,000 maps, each in the next one.
const DEEP: &str = "{{ $d := dict }}{{ range until 5000 }}{{ $d = dict \"a\" $d }}{{ end }}";
/// Two small maps that unfold to a million million parts.
const SHARED: &str = "{{ $d := dict }}{{ range until 40 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}\
                      {{ $e := dict }}{{ range until 40 }}{{ $e = dict \"a\" $e \"b\" $e }}{{ end }}";
const CYCLE: &str = "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $e := dict }}{{ $_ := set $e \"d\" $e }}";
/// 16 MB, 600 KB and 60 KB.
const LONG: &str = "{{ $l := repeat 16000000 \"<\" }}{{ $m := repeat 600000 \"<\" }}{{ $s := repeat 60000 \"<\" }}";

const ATTACKS: &[(&str, &str, &str)] = &[
    (
        "",
        r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#,
        NESTED_NAME,
    ),
    (
        "",
        r#"{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}"#,
        DEPTH,
    ),
    (
        "",
        r#"{{ define "a" }}{{ if 1 }}{{ with 1 }}{{ range tuple 1 }}{{ template "a" . }}{{ end }}{{ end }}{{ end }}{{ end }}{{ template "a" . }}"#,
        DEPTH,
    ),
    ("", r#"{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t) }}"#, DEPTH),
    ("", r#"{{ repeat 1000000000 "x" }}"#, BYTES),
    ("", "{{ until 1000000000 }}", ITEMS),
    ("", "{{ untilStep 0 9223372036854775807 1 }}", ITEMS),
    ("", "{{ seq 0 1000000000 }}", ITEMS),
    ("", r#"{{ printf "%1000001d" 1 }}"#, PRINTF),
    (
        "",
        "{{ $l := until 2000 }}{{ range until 1000 }}{{ $x := uniq $l }}{{ end }}",
        STEPS,
    ),
    (
        "",
        r#"{{ range until 1000 }}{{ $x := regexMatch (printf "a{%d}" .) "a" }}{{ end }}"#,
        STEPS,
    ),
    ("", "{{ range 1000000000000 }}{{ end }}", STEPS),
    (
        "",
        "{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}",
        STEPS,
    ),
    (
        "",
        r#"{{ $s := "x" }}{{ range until 40 }}{{ $s = cat $s $s }}{{ end }}"#,
        BYTES,
    ),
    (
        "",
        r#"{{ $s := "x" }}{{ range until 40 }}{{ $s = print $s $s $s }}{{ end }}"#,
        BYTES,
    ),
    (
        "",
        "{{ $l := list 1 }}{{ range until 40 }}{{ $l = concat $l $l }}{{ end }}",
        ITEMS,
    ),
    (
        "",
        "{{ $l := list }}{{ range until 100 }}{{ $l = append $l (until 100000) }}{{ end }}",
        OUTPUT,
    ),
    (
        "",
        "{{ $l := list }}{{ range until 100 }}{{ $l = append $l (deepCopy (dict \"a\" (until 100000))) }}{{ end }}",
        OUTPUT,
    ),
    ("", "{{ uniq (until 5000) }}", VISITS),
    // A simulation of all states takes half a minute and a gigabyte.
    (
        "",
        r#"{{ regexMatch (repeat 3000 "(a+)+") (repeat 30000 "a") }}"#,
        STEPS,
    ),
    (
        "",
        r#"{{ regexFindAll (repeat 3000 "(a+)+") (repeat 30000 "a") -1 }}"#,
        STEPS,
    ),
    // Each state of the automaton is new.
    (
        "",
        r#"{{ $a := "x" }}{{ range until 12 }}{{ $a = printf "%s%sb%s" $a $a $a }}{{ end }}{{ regexMatch "x[xb]{400}c" $a }}"#,
        STEPS,
    ),
    // Each search reads to the end and finds a letter.
    (
        "",
        r#"{{ regexFindAll ".*[^A-Z]|[A-Z]" (repeat 100000 "A") -1 }}"#,
        STEPS,
    ),
    (
        "",
        r#"{{ regexReplaceAll (repeat 3000 "(a?)") "a" "$1" }}"#,
        "regular expression has too many groups (3000)",
    ),
    (
        "",
        r#"{{ regexReplaceAll (repeat 300 "(a?)") (repeat 30000 "a") "$1" }}"#,
        STEPS,
    ),
    (
        "",
        r#"{{ regexMatch (repeat 70000 "a") "a" }}"#,
        "regular expression is longer than 65536 bytes",
    ),
    (
        "",
        "{{ regexMatch (repeat 60000 \"(\") \"x\" }}{{ regexFind (repeat 60000 \"(\") \"x\" }}",
        "expression nests too deeply",
    ),
    (LONG, "{{ replace \"\" $s $s }}", BYTES),
    (LONG, "{{ replace \"<\" $s $s }}", BYTES),
    (LONG, "{{ regexReplaceAll \"<\" $s $s }}", BYTES),
    (LONG, "{{ regexReplaceAllLiteral \"<\" $s $s }}", BYTES),
    (LONG, "{{ join $s (splitList \"\" $s) }}", BYTES),
    (LONG, "{{ indent 10000000 (replace \"<\" \"\\n\" $s) }}", BYTES),
    (LONG, "{{ wrapWith 1 $s $s }}", BYTES),
    (LONG, "{{ splitList \"\" $m }}", ITEMS),
    (LONG, "{{ split \"<\" $m }}", ITEMS),
    (LONG, "{{ regexSplit \"<\" $m -1 }}", STEPS),
    (LONG, "{{ regexFindAll \"<\" $m -1 }}", STEPS),
    (LONG, "{{ toJson $l }}", OUTPUT),
    (LONG, "{{ printf \"%s%s%s%s\" $l $l $l $l }}", BYTES),
    (LONG, "{{ $l }}{{ $l }}{{ $l }}{{ $l }}", OUTPUT),
    (
        LONG,
        "{{ range until 1000 }}{{ $x := contains \"x\" $l }}{{ end }}",
        STEPS,
    ),
    (
        LONG,
        "{{ fromYaml (replace \"<\" \"- a\\n\" (print $s $s $s $s $s $s $s $s $s $s)) }}",
        ITEMS,
    ),
    (LONG, "{{ fromJson (replace \"<\" \"[\" $s) }}", NESTED),
    (LONG, "{{ fromYaml (replace \"<\" \"[\" $s) }}", NESTED),
    (DEEP, "{{ $d }}", NESTED),
    (DEEP, "{{ toYaml $d }}", NESTED),
    (DEEP, "{{ toJson $d }}", NESTED),
    (DEEP, "{{ deepCopy $d }}", NESTED),
    (DEEP, "{{ merge (dict \"x\" $d) (dict \"x\" (deepCopy $d)) }}", NESTED),
    (SHARED, "{{ $d }}", BYTES),
    (SHARED, "{{ toYaml $d }}", BYTES),
    (SHARED, "{{ toPrettyJson $d }}", BYTES),
    (SHARED, "{{ deepCopy $d }}", ITEMS),
    (SHARED, "{{ deepEqual $d $e }}", VISITS),
    (SHARED, "{{ merge $d $e }}", VISITS),
    (CYCLE, "{{ $d }}", NESTED),
    (
        CYCLE,
        "{{ mustToJson $d }}",
        "json: unsupported value: encountered a cycle via map[string]interface {}",
    ),
    (CYCLE, "{{ deepCopy $d }}", NESTED),
    (CYCLE, "{{ deepEqual $d $e }}", NESTED),
    (CYCLE, "{{ merge $d $e }}", NESTED),
];

#[test]
fn harmful_templates_end_with_the_limit_that_they_broke() {
    let limits = Limits {
        steps: 400_000,
        ..Limits::default()
    };
    let unexpected: Vec<String> = ATTACKS
        .iter()
        .filter_map(|(before, template, expected)| {
            let answer = render(&format!("{before}{template}"), limits);
            let is_expected = answer.as_ref().is_err_and(|error| error.contains(expected));
            (!is_expected).then(|| format!("{template}\n  expected {expected:?}\n  but got {answer:.300?}"))
        })
        .collect();
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

#[test]
fn deeply_nested_texts_are_no_templates() {
    for (open, close) in [
        ("{{ if 1 }}", "{{ end }}"),
        ("{{ if 1 }}{{ else if 1 }}", "{{ end }}"),
        ("{{ with 1 }}{{ range . }}", "{{ end }}{{ end }}"),
    ] {
        let template = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let error = render(&template, Limits::default()).unwrap_err();
        assert!(error.contains(CONTROLS), "{open}: {error}");
    }
    let error = render(&parentheses(10_001), Limits::default()).unwrap_err();
    assert!(error.contains(PARENTHESES), "{error}");
}

fn parentheses(count: usize) -> String {
    format!("{{{{ {}1{} }}}}", "(".repeat(count), ")".repeat(count))
}

#[test]
fn what_helm_renders_may_nest_deeply() {
    let limits = Limits::default();
    let nested = |open: &str, close: &str| format!("{}{{{{ 1 }}}}{}", open.repeat(9_000), close.repeat(9_000));
    assert!(render(&nested("{{ if 1 }}", "{{ end }}"), limits).is_ok());
    assert!(render(&nested("{{ range 1 }}", "{{ end }}"), limits).is_ok());
    assert!(render(&parentheses(10_000), limits).is_ok());
    let branches = format!("{{{{ if 0 }}}}{}{{{{ end }}}}", "{{ else if 0 }}".repeat(9_900));
    assert!(render(&branches, limits).is_ok());
    // Both at once, and a value that is wrong deep within.
    let template = nested("{{ if 1 }}", "{{ end }}").replace("{{ 1 }}", &parentheses(10_000).replace('1', "fail `x`"));
    let error = render(&template, limits).unwrap_err();
    assert!(error.contains(": x") || error.contains(DEPTH), "{error:.300}");
}

#[test]
fn long_texts_are_templates() {
    let pipeline = format!("{{{{ 1{} }}}}", " | print".repeat(10_000));
    assert!(render(&pipeline, Limits::default()).is_ok());
    let fields = format!("{{{{ .Values{} }}}}", ".a".repeat(10_000));
    let error = render(&fields, Limits::default()).unwrap_err();
    assert!(error.contains("nil pointer evaluating"), "{error}");
}

#[test]
fn a_pattern_finds_no_more_than_a_list_may_hold() {
    for template in ["{{ regexSplit \"<\" $m -1 }}", "{{ regexFindAll \"<\" $m -1 }}"] {
        let error = render(&format!("{LONG}{template}"), Limits::default()).unwrap_err();
        assert!(error.contains(ITEMS), "{template}: {error}");
    }
}

#[test]
fn a_limit_of_steps_is_told_with_the_line_that_broke_it() {
    let template = "\n\n{{ $x := regexMatch (repeat 3000 \"(a+)+\") (repeat 30000 \"a\") }}";
    let limits = Limits {
        steps: 400_000,
        ..Limits::default()
    };
    let error = render(template, limits).unwrap_err();
    assert!(error.contains("_t.tpl:3:9: executing"), "{error}");
    assert!(error.contains("at <regexMatch"), "{error}");
    assert!(error.contains(STEPS), "{error}");
}
