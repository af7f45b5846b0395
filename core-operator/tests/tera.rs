//! The operator as the process of its own Tera templates: with its allocator, and within the same limits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::error::Error as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use rendering::{ErrorClass, HelmProfile, Lane, RenderError, RenderRequest, Renderer};
use serde_json::Value;
use tar::{Builder, Header};

/// How many objects a chart with this template has.
fn render(template: &str) -> Result<usize, RenderError> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
    for (name, text) in [("c/Chart.yaml", chart), ("c/templates/a.tera", template)] {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let archive = archive.into_inner().unwrap().finish().unwrap();
    let request = RenderRequest {
        identity: "sha256:chart",
        chart: &|| Ok(archive.clone().into()),
        release_name: "docker-scs-1-30",
        namespace: "cluster",
        kubernetes_version: None,
        api_versions: &[],
        include_crds: false,
        profile: HelmProfile::default(),
        values: &Value::Null,
        answers: None,
    };
    let renderer = Renderer::new(0).with_tera_of(Path::new(env!("CARGO_BIN_EXE_core-operator")));
    Ok(renderer.render(&request, Lane::Slow)?.objects.len())
}

#[test]
fn the_operator_renders_templates_in_a_process_of_its_own() {
    let objects =
        "{% for name in [\"a\", \"b\"] %}---\napiVersion: v1\nkind: A\nmetadata: {name: {{ name }}}\n{% endfor %}";
    assert_eq!(render(objects).unwrap(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_ends_for_the_allocator_of_the_operator_too() {
    // A text of 80 MiB, and lists without end; the first is what the allocator would have at hand at once if it were let.
    let text =
        "{% set_global a = \"0123456789\" %}{% for b in range(end=23) %}{% set_global a = a ~ a %}{% endfor %}\n---\n";
    let lists = "{% set_global a = [] %}{% for b in range(end=100000) %}{% set_global a = [a, range(end=100000)] %}{% endfor %}";
    let object = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
    for template in [&format!("{text}{object}"), lists] {
        let error = render(template).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Terminal, "{error:?}");
        let words = error.source().and_then(|error| error.source()).unwrap().to_string();
        assert!(words.contains("need more than 64 MiB of memory"), "{words}");
    }
}
