//! Named formats of strings. They count in drafts 4 to 7 and in metaschemas; newer drafts only note them.

mod network;
mod time;

use super::SchemaRules;
use super::document::Json;
use super::keywords::Pattern;
use crate::format::quote_char;

/// A format that a string may have to follow.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) name: &'static str,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Same(fn(&str) -> Result<(), String>),
    /// Versions of Helm differ.
    ByRules(fn(&str, SchemaRules) -> Result<(), String>),
}

impl Format {
    /// What keeps a value from following the format, in Helm's words. Only strings have formats.
    pub(super) fn problem(&self, value: &Json, rules: SchemaRules) -> Option<String> {
        let text = value.as_text()?;
        let checked = match self.check {
            Check::Same(check) => check(text),
            Check::ByRules(check) => check(text, rules),
        };
        checked.err()
    }
}

const FORMATS: &[Format] = &[
    format("date", time::date),
    format("date-time", time::date_time),
    format("duration", time::duration),
    by_rules("email", network::email),
    format("hostname", network::host_name),
    format("ipv4", network::ipv4),
    format("ipv6", network::ipv6),
    by_rules("iri", network::uri),
    by_rules("iri-reference", network::uri_reference),
    format("json-pointer", json_pointer),
    format("period", time::period),
    format("regex", regex),
    format("relative-json-pointer", relative_json_pointer),
    format("semver", semver),
    format("time", time::time),
    by_rules("uri", network::uri),
    by_rules("uri-reference", network::uri_reference),
    by_rules("uri-template", network::uri_template),
    format("uuid", uuid),
];

const fn format(name: &'static str, check: fn(&str) -> Result<(), String>) -> Format {
    Format {
        name,
        check: Check::Same(check),
    }
}

const fn by_rules(name: &'static str, check: fn(&str, SchemaRules) -> Result<(), String>) -> Format {
    Format {
        name,
        check: Check::ByRules(check),
    }
}

/// Other names mean nothing.
pub(super) fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

fn refuse(problem: &str) -> Result<(), String> {
    Err(problem.to_owned())
}

/// How many decimal digits a text begins with.
fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn regex(text: &str) -> Result<(), String> {
    Pattern::parse(text).map(|_| ())
}

fn json_pointer(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    if !text.starts_with('/') {
        return refuse("not starting with /");
    }
    // Every tilde begins an escape, also the one that would end another.
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('~') {
        let Some(escaped) = after.strip_prefix(['0', '1']) else {
            return refuse("~ must be followed by 0 or 1");
        };
        rest = escaped;
    }
    Ok(())
}

fn relative_json_pointer(text: &str) -> Result<(), String> {
    let digits = leading_digits(text);
    if digits == 0 {
        return refuse("must start with non-negative integer");
    }
    if digits > 1 && text.starts_with('0') {
        return refuse("starts with zero");
    }
    match &text[digits..] {
        "#" => Ok(()),
        pointer => json_pointer(pointer),
    }
}

fn uuid(text: &str) -> Result<(), String> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    if groups.len() != LENGTHS.len() {
        return refuse("must have 5 elements");
    }
    for (index, (group, length)) in groups.iter().zip(LENGTHS).enumerate() {
        if group.len() != length {
            return Err(format!("element {} must be {length} characters long", index + 1));
        }
        if let Some(other) = group.chars().find(|character| !character.is_ascii_hexdigit()) {
            return Err(format!("non-hex character {}", quote_char(other)));
        }
    }
    Ok(())
}

fn semver(text: &str) -> Result<(), String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let checked = |parts: &str, name: &str| -> Result<(), String> {
        for part in parts.split('.') {
            if part.is_empty() {
                return Err(format!("{name} identifier is empty"));
            }
            if let Some(other) = part.chars().find(|character| !is_part(*character)) {
                return Err(format!("invalid character {} in {name} identifier", quote_char(other)));
            }
        }
        Ok(())
    };
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(text, build)| (text, Some(build)));
    match build {
        Some("") => return refuse("build is empty"),
        Some(build) => checked(build, "build")?,
        None => {}
    }
    let (text, release) = text
        .split_once('-')
        .map_or((text, None), |(text, release)| (text, Some(release)));
    if let Some(release) = release {
        checked(release, "pre-release")?;
        let has_zero = |part: &str| part.len() > 1 && part.starts_with('0') && leading_digits(part) == part.len();
        if release.split('.').any(has_zero) {
            return refuse("pre-release numeric identifier starts with zero");
        }
    }
    let numbers: Vec<&str> = text.split('.').collect();
    if numbers.len() != 3 {
        return refuse("versionCore must have 3 numbers separated by dot");
    }
    for (name, number) in ["major", "minor", "patch"].into_iter().zip(numbers) {
        let problem = match number {
            "" => "is empty",
            _ if number.len() > 1 && number.starts_with('0') => "starts with zero",
            _ if leading_digits(number) < number.len() => "contains non-digit",
            _ => continue,
        };
        return Err(format!("{name} {problem}"));
    }
    Ok(())
}
