//! Which replicas of a group are alive: each raises a number of its own now and then, and whose number stands still for too long is dead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The list of members as one of them sees it.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    /// By identity: the number, and when it was seen first.
    seen: BTreeMap<String, (u64, Duration)>,
}

impl Roll {
    /// Takes the list as it stands.
    pub fn saw(&mut self, beats: &BTreeMap<String, u64>, now: Duration) {
        self.seen.retain(|member, _| beats.contains_key(member));
        for (member, beat) in beats {
            match self.seen.get_mut(member) {
                Some((known, _)) if known == beat => {}
                Some(known) => *known = (*beat, now),
                None => {
                    self.seen.insert(member.clone(), (*beat, now));
                }
            }
        }
    }

    /// The members that gave a sign of life within `patience`.
    pub fn living(&self, now: Duration, patience: Duration) -> BTreeSet<String> {
        let alive = |(_, since): &(u64, Duration)| now.saturating_sub(*since) < patience;
        let living = self.seen.iter().filter(|(_, sign)| alive(sign));
        living.map(|(member, _)| member.clone()).collect()
    }

    /// The list to write: the living, and `me` with a new sign of life.
    pub fn announced(&self, me: &str, now: Duration, patience: Duration) -> BTreeMap<String, u64> {
        let mut beats = self.without(me, now, patience);
        let beat = self.seen.get(me).map_or(0, |(beat, _)| *beat);
        beats.insert(me.to_owned(), beat.wrapping_add(1));
        beats
    }

    /// The list to write when `me` leaves.
    pub fn without(&self, me: &str, now: Duration, patience: Duration) -> BTreeMap<String, u64> {
        let living = self.living(now, patience).into_iter();
        let others = living.filter(|member| member != me);
        others
            .filter_map(|member| {
                let (beat, _) = *self.seen.get(&member)?;
                Some((member, beat))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(15);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn list(members: &[(&str, u64)]) -> BTreeMap<String, u64> {
        members
            .iter()
            .map(|(member, beat)| ((*member).to_owned(), *beat))
            .collect()
    }

    #[test]
    fn a_member_lives_as_long_as_its_number_moves() {
        let mut roll = Roll::default();
        roll.saw(&list(&[("a", 1), ("b", 1)]), at(0));
        roll.saw(&list(&[("a", 2), ("b", 1)]), at(10));
        assert_eq!(roll.living(at(14), PATIENCE).len(), 2);
        assert_eq!(roll.living(at(15), PATIENCE), BTreeSet::from(["a".to_owned()]));
        assert_eq!(roll.announced("c", at(15), PATIENCE), list(&[("a", 2), ("c", 1)]));
        assert_eq!(roll.announced("a", at(15), PATIENCE), list(&[("a", 3)]));
        assert_eq!(roll.without("a", at(14), PATIENCE), list(&[("b", 1)]));
    }

    #[test]
    fn who_left_the_list_is_forgotten() {
        let mut roll = Roll::default();
        roll.saw(&list(&[("a", 1)]), at(0));
        roll.saw(&list(&[]), at(1));
        assert!(roll.living(at(1), PATIENCE).is_empty());
    }
}
