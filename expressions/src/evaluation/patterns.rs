//! Regular expressions. The language has those of RE2; what is written differently here, or means something else, is translated.

use std::{iter::Peekable, str::Chars};

use regex::{Regex, RegexBuilder};

use super::{budget::Budget, operators::Problem};

/// Bytes that a pattern may have.
const LONGEST: usize = 1024;

/// How deep brackets of a pattern may be.
const DEEPEST: u32 = 50;

/// Bytes of the automaton that is made of a pattern: `(a{1000}){1000}` is small as a text.
const LARGEST_AUTOMATON: usize = 64 * 1024;

/// Steps for each byte of a text. A search may visit every state of the automaton, some thousand, at every byte.
const STEPS_PER_BYTE: usize = 8;

/// Steps for making the automaton, which is most of the work for a short text.
const STEPS_TO_MAKE: usize = 1000;

/// Whether a pattern is found somewhere in a text. Takes time linear in the text.
pub(super) fn matches(budget: &Budget, text: &str, pattern: &str) -> Result<bool, Problem> {
    budget.take(STEPS_TO_MAKE)?;
    budget.take(text.len().saturating_mul(STEPS_PER_BYTE))?;
    match made(pattern) {
        Some(regex) => Ok(regex.is_match(text)),
        None => Err("has a pattern that is not valid, or too large".to_owned().into()),
    }
}

/// Whether a text is a pattern that is not too large.
pub(crate) fn is_pattern(text: &str) -> bool {
    made(text).is_some()
}

fn made(pattern: &str) -> Option<Regex> {
    if pattern.len() > LONGEST {
        return None;
    }
    let mut builder = RegexBuilder::new(&translated(pattern));
    builder
        .size_limit(LARGEST_AUTOMATON)
        .dfa_size_limit(LARGEST_AUTOMATON)
        .nest_limit(DEEPEST);
    builder.build().ok()
}

/// `\d`, `\w`, `\s` and `\b` are about ASCII in RE2; a bracket, `&&` or a minus behind one of these in a class are nothing but characters, and so is a brace that
/// does not say how often.
fn translated(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('Q') if !in_class => quote(&mut characters, &mut translated),
                Some(escaped) => escape(escaped, in_class, &mut characters, &mut translated),
                None => translated.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                translated.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    translated.push('^');
                }
                if characters.next_if_eq(&']').is_some() {
                    translated.push_str("\\]");
                }
            }
            // Only the names of classes are in brackets there.
            '[' if characters.peek() != Some(&':') => translated.push_str("\\["),
            '[' => {
                translated.push('[');
                for inner in characters.by_ref() {
                    translated.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if in_class => {
                in_class = false;
                translated.push(']');
            }
            '&' | '~' if in_class => translated.extend(['\\', character]),
            '{' if !in_class && !is_count(characters.clone()) => translated.push_str("\\{"),
            _ => translated.push(character),
        }
    }
    translated
}

/// Whether a brace before this says how often: `2}`, `2,}` or `2,3}`.
fn is_count(mut following: Peekable<Chars<'_>>) -> bool {
    let mut count = String::new();
    while let Some(character) = following.next_if(|character| character.is_ascii_digit() || *character == ',') {
        count.push(character);
    }
    let (least, most) = count.split_once(',').unwrap_or((count.as_str(), ""));
    following.next() == Some('}') && !least.is_empty() && !most.contains(',')
}

/// Everything up to `\E` stands for itself.
fn quote(characters: &mut Peekable<Chars<'_>>, translated: &mut String) {
    let mut quoted = String::new();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next_if_eq(&'E').is_some() {
            break;
        }
        quoted.push(character);
    }
    translated.push_str(&regex::escape(&quoted));
}

/// The class that is behind a backslash and this letter.
fn named(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\f\\r ",
        'D' => "^0-9",
        'W' => "^0-9A-Za-z_",
        'S' => "^\\t\\n\\f\\r ",
        _ => return None,
    })
}

