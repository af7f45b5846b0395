//! What charts become: objects, warnings, or an error that names the template.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod charts;

use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crds::policy::HelmProfile;
use rendering::{ErrorClass, Lane, RenderError, RenderRequest, Rendered, Renderer, Renderings};
use serde_json::{Value, json};

use charts::{DIGEST, archive, chain, request, values};

/// A renderer that keeps nothing.
fn renderer() -> Renderer {
    Renderer::new(0)
}

fn render(files: &[(&str, &str)]) -> Result<Rendered, RenderError> {
    renderer().render(&request(&|| Ok(archive(files))), Lane::Quick)
}

fn objects(files: &[(&str, &str)]) -> Vec<Value> {
    values(&render(files).unwrap())
}

/// The error with all its sources.
fn error(files: &[(&str, &str)]) -> String {
    chain(&render(files).unwrap_err())
}

#[test]
fn objects_come_in_order_of_installation_with_their_templates() {
    let rendered = render(&[
        (
            "templates/b.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n# nothing\n",
        ),
        (
            "templates/a.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
        ),
        (
            "templates/c.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{{ .Release.Namespace }}\"}\n",
        ),
        (
            "templates/hook.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n",
        ),
    ])
    .unwrap();
    let found: Vec<_> = rendered
        .objects
        .iter()
        .map(|object| (object.value["kind"].as_str().unwrap(), object.source.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("Namespace", "c/templates/c.yaml"),
            ("Service", "c/templates/b.yaml"),
            ("Deployment", "c/templates/a.yaml"),
            ("Secret", "c/templates/hook.yaml"),
        ]
    );
    assert_eq!(rendered.objects[0].value["metadata"]["name"], "cluster");
    assert_eq!(
        rendered.warnings,
        ["c/templates/hook.yaml renders a Helm hook, it is applied like any other object"]
    );
}

#[test]
fn renderings_are_counted_by_what_came_of_them() {
    let renderer = Renderer::new(1 << 20);
    let good = archive(&[("templates/a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n")]);
    let chart = || Ok(good.clone());
    for _ in 0..3 {
        renderer.render(&request(&chart), Lane::Quick).unwrap();
    }
    let unreadable = || Err("planned for this test".into());
    let other = RenderRequest {
        identity: "sha256:other",
        ..request(&unreadable)
    };
    renderer.render(&other, Lane::Quick).unwrap_err();
    let expected = Renderings {
        cached: 2,
        rendered: 1,
        failed: 1,
    };
    assert_eq!(renderer.renderings(), expected);
}

