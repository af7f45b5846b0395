//! How a scalar may be written: what its characters allow, and what the style is then.

use super::emit::Version;
use super::resolve::{Resolved, is_base_60, resolve};

/// The styles that the emitter uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// Chooses the style of a string.
pub(super) fn of_string(text: &str, simple_key: bool, version: Version) -> Style {
    let allowed = Allowed::by(text, version);
    let wanted = if text.contains('\n') {
        Style::Literal
    } else if resolve(text) == Resolved::Text && !is_base_60(text) {
        Style::Plain
    } else {
        Style::DoubleQuoted
    };
    if simple_key && allowed.multiline {
        return Style::DoubleQuoted;
    }
    match wanted {
        Style::Plain if allowed.plain => Style::Plain,
        Style::Plain if allowed.single_quoted => Style::SingleQuoted,
        Style::Literal if allowed.literal && !simple_key => Style::Literal,
        _ => Style::DoubleQuoted,
    }
}

/// Whether the text has line breaks of any kind.
pub(super) fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}

#[expect(clippy::struct_excessive_bools, reason = "independent permissions")]
struct Allowed {
    multiline: bool,
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

impl Allowed {
    fn by(text: &str, version: Version) -> Self {
        let facts = Facts::of(text);
        let at_edge = |test: fn(char) -> bool| text.starts_with(test) || text.ends_with(test);
        let unwritable = facts.space_before_break || facts.special || facts.tabs;
        let unwritable_as_block = facts.space_before_break || facts.special || facts.tabs && version == Version::V2;
        Self {
            multiline: facts.breaks,
            plain: !(text.is_empty()
                || at_edge(is_space)
                || facts.breaks
                || facts.space_after_break
                || facts.indicators
                || unwritable),
            single_quoted: !(facts.space_after_break || unwritable),
            literal: !(text.is_empty() || text.ends_with(' ') || unwritable_as_block),
        }
    }
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations")]
struct Facts {
    indicators: bool,
    breaks: bool,
    special: bool,
    tabs: bool,
    space_after_break: bool,
    space_before_break: bool,
}

impl Facts {
    fn of(text: &str) -> Self {
        let mut facts = Self {
            indicators: text.starts_with("---") || text.starts_with("..."),
            ..Self::default()
        };
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let space_follows = characters.peek().is_none_or(|next| is_blank_or_break(*next));
            facts.indicators |= match (previous, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | ':' | '-') | (Some(_), ':') => space_follows,
                (Some(before), '#') => is_blank_or_break(before),
                _ => false,
            };
            facts.tabs |= character == '\t';
            facts.special |= !is_printable(character) && character != '\t';
            facts.breaks |= is_break(character);
            facts.space_after_break |= is_space(character) && previous.is_some_and(is_break);
            facts.space_before_break |= is_break(character) && previous.is_some_and(is_space);
            previous = Some(character);
        }
        facts
    }
}

pub(super) fn is_space(character: char) -> bool {
    character == ' '
}

/// The line breaks of YAML 1.1.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_break(character: char) -> bool {
    matches!(character, ' ' | '\t') || is_break(character)
}

/// What the emitter writes as it is. Everything beyond the basic plane is escaped.
pub(super) fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && character != '\u{feff}'
}
