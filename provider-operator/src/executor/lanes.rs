//! Who is served next. Two lanes, for what is one answer and for what moves all bytes of an image: in each, one cloud has few places and all clouds
//! together have more, so that a cloud that hangs keeps nobody from the others; and namespaces take turns, however much one of them wants: while others
//! wait, none has the last place too. Starts nothing itself and knows no clock.

use std::collections::HashMap;
use std::hash::Hash;

use super::Bounds;
use crate::objects::ObjectId;
use operator_kit::turns::Line;
use provider_plugin::CloudName;

/// The places for short deeds in all clouds together, as many times as one cloud has.
const CLOUDS_AT_ONCE: usize = 16;

/// What waits, and how much is under way.
#[derive(Debug)]
pub(super) struct Lanes {
    short: Lane,
    long: Lane,
}

/// A deed as lanes know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// Whose it is. There is one for an object.
    pub(super) object: ObjectId,
    /// Whom it asks.
    pub(super) cloud: CloudName,
    /// Whether it takes as long as the bytes take.
    pub(super) is_long: bool,
}

#[derive(Debug)]
struct Lane {
    line: Line<Ticket>,
    running: HashMap<CloudName, usize>,
    total: usize,
    /// The same of each namespace: in one cloud, and in all together.
    of_namespaces: HashMap<(String, Option<CloudName>), usize>,
    /// At once in one cloud.
    of_cloud: usize,
    /// At once in all.
    of_all: usize,
}

impl Lanes {
    pub(super) fn new(bounds: Bounds) -> Self {
        let Bounds {
            short,
            transfers,
            transfers_total,
        } = bounds;
        Self {
            short: Lane::new(short, short * CLOUDS_AT_ONCE),
            long: Lane::new(transfers, transfers_total),
        }
    }

    /// Takes a place at the end of the line.
    pub(super) fn join(&mut self, ticket: Ticket) {
        let namespace = ticket.object.namespace.clone();
        self.lane(ticket.is_long).line.join(&namespace, ticket);
    }

    /// Leaves the line without having had a turn.
    pub(super) fn leave(&mut self, ticket: &Ticket) {
        let line = &mut self.lane(ticket.is_long).line;
        line.leave(&ticket.object.namespace, |waiting| waiting.object == ticket.object);
    }

    /// How many have their turn at the same cloud before this one does, as things are.
    pub(super) fn ahead(&self, ticket: &Ticket) -> usize {
        let lane = if ticket.is_long { &self.long } else { &self.short };
        let is_rival = |waiting: &Ticket| waiting.cloud == ticket.cloud;
        let is_this = |waiting: &Ticket| waiting.object == ticket.object;
        lane.line.ahead(&ticket.object.namespace, is_rival, is_this)
    }

    /// Whether somebody waits who could have the place of this one, which has its turn.
    pub(super) fn others_wait(&self, ticket: &Ticket) -> bool {
        let lane = if ticket.is_long { &self.long } else { &self.short };
        let is_full = lane.total >= lane.of_all;
        let could_go = |waiting: &Ticket| waiting.cloud == ticket.cloud || (is_full && lane.has_room(&waiting.cloud));
        lane.line.all().any(could_go)
    }

    /// Whoever has a turn now, and has it until [`Lanes::done`].
    pub(super) fn next(&mut self) -> Option<Ticket> {
        self.short.next().or_else(|| self.long.next())
    }

    /// Somebody has a turn already, who never stood in line, and has it until [`Lanes::done`]: also where there is no place for him.
    pub(super) fn occupy(&mut self, ticket: &Ticket) {
        self.lane(ticket.is_long).occupy(ticket);
    }

    /// A turn is over.
    pub(super) fn done(&mut self, ticket: &Ticket) {
        self.lane(ticket.is_long).done(ticket);
    }

    fn lane(&mut self, is_long: bool) -> &mut Lane {
        if is_long { &mut self.long } else { &mut self.short }
    }
}

impl Lane {
    /// A lane in which nobody is served would hold up everybody.
    fn new(of_cloud: usize, of_all: usize) -> Self {
        Self {
            line: Line::default(),
            running: HashMap::new(),
            total: 0,
            of_namespaces: HashMap::new(),
            of_cloud: of_cloud.max(1),
            of_all: of_all.max(1),
        }
    }

