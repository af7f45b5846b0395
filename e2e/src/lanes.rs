//! Many journeys, a few at a time.

use std::{
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Result, anyhow};

/// Does something with every item, so many at a time, each in a thread of this name. The answers come in the order in which they ended.
pub fn side_by_side<T: Send, R: Send>(
    lanes: usize,
    items: Vec<T>,
    name: impl Fn(&T) -> String + Sync,
    deed: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>> {
    let waiting = Mutex::new(items.into_iter());
    let answers = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (name, deed) = (&name, &deed);
    let lane = || {
        while let Some(item) = next() {
            // What it leaves behind is named after its thread.
            let named = thread::Builder::new().name(name(&item));
            let answer = thread::scope(|scope| {
                let thread = named.spawn_scoped(scope, move || deed(item))?;
                thread.join().map_err(|_| anyhow!("a thread panicked"))
            })?;
            answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        }
        Ok::<_, anyhow::Error>(())
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes.max(1)).map(|_| scope.spawn(lane)).collect();
        let ended = lanes
            .into_iter()
            .map(|lane| lane.join().map_err(|_| anyhow!("a lane panicked"))?);
        ended.collect::<Result<Vec<()>>>()
    })?;
    Ok(answers.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_dealt_with_once_in_a_thread_with_its_name() -> Result<()> {
        let name = |item: &u32| format!("item {item}");
        let mut answers = side_by_side(3, (0..20).collect(), name, |item| {
            (item, thread::current().name().map(str::to_owned))
        })?;
        answers.sort();
        let expected: Vec<_> = (0..20).map(|item| (item, Some(format!("item {item}")))).collect();
        assert_eq!(answers, expected);
        Ok(())
    }
}
