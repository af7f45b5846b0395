//! Looks after Clusters that have no ClusterAddon: each that somebody names is looked at soon, a few at a time, and again later where that failed.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use planning::next::retry_delay_seconds;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::presence::see_to;
use super::{ClusterPlace, shard_of_addons};
use crate::clusters::Unmade;
use crate::context::Context;
use crate::driver::AFTER_PANIC;
use crate::triggers::Triggers;

/// After so many failures in a row it is said aloud why a Cluster has no ClusterAddon, once.
const TOLD_FAILURES: u32 = 3;

/// What is known of the Clusters that wait or are being looked at; others are not remembered.
#[derive(Default)]
struct Line {
    waiting: VecDeque<ClusterPlace>,
    places: HashMap<ClusterPlace, Place>,
}

#[derive(Default)]
struct Place {
    waits: bool,
    is_looked_at: bool,
    /// How often in a row it failed.
    failures: u32,
}

impl Line {
    /// A Cluster is to be looked at: once, however often this is said before, and once more if it is being looked at.
    fn add(&mut self, place: ClusterPlace) {
        let known = self.places.entry(place.clone()).or_default();
        if !std::mem::replace(&mut known.waits, true) && !known.is_looked_at {
            self.waiting.push_back(place);
        }
    }

    /// The next one, which is looked at from now on.
    fn begin(&mut self) -> Option<ClusterPlace> {
        let place = self.waiting.pop_front()?;
        let known = self.places.entry(place.clone()).or_default();
        (known.waits, known.is_looked_at) = (false, true);
        Some(place)
    }

    /// It was looked at. How often in a row it has failed, if it did.
    fn end(&mut self, place: &ClusterPlace, failed: bool) -> Option<u32> {
        let known = self.places.entry(place.clone()).or_default();
        known.is_looked_at = false;
        known.failures = if failed { known.failures.saturating_add(1) } else { 0 };
        let (waits, failures) = (known.waits, known.failures);
        if waits {
            self.waiting.push_back(place.clone());
        } else if !failed {
            self.places.remove(place);
        }
        failed.then_some(failures)
    }
}

/// Looks at the Clusters that come in `queue`, at most so many `at_once`; first at all.
pub(crate) async fn make(
    context: Arc<Context>,
    triggers: Triggers,
    mut queue: OwnedMutexGuard<UnboundedReceiver<ClusterPlace>>,
    at_once: usize,
) {
    // After a panic nobody knows who was being looked at.
    triggers.every_cluster(&context);
    let mut line = Line::default();
    let (mut looks, mut pauses) = (JoinSet::new(), JoinSet::new());
    loop {
        while looks.len() < at_once
            && let Some(place) = line.begin()
        {
            looks.spawn(look(Arc::clone(&context), place));
        }
        tokio::select! {
            place = queue.next() => match place {
                Some(place) => line.add(place),
                None => return,
            },
            Some(Ok((place, done))) = looks.join_next(), if !looks.is_empty() => {
                if let Some(failures) = line.end(&place, done.is_err()) {
                    let rest = match done {
                        Err(Failed::Panicked) => AFTER_PANIC,
                        Err(Failed::Refused(words)) => {
                            tell(&place, failures, &words);
                            pause(&place, failures)
                        }
                        Ok(()) => Duration::ZERO,
                    };
                    pauses.spawn(async move {
                        sleep(rest).await;
                        place
                    });
                }
            }
            Some(Ok(place)) = pauses.join_next(), if !pauses.is_empty() => line.add(place),
        }
    }
}

/// Why a look came to nothing.
enum Failed {
    Refused(String),
    Panicked,
}

