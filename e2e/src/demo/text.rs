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

/// Lines of at most `room` columns, broken at spaces; a longer word has a line of its own, cut in its middle. What moves a cursor is left out.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = cut_middle(&printable(word), room);
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

/// Both ends of a text in at most `room` columns, with a mark when something between them is missing.
fn cut_middle(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let end = cut_front(text, room / 2 + 1);
    format!("{}{}", cut(text, room - room / 2), end.trim_start_matches('…'))
}

/// At most so many lines, with a mark where some from the middle are missing: what others tell begins with what it is about, and ends with the place or the
/// value that somebody looks for.
pub(super) fn shorten(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() <= most {
        return lines;
    }
    let end = lines.split_off(lines.len() - most / 2);
    lines.truncate(most - most / 2);
    if let Some(line) = lines.last_mut() {
        line.push('…');
    }
    lines.extend(end);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_longer_words_lose_their_middle() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 8), ["a", "ver…word", "b"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(
            (cut_middle("word", 1), cut_middle("word", 0)),
            ("…".into(), String::new())
        );
    }

    #[test]
    fn of_too_many_lines_the_first_and_the_last_are_kept() {
        let lines = |text: &str| wrap(text, 1);
        assert_eq!(shorten(lines("a b c"), 3), ["a", "b", "c"]);
        assert_eq!(shorten(lines("a b c d e f"), 4), ["a", "b…", "e", "f"]);
        assert_eq!(shorten(lines("a b c d e f"), 3), ["a", "b…", "f"]);
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
