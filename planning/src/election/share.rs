//! Which shards a replica takes and which it gives away, so that all are held and nobody holds two more than another.
//!
//! Every replica makes the whole plan and follows its own part of it. Who sees the same makes the same plan; who does not is corrected by the Leases
//! now (a shard has one holder) and by the next look soon.

use std::collections::{BTreeMap, BTreeSet};

/// What one replica is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Shards without a holder that it takes.
    pub take: BTreeSet<u16>,
    /// How many of its shards it gives to others.
    pub give: usize,
    /// The other shards without a holder, and who is to take them.
    pub offered: BTreeMap<u16, String>,
}

/// The part of `me`. `members` are the living, with or without `me`; `holders` has every shard's holder, `None` where it may be taken.
///
/// What a replica holds that is not alive is left alone: its Lease runs out.
pub(super) fn share(me: &str, members: &BTreeSet<String>, holders: &[Option<&str>]) -> Share {
    let mut loads: BTreeMap<&str, usize> = members.iter().map(|member| (member.as_str(), 0)).collect();
    loads.entry(me).or_default();
    let mut free = Vec::new();
    for (shard, holder) in (0..).zip(holders) {
        match holder {
            None => free.push(shard),
            Some(holder) => {
                if let Some(load) = loads.get_mut(holder) {
                    *load += 1;
                }
            }
        }
    }
    let mut part = Share::default();
    for shard in free {
        let Some(poorest) = poorest(&loads) else { break };
        add(&mut loads, poorest);
        if poorest == me {
            part.take.insert(shard);
        } else {
            part.offered.insert(shard, poorest.to_owned());
        }
    }
    while let (Some(poorest), Some(richest)) = (poorest(&loads), richest(&loads)) {
        if loads[richest] < loads[poorest] + 2 {
            break;
        }
        // Who is rich has taken nothing above: what it gives it holds.
        part.give += usize::from(richest == me);
        add(&mut loads, poorest);
        loads.entry(richest).and_modify(|load| *load -= 1);
    }
    part
}

fn add<'a>(loads: &mut BTreeMap<&'a str, usize>, member: &'a str) {
    *loads.entry(member).or_default() += 1;
}

fn poorest<'a>(loads: &BTreeMap<&'a str, usize>) -> Option<&'a str> {
    let (member, _) = loads.iter().min_by_key(|(member, load)| (**load, **member))?;
    Some(member)
}

fn richest<'a>(loads: &BTreeMap<&'a str, usize>) -> Option<&'a str> {
    let (member, _) = loads.iter().max_by_key(|(member, load)| (**load, **member))?;
    Some(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is the holder of a shard; `-` is nobody, `?` somebody who is not alive.
    fn part(me: &str, members: &str, holders: &str) -> (Vec<u16>, usize) {
        let members = members.chars().map(String::from).collect();
        let names: Vec<String> = holders.chars().map(String::from).collect();
        let holders: Vec<Option<&str>> = names
            .iter()
            .map(|holder| (holder != "-").then_some(holder.as_str()))
            .collect();
        let Share { take, give, offered: _ } = share(me, &members, &holders);
        (take.into_iter().collect(), give)
    }

    #[test]
    fn shares_are_fair_and_change_as_little_as_possible() {
        type Case = (&'static str, &'static str, &'static str, &'static [u16], usize);
        let table: [Case; 14] = [
            // Whom, the living, the holders, what is taken, how many are given.
            ("a", "a", "------", &[0, 1, 2, 3, 4, 5], 0),
            ("a", "", "-", &[0], 0),
            ("a", "a", "b", &[], 0),
            ("a", "abc", "------", &[0, 3], 0),
            ("b", "abc", "------", &[1, 4], 0),
            ("a", "ab", "aaaaaa", &[], 3),
            ("b", "ab", "aaaaaa", &[], 0),
            ("a", "abc", "aaabbb", &[], 1),
            ("b", "abc", "aaabbb", &[], 1),
            ("a", "abcd", "aabbc-", &[], 0),
            ("d", "abcd", "aabbc-", &[5], 0),
            ("a", "ab", "aabb??", &[], 0),
            ("a", "ab", "aabb--", &[4], 0),
            ("c", "abc", "ab", &[], 0),
        ];
        for (me, members, holders, take, give) in table {
            assert_eq!(
                part(me, members, holders),
                (take.to_vec(), give),
                "{me} of {members} with {holders}"
            );
        }
    }
}
