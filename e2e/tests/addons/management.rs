//! Management clusters. Starting one costs more than most courses, and each course needs no more of it than a namespace: they share one for each minor of
//! Cluster API.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use e2e::{
    ControlPlane, Journey, Options,
    cluster_api::{Manager, Provider, Release, webhooks_are_asked},
    eventually,
    hooks::extension_configs,
    journey::SOON,
    shim::{Contract, Shim, Workload, install},
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, TypeMeta},
    core::GroupVersionKind,
};
use tokio::sync::Mutex;

use crate::ground::{CLUSTER_API, extension_of};

/// A control plane with Cluster API and what plays its providers.
pub(crate) struct Management {
    /// Which Cluster API.
    pub(crate) release: Release,
    /// What is said of Clusters in one namespace touches none in others.
    pub(crate) shim: Shim,
    _manager: Manager,
    pub(crate) control_plane: Arc<ControlPlane>,
}

/// They end with the process.
static SHARED: Mutex<BTreeMap<Release, Arc<Management>>> = Mutex::const_new(BTreeMap::new());

impl Management {
    /// That of all courses on this minor, which the first of them starts.
    pub(crate) async fn shared(release: Release) -> Result<Arc<Self>> {
        let mut shared = SHARED.lock().await;
        if let Some(known) = shared.get(&release)
            && webhooks_are_asked(&known.control_plane.client()).await.is_ok()
        {
            return Ok(Arc::clone(known));
        }
        // There is none, or it has died, which is to be the misfortune of one course.
        let started = Arc::new(Self::start(release).await?);
        shared.insert(release, Arc::clone(&started));
        Ok(started)
    }

    /// One for somebody alone. Its Clusters are nowhere until the shim is told where.
    pub(crate) async fn start(release: Release) -> Result<Self> {
        let options = Options {
            crds: true,
            played_providers: true,
            audit_bodies: true,
            ..Options::default()
        };
        let control_plane = Arc::new(ControlPlane::start(options).await?);
        install(&control_plane.client(), &Contract::ALL).await?;
        let manager = Manager::start(&control_plane, Provider::Core, release).await?;
        let nowhere = Workload::away(control_plane.access()).await?;
        Ok(Self {
            release,
            shim: Shim::start(control_plane.access(), &nowhere).await?,
            _manager: manager,
            control_plane,
        })
    }

    /// Ends what a course has begun. Its Clusters go as Clusters go, while others have theirs: nobody waits for it.
    pub(crate) async fn leave(&self, journey: &mut Journey, home: &str) -> Result<()> {
        // Some courses end without an operator, and some before Cluster API has heard of one.
        let _ = journey.kill_operator().await;
        let how = DeleteParams::default();
        let _ = extension_configs(&journey.client)
            .delete(extension_of(journey), &how)
            .await;
        self.shim.forget(home);
        let kind = GroupVersionKind::try_from(&TypeMeta {
            api_version: CLUSTER_API.to_owned(),
            kind: "Cluster".to_owned(),
        })?;
        let kind = ApiResource::from_gvk(&kind);
        let clusters = Api::<DynamicObject>::namespaced_with(journey.client.clone(), home, &kind);
        // A manager that is busy may answer too late whether they may go.
        eventually(SOON, "the Clusters of a course to be deleted", async || {
            clusters.delete_collection(&how, &ListParams::default()).await.map(drop)
        })
        .await
    }
}
