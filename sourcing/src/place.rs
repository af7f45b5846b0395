//! Which sources are the same one: objects that name one place have it asked once. Touches no disk and no network.

use std::path::{Component, Path, PathBuf};

use crds::source::{SecretReference, Source};
use release::source::RELEASES_DIRECTORY;
use thiserror::Error;

use crate::SourceKind;

/// Why something that is named is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlaceError {
    /// The directory is not below the root of directories.
    #[error("spec.source.directory.path must be a relative path without ..")]
    LeaveRoot,
}

/// A source as it is told apart from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A directory of this machine, which has that of all releases in it.
    Directory(PathBuf),
    /// What an object names.
    Remote {
        /// As it is named.
        source: Source,
        /// Where its Secrets lie; empty when it names none, because then it is the same for everybody.
        namespace: String,
    },
    /// The remote source that the operator was started with.
    Usual,
}

impl Place {
    /// Whose Secrets it is asked with; empty where with nobody's.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Remote { namespace, .. } => namespace,
            Self::Directory(_) | Self::Usual => "",
        }
    }

    /// What is asked, where this says so.
    pub fn kind(&self) -> Option<SourceKind> {
        match self {
            Self::Directory(_) => Some(SourceKind::Directory),
            Self::Remote { source, .. } => Some(SourceKind::of(source)),
            Self::Usual => None,
        }
    }

    /// The place that an object of a namespace names; directories lie below `root`.
    pub(crate) fn of(root: &Path, source: &Source, namespace: &str) -> Result<Self, PlaceError> {
        if let Source::Directory(directory) = source {
            return below(root, Path::new(&directory.path)).map(Self::Directory);
        }
        let is_private = secrets(source).next().is_some();
        Ok(Self::Remote {
            source: source.clone(),
            namespace: if is_private {
                namespace.to_owned()
            } else {
                String::new()
            },
        })
    }
}

/// Which directory holds the releases of a source, for people. `root` is that of the source.
pub fn described_directory(root: &Path) -> String {
    format!("directory {}", root.join(RELEASES_DIRECTORY).display())
}

/// The Secrets that a source needs.
fn secrets(source: &Source) -> impl Iterator<Item = &SecretReference> {
    let [credentials, certificates] = match source {
        Source::Github(source) => [&source.token_secret_ref, &source.ca_secret_ref],
        Source::Oci(source) => [&source.credentials_secret_ref, &source.ca_secret_ref],
        Source::Http(source) => [&source.credentials_secret_ref, &source.ca_secret_ref],
        Source::Directory(_) => [&None, &None],
    };
    credentials.iter().chain(certificates)
}

/// A relative path without `..`, below the root. The CRD has the same rule; a status may be older than a rule.
pub(crate) fn below(root: &Path, relative: &Path) -> Result<PathBuf, PlaceError> {
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain {
        Ok(root.join(relative))
    } else {
        Err(PlaceError::LeaveRoot)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn place(source: Value, namespace: &str) -> Result<Place, PlaceError> {
        let source: Source = serde_json::from_value(source).unwrap();
        Place::of(Path::new("/releases"), &source, namespace)
    }

    #[test]
    fn source_without_secrets_is_one_for_all_namespaces_and_one_with_secrets_is_not() {
        let open = json!({ "github": { "owner": "kaas", "repository": "stacks" } });
        assert_eq!(place(open.clone(), "one"), place(open.clone(), "two"));
        let reference = json!({ "name": "secret" });
        for (kind, field) in [
            ("github", "tokenSecretRef"),
            ("github", "caSecretRef"),
            ("oci", "credentialsSecretRef"),
            ("oci", "caSecretRef"),
            ("http", "credentialsSecretRef"),
            ("http", "caSecretRef"),
        ] {
            let mut source = match kind {
                "github" => open.clone(),
                "oci" => json!({ "oci": { "repository": "registry.example.com/stacks" } }),
                _ => json!({ "http": { "url": "https://example.com" } }),
            };
            source[kind][field] = reference.clone();
            assert_ne!(
                place(source.clone(), "one"),
                place(source.clone(), "two"),
                "{kind} {field}"
            );
            assert_eq!(place(source.clone(), "one"), place(source, "one"));
        }
    }

    #[test]
    fn directory_outside_of_the_root_is_refused() {
        let directory = |path: &str| place(json!({ "directory": { "path": path } }), "one");
        assert_eq!(directory("a/b"), Ok(Place::Directory("/releases/a/b".into())));
        for path in ["../etc", "a/../../etc", "/etc"] {
            assert_eq!(directory(path), Err(PlaceError::LeaveRoot), "{path}");
        }
    }
}
