//! A proxy between a program and the API server that can fail at any moment, exactly once or for a while.
//!
//! It speaks TLS on a loopback port, by an authority of its own that its kubeconfigs name: operators talk to the API server of a workload
//! cluster in no other way. It passes everything on over the API server's TLS, watches as they come, and counts writes, so that a test can
//! name the n-th one. What happens to the program at that moment is the test's business:
//!
//! ```no_run
//! # async fn crash(proxy: e2e::FaultProxy, mut operator: e2e::Process) -> anyhow::Result<()> {
//! # use std::time::Duration;
//! let strike = proxy.strike_at(3, e2e::Point::AfterCommit);
//! let struck = strike.wait(Duration::from_secs(30)).await?; // the third write is stored, its answer is held
//! operator.kill9().await?;
//! drop(struck); // the next operator finds fair weather
//! # Ok(()) }
//! ```

mod asked;
mod delay;
mod forward;
mod instead;
mod overlooked;
mod past;
mod storm;
mod strike;
mod watching;
mod weather;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use kube::Client;
use openstack_lab::listening::{Listening, Port};

pub(crate) use self::storm::Dice;
pub use self::{
    asked::{Asked, Verb},
    delay::{Delay, Late},
    forward::MEDDLED,
    storm::{Blow, Fault, Forecast, Interruption, InterruptionKind},
    strike::{Point, Strike, Struck, Write},
    weather::Weather,
};
use self::{forward::Forwarder, strike::Ledger};
use crate::{
    ControlPlane, Identity,
    authority::Authority,
    control_plane::{Access, write_kubeconfig},
};

/// A running proxy. Dropped, it closes every connection.
#[derive(Debug)]
pub struct FaultProxy {
    state: Arc<Forwarder>,
    behind: Access,
    front: Access,
    folder: PathBuf,
    listening: Listening,
}

