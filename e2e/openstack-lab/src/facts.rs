//! What a client may rely on, each a sentence that is asked of a cloud over plain HTTP. It decides what is true of OpenStack, and knows nothing
//! of how a cloud is run: the same facts are asked of the fake and of the real services.
//!
//! Every fact makes what it needs and takes it away again, so that they hold in any order, one after the other. What runs at the same time
//! in the project `tiny` would be in each other's way.

mod bad;
mod identity;
mod ids;
mod imports;
mod origin;
mod quota;
mod rest;
mod tenant;
mod upload;

use std::fmt;

use anyhow::Result;
use futures::future::BoxFuture;

pub use self::{origin::Origin, tenant::Tenant};
use crate::{Site, client::Client, disk};

/// Somebody who looks at a cloud from outside.
#[derive(Debug)]
pub struct Visitor<'site> {
    /// The cloud.
    pub site: &'site Site,
    /// How it is asked.
    pub client: Client,
    /// A valid qcow2 disk.
    pub disk: Vec<u8>,
    /// Where the cloud may fetch it from.
    pub origin: Origin,
}

impl<'site> Visitor<'site> {
    /// Comes with a disk, and serves it on a port of this machine.
    pub async fn new(site: &'site Site) -> Result<Self> {
        let disk = disk::qcow2(1);
        Ok(Self {
            client: Client::new(site.ca.as_deref())?,
            origin: Origin::start(disk.clone()).await?,
            site,
            disk,
        })
    }

    /// Logs in.
    pub async fn tenant(&self, cloud: &str) -> Result<Tenant<'_>> {
        Tenant::new(self, cloud).await
    }
}

/// Asks whether a fact holds.
pub type Check = for<'a> fn(&'a Visitor<'a>) -> BoxFuture<'a, Result<()>>;

/// A sentence about OpenStack.
#[derive(Clone, Copy)]
pub struct Fact {
    /// The sentence.
    pub name: &'static str,
    /// What it takes to ask, beside a cloud.
    pub needs: Needs,
    check: Check,
}

impl fmt::Debug for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// What it takes to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A Python with openstacksdk.
    Python,
}

/// What came of asking.
#[derive(Debug)]
pub enum Verdict {
    /// It holds.
    Held,
    /// It does not, and what was seen instead.
    Failed(anyhow::Error),
    /// It could not be asked, and why.
    Reduced(&'static str),
}

impl Fact {
    /// Asks it of a cloud.
    pub async fn ask(&self, visitor: &Visitor<'_>) -> Verdict {
        if self.needs == Needs::Python && visitor.site.python.is_none() {
            return Verdict::Reduced("there is no Python with openstacksdk");
        }
        match (self.check)(visitor).await {
            Ok(()) => Verdict::Held,
            Err(error) => Verdict::Failed(error),
        }
    }
}

/// All facts. The last one says that the others left nothing behind.
pub fn facts() -> Vec<Fact> {
    let rooms = [
        identity::FACTS,
        ids::FACTS,
        upload::FACTS,
        bad::FACTS,
        imports::FACTS,
        quota::FACTS,
        rest::FACTS,
    ];
    rooms.concat()
}

/// A fact whose check is this function.
macro_rules! fact {
    ($name:literal, $check:path) => {
        $crate::facts::Fact {
            name: $name,
            needs: $crate::facts::Needs::Nothing,
            check: |visitor| Box::pin($check(visitor)),
        }
    };
}
use fact;
