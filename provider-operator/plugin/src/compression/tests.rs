//! Packed files become what was packed, whole or with an error. The files were packed by the programs that everybody uses.

use futures::TryStreamExt;

use super::*;

const PACKED: [(Compression, &[u8]); 4] = [
    (Compression::Gzip, include_bytes!("packed/disk.gz")),
    (Compression::Bzip2, include_bytes!("packed/disk.bz2")),
    (Compression::Xz, include_bytes!("packed/disk.xz")),
    (Compression::Zstd, include_bytes!("packed/disk.zst")),
];

/// What was packed: 3 MiB, of which each block begins with eight bytes by chance.
fn disk() -> Vec<u8> {
    let mut state = 1_u64;
    let mut chance = || {
        state = (state * 1_103_515_245 + 12345) % (1 << 31);
        u8::try_from((state >> 16) & 0xff).unwrap()
    };
    let blocks = (0..768_u32).flat_map(|block| {
        let mut bytes = vec![u8::try_from(block % 256).unwrap(); 4096];
        bytes[..8].fill_with(&mut chance);
        bytes
    });
    blocks.collect()
}

fn in_pieces(bytes: &[u8], size: usize) -> ContentStream {
    let pieces: Vec<_> = bytes
        .chunks(size)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    stream::iter(pieces).boxed()
}

async fn unpacked(kind: Compression, packed: &[u8], limits: Limits) -> Result<Vec<u8>, ContentError> {
    let pieces: Vec<Bytes> = unpack(kind, in_pieces(packed, 1000), limits).try_collect().await?;
    Ok(pieces.concat())
}

async fn refused(kind: Compression, packed: &[u8], limits: Limits) -> String {
    let error = unpacked(kind, packed, limits).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceNotAnImage, "{kind}: {error}");
    error.message
}

#[tokio::test]
async fn what_the_usual_programs_packed_becomes_what_it_was() {
    let disk = disk();
    for (kind, packed) in PACKED {
        assert_eq!(crate::sniff::packed(packed), Some(kind));
        assert!(
            unpacked(kind, packed, Limits::default()).await.unwrap() == disk,
            "{kind}"
        );
        // Files that were packed one after another are one.
        let twice = unpacked(kind, &[packed, packed].concat(), Limits::default())
            .await
            .unwrap();
        assert!(twice == [&disk[..], &disk[..]].concat(), "{kind}");
    }
}

#[tokio::test]
async fn frames_of_zstd_that_say_nothing_are_passed_over() {
    let (kind, packed) = PACKED[3];
    let nothing = [&0x184d_2a53_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), b"hello"].concat();
    let around = [&nothing[..], packed, &nothing].concat();
    assert!(unpacked(kind, &around, Limits::default()).await.unwrap() == disk());
    let words = refused(kind, &[packed, &nothing[..10]].concat(), Limits::default()).await;
    assert_eq!(words, "the packed file ends too early; publish it whole");
}

#[tokio::test]
async fn a_part_of_a_packed_file_is_no_file() {
    for (kind, packed) in PACKED {
        for length in [1, 20, packed.len() / 2, packed.len() - 1] {
            refused(kind, &packed[..length], Limits::default()).await;
        }
    }
}

#[tokio::test]
async fn what_comes_after_a_packed_file_is_refused() {
    for (kind, packed) in PACKED {
        refused(kind, &[packed, b"garbage that follows"].concat(), Limits::default()).await;
    }
}

#[tokio::test]
async fn one_changed_byte_is_noticed() {
    for (kind, packed) in PACKED {
        let mut packed = packed.to_vec();
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        refused(kind, &packed, Limits::default()).await;
    }
}

#[tokio::test]
async fn a_file_that_is_packed_otherwise_is_refused() {
    for (kind, _) in PACKED {
        for (other, packed) in PACKED {
            if kind != other {
                refused(kind, packed, Limits::default()).await;
            }
        }
        refused(kind, b"no packed file at all", Limits::default()).await;
    }
}

#[tokio::test]
async fn what_asks_for_more_memory_than_there_may_be_is_refused() {
    let small = Limits {
        window: 64 * 1024,
        ..Limits::default()
    };
    let words = refused(Compression::Xz, PACKED[2].1, small).await;
    assert!(words.contains("asks for too much memory"), "{words}");
    let words = refused(Compression::Zstd, PACKED[3].1, small).await;
    assert!(words.contains("cannot be unpacked"), "{words}");
}

#[tokio::test]
async fn what_grows_beyond_measure_is_refused() {
    let limits = Limits {
        ratio: 20,
        ratio_from: 1024 * 1024,
        ..Limits::default()
    };
    for (kind, packed) in PACKED {
        let words = refused(kind, packed, limits).await;
        assert!(words.contains("more than 20 times as large"), "{kind}: {words}");
    }
}

#[tokio::test]
async fn an_error_of_the_source_is_told_as_it_is() {
    let (kind, packed) = PACKED[0];
    let broken = ContentError::new(ErrorClass::SourceBroken, "the source broke");
    let input = in_pieces(&packed[..1000], 100)
        .chain(stream::iter([Err(broken)]))
        .boxed();
    let unpacked: Result<Vec<Bytes>, _> = unpack(kind, input, Limits::default()).try_collect().await;
    assert_eq!(unpacked.unwrap_err().class, ErrorClass::SourceBroken);
}

#[tokio::test]
async fn nothing_is_unpacked_ahead_but_what_fits_between() {
    let (kind, packed) = PACKED[0];
    let mut unpacked = unpack(kind, in_pieces(packed, 1), Limits::default());
    let first = unpacked.next().await.unwrap().unwrap();
    assert_eq!(first.len(), 256 * 1024);
    // Dropped while the thread still has something to give: it ends, or this test would never be over.
    drop(unpacked);
}
