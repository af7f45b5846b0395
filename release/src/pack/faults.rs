//! Everything that is wrong with one file, so that it is mended at once.

use std::{fmt, path::PathBuf};

use crds::conditions::one_line;

use crate::marked::Remark;

/// So many are told: who has mended these asks again.
const MOST: usize = 20;
/// Bytes of one that are told.
const LINE_BYTES: usize = 2048;

/// What is wrong with a file, in the order of its lines.
#[derive(Debug)]
pub struct Faults {
    path: PathBuf,
    found: Vec<Remark>,
    /// How many others there are.
    more: usize,
}

impl Faults {
    /// Of these, and so many more.
    pub(super) fn new(path: PathBuf, mut found: Vec<Remark>, more: usize) -> Self {
        found.sort_by_key(|remark| remark.place);
        Self { path, found, more }
    }

    /// A line for each of the first ones, which begins with the file and the line in it; then one with the number of the others, if there are any.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let file = self.path.display();
        let told = self.found.iter().take(MOST).map(move |remark| remark.told(&file));
        let more = match self.found.len().saturating_sub(MOST) + self.more {
            0 => None,
            more => Some(format!("{}: and {more} more", self.path.display())),
        };
        told.chain(more).map(|line| one_line(&line, LINE_BYTES))
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marked::Place;

    fn remark(line: usize, words: &str) -> Remark {
        Remark {
            place: Some(Place { line, column: None }),
            words: words.to_owned(),
        }
    }

    #[test]
    fn faults_are_told_by_their_lines_and_the_last_of_many_are_only_counted() {
        let found = (1..=23).rev().map(|line| remark(line, "wrong")).collect();
        let told = Faults::new("stages.yaml".into(), found, 4).to_string();
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[..2], ["stages.yaml:1: wrong", "stages.yaml:2: wrong"]);
        assert_eq!(lines[19..], ["stages.yaml:20: wrong", "stages.yaml: and 7 more"]);
    }

    #[test]
    fn a_fault_is_one_line_of_bounded_length_whatever_is_in_it() {
        let words = format!("is no\nlength {}", "x".repeat(10_000));
        let told = Faults::new("stages.yaml".into(), vec![remark(7, &words)], 0).to_string();
        assert!(told.starts_with("stages.yaml:7: is no length xxx"), "{told}");
        assert!(told.len() <= LINE_BYTES);
    }
}
