//! Flags as Helm reads them: the rules and the words of Go's pflag. Which flags there are is a table; what they mean is not known here.

use std::collections::HashMap;

/// What a flag takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, or `=true` and its like.
    Switch,
    /// One argument; the last one counts.
    Text,
    /// One argument, or none and then this one.
    TextOr(&'static str),
    /// One argument each time.
    Texts,
    /// A line of comma-separated values each time.
    List,
}

/// One flag.
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
}

/// What was given.
#[derive(Default)]
pub(crate) struct Given {
    /// Everything that is no flag.
    pub(crate) words: Vec<String>,
    flags: HashMap<&'static str, Vec<String>>,
}

impl Given {
    /// Reads words. The error is pflag's text.
    pub(crate) fn read(table: &'static [Flag], words: Vec<String>) -> Result<Self, String> {
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
        table: &'static [Flag],
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
        self.set(flag, argument)
    }

    fn read_letters(
        &mut self,
        table: &'static [Flag],
        letters: &str,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), String> {
        let mut left = letters;
        while let Some(letter) = left.chars().next() {
            let after = &left[letter.len_utf8()..];
            let flag = table.iter().find(|flag| flag.short == Some(letter));
            let flag = flag.ok_or_else(|| format!("unknown shorthand flag: {letter:?} in -{left}"))?;
            let argument = if let Some(argument) = after.strip_prefix('=').filter(|argument| !argument.is_empty()) {
                left = "";
                argument.to_owned()
            } else if let Some(default) = flag.default() {
                left = after;
                default.to_owned()
            } else if after.is_empty() {
                let argument = rest.next();
                let argument = argument.ok_or_else(|| format!("flag needs an argument: {letter:?} in -{left}"))?;
                left = "";
                argument
            } else {
                left = "";
                after.to_owned()
            };
            self.set(flag, argument)?;
        }
        Ok(())
    }

    fn set(&mut self, flag: &'static Flag, argument: String) -> Result<(), String> {
        let all = self.flags.entry(flag.name).or_default();
        match flag.kind {
            Kind::Switch => match argument.as_str() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => all.push("true".to_owned()),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => all.push("false".to_owned()),
                _ => {
                    return Err(format!(
                        "invalid argument {argument:?} for {:?} flag: strconv.ParseBool: parsing {argument:?}: invalid syntax",
                        flag.title()
                    ));
                }
            },
            Kind::Text | Kind::TextOr(_) | Kind::Texts => all.push(argument),
            Kind::List => all.extend(argument.split(',').filter(|_| !argument.is_empty()).map(str::to_owned)),
        }
        Ok(())
    }
}

impl Flag {
    /// What it stands for without an argument.
    fn default(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Switch => Some("true"),
            Kind::TextOr(default) => Some(default),
            Kind::Text | Kind::Texts | Kind::List => None,
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