    fn next(&mut self) -> Option<Ticket> {
        if self.total >= self.of_all {
            return None;
        }
        let mut line = std::mem::take(&mut self.line);
        let ticket = line.take_beside(|line, ticket| self.has_room(&ticket.cloud) && self.is_fair(line, ticket));
        self.line = line;
        self.occupy(ticket.as_ref()?);
        ticket
    }

    fn has_room(&self, cloud: &CloudName) -> bool {
        self.running.get(cloud).is_none_or(|count| *count < self.of_cloud)
    }

    /// While others wait who could go, a namespace has all places but one at most, and one at least: what holds its places for long holds not the last one.
    /// Who waits for a full cloud could not have it.
    fn is_fair(&self, line: &Line<Ticket>, ticket: &Ticket) -> bool {
        let Ticket { object, cloud, .. } = ticket;
        let has_enough = |cloud: Option<&CloudName>, places: usize| {
            let held = self.of_namespaces.get(&(object.namespace.clone(), cloud.cloned()));
            held.copied().unwrap_or_default() >= (places - 1).max(1)
        };
        let in_cloud = has_enough(Some(cloud), self.of_cloud)
            && line.others_wait(&object.namespace, |waiting| waiting.cloud == *cloud);
        let in_all = has_enough(None, self.of_all)
            && line.others_wait(&object.namespace, |waiting| self.has_room(&waiting.cloud));
        !in_cloud && !in_all
    }

    fn occupy(&mut self, ticket: &Ticket) {
        *self.running.entry(ticket.cloud.clone()).or_default() += 1;
        self.total += 1;
        for key in namespace_keys(ticket) {
            *self.of_namespaces.entry(key).or_default() += 1;
        }
    }

    fn done(&mut self, ticket: &Ticket) {
        self.total = self.total.saturating_sub(1);
        one_less(&mut self.running, &ticket.cloud);
        for key in namespace_keys(ticket) {
            one_less(&mut self.of_namespaces, &key);
        }
    }
}

/// As what a place of a namespace counts.
fn namespace_keys(ticket: &Ticket) -> [(String, Option<CloudName>); 2] {
    let namespace = &ticket.object.namespace;
    [Some(ticket.cloud.clone()), None].map(|cloud| (namespace.clone(), cloud))
}

fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use crds::providers::Provider;

    use super::*;

    fn bounds(short: usize, transfers: usize, transfers_total: usize) -> Bounds {
        Bounds {
            short,
            transfers,
            transfers_total,
        }
    }

    fn ticket(namespace: &str, name: &str, cloud: &str) -> Ticket {
        Ticket {
            object: ObjectId {
                provider: Provider::OpenStack,
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                uid: format!("{namespace}-{name}"),
            },
            cloud: CloudName(cloud.to_owned()),
            is_long: true,
        }
    }

    /// Everybody who has a turn now.
    fn begun(lanes: &mut Lanes) -> Vec<String> {
        std::iter::from_fn(|| lanes.next())
            .map(|ticket| ticket.object.name)
            .collect()
    }

    #[test]
    fn namespaces_take_turns_however_much_one_of_them_wants() {
        let mut lanes = Lanes::new(bounds(1, 1, 1));
        for name in ["a1", "a2", "a3"] {
            lanes.join(ticket("a", name, "east"));
        }
        lanes.join(ticket("b", "b1", "east"));
        lanes.join(ticket("c", "c1", "east"));
        let mut order = Vec::new();
        while let Some(ticket) = lanes.next() {
            lanes.done(&ticket);
            order.push(ticket.object.name);
        }
        assert_eq!(order, ["a1", "b1", "c1", "a2", "a3"]);
    }

    #[test]
    fn a_cloud_has_few_places_and_all_clouds_together_have_more() {
        let mut lanes = Lanes::new(bounds(1, 2, 3));
        for (index, cloud) in ["east", "east", "east", "west", "west", "west"].into_iter().enumerate() {
            lanes.join(ticket("a", &format!("{cloud}{index}"), cloud));
        }
        assert_eq!(begun(&mut lanes), ["east0", "east1", "west3"]);
        lanes.done(&ticket("a", "east0", "east"));
        assert_eq!(begun(&mut lanes), ["east2"]);
        lanes.done(&ticket("a", "east1", "east"));
        lanes.done(&ticket("a", "east2", "east"));
        assert_eq!(begun(&mut lanes), ["west4"], "west has two places");
    }

    #[test]
    fn who_waits_for_a_full_cloud_stands_in_nobodys_way() {
        let mut lanes = Lanes::new(bounds(1, 1, 9));
        lanes.join(ticket("a", "hangs", "east"));
        lanes.join(ticket("a", "waits", "east"));
        lanes.join(ticket("a", "goes", "west"));
        assert_eq!(begun(&mut lanes), ["hangs", "goes"]);
    }

    #[test]
    fn while_others_wait_a_namespace_has_all_places_but_one() {
        let mut lanes = Lanes::new(bounds(1, 2, 3));
        for (name, cloud) in [
            ("a1", "east"),
            ("a2", "east"),
            ("a3", "east"),
            ("a4", "west"),
            ("a5", "west"),
        ] {
            lanes.join(ticket("a", name, cloud));
        }
        assert_eq!(begun(&mut lanes), ["a1", "a2", "a4"], "nobody else waits");
        lanes.join(ticket("b", "b1", "east"));
        lanes.join(ticket("c", "c1", "north"));
        assert!(lanes.others_wait(&ticket("a", "a1", "east")));
        lanes.done(&ticket("a", "a4", "west"));
        assert_eq!(
            begun(&mut lanes),
            ["c1"],
            "the last place of all, though a was there before"
        );
        lanes.done(&ticket("c", "c1", "north"));
        lanes.done(&ticket("a", "a1", "east"));
        assert_eq!(
            begun(&mut lanes),
            ["a5", "b1"],
            "the last place of the cloud, which a3 would have had"
        );
        assert!(lanes.others_wait(&ticket("a", "a2", "east")), "a3 waits");
        assert!(!lanes.others_wait(&ticket("a", "a5", "west")), "a3 could not go there");
        lanes.done(&ticket("b", "b1", "east"));
        assert_eq!(begun(&mut lanes), ["a3"]);
    }

    #[test]
    fn the_last_place_of_all_stays_free_only_for_who_could_have_it() {
        let mut lanes = Lanes::new(bounds(1, 1, 3));
        lanes.join(ticket("a", "a1", "hangs"));
        lanes.join(ticket("a", "a2", "east"));
        assert_eq!(begun(&mut lanes), ["a1", "a2"]);
        lanes.join(ticket("a", "a3", "west"));
        lanes.join(ticket("b", "b1", "hangs"));
        assert_eq!(begun(&mut lanes), ["a3"], "b1 could not go");
        lanes.join(ticket("a", "a4", "west"));
        lanes.join(ticket("b", "b2", "north"));
        lanes.done(&ticket("a", "a3", "west"));
        assert_eq!(begun(&mut lanes), ["b2"], "b2 can");
    }

    #[test]
    fn the_short_lane_does_not_wait_for_the_long_one() {
        let mut lanes = Lanes::new(bounds(1, 1, 1));
        lanes.join(ticket("a", "long", "east"));
        assert_eq!(begun(&mut lanes), ["long"]);
        let mut look = ticket("a", "look", "east");
        look.is_long = false;
        lanes.join(look);
        assert_eq!(begun(&mut lanes), ["look"]);
    }

    #[test]
    fn who_waits_is_told_how_many_are_before_it() {
        let mut lanes = Lanes::new(bounds(1, 1, 1));
        let names = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1")];
        let tickets = names.map(|(namespace, name)| ticket(namespace, name, "east"));
        for ticket in &tickets {
            lanes.join(ticket.clone());
        }
        lanes.join(ticket("b", "elsewhere", "west"));
        let told: Vec<usize> = tickets.iter().map(|ticket| lanes.ahead(ticket)).collect();
        assert_eq!(told, [0, 3, 4, 1, 2], "by turns: a1, b1, c1, a2, a3");
        // What was told comes true.
        let mut before = 0;
        while let Some(next) = lanes.next().filter(|next| next.object.name != "a2") {
            before += usize::from(next.cloud == tickets[1].cloud);
            lanes.done(&next);
        }
        assert_eq!(before, 3);
    }

    #[test]
    fn who_leaves_is_not_waited_for() {
        let mut lanes = Lanes::new(bounds(1, 1, 1));
        let (first, second) = (ticket("a", "first", "east"), ticket("a", "second", "east"));
        lanes.join(first.clone());
        lanes.join(second.clone());
        lanes.leave(&first);
        assert_eq!(lanes.ahead(&second), 0);
        assert_eq!(begun(&mut lanes), ["second"]);
    }
}
