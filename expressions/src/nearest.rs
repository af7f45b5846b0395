//! Which known word somebody may have meant.

/// How many are offered.
const OFFERED: usize = 3;

/// How many known words are compared: no honest list is longer, and a hostile schema costs little.
const COMPARED: usize = 1_000;

/// How many are listed where none is near.
const LISTED: usize = 8;

/// Longer words are compared no further, so that a hostile one costs little.
const LONGEST: usize = 64;

/// The known words that are written most like this one, the nearest first; none if all are quite different.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Vec<&'w str> {
    let bound = (word.chars().count() / 3).max(2);
    let mut near: Vec<_> = known
        .into_iter()
        .take(COMPARED)
        .filter_map(|candidate| {
            let distance = distance(word, candidate);
            let is_part = word.len() > 3 && candidate.to_lowercase().contains(&word.to_lowercase());
            (distance <= bound || is_part).then_some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    // Next to one that differs by a letter or two the others are noise.
    let nearest = near.first().map_or(0, |(distance, _)| *distance);
    let farthest = if nearest <= 2 { nearest } else { 2 * nearest + 1 };
    near.retain(|(distance, _)| *distance <= farthest);
    near.into_iter().take(OFFERED).map(|(_, candidate)| candidate).collect()
}

/// `: did you mean a or b?`, or nothing.
pub(crate) fn offer<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    match nearest(word, known).as_slice() {
        [] => String::new(),
        near => format!(": did you mean {}?", near.join(" or ")),
    }
}

/// `: did you mean a or b?`; where no known word is near, `; there are a, b, c and 2 more`, so that somebody sees what there is; nothing where there is none.
pub fn instead<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    let offered = offer(word, known.iter().copied());
    if !offered.is_empty() || known.is_empty() {
        return offered;
    }
    known.sort_unstable();
    let listed = known[..known.len().min(LISTED)].join(", ");
    match known.len().saturating_sub(LISTED) {
        0 => format!("; there are {listed}"),
        more => format!("; there are {listed} and {more} more"),
    }
}

/// Characters to insert, remove or replace to make one of the other; letters of the other case count nothing.
fn distance(left: &str, right: &str) -> usize {
    let letters = |word: &str| -> Vec<char> { word.chars().take(LONGEST).flat_map(char::to_lowercase).collect() };
    let (left, right) = (letters(left), letters(right));
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.iter().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (place, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_to_a_word_that_is_nearly_the_same_no_other_is_offered() {
        assert_eq!(nearest("qote", ["date", "not", "quote"]), ["quote"]);
        assert_eq!(nearest("siez", ["side", "size", "system"]), ["side", "size"]);
        assert_eq!(nearest("Daemonset", ["DaemonSet", "DaemonSetList"]), ["DaemonSet"]);
        assert_eq!(nearest("anchor", ["quay"]), Vec::<&str>::new());
    }
}
