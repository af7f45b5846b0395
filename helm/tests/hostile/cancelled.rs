//! A flag ends whatever takes long: loading, and every phase of a render. What was cancelled leaves nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helm::answers::{Answer, AnswerError, Answers, Draw, Moment, Question, Seeded};
use helm::chart::{ArchiveLimits, LoadError};
use helm::yaml::Node;
use helm::{Chart, Limits, RenderOptions};

use crate::build::{CHART, File, Item, archive, file, repeated};

fn load(files: Vec<File>) -> Chart {
    Chart::from_files(files, &ArchiveLimits::default()).unwrap()
}

#[test]
fn loading_stops_at_the_next_file() {
    let limits = ArchiveLimits::default();
    limits.cancelled.store(true, Ordering::Relaxed);
    let loaded = Chart::from_files(vec![file("Chart.yaml", CHART)], &limits).map(|_| ());
    assert!(matches!(loaded, Err(LoadError::Cancelled)), "{loaded:?}");
    let inner = archive(&[Item::file("s/Chart.yaml", "name: s\nversion: 1.0.0\n")]);
    let outer = archive(&[Item::file("c/Chart.yaml", CHART), Item::file("c/charts/s.tgz", &inner)]);
    let loaded = Chart::from_archive(&outer, &limits).map(|_| ());
    assert!(matches!(loaded, Err(LoadError::Cancelled)), "{loaded:?}");
}

#[test]
fn a_flag_for_loading_ends_nothing_else_on_the_thread() {
    let limits = ArchiveLimits::default();
    let _ = Chart::from_files(vec![file("Chart.yaml", CHART)], &limits);
    limits.cancelled.store(true, Ordering::Relaxed);
    let list = format!("[{}]", "1, ".repeat(5_000));
    assert!(helm::yaml::parse(list.as_bytes()).is_ok());
}

/// Files that take long to read for their size.
fn values() -> [String; 6] {
    let hidden = "a:,".repeat(60);
    [
        format!("a:\n{}", repeated(50_000, |number| format!("- &a{number} 1\n"))),
        format!("a: [{}]", "1,".repeat(100_000)),
        format!("a: >\n{}", " x\n".repeat(400_000)),
        format!("{}a: [{hidden}]", "# \n".repeat(20_000)),
        "---\na: 1\n".repeat(20_000),
        format!("a: \"{}\"", "x\n ".repeat(400_000)),
    ]
}

#[test]
fn loading_takes_steps_of_its_own() {
    let limits = ArchiveLimits {
        steps: 10_000,
        ..ArchiveLimits::default()
    };
    for values in values() {
        let begin = values[..20].to_owned();
        let files = vec![file("Chart.yaml", CHART), file("values.yaml", values)];
        let loaded = Chart::from_files(files, &limits).map(|_| ());
        assert!(
            matches!(loaded, Err(LoadError::TooManySteps { limit: 10_000 })),
            "{begin}: {loaded:?}"
        );
    }
    // Each chart has all steps.
    for _ in 0..20 {
        let files = vec![file("Chart.yaml", CHART), file("values.yaml", "- &a 1\n".repeat(5_000))];
        Chart::from_files(files, &limits).unwrap();
    }
}

/// A schema that takes long to compile, and one that takes long to check.
fn schemas() -> [String; 2] {
    let properties = repeated(5_000, |number| format!("\"k{number}\":{{\"type\":\"string\"}},"));
    let choices = "{\"minProperties\":1},".repeat(2_000);
    [
        format!("{{\"properties\":{{{properties}\"z\":true}}}}"),
        format!("{{\"allOf\":[{choices}{{\"additionalProperties\":{{\"anyOf\":[{choices}true]}}}}]}}"),
    ]
}

#[test]
fn schemas_take_steps_of_the_render() {
    for (schema, steps) in schemas().iter().zip([50_000, 60_000]) {
        let chart = load(vec![
            file("Chart.yaml", CHART),
            file("values.yaml", repeated(100, |number| format!("k{number}: {{}}\n"))),
            file("values.schema.json", schema),
        ]);
        let options = RenderOptions {
            limits: Limits {
                steps,
                ..Limits::default()
            },
            ..RenderOptions::new("r", "ns")
        };
        let first = chart.render(&Node::Null, &options).map(|_| ()).unwrap_err().to_string();
        assert!(first.contains("more steps than are left"), "{first}");
        // What is kept of a schema that was compiled spares no steps.
        let _ = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
        let again = chart.render(&Node::Null, &options).map(|_| ()).unwrap_err().to_string();
        assert_eq!(first, again);
    }
}

#[test]
fn parsing_takes_steps_of_the_render_each_time() {
    let chart = load(vec![
        file("Chart.yaml", CHART),
        file("templates/_a.tpl", "{{ 1 }} ".repeat(10_000)),
    ]);
    let with = |steps| {
        let options = RenderOptions {
            limits: Limits {
                steps,
                ..Limits::default()
            },
            ..RenderOptions::new("r", "ns")
        };
        chart.render(&Node::Null, &options).map(|_| ())
    };
    for _ in 0..2 {
        let error = with(1_000).unwrap_err();
        assert!(error.to_string().contains("more steps than are left"), "{error}");
        assert_eq!(error.place(), Some(("c/templates/_a.tpl", Some(1))));
        with(10_000).unwrap();
    }
}

