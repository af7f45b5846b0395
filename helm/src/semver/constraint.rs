//! Ranges of versions: how they are written and which versions they take.

use std::sync::LazyLock;

use regex::Regex;

use super::Version;

/// A range such as `>=1.2 <2, !=1.5.0 || ~3`.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// One of these must hold with all its parts.
    alternatives: Vec<Vec<Constraint>>,
}

#[derive(Clone, Debug)]
struct Constraint {
    operator: Operator,
    version: Version,
    /// How many numbers were written: `1.x` has one.
    written: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

const ONE_VERSION: &str =
    r"v?([0-9xX*]+)(?:\.([0-9xX*]+))?(?:\.([0-9xX*]+))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?";
const OPERATORS: &str = r"=||!=|>=|=>|<=|=<|>|<|~>|~|\^";

static ONE: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"({OPERATORS})\s*({ONE_VERSION})")));
static HYPHEN: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"\s*({ONE_VERSION})\s+-\s+({ONE_VERSION})\s*")));
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    let one = format!(r"(?:{OPERATORS})\s*(?:{ONE_VERSION})");
    pattern(&format!(r"^\s*{one}\s*(?:(?:,|\s)\s*{one}\s*)*$"))
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

/// A text that is no range. Displays as version 3.4 of the library says it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// One of the alternatives does not read as one.
    #[error("improper constraint: {0}")]
    Improper(String),
    /// A number is too large.
    #[error("constraint parser error")]
    Version,
}

