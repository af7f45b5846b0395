//! What templates ask: answered from a memo or from the cluster, and what is rendered anew for whom.

#![expect(clippy::panic, reason = "a test that cannot go on stops here")]

mod charts;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use rendering::answers::{Answers, Lookup, Moment, Seeded};
use rendering::{ErrorClass, Lane, RenderError, RenderRequest, Rendered, Renderer};
use serde_json::{Value, json};

use charts::{DIGEST, archive, chain, request, values};

const NOW: Moment = Moment {
    seconds: 1_790_000_000,
    nanoseconds: 0,
};

/// An empty memo, and a cluster of which nothing is known.
fn answers(seed: u8) -> Answers {
    Answers {
        memo: Vec::new(),
        found: BTreeMap::new(),
        new: Seeded::new([seed; 32], NOW),
    }
}

fn renderer() -> Renderer {
    Renderer::new(1 << 20)
}

/// A chart that renders one object with this spec.
fn spec(spec: &str) -> String {
    format!("apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nspec: {spec}\n")
}

fn render(renderer: &Renderer, template: &str, answers: &Answers, values: &Value) -> Result<Rendered, RenderError> {
    let chart = || Ok(archive(&[("templates/a.yaml", template)]));
    let request = RenderRequest {
        answers: Some(answers),
        values,
        ..request(&chart)
    };
    renderer.render(&request, Lane::Slow)
}

fn spec_of(rendered: &Rendered) -> Value {
    values(rendered)[0]["spec"].clone()
}

/// The same answers once what was new is kept.
fn kept(answers: &Answers, rendered: &Rendered) -> Answers {
    let mut after = answers.clone();
    after.memo.retain(|entry| rendered.questions.memo.contains(&entry.key));
    after.memo.extend(rendered.questions.new.iter().cloned());
    after
}

fn secret(name: &str) -> Lookup {
    Lookup {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
    }
}

