//! Translates regular expressions from Go's syntax to that of the crate `regex`, and refuses what Go refuses.
//!
//! The two differ in small ways: which classes are ASCII, what is special within brackets, which escapes exist. Every
//! literal is written as a number, so nothing that is plain in Go can be special afterwards.

mod escapes;

use escapes::escaped;
use regex::Regex;

const MAX_REPEAT: u32 = 1_000;
/// Where Go gives up on groups within groups.
const MAX_NESTING: usize = 1_000;

/// A translated pattern. Its groups have no names there, because Go lets several share one.
pub(crate) struct Pattern {
    pub(crate) rust: String,
    /// The names of groups, with their numbers.
    pub(crate) names: Vec<(String, usize)>,
}

/// The error is Go's text without the words before it.
pub(crate) fn translate(pattern: &str) -> Result<Pattern, String> {
    let mut translator = Translator {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        repeats: vec![1],
        last_repeats: 1,
        groups: 0,
        names: Vec::new(),
        has_operand: false,
        last_repeat: None,
        before_flags: None,
    };
    translator.run()?;
    Ok(Pattern {
        rust: translator.out,
        names: translator.names,
    })
}

struct Translator<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    /// For the whole and each open group: how often something in it is repeated, repetitions of repetitions multiplied.
    repeats: Vec<u32>,
    /// The same for the last operand.
    last_repeats: u32,
    /// How many groups were opened that hold what they match.
    groups: usize,
    names: Vec<(String, usize)>,
    /// Whether a repetition would have something to repeat.
    has_operand: bool,
    /// What follows from the repetition just read.
    last_repeat: Option<&'a str>,
    /// Where what was written last ends, when only flags were read since: Go repeats across them.
    before_flags: Option<usize>,
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
            let place = self.before_flags.take();
            let mut is_repeat = false;
            match next {
                '(' => {
                    let end = self.out.len();
                    self.group()?;
                    let written = read(before, self.rest);
                    // `U` would change what the repetition means.
                    if written.starts_with("(?") && written.ends_with(')') && !written.contains('U') {
                        self.before_flags = place.or((self.has_operand && self.last_repeat.is_none()).then_some(end));
                    }
                }
                ')' => self.close()?,
                '|' => {
                    self.skip(1);
                    self.out.push('|');
                    self.has_operand = false;
                }
                '^' | '$' | '.' => {
                    self.skip(1);
                    self.operand(&next.to_string());
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.before_flags = place;
                    self.repeat(before, &next.to_string())?;
                    is_repeat = true;
                }
                '{' => {
                    self.before_flags = place;
                    is_repeat = self.counted()?;
                    self.before_flags = None;
                }
                '\\' => self.escape()?,
                _ => {
                    self.skip(next.len_utf8());
                    self.literal(next);
                }
            }
            self.last_repeat = is_repeat.then_some(before);
        }
        if self.repeats.len() == 1 {
            Ok(())
        } else {
            Err(error("missing closing )", self.whole))
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn operand(&mut self, written: &str) {
        self.out.push_str(written);
        self.has_operand = true;
        self.last_repeats = 1;
    }

    /// Notes how often the last operand is repeated.
    fn repeated(&mut self, times: u32) {
        self.last_repeats = times;
        if let Some(most) = self.repeats.last_mut() {
            *most = times.max(*most);
        }
    }

    fn literal(&mut self, character: char) {
        self.operand(&number(character));
    }

    fn group(&mut self) -> Result<(), String> {
        if self.repeats.len() > MAX_NESTING {
            return Err(error("expression nests too deeply", self.whole));
        }
        if self.rest.starts_with("(?") {
            return self.special_group();
        }
        self.skip(1);
        self.groups += 1;
        self.open_group("(");
        Ok(())
    }

    fn open_group(&mut self, written: &str) {
        self.out.push_str(written);
        self.repeats.push(1);
        self.has_operand = false;
    }

    fn close(&mut self) -> Result<(), String> {
        if self.repeats.len() == 1 {
            return Err(error("unexpected )", self.whole));
        }
        let repeats = self.repeats.pop().unwrap_or(1);
        self.skip(1);
        self.operand(")");
        self.repeated(repeats);
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
            self.open_group("(");
            return Ok(());
        }
        let mut rest = &start[2..];
        let (mut is_negated, mut has_flag) = (false, false);
        while let Some(flag) = rest.chars().next() {
            rest = &rest[flag.len_utf8()..];
            match flag {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negated => (is_negated, has_flag) = (true, false),
                ':' | ')' if has_flag || !is_negated => {
                    let written = read(start, rest);
                    self.rest = rest;
                    if flag == ':' {
                        self.open_group(written);
                    } else if written != "(?)" {
                        self.out.push_str(written);
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(error("invalid or unsupported Perl syntax", read(start, rest)))
    }

    fn repeat(&mut self, before: &'a str, written: &str) -> Result<(), String> {
        let mut repetition = written.to_owned();
        if self.rest.starts_with('?') {
            self.skip(1);
            repetition.push('?');
        }
        let place = self.before_flags.take().unwrap_or(self.out.len());
        self.out.insert_str(place, &repetition);
        if let Some(last) = self.last_repeat {
            return Err(error("invalid nested repetition operator", read(last, self.rest)));
        }
        if !self.has_operand {
            return Err(error(
                "missing argument to repetition operator",
                read(before, self.rest),
            ));
        }
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
        let repeats = self.last_repeats.saturating_mul(times);
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

    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let mut rest = &whole[1..];
        let mut written = String::from("[");
        if let Some(after) = rest.strip_prefix('^') {
            written.push('^');
            rest = after;
        }
        let mut is_first = true;
        while is_first || !rest.starts_with(']') {
            is_first = false;
            if let Some((class, after)) = named_class(rest)? {
                written.push_str(class);
                rest = after;
            } else if let Some((class, after)) = unicode_class(rest)? {
                written.push_str(&class);
                rest = after;
            } else if let Some(class) = perl_class(rest) {
                written.push_str(class);
                rest = &rest[2..];
            } else {
                let (range, after) = range(rest, whole)?;
                written.push_str(&range);
                rest = after;
            }
        }
        written.push(']');
        self.rest = &rest[1..];
        self.operand(&written);
        Ok(())
    }
}

/// A character that is nothing but itself, inside and outside of brackets.
fn number(character: char) -> String {
    format!("\\x{{{:X}}}", character as u32)
}

/// One character or a range of them within brackets.
fn range<'a>(from: &'a str, whole: &str) -> Result<(String, &'a str), String> {
    let (low, rest) = class_character(from, whole)?;
    if !rest.starts_with('-') || rest.len() < 2 || rest.starts_with("-]") {
        return Ok((number(low), rest));
    }
    let (high, rest) = class_character(&rest[1..], whole)?;
    if high < low {
        return Err(error("invalid character class range", read(from, rest)));
    }
    Ok((format!("{}-{}", number(low), number(high)), rest))
}

fn class_character<'a>(text: &'a str, whole: &str) -> Result<(char, &'a str), String> {
    match text.chars().next() {
        None => Err(error("missing closing ]", whole)),
        Some('\\') => escaped(text),
        Some(character) => Ok((character, &text[character.len_utf8()..])),
    }
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

/// `\d`, `\s`, `\w` and their opposites, as they are written within brackets. All of them are ASCII.
fn perl_class(text: &str) -> Option<&'static str> {
    Some(match text.get(..2)? {
        r"\d" => "0-9",
        r"\D" => "[^0-9]",
        r"\s" => r"\t\n\f\r\x20",
        r"\S" => r"[^\t\n\f\r\x20]",
        r"\w" => "0-9A-Za-z_",
        r"\W" => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// `[:alpha:]` and its like, which exist only within brackets.
fn named_class(text: &str) -> Result<Option<(&str, &str)>, String> {
    let Some(end) = text.strip_prefix("[:").and_then(|rest| rest.find(":]")) else {
        return Ok(None);
    };
    let (class, rest) = text.split_at(end + 4);
    let name = class[2..end + 2].trim_start_matches('^');
    let is_known = matches!(
        name,
        "alnum"
            | "alpha"
            | "ascii"
            | "blank"
            | "cntrl"
            | "digit"
            | "graph"
            | "lower"
            | "print"
            | "punct"
            | "space"
            | "upper"
            | "word"
            | "xdigit"
    );
    if is_known && !class.starts_with("[:^^") {
        Ok(Some((class, rest)))
    } else {
        Err(error("invalid character class range", class))
    }
}

/// `\pL`, `\p{Greek}`, `\P{^Lu}`.
fn unicode_class(text: &str) -> Result<Option<(String, &str)>, String> {
    let Some(body) = text.strip_prefix(r"\p").or_else(|| text.strip_prefix(r"\P")) else {
        return Ok(None);
    };
    let first = body.chars().next();
    let first = first.ok_or_else(|| error("invalid character class range", text))?;
    let (name, rest) = if first == '{' {
        body[1..]
            .split_once('}')
            .ok_or_else(|| error("invalid character class range", text))?
    } else {
        body.split_at(first.len_utf8())
    };
    let is_negated = text.starts_with(r"\P") != name.starts_with('^');
    let name = name.trim_start_matches('^');
    let set = match name {
        "Any" => r"\x{0}-\x{10FFFF}".to_owned(),
        // Code points without a character are in no category of Go's.
        "C" => r"\p{Cc}\p{Cf}\p{Co}".to_owned(),
        // Of Unicode 15.0, as Go has it up to 1.26.
        _ if is_category(name) => format!(r"[\p{{{name}}}&&\p{{age:15.0}}]"),
        _ if is_script(name) => format!(r"[\p{{Script={name}}}&&\p{{age:15.0}}]"),
        _ => return Err(error("invalid character class range", read(text, rest))),
    };
    Ok(Some((format!("[{}{set}]", if is_negated { "^" } else { "" }), rest)))
}

fn is_script(name: &str) -> bool {
    let is_name = name.len() > 2 && name.starts_with(|first: char| first.is_ascii_uppercase());
    is_name && Regex::new(&format!(r"\p{{Script={name}}}")).is_ok()
}

fn is_category(name: &str) -> bool {
    let minor = match name.chars().next() {
        Some('C') => "cfo",
        Some('L') => "lmotu",
        Some('M') => "cen",
        Some('N') => "dlo",
        Some('P') => "cdefios",
        Some('S') => "ckmo",
        Some('Z') => "lps",
        _ => return false,
    };
    name.len() == 1 || (name.len() == 2 && minor.contains(&name[1..]))
}
