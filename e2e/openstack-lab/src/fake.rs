//! A Keystone and a Glance in this process, over real connections. It decides what they answer, as far as the [facts](crate::facts) and the
//! clients of images can see, also where that is ugly; images are kept in memory, and nothing else of OpenStack is there.
//!
//! Nothing happens by the clock but the end of tokens: an import that is to take long is held, and let go.

mod admin;
mod answers;
mod faults;
mod identity;
mod images;
mod imports;
mod listing;
mod model;
mod patch;
mod quota;
mod serving;
mod upload;
mod versions;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::sync::watch;
use url::Url;

pub use self::faults::Asked;
use self::{faults::Faults, model::State};
use crate::{
    Kind, Limits, Site,
    authority::{Authority, Pair},
    listening::{Listening, Port},
    lock,
};

/// The region of the endpoints.
const REGION: &str = "RegionOne";
/// Where images are put when nobody chooses.
const DEFAULT_STORE: &str = "store-a";
/// The stores there are.
const STORES: [&str; 2] = [DEFAULT_STORE, "store-b"];

/// How a fake is to be.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a service, each of which goes with each other"
)]
pub struct FakeOptions {
    /// Whether the services are below `/identity` and `/image`. Links between pages leave that out, as Glance does.
    pub prefix: bool,
    /// Whether they speak TLS, by a certificate of an authority of their own.
    pub tls: bool,
    /// Whether they speak it only with who shows the certificate of [`Fake::client`].
    pub asks_for_certificates: bool,
    /// How long tokens are good for.
    pub token_ttl: Duration,
    /// The import methods that are announced, and do something.
    pub methods: Vec<String>,
    /// Images on a page when nobody asks for another number.
    pub page: usize,
    /// What projects may hold, by name; the others may hold all they like.
    pub limits: BTreeMap<String, Limits>,
    /// Whether the service knows `os_hidden`; clouds that only look like OpenStack may not.
    pub knows_hidden: bool,
    /// Images up to so many bytes are kept as a whole, so that they can be read back. Of others only digests and size are known.
    pub keep: usize,
    /// A Python that has openstacksdk.
    pub python: Option<PathBuf>,
}

impl Default for FakeOptions {
    fn default() -> Self {
        let methods = ["glance-direct", "web-download", "copy-image"];
        Self {
            prefix: false,
            tls: false,
            asks_for_certificates: false,
            token_ttl: Duration::from_hours(1),
            methods: methods.map(str::to_owned).to_vec(),
            page: 25,
            limits: BTreeMap::from([("tiny".to_owned(), Limits::TINY)]),
            knows_hidden: true,
            keep: 64 * 1024 * 1024,
            python: None,
        }
    }
}

/// A running fake. Dropped, it closes every connection and forgets all images.
#[derive(Debug)]
pub struct Fake {
    site: Site,
    client: Option<Pair>,
    shared: Arc<Shared>,
    _listening: [Listening; 2],
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    options: FakeOptions,
    /// The URL of Keystone, with `/v3`.
    keystone: String,
    /// The URL of Glance, without a version.
    glance: String,
    state: Mutex<State>,
    faults: Faults,
    /// Whether imports stand still.
    held: watch::Sender<bool>,
    /// Whether imports make something else of what they get.
    converts: AtomicBool,
    /// Counts crashes; every connection ends with the next one.
    lives: watch::Sender<u64>,
}

impl Fake {
    /// Starts one on two ports of this machine.
    pub async fn start(options: FakeOptions) -> Result<Self> {
        let (keystone, glance) = (Port::open().await?, Port::open().await?);
        let authority = options.tls.then(Authority::new).transpose()?;
        let url = |port: u16, prefix: &str| {
            let scheme = if options.tls { "https" } else { "http" };
            let prefix = if options.prefix { prefix } else { "" };
            format!("{scheme}://127.0.0.1:{port}{prefix}")
        };
        let keystone_url = format!("{}/v3", url(keystone.number(), "/identity"));
        let glance_url = url(glance.number(), "/image");
        let site = Site {
            kind: Kind::Fake,
            keystone: Url::parse(&keystone_url).context("the URL of Keystone")?,
            glance: glance_url.clone(),
            ca: authority.as_ref().map(|authority| authority.pem.clone()),
            region: REGION.to_owned(),
            clouds: identity::clouds(),
            default_store: DEFAULT_STORE.to_owned(),
            tiny: options.limits.get("tiny").copied().unwrap_or(Limits::WIDE),
            python: options.python.clone(),
        };
        let shared = Arc::new(Shared {
            options,
            keystone: keystone_url,
            glance: glance_url,
            state: Mutex::default(),
            faults: Faults::default(),
            held: watch::Sender::new(false),
            converts: AtomicBool::new(false),
            lives: watch::Sender::new(0),
        });
        let asks_for_certificates = shared.options.asks_for_certificates;
        let tls = authority
            .as_ref()
            .map(|authority| authority.acceptor(asks_for_certificates))
            .transpose()?;
        let serve = |port, service| serving::serve(port, tls.clone(), Arc::clone(&shared), service);
        let listening = [
            serve(keystone, serving::Service::Identity),
            serve(glance, serving::Service::Images),
        ];
        Ok(Self {
            site,
            client: authority.map(|authority| authority.client),
            shared,
            _listening: listening,
        })
    }

    /// What a test may know about it.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// What a client shows where it is asked for, if they speak TLS.
    pub fn client(&self) -> Option<&Pair> {
        self.client.as_ref()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// How often it crashed.
    fn life(&self) -> u64 {
        *self.lives.borrow()
    }

    /// Ends when imports may go on.
    async fn until_imports_go_on(&self) {
        let mut held = self.held.subscribe();
        // The sender lives as long as this does.
        let _ = held.wait_for(|held| !held).await;
    }
}
