//! Tera templates beside Go's: the same root, one source of objects, and an end to every template that does not behave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod charts;

use std::cell::Cell;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rendering::{ChartBytes, ErrorClass, Lane, RenderError, RenderRequest, Rendered, Renderer};
use serde_json::{Value, json};

use charts::{archive, chain, request, values};

const OBJECT: &str = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";

/// Takes some hours.
const ENDLESS: &str = "{% for a in range(end=100000) %}{% for b in range(end=100000) %}{% if a == -1 %}x{% endif %}{% endfor %}{% endfor %}";

/// Takes more than all the memory of its process, a little after the other.
const GROWING: &str =
    "{% set_global text = \"0123456789\" %}{% for a in range(end=64) %}{% set_global text = text ~ text %}{% endfor %}";

fn renderer() -> Renderer {
    keeping(0)
}

fn keeping(bytes: usize) -> Renderer {
    Renderer::new(bytes).with_tera_of(Path::new(env!("CARGO_BIN_EXE_rendering-tera")))
}

/// In the slow lane, and once more when that did not end in time: machines that test have more to do.
fn render(files: &[(&str, &str)]) -> Result<Rendered, RenderError> {
    let once = || renderer().render(&request(&|| Ok(archive(files))), Lane::Slow);
    let mut rendered = once();
    for _ in 0..5 {
        if !matches!(rendered, Err(RenderError::Deadline { .. })) {
            break;
        }
        rendered = once();
    }
    rendered
}

fn objects(files: &[(&str, &str)]) -> Vec<Value> {
    values(&render(files).unwrap())
}

/// What one template writes into the field `spec` of an object.
fn spec(template: &str) -> Value {
    let object = format!("apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nspec: {template}\n");
    objects(&[("templates/a.tera", &object)])[0]["spec"].clone()
}

fn error(files: &[(&str, &str)]) -> (ErrorClass, String) {
    let error = render(files).unwrap_err();
    (error.class(), chain(&error))
}

