//! Functions that change the case of letters and the shape of names.

use super::strings::of_text;
use super::{Called, Function};
use crate::text::{
    is_digit, is_letter, is_lower, is_number, is_punctuation, is_space, is_upper, map_runes, push_char, runes,
    to_lower, to_upper,
};
use crate::value::Type::Str;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("upper", &[Str], |arguments| {
        of_text(arguments, |text| map_runes(text, to_upper))
    }),
    Function::new("lower", &[Str], |arguments| {
        of_text(arguments, |text| map_runes(text, to_lower))
    }),
    Function::new("title", &[Str], |arguments| of_text(arguments, title)),
    Function::new("untitle", &[Str], |arguments| of_text(arguments, untitle)),
    Function::new("swapcase", &[Str], |arguments| of_text(arguments, swap_case)),
    Function::new("nospace", &[Str], |arguments| of_text(arguments, without_space)),
    Function::new("initials", &[Str], |arguments| of_text(arguments, initials)),
    Function::new("camelcase", &[Str], |arguments| of_text(arguments, pascal_case)),
    Function::new("snakecase", &[Str], |arguments| lower_words(arguments, '_')),
    Function::new("kebabcase", &[Str], |arguments| lower_words(arguments, '-')),
];

/// Upper case for every letter that does not follow a letter, digit or underscore.
fn title(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut follows_separator = true;
    for rune in runes(text) {
        let character = rune.or_replacement();
        push_char(
            &mut out,
            if follows_separator {
                to_upper(character)
            } else {
                character
            },
        );
        follows_separator = match character {
            '_' => false,
            _ if is_letter(character) || is_digit(character) => false,
            _ if character.is_ascii() => true,
            _ => is_space(character),
        };
    }
    out
}

fn untitle(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut starts_word = true;
    for rune in runes(text) {
        let character = rune.or_replacement();
        push_char(&mut out, if starts_word { to_lower(character) } else { character });
        starts_word = is_space(character);
    }
    out
}

fn swap_case(text: &[u8]) -> Vec<u8> {
    map_runes(text, |character| {
        if is_upper(character) {
            to_lower(character)
        } else if is_lower(character) {
            to_upper(character)
        } else {
            character
        }
    })
}

/// Takes every byte for a character of Latin-1, as the Go function does: other text is spoilt once a space was removed.
fn without_space(text: &[u8]) -> Vec<u8> {
    let is_kept = |byte: &u8| !is_space(char::from(*byte));
    if text.iter().all(is_kept) {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter().copied().filter(is_kept) {
        push_char(&mut out, char::from(byte));
    }
    out
}

/// Byte by byte, each as the character of its number: Helm's library does not know longer ones.
fn initials(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut starts_word = true;
    for &byte in text {
        let character = char::from(byte);
        let is_gap = is_space(character);
        if starts_word && !is_gap {
            push_char(&mut out, character);
        }
        starts_word = is_gap;
    }
    out
}

fn is_connector(character: char) -> bool {
    character == '-' || character == '_' || is_space(character)
}

/// `some_name` becomes `SomeName`; connectors in front stay.
fn pascal_case(text: &[u8]) -> Vec<u8> {
    let characters: Vec<char> = runes(text).map(crate::text::Rune::or_replacement).collect();
    let mut out = Vec::with_capacity(text.len());
    let Some(start) = characters.iter().position(|character| !is_connector(*character)) else {
        for character in &characters {
            push_char(&mut out, *character);
        }
        // Go writes the last connector twice.
        if let Some(last) = characters.last() {
            push_char(&mut out, *last);
        }
        return out;
    };
    for character in &characters[..start] {
        push_char(&mut out, *character);
    }
    let mut current = to_upper(characters[start]);
    let mut lowers = is_upper(characters[start]);
    for next in &characters[start + 1..] {
        let previous = current;
        current = *next;
        if is_connector(current) && is_connector(previous) {
            push_char(&mut out, previous);
            continue;
        }
        if is_connector(previous) {
            lowers = is_upper(current);
            current = to_upper(current);
            continue;
        }
        if lowers {
            if is_upper(current) {
                current = to_lower(current);
            } else {
                lowers = false;
            }
        }
        push_char(&mut out, previous);
    }
    push_char(&mut out, current);
    out
}

/// What a run of characters is, when a name is cut into words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Nothing is left.
    Nothing,
    Number,
    UpperCase,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

fn lower_words(arguments: &[Value], connector: char) -> Called {
    of_text(arguments, |text| join_words(text, connector))
}

/// Cuts a name into lower case words. Numbers belong to the letters beside them, by rules that depend on what follows.
fn join_words(text: &[u8], connector: char) -> Vec<u8> {
    let mut words = Words { rest: text };
    let mut out = Vec::with_capacity(text.len());
    let (mut kind, mut word) = words.next();
    while !words.rest.is_empty() {
        if kind != Word::Connector {
            write_lower(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word) = words.next();
        match before {
            Word::Number => {
                (kind, word) = words.write_letters(&mut out, kind, word, connector);
                if !matches!(kind, Word::Nothing | Word::Punctuation | Word::Connector) {
                    push_char(&mut out, connector);
                }
            }
            Word::Connector => write_lower(&mut out, before, last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punctuation) {
                    push_char(&mut out, connector);
                }
            }
            _ if words.rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word) = words.next();
                if kind == Word::Alphabet {
                    push_char(&mut out, connector);
                    write_lower(&mut out, Word::Number, number, connector);
                    (kind, word) = words.write_letters(&mut out, kind, word, connector);
                    if !matches!(kind, Word::Nothing | Word::Connector | Word::Punctuation) {
                        push_char(&mut out, connector);
                    }
                } else {
                    write_lower(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punctuation) {
                        push_char(&mut out, connector);
                    }
                }
            }
        }
    }
    write_lower(&mut out, kind, word, connector);
    out
}

