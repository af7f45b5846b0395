//! What is asked of registries, by whoever can ask them.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use provider_plugin::{CloudError, Pinned};

use crate::{Login, Manifest};

/// Registries as the network has them.
pub trait Registries: Send + Sync + Debug {
    /// A repository of one of them. Asks nobody.
    fn repository(&self, asked: &Asked) -> Result<Arc<dyn Repository>, CloudError>;
}

/// Which repository is asked, and in whose name.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The registry, with the port if one is given.
    pub host: String,
    /// The path behind it.
    pub name: String,
    /// Who asks; `None`: anybody.
    pub login: Option<Login>,
    /// Certificates of authorities that are trusted besides the usual ones, in PEM.
    pub certificates: Option<String>,
}

/// One repository of a registry.
#[async_trait]
pub trait Repository: Send + Sync + Debug {
    /// The digest of the manifest that has this name now; `None` when there is none. An error says nothing about what is there, and nothing of
    /// the login.
    async fn find(&self, manifest: &Manifest) -> Result<Option<Pinned>, CloudError>;
}
