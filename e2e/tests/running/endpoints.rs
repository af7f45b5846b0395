//! What the process says of itself: health, metrics, logs. Nowhere a secret.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::{
    Metrics, eventually,
    journey::{SOON, journey},
};
use http::StatusCode;

use crate::{STACK, log_lines, subscribe};

#[test]
fn endpoints_and_logs_tell_everything_but_secrets() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.options.flags = vec!["--log-level=trace".into()];
        let kubeconfig: serde_json::Value = kubeconfig_at(&journey.options.kubeconfig)?;
        let token = kubeconfig
            .pointer("/users/0/user/token")
            .and_then(|token| token.as_str());
        let token = token.context("the kubeconfig has no token")?.to_owned();
        journey.operate().await?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;

        let operator = journey.operator()?;
        for path in ["/healthz", "/readyz"] {
            let (status, text) = operator.health(path).await?;
            ensure!(
                (status, text.as_str()) == (StatusCode::OK, "ok\n"),
                "{path}: {status}: {text}"
            );
        }
        let (status, _) = operator.health("/metrics").await?;
        ensure!(status == StatusCode::NOT_FOUND, "metrics have a port of their own");

        // The watches tell a moment after the API server has answered us.
        let lines = log_lines(operator.log())?;
        let up = lines.iter().find(|line| line["message"] == "metrics endpoint is up");
        let address = up.and_then(|line| line["address"].as_str());
        let url = format!("http://{}/metrics", address.context("no address is told")?);
        eventually(SOON, "one stack and one release to count as ready", async || {
            let metrics = Metrics::read(&url).await?;
            for kind in ["stackwright_cluster_stacks", "stackwright_cluster_stack_releases"] {
                let counts = ["true", "false"].map(|ready| metrics.sum(kind, &[("ready", ready)]));
                ensure!(counts == [Some(1.0), Some(0.0)], "{kind}: {counts:?}");
            }
            Ok(())
        })
        .await?;
        let page = operator.metrics_page().await?;
        let named = |keyword: &str| -> BTreeSet<String> {
            let lines = page.lines().filter_map(|line| line.strip_prefix(keyword));
            lines
                .filter_map(|line| line.split_once(' '))
                .filter(|(_, rest)| !rest.trim().is_empty())
                .map(|(name, _)| name.to_owned())
                .collect()
        };
        let (typed, helped) = (named("# TYPE "), named("# HELP "));
        ensure!(typed == helped, "without help: {:?}", typed.difference(&helped));
        let guide = include_str!("../../../docs/reference/operating.md");
        for name in &typed {
            let explained = [format!("| `{name}` |"), format!("| `{name}_total` |")]
                .iter()
                .any(|row| guide.contains(row));
            ensure!(explained, "docs/reference/operating.md does not explain {name}");
        }
        let metrics = operator.metrics().await?;
        for name in ["process_resident_memory_bytes", "process_cpu_seconds_total"] {
            ensure!(
                metrics.sum(name, &[]).is_some_and(|value| value > 0.0),
                "{name}: {page}"
            );
        }
        let applied = [
            ("verb", "apply"),
            ("resource", "clusterclasses.cluster.x-k8s.io"),
            ("code", "201"),
        ];
        let applied = metrics.sum("kubernetes_requests_total", &applied);
        ensure!(applied == Some(1.0), "{applied:?} classes applied: {page}");

        let log = std::fs::read_to_string(operator.log())?;
        for (place, text) in [("metrics", &page), ("log", &log)] {
            ensure!(!text.contains(&token), "the token is in the {place}");
        }
        let levels: BTreeSet<String> = log_lines(operator.log())?
            .iter()
            .filter_map(|line| Some(line["level"].as_str()?.to_owned()))
            .collect();
        ensure!(levels.contains("TRACE"), "{levels:?}");
        Ok(())
    })
}

#[test]
fn the_log_level_of_a_running_operator_changes_by_http_and_nonsense_changes_nothing() -> Result<()> {
    journey(async |journey| {
        journey.options.flags.push("--log-level=info".into());
        journey.operate().await?;
        let operator = journey.operator()?;
        let of_level = |log: &std::path::Path| -> Result<usize> {
            Ok(log_lines(log)?.iter().filter(|line| line["level"] == "DEBUG").count())
        };
        ensure!(of_level(operator.log())? == 0, "DEBUG before anybody asked");
        let (status, _) = operator.put_to_health("/loglevel", "debug").await?;
        ensure!(status == StatusCode::OK, "{status}");
        let (status, told) = operator.put_to_health("/loglevel", "core_operator=shout").await?;
        ensure!(
            status == StatusCode::BAD_REQUEST && told.contains("shout"),
            "{status} {told}"
        );
        let (_, level) = operator.health("/loglevel").await?;
        let directives: Vec<_> = level.trim().split(',').collect();
        ensure!(directives.contains(&"debug"), "{level}");
        let log = operator.log().to_owned();
        journey.releases.publish_harbor("v1", "v1")?;
        subscribe(journey).await?;
        journey.usable(STACK, "v1").await?;
        ensure!(of_level(&log)? > 0, "no DEBUG");
        Ok(())
    })
}

fn kubeconfig_at(path: &std::path::Path) -> Result<serde_json::Value> {
    let text = std::fs::read_to_string(path)?;
    serde_yaml::from_str(&text).with_context(|| format!("unable to read {}", path.display()))
}
