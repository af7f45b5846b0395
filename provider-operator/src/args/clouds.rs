//! Flags about clouds: which may be connected to, how much goes on at once, whose the images are.

use std::sync::Arc;
use std::time::Duration;

use crds::providers::Provider;
use operator_kit::flags::{Address, address, duration};
use provider_plugin::{Addresses, OwnerId};
use release::http::IpNet;

use crate::registry::Registry;

/// What the operator may do in clouds, and where.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CloudArgs {
    /// A directory for images of the provider filestore, and the name by which objects choose it. May be given several times.
    #[arg(long, value_name = "NAME=DIR")]
    pub(crate) filestore: Vec<String>,

    /// Address at which published images of the provider filestore are given to who asks, over HTTP and to everybody: /NAME/IMAGE, with the digest at
    /// /NAME/IMAGE.sha256 and a list at /; "0" serves none.
    #[arg(long, default_value = "0", value_parser = address, value_name = "ADDRESS")]
    pub(crate) serve_filestore: Address,

    /// Whose images these are, as they are marked in clouds: letters, digits, dots, dashes and underscores. The uid of the namespace kube-system when
    /// empty.
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) installation: String,

    /// How many images are sent to one cloud at once by the operator itself, and as many again by Jobs. Jobs that build are not counted.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) max_transfers: u16,

    /// How many images are sent at once to all clouds together by the operator itself, and as many again by Jobs.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) max_transfers_total: u16,

    /// How long a deletion waits for a cloud that does not answer, before the object goes and its image is left behind.
    #[arg(long, default_value = "1h", value_parser = duration, value_name = "DURATION")]
    pub(crate) force_finalize_after: Duration,

    /// Let an object go after that time also when its image cannot be deleted because machines hold on to it.
    #[arg(long)]
    pub(crate) force_finalize_in_use: bool,

    /// How many minutes a cloud may take to fetch an image itself. 0: a quarter of an hour, and a minute more for every 120 MiB.
    #[arg(long, default_value_t = 0, value_name = "MINUTES")]
    pub(crate) image_import_timeout: i64,

    /// Delete also verified images that no object is for any more. Without it they are only told of.
    #[arg(long)]
    pub(crate) sweep_verified: bool,

    /// A network with clouds that is refused otherwise, such as 127.0.0.0/8: this machine, or what is linked to it.
    /// Public and private networks need no flag. May be given several times.
    #[arg(long, value_delimiter = ',', value_name = "CIDR")]
    pub(crate) allow_cloud_network: Vec<IpNet>,
}

/// No address may be connected to.
#[cfg(not(feature = "openstack"))]
#[derive(Debug)]
pub(crate) struct Nowhere;

#[cfg(not(feature = "openstack"))]
impl Addresses for Nowhere {
    fn allows(&self, host: &str, address: std::net::IpAddr) -> Result<(), String> {
        Err(format!(
            "{host} is at {address}, and this operator connects to no cloud"
        ))
    }
}

impl CloudArgs {
    /// What is asked for together and cannot be had.
    pub(crate) fn check(&self, registry: &Registry) -> Result<(), String> {
        let has_filestore = registry.names().any(|name| name == Provider::FileStore);
        match (has_filestore, self.filestore.is_empty()) {
            (true, true) => {
                return Err("the provider filestore needs a directory; add --filestore default=DIR".to_owned());
            }
            (false, false) => {
                return Err("--filestore needs the provider filestore; add it to --providers".to_owned());
            }
            _ => {}
        }
        if self.serve_filestore.0.is_some() && !has_filestore {
            return Err("--serve-filestore needs the provider filestore; add it to --providers".to_owned());
        }
        if self.max_transfers > self.max_transfers_total {
            return Err("--max-transfers is more than --max-transfers-total; raise the latter".to_owned());
        }
        self.owner().map(drop)
    }

    /// Whose the images are; `None` where the cluster says it.
    pub(crate) fn owner(&self) -> Result<Option<OwnerId>, String> {
        if self.installation.is_empty() {
            return Ok(None);
        }
        let wrong = || {
            format!(
                "--installation {:?} is no name; write at most 64 letters, digits, dots, dashes and underscores",
                self.installation
            )
        };
        OwnerId::parse(&self.installation).map(Some).ok_or_else(wrong)
    }

    /// How long a cloud may take to fetch an image, where that is said.
    pub(crate) fn import_patience(&self) -> Option<Duration> {
        let minutes = u64::try_from(self.image_import_timeout).ok()?;
        (minutes > 0).then(|| Duration::from_secs(minutes.saturating_mul(60)))
    }

    /// Where clouds may be.
    #[cfg(feature = "openstack")]
    pub(crate) fn addresses(&self) -> Arc<dyn Addresses> {
        Arc::new(provider_openstack::CloudAddresses {
            networks: self.allow_cloud_network.clone(),
        })
    }

    /// Where clouds may be: without a provider that connects to any, nowhere.
    #[cfg(not(feature = "openstack"))]
    #[expect(
        clippy::unused_self,
        reason = "with a provider that connects to clouds it is asked for them"
    )]
    pub(crate) fn addresses(&self) -> Arc<dyn Addresses> {
        Arc::new(Nowhere)
    }

    /// The directories of the provider filestore.
    #[cfg(feature = "filestore")]
    pub(crate) fn filestores(&self) -> Result<provider_filestore::FileStores, String> {
        let options = self.filestore.iter().map(String::as_str);
        provider_filestore::FileStores::parse(options).map_err(|error| format!("--filestore: {error}"))
    }
}
