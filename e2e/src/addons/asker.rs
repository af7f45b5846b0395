//! Cluster API as it asks at the moments of an upgrade, whichever operator answers: one dies, and the next one listens on another port.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::cluster::Cluster;
use crate::{
    Journey, eventually,
    hooks::{Answer, Hook, Question},
    journey::SOON,
    operator::last_hook_port,
    webhooks::Certificates,
};

/// Asks the operators of a journey.
#[derive(Debug)]
pub struct Asker {
    certificates: Certificates,
    /// That of all of these operators.
    log: PathBuf,
}

impl Asker {
    /// Before there is an operator: those that start from then on answer.
    pub fn prepare(journey: &mut Journey) -> Result<Self> {
        let certificates = Certificates::at(&journey.folder().join("hooks"))?;
        journey.options.flags.extend(certificates.hook_flags());
        let log = journey.options.log.clone();
        Ok(Self { certificates, log })
    }

    /// Calls a hook of a Cluster that is on its way between two Kubernetes versions, whoever is dead meanwhile, until it may go on.
    pub async fn goes_on(&self, cluster: Cluster<'_>, hook: Hook, way: [&str; 2]) -> Result<()> {
        let question = Question::about(&cluster.read().await?, hook, way)?;
        let what = format!("{} to go on behind {}", cluster.name, hook.name());
        eventually(SOON, what, async || {
            let client = self.certificates.client(last_hook_port(&self.log)?)?;
            match question.ask(&client).await? {
                Answer::Proceed => Ok(()),
                held => Err(anyhow!("{held:?}")),
            }
        })
        .await
    }
}
