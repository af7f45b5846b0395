//! What a render is asked for: names, versions, limits, and languages that Helm does not know.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::answers::{Answers, Refusing};
use crate::profile::Profile;
use crate::template::Limits;
use crate::yaml::Node;

/// What a render is for. [`RenderOptions::new`] gives what `helm template NAME CHART --namespace NS` of Helm 3.19 would use, except that nothing
/// answers functions that are random or ask the time: about a quarter of all real charts need [`RenderOptions::answers`].
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// The name of the release.
    pub release_name: String,
    /// The namespace of the release.
    pub namespace: String,
    /// The Kubernetes version to render for; the profile's own when absent.
    pub kube_version: Option<String>,
    /// API versions (`group/version` or `group/version/Kind`) besides those of the profile.
    pub api_versions: Vec<String>,
    /// The Helm version to be equal to.
    pub profile: &'static Profile,
    /// Whether the files of `crds/` are part of the output.
    pub include_crds: bool,
    /// Whether `.Release.IsUpgrade` is set instead of `.Release.IsInstall`.
    pub is_upgrade: bool,
    /// Whether the values must satisfy the schemas of the charts.
    pub check_schemas: bool,
    /// What the templates may use up.
    pub limits: Limits,
    /// Ends the render soon after it is raised: it is looked at between steps, of templates and of what comes before and after them
    /// ([`RenderError::is_cancelled`](crate::RenderError::is_cancelled)).
    pub cancelled: Arc<AtomicBool>,
    /// What functions give that are random or read the world. [`Refusing`] unless set; [`Seeded`](crate::answers::Seeded) shows how to answer as
    /// Helm does.
    pub answers: Arc<dyn Answers>,
    /// A language that Helm does not know, for some files of `templates/`. Without it all of them are Helm's.
    pub other_language: Option<Arc<dyn OtherLanguage>>,
}

/// A template language for the files of one extension. They are executed in Helm's order, and what they write are manifests too.
pub trait OtherLanguage: fmt::Debug + Send + Sync {
    /// What the names of its files end with, dot included.
    fn suffix(&self) -> &str;

    /// Renders a file. `files` are all files of the language in the charts, by path; `root` has what Helm's templates see as `.`.
    fn render(&self, files: &[(&str, &[u8])], path: &str, root: &Node) -> Result<Vec<u8>, String>;
}

impl RenderOptions {
    /// Options as those of `helm template` of Helm 3.19 ([`Profile::V3_19`]) without flags, except that nothing answers random functions.
    pub fn new(release_name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            release_name: release_name.into(),
            namespace: namespace.into(),
            kube_version: None,
            api_versions: Vec::new(),
            profile: Profile::V3_19,
            include_crds: false,
            is_upgrade: false,
            check_schemas: true,
            limits: Limits::default(),
            cancelled: Arc::default(),
            answers: Arc::new(Refusing),
            other_language: None,
        }
    }
}
