//! The order of keys in emitted mappings: go-yaml's natural order, where `a2` comes before `a10`.

use std::cmp::Ordering;

use super::emit::Version;
use crate::text::{is_digit, is_letter};

/// Sorts keys. The comparison is not transitive (`a10 < a1b2 < a2 < a10`), which the sorts of the standard library may answer with a
/// panic; a merge sort gives *some* fixed order for such keys, where Go's own changes from run to run.
pub(super) fn sorted<T>(keys: Vec<(&str, T)>, version: Version) -> Vec<(&str, T)> {
    if keys.len() < 2 {
        return keys;
    }
    let mut left = keys;
    let right = left.split_off(left.len() / 2);
    let mut left = sorted(left, version).into_iter().peekable();
    let mut right = sorted(right, version).into_iter().peekable();
    let mut merged = Vec::with_capacity(left.len() + right.len());
    loop {
        let take_right = match (left.peek(), right.peek()) {
            (Some((left, _)), Some((right, _))) => compare(right, left, version) == Ordering::Less,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        match if take_right { right.next() } else { left.next() } {
            Some(key) => merged.push(key),
            None => return merged,
        }
    }
}

/// Compares two keys at the first rune where they differ.
pub(super) fn compare(left: &str, right: &str, version: Version) -> Ordering {
    let (same, left, right) = split(left, right);
    let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) else {
        return left.len().cmp(&right.len());
    };
    // Behind a digit the third version lets a letter come first: a number ends there.
    let ends_number = version == Version::V3 && same.ends_with(is_digit);
    match (is_letter(first), is_letter(second)) {
        (true, true) => return first.cmp(&second),
        (true, false) if ends_number => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, true) if ends_number => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // Inside a run of digits a zero must not end up as a leading zero: both numbers get a 1 in front.
    let mut start = 0;
    if first == '0' || second == '0' {
        let mut run = same.chars().rev().take_while(|digit| is_digit(*digit));
        start = i64::from(run.any(|digit| digit != '0'));
    }
    let (left_number, left_length) = digits(left, start);
    let (right_number, right_length) = digits(right, start);
    left_number
        .cmp(&right_number)
        .then(left_length.cmp(&right_length))
        .then(first.cmp(&second))
}

/// What two keys begin with alike, and their rests.
fn split<'k>(left: &'k str, right: &'k str) -> (&'k str, &'k str, &'k str) {
    let mut pairs = left.bytes().zip(right.bytes());
    let shorter = left.len().min(right.len());
    let mut position = pairs.position(|(left, right)| left != right).unwrap_or(shorter);
    // Runes that differ may begin alike.
    while !left.is_char_boundary(position) {
        position -= 1;
    }
    let (same, left) = left.split_at(position);
    (same, left, &right[position..])
}

/// The number at the start of the text and how many digits it has. It overflows as Go's does.
fn digits(text: &str, start: i64) -> (i64, usize) {
    let run = text.chars().take_while(|digit| is_digit(*digit));
    run.fold((start, 0), |(number, length), digit| {
        let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}
