//! Charts as archives, what is asked of them, and what came of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::error::Error;

use flate2::Compression;
use flate2::write::GzEncoder;
use rendering::{ChartBytes, HelmProfile, ReadChart, RenderRequest, Rendered};
use serde_json::Value;
use tar::{Builder, Header};

/// What [`request`] calls the chart.
pub(crate) const DIGEST: &str = "sha256:chart";

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// A chart named `c` with these files.
pub(crate) fn archive(files: &[(&str, &str)]) -> ChartBytes {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, data) in [("Chart.yaml", CHART)].iter().chain(files) {
        let mut header = Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, format!("c/{name}"), data.as_bytes())
            .unwrap();
    }
    ChartBytes::Archive(builder.into_inner().unwrap().finish().unwrap())
}

/// The request of a release of a stack for a chart.
pub(crate) fn request<'a>(chart: &'a ReadChart<'a>) -> RenderRequest<'a> {
    RenderRequest {
        identity: DIGEST,
        chart,
        release_name: "docker-scs-1-30",
        namespace: "cluster",
        kubernetes_version: None,
        api_versions: &[],
        include_crds: false,
        profile: HelmProfile::V3_19,
        values: &Value::Null,
        answers: None,
    }
}

/// The objects of a rendering.
pub(crate) fn values(rendered: &Rendered) -> Vec<Value> {
    rendered.objects.iter().map(|object| object.value.clone()).collect()
}

/// An error with all its sources.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
