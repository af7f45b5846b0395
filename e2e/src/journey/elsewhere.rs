//! Journeys on a control plane of their own, which ends with them: what Cluster API is to look after, what others would notice, what there is to be two of.

use std::sync::Arc;

use anyhow::Result;

use super::{Journey, make_namespace, start};
use crate::{ControlPlane, Options};

impl Journey {
    /// A journey within this one, in a namespace of the same name and with the same releases, on a control plane that nobody else uses and that
    /// ends with it.
    pub async fn elsewhere(&self, travel: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.on(Arc::new(start(Options::default()).await?), travel).await
    }

    /// The same where no provider of Cluster API is real: there are no CRDs of any. The core's are there, which a manager replaces by its own.
    pub async fn elsewhere_with_played_providers(
        &self,
        travel: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let options = Options {
            played_providers: true,
            ..Options::default()
        };
        self.on(Arc::new(start(options).await?), travel).await
    }

    /// The same on a control plane that somebody has started with CRDs and bodies in its audit log, and may let others use.
    pub async fn on(
        &self,
        control_plane: Arc<ControlPlane>,
        travel: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        make_namespace(&control_plane.client(), &self.namespace).await?;
        let mut journey = Self::begin(control_plane, self.lab, self.namespace.clone()).await?;
        self.releases.root().clone_into(&mut journey.options.release_dir);
        journey.releases = self.releases.clone();
        journey.travel(travel).await
    }
}