#[test]
fn tera_files_see_the_same_root_and_become_objects_beside_those_of_go_templates() {
    let files = [
        ("values.yaml", "names: [one, two]\nport: 8080\nratio: 0.5\n"),
        ("conf/motd.txt", "hello\n"),
        ("templates/a.yaml", OBJECT),
        (
            "templates/b.tera",
            "{% for name in Values.names %}---\napiVersion: v1\nkind: B\nmetadata:\n  name: {{ name }}\n{% include \"_spec.tera\" %}{% endfor %}",
        ),
        (
            "templates/_spec.tera",
            "spec: {release: {{ Release.Name }}, chart: {{ Chart.Name }}, port: {{ Values.port }}, ratio: {{ Values.ratio }}, \
             template: {{ Template.Name }}, base: {{ Template.BasePath }}, namespace: {{ Release.Namespace }}, html: \"<&>\", \
             helm: {{ Capabilities.HelmVersion.Version }}, motd: {{ Files[\"conf/motd.txt\"] | json_encode }}}\n",
        ),
    ];
    let rendered = render(&files).unwrap();
    let found: Vec<_> = rendered
        .objects
        .iter()
        .map(|object| {
            (
                object.value["metadata"]["name"].as_str().unwrap(),
                object.source.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("a", "c/templates/a.yaml"),
            ("one", "c/templates/b.tera"),
            ("two", "c/templates/b.tera")
        ]
    );
    let spec = json!({
        "release": "docker-scs-1-30", "chart": "c", "port": 8080, "ratio": 0.5, "template": "c/templates/b.tera",
        "base": "c/templates", "namespace": "cluster", "html": "<&>", "helm": "v3.19.0", "motd": "hello\n",
    });
    assert_eq!(rendered.objects[2].value["spec"], spec);
}

#[test]
fn the_files_of_a_chart_and_of_one_in_it_have_a_root_and_an_output_each() {
    let object = "apiVersion: v1\nkind: A\nmetadata: {name: \"{{ Chart.Name }}\"}\n";
    let rendered = render(&[
        ("templates/a.tera", object),
        (
            "charts/inner/Chart.yaml",
            "apiVersion: v2\nname: inner\nversion: 1.0.0\n",
        ),
        ("charts/inner/templates/a.tera", object),
    ])
    .unwrap();
    let objects = rendered.objects.iter();
    let mut found: Vec<_> = objects
        .map(|object| {
            (
                object.value["metadata"]["name"].as_str().unwrap(),
                object.source.as_str(),
            )
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("c", "c/templates/a.tera"),
            ("inner", "c/charts/inner/templates/a.tera")
        ]
    );
}

#[test]
fn what_tera_writes_is_held_to_the_same_as_what_go_templates_write() {
    for (tera, reason) in [
        (
            "kind: A\nmetadata: {name: a}\n",
            "c/templates/b.tera renders an object without apiVersion",
        ),
        ("a: b: c\n", "mapping values are not allowed in this context"),
        (OBJECT, "c/templates/a.yaml and c/templates/b.tera both render A \"a\""),
    ] {
        let (class, text) = error(&[("templates/a.yaml", OBJECT), ("templates/b.tera", tera)]);
        assert_eq!(class, ErrorClass::Terminal);
        assert!(text.contains(reason), "{text}");
        assert!(text.contains("c/templates/b.tera"), "{text}");
    }
}

#[test]
fn maps_and_groups_come_in_the_order_of_their_keys_in_every_process() {
    let keys = "{% for key, value in Values.map %}{{ key }}{% endfor %}-{{ Values.map | keys | join(sep=\"\") }}";
    let groups =
        "{% for key, items in Values.items | group_by(attribute=\"k\") %}{{ key }}{{ items | length }}{% endfor %}";
    let letters = || ('a'..='z').map(String::from);
    let map = letters().rev().map(|key| format!("  k{key}: 1")).collect::<Vec<_>>();
    let items = letters()
        .rev()
        .map(|key| format!("- {{k: k{key}}}\n- {{k: k{key}}}"))
        .collect::<Vec<_>>();
    let template = format!("apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nspec: [{keys}, {groups}]\n");
    let values = format!("map:\n{}\nitems:\n{}\n", map.join("\n"), items.join("\n"));
    let sorted = letters().map(|key| format!("k{key}")).collect::<Vec<_>>();
    let (names, counted) = (sorted.concat(), format!("{}2", sorted.join("2")));
    for _ in 0..3 {
        let found = objects(&[("values.yaml", &values), ("templates/a.tera", &template)]);
        assert_eq!(found[0]["spec"], json!([format!("{names}-{names}"), counted]));
    }
}

#[test]
fn what_has_null_for_its_attribute_is_in_no_group() {
    let values = "items: [{k: x, port: 1}, {k: null, port: 2}, {k: x, port: 3}]\n";
    let template = format!("{OBJECT}spec: {{{{ Values.items | group_by(attribute=\"k\") | json_encode }}}}\n");
    let found = objects(&[("values.yaml", values), ("templates/a.tera", &template)]);
    assert_eq!(
        found[0]["spec"],
        json!({"x": [{"k": "x", "port": 1}, {"k": "x", "port": 3}]})
    );
}

#[test]
fn nothing_tells_the_time_or_draws_or_reads_the_environment() {
    for call in [
        "now()",
        "get_random(start=0, end=9)",
        "get_env(name=\"HOME\")",
        "uuid()",
        "load_data(path=\"/etc/passwd\")",
    ] {
        let (function, _) = call.split_once('(').unwrap();
        let (class, text) = error(&[("templates/a.tera", &format!("\n{{{{ {call} }}}}"))]);
        assert_eq!(class, ErrorClass::Terminal);
        assert!(
            text.ends_with(&format!("c/templates/a.tera:2: Unknown function `{function}`")),
            "{text}"
        );
    }
}

#[test]
fn json_encode_makes_one_field_of_any_value() {
    let values = "deep: {b: [1, true, null], a: \"x: \\\"y\\\" # z\"}\n";
    let template = format!("{OBJECT}spec: {{{{ Values.deep | json_encode }}}}\n");
    let found = objects(&[("values.yaml", values), ("templates/a.tera", &template)]);
    assert_eq!(found[0]["spec"], json!({"b": [1, true, null], "a": "x: \"y\" # z"}));
}

#[test]
fn an_error_names_file_and_line_of_what_is_wrong() {
    let helper = (
        "templates/_h.tera",
        "{% component C(a) %}\n{{ a.b.c }}\n{% endcomponent C %}",
    );
    for (template, place, reason) in [
        (
            "a: 1\nb: {{ Values.missing.deeper }}\n",
            ("b.tera", Some(2)),
            "Field `missing` is not defined",
        ),
        ("\n\n{% if %}", ("b.tera", Some(3)), ""),
        (
            "\n{% include \"gone.tera\" %}",
            ("b.tera", Some(2)),
            "Unknown template `gone.tera`",
        ),
        ("\n{{ 1 | gone }}", ("b.tera", Some(2)), "Unknown filter `gone`"),
        ("{{<C a={1} />}}", ("_h.tera", Some(2)), "Field `b` is not defined"),
        (
            "\n{{ throw(message=\"set a\nregion\") }}",
            ("b.tera", Some(2)),
            "set a region",
        ),
        (
            "{% extends \"gone.tera\" %}",
            ("b.tera", None),
            "doesn't exist or isn't loaded",
        ),
        ("{% include \"b.tera\" %}", ("b.tera", None), "Circular include"),
    ] {
        let error = render(&[helper, ("templates/b.tera", template)]).unwrap_err();
        let (path, line) = error.place().unwrap();
        assert_eq!(
            (path, line),
            (&*format!("c/templates/{}", place.0), place.1),
            "{error:?}"
        );
        let text = chain(&error);
        assert!(text.contains(reason), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(error.class(), ErrorClass::Terminal);
    }
    let (_, text) = error(&[("templates/b.tera", "{% include \"b.tera\" %}")]);
    assert!(
        text.starts_with("unable to render the chart as release \"docker-scs-1-30\": c/templates/b.tera: "),
        "{text}"
    );
}

#[test]
fn a_file_that_is_no_text_is_named() {
    // The text is compressed, so the archive is made of other bytes instead.
    let chart = latin(archive(&[("templates/a.tera", "{# \u{e9} #}")]));
    let error = renderer()
        .render(&request(&|| Ok(chart.clone())), Lane::Slow)
        .unwrap_err();
    assert_eq!(error.place(), Some(("c/templates/a.tera", None)));
    assert!(chain(&error).contains("a template has to be UTF-8"), "{error:?}");
}

/// The same archive with Latin-1 in place of UTF-8.
fn latin(archive: ChartBytes) -> ChartBytes {
    use std::io::{Read as _, Write as _};
    let ChartBytes::Archive(archive) = archive else {
        unreachable!("it is one");
    };
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(archive.as_slice())
        .read_to_end(&mut tar)
        .unwrap();
    let at = tar.windows(2).position(|two| two == [0xc3, 0xa9]).unwrap();
    tar[at] = 0xe9;
    tar[at + 1] = b' ';
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&tar).unwrap();
    ChartBytes::Archive(packed.finish().unwrap())
}

/// Each attack with the words of its end. All but the first are over long before their deadline.
#[test]
fn a_template_that_asks_for_too_much_ends_with_what_to_do() {
    let chain_of_includes: Vec<(String, String)> = (0..500)
        .map(|number| {
            (
                format!("templates/{number:03}.tera"),
                format!("{{% include \"{:03}.tera\" %}}", number + 1),
            )
        })
        .chain([("templates/500.tera".to_owned(), String::new())])
        .collect();
    let chain_of_includes: Vec<(&str, &str)> = chain_of_includes
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let huge = "#".repeat((1 << 20) + 1);
    let flood = "{% for a in range(end=100000) %}0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789{% endfor %}";
    let data = format!("{{# {} #}}", "x".repeat(1_000));
    let files: Vec<(String, String)> = (0..2_000)
        .map(|number| (format!("conf/{number}"), "\u{1}".repeat(1_000)))
        .collect();
    let mut with_files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    with_files.push(("templates/a.tera", &data));
    for (files, reason) in [
        (
            &[("templates/a.tera", "{{ range(end=100000000000) }}")][..],
            "exceeds the limit of 100000",
        ),
        (
            &[("templates/a.tera", GROWING)],
            "need more than 64 MiB of memory, or nest too deeply: shorten loops",
        ),
        (
            &[("templates/a.tera", flood)],
            "may write 8388608 bytes: shorten a loop",
        ),
        (
            &[("templates/a.tera", &huge)],
            "may have 1048576 bytes together, these have 1048577: move data",
        ),
        (&with_files, "may see 8388608 bytes of values and files"),
        (
            &chain_of_includes,
            "templates include or extend each other more than 16 deep",
        ),
        (
            &[(
                "templates/a.tera",
                "{% component C(a) %}{{<C a={a} />}}{% endcomponent C %}{{<C a={1} />}}",
            )],
            "recursion depth for components exceeded",
        ),
        (
            &[(
                "templates/a.tera",
                &format!("{{{{ {}1{} }}}}", "(".repeat(5_000), ")".repeat(5_000)),
            )],
            "too complex",
        ),
        (&[("templates/a.tera", &"{% if true %}".repeat(5_000))], "nest"),
    ] {
        let error = render(files).unwrap_err();
        let text = chain(&error);
        assert!(text.contains(reason), "{text}");
        assert_eq!(error.class(), ErrorClass::Terminal, "{text}");
        assert!(error.place().is_some(), "{text}");
    }
}

#[test]
fn of_several_templates_the_one_that_takes_too_much_memory_is_named() {
    let files = [
        ("templates/a.tera", OBJECT),
        ("templates/b.tera", GROWING),
        ("templates/c.tera", ""),
    ];
    let error = render(&files).unwrap_err();
    assert!(chain(&error).contains("MiB of memory"), "{error:?}");
    assert_eq!(error.place(), Some(("c/templates/b.tera", None)));
}

#[test]
fn a_template_without_end_is_stopped_and_is_worth_another_try() {
    let files = [
        ("templates/a.tera", OBJECT),
        ("templates/b.tera", ENDLESS),
        ("templates/c.tera", ""),
    ];
    let error = renderer()
        .render(&request(&|| Ok(archive(&files))), Lane::Slow)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the templates of release \"docker-scs-1-30\" did not end within 4s, so they were stopped"
    );
    assert_eq!(error.class(), ErrorClass::Transient);
    assert_eq!(error.place(), Some(("c/templates/b.tera", None)));
    assert!(
        chain(&error).ends_with("bounded by time: take work out of their loops"),
        "{error:?}"
    );
}

