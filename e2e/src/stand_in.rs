//! What stands in for a kubelet where a machine can have no [`crate::node`]: it runs the containers of Pods as processes of this user, in folders that
//! play the volumes, and says in their status what became of them. The control plane is a real one, the controller of Jobs too.
//!
//! There are no namespaces: a container sees the machine. Paths of mounts, of files of its image and of its termination message are replaced by those
//! of the folders wherever they stand in its command, its arguments and the values of its environment; a program that has such a path built in does not
//! find it. Limits, users and security contexts are not kept; probes, hooks, restarts and claims of volumes are refused or left out.

mod container;
mod paths;
mod pod;
mod status;
mod volumes;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::watch, task::JoinSet};

use self::pod::{Life, Wish};
use crate::{ControlPlane, Lab, Options, image::Image, web::lock};

/// A running stand-in and its control plane. Dropped, they are gone: processes, volumes and files.
pub struct StandIn {
    // In the order in which they have to go.
    watching: JoinSet<()>,
    ground: Arc<Ground>,
    control_plane: ControlPlane,
}

/// What all Pods share.
struct Ground {
    lab: Lab,
    client: Client,
    /// The URL of the API server.
    server: String,
    folder: PathBuf,
    images: Mutex<BTreeMap<String, Image>>,
}

impl Ground {
    fn folder_of(&self, namespace: &str, pod: &str) -> PathBuf {
        self.folder.join(namespace).join(pod)
    }
}

impl StandIn {
    /// Starts one with a control plane of its own, whose Pods are all its.
    pub async fn start() -> Result<Self> {
        let options = Options {
            workloads: true,
            ..Options::default()
        };
        let control_plane = ControlPlane::start(options).await?;
        let ground = Arc::new(Ground {
            lab: Lab::load()?,
            client: control_plane.client(),
            server: control_plane.access().server().to_owned(),
            // Locked, and gone with the control plane.
            folder: control_plane.folder().join("pods"),
            images: Mutex::default(),
        });
        let mut watching = JoinSet::new();
        watching.spawn(watch_pods(Arc::clone(&ground)));
        Ok(Self {
            watching,
            ground,
            control_plane,
        })
    }

    /// The control plane whose Pods it runs; it runs the controllers of Deployments, Jobs and their like.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// Makes an image known under its name.
    pub fn import_image(&self, image: &Image) {
        lock(&self.ground.images).insert(image.name().to_owned(), image.clone());
    }

    /// What a container of a Pod that is not deleted has written so far.
    pub fn logs(&self, namespace: &str, pod: &str, container: &str) -> Result<String> {
        let log = log_of(&self.ground.folder_of(namespace, pod), container);
        fs::read_to_string(&log).with_context(|| format!("{namespace}/{pod} has no log of {container}"))
    }

    /// Ends every process of a Pod, and stops the control plane.
    pub async fn stop(mut self) -> Result<()> {
        // With it the tasks of the Pods end, and with them their processes.
        self.watching.shutdown().await;
        self.control_plane.stop().await
    }
}

fn log_of(pod: &Path, container: &str) -> PathBuf {
    pod.join("containers").join(container).join("log")
}

/// Until it is aborted: one task for each Pod, which lives as long as that.
async fn watch_pods(ground: Arc<Ground>) {
    let pods = Api::<Pod>::all(ground.client.clone());
    let mut events = pin!(watcher(pods, watcher::Config::default()).default_backoff());
    let mut lives: HashMap<String, watch::Sender<Wish>> = HashMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let (pod, is_gone) = match events.try_next().await {
            Ok(Some(Event::Apply(pod) | Event::InitApply(pod))) => (pod, false),
            Ok(Some(Event::Delete(pod))) => (pod, true),
            Ok(Some(Event::Init | Event::InitDone)) => continue,
            Ok(None) => return,
            Err(error) => {
                eprintln!("the stand-in of the kubelet sees no Pods: {error}");
                continue;
            }
        };
        let uid = pod.uid().unwrap_or_default();
        let grace = pod.metadata.deletion_timestamp.as_ref().map(|_| {
            let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
            u64::try_from(seconds).unwrap_or_default()
        });
        if is_gone {
            if let Some(life) = lives.remove(&uid) {
                life.send_replace(Wish::Gone);
            }
            continue;
        }
        let life = lives.entry(uid).or_insert_with(|| {
            let (sender, receiver) = watch::channel(Wish::Run);
            tasks.spawn(Life::new(Arc::clone(&ground), pod, receiver).live());
            sender
        });
        if let Some(grace) = grace {
            life.send_replace(Wish::End { grace });
        }
        // Tasks that have ended are forgotten.
        while tasks.try_join_next().is_some() {}
    }
}
