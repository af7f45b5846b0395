//! Which Jobs that send an image are made, and which wait: as many send to one cloud, and to all together, as this process may send itself, and namespaces take
//! turns. Jobs that build are not counted, as for most of their time they send nothing. Asks nobody and makes none.

use std::collections::HashMap;
use std::time::Duration;

use planning::image::{Form, Op, OpState};
use provider_plugin::CloudName;

use crate::executor::lanes::{Lanes, Ticket};
use crate::executor::{Bounds, OpView, Order};
use crate::objects::ObjectId;
use crate::worker::{Found, WorkPlan};

/// Who waits, and who has a place.
pub(super) struct Queue {
    lanes: Lanes,
    waiting: HashMap<ObjectId, Waiting>,
    placed: HashMap<ObjectId, Ticket>,
}

struct Waiting {
    order: Order,
    ticket: Ticket,
    since: Duration,
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            lanes: Lanes::new(bounds),
            waiting: HashMap::new(),
            placed: HashMap::new(),
        }
    }

    /// Stands at the end of the line. Whoever stands there already, stays where he is.
    pub(super) fn join(&mut self, order: Order, now: Duration) {
        let object = order.plan.object.clone();
        if self.waiting.contains_key(&object) {
            return;
        }
        let ticket = ticket(&object, order.connection.cloud().clone());
        self.lanes.join(ticket.clone());
        let waiting = Waiting {
            order,
            ticket,
            since: now,
        };
        self.waiting.insert(object, waiting);
    }

    /// Leaves the line; gives what was to be done.
    pub(super) fn leave(&mut self, object: &ObjectId) -> Option<WorkPlan> {
        let waiting = self.waiting.remove(object)?;
        self.lanes.leave(&waiting.ticket);
        Some(waiting.order.plan)
    }

    /// Everybody leaves the line.
    pub(super) fn close(&mut self) -> Vec<WorkPlan> {
        let objects: Vec<ObjectId> = self.waiting.keys().cloned().collect();
        objects.iter().filter_map(|object| self.leave(object)).collect()
    }

    /// These send, and nobody else. Of those that an earlier process has let begin it is not known to which cloud, so that they count for all together.
    pub(super) fn align(&mut self, sending: &[ObjectId]) {
        let Self { lanes, placed, .. } = self;
        placed.retain(|object, ticket| {
            let stays = sending.contains(object);
            if !stays {
                lanes.done(ticket);
            }
            stays
        });
        for object in sending {
            placed.entry(object.clone()).or_insert_with(|| {
                let ticket = ticket(object, CloudName(String::new()));
                lanes.occupy(&ticket);
                ticket
            });
        }
    }

    /// Whoever has a place now, and has it for as long as he is told of in [`Queue::align`].
    pub(super) fn next(&mut self, now: Duration) -> Option<Order> {
        let ticket = self.lanes.next()?;
        let Waiting { order, since, .. } = self.waiting.remove(&ticket.object)?;
        order.connection.counts().queued(true, now.saturating_sub(since));
        self.placed.insert(ticket.object.clone(), ticket);
        Some(order)
    }

    /// What is seen of somebody who waits.
    pub(super) fn view(&self, object: &ObjectId) -> Option<OpView> {
        let Waiting { order, ticket, since } = self.waiting.get(object)?;
        let ahead = u32::try_from(self.lanes.ahead(ticket)).unwrap_or(u32::MAX);
        Some(OpView {
            op: Op {
                deed: order.plan.deed.clone(),
                key: order.plan.image.subject.key.as_str().to_owned(),
                form: Form::Job,
                state: OpState::Queued { since: *since, ahead },
            },
            found: Found::default(),
            progress: None,
        })
    }
}

fn ticket(object: &ObjectId, cloud: CloudName) -> Ticket {
    Ticket {
        object: object.clone(),
        cloud,
        is_long: true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use planning::image::Deed;

    use super::*;
    use crate::stand_ins::{Clay, object, plan};

    fn queue(transfers: usize, transfers_total: usize) -> Queue {
        Queue::new(Bounds {
            transfers,
            transfers_total,
            ..Bounds::default()
        })
    }

    fn order(name: &str, cloud: &str) -> Order {
        let deed = Deed::Transfer {
            id: "image-1".to_owned(),
            attempt: 1,
            staged: false,
        };
        Order {
            plan: plan(&object("fleet", name), deed),
            connection: Arc::new(Clay::default()).connection(cloud, "uid/1"),
            files: None,
            job: None,
        }
    }

    /// The names of those who have a place now.
    fn begun(queue: &mut Queue) -> Vec<String> {
        let next = || queue.next(Duration::from_secs(9));
        std::iter::from_fn(next).map(|order| order.plan.object.name).collect()
    }

    fn ahead(queue: &Queue, name: &str) -> Option<u32> {
        match queue.view(&object("fleet", name))?.op.state {
            OpState::Queued { ahead, .. } => Some(ahead),
            _ => None,
        }
    }

    #[test]
    fn jobs_wait_until_others_of_their_cloud_have_sent_their_images() {
        let mut queue = queue(1, 2);
        for (name, cloud) in [("a", "east"), ("b", "east"), ("c", "east"), ("d", "west")] {
            queue.join(order(name, cloud), Duration::from_secs(1));
        }
        assert_eq!(begun(&mut queue), ["a", "d"]);
        assert_eq!(
            (ahead(&queue, "a"), ahead(&queue, "b"), ahead(&queue, "c")),
            (None, Some(0), Some(1))
        );
        queue.align(&[object("fleet", "a"), object("fleet", "d")]);
        assert_eq!(begun(&mut queue), Vec::<String>::new());
        assert!(queue.leave(&object("fleet", "b")).is_some());
        queue.align(&[object("fleet", "d")]);
        assert_eq!(begun(&mut queue), ["c"]);
        assert!(
            queue.leave(&object("fleet", "c")).is_none(),
            "it does not wait any more"
        );
    }

    #[test]
    fn a_job_that_an_earlier_process_has_made_has_its_place() {
        let mut queue = queue(1, 1);
        queue.align(&[object("fleet", "found")]);
        queue.join(order("a", "east"), Duration::from_secs(1));
        assert_eq!(begun(&mut queue), Vec::<String>::new());
        queue.align(&[]);
        assert_eq!(begun(&mut queue), ["a"]);
    }

    #[test]
    fn nobody_waits_for_a_process_that_ends() {
        let mut queue = queue(1, 1);
        for name in ["a", "b"] {
            queue.join(order(name, "east"), Duration::from_secs(1));
        }
        assert_eq!(queue.close().len(), 2);
        assert_eq!((ahead(&queue, "a"), begun(&mut queue)), (None, Vec::new()));
    }
}
