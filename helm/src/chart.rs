//! A chart as loaded: its metadata, default values, templates and files, and the charts inside it.
//!
//! Decides what belongs to a chart and whether it is well formed. What a release makes of it (enabled dependencies, merged values) is
//! decided per render by `dependencies` and `coalesce`.

mod archive;
pub(crate) mod coalesce;
pub(crate) mod dependencies;
pub(crate) mod ignore;
pub(crate) mod instances;
mod load;
mod metadata;
pub(crate) mod schemas;
pub(crate) mod values;
pub(crate) mod wildcards;

use std::sync::Arc;

pub use archive::ArchiveLimits;
pub use dependencies::newest_in_range;
pub use ignore::{IgnoreError, IgnoreRules};
pub use load::LoadError;
pub use metadata::{Dependency, ImportValues, Maintainer, Metadata};
pub use schemas::{SchemaError, SchemaFinding};
use values::Defaults;
pub use values::merge_values;

use crate::parsed::ParsedTemplates;
use crate::profile::Profile;
use crate::schema::Schema;
use crate::warning::Said;
use crate::yaml::Node;

/// A loaded chart. Immutable, cheap to clone, shared between threads.
#[derive(Clone, Debug)]
pub struct Chart {
    root: Arc<Loaded>,
    parsed: Arc<ParsedTemplates>,
}

impl Chart {
    /// Loads a chart from the bytes of a `.tgz`. `.helmignore` has done its work when the archive was made.
    pub fn from_archive(archive: &[u8], limits: &ArchiveLimits) -> Result<Self, LoadError> {
        Loaded::from_archive(archive, limits).map(Self::new)
    }

    /// Loads a chart from the files of its directory, named relative to it with `/`. A `.helmignore` among them is obeyed.
    pub fn from_files(files: Vec<(String, Vec<u8>)>, limits: &ArchiveLimits) -> Result<Self, LoadError> {
        Loaded::from_directory(files, limits).map(Self::new)
    }

    fn new(root: Loaded) -> Self {
        Self {
            root: Arc::new(root),
            parsed: Arc::default(),
        }
    }

    /// What `Chart.yaml` says.
    pub fn metadata(&self) -> &Metadata {
        &self.root.metadata
    }

    /// The content of `values.yaml` as Helm of a profile reads it, without what subcharts add. Nothing if that is no mapping.
    pub fn default_values(&self, profile: &Profile) -> Option<&Node> {
        self.root.values.read_as(profile.values_files).ok()
    }

    pub(crate) fn root(&self) -> &Arc<Loaded> {
        &self.root
    }

    pub(crate) fn parsed(&self) -> &ParsedTemplates {
        &self.parsed
    }
}

/// A file of a chart, named relative to the chart.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) data: Arc<[u8]>,
}

/// One chart with those below it.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The folder or archive under `charts/` of its parent; empty for the root.
    pub(crate) folder: String,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) values: Defaults,
    pub(crate) templates: Vec<File>,
    pub(crate) files: Arc<[File]>,
    /// What `values.schema.json` demands of the values.
    pub(crate) schema: Option<Schema>,
    pub(crate) dependencies: Vec<Arc<Self>>,
    /// What is said of its files, in their order.
    warnings: Vec<Said>,
    /// About the bytes that a render takes for it, without those below.
    pub(crate) memory: usize,
}
