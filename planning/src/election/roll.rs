//! Which replicas of a group are alive: each raises a number of its own now and then, and whose number stands still for too long is dead.
//!
//! Who is about to leave says so behind its name: it counts as long as it has something to finish, but no shares are counted for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Behind the name of who is leaving.
const LEAVING: &str = " (leaving)";

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

    /// The members that gave a sign of life within `patience` and stay.
    pub fn living(&self, now: Duration, patience: Duration) -> BTreeSet<String> {
        let living = self.alive(now, patience).map(|(member, _)| member);
        living.filter(|member| !member.ends_with(LEAVING)).cloned().collect()
    }

    /// The list to write: the living, and `me` with this sign of life. Who is `leaving` still counts as there, and takes nothing.
    pub fn announced(
        &self,
        me: &str,
        (beat, leaving): (u64, bool),
        now: Duration,
        patience: Duration,
    ) -> BTreeMap<String, u64> {
        let mut beats = self.without(me, now, patience);
        let mark = if leaving { LEAVING } else { "" };
        beats.insert(format!("{me}{mark}"), beat);
        beats
    }

    /// The number of the next sign of life of `me`: none that was seen, and none that was sent, though it may not have arrived.
    pub fn next_beat(&self, me: &str, sent: u64) -> u64 {
        self.beat(me).unwrap_or(0).max(sent).wrapping_add(1)
    }

    /// The list to write when `me` is gone.
    pub fn without(&self, me: &str, now: Duration, patience: Duration) -> BTreeMap<String, u64> {
        let others = self.alive(now, patience).filter(|(member, _)| !is(member, me));
        others.map(|(member, beat)| (member.clone(), beat)).collect()
    }

    /// The number of `me`, leaving or not, as it was seen last.
    pub fn beat(&self, me: &str) -> Option<u64> {
        let mine = self.seen.iter().filter(|(member, _)| is(member, me));
        mine.map(|(_, (beat, _))| *beat).max()
    }

    fn alive(&self, now: Duration, patience: Duration) -> impl Iterator<Item = (&String, u64)> {
        let seen = self.seen.iter();
        let alive = seen.filter(move |(_, (_, since))| now.saturating_sub(*since) < patience);
        alive.map(|(member, (beat, _))| (member, *beat))
    }
}

fn is(member: &str, me: &str) -> bool {
    member.strip_suffix(LEAVING).unwrap_or(member) == me
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
        assert_eq!(
            roll.announced("c", (1, false), at(15), PATIENCE),
            list(&[("a", 2), ("c", 1)])
        );
        assert_eq!(roll.announced("a", (3, false), at(15), PATIENCE), list(&[("a", 3)]));
        assert_eq!(roll.without("a", at(14), PATIENCE), list(&[("b", 1)]));
    }

    #[test]
    fn who_is_leaving_is_on_the_list_and_has_no_share() {
        let mut roll = Roll::default();
        roll.saw(&list(&[("a", 1), ("b", 4)]), at(0));
        let leaving = roll.announced("b", (5, true), at(0), PATIENCE);
        assert_eq!(leaving, list(&[("a", 1), ("b (leaving)", 5)]));
        roll.saw(&leaving, at(1));
        assert_eq!(roll.living(at(1), PATIENCE), BTreeSet::from(["a".to_owned()]));
        assert_eq!(roll.beat("b"), Some(5));
        assert_eq!(
            roll.without("a", at(1), PATIENCE),
            list(&[("b (leaving)", 5)]),
            "not empty"
        );
        assert_eq!(
            roll.announced("a", (2, false), at(1), PATIENCE),
            list(&[("a", 2), ("b (leaving)", 5)])
        );
        assert_eq!(roll.without("b", at(1), PATIENCE), list(&[("a", 1)]));
    }

    #[test]
    fn no_sign_of_life_is_sent_twice() {
        let mut roll = Roll::default();
        assert_eq!(roll.next_beat("a", 0), 1);
        roll.saw(&list(&[("a (leaving)", 4)]), at(0));
        assert_eq!((roll.next_beat("a", 1), roll.next_beat("a", 6)), (5, 7));
    }

    #[test]
    fn who_left_the_list_is_forgotten() {
        let mut roll = Roll::default();
        roll.saw(&list(&[("a", 1)]), at(0));
        roll.saw(&list(&[]), at(1));
        assert!(roll.living(at(1), PATIENCE).is_empty());
    }
}
