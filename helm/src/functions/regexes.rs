//! Regular expressions. Patterns have Go's syntax ([`super::patterns`] translates them); [`super::automaton`] searches.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::automaton::Automaton;
use super::patterns::translate;
use super::{Called, Function, mismatch};
use crate::bounds::{beyond, check_bytes, check_items, spend};
use crate::format::quote;
use crate::text;
use crate::value::Type::{Int, Str};
use crate::value::{Element, List, Value};

/// How many compiled patterns a thread keeps.
const MAX_COMPILED: usize = 64;

/// How much memory the patterns that a thread keeps may take when another one is added.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// The longest pattern. Its text is read into some hundred times its size.
const MAX_PATTERN: usize = 64 << 10;

/// How many steps of a template take about as long as compiling a short pattern.
const STEPS_TO_COMPILE: u64 = 1_000;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", &[Str, Str], |arguments| {
        let [Value::Str(pattern), Value::Str(text)] = arguments else {
            return Err(mismatch());
        };
        match compiled(pattern) {
            Ok(automaton) => is_match(&automaton, &Subject::new(text)),
            Err(Refusal::Go(_)) => Ok(Value::Bool(false)),
            Err(refusal) => Err(refusal.returned()),
        }
    }),
    Function::new("mustRegexMatch", &[Str, Str], |arguments| {
        returning(arguments, is_match)
    }),
    Function::new("regexFind", &[Str, Str], |arguments| panicking(arguments, find)),
    Function::new("mustRegexFind", &[Str, Str], |arguments| returning(arguments, find)),
    Function::new("regexFindAll", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::panicked, find_all)
    }),
    Function::new("mustRegexFindAll", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::returned, find_all)
    }),
    Function::new("regexSplit", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::panicked, split)
    }),
    Function::new("mustRegexSplit", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::returned, split)
    }),
    Function::new("regexReplaceAll", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::panicked, true)
    }),
    Function::new("mustRegexReplaceAll", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::returned, true)
    }),
    Function::new("regexReplaceAllLiteral", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::panicked, false)
    }),
    Function::new("mustRegexReplaceAllLiteral", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::returned, false)
    }),
    Function::new("regexQuoteMeta", &[Str], quote_meta),
];

/// A text to search in. Go reads each byte that is not UTF-8 as the replacement character.
struct Subject<'t> {
    read: Cow<'t, str>,
    original: &'t [u8],
    /// Where in the original each character of what is read begins, by its place there; nothing when both are the same.
    places: Vec<usize>,
}

impl<'t> Subject<'t> {
    fn new(original: &'t [u8]) -> Self {
        if let Ok(text) = str::from_utf8(original) {
            return Self {
                read: Cow::Borrowed(text),
                original,
                places: Vec::new(),
            };
        }
        let (mut read, mut places, mut place) = (String::new(), Vec::new(), 0);
        for rune in text::runes(original) {
            read.push(rune.or_replacement());
            places.resize(read.len(), place);
            place += rune.bytes.len();
        }
        places.push(place);
        Self {
            read: Cow::Owned(read),
            original,
            places,
        }
    }

    fn part(&self, range: Range<usize>) -> &'t [u8] {
        let place = |at: usize| self.places.get(at).copied().unwrap_or(at);
        &self.original[place(range.start)..place(range.end)]
    }
}

/// Why a pattern was not compiled.
#[derive(Clone)]
enum Refusal {
    /// Go refuses it too; the pattern and Go's text.
    Go(Rc<(Vec<u8>, String)>),
    /// Go would take it.
    Ours(Rc<str>),
}

impl Refusal {
    /// The error of the functions that return one.
    fn returned(self) -> String {
        match self {
            Self::Go(refused) => refused.1.clone(),
            Self::Ours(reason) => beyond(reason.to_string()),
        }
    }

