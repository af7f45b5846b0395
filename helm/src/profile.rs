//! What differs between Helm versions, as data. A profile is an argument of every render, never a global.
//!
//! Whoever needs to know what a Helm version does asks a field; nobody compares names. `docs/reference/helm-profiles.md` says the same for
//! people, and how to add a profile.

mod api_versions;
mod kind_order;

pub use self::api_versions::ApiVersions;
use crate::functions::{FunctionSet, FunctionTable};
use crate::render::ErrorWords;
use crate::schema::{Checks, SchemaRules, Urns};
use crate::semver::Library;
use crate::url::HostRule;
use crate::warning::WarningForm;

/// One version of Helm as far as its output tells it from others.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name users give: `v3.19`.
    pub name: &'static str,
    /// What `.Capabilities.HelmVersion` says.
    pub build: Build,
    /// The Kubernetes version assumed when none is given.
    pub kube_version: &'static str,
    /// The API versions assumed to exist.
    pub api_versions: ApiVersions,
    /// The order in which kinds are installed; other kinds follow by name.
    pub kind_order: &'static [&'static str],
    /// Which functions templates have, and which of their behaviours.
    pub(crate) functions: FunctionSet,
    /// What reads versions and ranges of versions.
    pub(crate) versions: Library,
    /// The `apiVersion`s that charts may have; any, where Helm does not look.
    pub(crate) chart_api_versions: Option<&'static [&'static str]>,
    /// How errors of templates are laid out.
    pub(crate) error_form: ErrorForm,
    /// What the lines of warnings look like.
    pub(crate) warnings: WarningForm,
    /// What is said around errors.
    pub(crate) error_words: ErrorWords,
    /// What Go calls the types of the built-in objects.
    pub(crate) go_types: GoTypes,
    /// What `.Chart` is.
    pub(crate) chart_object: ChartObjectForm,
    /// What of a Kubernetes version stays in `.Capabilities.KubeVersion.Version`.
    pub(crate) kube_version_suffix: KubeVersionSuffix,
    /// What a rendered file is taken apart by.
    pub(crate) documents: DocumentRule,
    /// What becomes of nulls in values.
    pub(crate) nulls: NullRule,
    /// Which documents of a values file count.
    pub(crate) values_files: ValuesFiles,
    /// What `--set-json` takes.
    pub(crate) set_json: SetJson,
    /// What an assignment is that ends within an index.
    pub(crate) open_index: OpenIndex,
    /// What `.Files.Lines` makes of an empty file.
    pub(crate) lines_of_empty_file: EmptyFile,
    /// Whose the charts are below a chart that has an alias.
    pub(crate) below_alias: BelowAlias,
    /// How schemas are read and values checked.
    pub(crate) schemas: SchemaRules,
}

/// How errors of templates are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// As Go's `text/template` says them, in one line.
    OneLine,
    /// A block of lines for each template on the stack, where all of them can be told apart.
    Blocks,
}

/// Names of Go types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoTypes {
    pub(crate) values: &'static str,
    pub(crate) capabilities: &'static str,
    pub(crate) kube_version: &'static str,
    pub(crate) version_set: &'static str,
}

/// What `.Chart` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartObjectForm {
    /// A struct: other names are errors, JSON has the names of `Chart.yaml` without what is empty.
    Struct,
    /// A map of all Go field names, also those of inner structs.
    Map,
}

/// What of a Kubernetes version stays in `.Capabilities.KubeVersion.Version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KubeVersionSuffix {
    /// Only the numbers.
    Cut,
    /// Everything; the numbers alone are what constraints see and what `String` gives.
    Kept,
}

/// What a rendered file is taken apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentRule {
    /// A separator takes the space around it, and documents lose the space around them.
    Trimmed,
    /// A separator takes the space around it; the last document keeps what the file ends with.
    KeepsEndOfFile,
    /// A separator takes blanks behind it; each document keeps what it ends with.
    KeepsEnds,
}

