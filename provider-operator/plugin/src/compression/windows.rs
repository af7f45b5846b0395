//! How much of all packed files of this process may be remembered at once while they are unpacked. Reads of a file only how much it asks for at its beginning,
//! and makes others wait where that is more than is left.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};

use super::{Compression, Limits};
use crate::{ContentError, ErrorClass};

const MIB: u32 = 1024 * 1024;
/// MiB for the windows of all packed files together: two of the largest ones, or as many of the usual ones (at most 8 MiB) as are sent at once.
const ALL: u32 = 256;
/// Bytes of a window that every file has. Of several files one after another, which are one, the first is asked alone.
const LEAST: u32 = 16 * MIB;
/// How long others are waited for, with a place that is kept meanwhile: after that it is tried again later.
const PATIENCE: Duration = Duration::from_mins(2);

static WINDOWS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(ALL as usize)));

/// What unpacking one file may cost, and the room for it, which is kept until it is unpacked.
pub(crate) struct Room {
    pub(super) limits: Limits,
    pub(super) held: Option<OwnedSemaphorePermit>,
}

/// Without a window that would have to be counted.
impl From<Limits> for Room {
    fn from(limits: Limits) -> Self {
        Self { limits, held: None }
    }
}

/// Waits for room for what a file asks for that begins so. It gets no more than that.
pub(crate) async fn room(kind: Compression, first: &[u8], limits: Limits) -> Result<Room, ContentError> {
    room_of(&WINDOWS, kind, first, limits).await
}

async fn room_of(
    windows: &Arc<Semaphore>,
    kind: Compression,
    first: &[u8],
    limits: Limits,
) -> Result<Room, ContentError> {
    let asked = match kind {
        Compression::Xz => xz(first),
        Compression::Zstd => zstd(first),
        // Less than ten megabytes, whatever they say.
        Compression::Gzip | Compression::Bzip2 | Compression::Auto | Compression::None => return Ok(limits.into()),
    };
    // What says nothing that we understand may ask for all that one may have.
    let asked = asked.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(u32::MAX);
    let window = asked.max(LEAST).min(limits.window);
    let places = window.div_ceil(MIB).clamp(1, ALL);
    let waiting = Arc::clone(windows).acquire_many_owned(places);
    let held = time::timeout(PATIENCE, waiting).await.ok().and_then(Result::ok);
    let held = held.ok_or_else(|| {
        let words = "the packed images that are being sent take all memory that there is for unpacking; when they are sent it is this one's turn";
        ContentError::new(ErrorClass::Busy, words)
    })?;
    Ok(Room {
        limits: Limits { window, ..limits },
        held: Some(held),
    })
}

/// The window of the first frame, in bytes. RFC 8878, 3.1.1.1.
fn zstd(first: &[u8]) -> Option<u64> {
    let [descriptor, rest @ ..] = first.strip_prefix(&0xfd2f_b528_u32.to_le_bytes())? else {
        return None;
    };
    if descriptor & 0x20 == 0 {
        let window = rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is the content, whose length comes behind the number of a dictionary.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = 1_usize << (descriptor >> 6);
    let field = rest.get(dictionary..dictionary + length)?;
    let mut bytes = [0; 8];
    bytes[..length].copy_from_slice(field);
    Some(u64::from_le_bytes(bytes).saturating_add(if length == 2 { 256 } else { 0 }))
}

/// The dictionary of the first block, in bytes. The file format of xz, 3.1 and 5.3.1.
fn xz(first: &[u8]) -> Option<u64> {
    let [_, flags, rest @ ..] = first.get(12..)? else {
        return None;
    };
    let mut rest = rest;
    for flag in [0x40, 0x80] {
        if flags & flag != 0 {
            number(&mut rest)?;
        }
    }
    for _ in 0..=(flags & 3) {
        let (filter, size) = (number(&mut rest)?, number(&mut rest)?);
        let (properties, more) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        rest = more;
        if filter == 0x21 {
            let bits = u64::from(*properties.first()?);
            return (bits < 40).then(|| (2 | (bits & 1)) << (bits / 2 + 11));
        }
    }
    None
}

/// A number of as many bytes as it needs, of which seven bits each count.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..9 {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::{StreamExt, TryStreamExt, stream};
    use tokio::time::Instant;

    use super::*;

    const LARGEST_ZSTD: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3];

    #[test]
    fn a_packed_file_says_at_its_beginning_how_much_it_asks_for() {
        assert_eq!(zstd(&LARGEST_ZSTD), Some(128 << 20));
        assert_eq!(zstd(&[0x28, 0xb5, 0x2f, 0xfd, 0, (13 << 3) | 4]), Some(12 << 20));
        assert_eq!(zstd(&[0x28, 0xb5, 0x2f, 0xfd, 0xa1, 9, 0, 0, 1, 0]), Some(1 << 16));
        assert_eq!(zstd(&[0x28, 0xb5, 0x2f, 0xfd, 0x60, 1, 0]), Some(257));
        assert_eq!(zstd(&LARGEST_ZSTD[..5]), None);
        let block = |rest: &[u8]| xz(&[&[0; 12][..], rest].concat());
        assert_eq!(block(&[2, 0, 0x21, 1, 0x16]), Some(8 << 20));
        assert_eq!(block(&[2, 0, 0x21, 1, 30]), Some(128 << 20));
        // Both sizes, and a filter before it.
        let after = [4, 0xc1, 0x80, 0x01, 5, 0x03, 1, 0, 0x21, 1, 0x17];
        assert_eq!(block(&after), Some(12 << 20));
        assert_eq!((block(&[2, 0, 0x21, 1]), block(&[])), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_memory_for_unpacking_waits_and_is_told_so() {
        let windows = Arc::new(Semaphore::new(ALL as usize));
        let room = || room_of(&windows, Compression::Zstd, &LARGEST_ZSTD, Limits::default());
        let (first, _second) = (room().await.unwrap(), room().await.unwrap());
        let begun = Instant::now();
        let error = room().await.err().expect("there is no room");
        assert_eq!((error.class, begun.elapsed()), (ErrorClass::Busy, PATIENCE));
        // What needs no window does not wait.
        let gzip = room_of(&windows, Compression::Gzip, b"", Limits::default()).await;
        assert!(gzip.is_ok_and(|room| room.held.is_none()));
        drop(first);
        assert!(room().await.is_ok());
    }

    #[tokio::test]
    async fn memory_for_unpacking_is_held_until_it_is_unpacked() {
        let windows = Arc::new(Semaphore::new(ALL as usize));
        let packed = include_bytes!("packed/disk.zst");
        let room = room_of(&windows, Compression::Zstd, packed, Limits::default()).await;
        let input = stream::iter([Ok::<_, ContentError>(Bytes::from_static(packed))]).boxed();
        let unpacked = super::super::unpack(Compression::Zstd, input, room.unwrap());
        assert_eq!(windows.available_permits(), 240, "the least that a file has");
        let pieces: Vec<Bytes> = unpacked.try_collect().await.unwrap();
        assert!(!pieces.is_empty());
        assert_eq!(windows.available_permits(), 256);
    }
}