#[test]
fn a_thousand_equal_renderings_cost_one_also_when_all_are_asked_for_at_once() {
    const THREADS: usize = 20;
    const EACH: usize = 50;
    let renderer = Renderer::new(1 << 20);
    let files = archive(&[("templates/a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n")]);
    let (begin, opened) = (Barrier::new(THREADS), AtomicUsize::new(0));
    let chart = || {
        opened.fetch_add(1, Ordering::Relaxed);
        Ok(files.clone())
    };
    let all: Vec<Rendered> = std::thread::scope(|scope| {
        let work = || {
            begin.wait();
            let render = |_| renderer.render(&request(&chart), Lane::Quick).unwrap();
            (0..EACH).map(render).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let expected = Renderings {
        cached: 999,
        rendered: 1,
        failed: 0,
    };
    assert_eq!((renderer.renderings(), opened.load(Ordering::Relaxed)), (expected, 1));
    assert!(all.iter().all(|rendered| *rendered == all[0]));
}

#[test]
fn numbers_and_words_are_what_the_api_server_would_read() {
    let text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {whole: 1.0, part: 1.5, octal: 0644, yes: yes, date: 2020-01-01, text: \"1\"}\n";
    let found = objects(&[("templates/a.yaml", text)]);
    let spec = json!({"whole": 1, "part": 1.5, "octal": 420, "true": true, "date": "2020-01-01", "text": "1"});
    assert_eq!(found[0]["spec"], spec);
    assert!(found[0]["spec"]["whole"].is_i64());
}

#[test]
fn a_block_at_the_end_of_a_document_keeps_its_line_break() {
    let first = "apiVersion: v1\nkind: A\nmetadata: {name: a}\nclip: |\n  text\n";
    let second = "apiVersion: v1\nkind: B\nmetadata: {name: b}\nstrip: |-\n  text";
    let found = objects(&[("templates/a.yaml", &format!("{first}\n\n---\n{second}"))]);
    assert_eq!(
        (&found[0]["clip"], &found[1]["strip"]),
        (&json!("text\n"), &json!("text"))
    );
}

#[test]
fn lists_are_taken_apart() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- {apiVersion: v1, kind: BList, items: [{apiVersion: v1, kind: B, metadata: {name: b}}]}\n";
    let kinds: Vec<_> = objects(&[("templates/a.yaml", list)])
        .iter()
        .map(|object| object["kind"].clone())
        .collect();
    assert_eq!(kinds, ["A", "B"]);
    let empty = error(&[("templates/a.yaml", "apiVersion: v1\nkind: List\n")]);
    assert!(
        empty.ends_with("c/templates/a.yaml renders a List without items"),
        "{empty}"
    );
}

#[test]
fn a_kind_that_is_called_a_list_is_one_where_it_has_items() {
    for spec in ["", "items: {a: b}\n"] {
        let text = format!("apiVersion: example.org/v1\nkind: IPAllowList\nmetadata: {{name: a}}\n{spec}");
        let found = objects(&[("templates/a.yaml", &text)]);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0]["kind"], "IPAllowList");
    }
}

#[test]
fn documents_that_are_no_objects_name_their_template() {
    for (document, reason) in [
        (
            "kind: A\nmetadata: {name: a}\n",
            "c/templates/a.yaml renders an object without apiVersion",
        ),
        (
            "apiVersion: v1\nmetadata: {name: a}\n",
            "c/templates/a.yaml renders an object without kind",
        ),
        (
            "apiVersion: v1\nkind: A\n",
            "c/templates/a.yaml renders an object without metadata",
        ),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: ''}\n",
            "c/templates/a.yaml renders an object without metadata.name",
        ),
        (
            "apiVersion: v1\nkind: A\nmetadata: {generateName: a-}\n",
            "c/templates/a.yaml renders an object with generateName, give it a name",
        ),
        (
            "- a\n",
            "cannot unmarshal array into Go value of type releaseutil.SimpleHead",
        ),
        ("a: b: c\n", "mapping values are not allowed in this context"),
        (
            "a: {{ nosuch }}\n",
            "parse error at (c/templates/a.yaml:1): function \"nosuch\" not defined",
        ),
    ] {
        let error = error(&[("templates/a.yaml", document)]);
        assert!(error.ends_with(reason), "{error}");
        assert!(error.contains("c/templates/a.yaml"), "{error}");
    }
}

#[test]
fn an_error_has_the_place_of_what_failed() {
    let helper = "{{ define \"h\" }}\n{{ fail \"no\" }}{{ end }}";
    let object = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
    for (template, place) in [
        ("a: 1\nb: {{ nosuch }}\n", ("c/templates/a.yaml", Some(2))),
        ("\n\na: {{ .Values.x.y }}\n", ("c/templates/a.yaml", Some(3))),
        ("a: {{ include \"h\" . }}\n", ("c/templates/_h.tpl", Some(2))),
        (
            "\na: {{ tpl \"\\n\\n{{ .a.b.c }}\" . }}\n",
            ("c/templates/a.yaml", Some(2)),
        ),
        ("a: b: c\n", ("c/templates/a.yaml", None)),
        ("kind: A\n", ("c/templates/a.yaml", None)),
        (object, ("c/templates/b.yaml", None)),
    ] {
        let files = [
            ("templates/_h.tpl", helper),
            ("templates/a.yaml", template),
            ("templates/b.yaml", object),
        ];
        let error = render(&files).unwrap_err();
        assert_eq!(error.place(), Some(place), "{error:?}");
    }
}

