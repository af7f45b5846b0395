//! The demo in numbers. Pure: what was counted comes in, lines come out.

use std::{iter::Sum, time::Duration};

use e2e::Metrics;

use super::{picture::Tally, text::short};

/// The operator's own counter of its requests.
const REQUESTS: &str = "kubernetes_requests_total";
const WRITES: [&str; 6] = ["apply", "create", "update", "patch", "delete", "deletecollection"];

/// What came out.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    /// Releases that became usable.
    pub(super) usable: usize,
    pub(super) tally: Tally,
    pub(super) writes: Writes,
    pub(super) images: Option<ImagesPlayed>,
    /// From the first line of the part on.
    pub(super) elapsed: Duration,
    /// How much of it passed from what was done to what it leads to.
    pub(super) waited: Duration,
}

impl Summary {
    /// A key and a sentence for each line.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let Tally {
            applied,
            repaired,
            removed,
        } = self.tally;
        let Writes {
            objects,
            releases,
            status,
            events,
        } = self.writes;
        let by = if self.images.is_some() {
            "both operators"
        } else {
            "the operator"
        };
        let mut lines = vec![
            (
                "releases",
                format!("{} became usable, 1 was refused with a reason", self.usable),
            ),
            (
                "objects",
                format!("{applied} applied, {repaired} repaired, {removed} removed, 0 left"),
            ),
            (
                "writes",
                format!(
                    "{} by {by}: {objects} of objects, {releases} of releases, {status} of status, {events} of events",
                    objects + releases + status + events
                ),
            ),
            (
                "seconds",
                format!(
                    "{:.1} in all, {:.1} of them waiting for the operator",
                    self.elapsed.as_secs_f64(),
                    self.waited.as_secs_f64()
                ),
            ),
        ];
        if let Some(images) = &self.images {
            lines.insert(2, ("images", images.line()));
        }
        lines
    }
}

/// What became of node images.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ImagesPlayed {
    /// The byte from which on the source was asked again.
    pub(super) resumed_from: usize,
    /// From the moment on at which nobody wanted it any more, until nothing was left of the one that was under way.
    pub(super) stopped: Duration,
    /// Images that Jobs have built.
    pub(super) built: usize,
}

impl ImagesPlayed {
    fn line(&self) -> String {
        let Self {
            resumed_from,
            stopped,
            built,
        } = self;
        let built = match built {
            0 => String::new(),
            number => format!("{number} built by a Job; "),
        };
        format!(
            "1 brought and shared by 2 releases, gone on with at {} MiB; 1 given up within {}; {built}0 left",
            resumed_from >> 20,
            short(*stopped)
        )
    }
}

/// Writes that the API server accepted, by what they were about. Leases are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Writes {
    objects: usize,
    releases: usize,
    status: usize,
    events: usize,
}

impl Writes {
    /// From the operator's own counters.
    pub(super) fn counted_in(metrics: &Metrics) -> Self {
        let mut writes = Self::default();
        for sample in metrics.select(REQUESTS, &[]) {
            let label = |name: &str| sample.labels.get(name).map(String::as_str).unwrap_or_default();
            let resource = label("resource");
            if !WRITES.contains(&label("verb")) || !label("code").starts_with('2') || resource.starts_with("leases.") {
                continue;
            }
            let counter = if resource.ends_with("/status") {
                &mut writes.status
            } else if resource.starts_with("events.") {
                &mut writes.events
            } else if resource.ends_with(".clusterstack.x-k8s.io") {
                &mut writes.releases
            } else {
                &mut writes.objects
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a counter of requests"
            )]
            let number = sample.value as usize;
            *counter += number;
        }
        writes
    }
}

impl Sum for Writes {
    fn sum<I: Iterator<Item = Self>>(writes: I) -> Self {
        writes.fold(Self::default(), |sum, more| Self {
            objects: sum.objects + more.objects,
            releases: sum.releases + more.releases,
            status: sum.status + more.status,
            events: sum.events + more.events,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::Result;

    use super::*;

    const PAGE: &str = r#"
kubernetes_requests_total{verb="apply",resource="clusterclasses.cluster.x-k8s.io",code="201"} 2
kubernetes_requests_total{verb="delete",resource="clusterclasses.cluster.x-k8s.io",code="200"} 1
kubernetes_requests_total{verb="delete",resource="clusterclasses.cluster.x-k8s.io",code="404"} 5
kubernetes_requests_total{verb="dry-run",resource="clusterclasses.cluster.x-k8s.io",code="200"} 5
kubernetes_requests_total{verb="get",resource="clusterclasses.cluster.x-k8s.io",code="200"} 5
kubernetes_requests_total{verb="create",resource="clusterstackreleases.clusterstack.x-k8s.io",code="201"} 4
kubernetes_requests_total{verb="update",resource="clusterstackreleases.clusterstack.x-k8s.io/status",code="200"} 6
kubernetes_requests_total{verb="update",resource="leases.coordination.k8s.io",code="200"} 5
kubernetes_requests_total{verb="create",resource="events.events.k8s.io",code="201"} 7
"#;

    #[test]
    fn summary_counts_accepted_writes_by_what_they_were_about() -> Result<()> {
        let summary = Summary {
            usable: 2,
            tally: Tally {
                applied: 14,
                repaired: 2,
                removed: 14,
            },
            writes: Writes::counted_in(&Metrics::parse(PAGE)?),
            images: None,
            elapsed: Duration::from_millis(14_250),
            waited: Duration::from_millis(3_900),
        };
        let lines: Vec<_> = summary
            .lines()
            .iter()
            .map(|(key, text)| format!("{key}: {text}"))
            .collect();
        assert_eq!(
            lines.join("\n"),
            "\
releases: 2 became usable, 1 was refused with a reason
objects: 14 applied, 2 repaired, 14 removed, 0 left
writes: 20 by the operator: 3 of objects, 4 of releases, 6 of status, 7 of events
seconds: 14.2 in all, 3.9 of them waiting for the operator"
        );
        Ok(())
    }
}
