//! `.helmignore`: which files of a chart's directory belong to no chart. Knows names only.

use regex::Regex;

/// A pattern that Helm does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// `**` is not supported by Helm.
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    /// A bracket expression or an escape without an end.
    #[error("syntax error in pattern")]
    Syntax(String),
}

/// The rules of one `.helmignore` with Helm's default rule.
pub struct IgnoreRules(Vec<Rule>);

struct Rule {
    /// Nothing where only the line as a whole is well formed: it matches no path.
    pattern: Option<Regex>,
    /// `!`: the rule hits what it does not match.
    negated: bool,
    directories_only: bool,
    scope: Scope,
}

enum Scope {
    /// Matches the last part of a path.
    Base,
    /// Matches the whole path.
    Path,
}

impl IgnoreRules {
    /// Reads the text of a `.helmignore`.
    pub fn parse(text: &[u8]) -> Result<Self, IgnoreError> {
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}');
        let mut rules = Vec::new();
        for line in text.lines() {
            rules.extend(Rule::parse(line)?);
        }
        rules.extend(Rule::parse("templates/.?*")?);
        Ok(Self(rules))
    }

    /// Whether a file is left out, by its own name or by that of a directory above it.
    pub(super) fn ignore(&self, file: &str) -> bool {
        let directories = file.match_indices('/').map(|(end, _)| &file[..end]);
        directories.into_iter().any(|directory| self.ignores(directory, true)) || self.ignores(file, false)
    }

    /// Whether a rule is about that path, from the chart on with `/`. What lies in a directory that is left out is left out too, whatever
    /// the rules say about it.
    pub fn ignores(&self, path: &str, is_directory: bool) -> bool {
        self.0.iter().any(|rule| {
            if rule.negated {
                (rule.directories_only && !is_directory) || !rule.matches(path)
            } else {
                (!rule.directories_only || is_directory) && rule.matches(path)
            }
        })
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Option<Self>, IgnoreError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.contains("**") {
            return Err(IgnoreError::DoubleStar);
        }
        compile(line).ok_or_else(|| IgnoreError::Syntax(line.to_owned()))?;
        let (negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (directories_only, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let (scope, pattern) = match line.strip_prefix('/') {
            Some(rooted) => (Scope::Path, rooted),
            None if line.contains('/') => (Scope::Path, line),
            None => (Scope::Base, line),
        };
        Ok(Some(Self {
            pattern: compile(pattern),
            negated,
            directories_only,
            scope,
        }))
    }

    fn matches(&self, path: &str) -> bool {
        let name = match self.scope {
            Scope::Path => path,
            Scope::Base => path.rsplit('/').next().unwrap_or(path),
        };
        self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(name))
    }
}

/// Go's `filepath.Match`; nothing for a pattern that is malformed.
pub(crate) fn matches_whole(pattern: &str, name: &str) -> Option<bool> {
    Some(compile(pattern)?.is_match(name))
}

/// What Go's `filepath.Match` matches; nothing for a pattern that is malformed.
fn compile(pattern: &str) -> Option<Regex> {
    let mut regex = String::from("(?s)^");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '\\' => regex.push_str(&regex::escape(&characters.next()?.to_string())),
            '[' => {
                let negated = characters.next_if_eq(&'^').is_some();
                regex.push_str(if negated { "[^" } else { "[" });
                let mut ranges = 0;
                while ranges == 0 || characters.peek() != Some(&']') {
                    regex.push_str(&class_member(&mut characters)?);
                    if characters.next_if_eq(&'-').is_some() {
                        regex.push('-');
                        regex.push_str(&class_member(&mut characters)?);
                    }
                    ranges += 1;
                }
                characters.next();
                regex.push(']');
            }
            literal => regex.push_str(&regex::escape(&literal.to_string())),
        }
    }
    regex.push('$');
    Regex::new(&regex).ok()
}

fn class_member(characters: &mut impl Iterator<Item = char>) -> Option<String> {
    let character = match characters.next()? {
        '\\' => characters.next()?,
        '-' | ']' => return None,
        character => character,
    };
    Some(regex::escape(&character.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_hit_the_files_that_helm_leaves_out() {
        for (rules, file, ignored) in [
            ("", "templates/.hidden", true),
            ("", "templates/a.yaml", false),
            ("*.txt", "a/b.txt", true),
            ("*.txt", "b.txt", true),
            ("/*.txt", "a/b.txt", false),
            ("/*.txt", "b.txt", true),
            ("a/", "a/b.txt", true),
            ("a/", "a", false),
            ("a/*.txt", "a/b.txt", true),
            ("a/*.txt", "a/c/b.txt", false),
            ("b?[a-c].txt", "b1c.txt", true),
            ("b?[^a-c].txt", "b1c.txt", false),
            ("# comment\n\n.git", ".git/config", true),
            ("!*.yaml", "notes.md", true),
        ] {
            assert_eq!(
                IgnoreRules::parse(rules.as_bytes()).unwrap().ignore(file),
                ignored,
                "{rules:?} {file}"
            );
        }
    }

    #[test]
    fn double_stars_and_broken_brackets_are_refused() {
        assert_eq!(IgnoreRules::parse(b"a/**").err(), Some(IgnoreError::DoubleStar));
        assert!(matches!(IgnoreRules::parse(b"[a").err(), Some(IgnoreError::Syntax(_))));
    }
}
