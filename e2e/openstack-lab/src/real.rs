//! Keystone and Glance themselves, as processes of this machine: configured, filled, started, and gone with the process that started them. What
//! they are made from is what `cargo xtask setup` installed; see [`Installed`]. It decides nothing that they answer.
//!
//! A start takes some seconds, so that a program of tests has one for all of them, each in a [project](Real::project) of its own.

mod configuration;
mod folder;
mod installed;
mod keystone;
mod secret;
mod seed;
mod server;

use std::{collections::BTreeMap, fs, net::Ipv4Addr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::{process::Command, time};
use url::Url;

pub use self::installed::Installed;
use self::{
    configuration::Configuration,
    folder::Folder,
    keystone::Session,
    server::{Server, free_port},
};
use crate::{Kind, Limits, Login, Site, authority::Authority, client::Client};

/// The region of the endpoints.
const REGION: &str = "RegionOne";
/// Where images are put when nobody chooses.
const DEFAULT_STORE: &str = "store-a";
/// The stores there are.
const STORES: [&str; 2] = [DEFAULT_STORE, "store-b"];

/// How often a credential is asked for.
const CREDENTIAL_TRIES: u32 = 10;
/// Between two such tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// How they are to be.
#[derive(Clone, Debug)]
pub struct RealOptions {
    /// Whether the services are below `/identity` and `/image`.
    pub prefix: bool,
    /// Whether they speak TLS, by a certificate of an authority of their own.
    pub tls: bool,
    /// How long tokens are good for, in whole seconds.
    pub token_ttl: Duration,
    /// The ways in which Glance imports images; by one that is not among them it refuses to.
    pub methods: &'static [&'static str],
    /// Where they listen: an address of this machine, and the one that the catalogue names. Their certificate is for loopback alone.
    pub address: Ipv4Addr,
    /// Whether projects have limits, which Glance asks Keystone for several times before each upload. Most clouds have none.
    pub limits: bool,
    /// How many requests each of them answers at the same time; further ones wait. One that brings bytes takes as long as these.
    pub threads: u16,
}

impl Default for RealOptions {
    fn default() -> Self {
        Self {
            prefix: false,
            tls: false,
            token_ttl: Duration::from_hours(1),
            methods: &["glance-direct", "web-download", "copy-image"],
            address: Ipv4Addr::LOCALHOST,
            limits: true,
            threads: 8,
        }
    }
}

/// A running Keystone and a running Glance. Dropped, both are killed and all images are gone; they also end with this process, however it ends.
#[derive(Debug)]
pub struct Real {
    site: Site,
    client: Client,
    administrator: Login,
    glance: Server,
    _keystone: Server,
    // Last, because the processes work in it.
    folder: Folder,
}

impl Real {
    /// Starts them on two ports of this machine.
    pub async fn start(installed: &Installed, options: &RealOptions) -> Result<Self> {
        let folder = Folder::new()?;
        installed.copy_databases(folder.path())?;
        let authority = options.tls.then(Authority::new).transpose()?;
        write_authority(folder.path(), authority.as_ref())?;
        let ports = [free_port(options.address)?, free_port(options.address)?];
        let configuration = Configuration::new(installed, folder.path(), options, ports);
        let client = Client::new(authority.as_ref().map(|authority| authority.pem.as_str()))?;

        configuration.write_keystone()?;
        let keystone = Server::start(installed, &configuration.keystone, &client).await?;
        let url = Url::parse(&configuration.keystone.url).context("the URL of Keystone")?;
        let seeded = seed::fill(&client, &url, &configuration.glance.url, installed.password()?).await?;
        configuration.write_glance(&seeded)?;
        let glance = Server::start(installed, &configuration.glance, &client).await?;
        let site = Site {
            kind: Kind::Real,
            keystone: url,
            glance: configuration.glance.url.clone(),
            ca: authority.map(|authority| authority.pem),
            region: REGION.to_owned(),
            clouds: seeded.clouds,
            default_store: DEFAULT_STORE.to_owned(),
            tiny: Limits::TINY,
            python: Some(installed.python()),
        };
        Ok(Self {
            site,
            client,
            administrator: seeded.administrator,
            glance,
            _keystone: keystone,
            folder,
        })
    }

    /// What a test may know about them.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The same services for somebody who has a project to himself: his site has the one cloud `openstack`, an application credential of a
    /// member of that project. Names of projects are unique, and have at most 64 characters.
    pub async fn project(&self, name: &str) -> Result<Site> {
        self.project_for(name, None).await
    }

