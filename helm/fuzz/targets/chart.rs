//! Charts load from any archive or end with an error. The input is the tar format: compressed, chance would get no further than a checksum.
#![no_main]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use helm::Chart;
use helm::chart::ArchiveLimits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|archive: &[u8]| {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(archive).expect("memory takes all bytes");
    let packed = packed.finish().expect("memory takes all bytes");
    let _ = Chart::from_archive(&packed, &ArchiveLimits::default());
    let _ = Chart::from_archive(archive, &ArchiveLimits::default());
});
