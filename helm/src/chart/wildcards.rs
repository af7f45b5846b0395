//! The patterns of Go's `filepath.Match`, which `.helmignore` and `--show-only` have: `*` and `?` stop at slashes, and sets in brackets.

/// A pattern that is well formed.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(String);

/// How many characters may still be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps(pub(crate) u64);

impl Steps {
    /// Whether one was left.
    fn take(&mut self) -> bool {
        let one_less = self.0.checked_sub(1);
        self.0 = one_less.unwrap_or_default();
        one_less.is_some()
    }
}

impl Pattern {
    /// Nothing for a pattern that is malformed.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let mut rest = pattern;
        while !rest.is_empty() {
            rest = Item::first(rest)?.rest;
        }
        Some(Self(pattern.to_owned()))
    }

    /// Whether a whole name fits, and can be seen to fit with the steps that are left.
    pub(crate) fn matches(&self, name: &str, steps: &mut Steps) -> bool {
        let (mut pattern, mut name) = (self.0.as_str(), name);
        // Behind the last star, and what it has left.
        let mut star: Option<(&str, &str)> = None;
        while steps.take() {
            let mut characters = name.chars();
            match (Item::first(pattern), characters.next()) {
                (None, None) => return true,
                (Some(Item { kind: Kind::Star, rest }), _) => {
                    star = Some((rest, name));
                    pattern = rest;
                    continue;
                }
                (Some(Item { kind, rest }), Some(character)) if kind.fits(character) => {
                    pattern = rest;
                    name = characters.as_str();
                    continue;
                }
                _ => {}
            }
            let Some((behind, left)) = star.as_mut() else {
                return false;
            };
            let mut characters = left.chars();
            if characters.next().is_none_or(|taken| taken == '/') {
                return false;
            }
            *left = characters.as_str();
            (pattern, name) = (behind, left);
        }
        false
    }
}

/// The first item of a pattern, and what stands behind it.
struct Item<'p> {
    kind: Kind<'p>,
    rest: &'p str,
}

enum Kind<'p> {
    Star,
    AnyCharacter,
    Character(char),
    /// Ranges as written, up to the bracket.
    Set {
        ranges: &'p str,
        is_negated: bool,
    },
}

impl<'p> Item<'p> {
    /// Nothing at the end of a pattern, and where it is malformed.
    fn first(pattern: &'p str) -> Option<Self> {
        let mut characters = pattern.chars();
        let kind = match characters.next()? {
            '*' => Kind::Star,
            '?' => Kind::AnyCharacter,
            '\\' => Kind::Character(characters.next()?),
            '[' => {
                let written = characters.as_str();
                let ranges = written.strip_prefix('^').unwrap_or(written);
                let mut rest = range(ranges)?.1;
                while !rest.starts_with(']') {
                    rest = range(rest)?.1;
                }
                characters = rest[1..].chars();
                Kind::Set {
                    ranges: &ranges[..ranges.len() - rest.len()],
                    is_negated: ranges.len() < written.len(),
                }
            }
            literal => Kind::Character(literal),
        };
        Some(Self {
            kind,
            rest: characters.as_str(),
        })
    }
}

impl Kind<'_> {
    fn fits(&self, character: char) -> bool {
        match self {
            Self::Star => false,
            Self::AnyCharacter => character != '/',
            Self::Character(literal) => *literal == character,
            Self::Set { ranges, is_negated } => {
                let mut rest = *ranges;
                let all = std::iter::from_fn(|| {
                    let (range, behind) = range(rest)?;
                    rest = behind;
                    Some(range)
                });
                all.into_iter().any(|(low, high)| (low..=high).contains(&character)) != *is_negated
            }
        }
    }
}

/// The first range, one character or two with a hyphen between them, and what stands behind it.
fn range(text: &str) -> Option<((char, char), &str)> {
    let (low, rest) = end_of_range(text)?;
    match rest.strip_prefix('-') {
        None => Some(((low, low), rest)),
        Some(rest) => {
            let (high, rest) = end_of_range(rest)?;
            Some(((low, high), rest))
        }
    }
}

fn end_of_range(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    let character = match characters.next()? {
        '\\' => characters.next()?,
        '-' | ']' => return None,
        character => character,
    };
    Some((character, characters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names_as_in_go() {
        // From the documentation of `filepath.Match`, and tried with it.
        for (pattern, name, fits) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a/b", false),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a?c", "aéc", true),
            ("a?c", "a/c", false),
            ("[a-c]*", "b/", false),
            ("[a-c]?", "bx", true),
            ("[^a-c]", "/", true),
            ("[c-a]", "b", false),
            ("[\\]a]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a**", "a", true),
        ] {
            let found = Pattern::new(pattern).unwrap().matches(name, &mut Steps(1_000));
            assert_eq!(found, fits, "{pattern} {name}");
        }
        for malformed in ["[", "[]", "[a", "[a-]", "[-a]", "\\", "[^", "a[b\\"] {
            assert!(Pattern::new(malformed).is_none(), "{malformed}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_more_than_the_product_of_lengths() {
        let pattern = Pattern::new(&"*a".repeat(100)).unwrap();
        let name = format!("{}b", "a".repeat(10_000));
        let mut steps = Steps(200 * 10_001);
        assert!(!pattern.matches(&name, &mut steps));
        assert!(steps.0 > 0);
        let mut few = Steps(10);
        assert!(!pattern.matches("aaaa", &mut few));
        assert!(!Pattern::new("*").unwrap().matches("a", &mut Steps(1)));
    }
}