#[test]
fn a_slow_chart_takes_its_time_from_others_once_and_is_then_rendered_beside_them() {
    let reads = Cell::new(0);
    let renderer = keeping(1 << 20);
    let slow = || {
        reads.set(reads.get() + 1);
        Ok(archive(&[("templates/a.tera", ENDLESS)]))
    };
    for expected in [1, 1] {
        let error = renderer.render(&request(&slow), Lane::Quick).unwrap_err();
        assert!(matches!(error, RenderError::TooSlow { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Transient);
        assert_eq!(reads.get(), expected);
    }
    let good = || Ok(archive(&[("templates/a.tera", OBJECT)]));
    let good = RenderRequest {
        identity: "sha256:good",
        ..request(&good)
    };
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let slow = || Ok(archive(&[("templates/a.tera", ENDLESS)]));
            renderer.render(&request(&slow), Lane::Slow).unwrap_err()
        });
        // It needs the turn of the quick lane, which the slow chart does not hold.
        while !slow.is_finished() {
            let chart = || Ok(archive(&[("templates/a.yaml", OBJECT)]));
            let others = RenderRequest {
                identity: "sha256:others",
                ..request(&chart)
            };
            assert_eq!(renderer.render(&others, Lane::Quick).unwrap().objects.len(), 1);
        }
        assert_eq!(slow.join().unwrap().class(), ErrorClass::Transient);
    });
    assert_eq!(renderer.render(&good, Lane::Slow).unwrap().objects.len(), 1);
}

