//! Which of its shards a replica gives to others, and when it stops to work in them for that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The shards that are on their way to others.
///
/// A shard can be given only while nothing runs in it, so what is idle goes first, at once. Where something runs everywhere, nothing new may begin in a
/// shard until it has become idle. That lasts as long as its slowest pass, so it is tried for a time, then the shard is worked in for as long, and
/// another is tried meanwhile: one pass that hangs neither keeps the others of its shard waiting nor the other shards from being given.
#[derive(Clone, Debug, Default)]
pub struct Handover {
    tried: BTreeMap<u16, Try>,
}

#[derive(Clone, Copy, Debug)]
enum Try {
    /// Nothing new begins in it, since then.
    Shut(Duration),
    /// It did not become idle in time; worked in again since then.
    Rests(Duration),
}

impl Handover {
    /// The shards in which nothing may begin now. `give` of those that are held, each with whether it is idle, have to go; none is shut for longer than
    /// `patience` at a time while something runs in it.
    pub fn shut(
        &mut self,
        give: usize,
        held: &BTreeMap<u16, bool>,
        now: Duration,
        patience: Duration,
    ) -> BTreeSet<u16> {
        self.tried.retain(|shard, _| held.contains_key(shard));
        for attempt in self.tried.values_mut() {
            match *attempt {
                Try::Shut(since) if now.saturating_sub(since) >= patience => *attempt = Try::Rests(now),
                Try::Shut(_) | Try::Rests(_) => {}
            }
        }
        let is_over = |attempt: &Try| matches!(attempt, Try::Rests(since) if now.saturating_sub(*since) >= patience);
        self.tried.retain(|_, attempt| !is_over(attempt));
        let rank = |shard: u16, idle: bool| match (idle, self.tried.get(&shard)) {
            (true, _) => Some(0),
            (false, Some(Try::Shut(_))) => Some(1),
            (false, None) => Some(2),
            (false, Some(Try::Rests(_))) => None,
        };
        let ranked = held
            .iter()
            .filter_map(|(shard, idle)| Some((rank(*shard, *idle)?, *shard)));
        let mut ranked: Vec<(u8, u16)> = ranked.collect();
        ranked.sort_unstable();
        let shut: BTreeSet<u16> = ranked.into_iter().take(give).map(|(_, shard)| shard).collect();
        self.tried
            .retain(|shard, attempt| matches!(attempt, Try::Rests(_)) || shut.contains(shard));
        for shard in &shut {
            let attempt = self.tried.entry(*shard).or_insert(Try::Shut(now));
            if let Try::Rests(_) = attempt {
                *attempt = Try::Shut(now);
            }
        }
        shut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    const NONE: [u16; 0] = [];

    /// What is shut at this second. Of what is held an upper case letter is busy, a lower case one idle; `a` is shard 0.
    fn shut(handover: &mut Handover, give: usize, held: &str, second: u64) -> Vec<u16> {
        let shard = |letter: char| u16::from(u8::try_from(letter.to_ascii_lowercase()).unwrap() - b'a');
        let held = held
            .chars()
            .map(|letter| (shard(letter), letter.is_ascii_lowercase()))
            .collect();
        let shut = handover.shut(give, &held, Duration::from_secs(second), PATIENCE);
        shut.into_iter().collect()
    }

    #[test]
    fn what_is_idle_goes_first_and_nothing_else_is_shut_for_it() {
        let mut handover = Handover::default();
        assert_eq!(shut(&mut handover, 0, "abc", 0), NONE);
        assert_eq!(shut(&mut handover, 1, "ABc", 0), [2]);
        assert_eq!(shut(&mut handover, 2, "AbC", 1), [1, 2], "what was shut stays so");
        assert_eq!(shut(&mut handover, 1, "aBC", 2), [0]);
        assert_eq!(shut(&mut handover, 0, "BC", 3), NONE);
    }

    #[test]
    fn nothing_is_shut_for_longer_than_patience_and_each_has_its_turn() {
        let mut handover = Handover::default();
        assert_eq!(shut(&mut handover, 1, "AB", 0), [0]);
        assert_eq!(shut(&mut handover, 1, "AB", 9), [0]);
        assert_eq!(shut(&mut handover, 1, "AB", 10), [1], "the other one");
        assert_eq!(shut(&mut handover, 1, "AB", 19), [1]);
        assert_eq!(shut(&mut handover, 1, "AB", 20), [0]);
        assert_eq!(shut(&mut handover, 1, "Ab", 21), [1], "idle before it has rested");
        assert_eq!(shut(&mut handover, 0, "A", 22), NONE);
        let mut alone = Handover::default();
        let seconds = [0, 9, 10, 19, 20].map(|second| shut(&mut alone, 1, "A", second));
        assert_eq!(seconds, [vec![0], vec![0], vec![], vec![], vec![0]]);
    }
}
