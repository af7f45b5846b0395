//! What becomes of free shards that are somebody's share and that he does not take.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::share::{Share, share};

/// Shards on their way to others at once: nobody works in them until they are taken.
const UNDER_WAY: usize = 4;

/// How long a member that let a shard lie is passed over, in patiences. It doubles each time, up to so often.
const REST: u32 = 2;
const DOUBLINGS: u32 = 5;

/// What one replica has seen of free shards.
///
/// A member that is alive may be too slow to take what is its share, or not get through to a Lease at all. Without this its share would stay free for
/// as long as it lives.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// By free shard whose it is to be, and since when.
    open: BTreeMap<u16, (String, Duration)>,
    passed_over: BTreeMap<String, PassedOver>,
}

#[derive(Clone, Debug)]
struct PassedOver {
    until: Duration,
    times: u32,
    /// How many shards it held then: who takes one is quick enough again.
    held: usize,
}

impl Offers {
    /// The part of `me` of what is divided among the members that take what is theirs. What one of the others has left free for
    /// `patience` goes to the next.
    pub fn share(
        &mut self,
        me: &str,
        members: &BTreeSet<String>,
        holders: &[Option<&str>],
        (now, patience): (Duration, Duration),
    ) -> Share {
        self.passed_over
            .retain(|member, passed| members.contains(member) && holders_of(member, holders) <= passed.held);
        loop {
            let is_resting = |member: &String| self.passed_over.get(member).is_some_and(|passed| now < passed.until);
            let takers = members.iter().filter(|member| *member == me || !is_resting(member));
            let mut part = share(me, &takers.cloned().collect(), holders);
            if !self.pass_over(&part.offered, holders, (now, patience)) {
                part.give = part.give.min(UNDER_WAY.saturating_sub(part.offered.len()));
                return part;
            }
        }
    }

    /// Whether somebody has let a shard lie for too long, and is passed over from now on.
    fn pass_over(
        &mut self,
        offered: &BTreeMap<u16, String>,
        holders: &[Option<&str>],
        (now, patience): (Duration, Duration),
    ) -> bool {
        self.open
            .retain(|shard, (member, _)| offered.get(shard) == Some(member));
        let mut late = BTreeSet::new();
        for (shard, member) in offered {
            let (_, since) = self.open.entry(*shard).or_insert_with(|| (member.clone(), now));
            if now.saturating_sub(*since) >= patience {
                late.insert(member.clone());
            }
        }
        for member in &late {
            let times = self.passed_over.get(member).map_or(0, |passed| passed.times);
            let passed = PassedOver {
                until: now + patience * (REST << times.min(DOUBLINGS)),
                times: times + 1,
                held: holders_of(member, holders),
            };
            self.passed_over.insert(member.clone(), passed);
        }
        !late.is_empty()
    }
}

fn holders_of(member: &str, holders: &[Option<&str>]) -> usize {
    holders.iter().filter(|holder| **holder == Some(member)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// What `a` takes and how many it gives at this second; each letter is the holder of a shard, `-` is nobody.
    fn part(offers: &mut Offers, members: &str, holders: &str, second: u64) -> (Vec<u16>, usize) {
        let members = members.chars().map(String::from).collect();
        let names: Vec<String> = holders.chars().map(String::from).collect();
        let holder = |name: &'_ String| (name != "-").then_some(name.clone());
        let holders: Vec<Option<String>> = names.iter().map(holder).collect();
        let holders: Vec<Option<&str>> = holders.iter().map(Option::as_deref).collect();
        let part = offers.share("a", &members, &holders, (Duration::from_secs(second), PATIENCE));
        (part.take.into_iter().collect(), part.give)
    }

    #[test]
    fn a_share_that_is_not_taken_goes_to_the_next() {
        let mut offers = Offers::default();
        assert_eq!(part(&mut offers, "ab", "aaaa", 0), (vec![], 2));
        assert_eq!(part(&mut offers, "ab", "a-a-", 1), (vec![], 0));
        assert_eq!(part(&mut offers, "ab", "a-a-", 10), (vec![], 0));
        assert_eq!(part(&mut offers, "ab", "a-a-", 11), (vec![1, 3], 0));
        assert_eq!(part(&mut offers, "ab", "aaaa", 12), (vec![], 0), "it is passed over");
        assert_eq!(part(&mut offers, "ab", "aaaa", 31), (vec![], 2), "and then tried again");
        assert_eq!(part(&mut offers, "ab", "aa--", 32), (vec![], 0));
        assert_eq!(part(&mut offers, "ab", "aa--", 42), (vec![2, 3], 0));
        assert_eq!(part(&mut offers, "ab", "aaaa", 81), (vec![], 0), "for twice as long");
        assert_eq!(part(&mut offers, "ab", "aaaa", 82), (vec![], 2));
    }

    #[test]
    fn who_takes_one_after_all_is_counted_again() {
        let mut offers = Offers::default();
        assert_eq!(part(&mut offers, "ab", "aa--", 0), (vec![], 0));
        assert_eq!(part(&mut offers, "ab", "aa--", 10), (vec![2, 3], 0));
        assert_eq!(part(&mut offers, "ab", "aaab", 11), (vec![], 1));
    }

    #[test]
    fn of_those_who_are_left_each_has_its_turn() {
        let mut offers = Offers::default();
        assert_eq!(part(&mut offers, "abc", "aac-", 0), (vec![], 0));
        // Not b, who was first, but c.
        assert_eq!(part(&mut offers, "abc", "aac-", 10), (vec![], 0));
        assert_eq!(part(&mut offers, "abc", "aac-", 20), (vec![3], 0));
    }

    #[test]
    fn few_shards_are_under_way_at_once() {
        let mut offers = Offers::default();
        let all = "a".repeat(20);
        assert_eq!(part(&mut offers, "ab", &all, 0), (vec![], 4));
        assert_eq!(part(&mut offers, "ab", &format!("---{}", &all[3..]), 1), (vec![], 1));
    }
}
