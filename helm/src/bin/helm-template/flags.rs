//! Flags as Helm reads them: the rules and the words of Go's pflag. Which flags there are is a table; what they mean is not known here.

use std::collections::HashMap;

use crate::kinds;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, or `=true` and its like.
    Switch,
    /// One argument; the last one counts.
    Text,
    /// One argument behind `=`, or none and then this one.
    TextOr(&'static str),
    /// One whole number.
    Integer,
    /// One number.
    Float,
    /// One duration, as `5m30s`.
    Duration,
    /// What to wait for, behind `=`, or nothing.
    Wait,
    /// One argument each time.
    Texts,
    /// Comma-separated values each time.
    List,
    /// Comma-separated `key=value` each time.
    Pairs,
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
    /// What to use instead of it.
    pub(crate) deprecated: Option<&'static str>,
}

/// What was given.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Everything that is no flag.
    pub(crate) words: Vec<String>,
    /// What is said of flags on the error output.
    pub(crate) warnings: Vec<String>,
    flags: HashMap<&'static str, Vec<String>>,
}

impl Given {
    /// Reads words. The error is pflag's text.
    pub(crate) fn read(table: &[Flag], words: Vec<String>) -> Result<Self, String> {
        let mut given = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if word == "--" {
                given.words.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                given.read_long(table, &word, long, &mut words)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                given.read_letters(table, letters, &mut words)?;
            } else {
                given.words.push(word);
            }
        }
        Ok(given)
    }

    /// Whether a flag was given at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.flags.contains_key(name)
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// The last argument of a flag.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.flags.get(name)?.last().map(String::as_str)
    }

    /// All arguments of a flag, in the order given.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.flags.get(name).cloned().unwrap_or_default()
    }

    fn read_long(
        &mut self,
        table: &[Flag],
        word: &str,
        long: &str,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), String> {
        if long.starts_with(['-', '=']) {
            return Err(format!("bad flag syntax: {word}"));
        }
        let (name, argument) = match long.split_once('=') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (long, None),
        };
        let flag = table.iter().find(|flag| flag.name == name);
        let flag = flag.ok_or_else(|| format!("unknown flag: --{name}"))?;
        let argument = argument
            .or_else(|| flag.default().map(str::to_owned))
            .or_else(|| rest.next())
            .ok_or_else(|| format!("flag needs an argument: {word}"))?;
        self.set(flag, &argument)
    }

    fn read_letters(
        &mut self,
        table: &[Flag],
        letters: &str,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), String> {
        let mut left = letters;
        while let Some(letter) = left.chars().next() {
            let after = &left[letter.len_utf8()..];
            let flag = table.iter().find(|flag| flag.short == Some(letter));
            let flag = flag.ok_or_else(|| format!("unknown shorthand flag: {letter:?} in -{left}"))?;
            let written = after.strip_prefix('=').filter(|argument| !argument.is_empty());
            let argument = match (written, flag.default()) {
                (Some(argument), _) => argument.to_owned(),
                (None, Some(default)) => {
                    self.set(flag, default)?;
                    left = after;
                    continue;
                }
                (None, None) if after.is_empty() => rest
                    .next()
                    .ok_or_else(|| format!("flag needs an argument: {letter:?} in -{left}"))?,
                (None, None) => after.to_owned(),
            };
            return self.set(flag, &argument);
        }
        Ok(())
    }

    fn set(&mut self, flag: &Flag, argument: &str) -> Result<(), String> {
        let refused = |problem: String| format!("invalid argument {argument:?} for {:?} flag: {problem}", flag.title());
        let one = |checked: Result<(), String>| checked.map(|()| vec![argument.to_owned()]);
        let parts = match flag.kind {
            Kind::Switch => vec![kinds::truth(argument).map_err(refused)?.to_owned()],
            Kind::Integer => one(kinds::integer(argument)).map_err(refused)?,
            Kind::Float => one(kinds::float(argument)).map_err(refused)?,
            Kind::Duration => one(kinds::duration(argument)).map_err(refused)?,
            Kind::Wait => {
                self.warnings.extend(kinds::wait(argument).map_err(refused)?);
                one(Ok(()))?
            }
            Kind::Text | Kind::TextOr(_) | Kind::Texts => vec![argument.to_owned()],
            Kind::List => fields(argument).map_err(refused)?,
            Kind::Pairs => pairs(argument).map_err(refused)?,
        };
        self.flags.entry(flag.name).or_default().extend(parts);
        let warning = |instead| format!("Flag --{} has been deprecated, {instead}", flag.name);
        self.warnings.extend(flag.deprecated.map(warning));
        Ok(())
    }
}

impl Flag {
    /// What it stands for without an argument.
    fn default(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Switch => Some("true"),
            Kind::TextOr(default) => Some(default),
            Kind::Wait => Some("watcher"),
            _ => None,
        }
    }

    /// As pflag names it in errors.
    fn title(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}, --{}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

/// Pairs of keys and values; a comma belongs to the value where there is only one pair.
fn pairs(argument: &str) -> Result<Vec<String>, String> {
    let pairs = match argument.matches('=').count() {
        0 | 1 => vec![argument.to_owned()],
        _ => fields(argument)?,
    };
    match pairs.iter().find(|pair| !pair.contains('=')) {
        Some(pair) => Err(format!("{pair} must be formatted as key=value")),
        None => Ok(pairs),
    }
}

/// The fields of the first line of comma-separated values, where quotes protect commas.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut left = line.lines().find(|line| !line.is_empty());
    while let Some(text) = left {
        let column = line.len() - text.len();
        if let Some(quoted) = text.strip_prefix('"') {
            let (field, rest) = quoted_field(quoted).ok_or_else(|| {
                format!(
                    "parse error on line 1, column {}: extraneous or missing \" in quoted-field",
                    line.len() + 1
                )
            })?;
            fields.push(field);
            left = rest.strip_prefix(',');
            continue;
        }
        let (field, rest) = text
            .split_once(',')
            .map_or((text, None), |(field, rest)| (field, Some(rest)));
        if let Some(quote) = field.find('"') {
            let column = column + quote + 1;
            return Err(format!(
                "parse error on line 1, column {column}: bare \" in non-quoted-field"
            ));
        }
        fields.push(field.to_owned());
        left = rest;
    }
    Ok(fields)
}

/// A field up to its closing quote, with what follows; two quotes are one within.
fn quoted_field(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut left = text;
    loop {
        let (part, rest) = left.split_once('"')?;
        field.push_str(part);
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                left = more;
            }
            None if rest.is_empty() || rest.starts_with(',') => return Some((field, rest)),
            None => return None,
        }
    }
}
