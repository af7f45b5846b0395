//! What stands beside the files of a release and vouches for them: a list of sums and its signatures. Understands none of it.

use std::{io, time::Duration};

use tokio::{io::AsyncReadExt, time};

use super::{ReleaseSource, RemoteFile, Resolved, SourceError};
use crate::{
    Digest,
    trust::{
        Bytes, Evidence, MAX_STATEMENT, Proof, SUMS, SUMS_BUNDLE, SUMS_SIGNATURE, Statement, bundle::MAX_BUNDLE_BYTES,
    },
};

/// Longest time for all signatures of a release together.
pub(super) const LONGEST_SEARCH: Duration = Duration::from_mins(1);

/// Fetches what stands beside a release.
pub(super) async fn evidence<Source: ReleaseSource + ?Sized>(
    source: &Source,
    resolved: &Resolved,
) -> Result<Evidence, SourceError> {
    let reading = async {
        let mut found = Vec::new();
        for file in resolved.beside() {
            found.push((file.name.as_str(), read(source, file).await?));
        }
        Ok(of_files(found))
    };
    in_time(reading).await
}

/// Ends a search for signatures when it takes too long.
pub(super) async fn in_time<T>(search: impl Future<Output = Result<T, SourceError>>) -> Result<T, SourceError> {
    let after = LONGEST_SEARCH;
    let found = time::timeout(after, search).await;
    found.unwrap_or(Err(SourceError::SlowSignatures { after }))
}

/// Most bytes of a file of this name.
pub(super) fn limit(name: &str) -> usize {
    match name {
        SUMS_BUNDLE => MAX_BUNDLE_BYTES,
        _ => MAX_STATEMENT,
    }
}

/// What files of these names have to show.
pub(super) fn of_files<'name>(files: impl IntoIterator<Item = (&'name str, Vec<u8>)>) -> Evidence {
    let mut evidence = Evidence::default();
    for (name, bytes) in files {
        match name {
            SUMS => evidence.state(Statement::Sums, bytes),
            // What is no text is no base64 either, and is told as such.
            SUMS_SIGNATURE => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                evidence.add(Statement::Sums, Proof::Detached(text));
            }
            SUMS_BUNDLE => {
                evidence.add(Statement::Sums, Proof::Bundle(Bytes(bytes)));
            }
            _ => {}
        }
    }
    evidence
}

async fn read<Source: ReleaseSource + ?Sized>(source: &Source, file: &RemoteFile) -> Result<Vec<u8>, SourceError> {
    let content = source.fetch(file).await?;
    let limit = limit(&file.name);
    let mut bytes = Vec::new();
    let read = content.take(limit as u64 + 1).read_to_end(&mut bytes).await;
    let bytes = finished(&file.name, read, bytes, limit)?;
    let (size, sha256) = (bytes.len() as u64, Digest::of(&bytes));
    // It may come from anywhere, and a page that stands in its place would be taken for a broken signature.
    if file.size.is_some_and(|told| told != size) || file.sha256.is_some_and(|told| told != sha256) {
        return Err(SourceError::OtherSignature {
            file: file.name.clone(),
        });
    }
    Ok(bytes)
}

/// What was read of a file, if that is all of it.
pub(super) fn finished(
    name: &str,
    read: io::Result<usize>,
    bytes: Vec<u8>,
    limit: usize,
) -> Result<Vec<u8>, SourceError> {
    let file = || name.to_owned();
    read.map_err(|source| SourceError::ReadSignature { file: file(), source })?;
    if bytes.len() > limit {
        return Err(SourceError::LargeSignature { file: file(), limit });
    }
    Ok(bytes)
}