fn write_lower(out: &mut Vec<u8>, kind: Word, word: &[u8], connector: char) {
    if kind != Word::UpperCase && kind != Word::Connector {
        out.extend_from_slice(word);
        return;
    }
    for rune in runes(word) {
        let character = rune.or_replacement();
        if is_connector(character) {
            push_char(out, connector);
        } else {
            push_char(
                out,
                if is_upper(character) {
                    to_lower(character)
                } else {
                    character
                },
            );
        }
    }
}

fn is_alphabet(character: char) -> bool {
    is_letter(character)
        && !matches!(character, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}')
}

struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// Writes the letters and numbers that follow each other; gives the first word that is neither.
    fn write_letters(
        &mut self,
        out: &mut Vec<u8>,
        mut kind: Word,
        mut word: &'a [u8],
        connector: char,
    ) -> (Word, &'a [u8]) {
        while matches!(kind, Word::Alphabet | Word::Number) {
            write_lower(out, kind, word, connector);
            (kind, word) = self.next();
        }
        (kind, word)
    }

    fn next(&mut self) -> (Word, &'a [u8]) {
        let Some((first, _)) = self.characters().next() else {
            return (Word::Nothing, b"");
        };
        let is_small = |character: char| is_alphabet(character) && !is_upper(character);
        let (kind, length) = if first == char::REPLACEMENT_CHARACTER {
            (Word::Nothing, self.rest.len())
        } else if is_connector(first) {
            (Word::Connector, self.run(is_connector))
        } else if is_punctuation(first) {
            (Word::Punctuation, self.run(is_punctuation))
        } else if is_upper(first) {
            (Word::UpperCase, self.upper_case())
        } else if is_alphabet(first) {
            (Word::Alphabet, self.run(is_small))
        } else if is_number(first) {
            (Word::Number, self.run(is_number))
        } else {
            let is_other = |character: char| {
                !(is_connector(character)
                    || is_alphabet(character)
                    || is_number(character)
                    || is_punctuation(character))
            };
            (Word::Other, self.run(is_other))
        };
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        (kind, word)
    }

    fn run(&self, belongs: impl Fn(char) -> bool) -> usize {
        let run = self.characters().take_while(|(character, _)| belongs(*character));
        run.map(|(_, length)| length).sum()
    }

    /// Characters and their lengths. Helm's library takes U+FFFD for what could not be read: it belongs to the next character, or to the last.
    fn characters(&self) -> impl Iterator<Item = (char, usize)> {
        let mut rest = self.rest;
        let mut character = char::REPLACEMENT_CHARACTER;
        std::iter::from_fn(move || {
            let mut length = 0;
            for rune in runes(rest) {
                length += rune.bytes.len();
                if rune.or_replacement() != char::REPLACEMENT_CHARACTER {
                    character = rune.or_replacement();
                    break;
                }
            }
            rest = &rest[length..];
            (length > 0).then_some((character, length))
        })
    }

    /// `HTTPStatus` is `HTTP` and `Status`, `Status` is one word.
    fn upper_case(&self) -> usize {
        let uppers = self.run(is_upper);
        let (word, rest) = self.rest.split_at(uppers);
        let following = Words { rest };
        if !following.characters().next().is_some_and(|(next, _)| is_alphabet(next)) {
            return uppers;
        }
        let letters = Words { rest: word };
        if let Some((_, last)) = letters.characters().skip(1).last() {
            return uppers - last;
        }
        uppers + following.run(|character| is_alphabet(character) && !is_upper(character))
    }
}
