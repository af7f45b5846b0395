//! The add-ons of a release, as all clusters of its class share them: their stages, and the templates of their values. What is rendered is only ever of
//! the bytes that the release is pinned to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crds::ClusterStackRelease;
use crds::conditions::{ConditionType, find};
use crds::release_files::ClusterApiVersion;
use kube::ResourceExt;
use operator_kit::failure::chain;
use planning::addon::{ReleaseSeen, SINGLE_STAGE, Stages};
use release::{AddonConfiguration, Admitted, Digest, ReleaseError};
use rendering::ValuesTemplate;

use crate::charts::{Charts, ReadError};
use crate::sources::Opened;

/// The template of the values of a stage's chart, in its folder.
const OVERWRITE: &str = "overwrite.yaml";

/// The same, of Tera.
const OVERWRITE_TERA: &str = "overwrite.yaml.tera";

/// What all templates of values of a release may have together, in bytes. Real ones have some hundred.
pub(super) const MAX_TEMPLATES: usize = 1 << 20;

/// So many releases are remembered. Whoever needs another one reads it again.
const MOST: usize = 16;

/// What they may have together, in bytes of templates.
const MAX_KEPT: usize = 4 << 20;

/// The add-ons of a release, but for the charts themselves, which are read when they are rendered.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// Digest of the release.
    release: String,
    /// Digest of the archive with the charts.
    pub(crate) archive: Digest,
    /// As metadata.yaml has it.
    pub(crate) version: String,
    /// With `v`.
    pub(crate) kubernetes_version: String,
    /// Its list of stages.
    pub(crate) layout: Stages,
    /// The version of Cluster API in whose form templates of values get the Cluster.
    pub(crate) cluster_api_version: ClusterApiVersion,
    /// By folder: of every chart, its template of values where it has one.
    pub(super) charts: BTreeMap<String, Option<Template>>,
}

/// A template of values.
#[derive(Debug)]
pub(super) struct Template {
    path: String,
    text: Vec<u8>,
}

impl Template {
    pub(super) fn of(&self) -> ValuesTemplate<'_> {
        ValuesTemplate {
            path: &self.path,
            text: &self.text,
        }
    }
}

/// Why the add-ons of a release cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleError {
    /// They could not be read.
    #[error("unable to read the add-ons of the release")]
    Read(#[from] ReadError),
    /// They are too large.
    #[error("the templates of values have {bytes} bytes together, {MAX_TEMPLATES} are allowed: take texts out of them")]
    LongTemplates {
        /// How many they have.
        bytes: usize,
    },
    /// Nobody can tell which of two counts.
    #[error("the chart {chart} has {OVERWRITE} and {OVERWRITE_TERA}: take one of them out")]
    TwoTemplates {
        /// Its folder.
        chart: String,
    },
}

/// A release whose add-ons can be used.
#[derive(Clone, Debug)]
pub(crate) struct Usable {
    pub(crate) files: Admitted,
    pub(crate) bundle: Arc<Bundle>,
}

/// Why the add-ons of a release are not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// In words.
    pub(crate) message: String,
    /// Whether a file is not what it was when it was verified.
    pub(crate) unreadable: bool,
}

impl Unusable {
    /// How planning sees the release.
    pub(crate) fn seen(&self) -> ReleaseSeen {
        let message = self.message.clone();
        ReleaseSeen::NotReady { message }
    }
}

impl From<BundleError> for Unusable {
    fn from(error: BundleError) -> Self {
        Self {
            message: chain(&error),
            unreadable: matches!(&error, BundleError::Read(error) if error.is_changed()),
        }
    }
}

/// The releases that were read last.
#[derive(Default)]
pub(crate) struct Bundles {
    kept: Mutex<VecDeque<(Digest, Arc<Bundle>)>>,
}

impl Bundles {
    /// The add-ons of a release. Equal releases are read once, wherever they come from.
    pub(crate) async fn of(&self, charts: &Charts, files: &Admitted) -> Result<Arc<Bundle>, BundleError> {
        let digest = files.release().digest;
        if let Some(kept) = self.kept(&digest) {
            return Ok(kept);
        }
        let found = charts.read(files, read).await?;
        let bundle = Arc::new(understood(files, found)?);
        self.keep(digest, &bundle);
        Ok(bundle)
    }

