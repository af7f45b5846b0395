//! What a provider may be called, and everything that follows from it. Pure.

/// Words that a crate or a module of this name could not have, and names that mean something else to readers of flags.
const TAKEN: [&str; 6] = ["provider", "plugin", "image", "stack", "release", "cluster"];
const KEYWORDS: [&str; 24] = [
    "abstract", "async", "become", "box", "const", "crate", "dyn", "enum", "extern", "final", "impl", "macro", "match",
    "mod", "move", "override", "priv", "static", "struct", "trait", "type", "union", "virtual", "yield",
];
/// The longest kind then has 63 letters with its plural, which is what a label of DNS has room for.
const LONGEST: usize = 24;

/// A provider that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// As in flags, crates and metrics: `opennebula`.
    pub(crate) word: String,
    /// As in kinds and types: `OpenNebula`.
    pub(crate) prefix: String,
}

/// A name that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error(
        "{word:?} is no name of a provider: it has 2 to {LONGEST} small letters and digits, and begins with a letter"
    )]
    Word { word: String },
    #[error("{word:?} is a word with a meaning of its own; choose another name")]
    Reserved { word: String },
    #[error("{prefix:?} is not {word:?} with some letters as capitals; kinds of {word} begin with it")]
    Prefix { word: String, prefix: String },
}

impl Name {
    /// Checks both; without a prefix the first letter becomes a capital.
    pub(crate) fn parse(word: &str, prefix: Option<&str>) -> Result<Self, NameError> {
        let word = word.to_owned();
        let is_plain = word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let begins = word.starts_with(|letter: char| letter.is_ascii_lowercase());
        if !(2..=LONGEST).contains(&word.len()) || !is_plain || !begins {
            return Err(NameError::Word { word });
        }
        if TAKEN.contains(&word.as_str()) || KEYWORDS.contains(&word.as_str()) {
            return Err(NameError::Reserved { word });
        }
        let (first, rest) = word.split_at(1);
        let usual = format!("{}{rest}", first.to_ascii_uppercase());
        let prefix = prefix.map_or(usual, str::to_owned);
        let begins = prefix.starts_with(|letter: char| letter.is_ascii_uppercase());
        if prefix.to_ascii_lowercase() != word || !begins {
            return Err(NameError::Prefix { word, prefix });
        }
        Ok(Self { word, prefix })
    }

    /// The key of its images in node-images.yaml: `openNebulaNodeImages`.
    pub(crate) fn key(&self) -> String {
        let (first, rest) = self.prefix.split_at(1);
        format!("{}{rest}NodeImages", first.to_ascii_lowercase())
    }

    /// A template with everything of this name in it.
    pub(crate) fn fill(&self, template: &str) -> String {
        template
            .replace("{{name}}", &self.word)
            .replace("{{Prefix}}", &self.prefix)
            .replace("{{key}}", &self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_keys_follow_from_the_name() {
        let name = Name::parse("opennebula", Some("OpenNebula")).expect("a name");
        assert_eq!(name.key(), "openNebulaNodeImages");
        assert_eq!(
            name.fill("{{name}} {{Prefix}}Kind {{key}}"),
            "opennebula OpenNebulaKind openNebulaNodeImages"
        );
        assert_eq!(Name::parse("acme", None).expect("a name").prefix, "Acme");
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for word in [
            "",
            "a",
            "Acme",
            "ac-me",
            "ac_me",
            "1acme",
            "äcme",
            "../acme",
            "acmeacmeacmeacmeacmeacmea",
        ] {
            assert!(matches!(Name::parse(word, None), Err(NameError::Word { .. })), "{word}");
        }
        for word in ["crate", "dyn", "plugin"] {
            assert!(
                matches!(Name::parse(word, None), Err(NameError::Reserved { .. })),
                "{word}"
            );
        }
        for prefix in ["acme", "Acmes", "aCME", ""] {
            assert!(
                matches!(Name::parse("acme", Some(prefix)), Err(NameError::Prefix { .. })),
                "{prefix}"
            );
        }
    }
}