#[test]
fn a_render_that_was_cancelled_before_it_began_does_nothing() {
    let files = vec![
        file("Chart.yaml", CHART),
        file("values.schema.json", &schemas()[0]),
        file("templates/a.yaml", "a: 1\n"),
    ];
    let chart = load(files);
    let options = RenderOptions::new("r", "ns");
    options.cancelled.store(true, Ordering::Relaxed);
    let error = chart.render(&Node::Null, &options).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    // Nothing of it is kept.
    assert!(chart.render(&Node::Null, &RenderOptions::new("r", "ns")).is_ok());
}

/// Raises the flag of the render as soon as a template asks for something.
#[derive(Debug)]
struct Cancelling(Arc<AtomicBool>);

impl Answers for Cancelling {
    fn answer(&self, _question: &Question<'_>) -> Result<Answer, AnswerError> {
        self.0.store(true, Ordering::Relaxed);
        Ok(Answer::Text("x".to_owned()))
    }
}

#[test]
fn a_cancelled_render_stops_at_its_next_step() {
    for work in [
        "{{ range 1000000000000 }}{{ end }}",
        "{{ regexMatch (repeat 3000 \"(a+)+\") (repeat 30000 \"a\") }}",
        "{{ uniq (until 5000) }}",
        "{{ $.Files.Glob \"*\" }}",
        "{{ derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}",
        "{{ regexFindAll \"a.*b.*c.*d|a\" (repeat 100000 \"a\") -1 }}",
    ] {
        let files = vec![
            (
                "Chart.yaml".to_owned(),
                b"apiVersion: v2\nname: c\nversion: 1.0.0\n".to_vec(),
            ),
            (
                "templates/a.yaml".to_owned(),
                format!("\n{{{{ $x := uuidv4 }}}}\n{work}").into_bytes(),
            ),
        ];
        let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
        let mut options = RenderOptions::new("r", "ns");
        options.answers = Arc::new(Cancelling(Arc::clone(&options.cancelled)));
        let error = chart.render(&Node::Null, &options).unwrap_err();
        assert!(error.is_cancelled(), "{work}: {error}");
        let (file, line) = error.place().unwrap();
        assert_eq!(file, "c/templates/a.yaml");
        assert!(line.is_some_and(|line| line <= 3), "{work}: {line:?}");
    }
}

/// Raises the flag of the render from another thread while this one finds a key that nobody could wait for.
#[derive(Debug)]
struct CancellingWithin(Arc<AtomicBool>);

impl Answers for CancellingWithin {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        let mut draw = Draw::new(
            [1; 32],
            Moment {
                seconds: 0,
                nanoseconds: 0,
            },
        );
        std::thread::scope(|scope| {
            scope.spawn(|| self.0.store(true, Ordering::Relaxed));
            // Whatever was found before the flag was seen is thrown away.
            loop {
                question.make(&mut draw)?;
            }
        })
    }
}

#[test]
fn a_function_that_takes_long_stops_within() {
    for work in [
        "genPrivateKey \"rsa\"",
        "genPrivateKey \"dsa\"",
        "genCA \"a\" 1",
        "genSelfSignedCert \"a\" nil nil 1",
        "bcrypt \"a\"",
        "htpasswd \"a\" \"b\"",
    ] {
        let template = format!("{{{{ {work} }}}}");
        let chart = load(vec![file("Chart.yaml", CHART), file("templates/a.yaml", template)]);
        let mut options = RenderOptions::new("r", "ns");
        options.limits.steps = u64::MAX;
        options.answers = Arc::new(CancellingWithin(Arc::clone(&options.cancelled)));
        let error = chart.render(&Node::Null, &options).unwrap_err();
        assert!(error.is_cancelled(), "{work}: {error}");
    }
}

#[test]
fn the_steps_of_a_render_end_expensive_functions_but_pay_for_twenty_keys() {
    for (work, count) in [
        ("genPrivateKey \"rsa\"", 20),
        ("genCA \"a\" 1", 100),
        ("bcrypt \"a\"", 50),
        ("derivePassword 1 \"long\" \"a\" \"b\" \"c\"", 25),
    ] {
        for (part, is_enough) in [(1, true), (8, false)] {
            let steps = Limits::default().steps / count;
            let template = format!("{{{{ $_ := {work} }}}}");
            let chart = load(vec![file("Chart.yaml", CHART), file("templates/a.yaml", template)]);
            let mut options = RenderOptions::new("r", "ns");
            options.limits.steps = steps / part;
            options.answers = Arc::new(Seeded::new(
                [1; 32],
                Moment {
                    seconds: 0,
                    nanoseconds: 0,
                },
            ));
            let rendered = chart.render(&Node::Null, &options).map(|_| ());
            let is_limit = rendered.as_ref().is_err_and(helm::RenderError::is_limit);
            assert_eq!(
                (rendered.is_ok(), is_limit),
                (is_enough, !is_enough),
                "{work}: {rendered:?}"
            );
        }
    }
}
