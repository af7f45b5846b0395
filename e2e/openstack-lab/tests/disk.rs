//! That a disk is one.

use openstack_lab::disk;

#[cfg(test)]
fn number(disk: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(disk[at..at + 8].try_into().unwrap())
}

#[test]
fn every_cluster_that_a_qcow2_names_lies_in_it_and_holds_the_data() {
    let disk = disk::qcow2(7);
    assert_eq!(&disk[..4], b"QFI\xfb");
    assert_eq!(number(&disk, 24), 16 << 20, "the size that a machine sees");
    let at = |offset: u64| usize::try_from(offset).unwrap();
    let first_table = at(number(&disk, 40));
    let second_table = at(number(&disk, first_table) & !(1 << 63));
    let mut data: Vec<u8> = Vec::new();
    for cluster in 0..256 {
        let entry = number(&disk, second_table + cluster * 8) & !(1 << 63);
        if entry != 0 {
            assert!((16..64).contains(&cluster), "data from 1 to 4 MiB");
            data.extend(&disk[at(entry)..at(entry) + (1 << 16)]);
        }
    }
    assert_eq!(data, disk::raw(7, 3 << 20));
    assert_eq!(disk.len() % (1 << 16), 0);
    let counts = at(number(&disk, at(number(&disk, 48))));
    let used = disk.len() >> 16;
    for cluster in 0..1 << 15 {
        let place = counts + cluster * 2;
        assert_eq!(disk[place..place + 2] == [0, 1], cluster < used, "{cluster}");
    }
}

#[test]
fn seeds_make_disks_and_the_same_seed_the_same_one() {
    assert_eq!(disk::raw(1, 1000), disk::raw(1, 1000));
    assert_ne!(disk::raw(1, 1000), disk::raw(2, 1000));
    assert_ne!(disk::raw(0, 1000), vec![0; 1000]);
    assert_eq!(disk::raw(3, 13).len(), 13);
    assert_eq!(
        disk::qcow2_of(1, 100 << 20, 200 << 20).len() >> 16,
        5 + (99 << 4),
        "no more data than the disk has"
    );
}