#[test]
fn good_templates_are_rendered_while_others_break_every_limit() {
    let renderer = renderer();
    thread::scope(|scope| {
        let bad: Vec<_> = [GROWING, ENDLESS, "{{ range(end=100000000000) }}"]
            .into_iter()
            .map(|template| {
                let renderer = &renderer;
                scope.spawn(move || {
                    let chart = || Ok(archive(&[("templates/a.tera", template)]));
                    renderer.render(&request(&chart), Lane::Slow).is_err()
                })
            })
            .collect();
        let chart = || Ok(archive(&[("templates/a.tera", OBJECT)]));
        assert_eq!(renderer.render(&request(&chart), Lane::Slow).unwrap().objects.len(), 1);
        assert!(bad.into_iter().all(|thread| thread.join().unwrap()));
    });
}

#[test]
fn an_equal_request_gets_the_same_rendering_and_a_failure_is_not_kept() {
    let renderer = keeping(1 << 20);
    let chart = || Ok(archive(&[("templates/a.tera", OBJECT)]));
    let first = renderer.render(&request(&chart), Lane::Slow).unwrap();
    let second = renderer.render(&request(&|| panic!("it is kept")), Lane::Slow).unwrap();
    assert_eq!(first, second);

    let stopped = keeping(1 << 20).with_deadline(Duration::ZERO);
    let error = stopped.render(&request(&chart), Lane::Slow).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient, "{error:?}");
    let again = stopped.with_deadline(Duration::from_mins(1));
    assert_eq!(again.render(&request(&chart), Lane::Slow).unwrap().digest, first.digest);
}

