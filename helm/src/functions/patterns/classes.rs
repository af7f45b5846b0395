//! Classes of characters in Go's regular expressions, as the crate `regex` writes them.

use regex::Regex;

use super::escapes::escaped;
use super::{error, number, read};

/// A class between brackets, which stand first in a text, and what follows it.
pub(super) fn bracketed(whole: &str) -> Result<(String, &str), String> {
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
    Ok((written, &rest[1..]))
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

/// `\d`, `\s`, `\w` and their opposites, as they are written within brackets. All of them are ASCII.
pub(super) fn perl_class(text: &str) -> Option<&'static str> {
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
pub(super) fn unicode_class(text: &str) -> Result<Option<(String, &str)>, String> {
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