#[test]
fn a_function_that_nothing_answers_is_no_mistake_of_the_chart() {
    for template in ["a: {{ genCA \"a\" 1 }}\n", "a: {{ tpl \"{{ genCA `a` 1 }}\" . }}\n"] {
        let error = render(&[("templates/a.yaml", template)]).unwrap_err();
        assert!(
            matches!(error, RenderError::MissingFunction { function: "genCA", .. }),
            "{error:?}"
        );
        assert_eq!(error.place(), Some(("c/templates/a.yaml", Some(1))));
    }
    let error = render(&[("templates/a.yaml", "a: {{ genCB }}\n")]).unwrap_err();
    assert!(matches!(error, RenderError::RenderChart { .. }), "{error:?}");
}

#[test]
fn names_that_cannot_be_part_of_an_address_are_refused() {
    for (metadata, reason) in [
        (
            "{name: ../../secrets/d}",
            r#"c/templates/a.yaml renders Deployment.apps "../../secrets/d" with a metadata.name that"#,
        ),
        (
            "{name: d, namespace: a%2fb}",
            r#"c/templates/a.yaml renders Deployment.apps "d" with a metadata.namespace that"#,
        ),
        ("{name: '..'}", r#"Deployment.apps ".." with a metadata.name"#),
        ("{name: 'a b'}", r#"Deployment.apps "a b" with a metadata.name"#),
        (r#"{name: "a\nb"}"#, r#"Deployment.apps "a\nb" with a metadata.name"#),
    ] {
        let object = format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {metadata}\n");
        let text = error(&[("templates/a.yaml", &object)]);
        assert!(text.contains(reason), "{text}");
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {object}").replace("\nkind: D", "\n  kind: D");
        let list = list.replace("\nmetadata", "\n  metadata");
        assert_eq!(error(&[("templates/a.yaml", &list)]), text);
    }
}

#[test]
fn kinds_and_versions_that_cannot_be_part_of_an_address_are_refused() {
    for (api_version, kind, field) in [
        ("apps/v1", r"Depl\e[2Joyment", "kind or group"),
        ("apps/v1", "../Deployment", "kind or group"),
        (r"ap\aps/v1", "Deployment", "kind or group"),
        (r"apps/v1\e[2J", "Deployment", "version"),
        ("apps/v1/namespaces", "Deployment", "version"),
        (r"v1\e[2J", "Pod", "version"),
    ] {
        let object = format!("apiVersion: \"{api_version}\"\nkind: \"{kind}\"\nmetadata: {{name: d}}\n");
        let text = error(&[("templates/a.yaml", &object)]);
        assert!(text.contains(&format!("with a {field} that")), "{text:?}");
    }
}

#[test]
fn objects_that_nobody_could_read_again_are_refused_for_good_also_in_lists() {
    // With the object itself and the map in it that has them.
    let nested = |lists: usize| format!("{}{}", "[".repeat(lists), "]".repeat(lists));
    let object = |lists| {
        let nested = nested(lists);
        format!("apiVersion: example.org/v1\nkind: Quay\nmetadata: {{name: a}}\nspec: {{x: {nested}}}\n")
    };
    let list = |lists| {
        let object = object(lists).trim_end().replace('\n', "\n  ");
        format!("apiVersion: v1\nkind: List\nitems:\n- {object}\n")
    };
    for write in [&object as &dyn Fn(usize) -> String, &list] {
        let renderer = Renderer::new(1 << 20);
        let deepest = write(118);
        let deepest = || Ok(archive(&[("templates/a.yaml", &deepest)]));
        let made = renderer.render(&request(&deepest), Lane::Quick).unwrap();
        assert_eq!(renderer.kept(&request(&deepest)), Some(made));
        let error = render(&[("templates/a.yaml", &write(119))]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Terminal);
        let text = chain(&error);
        let reason = "c/templates/a.yaml renders Quay.example.org \"a\" with more than 120 levels of lists and maps, make it flatter";
        assert!(text.ends_with(reason), "{text}");
    }
}

#[test]
fn two_templates_cannot_render_the_same_object() {
    let object = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n";
    let beta = "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: d, namespace: cluster}\n";
    let text = error(&[("templates/a.yaml", object), ("templates/b.yaml", beta)]);
    assert!(
        text.ends_with("c/templates/a.yaml and c/templates/b.yaml both render Deployment.apps \"d\""),
        "{text}"
    );
    let elsewhere = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: other}\n";
    assert_eq!(
        objects(&[("templates/a.yaml", object), ("templates/b.yaml", elsewhere)]).len(),
        2
    );
}

#[test]
fn a_key_that_occurs_twice_is_a_warning() {
    let text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {x: 1, x: 2}\n";
    let rendered = render(&[("templates/a.yaml", text)]).unwrap();
    assert_eq!(rendered.objects[0].value["spec"]["x"], 2);
    assert_eq!(
        rendered.warnings,
        ["c/templates/a.yaml has the key \"x\" more than once, the last value is used"]
    );
}

#[test]
fn values_lie_over_the_defaults_of_the_chart() {
    let chart = || {
        Ok(archive(&[
            ("values.yaml", "a: {b: 1, c: 2}\n"),
            (
                "templates/a.yaml",
                "apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {{ toJson .Values.a }}\n",
            ),
        ]))
    };
    let request = RenderRequest {
        values: &json!({"a": {"b": 5}}),
        ..request(&chart)
    };
    let rendered = renderer().render(&request, Lane::Quick).unwrap();
    assert_eq!(rendered.objects[0].value["spec"], json!({"b": 5, "c": 2}));
}

#[test]
fn an_equal_request_gets_the_same_rendering_and_others_the_chart_that_was_read() {
    let reads = Cell::new(0);
    let chart = || {
        reads.set(reads.get() + 1);
        Ok(archive(&[(
            "templates/a.yaml",
            "apiVersion: v1\nkind: A\nmetadata: {name: {{ .Release.Name }}}\n",
        )]))
    };
    let renderer = Renderer::new(1 << 20);
    let first = renderer.render(&request(&chart), Lane::Quick).unwrap();
    let second = renderer.render(&request(&chart), Lane::Quick).unwrap();
    assert_eq!(first, second);
    assert_eq!(reads.get(), 1);
    let other = renderer
        .render(
            &RenderRequest {
                release_name: "other",
                ..request(&chart)
            },
            Lane::Quick,
        )
        .unwrap();
    assert_ne!(first.digest, other.digest);
    let values = json!({"a": 1});
    let same = renderer
        .render(
            &RenderRequest {
                values: &values,
                ..request(&chart)
            },
            Lane::Quick,
        )
        .unwrap();
    assert_eq!(first, same);
    assert_eq!(reads.get(), 1);
}

#[test]
fn a_request_that_differs_in_anything_gets_no_rendering_of_another_one() {
    let renderer = Renderer::new(1 << 20);
    let chart = || Ok(archive(&[("templates/a.yaml", OBJECT)]));
    let asked = request(&chart);
    let made = renderer.render(&asked, Lane::Quick).unwrap();
    assert_eq!(renderer.kept(&asked), Some(made));
    let (identity, release_name, namespace) = ("sha256:other", "other", "other");
    let (kubernetes_version, include_crds, profile) = (Some("1.34.2"), true, HelmProfile::V4_3);
    let (api_versions, values) = (["example.org/v1".to_owned()], json!({"a": 1}));
    let (api_versions, values) = (&api_versions[..], &values);
    let others = [
        ("chart", RenderRequest { identity, ..asked }),
        ("release", RenderRequest { release_name, ..asked }),
        ("namespace", RenderRequest { namespace, ..asked }),
        (
            "Kubernetes",
            RenderRequest {
                kubernetes_version,
                ..asked
            },
        ),
        ("API versions", RenderRequest { api_versions, ..asked }),
        ("CRDs", RenderRequest { include_crds, ..asked }),
        ("Helm", RenderRequest { profile, ..asked }),
        ("values", RenderRequest { values, ..asked }),
    ];
    for (difference, other) in others {
        assert_eq!(renderer.kept(&other), None, "{difference}");
    }
}

#[test]
fn digests_depend_on_data_not_on_its_writing() {
    let one = render(&[(
        "templates/a.yaml",
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {x: 1, y: 2}\n",
    )])
    .unwrap();
    let text = "kind: A\napiVersion: v1\nspec:\n  y: 2\n  x: 1.0\n# comment\nmetadata: {name: a}\n";
    let two = render(&[("templates/a.yaml", text)]).unwrap();
    assert_eq!(one.digest, two.digest);
    let three = render(&[(
        "templates/a.yaml",
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {x: 1, y: 3}\n",
    )])
    .unwrap();
    assert_ne!(one.digest, three.digest);
}

#[test]
fn only_an_unreadable_archive_is_worth_another_try() {
    let unreadable = renderer()
        .render(&request(&|| Err("the disk is gone".into())), Lane::Quick)
        .unwrap_err();
    assert_eq!(unreadable.class(), ErrorClass::Transient);
    let broken = renderer()
        .render(&request(&|| Ok(b"no archive".to_vec().into())), Lane::Quick)
        .unwrap_err();
    assert_eq!(broken.class(), ErrorClass::Terminal);
}

#[test]
fn a_chart_is_rendered_as_the_helm_version_of_the_stack_renders_it() {
    let chart = || {
        Ok(archive(&[(
            "templates/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {helm: {{ .Capabilities.HelmVersion.Version }}}\n",
        )]))
    };
    let renderer = Renderer::new(1 << 20);
    let versions = [
        HelmProfile::V3_19,
        HelmProfile::V4_1,
        HelmProfile::V4_2,
        HelmProfile::V4_3,
    ]
    .map(|profile| {
        let request = RenderRequest {
            profile,
            ..request(&chart)
        };
        renderer.render(&request, Lane::Quick).unwrap().objects[0].value["data"]["helm"].clone()
    });
    assert_eq!(versions, ["v3.19.0", "v4.1.4", "v4.2.3", "v4.3.1"]);
}

#[test]
fn threads_that_ask_for_the_same_render_it_once() {
    let reads = AtomicUsize::new(0);
    let renderer = Renderer::new(1 << 20);
    let renderings: Vec<Rendered> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let chart = || {
                        reads.fetch_add(1, Ordering::Relaxed);
                        Ok(archive(&[(
                            "templates/a.yaml",
                            "apiVersion: v1\nkind: A\nmetadata: {name: a}\n",
                        )]))
                    };
                    renderer.render(&request(&chart), Lane::Quick).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(renderings.iter().all(|rendered| *rendered == renderings[0]));
    assert_eq!(reads.into_inner(), 1);
}

#[test]
fn templates_that_run_too_long_are_stopped_and_the_next_chart_is_rendered() {
    // Few steps, each of which takes long.
    let slow = "\n{{ $text := repeat 16000000 \"a\" }}{{ range until 1000 }}\n{{ sha256sum $text }}{{ end }}";
    let quick = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
    let renderer = Renderer::new(0).with_deadline(Duration::from_secs(1));
    let slow = renderer.render(&request(&|| Ok(archive(&[("templates/slow.yaml", slow)]))), Lane::Slow);
    let error = slow.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the templates of release \"docker-scs-1-30\" did not end within 1s, so they were stopped"
    );
    assert_eq!(error.class(), ErrorClass::Transient);
    assert_eq!(error.place().unwrap().0, "c/templates/slow.yaml");
    let quick = renderer.render(
        &RenderRequest {
            identity: "sha256:quick",
            ..request(&|| Ok(archive(&[("templates/quick.yaml", quick)])))
        },
        Lane::Quick,
    );
    assert_eq!(quick.unwrap().objects.len(), 1);
}

const OBJECT: &str = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";

/// A chart of Go templates that takes a few seconds, and then is wrong.
const LONG: &str = "{{ range until 30 }}{{ $_ := derivePassword 1 \"long\" \"password\" \"user\" \"example.com\" }}{{ end }}\
    {{ fail \"at the end\" }}";

#[test]
fn a_slow_go_template_takes_its_time_from_others_once_and_is_then_rendered_beside_them() {
    let renderer = Renderer::new(1 << 20);
    let slow = archive(&[("templates/slow.yaml", LONG)]);
    let reads = Cell::new(0);
    let chart = || {
        reads.set(reads.get() + 1);
        Ok(slow.clone())
    };
    assert_eq!(renderer.lane(DIGEST), Lane::Quick);
    for _ in 0..2 {
        let error = renderer.render(&request(&chart), Lane::Quick).unwrap_err();
        assert!(matches!(error, RenderError::TooSlow { .. }), "{error:?}");
        assert_eq!(reads.get(), 1, "the second time it is known");
        assert_eq!(renderer.lane(DIGEST), Lane::Slow);
    }
    assert_eq!(renderer.renderings(), Renderings::default(), "nothing has failed");
    let error = renderer.render(&request(&chart), Lane::Slow).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Terminal, "{error:?}");
    assert_eq!(renderer.lane(DIGEST), Lane::Slow);
    assert_eq!(renderer.renderings().failed, 1);
}

