//! `.helmignore`: which files of a chart's directory belong to no chart. Knows names only.

use std::cell::Cell;

use super::wildcards::{Pattern, Steps};

/// The largest file in bytes. Real ones have a few hundred.
const MAX_TEXT: u64 = 1 << 20;

/// The most rules. Real charts have some tens.
const MAX_RULES: usize = 10_000;

/// How many steps all comparisons of paths with rules may take together, far more than real charts need.
const MAX_STEPS: u64 = 50_000_000;

/// A pattern that Helm does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// `**` is not supported by Helm.
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    /// A bracket expression or an escape without an end.
    #[error("syntax error in pattern")]
    Syntax(String),
    /// More rules than any chart has.
    #[error(".helmignore has more than {MAX_RULES} rules")]
    TooMany,
    /// The rules take too long to compare with the paths of the chart.
    #[error("the rules of .helmignore take more than {MAX_STEPS} steps to compare")]
    TooSlow,
    /// A file that is too large.
    #[error(".helmignore is larger than {MAX_TEXT} bytes")]
    TooLarge,
}

impl IgnoreError {
    /// Whether it is a limit that Helm does not have.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooMany | Self::TooSlow | Self::TooLarge)
    }
}

/// The rules of one `.helmignore` with Helm's default rule.
pub struct IgnoreRules {
    rules: Vec<Rule>,
    /// Those that are left.
    steps: Cell<Steps>,
}

struct Rule {
    /// Nothing where only the line as a whole is well formed: it matches no path.
    pattern: Option<Pattern>,
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
    /// How many bytes of a file need be read to know that it is too large.
    pub const MAX_READ: u64 = MAX_TEXT + 1;

    /// Reads the text of a `.helmignore`.
    pub fn parse(text: &[u8]) -> Result<Self, IgnoreError> {
        if text.len() as u64 > MAX_TEXT {
            return Err(IgnoreError::TooLarge);
        }
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}');
        let mut rules = Vec::new();
        for line in text.lines() {
            rules.extend(Rule::parse(line)?);
            if rules.len() > MAX_RULES {
                return Err(IgnoreError::TooMany);
            }
        }
        rules.extend(Rule::parse("templates/.?*")?);
        Ok(Self {
            rules,
            steps: Cell::new(Steps(MAX_STEPS)),
        })
    }

    /// Whether a file is left out, by its own name or by that of a directory above it.
    pub(super) fn ignore(&self, file: &str) -> Result<bool, IgnoreError> {
        for (end, _) in file.match_indices('/') {
            if self.ignores(&file[..end], true)? {
                return Ok(true);
            }
        }
        self.ignores(file, false)
    }

    /// Whether a rule is about that path, from the chart on with `/`. What lies in a directory that is left out is left out too, whatever
    /// the rules say about it.
    pub fn ignores(&self, path: &str, is_directory: bool) -> Result<bool, IgnoreError> {
        let mut steps = self.steps.get();
        let is_hit = self.rules.iter().any(|rule| {
            let is_passed_over = rule.directories_only && !is_directory;
            if rule.negated {
                is_passed_over || !rule.matches(path, &mut steps)
            } else {
                !is_passed_over && rule.matches(path, &mut steps)
            }
        });
        self.steps.set(steps);
        if steps.0 == 0 {
            return Err(IgnoreError::TooSlow);
        }
        Ok(is_hit)
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
        Pattern::new(line).ok_or_else(|| IgnoreError::Syntax(line.to_owned()))?;
        let (negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (directories_only, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let (scope, pattern) = match line.strip_prefix('/') {
            Some(rooted) => (Scope::Path, rooted),
            None if line.contains('/') => (Scope::Path, line),
            None => (Scope::Base, line),
        };
        Ok(Some(Self {
            pattern: Pattern::new(pattern),
            negated,
            directories_only,
            scope,
        }))
    }

    fn matches(&self, path: &str, steps: &mut Steps) -> bool {
        let name = match self.scope {
            Scope::Path => path,
            Scope::Base => path.rsplit('/').next().unwrap_or(path),
        };
        self.pattern
            .as_ref()
            .is_some_and(|pattern| pattern.matches(name, steps))
    }
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
                Ok(ignored),
                "{rules:?} {file}"
            );
        }
    }

    #[test]
    fn rules_that_would_never_end_are_refused() {
        let rules = "*a*a*a*a*a*a*a*a*b\n".repeat(MAX_RULES - 1);
        let rules = IgnoreRules::parse(rules.as_bytes()).unwrap();
        let name = "a".repeat(250);
        let first = (0..1_000).find_map(|_| rules.ignores(&name, false).err());
        assert_eq!(first, Some(IgnoreError::TooSlow));
        let rules = "a\n".repeat(MAX_RULES + 1);
        assert_eq!(IgnoreRules::parse(rules.as_bytes()).err(), Some(IgnoreError::TooMany));
    }

    #[test]
    fn double_stars_and_broken_brackets_are_refused() {
        assert_eq!(IgnoreRules::parse(b"a/**").err(), Some(IgnoreError::DoubleStar));
        assert!(matches!(IgnoreRules::parse(b"[a").err(), Some(IgnoreError::Syntax(_))));
    }
}
