//! A transfer in a few words, for a column of a table.

use std::time::Duration;

use provider_plugin::{Progress, Stage};

use crate::amount::amount;

/// How far it is: `30 % of 4.0 GiB, 85.0 MiB/s, 34 s left`, as much of it as is known.
pub(super) fn summary(progress: &Progress, rate: u64, left: Option<Duration>) -> String {
    let Progress { sent, total, stage, .. } = progress;
    let mut words = vec![match total.filter(|total| *total > 0) {
        Some(total) => format!("{} % of {}", percent(*sent, total), amount(total)),
        None => amount(*sent),
    }];
    let doing = match stage {
        Stage::Reading => Some("reading what was sent before"),
        Stage::ReadingBack => Some("reading it back"),
        Stage::Sending => None,
    };
    words.extend(doing.map(str::to_owned));
    let is_over = total.is_some_and(|total| *sent >= total);
    if rate > 0 && !is_over {
        words.push(format!("{}/s", amount(rate)));
        words.extend(left.map(time_left));
    }
    words.join(", ")
}

/// Never 100 before it is so.
fn percent(part: u64, all: u64) -> u128 {
    u128::from(part.min(all)) * 100 / u128::from(all.max(1))
}

fn time_left(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..120 => format!("{seconds} s left"),
        120..7200 => format!("{} min left", seconds / 60),
        _ => format!("{} h left", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn told(sent: u64, total: Option<u64>, rate: u64, left: Option<u64>) -> String {
        let progress = Progress {
            sent,
            total,
            resumes: 0,
            stage: Stage::Sending,
        };
        summary(&progress, rate, left.map(Duration::from_secs))
    }

    #[test]
    fn a_column_says_how_much_how_fast_and_how_long() {
        let mib = 1 << 20;
        assert_eq!(
            told(GIB, Some(4 * GIB), 85 * mib + mib / 2, Some(37)),
            "25 % of 4.0 GiB, 85.5 MiB/s, 37 s left"
        );
        assert_eq!(told(0, Some(1000), 0, None), "0 % of 1000 B");
        assert_eq!(told(1536, None, 1024, None), "1.5 KiB, 1.0 KiB/s");
        assert_eq!(
            told(1, Some(GIB), mib, Some(3600)),
            "0 % of 1.0 GiB, 1.0 MiB/s, 60 min left"
        );
        assert_eq!(told(1, Some(GIB), 1, Some(90_000)), "0 % of 1.0 GiB, 1 B/s, 25 h left");
        assert_eq!(
            told(GIB - 1, Some(GIB), mib, Some(1)),
            "99 % of 1.0 GiB, 1.0 MiB/s, 1 s left"
        );
        assert_eq!(told(GIB, Some(GIB), mib, Some(0)), "100 % of 1.0 GiB");
    }
}
