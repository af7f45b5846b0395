//! The rows of the contract between the core operator and an operator of a provider, and what a test found of each. Pure.
//!
//! `docs/contract/provider.md` has the same rows with what they mean; a test holds both against each other.

use std::collections::BTreeMap;

use serde::Serialize;

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Without it the core operator does not work with the provider, or does harm.
    Must,
    /// Without it people miss something.
    Should,
}

macro_rules! rows {
    ($($name:ident $level:ident $statement:literal, $remedy:literal;)*) => {
        /// One row of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[expect(missing_docs, reason = "the statement of each says it")]
        pub enum Row {
            $($name,)*
        }

        impl Row {
            /// All of them, in the order of the contract.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As it is called: `M1`.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Whether it must hold.
            pub fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)*
                }
            }

            /// What holds, as a sentence without a full stop.
            pub fn statement(self) -> &'static str {
                match self {
                    $(Self::$name => $statement,)*
                }
            }

            /// What whoever writes the operator does about it when it does not hold, as a sentence.
            pub fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

rows! {
    M1 Must "both kinds are served in the group of providers, in namespaces, one named like the other with Template behind it",
        "Install both CRDs, with scope Namespaced and the subresource status on the release kind.";
    M2 Must "a template has the spec of a release object under spec.template.spec",
        "Give the template the field spec.template.spec with the schema of the release object's spec.";
    M3 Must "a release object is worked on also before it has an owner",
        "Begin when the object is there, and look again when its owner appears: the owner reference comes with a second write.";
    M4 Must "status.ready is a boolean and becomes true",
        "Write status.ready: false while you work and true when every image is usable.";
    M5 Must "spec is never written by the provider",
        "Keep what you work out in status or in objects of your own: the core operator puts spec back.";
    M6 Must "nothing is written while nothing happens",
        "Write status only when it differs, and no times of looks into it.";
    M7 Must "readiness goes back when an image is not usable any more",
        "Look at the images again and again, and write status.ready: false when one is gone or must not be used.";
    M8 Must "the object goes when it is deleted, also while it is worked on",
        "Take your finalizer off once the cloud is clean, end work that is under way, and do not wait for the core operator.";
    M9 Must "owner references of others stay",
        "Change only your own entries of metadata.ownerReferences, by a patch of them or with the version that you read.";
    M10 Must "a second release does not undo the first",
        "Keep what belongs to one release apart from what belongs to another, and delete only what no release needs.";
    S1 Should "phase, message and progress tell how far it is",
        "Write status.phase, status.message and status.progress {done, total, unit}: the core operator repeats them on the stack.";
    S2 Should "a condition Ready, with a reason while it is not True",
        "Write a condition Ready into status.conditions, with a reason in CamelCase and a message for people.";
    S3 Should "releases with the same image share one object of it",
        "Name the object after the image and its version, and give it an owner reference for each release that needs it.";
    S4 Should "a release with another digest than the annotation pins is not used",
        "Compare the digest of what you downloaded with the annotation clusterstack.x-k8s.io/digest, and do not become ready when it differs.";
    S5 Should "status.observedGeneration says what the status is about",
        "Write metadata.generation of the object that you read into status.observedGeneration.";
    S6 Should "a condition Stalled ends the wait for what cannot succeed",
        "Write a condition Stalled with status True when only a person can help: kubectl wait then ends.";
    S7 Should "the CRDs carry the label of the contract",
        "Label both CRDs clusterstack.x-k8s.io/v1alpha1: v1alpha1, with the served versions behind the colon.";
}

/// What was found of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum Outcome {
    /// It holds.
    Passed {
        /// What was seen.
        seen: String,
    },
    /// It does not hold.
    Failed {
        /// What was seen instead.
        reason: String,
    },
    /// It was not tried.
    NotShown {
        /// Why not, and what to do that it is.
        reason: String,
    },
}

/// What was found of all rows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    outcomes: BTreeMap<Row, Outcome>,
}