impl FaultProxy {
    /// Starts one before a control plane; it must be dropped before that is.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let behind = control_plane.access().clone();
        let state = Arc::new(Forwarder::new(&behind)?);
        let answering = Arc::clone(&state);
        let authority = Authority::new()?;
        let port = Port::open().await?;
        let server = format!("https://127.0.0.1:{}", port.number());
        let listening = authority.sign()?.answer(port, move |request| {
            let state = Arc::clone(&answering);
            async move { state.answer(request).await }
        })?;
        let front = Access::admin(server, authority.pem, behind.token().to_owned());
        let folder = control_plane.folder().to_owned();
        Ok(Self {
            state,
            behind,
            front,
            folder,
            listening,
        })
    }

    /// Where it is and how it is talked to, as [`ControlPlane::access`] tells it of the API server itself.
    pub fn access(&self) -> &Access {
        &self.front
    }

    /// Writes a kubeconfig through the proxy into the control plane's folder and returns its path.
    pub async fn kubeconfig_for(&self, identity: &Identity) -> Result<PathBuf> {
        let name = format!("kubeconfig-{}-{}", self.listening.port(), identity.file_name());
        let path = self.folder.join(name);
        self.write_kubeconfig(&path, identity).await?;
        Ok(path)
    }

    async fn write_kubeconfig(&self, path: &Path, identity: &Identity) -> Result<()> {
        // Made behind the proxy: the token's own writes are not the program's.
        let credentials = self.behind.credentials(identity).await?;
        write_kubeconfig(path, &self.front.kubeconfig(&credentials))
    }

    /// The administrator's client through the proxy.
    pub async fn client(&self) -> Result<Client> {
        self.front.client(&Identity::Admin).await
    }

    fn ledger(&self) -> &Ledger {
        &self.state.ledger
    }

    /// The writes that arrived, in order of arrival. Not counted: Leases, dry runs, reviews of access and tokens.
    pub fn writes(&self) -> Vec<Write> {
        self.ledger().writes()
    }

    /// How many requests arrived, of whatever kind and whatever became of them.
    pub fn requests(&self) -> usize {
        self.state.arrived()
    }

    /// Begins the list of [`FaultProxy::writes`] anew: the next one is the first.
    pub fn forget_writes(&self) {
        self.ledger().forget();
    }

    /// Arms the proxy for the `n`-th write of the list, counted from 1. The later of two calls replaces the earlier.
    pub fn strike_at(&self, n: usize, point: Point) -> Strike {
        self.strike_among(|_| true, n, point)
    }

    /// The same for the `n`-th of those writes of the list that `is_counted` answers true for.
    pub fn strike_among(&self, is_counted: fn(&Write) -> bool, n: usize, point: Point) -> Strike {
        self.ledger().arm(is_counted, n, point)
    }

    /// Holds the next write for which `is_meant` answers true; everything else passes.
    pub fn delay(&self, is_meant: impl Fn(&Write) -> bool + Send + 'static) -> Delay {
        self.state.delays.expect(Box::new(is_meant))
    }

    /// How many requests wait now because of a strike, of a delay, of [`Weather::Hang`] or of
    /// [`Weather::Slow`].
    pub fn held(&self) -> usize {
        self.state.held()
    }

    /// How every request is treated from now on, until the next call.
    pub fn set_weather(&self, weather: Weather) {
        self.state.weather.send_replace(weather);
    }

    /// From now on whoever asks for this path (without a query) gets these bytes as JSON, in this encoding, and the API server hears nothing of it.
    pub fn say_instead(&self, path: &str, encoding: Option<&'static str>, body: Vec<u8>) {
        self.state.instead.say(path, encoding, body);
    }

    /// Breaks every watch that runs, in the middle of its body. New ones are welcome.
    pub fn cut_watches(&self) {
        self.state.watches.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// From now on requests meet what this forecast says, counted anew. It ends by itself, because it strikes the first few of each kind only.
    pub fn set_storm(&self, forecast: Forecast) {
        self.state.storm.begin(Some(forecast));
    }

    /// The next request that does this to that (the plural, with the subresource behind a slash) meets this fault, whatever the storm is.
    pub fn deal(&self, verb: Verb, resource: &str, fault: Fault) {
        let resource = resource.to_owned();
        self.state.storm.deal(Asked { verb, resource }, fault);
    }

    /// The `n`-th request from now on, counted from 1, meets this fault, whatever it asks for and whatever the storm is. The later of two calls replaces the
    /// earlier.
    pub fn fail_at(&self, n: usize, fault: Fault) {
        self.state.storm.choose(n, fault);
    }

    /// The storm is over. What was struck before takes its course: a watch may still be interrupted.
    pub fn calm(&self) {
        self.state.storm.begin(None);
    }

    /// What storms did so far, in order.
    pub fn blows(&self) -> Vec<Blow> {
        self.state.storm.blows()
    }

    /// For a while, from the next read on, reads are answered with what was so at this resource version, and watches that begin have no news: an
    /// API server that was cut off from its storage. Writes reach the present.
    pub fn answer_from(&self, version: u64, lasting: Duration) {
        self.state.standstill.begin(version, lasting);
    }

    /// Whether a read was answered since the last [`FaultProxy::answer_from`].
    pub fn answered_from_the_past(&self) -> bool {
        self.state.standstill.was_felt()
    }

    /// Whether reads are answered from the present again, after one was answered from the past.
    pub fn past_is_over(&self) -> bool {
        self.state.standstill.is_over()
    }

    /// Counts the events about objects of this namespace that watches tell from now on, and loses the `n`-th of them, counted from 1: its watch
    /// is blind for a while and then tells (410) to list anew. Without a number it only counts.
    pub fn lose_event(&self, namespace: &str, n: Option<usize>, lasting: Duration) {
        let chosen = n.map(|n| (n, lasting));
        self.state.watches.overlooked.choose(namespace, None, chosen);
    }

    /// The same for the events that name a kind: those about objects of it, and about objects that have one for their owner.
    pub fn lose_event_of(&self, kind: &str, namespace: &str, n: Option<usize>, lasting: Duration) {
        let chosen = n.map(|n| (n, lasting));
        self.state.watches.overlooked.choose(namespace, Some(kind), chosen);
    }

    /// How many events were counted.
    pub fn events(&self) -> usize {
        self.state.watches.overlooked.seen()
    }

    /// The beginning of the event that was lost, if it came.
    pub fn lost_event(&self) -> Option<String> {
        self.state.watches.overlooked.lost()
    }
}
