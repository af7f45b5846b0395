//! Helm charts rendered in-process, byte for byte like `helm template`.
//!
//! A pure library: charts and values come as bytes, manifests leave as bytes. It touches no files, network, environment,
//! clock or randomness.

mod format;
pub mod functions;
pub mod json;
mod number;
pub mod template;
mod text;
pub mod value;
pub mod yaml;
