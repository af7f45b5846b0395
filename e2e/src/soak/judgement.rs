//! What became of an operator's holdings over a soak: what of it grows. Pure.

use super::{Sample, Trend};

/// What is remembered fills in this part of the time, which is not judged.
const WARM_UP: f64 = 0.25;

/// What must not grow.
struct Measure {
    name: &'static str,
    of: fn(&Sample) -> f64,
    /// The least that counts: a line that rises by less over the time that is judged does not rise.
    least: f64,
    /// By how much the second half of that time may be above the first, on average, whatever a line through both says.
    most: f64,
}

const MEASURES: [Measure; 5] = [
    Measure {
        name: "resident MiB",
        of: |sample| sample.usage.resident_mib,
        least: 1.0,
        most: 8.0,
    },
    Measure {
        name: "open files",
        of: |sample| sample.usage.open_files.into(),
        least: 1.0,
        most: 16.0,
    },
    Measure {
        name: "threads",
        of: |sample| sample.usage.threads.into(),
        least: 1.0,
        most: 8.0,
    },
    Measure {
        name: "tasks",
        of: |sample| sample.tasks,
        least: 1.0,
        most: 32.0,
    },
    Measure {
        name: "queue",
        of: |sample| sample.queue,
        least: 1.0,
        most: 32.0,
    },
];

/// What can be said of one measure, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It does not grow.
    Steady,
    /// There were too few samples to say.
    Untold,
    /// It grows.
    Grows,
}

/// One measure over the time that is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// What was measured, with its unit.
    pub name: &'static str,
    /// `None` when there are too few samples.
    pub found: Option<Found>,
}

/// How one measure moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The line through all samples.
    pub trend: Trend,
    /// How much more the second half of the samples has than the first, on average.
    pub rise: f64,
    /// How much more it may have.
    pub most: f64,
}

impl Judged {
    /// Whether it grows. A rise beyond what it may be is growth also where the line says nothing: a leak that is no line leaves samples on one
    /// side of it for long, and such say little of its slope. So what is steady has not grown by more than that, whatever chance explains.
    pub fn verdict(&self) -> Verdict {
        match self.found {
            None => Verdict::Untold,
            Some(found) if found.trend.grows() || found.rise > found.most => Verdict::Grows,
            Some(_) => Verdict::Steady,
        }
    }
}

/// Each measure of these samples, which are in the order of time. Those of the first quarter of it are left out.
pub fn judge(samples: &[Sample]) -> Vec<Judged> {
    let end = samples.last().map_or(0.0, |sample| sample.elapsed.as_secs_f64());
    let is_settled = |sample: &&Sample| sample.elapsed.as_secs_f64() >= end * WARM_UP;
    let settled: Vec<&Sample> = samples.iter().filter(is_settled).collect();
    let judged = MEASURES.iter().map(|measure| {
        let point = |sample: &&Sample| (sample.elapsed.as_secs_f64(), (measure.of)(sample));
        let points: Vec<(f64, f64)> = settled.iter().map(point).collect();
        let found = Trend::of(&points, measure.least).map(|trend| Found {
            trend,
            rise: rise(&points),
            most: measure.most,
        });
        Judged {
            name: measure.name,
            found,
        }
    });
    judged.collect()
}

/// What can be said of all: the worst.
pub fn verdict(judged: &[Judged]) -> Verdict {
    judged.iter().map(Judged::verdict).max().unwrap_or(Verdict::Untold)
}