impl Constraints {
    /// Reads a range.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        let text = HYPHEN.replace_all(text, |parts: &regex::Captures<'_>| {
            format!(">= {}, <= {} ", &parts[1], &parts[7])
        });
        let alternatives = text.split("||").map(|part| {
            if !WHOLE.is_match(part) {
                return Err(ConstraintError::Improper(part.to_owned()));
            }
            ONE.captures_iter(part).map(|parts| Constraint::new(&parts)).collect()
        });
        Ok(Self {
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a version is in the range. Prereleases are only in alternatives that name one.
    pub fn check(&self, version: &Version) -> bool {
        let names_prerelease = |constraint: &Constraint| !constraint.version.prerelease().is_empty();
        self.alternatives.iter().any(|all| {
            (version.prerelease().is_empty() || all.iter().any(names_prerelease))
                && all.iter().all(|constraint| constraint.check(version))
        })
    }
}

impl Constraint {
    fn new(parts: &regex::Captures<'_>) -> Result<Self, ConstraintError> {
        let operator = match &parts[1] {
            "" | "=" => Operator::Equal,
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterOrEqual,
            "<=" | "=<" => Operator::LessOrEqual,
            "^" => Operator::Caret,
            _ => Operator::Tilde,
        };
        let number = |group: usize| {
            parts
                .get(group)
                .map(|part| part.as_str())
                .filter(|text| !text.contains(['x', 'X', '*']))
        };
        let (major, minor, patch) = (number(3), number(4), number(5));
        let (written, text) = match (major, minor, patch) {
            (None, ..) => (0, "0.0.0".to_owned()),
            (Some(major), None, _) => (1, format!("{major}.0.0")),
            (Some(major), Some(minor), None) => (2, format!("{major}.{minor}.0")),
            (Some(_), Some(_), Some(_)) => (3, parts[2].to_owned()),
        };
        // A prerelease counts also behind a wildcard: `>=1.2-0`.
        let text = match parts.get(6) {
            Some(prerelease) if written < 3 => format!("{text}-{}", prerelease.as_str()),
            _ => text,
        };
        let version = Version::parse(&text).map_err(|_| ConstraintError::Version)?;
        Ok(Self {
            operator,
            version,
            written,
        })
    }

    fn check(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.operator {
            Operator::Equal if self.written == 3 => version == wanted,
            Operator::Equal | Operator::Tilde => version >= wanted && self.close_to(version),
            Operator::NotEqual => self.differs(version),
            Operator::Greater => self.is_greater(version),
            Operator::Less => version < wanted,
            Operator::GreaterOrEqual => version >= wanted,
            Operator::LessOrEqual => self.is_at_most(version),
            Operator::Caret => version >= wanted && self.compatible(version),
        }
    }

    /// `!=1.x` refuses all of 1; `!=1.2-a` of 1.2 only what has the same prerelease; `!=*` is `!=0.0.0`.
    fn differs(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        match self.written {
            1 => left.0 != right.0,
            2 => (left.0, left.1) != (right.0, right.1) || version.prerelease() != self.version.prerelease(),
            _ => version != &self.version,
        }
    }

    /// `<=1` takes all of 1.x; `<=1.2` all of 1.2.x.
    fn is_at_most(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        match self.written {
            3 => version <= &self.version,
            1 => left.0 <= right.0,
            _ => (left.0, left.1) <= (right.0, right.1),
        }
    }

    /// `>1` means above all of 1.x; `>1.2` above all of 1.2.x.
    fn is_greater(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.written {
            1 => version.major() > wanted.major(),
            2 => (version.major(), version.minor()) > (wanted.major(), wanted.minor()),
            _ => version > wanted,
        }
    }

    /// `~1.2.3` lets the patch move, `~1` the minor as well, `*` and `~0.0.0` everything.
    fn close_to(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        match self.written {
            0 => true,
            3 if right == (0, 0, 0) => true,
            1 => left.0 == right.0,
            _ => (left.0, left.1) == (right.0, right.1),
        }
    }

    /// `^`: everything may move behind the first number that is not zero.
    fn compatible(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        if right.0 > 0 || self.written == 1 {
            left.0 == right.0
        } else if right.1 > 0 || self.written == 2 {
            (left.0, left.1) == (0, right.1)
        } else {
            left == right
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_take_the_versions_that_go_takes() {
        for (range, version, taken) in [
            (">=1.2", "1.2.3-beta", false),
            (">=1.2.3-0", "1.2.3-beta", true),
            (">=1.19-0 <1.30", "1.27.3-gke.100", true),
            (">=1.19-0 <1.30 || 2", "2.0.0-a", false),
            ("<1.3", "v1.2", true),
            ("1.2 - 1.4", "1.3.9", true),
            ("1.2 - 1.4", "1.4.9", true),
            ("=1.2", "1.2.5", true),
            ("1.2.3", "1.2.3+build", true),
            ("!=1.2.x", "1.2.5", false),
            ("!=1.2.x", "1.3.5", true),
            ("!=1.2.3", "1.2.4", true),
            ("~1", "1.9", true),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("^0.2.3", "0.3.0", false),
            ("^0.2.3", "0.2.4", true),
            ("^0.0.3", "0.0.4", false),
            ("^1.2", "1.9", true),
            ("^1", "2.0", false),
            (">1 <2, !=1.5.0 || 3", "1.4", false),
            (">1 <2, !=1.5.0 || 3", "3.1", true),
            ("*", "1.0.0-a", false),
            ("*", "1.0.0", true),
            ("", "1.0.0", false),
            ("~0.0.0", "7.1.0", true),
            (">=1.19-0", "v1.27.3-gke.100", true),
            (">= 1.19.0-0 < 2", "1.34.0", true),
            ("~1.2.x || >3", "1.2.9", true),
            (">x", "1", true),
            ("<=1.2", "1.2.9", true),
        ] {
            let constraints = Constraints::parse(range);
            let found = constraints.is_ok_and(|constraints| constraints.check(&Version::parse(version).unwrap()));
            assert_eq!(found, taken, "{version} in {range:?}");
        }
    }

    #[test]
    fn versions_print_canonically_and_order_by_precedence() {
        assert_eq!(Version::parse("v1.2").unwrap().to_string(), "1.2.0");
        assert!(Version::parse("1.2.3.4").is_err());
        assert!(Version::parse("latest").is_err());
        let order = [
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1",
        ];
        for pair in order.windows(2) {
            assert!(
                Version::parse(pair[0]).unwrap() < Version::parse(pair[1]).unwrap(),
                "{pair:?}"
            );
        }
    }
}