#[test]
fn a_program_that_does_not_serve_says_so_and_starts_nothing() {
    let chart = || Ok(archive(&[("templates/a.tera", OBJECT)]));
    let error = Renderer::new(0).render(&request(&chart), Lane::Slow).unwrap_err();
    assert!(matches!(error, RenderError::Tera { .. }), "{error:?}");
    assert!(
        chain(&error).ends_with("in a process of their own: this program does no work of the name \"tera\""),
        "{error:?}"
    );
}

#[test]
fn a_machine_that_starts_no_process_is_worth_another_try() {
    let chart = || Ok(archive(&[("templates/a.tera", OBJECT)]));
    let renderer = Renderer::new(0).with_tera_of(Path::new("/dev/null/none"));
    let error = renderer.render(&request(&chart), Lane::Slow).unwrap_err();
    assert!(chain(&error).contains("unable to start a process"), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Transient);
}

#[test]
fn the_path_of_a_template_below_a_folder_is_its_name() {
    let helper = ("templates/parts/_labels.tera", "{app: b}");
    let template = format!("{OBJECT}spec: {{% include \"parts/_labels.tera\" %}}\n");
    let found = objects(&[helper, ("templates/deep/a.tera", &template)]);
    assert_eq!(found[0]["spec"], json!({"app": "b"}));
}

#[test]
fn undefined_values_are_errors_unless_a_default_is_given() {
    assert_eq!(spec("{{ Values.gone | default(value=7) }}"), json!(7));
    let (_, text) = error(&[("templates/a.tera", "{{ Values.gone }}")]);
    assert!(text.contains("c/templates/a.tera:1: "), "{text}");
}

/// The blocks of code of the page, in their order.
fn blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap().1).collect()
}

#[test]
fn both_forms_of_the_documentation_become_the_same_objects() {
    let blocks = blocks(include_str!("../../docs/reference/tera.md"));
    let [go, tera, go_labels, tera_labels, values] = blocks[..] else {
        panic!("{blocks:#?}");
    };
    let shared = [("values.yaml", values), ("motd.txt", "hello: \"you\"\n")];
    let of = |files: &[(&str, &str)]| objects(&[&shared, files].concat());
    let expected = of(&[("templates/config.yaml", go), ("templates/_labels.tpl", go_labels)]);
    let found = of(&[("templates/config.tera", tera), ("templates/_labels.tera", tera_labels)]);
    assert_eq!(found, expected);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0]["data"]["settings"],
        "{\"debug\":false,\"text\":\"a \\\"b\\\"\"}"
    );
    assert_eq!(found[1]["data"]["image"], "registry.example.com/other:1");
    assert_eq!(found[1]["data"]["motd"], "hello: \"you\"\n");
}
