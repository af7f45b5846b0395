//! Decides what two answers are to each other, and how often the real Helm has to be asked to know.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use crate::{
    Answer,
    likeness::{self, Masked, Unlike},
};

/// What is masked beyond this share proves too little.
const MASKED_SHARE: f64 = 0.05;

/// So often the real Helm is asked before a place is believed to be fixed, or never to be drawn as we draw it. Five characters out of
/// letters and digits are without a digit two times in five, so a few answers prove nothing; all of these are so once in 10^11 times. A
/// comparison of three answers only becomes one of more where ours is not alike.
const QUESTIONS: usize = 30;

/// Two answers this far apart are of two seconds, so a clock shows.
const CLOCK: Duration = Duration::from_millis(1100);

/// Renders that may have more masked, with the reasons.
const LISTED: &str = include_str!("../../masked.tsv");

/// What came out of one comparison.
#[derive(Debug)]
pub(super) enum Judgement {
    /// To the byte, or with the same error.
    Equal {
        answer: Answer,
    },
    /// Where Helm answers the same each time to the byte, elsewhere in shape.
    Alike {
        masked: Masked,
        bytes: usize,
        ours: Vec<u8>,
        theirs: Vec<u8>,
    },
    Different(Unequal),
}

/// Two answers that should not be what they are.
#[derive(Debug)]
pub(super) struct Unequal {
    pub(super) reason: String,
    /// The line where it shows, counted from 1; none where no two outputs were compared.
    pub(super) line: Option<usize>,
    pub(super) ours: Vec<u8>,
    pub(super) theirs: Vec<u8>,
}

/// Compares our answer with as many real ones as it takes.
pub(super) fn judge(ours: Answer, mut ask: impl FnMut() -> Result<Answer>) -> Result<Judgement> {
    let begin = Instant::now();
    let mut theirs = vec![ask()?];
    loop {
        if theirs.contains(&ours) && !matches!(ours, Answer::Broken(_)) {
            return Ok(Judgement::Equal { answer: ours });
        }
        if matches!(ours, Answer::Broken(_)) || theirs.iter().any(|answer| matches!(answer, Answer::Broken(_))) {
            break;
        }
        if theirs.len() >= 3
            && let Ok(masked) = compare(&theirs, &ours)
        {
            return Ok(Judgement::Alike {
                masked,
                bytes: bytes(&ours).len(),
                ours: bytes(&ours).to_vec(),
                theirs: bytes(&theirs[0]).to_vec(),
            });
        }
        let varies = theirs.iter().any(|answer| *answer != theirs[0]);
        if theirs.len() >= QUESTIONS || theirs.len() > 3 && !varies {
            break;
        }
        if theirs.len() == 3 {
            thread::sleep(CLOCK.saturating_sub(begin.elapsed()));
        }
        theirs.push(ask()?);
    }
    Ok(Judgement::Different(Unequal::of(&theirs, &ours)))
}

fn compare(theirs: &[Answer], ours: &Answer) -> Result<Masked, Unlike> {
    let unlike = |reason: &str| Unlike {
        line: 1,
        reason: reason.to_owned(),
    };
    let outputs: Option<Vec<_>> = theirs
        .iter()
        .map(|answer| match answer {
            Answer::Output(output) => Some(output.as_slice()),
            _ => None,
        })
        .collect();
    match (outputs, ours) {
        (Some(outputs), Answer::Output(ours)) => likeness::compare(&outputs, ours),
        (Some(_), _) => Err(unlike("Helm renders it")),
        (None, Answer::Output(_)) => Err(unlike("Helm refuses it")),
        (None, _) => Err(unlike("Helm says something else")),
    }
}

fn bytes(answer: &Answer) -> &[u8] {
    match answer {
        Answer::Output(output) => output,
        Answer::Error(line) | Answer::Broken(line) => line.as_bytes(),
    }
}

impl Unequal {
    fn of(theirs: &[Answer], ours: &Answer) -> Self {
        let broken = theirs.iter().find(|answer| matches!(answer, Answer::Broken(_)));
        let shown = broken.unwrap_or(&theirs[0]);
        let both_output = matches!((shown, ours), (Answer::Output(_), Answer::Output(_)));
        let (reason, line) = match (ours, broken) {
            (Answer::Broken(how), _) => (format!("ours is broken: {how}"), None),
            (_, Some(_)) => (format!("Helm is broken: {}", shown.text()), None),
            _ => match compare(theirs, ours) {
                Err(unlike) => (unlike.reason, both_output.then_some(unlike.line)),
                Ok(_) => ("Helm answers otherwise at times".to_owned(), None),
            },
        };
        Self {
            reason,
            line,
            ours: bytes(ours).to_vec(),
            theirs: bytes(shown).to_vec(),
        }
    }
}

impl Judgement {
    pub(super) fn equal(answer: &Answer) -> Self {
        Self::Equal { answer: answer.clone() }
    }

    /// Of what could not even be tried.
    pub(super) fn impossible(error: &anyhow::Error) -> Self {
        Self::Different(Unequal {
            reason: format!("not compared: {error:#}"),
            line: None,
            ours: Vec::new(),
            theirs: Vec::new(),
        })
    }

    pub(super) fn is_equal(&self) -> bool {
        !matches!(self, Self::Different(_))
    }

    /// Different after all, where too much is masked and the list has no reason for it.
    pub(super) fn limited(self, exceptions: &Exceptions, chart: &str, variant: &str) -> Self {
        match self {
            Self::Alike {
                masked,
                bytes,
                ours,
                theirs,
            } if share(masked.drawn, bytes) > MASKED_SHARE && !exceptions.allow(chart, variant) => {
                Self::Different(Unequal {
                    reason: format!("{:.1} % is masked", 100.0 * share(masked.drawn, bytes)),
                    line: None,
                    ours,
                    theirs,
                })
            }
            other => other,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "outputs are far from 2^52 bytes long")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Renders of which more may be masked.
#[derive(Debug)]
pub(super) struct Exceptions(Vec<(&'static str, &'static str)>);

impl Exceptions {
    /// Those of the list in this repository.
    pub(super) fn listed() -> Result<Self> {
        let lines = LISTED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let entries = lines.map(|line| {
            let mut columns = line.split('\t');
            let entry = columns.next().zip(columns.next());
            entry
                .filter(|_| columns.next().is_some_and(|reason| !reason.is_empty()))
                .with_context(|| format!("masked.tsv: chart, variant and reason expected: {line}"))
        });
        Ok(Self(entries.collect::<Result<_>>()?))
    }

    fn allow(&self, chart: &str, variant: &str) -> bool {
        let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
        self.0
            .iter()
            .any(|(wanted_chart, wanted_variant)| fits(wanted_chart, chart) && fits(wanted_variant, variant))
    }
}

#[cfg(test)]
mod tests;