#[test]
fn a_chart_that_takes_long_to_load_belongs_into_the_slow_lane_too() {
    let renderer = Renderer::new(0).with_deadline(Duration::from_millis(1));
    // The time is over before the first file is looked at.
    let slowly = || {
        std::thread::sleep(Duration::from_millis(100));
        Ok(archive(&[("templates/a.yaml", OBJECT)]))
    };
    let load = |lane| renderer.render(&request(&slowly), lane).unwrap_err();
    assert!(matches!(load(Lane::Quick), RenderError::TooSlow { .. }));
    let error = load(Lane::Slow);
    assert_eq!(error.class(), ErrorClass::Transient, "{error:?}");
    assert_eq!(error.to_string(), "the chart sha256:chart was not loaded within 1ms");
}

#[test]
fn a_chart_that_was_slow_because_the_machine_was_is_quick_again_once_it_was_read() {
    let renderer = Renderer::new(0);
    let chart = || Ok(archive(&[("templates/a.yaml", OBJECT)]));
    let slowly = || {
        std::thread::sleep(Duration::from_millis(600));
        chart()
    };
    renderer.render(&request(&slowly), Lane::Quick).unwrap_err();
    assert_eq!(renderer.lane(DIGEST), Lane::Slow);
    let unreadable = || Err("planned for this test".into());
    renderer.render(&request(&unreadable), Lane::Slow).unwrap_err();
    assert_eq!(renderer.lane(DIGEST), Lane::Slow, "it may be as slow as it was");
    renderer.render(&request(&chart), Lane::Slow).unwrap();
    assert_eq!(renderer.lane(DIGEST), Lane::Quick);
}

#[test]
fn a_rendering_that_is_kept_needs_no_lane() {
    let renderer = Renderer::new(1 << 20);
    let chart = || Ok(archive(&[("templates/a.yaml", OBJECT)]));
    assert_eq!(renderer.kept(&request(&chart)), None);
    let made = renderer.render(&request(&chart), Lane::Quick).unwrap();
    assert_eq!(renderer.kept(&request(&chart)), Some(made));
}
