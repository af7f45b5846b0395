//! What was found, as lines of a table, and what was promised of it.

use e2e::usage::rounded;
use serde::Serialize;

use crate::bench::report::{Goal, Row, count};

/// One line. Keys say their unit.
#[derive(Debug, Serialize)]
#[serde(tag = "measure", rename_all = "snake_case")]
pub(in crate::bench) enum Run {
    /// One image after the other, medians.
    Upload {
        mebibytes: u32,
        rounds: usize,
        /// As Glance took it.
        seconds: f64,
        /// The same bytes from a file.
        beside_seconds: f64,
        /// By what.
        beside: String,
        /// `seconds / beside_seconds`.
        ratio: f64,
        /// From the object to its readiness.
        to_ready_seconds: f64,
        idle_rss_mib: f64,
        /// Above what was held just before, of the worst round.
        extra_rss_mib: f64,
    },
    /// Many images at once.
    Many {
        images: usize,
        mebibytes: u32,
        /// From the first object until the last is ready.
        seconds: f64,
        /// In all, while they run.
        peak_rss_mib: f64,
    },
    /// A source that breaks.
    Broken {
        mebibytes: u32,
        /// How often it broke.
        breaks: usize,
        seconds: f64,
        /// From a source that does not.
        unbroken_seconds: f64,
        /// `seconds / unbroken_seconds`.
        ratio: f64,
        /// Of the image; one is enough.
        puts: usize,
    },
    /// Transfers that are given up.
    Cancel {
        samples: usize,
        /// Until nobody reads the source, and the cloud has no record of the image.
        median_ms: f64,
        p99_ms: f64,
        longest_ms: f64,
    },
    /// Nothing to do.
    Idle {
        images: usize,
        seconds: u32,
        /// Besides renewals of the Lease.
        writes: usize,
        lease_renewals: usize,
        /// Of the image service.
        requests: usize,
        /// How often it was looked at the image that was looked at most.
        looks: usize,
        cpu_percent: f64,
        rss_mib: f64,
    },
}

/// 90 % of the rate.
const OF_CURL: f64 = 1.111;
/// 70 % of the rate.
const OF_UNBROKEN: f64 = 1.429;
/// How often an image may be looked at.
const LOOK_SECONDS: u32 = 600;

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &["measure", "of", "found", "beside it", "ratio", "memory"];

    fn cells(&self) -> Vec<String> {
        let cells = match self {
            Self::Upload {
                mebibytes,
                rounds,
                seconds,
                beside_seconds,
                beside,
                ratio,
                to_ready_seconds,
                idle_rss_mib,
                extra_rss_mib,
            } => [
                "upload".to_owned(),
                format!("{rounds} × {mebibytes} MiB"),
                format!("{seconds:.3} s, ready after {to_ready_seconds:.2} s"),
                format!("{beside}: {beside_seconds:.3} s"),
                format!("{ratio:.2}"),
                format!("{extra_rss_mib:.1} MiB above {idle_rss_mib:.1}"),
            ],
            Self::Many {
                images,
                mebibytes,
                seconds,
                peak_rss_mib,
            } => [
                "at once".to_owned(),
                format!("{images} × {mebibytes} MiB"),
                format!("{seconds:.2} s"),
                String::new(),
                String::new(),
                format!("{peak_rss_mib:.1} MiB in all"),
            ],
            Self::Broken {
                mebibytes,
                breaks,
                seconds,
                unbroken_seconds,
                ratio,
                puts,
            } => [
                "broken source".to_owned(),
                format!("{mebibytes} MiB, {breaks} breaks"),
                format!("{seconds:.3} s, {puts} PUT"),
                format!("unbroken: {unbroken_seconds:.3} s"),
                format!("{ratio:.2}"),
                String::new(),
            ],
            Self::Cancel {
                samples,
                median_ms,
                p99_ms,
                longest_ms,
            } => [
                "cancel to quiet".to_owned(),
                samples.to_string(),
                format!("median {median_ms:.0}, p99 {p99_ms:.0}, longest {longest_ms:.0} ms"),
                String::new(),
                String::new(),
                String::new(),
            ],
            Self::Idle {
                images,
                seconds,
                writes,
                lease_renewals,
                requests,
                looks,
                cpu_percent,
                rss_mib,
            } => [
                "idle".to_owned(),
                format!("{images} images, {seconds} s"),
                format!("{writes} writes, {requests} requests, {looks} looks at most"),
                format!("{lease_renewals} renewals of the Lease"),
                String::new(),
                format!("{rss_mib:.1} MiB, {cpu_percent:.2} % CPU"),
            ],
        };
        cells.into()
    }

    fn goals(&self) -> Vec<Goal> {
        match self {
            Self::Upload {
                mebibytes,
                beside,
                ratio,
                extra_rss_mib,
                ..
            } => {
                let of = format!("{mebibytes} MiB beside {beside}");
                vec![
                    Goal::at_most(OF_CURL, "time of curl -T", &of, *ratio),
                    Goal::at_most(16.0, "MiB above idle", &of, *extra_rss_mib),
                ]
            }
            Self::Many {
                images, peak_rss_mib, ..
            } => vec![Goal::at_most(
                100.0,
                "MiB in all",
                &format!("{images} at once"),
                *peak_rss_mib,
            )],
            Self::Broken {
                mebibytes, ratio, puts, ..
            } => {
                let of = format!("{mebibytes} MiB");
                vec![
                    Goal::at_most(OF_UNBROKEN, "time of the unbroken", &of, *ratio),
                    Goal::at_most(1.0, "PUTs of an image whose source breaks", &of, count(*puts)),
                ]
            }
            Self::Cancel { samples, p99_ms, .. } => {
                vec![Goal::at_most(
                    1000.0,
                    "p99 ms to a quiet cloud",
                    &format!("{samples} cancels"),
                    *p99_ms,
                )]
            }
            Self::Idle {
                images,
                seconds,
                writes,
                looks,
                ..
            } => {
                let of = format!("{images} images");
                let most = f64::from(seconds.div_ceil(LOOK_SECONDS));
                vec![
                    Goal::none("writes besides the Lease", &of, *writes),
                    Goal::at_most(most, "looks at one image", &of, count(*looks)),
                ]
            }
        }
    }
}

/// The one in the middle, of whatever order.
pub(super) fn median(numbers: &[f64]) -> f64 {
    quantile(numbers, 50)
}

/// What so many of a hundred are not above.
pub(super) fn quantile(numbers: &[f64], percent: usize) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    rounded(sorted.get(place).copied().unwrap_or_default(), 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_hundred_the_p99_is_the_third_from_the_end() {
        let numbers: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&numbers, 99), 198.0);
        assert_eq!((median(&numbers), median(&[7.0]), median(&[])), (100.0, 7.0, 0.0));
    }
}
