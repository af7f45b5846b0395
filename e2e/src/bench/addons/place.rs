//! Where it is measured: a management cluster with two releases of one stack, API servers that are the workload clusters, and an operator.

use std::fs;

use anyhow::{Context, Result};
use e2e::{
    AuditLog, ControlPlane, Operator, Options,
    audit::{AuditEvents, Mark},
    usage::Usage,
    webhooks::Certificates,
};
use futures::future::try_join_all;
use kube::Client;

use crate::{
    arguments::addons::AddonsArguments,
    bench::{
        ground::{Ground, OPERATOR_AGENT, elected},
        install::{Installed, install, until_quiet_in},
        stock::{OBJECTS, Shape, Stock, tag},
    },
    progress::Progress,
};

/// A place to measure.
pub(super) struct Place {
    pub(super) ground: Ground,
    pub(super) namespace: String,
    /// The two classes of the stack, the newer one last.
    pub(super) classes: [String; 2],
    pub(super) servers: Vec<Server>,
    pub(super) certificates: Certificates,
    stock: Stock,
}

/// An API server that is the workload cluster of many Clusters.
pub(super) struct Server {
    pub(super) control_plane: ControlPlane,
    pub(super) client: Client,
    pub(super) audit: AuditLog,
    pub(super) kubeconfig: String,
}

/// An operator that has nothing to do.
pub(super) struct Operated {
    pub(super) operator: Operator,
    /// Its process id.
    pub(super) process: u32,
    /// Before there were clusters.
    pub(super) empty: Usage,
    /// Watches that others have in the workload clusters.
    pub(super) watches: f64,
}

impl Place {
    /// Starts everything but the operator, and packs the releases.
    pub(super) async fn find(arguments: &AddonsArguments, progress: &Progress) -> Result<Self> {
        let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
        let namespace = ground.namespace("addons").await?;
        let servers = try_join_all((0..arguments.servers).map(|_| Server::start())).await?;
        let shape = Shape::even(2, 1, OBJECTS);
        let stock = Stock::pack(ground.folder(), &shape, progress).await?;
        let name = stock.names().next().context("there is one stack")?;
        let classes = ["v1", "v2"].map(|version| tag(name, version));
        let certificates = Certificates::at(&ground.folder().join("hooks"))?;
        Ok(Self {
            ground,
            namespace,
            classes,
            servers,
            certificates,
            stock,
        })
    }

    /// Starts the operator, and returns when both classes can be used and it rests.
    pub(super) async fn operate(&self, progress: &Progress) -> Result<Operated> {
        let loopback = vec!["--allow-workload-loopback".into()];
        let flags = [elected(&self.namespace), self.certificates.hook_flags(), loopback].concat();
        let operator = self
            .ground
            .operate(&self.namespace, &self.stock.releases, flags)
            .await?;
        let installed = Box::pin(install(&self.ground, operator, &self.namespace, &self.stock, progress)).await?;
        let Installed {
            operator,
            process,
            idle,
            ..
        } = installed;
        Ok(Operated {
            operator,
            process,
            empty: idle,
            watches: self.watches().await?,
        })
    }

    /// The API server of the Cluster with this number.
    pub(super) fn server_of(&self, number: usize) -> &Server {
        &self.servers[number % self.servers.len()]
    }

    /// All API servers, that of the management cluster first.
    pub(super) fn clients(&self) -> impl Iterator<Item = &Client> {
        let servers = self.servers.iter().map(|server| &server.client);
        std::iter::once(&self.ground.client).chain(servers)
    }

    /// Their audit logs, in the same order.
    pub(super) fn logs(&self) -> Vec<&AuditLog> {
        let servers = self.servers.iter().map(|server| &server.audit);
        std::iter::once(&self.ground.audit).chain(servers).collect()
    }

    /// Now, in all of these.
    pub(super) async fn marks(&self) -> Result<Vec<Mark>> {
        try_join_all(self.logs().into_iter().map(AuditLog::mark)).await
    }

    /// What the operator asked each API server since then, in the same order.
    pub(super) async fn requests_since(&self, marks: Vec<Mark>) -> Result<Vec<AuditEvents>> {
        let logs = self.logs().into_iter().zip(marks);
        let told = try_join_all(logs.map(|(log, mark)| log.told(mark, OPERATOR_AGENT))).await?;
        Ok(told.into_iter().map(|events| events.of_agent(OPERATOR_AGENT)).collect())
    }

    /// Returns when the operator has written nothing anywhere for a while.
    pub(super) async fn until_quiet(&self, progress: &Progress) -> Result<()> {
        until_quiet_in(&self.logs(), OPERATOR_AGENT, progress).await
    }

    /// Watches that are open in all workload clusters, whoever holds them, as their API servers say.
    pub(super) async fn watches(&self) -> Result<f64> {
        let metrics = try_join_all(self.servers.iter().map(|server| server.control_plane.metrics())).await?;
        let open = |metrics: &e2e::Metrics| metrics.sum("apiserver_longrunning_requests", &[("verb", "WATCH")]);
        Ok(metrics.iter().filter_map(open).sum::<f64>())
    }

    /// Leaves nothing behind.
    pub(super) async fn clean_up(self) -> Result<()> {
        for server in self.servers {
            server.control_plane.stop().await?;
        }
        self.ground.clean_up(&[self.namespace]).await
    }
}

impl Server {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::start(Options {
            workloads: true,
            audit_bodies: true,
            ..Options::default()
        })
        .await?;
        let path = control_plane.kubeconfig_path();
        let kubeconfig = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(Self {
            client: control_plane.client(),
            audit: control_plane.audit_log(),
            kubeconfig,
            control_plane,
        })
    }
}