fn rise(points: &[(f64, f64)]) -> f64 {
    let (first, second) = points.split_at(points.len() / 2);
    let mean = |points: &[(f64, f64)]| {
        let count = f64::from(u32::try_from(points.len()).unwrap_or(u32::MAX)).max(1.0);
        points.iter().map(|point| point.1).sum::<f64>() / count
    };
    mean(second) - mean(first)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::usage::Usage;

    const HOURS: f64 = 2.0;

    /// What an operator holds that goes up and down and does not grow.
    fn steady(seconds: f64) -> Sample {
        // Neighbours differ: the weather changes every few seconds.
        let wave = (seconds / 7.0).sin();
        let pieces = u32::from(wave > 0.0);
        Sample {
            elapsed: Duration::from_secs_f64(seconds),
            usage: Usage {
                resident_mib: 50.0 + 3.0 * wave,
                anonymous_mib: 30.0 + 3.0 * wave,
                peak_mib: 60.0,
                cpu: Duration::from_secs(1),
                threads: 8 + pieces,
                open_files: 30 + 4 * pieces,
            },
            tasks: 100.0 + 20.0 * wave,
            queue: 3.0 + 3.0 * wave,
            releases: 200.0,
            requests: 0,
            faults: 0,
            deeds: 0,
        }
    }

    /// A sample every ten seconds for two hours; `part` is how much of the time has passed.
    fn soaked(change: impl Fn(&mut Sample, f64)) -> Vec<Sample> {
        (0..=720)
            .map(|number| {
                let part = f64::from(number) / 720.0;
                let mut sample = steady(part * HOURS * 3_600.0);
                change(&mut sample, part);
                sample
            })
            .collect()
    }

    fn growing(samples: &[Sample]) -> Vec<&'static str> {
        let judged = judge(samples);
        let growing = judged.iter().filter(|judged| judged.verdict() == Verdict::Grows);
        growing.map(|judged| judged.name).collect()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small numbers of pieces"
    )]
    fn pieces(count: f64) -> u32 {
        count as u32
    }

    #[test]
    fn what_goes_up_and_down_is_steady_in_every_measure() {
        let judged = judge(&soaked(|_, _| ()));
        for one in &judged {
            assert_eq!(one.verdict(), Verdict::Steady, "{one:?}");
        }
        assert_eq!(verdict(&judged), Verdict::Steady);
    }

    #[test]
    fn each_measure_that_rises_is_named_and_no_other() {
        type Rise = fn(&mut Sample, f64);
        let table: [(&str, Rise); 5] = [
            ("resident MiB", |sample, part| sample.usage.resident_mib += 6.0 * part),
            ("open files", |sample, part| {
                sample.usage.open_files += pieces(6.0 * part);
            }),
            ("threads", |sample, part| sample.usage.threads += pieces(4.0 * part)),
            ("tasks", |sample, part| sample.tasks += 25.0 * part),
            ("queue", |sample, part| sample.queue += 8.0 * part),
        ];
        for (name, rise) in table {
            let samples = soaked(rise);
            assert_eq!(growing(&samples), [name]);
            assert_eq!(verdict(&judge(&samples)), Verdict::Grows, "{name}");
        }
    }

    #[test]
    fn what_fills_in_the_first_quarter_and_rests_then_is_steady() {
        let samples = soaked(|sample, part| sample.usage.resident_mib += 40.0 * (part / 0.2).min(1.0));
        assert_eq!(verdict(&judge(&samples)), Verdict::Steady);
    }

    #[test]
    fn a_leak_that_is_no_line_is_seen_by_what_its_second_half_has_more() {
        // Samples are on one side of a line for long, and so say little of its slope.
        let samples = soaked(|sample, part| sample.usage.resident_mib = 50.0 + 24.0 * part.powi(3));
        let found = judge(&samples)[0].found.expect("enough samples");
        assert!(!found.trend.grows() && found.rise > found.most, "{found:?}");
        assert_eq!(growing(&samples), ["resident MiB"]);
    }

    #[test]
    fn a_soak_that_was_too_short_is_not_called_steady() {
        assert_eq!(verdict(&judge(&[])), Verdict::Untold);
        let samples = soaked(|_, _| ());
        assert_eq!(verdict(&judge(&samples[..10])), Verdict::Untold);
        assert_eq!(verdict(&judge(&samples[..20])), Verdict::Steady);
    }
}
