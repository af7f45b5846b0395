//! Drawn values that are the time of the render.

use jiff::{civil::DateTime, tz::TimeZone};

/// The renders of one comparison follow each other more closely.
const NEAR_SECONDS: i64 = 600;

/// Whether these are seconds since 1970, and of one time.
pub(super) fn are_epochs(words: &[&[u8]]) -> bool {
    let seconds: Option<Vec<i64>> = words.iter().map(|word| epoch(word)).collect();
    let spread = seconds.and_then(|seconds| Some(seconds.iter().max()? - seconds.iter().min()?));
    spread.is_some_and(|spread| spread <= NEAR_SECONDS)
}

/// Why a moment is none of the time of the real renders.
pub(super) fn check(theirs: &[Vec<u8>], ours: &[u8]) -> Result<(), String> {
    let Some(ours) = seconds(ours) else {
        return Err("Helm has a date here".to_owned());
    };
    let theirs: Vec<i64> = theirs.iter().filter_map(|text| seconds(text)).collect();
    if theirs.iter().all(|theirs| (theirs - ours).abs() <= NEAR_SECONDS) {
        Ok(())
    } else {
        Err("the date is of another time than Helm's".to_owned())
    }
}

fn seconds(text: &[u8]) -> Option<i64> {
    epoch(text).or_else(|| {
        let moment: DateTime = str::from_utf8(text).ok()?.parse().ok()?;
        Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
    })
}

/// Ten digits: from 2001 to 2286.
fn epoch(word: &[u8]) -> Option<i64> {
    let text = str::from_utf8(word).ok().filter(|text| text.len() == 10)?;
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}
