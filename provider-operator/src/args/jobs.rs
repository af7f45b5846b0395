//! Flags about work that is done in Jobs.

use std::collections::BTreeMap;
use std::str::FromStr;

use crds::providers::Provider;

use crate::executor::jobs::{JobOptions, JobVolume};
use crate::registry::Registry;
use crate::worker::document::NetworkOfDocument;

/// Whether Jobs are made, and of what.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// Build images in Jobs, and send those in Jobs whose objects ask for it. Needs the roles clusterstack-provider-operator-jobs and
    /// clusterstack-provider-operator-sight-of-jobs.
    #[arg(long)]
    pub(crate) jobs: bool,

    /// Image of the containers that send images: one with this very program, as /provider-operator.
    #[arg(long, default_value = "", value_name = "IMAGE")]
    pub(crate) worker_image: String,

    /// What Jobs mount as a store of the provider filestore: NAME=pvc:CLAIM, a claim in the namespace of the image, or NAME=host:PATH, a directory of
    /// the node. May be given several times.
    #[arg(long, value_name = "NAME=VOLUME")]
    pub(crate) job_volume: Vec<String>,
}

impl JobArgs {
    /// What is asked for together and cannot be had.
    pub(crate) fn check(&self, registry: &Registry) -> Result<(), String> {
        let volumes = self.volumes()?;
        if !self.jobs {
            let needless = [
                ("--worker-image", !self.worker_image.is_empty()),
                ("--job-volume", !volumes.is_empty()),
            ];
            return match needless.into_iter().find(|(_, is_given)| *is_given) {
                Some((flag, _)) => Err(format!("{flag} is of use with --jobs alone; add it")),
                None => Ok(()),
            };
        }
        if self.worker_image.is_empty() {
            return Err("--jobs needs --worker-image, an image with this program in it".to_owned());
        }
        let has_filestore = registry.names().any(|name| name == Provider::FileStore);
        if !has_filestore && !volumes.is_empty() {
            return Err("--job-volume needs the provider filestore; add it to --providers".to_owned());
        }
        Ok(())
    }

    /// Of what Jobs are made; `None` where there are none.
    ///
    /// # Errors
    /// A volume is not of its form.
    pub(crate) fn options(&self, network: NetworkOfDocument) -> Result<Option<JobOptions>, String> {
        if !self.jobs {
            return Ok(None);
        }
        Ok(Some(JobOptions {
            image: self.worker_image.clone(),
            volumes: self.volumes()?,
            network,
        }))
    }

    fn volumes(&self) -> Result<BTreeMap<String, JobVolume>, String> {
        let mut volumes = BTreeMap::new();
        for option in &self.job_volume {
            let wrong = || format!("--job-volume {option:?} is not of the form NAME=pvc:CLAIM or NAME=host:/PATH");
            let (name, volume) = option.split_once('=').ok_or_else(wrong)?;
            let volume = JobVolume::from_str(volume).map_err(|()| wrong())?;
            if name.is_empty() || volumes.insert(name.to_owned(), volume).is_some() {
                return Err(format!(
                    "--job-volume {option:?} has no name of its own; give each store one volume"
                ));
            }
        }
        Ok(volumes)
    }
}
