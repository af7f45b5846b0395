//! Randomness and time for the functions of templates that want them: the system's, or what the arguments say.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use helm::answers::{Answers, Moment, Seeded};

use crate::Failure;

pub(crate) fn answers(seed: Option<u64>, now: Option<Moment>) -> Result<Arc<dyn Answers>, Failure> {
    let mut bytes = [0; 32];
    match seed {
        Some(seed) => bytes[..8].copy_from_slice(&seed.to_be_bytes()),
        None => getrandom::fill(&mut bytes)?,
    }
    let now = now.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().into());
    Ok(Arc::new(Seeded::new(bytes, now)))
}