/// What a backslash and this character mean, and of what follows so much as belongs to it.
fn escape(escaped: char, in_class: bool, characters: &mut Peekable<Chars<'_>>, translated: &mut String) {
    match escaped {
        'b' if !in_class => return translated.push_str("(?-u:\\b)"),
        // Elsewhere these are the boundaries of words.
        '<' | '>' => return translated.push(escaped),
        // The number of a character, in braces.
        'x' if characters.next_if_eq(&'{').is_some() => return translated.extend(['\\', escaped, '{']),
        'p' | 'P' => {
            translated.extend(['\\', escaped]);
            let is_long = characters.peek() == Some(&'{');
            for character in characters.by_ref() {
                translated.push(character);
                if !is_long || character == '}' {
                    break;
                }
            }
        }
        _ => match named(escaped) {
            Some(class) if in_class && !class.starts_with('^') => translated.push_str(class),
            Some(class) => translated.extend(["[", class, "]"]),
            None => return translated.extend(['\\', escaped]),
        },
    }
    // It would begin a range with the last character of the class.
    if in_class && characters.next_if_eq(&'-').is_some() {
        translated.push_str("\\-");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_about_ascii_and_brackets_in_classes_are_characters() {
        let found = |text: &str, pattern: &str| matches(&Budget::new(1_000_000), text, pattern).ok();
        assert_eq!(found("٣", r"^\d$"), Some(false));
        assert_eq!(found("a3", r"^[a\d]+$"), Some(true));
        assert_eq!(found("[", "^[[]$"), Some(true));
        assert_eq!(found("&", "^[a&&b]$"), Some(true));
        assert_eq!(found("]", "^[]]$"), Some(true));
        assert_eq!(found("x", "^[[:alpha:]]$"), Some(true));
        assert_eq!(found("a.c", r"\Q.\E"), Some(true));
        assert_eq!(found("abc", r"\Q.\E"), Some(false));
        assert_eq!(found("é", r"^\W$"), Some(true));
        assert_eq!(found("a b", r"^a[^\S]b$"), Some(true));
        assert_eq!(found("a b\tc", r"^a\sb[\s]c$"), Some(true));
        assert_eq!(found("a\u{b}b", r"^a\sb$"), Some(false));
    }

    #[test]
    fn a_brace_that_counts_nothing_and_a_minus_behind_a_class_are_characters() {
        for (text, pattern, expected) in [
            (r#"{"ready":1}"#, r#"^{"ready":\d}$"#, true),
            ("{}", "^{}$", true),
            ("a{,2}", "^a{,2}$", true),
            ("a{2,3,4}", "^a{2,3,4}$", true),
            ("aaabb", "^a{1,3}b{2}c{0,}$", true),
            ("aaaabb", "^a{1,3}b{2}$", false),
            ("Aé", r"^\x{41}\p{L}$", true),
            ("a-b.c", r"^[\w-.]+$", true),
            ("a-b", r"^[\w-]+$", true),
            ("-", r"^[\s-~]$", true),
            ("m", r"^[\s-~]$", false),
            (".", r"^[\d--/]$", true),
            ("é-2", r"^[\p{L}\p{Nd}-.]+$", true),
            ("é-", r"^[\pL-]+$", true),
            ("B", r"^[\x{41}-\x{43}]$", true),
        ] {
            let found = matches(&Budget::new(1_000_000), text, pattern).ok();
            assert_eq!(found, Some(expected), "{text} {pattern}");
        }
    }

    #[test]
    fn a_pattern_that_would_become_large_is_refused() {
        for pattern in [
            "(a{1000}){1000}",
            r"(\pL{100}){10}",
            &"(".repeat(1000),
            &"a".repeat(2000),
        ] {
            assert!(matches(&Budget::new(u64::MAX), "aaaa", pattern).is_err(), "{pattern}");
        }
    }
}