/// One Cluster must never take the others down, whatever is in it.
async fn look(context: Arc<Context>, place: ClusterPlace) -> (ClusterPlace, Result<(), Failed>) {
    let (namespace, name) = place.clone();
    let done = tokio::spawn(async move {
        let Some(addons) = &context.addons else { return Ok(()) };
        let shard = shard_of_addons(&namespace, &name, context.tenure.count());
        let Some(_pass) = context.tenure.enter(shard) else {
            // What was in the way here is the business of whoever tries it now.
            context.clusters.note_unmade(&(namespace, name), None);
            return Ok(());
        };
        let seen_to = Box::pin(see_to(&context, addons, &namespace, &name)).await;
        let unmade = seen_to.err().map(|error| Unmade {
            why: error.words(),
            namespace_ends: error.is_of_a_namespace_that_ends(),
        });
        let why = unmade.as_ref().map(|unmade| unmade.why.clone());
        context.clusters.note_unmade(&(namespace, name), unmade);
        why.map_or(Ok(()), Err)
    });
    let done = match done.await {
        Ok(done) => done.map_err(Failed::Refused),
        Err(error) => {
            tracing::error!(namespace = place.0, name = place.1, %error, "a look at a Cluster ended abnormally");
            Err(Failed::Panicked)
        }
    };
    (place, done)
}

fn tell((namespace, cluster): &ClusterPlace, failures: u32, error: &str) {
    if failures == TOLD_FAILURES {
        tracing::warn!(
            namespace,
            cluster,
            error,
            "the Cluster has no ClusterAddon yet; it is tried again by itself"
        );
    } else {
        tracing::debug!(namespace, cluster, failures, error, "failed to look after a Cluster");
    }
}

/// Until the next look: ever longer, and by up to a quarter of it earlier or later, so that those who failed together do not come again together.
fn pause(place: &ClusterPlace, failures: u32) -> Duration {
    let usual = Duration::from_secs(retry_delay_seconds(failures).unsigned_abs());
    let drawn = BuildHasherDefault::<DefaultHasher>::default().hash_one((place, failures)) % 501;
    let thousandths = u32::try_from(750 + drawn).unwrap_or(1_000);
    usual * thousandths / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> ClusterPlace {
        ("fleet".to_owned(), name.to_owned())
    }

    #[test]
    fn a_cluster_named_often_is_looked_at_once_and_once_more_if_named_meanwhile() {
        let mut line = Line::default();
        for name in ["a", "b", "a"] {
            line.add(place(name));
        }
        assert_eq!(line.begin(), Some(place("a")));
        line.add(place("a"));
        line.add(place("a"));
        assert_eq!(line.begin(), Some(place("b")));
        assert_eq!(line.begin(), None, "it is being looked at");
        assert_eq!(line.end(&place("a"), false), None);
        assert_eq!(line.begin(), Some(place("a")));
        for name in ["a", "b"] {
            assert_eq!(line.end(&place(name), false), None);
        }
        assert_eq!(line.begin(), None);
        assert!(line.places.is_empty(), "nothing is remembered of who is done");
    }

    #[test]
    fn failures_are_counted_until_a_look_succeeds() {
        let mut line = Line::default();
        for failures in 1..4 {
            line.add(place("a"));
            assert_eq!(line.begin(), Some(place("a")));
            assert_eq!(line.end(&place("a"), true), Some(failures));
        }
        line.add(place("a"));
        line.begin();
        assert_eq!(line.end(&place("a"), false), None);
        line.add(place("a"));
        line.begin();
        assert_eq!(line.end(&place("a"), true), Some(1));
    }

    #[test]
    fn pauses_grow_and_those_who_failed_together_come_again_apart() {
        let of = |name: &str, failures| pause(&place(name), failures);
        for failures in 1..20 {
            let usual = Duration::from_secs(retry_delay_seconds(failures).unsigned_abs());
            let pause = of("a", failures);
            assert!(
                pause >= usual * 3 / 4 && pause <= usual * 5 / 4,
                "{failures}: {pause:?}"
            );
        }
        let pauses: std::collections::HashSet<Duration> = (0..100).map(|number| of(&format!("c{number}"), 5)).collect();
        assert!(pauses.len() > 50, "{pauses:?}");
    }
}
