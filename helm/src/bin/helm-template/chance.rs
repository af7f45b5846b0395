//! Randomness and time for the functions of templates that want them: the system's, or what the arguments say.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use helm::answers::{Answer, AnswerError, Answers, Moment, Question, Refusing, Seeded};

use crate::Failure;

/// Answers as Helm's functions do without a cluster.
#[derive(Debug)]
struct Offline(Seeded);

impl Answers for Offline {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        match Refusing.answer(question) {
            Err(AnswerError::Refused) => self.0.answer(question),
            answer => answer,
        }
    }
}

pub(crate) fn answers(seed: Option<u64>, now: Option<Moment>) -> Result<Arc<dyn Answers>, Failure> {
    let mut bytes = [0; 32];
    match seed {
        Some(seed) => bytes[..8].copy_from_slice(&seed.to_be_bytes()),
        None => getrandom::fill(&mut bytes)?,
    }
    Ok(Arc::new(Offline(Seeded::new(bytes, now.unwrap_or_else(clock)))))
}

fn clock() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment {
        seconds: since.as_secs().try_into().unwrap_or(i64::MAX),
        nanoseconds: since.subsec_nanos(),
    }
}
