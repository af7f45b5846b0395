//! What came out of all comparisons: for people as a table with the first differing lines, for programs as JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display, Formatter},
};

use serde::Serialize;

use super::judge::{Judgement, Unequal};
use crate::Answer;

/// So many lines of a difference tell what it is.
const SHOWN_LINES: usize = 3;
const SHOWN_WIDTH: usize = 160;

/// One comparison and what came out, without the answers: thousands are kept to the end.
pub(super) struct Outcome {
    profile: String,
    chart: String,
    variant: String,
    verdict: Verdict,
}

enum Verdict {
    ByteEqual,
    ErrorEqual,
    Alike(MaskedRender),
    Different(Difference),
}

impl Outcome {
    pub(super) fn of(profile: &str, chart: &str, variant: &str, judgement: Judgement) -> Self {
        let (profile, chart, variant) = (profile.to_owned(), chart.to_owned(), variant.to_owned());
        let verdict = match judgement {
            Judgement::Equal {
                answer: Answer::Output(_),
            } => Verdict::ByteEqual,
            Judgement::Equal { .. } => Verdict::ErrorEqual,
            Judgement::Alike { masked, bytes, .. } => Verdict::Alike(MaskedRender {
                profile: profile.clone(),
                chart: chart.clone(),
                variant: variant.clone(),
                bytes,
                masked: masked.drawn,
                verified: masked.verified,
            }),
            Judgement::Different(Unequal {
                reason,
                line,
                ours,
                theirs,
            }) => {
                let line = line.unwrap_or_else(|| first_difference(&ours, &theirs));
                Verdict::Different(Difference {
                    profile: profile.clone(),
                    chart: chart.clone(),
                    variant: variant.clone(),
                    reason,
                    line,
                    ours: shown(&ours, line),
                    theirs: shown(&theirs, line),
                })
            }
        };
        Self {
            profile,
            chart,
            variant,
            verdict,
        }
    }

    fn key(&self) -> (&str, &str, &str) {
        (&self.profile, &self.chart, &self.variant)
    }
}

/// Everything that was compared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Of all profiles.
    #[serde(flatten)]
    pub total: Counts,
    /// By profile.
    pub profiles: BTreeMap<String, Counts>,
    /// In the order of profiles, charts and variants.
    pub differences: Vec<Difference>,
    /// Renders that are equal only where Helm answers the same each time.
    pub masked: Vec<MaskedRender>,
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Different charts.
    pub charts: usize,
    /// Charts times variants.
    pub renders: usize,
    /// Output equal to the byte.
    pub byte_equal: usize,
    /// Equal to the byte where Helm answers the same each time, alike in shape elsewhere.
    pub masked_equal: usize,
    /// Refused by both with the same first line.
    pub error_equal: usize,
    /// None of these.
    pub different: usize,
}

/// A render that is not alike.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The version of Helm.
    pub profile: String,
    /// The archive.
    pub chart: String,
    /// The values or flags.
    pub variant: String,
    /// What is not alike.
    pub reason: String,
    /// Where the shown lines begin, counted from 1.
    pub line: usize,
    /// The first differing lines of our answer.
    pub ours: Vec<String>,
    /// The first differing lines of Helm's.
    pub theirs: Vec<String>,
}

/// A render in which something is drawn.
#[derive(Clone, Debug, Serialize)]
pub struct MaskedRender {
    profile: String,
    chart: String,
    variant: String,
    /// Of our output.
    bytes: usize,
    /// Of these, alike in shape only.
    masked: usize,
    /// Of these, keys and certificates that were read and verified.
    verified: usize,
}

impl Report {
    pub(super) fn new(profiles: impl Iterator<Item = String>, outcomes: impl Iterator<Item = Outcome>) -> Self {
        let mut outcomes: Vec<_> = outcomes.collect();
        outcomes.sort_by(|left, right| left.key().cmp(&right.key()));
        let mut report = Self {
            profiles: profiles.map(|profile| (profile, Counts::default())).collect(),
            ..Self::default()
        };
        let mut charts = BTreeSet::new();
        for outcome in outcomes {
            let of_profile = report.profiles.entry(outcome.profile.clone()).or_default();
            of_profile.charts += usize::from(charts.insert((outcome.profile.clone(), outcome.chart.clone())));
            of_profile.count(&outcome.verdict);
            report.total.count(&outcome.verdict);
            match outcome.verdict {
                Verdict::ByteEqual | Verdict::ErrorEqual => {}
                Verdict::Alike(masked) => report.masked.push(masked),
                Verdict::Different(difference) => report.differences.push(difference),
            }
        }
        report.total.charts = charts
            .into_iter()
            .map(|(_, chart)| chart)
            .collect::<BTreeSet<_>>()
            .len();
        report
    }

    /// Whether there was something to compare and nothing was different.
    pub fn is_good(&self) -> bool {
        self.total.renders > 0 && self.total.different == 0
    }
}

impl Counts {
    fn count(&mut self, verdict: &Verdict) {
        self.renders += 1;
        *match verdict {
            Verdict::ByteEqual => &mut self.byte_equal,
            Verdict::ErrorEqual => &mut self.error_equal,
            Verdict::Alike(_) => &mut self.masked_equal,
            Verdict::Different(_) => &mut self.different,
        } += 1;
    }

    fn row(&self) -> [usize; 6] {
        let Self {
            charts,
            renders,
            byte_equal,
            masked_equal,
            error_equal,
            different,
        } = *self;
        [charts, renders, byte_equal, masked_equal, error_equal, different]
    }
}

fn first_difference(ours: &[u8], theirs: &[u8]) -> usize {
    let lines = |text: &'_ [u8]| {
        text.split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    1 + ours
        .iter()
        .zip(&theirs)
        .take_while(|(ours, theirs)| ours == theirs)
        .count()
}

fn shown(text: &[u8], line: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().skip(line - 1).take(SHOWN_LINES);
    lines.map(|line| line.chars().take(SHOWN_WIDTH).collect()).collect()
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let rows = self.profiles.iter().map(|(profile, counts)| (profile.as_str(), counts));
        let total = (self.profiles.len() > 1).then_some(("all", &self.total));
        writeln!(
            formatter,
            "{:8} {:>7} {:>8} {:>11} {:>20} {:>12} {:>10}",
            "profile", "charts", "renders", "byte-equal", "equal after masking", "error-equal", "different"
        )?;
        for (profile, counts) in rows.chain(total) {
            let [charts, renders, byte_equal, masked_equal, error_equal, different] = counts.row();
            writeln!(
                formatter,
                "{profile:8} {charts:>7} {renders:>8} {byte_equal:>11} {masked_equal:>20} {error_equal:>12} {different:>10}"
            )?;
        }
        for difference in &self.differences {
            write!(formatter, "\n{difference}")?;
        }
        Ok(())
    }
}

impl Display for Difference {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            profile,
            chart,
            variant,
            reason,
            line,
            ours,
            theirs,
        } = self;
        writeln!(formatter, "{profile} {chart} ({variant}): line {line}: {reason}")?;
        for (whose, lines) in [("helm", theirs), ("ours", ours)] {
            for line in lines {
                writeln!(formatter, "  {whose} | {line}")?;
            }
        }
        Ok(())
    }
}