    /// The error of the functions that panic.
    fn panicked(self) -> String {
        match self {
            Self::Go(refused) => {
                let (pattern, error) = &*refused;
                let can_backquote = !pattern.contains(&b'`')
                    && text::runes(pattern).all(|rune| {
                        rune.character
                            .is_some_and(|character| character == '\t' || !character.is_control())
                    });
                let shown = if can_backquote {
                    format!("`{}`", text::lossy(pattern))
                } else {
                    text::lossy(&quote(pattern))
                };
                format!("regexp: Compile({shown}): {error}")
            }
            Self::Ours(reason) => beyond(reason.to_string()),
        }
    }
}

type Compiled = Result<Rc<Automaton>, Refusal>;

fn compiled(pattern: &[u8]) -> Compiled {
    thread_local! {
        static COMPILED: RefCell<HashMap<Vec<u8>, Compiled>> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|known| {
        if let Some(result) = known.get(pattern) {
            return result.clone();
        }
        let memory: usize = known.values().flatten().map(|automaton| automaton.memory()).sum();
        if known.len() >= MAX_COMPILED || memory > MAX_COMPILED_BYTES {
            known.clear();
        }
        spend(STEPS_TO_COMPILE).map_err(|bound| Refusal::Ours(bound.to_string().into()))?;
        let result = compile(pattern);
        known.insert(pattern.to_vec(), result.clone());
        result
    })
}

fn compile(pattern: &[u8]) -> Compiled {
    if pattern.len() > MAX_PATTERN {
        return Err(Refusal::Ours(
            format!("regular expression is longer than {MAX_PATTERN} bytes").into(),
        ));
    }
    let refused = |error: String| Refusal::Go(Rc::new((pattern.to_vec(), error)));
    let text = str::from_utf8(pattern).map_err(|error| {
        let rest = text::lossy(&pattern[error.valid_up_to()..]);
        refused(format!("error parsing regexp: invalid UTF-8: `{rest}`"))
    })?;
    let pattern = translate(text).map_err(|error| refused(format!("error parsing regexp: {error}")))?;
    let automaton = Automaton::compile(pattern)
        .map_err(|error| Refusal::Ours(format!("regular expression `{text}` is not supported: {error}").into()))?;
    Ok(Rc::new(automaton))
}

type Match = fn(&Automaton, &Subject) -> Called;

fn returning(arguments: &[Value], matching: Match) -> Called {
    let [Value::Str(pattern), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    matching(&*compiled(pattern).map_err(Refusal::returned)?, &Subject::new(text))
}

fn panicking(arguments: &[Value], matching: Match) -> Called {
    let [Value::Str(pattern), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    matching(&*compiled(pattern).map_err(Refusal::panicked)?, &Subject::new(text))
}

fn is_match(automaton: &Automaton, text: &Subject) -> Called {
    Ok(Value::Bool(automaton.is_match(&text.read)?))
}

fn find(automaton: &Automaton, text: &Subject) -> Called {
    let found = automaton.find(&text.read, 0)?;
    Ok(Value::from(found.map_or(&b""[..], |found| text.part(found))))
}

/// Nothing stands for the slice that Go never makes.
type Parts<'t> = Result<Option<Vec<&'t [u8]>>, String>;

/// Runs a function whose third argument is the largest number of results, without limit when negative.
fn counted(
    arguments: &[Value],
    refused: fn(Refusal) -> String,
    run: for<'t> fn(&Automaton, &Subject<'t>, usize) -> Parts<'t>,
) -> Called {
    let [Value::Str(pattern), Value::Str(text), Value::Int(limit, _)] = arguments else {
        return Err(mismatch());
    };
    let automaton = compiled(pattern).map_err(refused)?;
    let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
    let parts = run(&automaton, &Subject::new(text), limit)?;
    Ok(Value::List(
        parts.map_or_else(|| List::nil(Element::Str), List::strings),
    ))
}

fn find_all<'t>(automaton: &Automaton, text: &Subject<'t>, limit: usize) -> Parts<'t> {
    let mut parts = Vec::new();
    for found in automaton.find_all(&text.read).take(limit) {
        parts.push(text.part(found?));
        check_items(parts.len())?;
    }
    Ok((!parts.is_empty()).then_some(parts))
}

