//! Helm charts rendered in-process, byte for byte like `helm template`.
//!
//! A pure library: charts and values come as bytes, manifests leave as bytes. It touches no files, network, environment,
//! clock or randomness. What templates want of those, they ask the [`answers`] of the render for.

pub mod answers;
mod base64_text;
mod bounds;
pub mod chart;
pub mod command_line;
mod fields;
mod format;
pub mod functions;
mod glob;
pub mod json;
mod keys;
mod layout;
mod manifest;
mod number;
mod objects;
mod options;
mod plain;
mod print;
mod profile;
mod release_name;
mod render;
mod schema;
pub mod semver;
mod sha1;
pub mod template;
mod text;
mod time;
mod toml;
mod url;
pub mod value;
pub mod yaml;

pub use bounds::BoundError;
pub use chart::Chart;
pub use layout::CrdFile;
pub use manifest::{Hook, Manifest, ManifestError};
pub use options::{OtherLanguage, RenderOptions};
pub use print::{NotInChart, Printing};
pub use profile::{Build, Profile};
pub use release_name::NameError;
pub use render::{RenderError, RenderProblem, Rendering};
