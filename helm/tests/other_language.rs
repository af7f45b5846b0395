//! Files of a language that Helm does not know: what its engine is given, and what becomes of its answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

use std::error::Error as _;
use std::sync::{Arc, Mutex};

use helm::yaml::Node;
use helm::{
    ArchiveLimits, Chart, OtherChart, OtherLanguage, OtherProblem, RenderError, RenderOptions, Rendering, yaml,
};

/// Writes the name that each chart finds in its values, and remembers what it was given; fails at files that say so.
#[derive(Debug, Default)]
struct Naming {
    seen: Mutex<Vec<(String, Vec<String>)>>,
}

fn at<'a>(node: &'a Node, path: &[&str]) -> &'a Node {
    path.iter().fold(node, |node, key| match node {
        Node::Map(entries) => &entries[*key],
        other => panic!("{key} of {other:?}"),
    })
}

impl OtherLanguage for Naming {
    fn suffix(&self) -> &'static str {
        ".name"
    }

    fn render(&self, charts: &[OtherChart<'_>]) -> Result<Vec<Vec<u8>>, OtherProblem> {
        let mut outputs = Vec::new();
        for chart in charts {
            let files = chart.files.iter().map(|(path, _)| (*path).to_owned()).collect();
            self.seen.lock().unwrap().push((chart.folder.to_owned(), files));
            if let Some((path, _)) = chart.files.iter().find(|(_, text)| text.starts_with(b"fail")) {
                return Err(OtherProblem {
                    template: (*path).to_owned(),
                    line: Some(7),
                    source: "no name".into(),
                });
            }
            let name = at(&chart.root, &["Values", "name"]).as_text().unwrap();
            let release = at(&chart.root, &["Release", "Name"]).as_text().unwrap();
            let text = |path: &str| format!("kind: A\npath: {path}\nname: {name}\nrelease: {release}\n").into_bytes();
            outputs.extend(chart.rendered().map(text));
        }
        Ok(outputs)
    }

    fn check(&self, _: &[OtherChart<'_>]) -> Result<(), OtherProblem> {
        Ok(())
    }
}

fn render(language: &Arc<Naming>, files: &[(&str, &str)]) -> Result<Rendering, RenderError> {
    let charts = [
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("values.yaml", "name: root\n"),
        ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        ("charts/sub/values.yaml", "name: below\n"),
    ];
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().to_vec());
    let files = charts.iter().chain(files).map(owned).collect();
    let options = RenderOptions {
        other_language: Some(Arc::clone(language) as Arc<dyn OtherLanguage>),
        ..RenderOptions::new("r", "ns")
    };
    let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
    chart.render(&Node::Null, &options)
}

#[test]
fn each_chart_sees_its_own_values_and_files_and_those_with_an_underscore_write_nothing() {
    let language = Arc::<Naming>::default();
    let files = [
        ("templates/a.name", ""),
        ("templates/_b.name", ""),
        ("templates/c.yaml", "kind: A\nname: {{ .Values.name }}\n"),
        ("charts/sub/templates/deep/d.name", ""),
    ];
    let rendering = render(&language, &files).unwrap();
    let mut found: Vec<_> = rendering
        .manifests
        .iter()
        .map(|manifest| {
            let document = yaml::parse(&manifest.text).unwrap();
            (
                manifest.source.clone(),
                at(&document, &["name"]).as_text().unwrap().to_owned(),
            )
        })
        .collect();
    found.sort();
    let expected = [
        ("c/charts/sub/templates/deep/d.name", "below"),
        ("c/templates/a.name", "root"),
        ("c/templates/c.yaml", "root"),
    ];
    assert_eq!(found, expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
    let seen = language.seen.lock().unwrap().clone();
    let expected: [(&str, &[&str]); 2] = [
        ("c/charts/sub/templates", &["c/charts/sub/templates/deep/d.name"]),
        ("c/templates", &["c/templates/a.name", "c/templates/_b.name"]),
    ];
    let expected = expected.map(|(folder, files)| (folder.to_owned(), files.iter().map(ToString::to_string).collect()));
    assert_eq!(seen, expected);
}

#[test]
fn what_helms_templates_do_to_values_is_not_seen() {
    let language = Arc::<Naming>::default();
    let set = "{{ $_ := set .Values \"name\" \"changed\" }}kind: A\nname: {{ .Values.name }}\n";
    let rendering = render(&language, &[("templates/a.yaml", set), ("templates/z.name", "")]).unwrap();
    let texts: String = rendering
        .manifests
        .iter()
        .map(|manifest| String::from_utf8_lossy(&manifest.text).into_owned())
        .collect();
    assert!(
        texts.contains("name: changed") && texts.contains("name: root"),
        "{texts}"
    );
}

#[test]
fn an_engine_is_not_asked_for_charts_without_its_files() {
    let language = Arc::<Naming>::default();
    render(&language, &[("templates/a.yaml", "kind: A\n")]).unwrap();
    assert_eq!(*language.seen.lock().unwrap(), []);
}

#[test]
fn a_failure_has_the_place_and_the_words_of_the_engine() {
    let error = render(&Arc::default(), &[("templates/a.name", "fail")]).unwrap_err();
    assert_eq!(error.place(), Some(("c/templates/a.name", Some(7))));
    assert_eq!(error.to_string(), "c/templates/a.name:7");
    assert_eq!(error.source().unwrap().to_string(), "no name");
}
