//! Gathers what sources tell. Whoever is told looks at every stack and every release, and a thousand releases that arrive are a thousand
//! messages: what comes within a moment is passed on as one, and tidying up waits for more.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::sources::SourceChange;

/// What is told within this time is told once: short beside what it takes to apply a release.
const GATHERING: Duration = Duration::from_millis(20);
/// After news, what nobody needs any more is ended within this time, and not more often.
const TIDYING: Duration = Duration::from_secs(1);
/// Without news it is ended after this time: objects name kinds and sources no more without a word of any source.
const TIDYING_ANYWAY: Duration = Duration::from_mins(5);

/// Calls `trigger` with what was told, at most once in [`GATHERING`], and `tidy` after it, at most once in [`TIDYING`], and
/// without news once in [`TIDYING_ANYWAY`]. Ends with the sources.
pub(super) async fn pass_on(
    changes: &mut UnboundedReceiver<SourceChange>,
    mut trigger: impl FnMut(SourceChange),
    mut tidy: impl FnMut(),
) {
    let mut due = Instant::now() + TIDYING_ANYWAY;
    loop {
        tokio::select! {
            // News that never end do not keep from tidying.
            biased;
            () = sleep_until(due) => {
                tidy();
                due = Instant::now() + TIDYING_ANYWAY;
            }
            first = changes.recv() => {
                let Some(first) = first else { return };
                trigger(gathered(first, changes).await);
                due = due.min(Instant::now() + TIDYING);
            }
        }
    }
}

async fn gathered(first: SourceChange, changes: &mut UnboundedReceiver<SourceChange>) -> SourceChange {
    let end = Instant::now() + GATHERING;
    let mut all = first;
    loop {
        match timeout_at(end, changes.recv()).await {
            Ok(Some(more)) => all = all.and(more),
            Ok(None) | Err(_) => return all,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;

    const OBJECTS: usize = 50 + 1_000;

    fn arrival(number: usize) -> SourceChange {
        SourceChange::of_tags(BTreeSet::from([format!("docker-harbor-1-34-v{number}")
            .parse()
            .unwrap()]))
    }

    /// How many objects are looked at while so many releases arrive within ten seconds, by those who are triggered and those who tidy up.
    async fn looks(arrivals: usize) -> (usize, usize) {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let (triggered, tidied, told) = (Cell::new(0), Cell::new(0), RefCell::new(BTreeSet::new()));
        let arriving = async move {
            let pause = Duration::from_secs(10) / u32::try_from(arrivals).unwrap();
            for number in 0..arrivals {
                sender.send(arrival(number)).unwrap();
                sleep(pause).await;
            }
            sleep(TIDYING).await;
        };
        let trigger = |change: SourceChange| {
            triggered.set(triggered.get() + OBJECTS);
            told.borrow_mut().extend(change.tags);
        };
        tokio::join!(
            pass_on(&mut changes, trigger, || tidied.set(tidied.get() + OBJECTS)),
            arriving
        );
        assert_eq!(told.borrow().len(), arrivals, "nothing is lost");
        (triggered.get(), tidied.get())
    }

    #[tokio::test(start_paused = true)]
    async fn many_releases_that_arrive_are_looked_through_as_often_as_few_in_the_same_time() {
        let (few, many) = (looks(1_000).await, looks(10_000).await);
        assert!(few.0 <= 500 * OBJECTS && few.1 <= 11 * OBJECTS, "{few:?}");
        assert!(many.0 <= 501 * OBJECTS && many.1 <= 11 * OBJECTS, "{many:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_change_is_passed_on_at_once_and_tidied_up_after_once() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let begun = Instant::now();
        let (triggered, tidied) = (Cell::new(None), Cell::new(None));
        let telling = async move {
            sender.send(arrival(1)).unwrap();
            sleep(Duration::from_mins(1)).await;
        };
        let trigger = |_| assert_eq!(triggered.replace(Some(begun.elapsed())), None);
        let tidy = || assert_eq!(tidied.replace(Some(begun.elapsed())), None);
        tokio::join!(pass_on(&mut changes, trigger, tidy), telling);
        assert!(triggered.get().unwrap() <= GATHERING + Duration::from_millis(1));
        assert!(tidied.get().is_some());
    }
}
