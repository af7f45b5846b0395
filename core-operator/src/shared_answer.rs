//! One answer of the API server for all who ask at about the same time. Decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// The last answer to one question.
pub(crate) struct SharedAnswer<T, E> {
    /// How often it was asked.
    asked: AtomicU64,
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
            last: Mutex::default(),
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
}
