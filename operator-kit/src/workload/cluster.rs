//! The life of the connection to one workload cluster: one task, which waits for one timer or for whoever wakes it. Nobody waits for the task.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::client::ClientBuilder;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tower::Layer;

use super::kubeconfig::{Access, secret_name};
use super::link::{Link, Told};
use super::owner::{CONNECTIONS, Entry, Owner};
use super::patience::Patience;
use super::probe::{bounded, probe, unread};
use super::pulse::Pulse;
use super::state::{News, Reason, State, Suspicion};
use crate::client::{Bounds, ReachLayer};
use crate::discovery::Discovery;
use crate::failure::chain;
use crate::objects::{Budget, Marked};

/// A healthy cluster that says nothing for so long is asked whether it is there. A watch says something every minute (a bookmark), so that one
/// that is watched is not asked at all.
const SILENCE: Duration = Duration::from_secs(90);

/// Until all of what a cluster serves is known: one without aggregated discovery is asked some fifty questions.
const DISCOVERY: Duration = Duration::from_secs(20);

/// Between a question that was not answered and the second one, which decides.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(1);

/// Requests that fail are no reason to ask for so long after a question that was answered.
const QUIET: Duration = Duration::from_secs(5);

/// A kubeconfig that is not there is told of when it is written. A Secret of its name that is not one of Cluster API's is not, and is seen after so long.
const UNTOLD: Duration = Duration::from_mins(5);

pub(super) struct Task {
    pub(super) owner: Arc<Owner>,
    pub(super) entry: Arc<Entry>,
}

/// A connection, and what its watches tell.
type Standing = (Link, Told);

/// Why there is no connection.
enum Trouble {
    /// There is no kubeconfig.
    Absent,
    /// Nobody could read it.
    Unread(Reason),
    For(Reason),
}

impl From<Reason> for Trouble {
    fn from(reason: Reason) -> Self {
        Self::For(reason)
    }
}

/// What the Secret says beside what the connection was made of.
enum Reread {
    Same,
    Another,
    /// Nobody could read it.
    Failed,
}

/// How a connection ended.
enum End {
    /// Another kubeconfig is there.
    Renewed,
    Lost(Trouble),
}

impl Task {
    pub(super) async fn run(self) {
        let cancel = self.entry.cancel.clone();
        cancel.run_until_cancelled(self.live()).await;
        let last = self.entry.enter(State::Disconnected, &self.owner.metrics);
        drop(last);
        self.owner.metrics.leaves(&State::Disconnected);
    }

    async fn live(&self) {
        let mut patience = Patience::of(&self.entry.uid);
        loop {
            let attempt = tokio::select! {
                attempt = self.connect() => attempt,
                () = self.told() => {
                    patience.forget();
                    continue;
                }
            };
            let trouble = match attempt {
                Ok(standing) => {
                    patience.succeeded();
                    match self.stay(standing, &patience).await {
                        End::Renewed => continue,
                        End::Lost(trouble) => trouble,
                    }
                }
                Err(trouble) => trouble,
            };
            self.lose(trouble, &mut patience).await;
        }
    }

    /// Reads the kubeconfig, asks the cluster once, and what it serves.
    async fn connect(&self) -> Result<Standing, Trouble> {
        let access = self.read_access().await?;
        if matches!(self.entry.state(), State::Disconnected) {
            self.entry.enter(State::Connecting, &self.owner.metrics);
        }
        let transport = self.owner.dial.dial(&access).map_err(|error| Reason::Secure {
            words: bounded(&chain(&error)),
        })?;
        let settings = &self.owner.settings;
        let bounds = Bounds {
            fence: settings.fence.clone(),
            reach: ReachLayer::silent(),
            traffic: self.owner.metrics.traffic.clone(),
            connections: CONNECTIONS,
            qps: settings.qps,
            burst: settings.burst,
        };
        let pulse = Pulse::new();
        let client = bounds.around(ClientBuilder::new(pulse.layer(transport), "default"));
        let discovery = Discovery::sharing(client.clone(), &self.owner.catalogues);
        tokio::try_join!(probe(&client), discovered(&discovery))?;
        let mut marked = Marked::by(&settings.label, &self.entry.workload.owner);
        if let Some(annotation) = &settings.annotation {
            marked = marked.keeping(annotation);
        }
        let budget = Budget {
            watches: settings.watches,
            objects: settings.objects,
            list_pause: Patience::of(&self.entry.uid).spread(settings.list_pause),
            matters: settings.matters,
            count: self.owner.metrics.watches(),
        };
        let watched = (marked, budget);
        Ok(Link::new(
            access,
            (client, pulse),
            discovery,
            watched,
            &self.entry.cancel,
        ))
    }

