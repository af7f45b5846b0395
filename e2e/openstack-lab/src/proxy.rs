//! What stands before a Keystone and a Glance and has the network, or what else is on the way, misbehave at a chosen request and a chosen byte. It
//! passes everything on as it comes, counts it, and leads to itself in the catalogue; what the services mean it does not know.

mod forward;
mod strike;
mod trouble;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result, anyhow, ensure};
use http::{Method, StatusCode};
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::Instant,
};
use url::Url;

use self::{
    forward::forward,
    strike::{Armed, Stop, is_change},
    trouble::Rule,
};
pub use self::{
    strike::{Point, Strike, Struck},
    trouble::Trouble,
};
use crate::{
    Site,
    listening::{Listening, Port},
    lock,
};

/// One request, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// When it came.
    pub at: Instant,
    /// How many bytes its body has by its own words; none where it says nothing of that.
    pub announced: Option<u64>,
    /// What befell it.
    pub trouble: Option<Trouble>,
    /// Bytes of its body that were passed on, so far.
    pub sent: u64,
    /// The status that was passed back; none until there is one.
    pub status: Option<StatusCode>,
}

/// A running proxy. Dropped, it closes every connection.
#[derive(Debug)]
pub struct Proxy {
    site: Site,
    state: Arc<State>,
    _listening: [Listening; 2],
}

#[derive(Debug)]
struct State {
    rules: Mutex<Vec<Rule>>,
    passed: Mutex<Vec<Passed>>,
    armed: Mutex<Option<Armed>>,
    /// Counts how often everything was let go.
    relented: watch::Sender<u64>,
    /// Connections to the services that nobody is at the other end of any more.
    stranded: Mutex<JoinSet<()>>,
    /// What the catalogue says of Glance, and what is said instead.
    images: (String, String),
}

/// One of the services behind it.
#[derive(Clone, Debug)]
struct Behind {
    /// Host and port.
    authority: String,
    /// Whether its answers may hold a catalogue.
    has_catalogue: bool,
}

impl Proxy {
    /// Starts one before the services of a site, which must not speak TLS.
    pub async fn start(site: &Site) -> Result<Self> {
        Self::start_at(site, Ipv4Addr::LOCALHOST).await
    }

    /// The same at another address of this machine, for those who do not reach its loopback.
    pub async fn start_at(site: &Site, address: Ipv4Addr) -> Result<Self> {
        ensure!(
            site.ca.is_none(),
            "the proxy reads what passes, and so needs a site without TLS"
        );
        let glance = Url::parse(&site.glance).context("the URL of Glance")?;
        let (identity, images) = (Port::open_at(address).await?, Port::open_at(address).await?);
        let keystone = through(&site.keystone, identity.address())?;
        let front = through(&glance, images.address())?;
        let front = front.as_str().trim_end_matches('/').to_owned();
        let state = Arc::new(State {
            rules: Mutex::default(),
            passed: Mutex::default(),
            armed: Mutex::default(),
            relented: watch::Sender::new(0),
            stranded: Mutex::default(),
            images: (site.glance.clone(), front.clone()),
        });
        let begin = |port: Port, behind: &Url, has_catalogue| {
            let behind = Behind {
                authority: behind.authority().to_owned(),
                has_catalogue,
            };
            let state = Arc::clone(&state);
            port.answer(move |request| forward(behind.clone(), Arc::clone(&state), request))
        };
        let listening = [begin(identity, &site.keystone, true), begin(images, &glance, false)];
        Ok(Self {
            site: Site {
                keystone,
                glance: front,
                ..site.clone()
            },
            state,
            _listening: listening,
        })
    }

    /// The same cloud, by way of the proxy.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The next so many requests of this method whose target (path and query) has this part meet this. Of several rules the oldest counts.
    pub fn meet(&self, method: Method, part: &str, times: usize, trouble: Trouble) {
        lock(&self.state.rules).push(Rule {
            method,
            part: part.to_owned(),
            left: times,
            trouble,
        });
    }

    /// No request meets anything any more, and what waits goes on.
    pub fn relent(&self) {
        lock(&self.state.rules).clear();
        self.state.relented.send_modify(|times| *times += 1);
    }

    /// Every request so far, in the order in which they came, of both services.
    pub fn passed(&self) -> Vec<Passed> {
        lock(&self.state.passed).clone()
    }

    /// How many of them are of this method and have this part in their target.
    pub fn count(&self, method: &Method, part: &str) -> usize {
        let is_meant = |passed: &&Passed| passed.method == *method && passed.target.contains(part);
        self.passed().iter().filter(is_meant).count()
    }

    /// Those that change something of images, in the order in which they came.
    pub fn changes(&self) -> Vec<Passed> {
        let mut passed = self.passed();
        passed.retain(|passed| is_change(&passed.method, &passed.target));
        passed
    }

    /// Arms the proxy for the `n`-th of its [changes](Self::changes), counted from 1. The later of two calls replaces the earlier.
    pub fn strike_at(&self, n: usize, point: Point) -> Strike {
        let (waiting, strike) = oneshot::channel();
        *lock(&self.state.armed) = Some(Armed { n, point, waiting });
        Strike(strike)
    }

    /// How many have met something.
    pub fn met(&self) -> usize {
        self.passed().iter().filter(|passed| passed.trouble.is_some()).count()
    }
}

impl State {
    /// Counts a request; its number, what it meets, and where it stops if it is the chosen one.
    fn note(&self, method: &Method, target: &str, announced: Option<u64>) -> (usize, Option<Trouble>, Option<Stop>) {
        let trouble = {
            let mut rules = lock(&self.rules);
            let rule = rules.iter_mut().find(|rule| rule.is_meant(method, target));
            rule.map(|rule| {
                rule.left -= 1;
                rule.trouble.clone()
            })
        };
        let mut passed = lock(&self.passed);
        passed.push(Passed {
            method: method.clone(),
            target: target.to_owned(),
            at: Instant::now(),
            announced,
            trouble: trouble.clone(),
            sent: 0,
            status: None,
        });
        let stop = self.stop(&passed, method, target);
        (passed.len() - 1, trouble, stop)
    }

    /// Where the last one of these stops.
    fn stop(&self, passed: &[Passed], method: &Method, target: &str) -> Option<Stop> {
        if !is_change(method, target) {
            return None;
        }
        let changes = passed.iter().filter(|passed| is_change(&passed.method, &passed.target));
        let n = changes.count();
        let Armed { point, waiting, n: _ } = lock(&self.armed).take_if(|armed| armed.n == n)?;
        Some(Stop {
            point,
            method: method.clone(),
            target: target.to_owned(),
            waiting,
        })
    }

    fn change(&self, number: usize, change: impl FnOnce(&mut Passed)) {
        if let Some(passed) = lock(&self.passed).get_mut(number) {
            change(passed);
        }
    }

    /// Returns when everything is let go the next time.
    async fn until_relented(&self) {
        let mut relented = self.relented.subscribe();
        relented.mark_unchanged();
        // The sender lives as long as this does.
        let _ = relented.changed().await;
    }
}

/// The same URL at another address.
fn through(url: &Url, address: SocketAddr) -> Result<Url> {
    let mut front = url.clone();
    front
        .set_ip_host(address.ip())
        .map_err(|()| anyhow!("a URL without a host"))?;
    let changed = front.set_port(Some(address.port()));
    ensure!(changed.is_ok(), "{url} can have no port");
    Ok(front)
}
