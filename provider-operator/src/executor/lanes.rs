//! Who is served next. Two lanes, for what is one answer and for what moves all bytes of an image: in each, one cloud has few places and all clouds
//! together have more, so that a cloud that hangs keeps nobody from the others; and namespaces take turns, however much one of them wants. Starts
//! nothing itself and knows no clock.

use std::collections::HashMap;

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

    /// Whoever has a turn now, and has it until [`Lanes::done`].
    pub(super) fn next(&mut self) -> Option<Ticket> {
        self.short.next().or_else(|| self.long.next())
    }

    /// Somebody has a turn already, who never stood in line, and has it until [`Lanes::done`]: also where there is no place for him.
    pub(super) fn occupy(&mut self, ticket: &Ticket) {
        self.lane(ticket.is_long).occupy(&ticket.cloud);
    }

    /// A turn is over.
    pub(super) fn done(&mut self, ticket: &Ticket) {
        self.lane(ticket.is_long).done(&ticket.cloud);
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
            of_cloud: of_cloud.max(1),
            of_all: of_all.max(1),
        }
    }

    fn next(&mut self) -> Option<Ticket> {
        if self.total >= self.of_all {
            return None;
        }
        let (running, of_cloud) = (&self.running, self.of_cloud);
        let has_room = |ticket: &Ticket| running.get(&ticket.cloud).is_none_or(|count| *count < of_cloud);
        let ticket = self.line.take(has_room)?;
        self.occupy(&ticket.cloud);
        Some(ticket)
    }

    fn occupy(&mut self, cloud: &CloudName) {
        *self.running.entry(cloud.clone()).or_default() += 1;
        self.total += 1;
    }

    fn done(&mut self, cloud: &CloudName) {
        self.total = self.total.saturating_sub(1);
        if let Some(count) = self.running.get_mut(cloud) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.running.remove(cloud);
            }
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
