//! How fast something moves, and how long it will take. By a steady clock that the caller reads.

use std::{collections::VecDeque, time::Duration};

/// The rate is that of so long.
const WINDOW: Duration = Duration::from_secs(10);
/// Places in the window, so that it takes the same room whatever the rate.
const STEPS: u32 = 20;

/// Measures one transfer. Times are those of one steady clock, whatever its zero.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// When, and how much had moved in total; oldest first, none older than the window but the first.
    samples: VecDeque<(Duration, u64)>,
    total: u64,
}

impl Meter {
    /// So many bytes have moved in all, seen now. The first call is the beginning.
    pub fn moved(&mut self, now: Duration, total_moved: u64) {
        self.total = total_moved;
        // A sample in the same place of the window replaces the one that came before, but never the oldest.
        let is_same_place = |last: Duration| now.saturating_sub(last) < WINDOW / STEPS;
        let count = self.samples.len();
        let before = count.checked_sub(2).and_then(|index| self.samples.get(index));
        if before.is_some_and(|(at, _)| is_same_place(*at)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, total_moved));
        while self
            .samples
            .get(1)
            .is_some_and(|(at, _)| now.saturating_sub(*at) >= WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Bytes a second over the last 10 s, or since the beginning when that is less long ago.
    pub fn rate(&self) -> u64 {
        let (Some((since, from)), Some((until, to))) = (self.samples.front(), self.samples.back()) else {
            return 0;
        };
        let milliseconds = until.saturating_sub(*since).as_millis();
        let bytes = u128::from(to.saturating_sub(*from));
        let rate = (bytes * 1000).checked_div(milliseconds).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// How long the rest takes at this rate, in whole seconds. `None` while nothing moves, or when the total is not known.
    pub fn left(&self, total: Option<u64>) -> Option<Duration> {
        let rest = total?.saturating_sub(self.total);
        let seconds = rest.checked_add(self.rate().checked_sub(1)?)? / self.rate();
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let mut meter = Meter::default();
        assert_eq!((meter.rate(), meter.left(Some(MIB))), (0, None));
        for second in 0..=30 {
            meter.moved(seconds(second), second * MIB);
        }
        assert_eq!(meter.rate(), MIB);
        assert_eq!(meter.left(Some(40 * MIB)), Some(seconds(10)));
        assert_eq!(meter.left(Some(30 * MIB + 1)), Some(seconds(1)));
        assert_eq!(meter.left(None), None);
        for second in 31..=45 {
            meter.moved(seconds(second), 30 * MIB);
        }
        assert_eq!((meter.rate(), meter.left(Some(40 * MIB))), (0, None));
    }

    #[test]
    fn it_takes_the_same_room_however_often_it_is_told() {
        let mut meter = Meter::default();
        for millisecond in 0..100_000 {
            meter.moved(Duration::from_millis(millisecond), millisecond * 1000);
        }
        assert!(meter.samples.len() <= 40, "{}", meter.samples.len());
        let rate = meter.rate();
        assert!((990_000..=1_010_000).contains(&rate), "{rate}");
    }
}