/// What becomes of nulls in values. A user's null over a default always deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullRule {
    /// A null in a table deletes whatever the default is.
    Delete,
    /// A null in a table stays a null where the default is null too.
    DeleteDefaults,
    /// Likewise, and the nulls of defaults are gone before.
    DropDefaultNulls,
}

/// Which documents of a values file count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValuesFiles {
    /// The first one.
    FirstDocument,
    /// All, one over the other; an unterminated last line of a multiple of 4096 bytes is lost.
    AllDocumentsWithoutFullLastLine,
    /// All, one over the other.
    AllDocuments,
}

impl ValuesFiles {
    pub(crate) const ALL: [Self; 3] = [
        Self::FirstDocument,
        Self::AllDocumentsWithoutFullLastLine,
        Self::AllDocuments,
    ];
}

/// What `--set-json` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetJson {
    /// Assignments.
    Assignments,
    /// Assignments, or one object for the root.
    AssignmentsOrObject,
}

/// What an assignment is that ends within an index: `a[1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenIndex {
    /// A fault.
    Refused,
    /// The end of the assignments, like one that has not begun.
    Ends,
}

/// What `.Files.Lines` makes of an empty file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyFile {
    /// A runtime error of Go.
    Fails,
    /// No lines.
    HasNoLines,
}

/// Whose the charts are below a chart that has an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BelowAlias {
    /// All aliases of a chart share them and what the chart declares, so what is decided for one is decided for all.
    Shared,
    /// Each alias has its own, and declarations of its own. What is below those is shared until it is declared in its turn.
    Copied,
}

/// How a Helm binary was built.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The full version with a `v`.
    pub version: &'static str,
    /// The commit it was built from; empty where the build was not told.
    pub git_commit: &'static str,
    /// Whether that commit was all; empty where the build was not told.
    pub git_tree_state: &'static str,
    /// The version of Go.
    pub go_version: &'static str,
    /// The Kubernetes minor of its client library, which Helm says from version 4 on.
    pub kube_client_version: Option<&'static str>,
}

