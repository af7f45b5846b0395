//! Words that are told: bounded, because what they are made of comes from strangers.

/// Characters of a part of an expression, or of a value, that are shown.
pub(crate) const LONGEST: usize = 120;

/// On one line, and cut where it is long.
pub(crate) fn cut(text: &str) -> String {
    cut_to(text, LONGEST)
}

/// The same for another bound.
pub(crate) fn cut_to(text: &str, longest: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(longest) {
        line.truncate(end);
        line.push('…');
    }
    line
}
