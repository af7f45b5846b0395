//! How files at a source are packed, and how they are unpacked while they come: in Rust alone, in a thread of its own, within bounds.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

/// How a file is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, Serialize, Deserialize)]
pub enum Compression {
    /// As its first bytes say. Never by its name.
    #[default]
    Auto,
    /// Not at all: what looks packed is sent as it is.
    None,
    /// RFC 1952.
    Gzip,
    /// The container of LZMA2.
    Xz,
    /// Burrows and Wheeler's.
    Bzip2,
    /// RFC 8878.
    Zstd,
}
