//! Answers given before.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Answer, AnswerError, Answers, Key, Question};

/// One recorded answer. A list of them is what to keep, as a secret, between renders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was asked.
    #[serde(flatten)]
    pub key: Key,
    /// What was answered.
    pub answer: Answer,
}

/// Repeats recorded answers, asks others for the rest and records what they say. For one render, or for renders of the same chart that
/// follow one another.
pub struct Memo {
    otherwise: Arc<dyn Answers>,
    known: Mutex<BTreeMap<Key, Known>>,
}

struct Known {
    answer: Answer,
    was_asked: bool,
}

impl Memo {
    /// A memo of recorded answers. New questions go to `otherwise`; with [`Refusing`](super::Refusing) they are errors.
    pub fn new(recorded: impl IntoIterator<Item = Entry>, otherwise: Arc<dyn Answers>) -> Self {
        let known = recorded.into_iter().map(|Entry { key, answer }| {
            let was_asked = false;
            (key, Known { answer, was_asked })
        });
        Self {
            otherwise,
            known: Mutex::new(known.collect()),
        }
    }

    /// All answers, recorded before or since, by key.
    pub fn entries(&self) -> Vec<Entry> {
        let known = self.known();
        let entries = known.iter().map(|(key, known)| Entry {
            key: key.clone(),
            answer: known.answer.clone(),
        });
        entries.collect()
    }

    /// Recorded answers that nothing has asked for: their calls are gone or have other arguments now.
    pub fn unasked(&self) -> Vec<Key> {
        let known = self.known();
        let unasked = known.iter().filter(|(_, known)| !known.was_asked);
        unasked.map(|(key, _)| key.clone()).collect()
    }

    /// A panic of somebody else leaves the map whole.
    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memo")
            .field("otherwise", &self.otherwise)
            .finish_non_exhaustive()
    }
}

impl Answers for Memo {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        if let Some(known) = self.known().get_mut(question.key) {
            known.was_asked = true;
            return Ok(known.answer.clone());
        }
        let answer = self.otherwise.answer(question)?;
        let known = Known {
            answer: answer.clone(),
            was_asked: true,
        };
        self.known().insert(question.key.clone(), known);
        Ok(answer)
    }
}