    async fn read_access(&self) -> Result<Access, Trouble> {
        let workload = &self.entry.workload;
        let secrets: Api<Secret> = Api::namespaced(self.owner.management.clone(), &workload.namespace);
        let read = secrets.get_opt(&secret_name(&workload.name)).await;
        let Some(secret) = read.map_err(|error| Trouble::Unread(unread(&error)))? else {
            self.entry.has_read(None);
            return Err(Trouble::Absent);
        };
        self.entry.has_read(secret.metadata.resource_version.as_deref());
        let access = Access::of_secret(secret, self.owner.settings.addresses);
        access.map_err(|refusal| Reason::from(refusal).into())
    }

    /// Waits until somebody says that it is worth asking again.
    async fn told(&self) {
        self.entry.again.notified().await;
    }

    /// Keeps a connection until it is lost, or one of another kubeconfig is to take its place.
    async fn stay(&self, (link, mut told): Standing, patience: &Patience) -> End {
        let connection = link.connection();
        self.entry.hears(link.pulse());
        self.entry.enter(State::Healthy(connection), &self.owner.metrics);
        self.say("the workload cluster is connected", None);
        let uid = Arc::clone(&self.entry.uid);
        self.owner.tell(News::Connected { uid }).await;
        let silence = patience.spread(SILENCE);
        let mut quiet_until = Instant::now();
        // A Secret that could not be read is told of once, and may be the end of credentials that are still accepted.
        let (mut pauses, mut read_again) = (patience.clone(), None);
        let end = loop {
            tokio::select! {
                news = told.next(&self.entry.uid) => self.owner.tell(news).await,
                () = self.told_or_at(read_again) => {
                    read_again = match self.newer(&link).await {
                        Reread::Another => break End::Renewed,
                        Reread::Failed => Some(Instant::now() + pauses.pause(None)),
                        Reread::Same => None,
                    };
                    if read_again.is_none() {
                        pauses.forget();
                    }
                }
                () = worried(&link, quiet_until, silence) => {
                    if let Err(end) = self.examine(&link).await {
                        break end;
                    }
                    quiet_until = Instant::now() + QUIET;
                }
            }
        };
        if matches!(end, End::Renewed) {
            self.entry.enter(State::Connecting, &self.owner.metrics);
            self.say("the kubeconfig of the workload cluster was renewed", None);
        }
        end
    }

    /// The same, or until then.
    async fn told_or_at(&self, at: Option<Instant>) {
        match at {
            Some(at) => {
                let _ = timeout_at(at, self.told()).await;
            }
            None => self.told().await,
        }
    }

    /// Reads the Secret again if another version of it was heard of.
    async fn newer(&self, link: &Link) -> Reread {
        if self.entry.is_secret_newer() {
            self.reread(link).await
        } else {
            Reread::Same
        }
    }

    async fn reread(&self, link: &Link) -> Reread {
        match self.read_access().await {
            Ok(access) if !access.is_same(link.access()) => Reread::Another,
            Err(Trouble::Unread(_)) => Reread::Failed,
            // What is not there or cannot be used says nothing about a connection that stands; the next version is told of.
            Ok(_) | Err(Trouble::Absent | Trouble::For(_)) => Reread::Same,
        }
    }

