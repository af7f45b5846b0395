//! `.helmignore`: which files of a chart directory are not part of the chart.
//!
//! The rules are Helm's, which are those of `filepath.Match` and not those of git: no `**`, and a pattern with `!` ignores everything that it
//! does not match.

/// The patterns of one chart, in their order.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    glob: String,
    negated: bool,
    only_directories: bool,
    /// Compared with the path from the chart's directory; other patterns with the last part of it.
    whole_path: bool,
}

impl IgnoreRules {
    /// Reads the text of a `.helmignore`. The error is the line (from 1) and the pattern that Helm would refuse.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let rules = text.lines().enumerate().filter_map(|(index, line)| {
            let line = line.trim();
            let rule = (!line.is_empty() && !line.starts_with('#')).then(|| Rule::parse(line))?;
            Some(rule.ok_or_else(|| (index + 1, line.to_owned())))
        });
        rules.collect::<Result<_, _>>().map(Self)
    }

    /// Whether this file of the chart, a path with `/`, or a directory that it is in, is ignored.
    pub(super) fn ignore(&self, path: &str) -> bool {
        let directories = path.match_indices('/').map(|(end, _)| (&path[..end], true));
        directories
            .chain([(path, false)])
            .any(|(path, directory)| hidden_template(path) || self.matches(path, directory))
    }

    fn matches(&self, path: &str, directory: bool) -> bool {
        for Rule {
            glob,
            negated,
            only_directories,
            whole_path,
        } in &self.0
        {
            let subject = if *whole_path {
                path
            } else {
                path.rsplit('/').next().unwrap_or(path)
            };
            let matched = (directory || !only_directories) && glob_matches(glob, subject);
            if matched != *negated {
                return true;
            }
        }
        false
    }
}

/// Helm's own first rule, `templates/.?*`.
fn hidden_template(path: &str) -> bool {
    path.strip_prefix("templates/.")
        .is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        let (negated, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
        let (only_directories, line) = line.strip_suffix('/').map_or((false, line), |line| (true, line));
        let glob = line.strip_prefix('/').unwrap_or(line);
        let valid = !line.contains("**") && is_glob(glob);
        valid.then(|| Self {
            glob: glob.to_owned(),
            negated,
            only_directories,
            whole_path: line.contains('/'),
        })
    }
}

/// One element of a pattern.
enum Element<'glob> {
    Star,
    Any,
    Class { negated: bool, ranges: &'glob str },
    Literal(char),
}

/// The first element and the rest; nothing for a malformed pattern.
fn element(glob: &str) -> Option<(Element<'_>, &str)> {
    let mut characters = glob.chars();
    let element = match characters.next()? {
        '*' => Element::Star,
        '?' => Element::Any,
        '\\' => Element::Literal(characters.next()?),
        '[' => {
            let inner = characters.as_str();
            let (negated, inner) = inner.strip_prefix('^').map_or((false, inner), |inner| (true, inner));
            let (ranges, rest) = inner.split_once(']')?;
            return (!ranges.is_empty()).then_some((Element::Class { negated, ranges }, rest));
        }
        character => Element::Literal(character),
    };
    Some((element, characters.as_str()))
}

fn is_glob(mut glob: &str) -> bool {
    while !glob.is_empty() {
        match element(glob) {
            Some((_, rest)) => glob = rest,
            None => return false,
        }
    }
    true
}

fn glob_matches(glob: &str, text: &str) -> bool {
    let Some((element, rest)) = element(glob) else {
        return text.is_empty();
    };
    let mut characters = text.chars();
    if let Element::Star = element {
        let reach = text.find('/').unwrap_or(text.len());
        return text[..reach]
            .char_indices()
            .map(|(start, _)| start)
            .chain([reach])
            .any(|start| glob_matches(rest, &text[start..]));
    }
    let Some(character) = characters.next() else {
        return false;
    };
    let matched = match element {
        Element::Literal(literal) => character == literal,
        Element::Class { negated, ranges } => character != '/' && in_ranges(ranges, character) != negated,
        Element::Any | Element::Star => character != '/',
    };
    matched && glob_matches(rest, characters.as_str())
}

/// `a-cx` has a to c and x.
fn in_ranges(ranges: &str, character: char) -> bool {
    let mut characters = ranges.chars().peekable();
    while let Some(low) = characters.next() {
        let high = if characters.next_if_eq(&'-').is_some() {
            characters.next().unwrap_or(low)
        } else {
            low
        };
        if (low..=high).contains(&character) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_ignore_what_helm_ignores() {
        let text = "# names\n*.swp\n.git/\n/root.txt\nsub/[a-c]?.md\n\\#odd\ntests/*.yaml\n[^a-c]*.json\n";
        let rules = IgnoreRules::parse(text).unwrap();
        for path in [
            "a.swp",
            "deep/a.swp",
            ".git/config",
            "deep/.git/a/b",
            "root.txt",
            "sub/ax.md",
            "templates/.hidden",
            "#odd",
            "tests/a.yaml",
            "deep/d.json",
        ] {
            assert!(rules.ignore(path), "{path}");
        }
        for path in [
            "a.swpx",
            ".git",
            "deep/root.txt",
            "sub/dx.md",
            "sub/a.md",
            "deep/sub/ax.md",
            "templates/a",
            ".helmignore",
            "tests/deep/a.yaml",
            "deep/a.json",
        ] {
            assert!(!rules.ignore(path), "{path}");
        }
    }

    #[test]
    fn negated_pattern_ignores_everything_else() {
        let rules = IgnoreRules::parse("!*.yaml\n").unwrap();
        assert!(rules.ignore("README"));
        assert!(!rules.ignore("values.yaml"));
    }

    #[test]
    fn pattern_that_helm_refuses_is_told_with_its_line() {
        assert_eq!(IgnoreRules::parse("a\n\n**/b\n").unwrap_err(), (3, "**/b".to_owned()));
        assert_eq!(IgnoreRules::parse("[a\n").unwrap_err(), (1, "[a".to_owned()));
    }
}
