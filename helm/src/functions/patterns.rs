//! Translates regular expressions from Go's syntax to that of the crate `regex`, and refuses what Go refuses.
//!
//! The two differ in small ways: which classes are ASCII, what is special within brackets, which escapes exist. Every
//! literal is written as a number, so nothing that is plain in Go can be special afterwards.

mod classes;
mod escapes;

use std::collections::BTreeMap;
use std::ops::Range;

use classes::{bracketed, perl_class, unicode_class};
use escapes::escaped;

const MAX_REPEAT: u32 = 1_000;
/// Where Go gives up on groups within groups.
const MAX_NESTING: usize = 1_000;

/// A translated pattern. Its groups have no names there, because Go lets several share one.
pub(crate) struct Pattern {
    pub(crate) rust: String,
    /// Whether nothing was translated. Of some texts, as of `(?U)`, nothing is left.
    pub(crate) is_empty: bool,
    /// The names of groups, with their numbers.
    pub(crate) names: Vec<(String, usize)>,
}

/// The error is Go's text without the words before it.
pub(crate) fn translate(pattern: &str) -> Result<Pattern, String> {
    let mut translator = Translator {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        open: vec![Group::at(0, false)],
        groups: 0,
        names: Vec::new(),
        operand: None,
        last_repeat: None,
    };
    translator.run()?;
    Ok(Pattern {
        rust: translator.out,
        is_empty: pattern.is_empty(),
        names: translator.names,
    })
}

struct Translator<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    /// The whole and each open group.
    open: Vec<Group>,
    /// How many groups were opened that hold what they match.
    groups: usize,
    names: Vec<(String, usize)>,
    /// What a repetition would repeat. Flags may stand between the two.
    operand: Option<Operand>,
    /// What follows from the repetition just read.
    last_repeat: Option<&'a str>,
}

/// What lies between parentheses, as far as it was read.
struct Group {
    /// Where it begins in what is written.
    start: usize,
    /// Whether repetitions in it take as little as they can, unless they say otherwise: the flag `U`, which is not written.
    is_lazy: bool,
    /// How often something in it is repeated, repetitions of repetitions multiplied.
    repeats: u32,
}

impl Group {
    const fn at(start: usize, is_lazy: bool) -> Self {
        Self {
            start,
            is_lazy,
            repeats: 1,
        }
    }
}

/// What was written last that a repetition can repeat.
struct Operand {
    /// Where it is in what is written.
    place: Range<usize>,
    is_repeated: bool,
    /// How often something in it is repeated, repetitions of repetitions multiplied.
    repeats: u32,
}

fn error(code: &str, part: &str) -> String {
    format!("{code}: `{part}`")
}

/// The part of `from` that was read when `rest` is left.
fn read<'a>(from: &'a str, rest: &str) -> &'a str {
    &from[..from.len() - rest.len()]
}

