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
    if let Some(order) = compare_without_digits(left, right) {
        return order;
    }
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let Some(position) = left.iter().zip(&right).position(|(left, right)| left != right) else {
        return left.len().cmp(&right.len());
    };
    let (first, second) = (left[position], right[position]);
    // Behind a digit the third version lets a letter come first: a number ends there.
    let ends_number = version == Version::V3 && position > 0 && is_digit(left[position - 1]);
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
        let run = left[..position].iter().rev().take_while(|digit| is_digit(**digit));
        start = i64::from(run.into_iter().any(|digit| *digit != '0'));
    }
    let (left_number, left_length) = digits(&left[position..], start);
    let (right_number, right_length) = digits(&right[position..], start);
    left_number
        .cmp(&right_number)
        .then(left_length.cmp(&right_length))
        .then(first.cmp(&second))
}

/// The common case: ASCII keys that differ first at a place where no digit stands.
fn compare_without_digits(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let Some(position) = left.iter().zip(right).position(|(left, right)| left != right) else {
        return Some(left.len().cmp(&right.len()));
    };
    let (first, second) = (left[position], right[position]);
    let follows_digit = position > 0 && (left[position - 1].is_ascii_digit() || !left[position - 1].is_ascii());
    if follows_digit || !first.is_ascii() || !second.is_ascii() || first.is_ascii_digit() || second.is_ascii_digit() {
        return None;
    }
    Some(match (first.is_ascii_alphabetic(), second.is_ascii_alphabetic()) {
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ => first.cmp(&second),
    })
}

/// The number at the start of the text and how many digits it has. It overflows as Go's does.
fn digits(text: &[char], start: i64) -> (i64, usize) {
    let run = text.iter().take_while(|digit| is_digit(**digit));
    run.fold((start, 0), |(number, length), digit| {
        let value = i64::from(u32::from(*digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}
