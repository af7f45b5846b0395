//! What runs the Pods of a test: the real [`crate::node`] where the machine can hold one, and [`crate::stand_in`], which every machine can. What a test
//! says of one it should say of the other; where only one can show it, the test says so.

use std::{fs, net::Ipv4Addr};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};

pub use crate::image::Image;
use crate::{ControlPlane, Lab, node::Node, stand_in::StandIn, summary};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// kubelet, containerd and runc.
    Real,
    /// Processes of this user.
    StandIn,
}

/// One that runs, with a control plane of its own. Dropped, all of it is gone.
pub enum Kubelet {
    /// See [`Node`].
    Real(Box<Node>),
    /// See [`StandIn`].
    StandIn(Box<StandIn>),
}

/// The one that shows most of what this machine can show; where that is not the real one, also why.
pub fn best() -> Result<(Kind, Option<String>)> {
    let lab = Lab::load()?;
    Ok(match lab.node() {
        Ok(_) => (Kind::Real, None),
        Err(reason) => (Kind::StandIn, Some(reason.to_owned())),
    })
}

/// Those that this machine can run, the real one first. Where it is missing, that is said for the summary of the run.
pub fn kinds() -> Result<Vec<Kind>> {
    let lab = Lab::load()?;
    match lab.node() {
        Ok(_) => Ok(vec![Kind::Real, Kind::StandIn]),
        Err(reason) => {
            summary::reduced(&format!("Pods run under a stand-in of the kubelet alone ({reason})"));
            Ok(vec![Kind::StandIn])
        }
    }
}

impl Kubelet {
    /// Starts one and returns when it can run Pods in the namespace `default`.
    pub async fn start(kind: Kind) -> Result<Self> {
        Ok(match kind {
            Kind::Real => Self::Real(Box::new(Node::start().await?)),
            Kind::StandIn => Self::StandIn(Box::new(StandIn::start().await?)),
        })
    }

    /// Which one it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Real(_) => Kind::Real,
            Self::StandIn(_) => Kind::StandIn,
        }
    }

    /// Its control plane: clients and kubeconfigs for the test and for the operators that it starts.
    pub fn control_plane(&self) -> &ControlPlane {
        match self {
            Self::Real(node) => node.control_plane(),
            Self::StandIn(stand_in) => stand_in.control_plane(),
        }
    }

    /// The address on which a server of the test has to listen for Pods to reach it. This machine reaches it, too.
    pub fn host(&self) -> Ipv4Addr {
        match self {
            Self::Real(node) => node.host(),
            Self::StandIn(_) => Ipv4Addr::LOCALHOST,
        }
    }

    /// Makes an image known, for Pods with `imagePullPolicy` `IfNotPresent` or `Never`.
    pub fn import_image(&self, image: &Image) -> Result<()> {
        match self {
            Self::Real(node) => node.import_image(image),
            Self::StandIn(stand_in) => {
                stand_in.import_image(image);
                Ok(())
            }
        }
    }

    /// What a container of a Pod that is there has written so far.
    pub async fn logs(&self, namespace: &str, pod: &str, container: &str) -> Result<String> {
        match self {
            Self::Real(node) => {
                let parameters = LogParams {
                    container: Some(container.to_owned()),
                    ..LogParams::default()
                };
                let pods = Api::<Pod>::namespaced(node.control_plane().client(), namespace);
                let logs = pods.logs(pod, &parameters).await;
                logs.with_context(|| format!("failed to read the log of {container} in {namespace}/{pod}"))
            }
            Self::StandIn(stand_in) => stand_in.logs(namespace, pod, container),
        }
    }

    /// Stops everything, and says what failed on the way; dropping does the same in silence.
    pub async fn stop(self) -> Result<()> {
        match self {
            Self::Real(node) => node.stop().await,
            Self::StandIn(stand_in) => stand_in.stop().await,
        }
    }
}

/// The ids on this machine of the processes that have this word in their command line, in a container or not.
pub fn processes_with(word: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let has_it = |id: &u32| {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split('\0').any(|part| part.contains(word))
    };
    ids.filter(has_it).collect()
}
