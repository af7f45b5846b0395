//! One answer of the API server for all who ask at about the same time. Decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Mutex;

/// The last answer to one question, for as long as somebody waits who may take it.
pub(crate) struct SharedAnswer<T, E> {
    /// How often it was asked.
    asked: AtomicU64,
    /// How many ask, or wait for what others have asked.
    asking: AtomicUsize,
    last: Mutex<Option<Answer<T, E>>>,
}

struct Answer<T, E> {
    /// Which one it is; they are counted.
    number: u64,
    told: Result<T, Arc<E>>,
}

impl<T, E> Default for SharedAnswer<T, E> {
    fn default() -> Self {
        Self {
            asked: AtomicU64::new(0),
            asking: AtomicUsize::new(0),
            last: Mutex::default(),
        }
    }
}

/// Somebody who asks. The last one who goes, also without an answer, takes the answer along.
struct Asking<'a, T, E>(&'a SharedAnswer<T, E>);

impl<'a, T, E> Asking<'a, T, E> {
    fn begin(shared: &'a SharedAnswer<T, E>) -> Self {
        shared.asking.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl<T, E> Drop for Asking<'_, T, E> {
    fn drop(&mut self) {
        // Whoever has come in between and holds the lock is the last one after this one.
        if self.0.asking.fetch_sub(1, Ordering::SeqCst) == 1
            && let Ok(mut last) = self.0.last.try_lock()
        {
            *last = None;
        }
    }
}

impl<T, E> SharedAnswer<T, E> {
    /// What `take` finds in an answer that is as new as one of one's own: whoever wants it while the question is being asked waits for the next answer,
    /// and shares that with all who wait too.
    pub(crate) async fn ask<R>(
        &self,
        question: impl Future<Output = Result<T, E>>,
        take: impl FnOnce(&T) -> R,
    ) -> Result<R, Arc<E>> {
        // Goes after the lock.
        let _asking = Asking::begin(self);
        let before = self.asked.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        let answer = match &mut *last {
            Some(answer) if answer.number > before => answer,
            older => {
                let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
                let told = question.await.map_err(Arc::new);
                older.insert(Answer { number, told })
            }
        };
        answer.told.as_ref().map(take).map_err(Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    /// Tells how the world was when it was asked.
    async fn question(world: &Cell<u32>, asked: &Cell<u32>) -> Result<u32, String> {
        let answer = world.get();
        asked.set(asked.get() + 1);
        sleep(Duration::from_secs(1)).await;
        Ok(answer)
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_are_told_by_two_answers_at_most() {
        let (shared, world, asked) = (SharedAnswer::default(), Cell::new(7), Cell::new(0));
        let answers = join_all((0..100).map(|_| shared.ask(question(&world, &asked), |answer| *answer))).await;
        assert!(answers.iter().all(|answer| answer == &Ok(7)), "{answers:?}");
        assert_eq!(asked.get(), 2);
        assert_eq!(shared.ask(question(&world, &asked), |answer| *answer).await, Ok(7));
        assert_eq!(asked.get(), 3, "what was told before is not told again");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_how_the_world_was_before_he_asked() {
        let (shared, world, asked) = (SharedAnswer::default(), Cell::new(1), Cell::new(0));
        let late = async {
            sleep(Duration::from_millis(500)).await;
            world.set(2);
            shared.ask(question(&world, &asked), |answer| *answer).await
        };
        let early = shared.ask(question(&world, &asked), |answer| *answer);
        assert_eq!(tokio::join!(early, late), (Ok(1), Ok(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_asking_leaves_his_turn_to_the_next_and_an_error_is_shared_but_not_kept() {
        let (shared, asked) = (SharedAnswer::<u32, String>::default(), Cell::new(0));
        let failing = || async {
            asked.set(asked.get() + 1);
            sleep(Duration::from_secs(1)).await;
            Err("no answer".to_owned())
        };
        let given_up = tokio::time::timeout(Duration::from_millis(1), shared.ask(failing(), |answer| *answer));
        assert!(given_up.await.is_err());
        let errors = join_all((0..10).map(|_| shared.ask(failing(), |answer| *answer))).await;
        assert!(errors.iter().all(Result::is_err));
        assert_eq!(asked.get(), 3);
        let good = async { Ok(1) };
        assert_eq!(shared.ask(good, |answer| *answer).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_goes_with_the_last_of_those_who_wait_for_it_also_if_he_gives_up() {
        let shared = SharedAnswer::<Arc<()>, String>::default();
        let told = Arc::new(());
        let asking = |milliseconds: u64| {
            let (shared, told) = (&shared, Arc::clone(&told));
            let question = async move {
                sleep(Duration::from_secs(1)).await;
                Ok(told)
            };
            let asking = shared.ask(question, |_| ());
            async move {
                tokio::time::timeout(Duration::from_millis(milliseconds), asking)
                    .await
                    .is_ok()
            }
        };
        let answered = join_all((0..10).map(|_| asking(10_000))).await;
        assert_eq!(answered, [true; 10]);
        assert_eq!(Arc::strong_count(&told), 1, "it is kept");

        // The second one asks when the first is told, and does not wait for the end.
        let (first, second) = tokio::join!(asking(10_000), asking(1_500));
        assert!(first && !second);
        assert_eq!(Arc::strong_count(&told), 1, "it is kept");
    }
}