impl Profile {
    /// Helm 3.19.0.
    pub const V3_19: &'static Self = &Self {
        name: "v3.19",
        build: Build {
            version: "v3.19.0",
            git_commit: "3d8990f0836691f0229297773f3524598f46bda6",
            git_tree_state: "clean",
            go_version: "go1.24.7",
            kube_client_version: None,
        },
        kube_version: "v1.34.0",
        api_versions: ApiVersions::of_minor(34),
        kind_order: kind_order::KIND_ORDER_V3,
        functions: FunctionSet::V3_19,
        versions: Library::V3_4,
        chart_api_versions: None,
        error_form: ErrorForm::OneLine,
        warnings: WarningForm::FileAndLine,
        error_words: ErrorWords {
            release_name: None,
            missing_dependencies: "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies",
            dependencies: None,
            metadata_package: "chart.",
            metadata_type: "chart.Metadata",
            manifest_package: "releaseutil.",
        },
        go_types: GoTypes {
            values: "chartutil.Values",
            capabilities: "*chartutil.Capabilities",
            kube_version: "chartutil.KubeVersion",
            version_set: "chartutil.VersionSet",
        },
        chart_object: ChartObjectForm::Struct,
        kube_version_suffix: KubeVersionSuffix::Cut,
        documents: DocumentRule::Trimmed,
        nulls: NullRule::Delete,
        values_files: ValuesFiles::FirstDocument,
        set_json: SetJson::Assignments,
        open_index: OpenIndex::Refused,
        lines_of_empty_file: EmptyFile::Fails,
        below_alias: BelowAlias::Shared,
        schemas: SchemaRules {
            hosts: HostRule::Any,
            urns: Urns::Refused,
            checks: Checks::Faulty,
        },
    };

    /// Helm 4.1.4.
    pub const V4_1: &'static Self = &Self {
        name: "v4.1",
        build: Build {
            version: "v4.1.4",
            git_commit: "05fa37973dc9e42b76e1d2883494c87174b6074f",
            git_tree_state: "clean",
            go_version: "go1.25.9",
            kube_client_version: Some("v1.35"),
        },
        kube_version: "v1.35.0",
        api_versions: ApiVersions::of_minor(35),
        kind_order: kind_order::KIND_ORDER_V4,
        functions: FunctionSet::V4_0,
        versions: Library::V3_4,
        chart_api_versions: Some(&["v1", "v2"]),
        error_form: ErrorForm::Blocks,
        warnings: WarningForm::KeysAndValues,
        error_words: ErrorWords {
            release_name: Some("release name check failed"),
            missing_dependencies: "an error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies",
            dependencies: Some("chart dependencies processing failed"),
            metadata_package: "v2.",
            metadata_type: "loader.chartBase",
            manifest_package: "util.",
        },
        go_types: GoTypes {
            values: "common.Values",
            capabilities: "*common.Capabilities",
            kube_version: "common.KubeVersion",
            version_set: "common.VersionSet",
        },
        chart_object: ChartObjectForm::Map,
        kube_version_suffix: KubeVersionSuffix::Kept,
        documents: DocumentRule::Trimmed,
        nulls: NullRule::DeleteDefaults,
        values_files: ValuesFiles::AllDocumentsWithoutFullLastLine,
        set_json: SetJson::AssignmentsOrObject,
        open_index: OpenIndex::Ends,
        lines_of_empty_file: EmptyFile::Fails,
        below_alias: BelowAlias::Copied,
        schemas: SchemaRules {
            hosts: HostRule::Addresses,
            urns: Urns::AllowAll,
            checks: Checks::Faulty,
        },
    };

    /// Helm 4.2.3.
    pub const V4_2: &'static Self = &Self {
        name: "v4.2",
        build: Build {
            version: "v4.2.3",
            git_commit: "43e8b7feece8beb0fcba47059ec9b522fd929a64",
            git_tree_state: "clean",
            go_version: "go1.26.5",
            kube_client_version: Some("v1.36"),
        },
        kube_version: "v1.36.0",
        api_versions: ApiVersions::of_minor(36),
        functions: FunctionSet::V4_2,
        versions: Library::V3_5,
        error_words: ErrorWords {
            missing_dependencies: "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies",
            ..Self::V4_1.error_words
        },
        documents: DocumentRule::KeepsEndOfFile,
        nulls: NullRule::DropDefaultNulls,
        schemas: SchemaRules {
            hosts: HostRule::AddressesAndOneColon,
            ..Self::V4_1.schemas
        },
        ..*Self::V4_1
    };

    /// Helm 4.3.1, built from its Go module, which does not tell the commit.
    pub const V4_3: &'static Self = &Self {
        name: "v4.3",
        build: Build {
            version: "v4.3.1",
            git_commit: "",
            git_tree_state: "",
            go_version: "go1.26.8",
            kube_client_version: Some("v1.37"),
        },
        kube_version: "v1.37.0",
        api_versions: ApiVersions::of_minor(37),
        functions: FunctionSet::V4_3,
        documents: DocumentRule::KeepsEnds,
        values_files: ValuesFiles::AllDocuments,
        lines_of_empty_file: EmptyFile::HasNoLines,
        schemas: SchemaRules {
            checks: Checks::Mended,
            ..Self::V4_2.schemas
        },
        ..*Self::V4_2
    };

    /// Every profile, from the oldest to the newest.
    pub const fn all() -> &'static [&'static Self] {
        &[Self::V3_19, Self::V4_1, Self::V4_2, Self::V4_3]
    }

    /// The profile of a name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::all().iter().copied().find(|profile| profile.name == name)
    }

    /// The functions that the template of a release's name has.
    pub(crate) fn name_functions(&self) -> &'static FunctionTable {
        FunctionTable::of_names(self.functions)
    }

    /// The functions that templates have.
    pub fn functions(&self) -> &'static FunctionTable {
        FunctionTable::of(self.functions)
    }
}

#[cfg(test)]
mod tests;
