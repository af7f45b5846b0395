//! Whether the bytes of an image come as fast as they must while others wait for the place, and who holds them up. Reads no clock and decides nothing about
//! what follows.

use std::time::Duration;

use crate::Turn;

/// Bytes a second that have to move in the long run where others wait.
///
/// Far below what any mirror gives that is of use: an image of 2 GiB takes nine hours so. Far above what keeps a place at no cost.
const SLOWEST: u64 = 64 * 1024;
/// How far the bytes may be behind. Long enough for all breaks of a source that are mended within one transfer (seven minutes), for the handshakes before it
/// and for a machine that has much else to do. What came fast earlier is no credit: from any moment on a place is lost after so long.
const BEHIND: Duration = Duration::from_mins(10);
/// What is further behind than this is forgotten, so that what becomes fast again is not given up hours later.
const MOST: Duration = Duration::from_mins(20);

/// How far the bytes of one image are behind, and whose waits did it. Bytes of the image, as it is sent: a packed file need not be faster than an unpacked
/// one, and an image of `n` bytes is there after ten minutes and `n / 64 KiB` seconds at the latest, or given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speed {
    behind: Duration,
    by_source: Duration,
    by_cloud: Duration,
}

impl Speed {
    /// Nothing moved for so long, because somebody was waited for.
    pub fn waited(&mut self, whom: Turn, time: Duration) {
        self.behind = self.behind.saturating_add(time).min(MOST);
        let share = match whom {
            Turn::Source => &mut self.by_source,
            Turn::Cloud => &mut self.by_cloud,
        };
        *share = share.saturating_add(time);
    }

    /// So many bytes came.
    pub fn moved(&mut self, bytes: u64) {
        let worth = Duration::from_micros(bytes.saturating_mul(1_000_000) / SLOWEST);
        self.behind = self.behind.saturating_sub(worth);
        if self.behind.is_zero() {
            *self = Self::default();
        }
    }

    /// Who held the bytes up for most of the time, if they are too far behind.
    pub fn too_slow(&self) -> Option<Turn> {
        let by_source = self.by_source >= self.by_cloud;
        let whose = if by_source { Turn::Source } else { Turn::Cloud };
        (self.behind >= BEHIND).then_some(whose)
    }

    /// What is told of it.
    pub fn words(whose: Turn) -> String {
        let (who, what) = match whose {
            Turn::Source => ("the source gives", "put the image where it comes faster"),
            Turn::Cloud => ("the cloud takes or gives", "look why it is so slow"),
        };
        format!(
            "{who} less than {} KiB a second of the image, which keeps a place from others; {what}, or raise --max-transfers",
            SLOWEST / 1024
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_drips_is_too_slow_after_ten_minutes_however_fast_it_was_before() {
        let mut speed = Speed::default();
        for _ in 0..10_000 {
            speed.waited(Turn::Source, SECOND);
            speed.moved(10 * SLOWEST);
        }
        let mut drips = 0;
        while speed.too_slow().is_none() {
            speed.waited(Turn::Source, 25 * SECOND);
            speed.moved(1);
            drips += 1;
        }
        assert_eq!((drips, speed.too_slow()), (25, Some(Turn::Source)));
    }

    #[test]
    fn what_is_just_fast_enough_is_never_too_slow_and_what_becomes_so_is_so_soon() {
        let mut speed = Speed::default();
        for _ in 0..100_000 {
            speed.waited(Turn::Cloud, SECOND);
            speed.moved(SLOWEST);
        }
        assert_eq!(speed, Speed::default());
        for _ in 0..100_000 {
            speed.waited(Turn::Cloud, SECOND);
            speed.waited(Turn::Source, SECOND / 2);
            speed.moved(SLOWEST / 2);
        }
        assert_eq!(speed.too_slow(), Some(Turn::Cloud), "the cloud was waited for longer");
        for _ in 0..601 {
            speed.waited(Turn::Cloud, SECOND);
            speed.moved(2 * SLOWEST);
        }
        assert_eq!(speed.too_slow(), None);
    }
}
