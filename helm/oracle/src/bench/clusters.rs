//! Many clusters with one chart: with equal values they share one rendering, with others the loaded chart.

use std::{
    error::Error,
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use helm::yaml::Node;
use rendering::{ChartBytes, HelmProfile, Lane, RenderRequest, Renderer};
use serde_json::{Value, json};

use super::{load, median, options, report::Clusters};

const CLUSTERS: usize = 1_000;

/// More than the renderings of one chart take.
const CACHE_BYTES: usize = 64 << 20;

pub(super) fn measure(path: &Path) -> Result<Clusters> {
    let archive = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let (renderings, first, all) = with_equal_values(&archive)?;
    let (same, different) = with_another_name(&archive)?;
    Ok(Clusters {
        number: CLUSTERS,
        renderings,
        first_ms: first.as_secs_f64() * 1e3,
        all_ms: all.as_secs_f64() * 1e3,
        same_ms: median(same),
        different_ms: median(different),
    })
}

/// Through the renderer of the operators, which knows nothing before: how many renderings all clusters got, what the first one cost, and
/// what all together.
fn with_equal_values(archive: &[u8]) -> Result<(usize, Duration, Duration)> {
    let chart = || -> Result<ChartBytes, Box<dyn Error + Send + Sync>> { Ok(archive.to_vec().into()) };
    let renderer = Renderer::new(CACHE_BYTES);
    let mut first = Duration::ZERO;
    let begin = Instant::now();
    for cluster in 0..CLUSTERS {
        // Each cluster comes with values of its own that are equal to those of the others.
        let values: Value = json!({ "metrics-server": { "fullnameOverride": "cluster" } });
        renderer.render(
            &RenderRequest {
                identity: "measured",
                chart: &chart,
                release_name: "measured",
                namespace: "default",
                kubernetes_version: None,
                api_versions: &[],
                include_crds: false,
                profile: HelmProfile::default(),
                values: &values,
                answers: None,
            },
            Lane::Quick,
        )?;
        if cluster == 0 {
            first = begin.elapsed();
        }
    }
    Ok((renderer.renderings().rendered.try_into()?, first, begin.elapsed()))
}

/// The times of renders with values that are always the same, and of such where a name is another one each time.
fn with_another_name(archive: &[u8]) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let chart = load(archive)?;
    let options = options();
    let values = |name: String| Node::from([("metrics-server", Node::from([("fullnameOverride", Node::Text(name))]))]);
    let (mut same, mut different) = (Vec::new(), Vec::new());
    for cluster in 0..CLUSTERS {
        let equal = values("cluster".to_owned());
        let begin = Instant::now();
        black_box(chart.render(&equal, &options)?);
        same.push(begin.elapsed());
        let other = values(format!("cluster-{cluster}"));
        let begin = Instant::now();
        black_box(chart.render(&other, &options)?);
        different.push(begin.elapsed());
    }
    Ok((same, different))
}
