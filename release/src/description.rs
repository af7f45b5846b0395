//! What is bounded before a parser sees it: the short texts that describe a release, a stack or a chart.
//!
//! The time of the YAML parser grows with the length of a text times the brackets that are open in it, and its memory is a hundred times the length.
//! Bounding both numbers bounds the work, whatever the text says; that needs no idea of YAML, so quotes and comments cannot deceive it.

/// Largest description, in bytes. Real ones stay below two kilobytes, but a chart may tell its whole history in its `Chart.yaml`.
pub(crate) const MAX_BYTES: u64 = 64 << 10;
/// Most opening brackets and braces of a description, wherever they stand.
pub(crate) const MAX_BRACKETS: usize = 1024;

/// The line, from 1, with the first bracket too many.
pub(crate) fn bracket_too_many(text: &[u8]) -> Option<usize> {
    bracket_too_many_of(text, MAX_BRACKETS)
}

/// The same for another bound.
pub(crate) fn bracket_too_many_of(text: &[u8], most: usize) -> Option<usize> {
    let mut brackets = text.iter().enumerate().filter(|(_, byte)| matches!(byte, b'[' | b'{'));
    let (excess, _) = brackets.nth(most)?;
    let before = text.iter().take(excess);
    Some(1 + before.filter(|byte| **byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_the_first_bracket_too_many_is_told() {
        let text = |brackets| format!("a:\n{}\n[", "[{\n".repeat(brackets / 2));
        assert_eq!(bracket_too_many(text(MAX_BRACKETS - 2).as_bytes()), None);
        assert_eq!(
            bracket_too_many(text(MAX_BRACKETS).as_bytes()),
            Some(3 + MAX_BRACKETS / 2)
        );
    }
}
