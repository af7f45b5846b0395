//! What must hold of every archive.

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "to panic is how they say that something does not hold"
)]

use std::{
    collections::BTreeSet,
    io::{self, Read, Write},
};

use flate2::{Compression, write::GzEncoder};

use super::{ArchiveError, Contents, MAX_ENTRIES, inspect, split};
use crate::{
    ReleaseError,
    fuzzing::{Outcome, refused},
};

/// An archive as it is, and the same bytes as what is compressed in one: behind a checksum chance would get no further.
pub fn archive(input: &[u8]) -> Outcome {
    let outcomes = [input.to_vec(), packed(&[input])].map(|archive| {
        let whole = inspect(archive.as_slice(), &BTreeSet::new());
        splits_alike(&archive, &whole);
        let in_parts = inspect(Trickling(&archive, 1), &BTreeSet::new());
        assert_eq!(told(&whole), told(&in_parts), "short reads change what is read");
        looked_at(whole)
    });
    // Whoever packs in parts, as `pigz` and `bgzip` do, packs the same.
    let (first, second) = input.split_at(input.len() / 2);
    let in_members = inspect(packed(&[first, second]).as_slice(), &BTreeSet::new());
    assert_eq!(
        told(&inspect(packed(&[input]).as_slice(), &BTreeSet::new())),
        told(&in_members)
    );
    if outcomes.contains(&Outcome::Accepted) {
        return Outcome::Accepted;
    }
    Outcome::Refused
}

/// What can be used is taken apart into its folders, and each file is there once.
fn splits_alike(archive: &[u8], whole: &Result<Contents, ArchiveError>) {
    let Ok(contents) = whole else {
        return;
    };
    let Ok(folders) = split(archive, |_, _| true) else {
        panic!("what was inspected is taken apart");
    };
    for (folder, files) in &folders {
        assert!(contents.directories.contains_key(folder));
        let names: BTreeSet<_> = files.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), files.len());
        assert!(names.iter().all(|name| !name.starts_with('/') && !name.contains("//")));
    }
    for (directory, chart) in &contents.directories {
        let is_chart = |(name, _): &(String, Vec<u8>)| name == "Chart.yaml";
        let found = folders.get(directory).is_some_and(|files| files.iter().any(is_chart));
        assert_eq!(found, chart.is_some());
    }
}

fn told(inspected: &Result<Contents, ArchiveError>) -> Result<&Contents, String> {
    inspected.as_ref().map_err(ToString::to_string)
}

fn looked_at(inspected: Result<Contents, ArchiveError>) -> Outcome {
    let contents = match inspected {
        Ok(contents) => contents,
        Err(source) => {
            let file = "class.tgz".to_owned();
            let error = ReleaseError::Archive { file, source };
            return refused(&error, error.class(), error.reason());
        }
    };
    assert!(contents.directories.len() <= MAX_ENTRIES);
    for (directory, chart) in &contents.directories {
        assert!(!matches!(directory.as_str(), "" | "." | "..") && !directory.contains(['/', '\\', '\0']));
        assert!(chart.as_ref().is_none_or(|chart| !chart.version.is_empty()));
        assert_eq!(contents.has_chart(directory), chart.is_some());
    }
    match contents.single_chart() {
        Some(_) => Outcome::Accepted,
        None => Outcome::Refused,
    }
}

/// Parts that are compressed one by one.
fn packed(parts: &[&[u8]]) -> Vec<u8> {
    let mut packed = Vec::new();
    for part in parts {
        let mut encoder = GzEncoder::new(&mut packed, Compression::none());
        let written = encoder.write_all(part).and_then(|()| encoder.finish().map(drop));
        assert!(written.is_ok(), "memory takes all bytes");
    }
    packed
}

/// Gives one byte, two, three, and so on, and begins again.
struct Trickling<'a>(&'a [u8], usize);

impl Read for Trickling<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(buffer.len());
        self.1 = self.1 % 7 + 1;
        let mut few = self.0.take(count as u64);
        let read = few.read(buffer)?;
        self.0 = self.0.get(read..).unwrap_or_default();
        Ok(read)
    }
}
