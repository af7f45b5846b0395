//! What must hold of everything that sources say.

pub use super::{
    github::fuzzing::github,
    http_index::fuzzing::index,
    oci::fuzzing::{manifest, registry},
};
pub(crate) use super::{
    github::fuzzing::headers as headers_of_github,
    oci::fuzzing::{files_of_manifest, headers as headers_of_registry},
};
