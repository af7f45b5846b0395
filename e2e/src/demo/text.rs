//! Durations, counts and paragraphs as people read them. Pure.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `45 ms`, `1.2 s`.
pub(super) fn short(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// `1 object`, `7 objects`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Columns that a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Lines of at most `room` columns, broken at spaces; a longer word has a line of its own, cut. What moves a cursor is left out.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = cut(&printable(word), room);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if width(line) + 1 + width(&word) <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A text without line ends, escape sequences and the like: what others wrote must not move our cursor.
pub(super) fn printable(text: &str) -> String {
    let spaced = text
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter });
    spaced.filter(|letter| !letter.is_control()).collect()
}

/// The beginning of a text in at most `room` columns, with a mark when something is missing.
pub(super) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    if room == 0 {
        return String::new();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|letter| {
        used += letter.width().unwrap_or_default();
        used <= room
    });
    kept.chain(['…']).collect()
}

/// The end of a text in at most `room` columns, with a mark when something is missing.
pub(super) fn cut_front(text: &str, room: usize) -> String {
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    backwards(&cut(&backwards(text), room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_longer_words_are_cut() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 8), ["a", "verylon…", "b"]);
        assert_eq!(wrap("", 8), [""]);
    }

    #[test]
    fn nothing_that_moves_the_cursor_gets_through() {
        assert_eq!(wrap("one\r\n\ttwo\x1b[2J", 20), ["one two[2J"]);
        assert_eq!(printable("a\nb\x07"), "a b");
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(cut("一二三四", 5), "一二…");
        assert_eq!(cut_front("docker-harbor-1-34-v2", 9), "…-1-34-v2");
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(
            (count(1, "object"), count(0, "object")),
            ("1 object".into(), "0 objects".into())
        );
        assert_eq!(short(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(short(Duration::from_millis(999)), "999 ms");
    }
}