fn needs(rendered: Result<Rendered, RenderError>) -> Vec<Lookup> {
    match rendered {
        Err(RenderError::Needs { lookups }) => lookups,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_memo_gives_the_same_bytes_and_another_one_others() {
    let template = spec("{word: {{ randAlphaNum 20 }}, replicas: {{ .Values.replicas | default 1 }}}");
    let first = render(&Renderer::new(0), &template, &answers(1), &Value::Null).unwrap();
    assert_eq!(first.questions.memo.len(), 1);
    assert_eq!(first.questions.new[0].key, first.questions.memo[0]);

    // What it draws with is another seed then: the memo alone decides.
    let memo = Answers {
        new: Seeded::new([2; 32], NOW),
        ..kept(&answers(1), &first)
    };
    let again = render(&Renderer::new(0), &template, &memo, &Value::Null).unwrap();
    assert_eq!((&again.objects, &again.digest), (&first.objects, &first.digest));
    assert!(again.questions.new.is_empty());
    assert_eq!(again.questions.memo, first.questions.memo);

    let changed = render(&Renderer::new(0), &template, &memo, &json!({"replicas": 3})).unwrap();
    assert_eq!(spec_of(&changed)["word"], spec_of(&first)["word"]);
    assert_eq!(spec_of(&changed)["replicas"], 3);
    let other = render(&Renderer::new(0), &template, &answers(3), &Value::Null).unwrap();
    assert_ne!(spec_of(&other)["word"], spec_of(&first)["word"]);
}

#[test]
fn a_memo_may_forget_what_nobody_asks_any_more() {
    let renderer = Renderer::new(0);
    let first = render(&renderer, &spec("{{ randAlpha 5 }}"), &answers(1), &Value::Null).unwrap();
    let memo = kept(&answers(1), &first);
    let second = render(&renderer, &spec("{{ randAlpha 6 }}"), &memo, &Value::Null).unwrap();
    assert!(!second.questions.memo.contains(&memo.memo[0].key));
    assert_eq!(kept(&memo, &second).memo, second.questions.new);
}

#[test]
fn what_asks_nothing_is_rendered_once_for_all_clusters_and_what_asks_once_for_each() {
    let renderer = renderer();
    let quiet = spec("{a: 1}");
    for seed in 0..5 {
        let same = render(&renderer, &quiet, &answers(seed), &Value::Null).unwrap();
        assert!(same.questions.is_none());
    }
    assert_eq!(renderer.renderings().rendered, 1);

    let renderer = self::renderer();
    let asking = spec("{{ randAlpha 8 }}");
    let firsts: Vec<_> = (0..5)
        .map(|seed| render(&renderer, &asking, &answers(seed), &Value::Null).unwrap())
        .collect();
    assert_eq!(renderer.renderings().rendered, 5);
    // Each is found again by what is in its memo then, and by nothing else.
    for (seed, first) in (0..5).zip(&firsts) {
        assert!(!first.questions.is_none());
        let memo = kept(&answers(seed), first);
        let again = render(&renderer, &asking, &memo, &Value::Null).unwrap();
        assert_eq!(again.objects, first.objects);
        assert_eq!(again.questions.memo, first.questions.memo);
        assert!(again.questions.new.is_empty(), "it is kept already");
    }
    assert_eq!(renderer.renderings().rendered, 5);
}

#[test]
fn without_answers_nothing_is_random_and_nothing_is_found() {
    let renderer = renderer();
    let chart = || Ok(archive(&[("templates/a.yaml", &spec("{{ randAlpha 8 }}"))]));
    let error = renderer.render(&request(&chart), Lane::Slow).unwrap_err();
    assert!(
        matches!(
            error,
            RenderError::MissingFunction {
                function: "randAlpha",
                ..
            }
        ),
        "{error:?}"
    );

    let template = spec("{{ lookup \"v1\" \"Secret\" \"kube-system\" \"ca\" | len }}");
    let looking = || Ok(archive(&[("templates/a.yaml", &template)]));
    let of_class = RenderRequest {
        identity: "sha256:looking",
        ..request(&looking)
    };
    let without = renderer.render(&of_class, Lane::Slow).unwrap();
    assert_eq!(spec_of(&without), 0);
    assert!(without.questions.is_none());
    // That is no answer for a cluster.
    let of_cluster = RenderRequest {
        answers: Some(&answers(1)),
        ..of_class
    };
    assert_eq!(renderer.kept(&of_cluster), None);
    assert_eq!(needs(renderer.render(&of_cluster, Lane::Slow)), [secret("ca")]);
}

#[test]
fn all_lookups_of_a_round_are_asked_for_at_once_also_if_the_chart_fails_without_them() {
    let lookup = |name: &str| format!("lookup \"v1\" \"Secret\" \"kube-system\" \"{name}\"");
    let template = spec(&format!(
        "{{{{ $first := {} }}}}{{{{ $second := {} }}}}{{{{ required \"no CA\" $first.data }}}}{}",
        lookup("b"),
        lookup("a"),
        "{{ with $second }}{{ (lookup \"v1\" \"Secret\" \"kube-system\" .metadata.name).spec.replicas }}{{ end }}"
    ));
    let renderer = renderer();
    let mut answers = answers(1);
    let first = render(&renderer, &template, &answers, &Value::Null);
    let error = first.as_ref().unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient);
    assert_eq!(
        error.to_string(),
        "the chart looks up objects of the cluster that nobody has looked for yet: \
         v1 Secret kube-system/a, v1 Secret kube-system/b"
    );
    assert_eq!(needs(first), [secret("a"), secret("b")]);
    answers.found.insert(secret("a"), json!({"metadata": {"name": "c"}}));
    answers.found.insert(secret("b"), json!({"data": 7}));
    assert_eq!(
        needs(render(&renderer, &template, &answers, &Value::Null)),
        [secret("c")]
    );
    answers
        .found
        .insert(secret("c"), json!({"spec": {"replicas": 1_234_567}}));
    let last = render(&renderer, &template, &answers, &Value::Null).unwrap();
    // As an integer: a float would be written 1.234567e+06.
    assert_eq!(spec_of(&last), 71_234_567);
    assert_eq!(last.questions.lookups, [secret("a"), secret("b"), secret("c")]);
    let counted = renderer.renderings();
    assert_eq!((counted.rendered, counted.failed), (1, 0), "rounds are no renderings");

    answers.found.insert(secret("b"), Value::Null);
    let error = render(&renderer, &template, &answers, &Value::Null).unwrap_err();
    assert!(chain(&error).contains("no CA"), "{error:?}");
}

#[test]
fn what_was_found_is_part_of_what_a_rendering_is_found_by() {
    let template = spec("{{ (lookup \"v1\" \"Secret\" \"kube-system\" \"ca\").data | toJson }}");
    let renderer = renderer();
    let found = |data: Value| Answers {
        found: [(secret("ca"), json!({ "data": data }))].into(),
        ..answers(1)
    };
    let render = |answers: &Answers| spec_of(&render(&renderer, &template, answers, &Value::Null).unwrap());
    for round in 0..2 {
        assert_eq!(render(&found(json!("one"))), "one");
        assert_eq!(render(&found(json!("two"))), "two");
        assert_eq!(renderer.renderings().rendered, 2, "round {round}");
    }
    // Another seed changes nothing where nothing is drawn.
    let other = Answers {
        new: Seeded::new([9; 32], NOW),
        ..found(json!("one"))
    };
    assert_eq!(render(&other), "one");
    assert_eq!(renderer.renderings().rendered, 2);
}

/// That there are no Pods with these numbers for names.
fn without_pods(numbers: Range<usize>) -> Answers {
    let pod = |number: usize| Lookup {
        kind: "Pod".to_owned(),
        namespace: String::new(),
        ..secret(&number.to_string())
    };
    Answers {
        found: numbers.map(|number| (pod(number), Value::Null)).collect(),
        ..answers(1)
    }
}

#[test]
fn a_chart_may_look_up_a_hundred_objects_and_each_of_them_again() {
    let round = "{{ range until 100 }}{{ $_ := lookup \"v1\" \"Pod\" \"\" (print .) }}{{ end }}";
    let twice = spec(&round.repeat(2));
    let rendered = render(&renderer(), &twice, &without_pods(0..100), &Value::Null).unwrap();
    assert_eq!(rendered.questions.lookups.len(), 100);
}

#[test]
fn a_chart_that_asks_without_end_is_stopped() {
    let lookups = spec("{{ range until 101 }}{{ $_ := lookup \"v1\" \"Pod\" \"\" (print .) }}{{ end }}");
    let answers = without_pods(0..101);
    let error = render(&renderer(), &lookups, &answers, &Value::Null).unwrap_err();
    assert!(
        chain(&error).ends_with("a chart may look up 100 different objects, not more"),
        "{error:?}"
    );
    let words = spec("{{ range until 10000 }}{{ $_ := randAlpha 100 }}{{ end }}");
    let error = render(&renderer(), &words, &answers, &Value::Null).unwrap_err();
    assert!(
        chain(&error).ends_with("a chart may ask for 524288 bytes of random answers, not more"),
        "{error:?}"
    );
    assert_eq!(error.class(), ErrorClass::Terminal);
}

#[test]
fn a_chart_that_makes_keys_for_long_is_not_slow_for_that() {
    let keys = spec("{{ range until 3 }}{{ $_ := genPrivateKey \"rsa\" }}{{ end }}");
    let renderer = Renderer::new(0);
    let chart = || Ok(archive(&[("templates/a.yaml", &keys)]));
    let answers = answers(1);
    let request = RenderRequest {
        answers: Some(&answers),
        ..request(&chart)
    };
    let error = renderer.render(&request, Lane::Quick).unwrap_err();
    assert!(matches!(error, RenderError::TooSlow { .. }), "{error:?}");
    assert_eq!(renderer.lane(DIGEST), Lane::Quick);
    let first = renderer.render(&request, Lane::Slow).unwrap();
    assert_eq!(renderer.lane(DIGEST), Lane::Quick);
    // Who has the keys waits for nobody.
    let memo = kept(&answers, &first);
    let again = RenderRequest {
        answers: Some(&memo),
        ..request
    };
    assert_eq!(renderer.render(&again, Lane::Quick).unwrap().objects, first.objects);
    assert_eq!(first.questions.new.len(), 3);
}

#[test]
fn no_keys_are_made_while_it_is_not_known_whether_there_are_some() {
    // To make all of them takes far longer than this renderer waits.
    let keys = "{{ range until 20 }}{{ $_ := genPrivateKey \"rsa\" }}{{ end }}";
    let template = spec(&format!(
        "{{{{ if not (lookup \"v1\" \"Secret\" \"kube-system\" \"ca\") }}}}{keys}{{{{ end }}}}"
    ));
    let renderer = renderer().with_deadline(Duration::from_secs(3));
    let chart = || Ok(archive(&[("templates/a.yaml", &template)]));
    let answers = answers(1);
    let request = RenderRequest {
        answers: Some(&answers),
        ..request(&chart)
    };
    for lane in [Lane::Quick, Lane::Slow] {
        assert_eq!(needs(renderer.render(&request, lane)), [secret("ca")]);
    }
    let found = Answers {
        found: [(secret("ca"), json!({"data": {}}))].into(),
        ..answers.clone()
    };
    let request = RenderRequest {
        answers: Some(&found),
        ..request
    };
    assert!(renderer.render(&request, Lane::Quick).unwrap().questions.new.is_empty());
}

#[test]
fn answers_are_not_shown() {
    let answers = Answers {
        found: [(secret("ca"), json!({"data": "canary"}))].into(),
        new: Seeded::new([77; 32], NOW),
        ..answers(1)
    };
    let shown = format!("{answers:?}");
    assert!(shown.contains("kube-system"), "{shown}");
    assert!(!shown.contains("canary") && !shown.contains("77"), "{shown}");
    let rendered = render(&renderer(), &spec("{{ randAlpha 12 }}"), &answers, &Value::Null).unwrap();
    let word = spec_of(&rendered).as_str().unwrap().to_owned();
    let questions = format!("{:?}", rendered.questions);
    assert!(
        questions.contains("randAlpha") && !questions.contains(&word),
        "{questions}"
    );
}
