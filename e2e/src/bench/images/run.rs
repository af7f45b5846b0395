//! What was found, as lines of a table, and what was promised of it.

use serde::Serialize;

use crate::bench::report::{Goal, Row, count};

/// One line. Keys say their unit.
#[derive(Debug, Serialize)]
#[serde(tag = "measure", rename_all = "snake_case")]
pub(in crate::bench) enum Run {
    Upload(Upload),
    Many(Many),
    Broken(Broken),
    Cancel(Cancel),
    Idle(Idle),
}

/// One image after the other, medians.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Upload {
    pub(super) mebibytes: u32,
    pub(super) rounds: usize,
    /// As Glance took it.
    pub(super) seconds: f64,
    /// The same bytes from a file.
    pub(super) beside_seconds: f64,
    /// By what.
    pub(super) beside: String,
    /// `seconds / beside_seconds`.
    pub(super) ratio: f64,
    /// From the object to its readiness.
    pub(super) to_ready_seconds: f64,
    pub(super) idle_rss_mib: f64,
    /// Above what was held just before, of the worst round.
    pub(super) extra_rss_mib: f64,
}

/// Many images at once.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Many {
    pub(super) images: usize,
    pub(super) mebibytes: u32,
    /// From the first object until the last is ready.
    pub(super) seconds: f64,
    /// Of another image while they run.
    pub(super) changes: usize,
    /// From such a change until the status of the other image is about it.
    pub(super) reaction_p99_ms: f64,
    /// In all, while they run.
    pub(super) peak_rss_mib: f64,
}

/// A source that breaks.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Broken {
    pub(super) mebibytes: u32,
    /// How often it broke.
    pub(super) breaks: usize,
    pub(super) seconds: f64,
    /// From a source that does not.
    pub(super) unbroken_seconds: f64,
    /// `seconds / unbroken_seconds`.
    pub(super) ratio: f64,
    /// Of the image; one is enough.
    pub(super) puts: usize,
}

/// Transfers that are given up.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Cancel {
    pub(super) samples: usize,
    /// Until nobody reads the source, and the cloud has no record of the image.
    pub(super) median_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) longest_ms: f64,
}

/// Nothing to do.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Idle {
    pub(super) images: usize,
    pub(super) seconds: u32,
    /// Besides renewals of the Lease.
    pub(super) writes: usize,
    pub(super) lease_renewals: usize,
    /// Of the image service.
    pub(super) requests: usize,
    /// How often it was looked at the image that was looked at most.
    pub(super) looks: usize,
    pub(super) cpu_percent: f64,
    pub(super) rss_mib: f64,
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
            Self::Upload(upload) => upload.cells(),
            Self::Many(many) => many.cells(),
            Self::Broken(broken) => broken.cells(),
            Self::Cancel(cancel) => cancel.cells(),
            Self::Idle(idle) => idle.cells(),
        };
        cells.into()
    }

    fn goals(&self) -> Vec<Goal> {
        match self {
            Self::Upload(upload) => upload.goals(),
            Self::Many(many) => many.goals(),
            Self::Broken(broken) => broken.goals(),
            Self::Cancel(cancel) => cancel.goals(),
            Self::Idle(idle) => idle.goals(),
        }
    }
}

/// In the order of the headings.
type Cells = [String; 6];

impl Upload {
    fn cells(&self) -> Cells {
        let Self {
            mebibytes,
            rounds,
            seconds,
            beside_seconds,
            beside,
            ratio,
            to_ready_seconds,
            idle_rss_mib,
            extra_rss_mib,
        } = self;
        [
            "upload".to_owned(),
            format!("{rounds} × {mebibytes} MiB"),
            format!("{seconds:.3} s, ready after {to_ready_seconds:.2} s"),
            format!("{beside}: {beside_seconds:.3} s"),
            format!("{ratio:.2}"),
            format!("{extra_rss_mib:.1} MiB above {idle_rss_mib:.1}"),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} MiB beside {}", self.mebibytes, self.beside);
        vec![
            Goal::at_most(OF_CURL, "time of curl -T", &of, self.ratio),
            Goal::at_most(16.0, "MiB above idle", &of, self.extra_rss_mib),
        ]
    }
}