    /// The same with a credential that is good for some calls alone: a list of access rules of Keystone.
    pub async fn project_for(&self, name: &str, rules: Option<&Value>) -> Result<Site> {
        let administrator = Session::open(&self.client, &self.site.keystone, &self.administrator).await?;
        let project = seed::project(&administrator, name).await?;
        let member = seed::user(&administrator, name, &project, "member").await?;
        let credential = self.credential(&member, name, rules).await?;
        Ok(Site {
            clouds: BTreeMap::from([("openstack".to_owned(), credential)]),
            ..self.site.clone()
        })
    }

    /// Somebody who may look at a project that was made before, and no more.
    pub async fn reader(&self, project: &str) -> Result<Login> {
        let administrator = Session::open(&self.client, &self.site.keystone, &self.administrator).await?;
        let id = administrator.find("projects", project).await?;
        let reader = seed::user(&administrator, &format!("{project}-reader"), &id, "reader").await?;
        Ok(reader.login(project))
    }

    /// Has an image be older by so much than it is. Glance takes that from nobody, so it is written where Glance keeps it.
    pub async fn age(&self, image: &str, by: Duration) -> Result<()> {
        const WRITES: &str = "import sqlite3, sys
_, path, image, seconds = sys.argv
database = sqlite3.connect(path, timeout=30)
made = \"strftime('%Y-%m-%d %H:%M:%S.000000', created_at, ?)\"
with database:
    found = database.execute(f'UPDATE images SET created_at = {made} WHERE id = ?', (f'-{seconds} seconds', image))
sys.exit(found.rowcount != 1)";
        let python = self.site.python.as_ref().context("there is no Python")?;
        let mut writing = Command::new(python);
        writing
            .args(["-c", WRITES])
            .arg(self.folder.path().join("glance.sqlite"));
        writing.arg(image).arg(by.as_secs().to_string());
        let written = writing.status().await.context("Python could not be started")?;
        ensure!(written.success(), "{image} could not be made older");
        Ok(())
    }

    /// Has a project hold no more than this from now on.
    pub async fn limit(&self, project: &str, limits: Limits) -> Result<()> {
        let keystone = &self.site.keystone;
        let administrator = Session::open(&self.client, keystone, &self.administrator).await?;
        let system = Session::open_system(&self.client, keystone, &self.administrator).await?;
        let images = administrator.find("services", "glance").await?;
        let project = administrator.find("projects", project).await?;
        seed::limit(&system, &images, &project, limits).await
    }

    /// While roles are given to many at once, Keystone may say for a moment that somebody has not the role by which he has just logged in.
    async fn credential(&self, member: &seed::User, project: &str, rules: Option<&Value>) -> Result<Login> {
        let mut left = CREDENTIAL_TRIES;
        loop {
            left -= 1;
            let owner = Session::open(&self.client, &self.site.keystone, &member.login(project)).await?;
            match seed::credential(&owner, member, "operator", rules.cloned()).await {
                Err(_) if left > 0 => time::sleep(BETWEEN_TRIES).await,
                made => return made,
            }
        }
    }

    /// Ends Glance by SIGKILL and returns when nobody listens any more. Whatever it was doing is left as it stands.
    pub async fn kill_glance(&mut self) -> Result<()> {
        self.glance.kill().await
    }

    /// Starts a killed Glance again, on what it left, at the same place.
    pub async fn restart_glance(&mut self) -> Result<()> {
        self.glance.start_again(&self.client).await
    }

    /// What Glance was asked so far, in the order in which it was done with it.
    pub fn asked_of_glance(&self) -> Result<Vec<Asked>> {
        let path = configuration::requests_of(self.folder.path(), "glance");
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(text.lines().filter_map(Asked::read).collect())
    }

    /// Where their logs are, and all else that they write.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// One request, as the server that answered it wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// What stood behind it, without the question mark.
    pub query: String,
    /// The status of the answer.
    pub status: u16,
    /// From its first line until the answer was given.
    pub took: Duration,
}

impl Asked {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let method = words.next()?.to_owned();
        let target = words.next()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            status: words.next()?.parse().ok()?,
            took: Duration::from_micros(words.next()?.parse().ok()?),
        })
    }
}

fn write_authority(folder: &Path, authority: Option<&Authority>) -> Result<()> {
    let Some(Authority {
        pem, certificate, key, ..
    }) = authority
    else {
        return Ok(());
    };
    for (name, text) in [("ca.pem", pem), ("server.pem", certificate), ("server.key", key)] {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}