    /// Finds out whether a cluster is lost of which something makes that likely.
    async fn examine(&self, link: &Link) -> Result<(), End> {
        let begun = Instant::now();
        let mut asked = probe(link.client()).await;
        if asked.as_ref().is_err_and(|reason| !reason.is_of_credentials()) {
            // Servers close connections that they think nobody uses.
            sleep(BETWEEN_QUESTIONS).await;
            asked = probe(link.client()).await;
        }
        match asked {
            Ok(()) => Ok(()),
            Err(reason) if reason.is_of_credentials() => {
                if matches!(self.reread(link).await, Reread::Another) {
                    return Err(End::Renewed);
                }
                Err(End::Lost(reason.into()))
            }
            // Our own requests may stand in the way of the question.
            Err(Reason::Wait { .. }) if link.pulse().heard() > begun => Ok(()),
            Err(reason) => Err(End::Lost(reason.into())),
        }
    }

    /// Says that there is no connection, and waits until it is time to try again.
    async fn lose(&self, trouble: Trouble, patience: &mut Patience) {
        let reason = match trouble {
            Trouble::Absent => None,
            Trouble::Unread(reason) | Trouble::For(reason) => Some(reason),
        };
        let pause = patience.pause(reason.as_ref());
        let now = Instant::now();
        let before = self.entry.state();
        let state = match &reason {
            None => State::Disconnected,
            Some(reason) => State::Suspect(Suspicion {
                reason: reason.clone(),
                since: suspected_since(&before).unwrap_or(now),
                next_attempt: now + pause,
            }),
        };
        self.entry.enter(state, &self.owner.metrics);
        if is_news(&before, reason.as_ref()) {
            self.say("the workload cluster is not connected", reason.as_ref());
            let uid = Arc::clone(&self.entry.uid);
            self.owner.tell(News::Lost { uid }).await;
        }
        drop(before);
        let (is_absent, untold) = (reason.is_none(), patience.spread(UNTOLD));
        tokio::select! {
            () = sleep(pause), if !is_absent => {}
            () = self.unwritten(pause, untold), if is_absent => {}
            () = self.told() => patience.forget(),
        }
    }

    /// Waits until a kubeconfig that is not there is to be looked for: after the pause, or much later where a watch would tell of it.
    async fn unwritten(&self, pause: Duration, untold: Duration) {
        let mut is_told = self.entry.is_told.clone();
        if !matches!(timeout(pause, is_told.wait_for(|is_told| *is_told)).await, Ok(Ok(_))) {
            // Who does not tell any more has gone, and the cluster with him.
            return;
        }
        let _ = timeout(untold, is_told.wait_for(|is_told| !is_told)).await;
    }

    fn say(&self, what: &str, reason: Option<&Reason>) {
        let workload = &self.entry.workload;
        let (namespace, cluster) = (workload.namespace.as_str(), workload.name.as_str());
        if let Some(reason) = reason {
            tracing::warn!(namespace, cluster, %reason, "{what}");
        } else {
            tracing::info!(namespace, cluster, "{what}");
        }
    }
}

/// Reads what a cluster serves. Where that is not answered, each question about the cluster would wait for it anew; what is refused is told to whoever asks.
async fn discovered(discovery: &Discovery) -> Result<(), Reason> {
    match timeout(DISCOVERY, discovery.refresh()).await {
        Ok(_) => Ok(()),
        Err(_) => Err(Reason::Wait {
            seconds: DISCOVERY.as_secs(),
        }),
    }
}

/// Waits for what makes it likely that a cluster is lost: a request that failed, but not soon after it was found healthy, or that nothing is heard of it
/// for so long.
async fn worried(link: &Link, quiet_until: Instant, silence: Duration) {
    let failure = async {
        sleep_until(quiet_until).await;
        link.pulse().troubled().await;
    };
    let silent = async {
        while let due = link.pulse().heard() + silence
            && due > Instant::now()
        {
            sleep_until(due).await;
        }
    };
    tokio::select! {
        () = failure => {}
        () = silent => {}
    }
}

fn suspected_since(state: &State) -> Option<Instant> {
    match state {
        State::Suspect(suspicion) => Some(suspicion.since),
        _ => None,
    }
}

/// Whether a state says something that was not said before.
fn is_news(before: &State, reason: Option<&Reason>) -> bool {
    match (before, reason) {
        (State::Suspect(before), Some(reason)) => before.reason != *reason,
        (State::Disconnected, None) => false,
        _ => true,
    }
}
