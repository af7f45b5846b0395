//! The sorts of sources, by which they are counted. Touches nothing.

use crds::source::Source;

/// The sorts of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A folder of this machine.
    Directory,
    /// A repository on GitHub, or on a server that speaks its API.
    Github,
    /// An index on a web server.
    Http,
    /// A repository in a registry.
    Oci,
}

impl SourceKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Directory, Self::Github, Self::Http, Self::Oci];
    /// Those that are asked over the network.
    pub const REMOTE: [Self; 3] = [Self::Github, Self::Http, Self::Oci];

    /// Of what sort a source is.
    pub fn of(source: &Source) -> Self {
        match source {
            Source::Directory(_) => Self::Directory,
            Source::Github(_) => Self::Github,
            Source::Http(_) => Self::Http,
            Source::Oci(_) => Self::Oci,
        }
    }

    /// As it is written in `spec.source`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Github => "github",
            Self::Http => "http",
            Self::Oci => "oci",
        }
    }
}