fn split<'t>(automaton: &Automaton, text: &Subject<'t>, limit: usize) -> Parts<'t> {
    if limit == 0 {
        return Ok(None);
    }
    if text.original.is_empty() && !automaton.is_empty() {
        return Ok(Some(vec![b""]));
    }
    let (mut parts, mut start, mut end) = (Vec::new(), 0, 0);
    for found in automaton.find_all(&text.read).take(limit) {
        if parts.len() + 1 == limit {
            break;
        }
        let found = found?;
        end = found.start;
        // An empty match at the very start separates nothing.
        if found.end != 0 {
            parts.push(text.part(start..end));
            check_items(parts.len())?;
        }
        start = found.end;
    }
    if end != text.read.len() {
        parts.push(text.part(start..text.read.len()));
    }
    check_items(parts.len())?;
    Ok(Some(parts))
}

fn replaced(arguments: &[Value], refused: fn(Refusal) -> String, expands: bool) -> Called {
    let [Value::Str(pattern), Value::Str(text), Value::Str(replacement)] = arguments else {
        return Err(mismatch());
    };
    let automaton = compiled(pattern).map_err(refused)?;
    let text = Subject::new(text);
    let pieces = if expands {
        pieces(replacement)
    } else {
        vec![Piece::Text(replacement)]
    };
    let has_groups = pieces.iter().any(|piece| matches!(piece, Piece::Group(_)));
    let mut out = Vec::with_capacity(text.original.len());
    let mut end = 0;
    for found in automaton.find_all(&text.read) {
        let found = found?;
        let groups = if has_groups {
            automaton.groups(&text.read, &found)?
        } else {
            Vec::new()
        };
        out.extend_from_slice(text.part(end..found.start));
        for piece in &pieces {
            match piece {
                Piece::Text(piece) => out.extend_from_slice(piece),
                Piece::Group(name) => out.extend_from_slice(group(&automaton, name, &text, &groups)),
            }
            check_bytes(out.len())?;
        }
        end = found.end;
    }
    out.extend_from_slice(text.part(end..text.read.len()));
    Ok(Value::from(out))
}

/// A part of a replacement.
enum Piece<'r> {
    Text(&'r [u8]),
    Group(&'r str),
}

/// Reads a replacement: `$1`, `${1}`, `$name`, `${name}` and `$$`. A name is as long as it can be.
fn pieces(replacement: &[u8]) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), replacement);
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        pieces.push(Piece::Text(&rest[..dollar]));
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix(b"$") {
            pieces.push(Piece::Text(b"$"));
            rest = after;
        } else if let Some((name, after)) = reference(after) {
            pieces.push(Piece::Group(name));
            rest = after;
        } else {
            pieces.push(Piece::Text(b"$"));
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// What a group of a match holds; nothing when there is no such group.
fn group<'t>(automaton: &Automaton, name: &str, text: &Subject<'t>, groups: &[Option<Range<usize>>]) -> &'t [u8] {
    let taking_part = |number: usize| groups.get(number)?.clone();
    let found = match name.parse::<usize>() {
        Ok(number) if name == "0" || !name.starts_with('0') => taking_part(number),
        _ => automaton.named(name).find_map(taking_part),
    };
    found.map_or(b"", |found| text.part(found))
}

/// The name after a dollar sign, and what follows it.
fn reference(text: &[u8]) -> Option<(&str, &[u8])> {
    let body = text.strip_prefix(b"{").unwrap_or(text);
    let length: usize = text::runes(body)
        .take_while(|rune| {
            let character = rune.or_replacement();
            character == '_' || text::is_letter(character) || text::is_digit(character)
        })
        .map(|rune| rune.bytes.len())
        .sum();
    let (name, rest) = body.split_at(length);
    let name = str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    if body.len() == text.len() {
        Some((name, rest))
    } else {
        Some((name, rest.strip_prefix(b"}")?))
    }
}

fn quote_meta(arguments: &[Value]) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let mut quoted = Vec::with_capacity(text.len());
    for byte in text.iter() {
        if b"\\.+*?()|[]{}^$".contains(byte) {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    Ok(Value::from(quoted))
}