    fn kept(&self, digest: &Digest) -> Option<Arc<Bundle>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(one, _)| one == digest)?;
        let found = kept.remove(place)?;
        let bundle = Arc::clone(&found.1);
        kept.push_back(found);
        Some(bundle)
    }

    fn keep(&self, digest: Digest, bundle: &Arc<Bundle>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(one, _)| *one != digest);
        kept.push_back((digest, Arc::clone(bundle)));
        while kept.len() > MOST || kept.iter().map(|(_, bundle)| bundle.size()).sum::<usize>() > MAX_KEPT {
            kept.pop_front();
        }
    }
}

impl Bundle {
    /// [What a chart is](rendering::RenderRequest::identity).
    pub(super) fn identity(&self, chart: &str) -> String {
        if self.is_staged() {
            format!("{}/{chart}", self.archive)
        } else {
            self.archive.to_string()
        }
    }

    /// Changes with the charts and the templates of values.
    pub(super) fn identity_of_values(&self) -> &str {
        &self.release
    }

    /// Whether the archive has a folder for each chart.
    pub(super) fn is_staged(&self) -> bool {
        matches!(self.layout, Stages::Listed(_))
    }

    /// How planning sees the release.
    pub(crate) fn seen(&self) -> ReleaseSeen {
        ReleaseSeen::Ready {
            addon_version: self.version.clone(),
            kubernetes_version: self.kubernetes_version.clone(),
        }
    }

    /// Bytes of its templates.
    fn size(&self) -> usize {
        self.charts.values().flatten().map(|template| template.text.len()).sum()
    }
}

/// The files of a release, if their bytes are those that it is pinned to.
pub(super) fn pinned(release: &ClusterStackRelease, opened: Opened) -> Result<Admitted, Unusable> {
    let status = release.status.as_ref();
    let Some(assets) = status.and_then(|status| status.assets.as_ref()) else {
        return Err(not_ready(release));
    };
    let unusable = |why: &str| unusable(release, why);
    let files = match opened {
        Opened::Ready { files, .. } => files,
        Opened::Missing { message, .. } | Opened::Broken { message } | Opened::Refused { message, .. } => {
            return Err(unusable(&message));
        }
    };
    let found = files.release().digest.to_string();
    if found == assets.digest {
        Ok(files)
    } else {
        let pinned = &assets.digest;
        Err(unusable(&format!(
            "it is pinned to {pinned}, and its source has {found}"
        )))
    }
}

/// Why a release is not ready, in its own words.
pub(crate) fn not_ready(release: &ClusterStackRelease) -> Unusable {
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
    let ready = find(conditions.unwrap_or_default(), ConditionType::Ready);
    let said = ready.and_then(|ready| ready.message.clone().or_else(|| ready.reason.clone()));
    unusable(release, said.as_deref().unwrap_or("nobody has looked at it yet"))
}

fn unusable(release: &ClusterStackRelease, why: &str) -> Unusable {
    Unusable {
        message: format!("the ClusterStackRelease {} cannot be used: {why}", release.name_any()),
        unreadable: false,
    }
}

/// What is read of a release: by folder, the files with a template of values.
type Found = BTreeMap<String, Vec<(String, Vec<u8>)>>;

/// Blocks.
fn read(files: &Admitted) -> Result<Found, ReleaseError> {
    match files.release().charts.as_ref().map(|charts| &charts.addons) {
        Some(AddonConfiguration::Stages(config)) => {
            let stages = config.addon_stages.values().flatten();
            let wanted: BTreeSet<&str> = stages.map(|stage| stage.name.as_str()).collect();
            let is_template = |path: &str| path == OVERWRITE || path == OVERWRITE_TERA;
            let mut found = files.read_stage_files(|folder, path| wanted.contains(folder) && is_template(path))?;
            // That their charts are there was seen when the release was opened.
            for chart in wanted {
                found.entry(chart.to_owned()).or_default();
            }
            Ok(found)
        }
        Some(AddonConfiguration::Values(template)) => {
            let text = files.read(template)?;
            let files = vec![(template.name.clone(), text)];
            Ok(BTreeMap::from([(SINGLE_STAGE.to_owned(), files)]))
        }
        // Opened for its node images alone.
        None => files.read_addon_archive().map(|_| BTreeMap::new()),
    }
}

