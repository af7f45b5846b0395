//! All other charts of the corpus: how many render alike, what is missing for the rest. Output that differs from helm's is never right,
//! so it fails; a chart that is refused only counts.

use std::path::Path;

use crate::call::{Call, Source, difference, for_each};
use crate::cluster_classes::{file_name, is_class};
use crate::lab;
use crate::table::table;

/// What became of one chart, in the order of the table.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    SameOutput,
    SameError,
    /// A function that we do not have.
    Unsupported(String),
    /// Another reason, where helm renders or fails in other words.
    Refused(String),
    /// We render what helm renders otherwise or refuses.
    Wrong(String),
}

impl Verdict {
    fn of(call: &Call, binary: &Path) -> Self {
        let ours = call.ours();
        let reason = ours.lines().next().and_then(|line| line.rsplit(": ").next());
        let reason = reason.filter(|_| ours.starts_with("Error: ")).map(str::to_owned);
        if let Some(reason) = reason.clone().filter(|reason| reason.ends_with("not defined")) {
            return Self::Unsupported(reason);
        }
        match (difference(&ours, &call.theirs(binary)), reason) {
            (None, None) => Self::SameOutput,
            (None, Some(_)) => Self::SameError,
            (Some(_), Some(reason)) => Self::Refused(reason),
            (Some(difference), None) => Self::Wrong(format!("{}: {difference}", call.name)),
        }
    }

    /// The words of the table: one line however many charts, so without what belongs to one chart.
    fn words(&self) -> [String; 2] {
        let (verdict, reason) = match self {
            Self::SameOutput => ("same output", ""),
            Self::SameError => ("same error", ""),
            Self::Unsupported(function) => ("unsupported", function.as_str()),
            Self::Refused(reason) => ("refused", reason.as_str()),
            Self::Wrong(_) => ("wrong", ""),
        };
        [verdict.to_owned(), reason.to_owned()]
    }
}

#[test]
fn no_chart_of_the_corpus_renders_to_something_else() {
    let Some(corpus) = lab::corpus("survey of charts") else {
        return;
    };
    let binary = lab::helm();
    let calls: Vec<Call> = lab::entries(&corpus.join("charts"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "tgz") && !is_class(path))
        .map(|path| Call::new(file_name(&path), Source::Path(path)))
        .collect();
    let mut verdicts = for_each(&calls, |call| Verdict::of(call, &binary));
    verdicts.sort();
    let rows: Vec<[String; 3]> = verdicts
        .chunk_by(|left, right| left.words() == right.words())
        .map(|alike| {
            let [verdict, reason] = alike[0].words();
            [alike.len().to_string(), verdict, reason]
        })
        .collect();
    lab::say(&table(["charts", "against Helm 3.19.0", ""], &rows));
    let wrong: Vec<&str> = verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Wrong(difference) => Some(difference.as_str()),
            _ => None,
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
