//! A raw disk as the programs that everybody uses pack it. The files are those of the provider's plugin.

use std::io::Read as _;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;

/// The same disk, packed; each with how its name ends.
pub const PACKED: [(&str, &[u8]); 4] = [
    (
        "gz",
        include_bytes!("../../provider-operator/plugin/src/compression/packed/disk.gz"),
    ),
    (
        "xz",
        include_bytes!("../../provider-operator/plugin/src/compression/packed/disk.xz"),
    ),
    (
        "bz2",
        include_bytes!("../../provider-operator/plugin/src/compression/packed/disk.bz2"),
    ),
    (
        "zst",
        include_bytes!("../../provider-operator/plugin/src/compression/packed/disk.zst"),
    ),
];

/// What was packed.
pub fn disk() -> Result<Vec<u8>> {
    let mut disk = Vec::new();
    GzDecoder::new(PACKED[0].1)
        .read_to_end(&mut disk)
        .context("failed to unpack the disk")?;
    Ok(disk)
}
