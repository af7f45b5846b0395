//! Disks to send: small ones that a cloud takes for what they are. Made of a seed, so that a test can make the same bytes again.

/// Bytes of a cluster of the qcow2 disks.
const CLUSTER: u64 = 1 << 16;
/// Clusters before the first one with data: header, refcount table, refcount block, L1 and L2 table.
const TABLES: u64 = 5;
/// Most clusters that one L2 table knows: 512 MiB.
const L2_ENTRIES: u64 = CLUSTER / 8;
/// Marks a cluster that nobody shares.
const COPIED: u64 = 1 << 63;
/// Bytes of a header of version 3.
const HEADER: u32 = 104;

/// Bytes that look random, equal for equal seeds.
pub fn raw(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut disk = Vec::with_capacity(bytes + 8);
    while disk.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        disk.extend_from_slice(&state.to_le_bytes());
    }
    disk.truncate(bytes);
    disk
}

/// A valid qcow2 disk of 16 MiB, of which 3 MiB from the first MiB on hold data: some 3.3 MiB.
pub fn qcow2(seed: u64) -> Vec<u8> {
    qcow2_of(seed, 16 << 20, 3 << 20)
}

/// A valid qcow2 disk of so many bytes (at most 512 MiB), of which `data` from the first MiB on hold data. Both are rounded up to 64 KiB.
pub fn qcow2_of(seed: u64, size: u64, data: u64) -> Vec<u8> {
    let size = size.next_multiple_of(CLUSTER).min(L2_ENTRIES * CLUSTER);
    let first = (1_u64 << 20) / CLUSTER;
    let held = data.div_ceil(CLUSTER).min((size / CLUSTER).saturating_sub(first));
    let mut disk = header(size);
    pad(&mut disk, 1);
    disk.extend((2 * CLUSTER).to_be_bytes());
    pad(&mut disk, 2);
    for _ in 0..TABLES + held {
        disk.extend(1_u16.to_be_bytes());
    }
    pad(&mut disk, 3);
    disk.extend(((4 * CLUSTER) | COPIED).to_be_bytes());
    pad(&mut disk, 4);
    for cluster in 0..size / CLUSTER {
        let entry = match cluster.checked_sub(first) {
            Some(number) if number < held => ((TABLES + number) * CLUSTER) | COPIED,
            _ => 0,
        };
        disk.extend(entry.to_be_bytes());
    }
    pad(&mut disk, TABLES);
    disk.extend(raw(seed, usize::try_from(held * CLUSTER).unwrap_or(usize::MAX)));
    disk
}

fn header(size: u64) -> Vec<u8> {
    let mut header = b"QFI\xfb".to_vec();
    let mut put = |bytes: &[u8]| header.extend(bytes);
    put(&3_u32.to_be_bytes());
    // No backing file.
    put(&[0; 12]);
    put(&CLUSTER.trailing_zeros().to_be_bytes());
    put(&size.to_be_bytes());
    // No encryption.
    put(&0_u32.to_be_bytes());
    // One entry of the L1 table, and where it is.
    put(&1_u32.to_be_bytes());
    put(&(3 * CLUSTER).to_be_bytes());
    // Where the refcount table is, and its one cluster.
    put(&CLUSTER.to_be_bytes());
    put(&1_u32.to_be_bytes());
    // No snapshots, no features.
    put(&[0; 12 + 24]);
    // Reference counts of two bytes.
    put(&4_u32.to_be_bytes());
    put(&HEADER.to_be_bytes());
    header
}

/// Zeros up to the beginning of this cluster.
fn pad(disk: &mut Vec<u8>, cluster: u64) {
    disk.resize(usize::try_from(cluster * CLUSTER).unwrap_or(usize::MAX), 0);
}
