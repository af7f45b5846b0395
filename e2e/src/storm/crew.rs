//! The processes of a run: one that works alone, or two that share the work by Leases. Leases are as long as in production, so that only a storm takes
//! one from the living, and that of a killed one [lapses](crate::lapse) at once. Who loses its Lease ends, and is started again, as the kubelet would.

use std::fs;

use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;

use crate::{
    Journey, Lab, Operator, OperatorOptions, eventually,
    lapse::lapse,
    operator::sources_of_this_machine,
    travel::{Course, SHARDS},
};

use super::LONGEST;

/// Processes that run, each with how it is started again.
#[derive(Debug)]
pub(super) struct Crew {
    lab: &'static Lab,
    members: Vec<(OperatorOptions, Operator)>,
}

impl Crew {
    /// Starts those that a course needs.
    pub(super) fn start(journey: &Journey, course: Course) -> Result<Self> {
        let alone = journey.options.clone();
        let all = if course == Course::Shared {
            vec![sharing(journey, &alone, "first"), sharing(journey, &alone, "second")]
        } else {
            vec![alone]
        };
        let lab = journey.lab();
        let start = |options: OperatorOptions| Ok((options.clone(), Operator::start(lab, &options)?));
        let members = all.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self { lab, members })
    }

    /// Kills one of them, another one each time, and starts it again.
    pub(super) async fn restart(&mut self, journey: &Journey, turn: u64) -> Result<()> {
        let count = u64::try_from(self.members.len())?;
        let index = usize::try_from(turn % count)?;
        let (options, operator) = self.members.remove(index);
        let dead = operator.process_id();
        operator.kill().await?;
        if let Some(dead) = dead {
            lapse(journey, dead).await?;
        }
        let started = Operator::start(self.lab, &options)?;
        self.members.insert(index, (options, started));
        Ok(())
    }

    /// Where the metrics of all of them are, as soon as all of them are ready.
    pub(super) async fn metrics(&mut self) -> Result<Vec<String>> {
        self.attend()?;
        let mut urls = Vec::new();
        for (_, operator) in &mut self.members {
            operator.ready().await?;
            urls.push(operator.metrics_url().await?);
        }
        Ok(urls)
    }

    /// Starts again who lost its Lease; fails when one ended for another reason.
    pub(super) fn attend(&mut self) -> Result<()> {
        for (options, operator) in &mut self.members {
            let Err(ended) = operator.check() else { continue };
            let log = fs::read_to_string(&options.log).context("failed to read the log of an operator")?;
            let last = log.lines().rfind(|line| line.contains("the operator ended"));
            if !last.is_some_and(|line| line.contains("lost the Lease")) {
                bail!("an operator ended: {ended:#}");
            }
            *operator = Operator::start(self.lab, options)?;
        }
        Ok(())
    }
}

/// Looks after the crew while something else is done; returns only when one of them ended for a reason that is none.
pub(super) async fn attended(crew: &Mutex<Crew>) -> Result<()> {
    let outcome = eventually(LONGEST, "the end of an operator", async || {
        match crew.lock().await.attend() {
            Ok(()) => Err("they run"),
            Err(ended) => Ok(ended),
        }
    });
    Err(outcome.await?)
}

/// How one is started that shares the work, with a log and a store of its own.
fn sharing(journey: &Journey, options: &OperatorOptions, name: &str) -> OperatorOptions {
    let folder = journey.folder();
    let mut options = OperatorOptions {
        log: folder.join(format!("{name}.log")),
        ..options.clone()
    };
    let election = [
        "--leader-elect=true".to_owned(),
        format!("--leader-elect-namespace={}", journey.namespace),
        format!("--shards={SHARDS}"),
    ];
    options.flags.extend(election.map(Into::into));
    let cache = folder.join(format!("cache-of-{name}"));
    options.flags.extend(sources_of_this_machine(&cache));
    options
}
