//! What a render is asked for: names, versions, limits, and languages that Helm does not know.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::answers::{Answers, Refusing};
use crate::layout::base_name;
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

/// A template language for the files of one extension. What they write are manifests too.
pub trait OtherLanguage: fmt::Debug + Send + Sync {
    /// What the names of its files end with, dot included.
    fn suffix(&self) -> &str;

    /// Renders what is to be rendered, at once and before any of Helm's templates run: what those do to values is not seen here. The
    /// outputs are in the order of [`OtherChart::rendered`], chart by chart.
    fn render(&self, charts: &[OtherChart<'_>]) -> Result<Vec<Vec<u8>>, OtherProblem>;

    /// Reads all files, and executes none: what is wrong then is wrong whatever the root is, which is empty here.
    fn check(&self, charts: &[OtherChart<'_>]) -> Result<(), OtherProblem>;
}

/// The files that one chart has of another language.
#[derive(Debug)]
pub struct OtherChart<'a> {
    /// The path of the folder of its templates: `chart/templates`, or `chart/charts/subchart/templates`.
    pub folder: &'a str,
    /// What Helm's templates of the chart see as `.`, but for `Template`, which is another one for each.
    pub root: Node,
    /// All files with their texts, by path from the root chart on, those of the deepest folders first.
    pub files: Vec<(&'a str, &'a [u8])>,
}

impl OtherChart<'_> {
    /// The paths of those that become manifests, in the order of `files`; the others are there to be used by these.
    pub fn rendered(&self) -> impl Iterator<Item = &str> {
        let paths = self.files.iter().map(|(path, _)| *path);
        paths.filter(|path| is_rendered(path))
    }
}

/// Whether a file below `templates/` is executed by itself.
pub(crate) fn is_rendered(path: &str) -> bool {
    !base_name(path).starts_with('_')
}

/// Why a file of another language has no output.
#[derive(Debug)]
pub struct OtherProblem {
    /// The path of the file that is wrong, from the root chart on.
    pub template: String,
    /// The line in it, from 1, where one is known.
    pub line: Option<usize>,
    /// What its engine says.
    pub source: Box<dyn Error + Send + Sync>,
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
