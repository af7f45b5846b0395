//! What drawn values have to do with each other: the same value in several places, a digest of another value.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use super::{Unlike, align::Value};

/// Shorter ones may be equal by chance.
const UNMISTAKABLE: usize = 8;

/// What the real answers have in several places is one value in ours; what they never have alike, we have not either.
pub(super) fn one_value_stays_one(values: &[Value]) -> Result<(), Unlike> {
    let meanings: Vec<_> = values.iter().map(Value::meaning).collect();
    let mut ours_of: HashMap<&[Vec<u8>], &[u8]> = HashMap::new();
    let mut theirs_of: HashMap<&[u8], &[Vec<u8>]> = HashMap::new();
    for (value, (theirs, ours)) in values.iter().zip(&meanings) {
        if *ours_of.entry(theirs).or_insert(ours) != ours {
            return Err(value.unlike("Helm has one value here and in another place, and we have two"));
        }
        let elsewhere = *theirs_of.entry(ours).or_insert(theirs);
        let apart = elsewhere.iter().zip(theirs).all(|(left, right)| left != right);
        if ours.len() >= UNMISTAKABLE && apart {
            return Err(value.unlike("Helm has two values here and in another place, and we have one"));
        }
    }
    Ok(())
}

/// A value that is the SHA-256 of another one in every real answer is so in ours.
pub(super) fn digests_stay_digests(values: &[Value]) -> Result<(), Unlike> {
    let Some(answers) = values.first().map(|value| value.theirs.len()) else {
        return Ok(());
    };
    let of_first: HashMap<String, usize> = values
        .iter()
        .enumerate()
        .map(|(index, value)| (digest(&value.theirs[0]), index))
        .collect();
    for value in values {
        let found = str::from_utf8(&value.theirs[0])
            .ok()
            .and_then(|text| of_first.get(text));
        let Some(source) = found.and_then(|index| values.get(*index)) else {
            continue;
        };
        let always = (0..answers).all(|answer| value.theirs[answer] == digest(&source.theirs[answer]).as_bytes());
        if always && value.ours != digest(&source.ours).as_bytes() {
            return Err(value.unlike("Helm has the digest of another value here"));
        }
    }
    Ok(())
}

fn digest(value: &[u8]) -> String {
    hex::encode(Sha256::digest(value))
}