impl<'a> Translator<'a> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(next) = self.rest.chars().next() {
            let before = self.rest;
            let mut is_repeat = false;
            match next {
                '(' => self.group()?,
                ')' => self.close()?,
                '|' => {
                    self.skip(1);
                    self.out.push('|');
                    self.operand = None;
                }
                '^' | '$' | '.' => {
                    self.skip(1);
                    self.operand(&next.to_string());
                }
                '[' => {
                    let (class, rest) = bracketed(self.rest)?;
                    self.rest = rest;
                    self.operand(&class);
                }
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(before, &next.to_string())?;
                    is_repeat = true;
                }
                '{' => is_repeat = self.counted()?,
                '\\' => self.escape()?,
                _ => {
                    self.skip(next.len_utf8());
                    self.literal(next);
                }
            }
            self.last_repeat = is_repeat.then_some(before);
        }
        if self.open.len() == 1 {
            Ok(())
        } else {
            Err(error("missing closing )", self.whole))
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn operand(&mut self, written: &str) {
        let start = self.out.len();
        self.out.push_str(written);
        self.operand = Some(Operand {
            place: start..self.out.len(),
            is_repeated: false,
            repeats: 1,
        });
    }

    /// Notes how often the last operand is repeated.
    fn repeated(&mut self, times: u32) {
        if let Some(operand) = &mut self.operand {
            operand.repeats = times;
        }
        if let Some(group) = self.open.last_mut() {
            group.repeats = times.max(group.repeats);
        }
    }

    fn literal(&mut self, character: char) {
        self.operand(&number(character));
    }

    fn is_lazy(&self) -> bool {
        self.open.last().is_some_and(|group| group.is_lazy)
    }

    fn group(&mut self) -> Result<(), String> {
        if self.open.len() >= MAX_NESTING {
            return Err(error("expression nests too deeply", self.whole));
        }
        if self.rest.starts_with("(?") {
            return self.special_group();
        }
        self.skip(1);
        self.groups += 1;
        self.open_group("(", self.is_lazy());
        Ok(())
    }

    fn open_group(&mut self, written: &str, is_lazy: bool) {
        self.open.push(Group::at(self.out.len(), is_lazy));
        self.out.push_str(written);
        self.operand = None;
    }

    fn close(&mut self) -> Result<(), String> {
        if self.open.len() == 1 {
            return Err(error("unexpected )", self.whole));
        }
        let group = self.open.pop();
        self.skip(1);
        self.operand(")");
        if let (Some(group), Some(operand)) = (group, &mut self.operand) {
            operand.place.start = group.start;
            self.repeated(group.repeats);
        }
        Ok(())
    }

    /// A named group, a group with flags, or flags for the rest of the group around them.
    fn special_group(&mut self) -> Result<(), String> {
        let start = self.rest;
        let named = start.strip_prefix("(?P<").filter(|rest| !rest.is_empty());
        if let Some(body) = named.or_else(|| start.strip_prefix("(?<").filter(|rest| !rest.is_empty())) {
            let (name, rest) = body
                .split_once('>')
                .ok_or_else(|| error("invalid named capture", start))?;
            let is_valid = !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
            if !is_valid {
                return Err(error("invalid named capture", read(start, rest)));
            }
            self.rest = rest;
            self.groups += 1;
            self.names.push((name.to_owned(), self.groups));
            self.open_group("(", self.is_lazy());
            return Ok(());
        }
        let mut rest = &start[2..];
        let (mut is_negated, mut has_flag, mut is_lazy) = (false, false, self.is_lazy());
        let mut flags = BTreeMap::new();
        while let Some(flag) = rest.chars().next() {
            rest = &rest[flag.len_utf8()..];
            match flag {
                'i' | 'm' | 's' => {
                    flags.insert(flag, !is_negated);
                    has_flag = true;
                }
                'U' => (is_lazy, has_flag) = (!is_negated, true),
                '-' if !is_negated => (is_negated, has_flag) = (true, false),
                ':' | ')' if has_flag || !is_negated => {
                    self.rest = rest;
                    self.flags(&flags, flag == ':', is_lazy);
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(error("invalid or unsupported Perl syntax", read(start, rest)))
    }

    /// Writes flags that are set and unset, for a group that they open or for the rest of the group around them.
    fn flags(&mut self, flags: &BTreeMap<char, bool>, opens: bool, is_lazy: bool) {
        let which = |wanted| flags.iter().filter(move |(_, is_set)| **is_set == wanted);
        let mut written = "(?".to_owned();
        written.extend(which(true).map(|(flag, _)| *flag));
        if which(false).next().is_some() {
            written.push('-');
            written.extend(which(false).map(|(flag, _)| *flag));
        }
        if opens {
            self.open_group(&(written + ":"), is_lazy);
            return;
        }
        if let Some(group) = self.open.last_mut() {
            group.is_lazy = is_lazy;
        }
        if written != "(?" {
            self.out.push_str(&written);
            self.out.push(')');
        }
    }

    fn repeat(&mut self, before: &'a str, written: &str) -> Result<(), String> {
        let mut is_lazy = self.is_lazy();
        if self.rest.starts_with('?') {
            self.skip(1);
            is_lazy = !is_lazy;
        }
        if let Some(last) = self.last_repeat {
            return Err(error("invalid nested repetition operator", read(last, self.rest)));
        }
        let Some(Operand { place, is_repeated, .. }) = &mut self.operand else {
            return Err(error(
                "missing argument to repetition operator",
                read(before, self.rest),
            ));
        };
        if std::mem::replace(is_repeated, true) {
            let repeated = format!("(?:{})", &self.out[place.clone()]);
            self.out.replace_range(place.clone(), &repeated);
            place.end = place.start + repeated.len();
        }
        let repetition = format!("{written}{}", if is_lazy { "?" } else { "" });
        self.out.insert_str(place.end, &repetition);
        place.end += repetition.len();
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,3}`; anything else is a literal brace. Gives whether it was a repetition.
    fn counted(&mut self) -> Result<bool, String> {
        let before = self.rest;
        let Some((least, most, rest)) = counts(before) else {
            self.skip(1);
            self.literal('{');
            return Ok(false);
        };
        let is_too_large = |count: Option<u32>| count.is_none_or(|count| count > MAX_REPEAT);
        if is_too_large(least) || most.is_some_and(|most| is_too_large(most) || most < least) {
            return Err(error("invalid repeat count", read(before, rest)));
        }
        self.rest = rest;
        self.repeat(before, read(before, rest))?;
        let times = most.flatten().or(least).unwrap_or(0);
        let repeats = self.operand.as_ref().map_or(1, |operand| operand.repeats);
        let repeats = repeats.saturating_mul(times);
        if times >= 2 && repeats > MAX_REPEAT {
            return Err(error("invalid repeat count", read(before, self.rest)));
        }
        // What is there no time at all may repeat as it likes.
        self.repeated(if most == Some(Some(0)) { 1 } else { repeats.max(1) });
        Ok(true)
    }

    fn escape(&mut self) -> Result<(), String> {
        let rest = self.rest;
        match rest.as_bytes().get(1) {
            Some(b'A') => self.operand(r"\A"),
            Some(b'z') => self.operand(r"\z"),
            Some(b'b') => self.operand(r"(?-u:\b)"),
            Some(b'B') => self.operand(r"(?-u:\B)"),
            Some(b'C') => return Err(error("invalid escape sequence", r"\C")),
            Some(b'Q') => {
                let (quoted, rest) = rest[2..].split_once(r"\E").unwrap_or((&rest[2..], ""));
                quoted.chars().for_each(|character| self.literal(character));
                self.rest = rest;
                return Ok(());
            }
            _ => {
                if let Some((class, rest)) = unicode_class(rest)? {
                    self.rest = rest;
                    self.operand(&class);
                } else if let Some(class) = perl_class(rest) {
                    self.skip(2);
                    self.operand(&format!("[{class}]"));
                } else {
                    let (character, rest) = escaped(rest)?;
                    self.rest = rest;
                    self.literal(character);
                }
                return Ok(());
            }
        }
        self.skip(2);
        Ok(())
    }
}

/// A character that is nothing but itself, inside and outside of brackets.
fn number(character: char) -> String {
    format!("\\x{{{:X}}}", character as u32)
}

/// The least and the most of a repetition. A number that is too large to read is none.
type Counts<'a> = (Option<u32>, Option<Option<u32>>, &'a str);

fn counts(text: &str) -> Option<Counts<'_>> {
    let (least, rest) = count(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => count(rest).map(|(most, rest)| (Some(most), rest))?,
    };
    Some((least, most, rest.strip_prefix('}')?))
}

fn count(text: &str) -> Option<(Option<u32>, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    let is_number = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
    is_number.then(|| (digits.parse().ok(), rest))
}
