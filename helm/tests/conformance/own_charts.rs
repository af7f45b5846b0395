//! Charts of our own, each made for a few questions, against recorded answers and against the binary.

use std::path::PathBuf;

use helm::chart::ArchiveLimits;
use helm::yaml::{self, Node};
use helm::{Chart, Profile, RenderOptions};

use crate::call::{Call, Source, compare, files_below, for_each};
use crate::lab;

fn charts() -> PathBuf {
    lab::room().join("tests/charts")
}

/// Where the answer to a call is recorded: one file for the oldest profile, and one in a folder of a later profile that answers otherwise
/// than the one before it.
fn golden(call: &Call, profile: &Profile) -> PathBuf {
    let folder = if profile.name == Profile::V3_19.name {
        ""
    } else {
        profile.name
    };
    lab::room()
        .join("tests/goldens")
        .join(folder)
        .join(format!("{}.txt", call.name))
}

/// The recorded answer of a profile.
fn recorded(call: &Call, profile: &Profile) -> Option<String> {
    let place = Profile::all().iter().position(|known| known.name == profile.name)?;
    let goldens = Profile::all()[..=place]
        .iter()
        .rev()
        .map(|profile| golden(call, profile));
    goldens
        .into_iter()
        .find_map(|golden| std::fs::read_to_string(golden).ok())
}

fn record(call: &Call) {
    let mut before = None;
    for profile in Profile::all() {
        let golden = golden(call, profile);
        let now = call.theirs(&lab::helm(profile));
        if before.as_ref() == Some(&now) {
            // There is none in most cases.
            std::fs::remove_file(golden).unwrap_or_default();
        } else {
            std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
            std::fs::write(golden, &now).unwrap();
        }
        before = Some(now);
    }
}

fn own(name: &str, chart: &str) -> Call {
    Call::new(name, Source::Path(charts().join(chart)))
}

/// The calls on our own charts.
fn own_calls() -> Vec<Call> {
    let mut calls = vec![
        own("umbrella", "umbrella"),
        Call {
            include_crds: true,
            ..own("umbrella-with-crds", "umbrella")
        },
        own("umbrella-by-condition", "umbrella").with_values("{first: {enabled: false}, leaf: {enabled: true}}"),
        own("umbrella-by-tag", "umbrella").with_values("{tags: {extras: false, more: true}, middle: {inner: {enabled: false}}}"),
        own("umbrella-by-other-tag", "umbrella").with_values("tags: {extras: true, more: false}"),
        own("umbrella-odd-switches", "umbrella").with_values("{first: {enabled: maybe}, ignored: false, tags: {extras: 1}}"),
        own("umbrella-values", "umbrella").with_values(
            "{global: {zone: null, deep: {both: user}}, first: {port: null, nested: {part: text}, global: {deep: {mine: user}}}, middle: {inner: {extra: []}}, taken: null}",
        ),
        own("order", "order"),
        own("sequence", "sequence"),
        own("schemas", "schemas"),
        own("schemas-of-parent", "schemas").with_values("twig: {port: 1}"),
        own("schemas-satisfied", "schemas").with_values("{name: x, twig: {port: 1}, leaf: {port: 2}}"),
        own("files", "files"),
        own("values", "values"),
        own("values-of-user", "values").with_values(
            "{port: 1e6, nothing: 1, table: {a: null, new: null, b: [1]}, list: null, dropped: null, scalar: {a: 1}, added: {x: null, y: [null]}}",
        ),
        Call {
            kube_version: Some("v1.29.3-gke.7"),
            api_versions: vec!["example.invalid/v1".to_owned(), "example.invalid/v1/Kind".to_owned()],
            ..own("values-of-cluster", "values")
        },
        Call {
            kube_version: Some("1.19.0"),
            ..own("values-of-old-cluster", "values")
        },
        Call {
            kube_version: Some("new"),
            ..own("values-of-no-cluster", "values")
        },
        Call {
            release: "Not-A-Name".to_owned(),
            ..own("release-name", "values")
        },
    ];
    for chart in lab::entries(&charts().join("errors")) {
        let name = chart.file_name().unwrap().to_str().unwrap().to_owned();
        calls.push(own(&format!("errors/{name}"), &format!("errors/{name}")));
    }
    calls
}

#[test]
fn own_charts_render_as_helm_rendered_them() {
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some() {
        for_each(&own_calls(), record);
    }
    for profile in Profile::all() {
        compare(&in_profile(profile), |call| {
            recorded(call, profile).unwrap_or_else(|| panic!("nothing is recorded for {}", call.name))
        });
    }
}

#[test]
fn own_charts_render_as_helm_renders_them() {
    for profile in Profile::all() {
        let binary = lab::helm(profile);
        compare(&in_profile(profile), |call| call.theirs(&binary));
    }
}

fn in_profile(profile: &'static Profile) -> Vec<Call> {
    own_calls().into_iter().map(|call| call.of(profile)).collect()
}

#[test]
fn documents_are_the_text_as_data() {
    let chart = Chart::from_files(files_below(&charts().join("order")), &ArchiveLimits::default()).unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("tested", "ns")).unwrap();
    assert!(rendering.manifests.len() > 10);
    for manifest in rendering.manifests.iter().chain(&rendering.hooks) {
        assert_eq!(
            *manifest.document(),
            yaml::read(&manifest.text).unwrap().node,
            "{}",
            manifest.source
        );
    }
    let hook = rendering.hooks[0].hook.as_ref().unwrap();
    assert_eq!(
        (hook.weight, hook.events.as_slice()),
        (5, &["pre-install".to_owned(), "post-upgrade".to_owned()][..])
    );
    let [warning] = rendering.warnings.as_slice() else {
        panic!("{:?}", rendering.warnings);
    };
    assert_eq!(warning.to_string(), "skipping unknown hook: \"bogus\"");
}