/// A row as it is written for programs.
#[derive(Serialize)]
struct Written<'a> {
    id: &'static str,
    level: Level,
    statement: &'static str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl Report {
    /// Notes that a row holds, unless it was found not to.
    pub(super) fn pass(&mut self, row: Row, seen: impl Into<String>) {
        let seen = seen.into();
        self.outcomes.entry(row).or_insert(Outcome::Passed { seen });
    }

    /// Notes that a row does not hold, whatever else was found; the first reason stays.
    pub(super) fn fail(&mut self, row: Row, reason: impl Into<String>) {
        if !matches!(self.outcomes.get(&row), Some(Outcome::Failed { .. })) {
            let reason = reason.into();
            self.outcomes.insert(row, Outcome::Failed { reason });
        }
    }

    /// Notes that a row could not be tried, unless it was.
    pub(super) fn skip(&mut self, row: Row, reason: impl Into<String>) {
        let reason = reason.into();
        self.outcomes.entry(row).or_insert(Outcome::NotShown { reason });
    }

    /// The same for every row of which nothing was found.
    pub(super) fn skip_the_rest(&mut self, reason: &str) {
        for row in Row::ALL {
            self.skip(*row, reason);
        }
    }

    /// Notes one or the other.
    pub(super) fn judge(&mut self, row: Row, verdict: Result<String, String>) {
        match verdict {
            Ok(seen) => self.pass(row, seen),
            Err(reason) => self.fail(row, reason),
        }
    }

    /// What was found, in the order of the contract. Every row is there once the test is over.
    pub fn rows(&self) -> impl Iterator<Item = (Row, &Outcome)> {
        self.outcomes.iter().map(|(row, outcome)| (*row, outcome))
    }

    /// The rows that do not hold.
    pub fn failed(&self) -> Vec<Row> {
        let is_failed = |(row, outcome)| matches!(outcome, &Outcome::Failed { .. }).then_some(row);
        self.rows().filter_map(is_failed).collect()
    }

    /// Whether every row that must hold does, or was not tried.
    pub fn conforms(&self) -> bool {
        self.failed().iter().all(|row| row.level() == Level::Should)
    }

    /// All rows for programs.
    ///
    /// # Errors
    /// None in practice: texts and names can be written.
    pub fn json(&self) -> serde_json::Result<serde_json::Value> {
        let rows: Vec<Written<'_>> = self
            .rows()
            .map(|(row, outcome)| Written {
                id: row.id(),
                level: row.level(),
                statement: row.statement(),
                outcome,
                remedy: (!matches!(outcome, Outcome::Passed { .. })).then(|| row.remedy()),
            })
            .collect();
        Ok(serde_json::json!({ "conforms": self.conforms(), "rows": serde_json::to_value(rows)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_for_people_has_the_same_rows() {
        let page = include_str!("../../../docs/contract/provider.md");
        for row in Row::ALL {
            let begin = format!("| {} | {} | ", row.id(), row.statement());
            assert!(page.contains(&begin), "{begin}");
        }
        let is_row = |line: &&str| {
            let mut letters = line.strip_prefix("| ").unwrap_or_default().chars();
            matches!(letters.next(), Some('M' | 'S')) && letters.next().is_some_and(|letter| letter.is_ascii_digit())
        };
        assert_eq!(page.lines().filter(is_row).count(), Row::ALL.len());
    }

    #[test]
    fn a_row_that_failed_once_stays_so_and_what_was_tried_is_not_skipped() {
        let mut report = Report::default();
        report.pass(Row::M5, "in 3 versions");
        report.fail(Row::M5, "spec.size was written");
        report.pass(Row::M5, "later");
        report.skip(Row::M5, "no time");
        report.pass(Row::M4, "after 3 s");
        report.skip_the_rest("no time");
        assert_eq!(report.rows().count(), Row::ALL.len());
        assert_eq!((report.failed(), report.conforms()), (vec![Row::M5], false));
    }

    #[test]
    fn what_people_only_miss_is_no_failure_of_the_test() {
        let mut report = Report::default();
        report.fail(Row::S1, "no phase");
        assert!(report.conforms());
        let written = report.json().expect("it can be written");
        assert_eq!(written["rows"][0]["outcome"], "failed");
        assert_eq!(written["rows"][0]["level"], "SHOULD");
        assert_eq!(written["rows"][0]["reason"], "no phase");
    }
}