fn understood(files: &Admitted, found: Found) -> Result<Bundle, BundleError> {
    let release = files.release();
    let texts = found.values().flatten();
    let bytes = texts.map(|(_, text)| text.len()).sum();
    if bytes > MAX_TEMPLATES {
        return Err(BundleError::LongTemplates { bytes });
    }
    let (layout, cluster_api_version) = match release.charts.as_ref().map(|charts| &charts.addons) {
        Some(AddonConfiguration::Stages(config)) => (Stages::Listed(config.clone()), config.cluster_api_version),
        Some(AddonConfiguration::Values(_)) | None => (Stages::Single, ClusterApiVersion::default()),
    };
    let is_staged = matches!(layout, Stages::Listed(_));
    let mut charts = BTreeMap::new();
    for (chart, mut files) in found {
        if files.len() > 1 {
            return Err(BundleError::TwoTemplates { chart });
        }
        let template = files.pop().map(|(path, text)| Template {
            path: if is_staged { format!("{chart}/{path}") } else { path },
            text,
        });
        charts.insert(chart, template);
    }
    Ok(Bundle {
        release: release.digest.to_string(),
        archive: release
            .charts
            .as_ref()
            .map_or(release.digest, |charts| charts.addon_chart.sha256),
        version: release.metadata.cluster_addon.to_string(),
        kubernetes_version: release.metadata.kubernetes.clone(),
        layout,
        cluster_api_version,
        charts,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::world::{released, staged};
    use super::*;

    fn pinned_to(digest: Option<&str>) -> ClusterStackRelease {
        let assets = digest.map(|digest| json!({ "digest": digest, "source": "a folder", "size": 1 }));
        serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": "docker-harbor-1-34-v1", "namespace": "fleet" },
            "spec": {}, "status": { "ready": false, "assets": assets },
        }))
        .expect("a release")
    }

    #[test]
    fn bytes_that_the_release_is_not_pinned_to_are_not_used() {
        let release = released(&staged(&[("quay", "", None)]));
        let digest = release.files.release().digest.to_string();
        let opened = || Opened::Ready {
            source: None,
            moved_to: None,
            files: release.files.clone(),
        };
        assert!(pinned(&pinned_to(Some(&digest)), opened()).is_ok());
        for (pin, words) in [
            (Some(format!("sha256:{}", "0".repeat(64))), "it is pinned to sha256:000"),
            (None, "nobody has looked at it yet"),
        ] {
            let refused = pinned(&pinned_to(pin.as_deref()), opened()).expect_err("it is another");
            assert!(refused.message.contains(words), "{}", refused.message);
        }
        let missing = Opened::Missing {
            message: "gone".to_owned(),
            outage: None,
        };
        let refused = pinned(&pinned_to(Some(&digest)), missing).expect_err("it is gone");
        assert!(refused.message.contains("cannot be used: gone"), "{}", refused.message);
    }

    #[test]
    fn chart_with_two_templates_of_values_is_refused_by_its_name() {
        let release = released(&staged(&[("quay", "", Some("a: b\n"))]));
        let mut found = read(&release.files).expect("files");
        // Nobody packs such a release any more; it may be made by hand.
        let files = found.get_mut("quay").expect("a chart");
        files.push((OVERWRITE_TERA.to_owned(), b"a: c\n".to_vec()));
        let refused = understood(&release.files, found).expect_err("two of them");
        assert!(refused.to_string().contains("the chart quay has"), "{refused}");
    }

    #[test]
    fn few_releases_are_remembered_and_those_that_were_used_last_stay() {
        let bundles = Bundles::default();
        let release = released(&staged(&[("quay", "", None)]));
        let found = read(&release.files).expect("files");
        let bundle = Arc::new(understood(&release.files, found).expect("add-ons"));
        let digest = |number: usize| Digest::of(number.to_string().as_bytes());
        for number in 0..=MOST {
            assert!(bundles.kept(&digest(0)).is_some() || number == 0);
            bundles.keep(digest(number), &bundle);
        }
        let kept = (0..=MOST).filter(|number| bundles.kept(&digest(*number)).is_some());
        assert_eq!(
            kept.collect::<Vec<_>>(),
            [&[0], &(2..=MOST).collect::<Vec<_>>()[..]].concat()
        );
    }
}
