//! Bugs that are planted on purpose, one at a time, to show that the storms of e2e find them. No program that ships has this module: it is there
//! with the feature `mutants` only, which nothing enables by itself.

use std::str::FromStr;
use std::sync::OnceLock;

static PLANTED: OnceLock<Mutant> = OnceLock::new();

/// A bug that operators have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A status is written whatever was written since it was read.
    StatusWithoutVersion,
    /// The inventory is written after the objects that it lists.
    LateInventory,
    /// What could not be read is taken for gone.
    UnreadIsGone,
    /// Before the Clusters are known, nothing is in use, and the API server is not asked.
    UnlistedIsUnused,
}

impl FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "status-without-version" => Self::StatusWithoutVersion,
            "late-inventory" => Self::LateInventory,
            "unread-is-gone" => Self::UnreadIsGone,
            "unlisted-is-unused" => Self::UnlistedIsUnused,
            _ => return Err("no such mutant".to_owned()),
        })
    }
}

/// Plants a bug for the life of the process; the first call counts.
pub fn plant(mutant: Mutant) {
    let _ = PLANTED.set(mutant);
}

/// Whether this one is planted.
pub fn planted(mutant: Mutant) -> bool {
    PLANTED.get() == Some(&mutant)
}