impl Many {
    fn cells(&self) -> Cells {
        let Self {
            images,
            mebibytes,
            seconds,
            changes,
            reaction_p99_ms,
            peak_rss_mib,
        } = self;
        [
            "at once".to_owned(),
            format!("{images} × {mebibytes} MiB"),
            format!("{seconds:.2} s"),
            format!("{changes} changes of another: p99 {reaction_p99_ms:.0} ms"),
            String::new(),
            format!("{peak_rss_mib:.1} MiB in all"),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} at once", self.images);
        vec![
            Goal::at_most(100.0, "MiB in all", &of, self.peak_rss_mib),
            Goal::at_most(1000.0, "p99 ms to the status of another", &of, self.reaction_p99_ms),
        ]
    }
}

impl Broken {
    fn cells(&self) -> Cells {
        let Self {
            mebibytes,
            breaks,
            seconds,
            unbroken_seconds,
            ratio,
            puts,
        } = self;
        [
            "broken source".to_owned(),
            format!("{mebibytes} MiB, {breaks} breaks"),
            format!("{seconds:.3} s, {puts} PUT"),
            format!("unbroken: {unbroken_seconds:.3} s"),
            format!("{ratio:.2}"),
            String::new(),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} MiB", self.mebibytes);
        vec![
            Goal::at_most(OF_UNBROKEN, "time of the unbroken", &of, self.ratio),
            Goal::at_most(1.0, "PUTs of an image whose source breaks", &of, count(self.puts)),
        ]
    }
}

impl Cancel {
    fn cells(&self) -> Cells {
        let Self {
            samples,
            median_ms,
            p99_ms,
            longest_ms,
        } = self;
        [
            "cancel to quiet".to_owned(),
            samples.to_string(),
            format!("median {median_ms:.0}, p99 {p99_ms:.0}, longest {longest_ms:.0} ms"),
            String::new(),
            String::new(),
            String::new(),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} cancels", self.samples);
        vec![Goal::at_most(1000.0, "p99 ms to a quiet cloud", &of, self.p99_ms)]
    }
}

impl Idle {
    fn cells(&self) -> Cells {
        let Self {
            images,
            seconds,
            writes,
            lease_renewals,
            requests,
            looks,
            cpu_percent,
            rss_mib,
        } = self;
        [
            "idle".to_owned(),
            format!("{images} images, {seconds} s"),
            format!("{writes} writes, {requests} requests, {looks} looks at most"),
            format!("{lease_renewals} renewals of the Lease"),
            String::new(),
            format!("{rss_mib:.1} MiB, {cpu_percent:.2} % CPU"),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} images", self.images);
        let most = f64::from(self.seconds.div_ceil(LOOK_SECONDS));
        // One image may hide behind the others, and more than one question behind a look.
        let in_all = most * count(self.images);
        vec![
            Goal::none("writes besides the Lease", &of, self.writes),
            Goal::at_most(most, "looks at one image", &of, count(self.looks)),
            Goal::at_most(in_all, "requests for all images", &of, count(self.requests)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_may_be_asked_for_once_in_ten_minutes_by_one_request() {
        let met = |requests, looks| {
            let idle = Idle {
                images: 10,
                seconds: 1200,
                writes: 0,
                lease_renewals: 400,
                requests,
                looks,
                cpu_percent: 0.0,
                rss_mib: 10.0,
            };
            idle.goals().iter().all(Goal::is_met)
        };
        assert!(met(20, 2));
        assert!(!met(21, 2), "more than one question at a look");
        assert!(!met(12, 3), "one image looked at more often");
    }
}
