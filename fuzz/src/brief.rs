//! A short search: seeds, and changes of them that follow from a number, the same in every run. Shared by the tests of the rooms.

use std::{fs, path::Path};

/// What means something in one of the languages.
const TOKENS: [&[u8]; 34] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e999",
    b"18446744073709551616",
    b"\"a\":",
    b"..",
    b"/",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b"  ",
    b"- ",
    b"&a ",
    b"*a",
    b"!!binary ",
    b"sha256:",
    b"=",
    b"%2e",
    b"\xef\xbb\xbf",
    b"AAAA",
];

/// A generator of numbers (`SplitMix64`) that needs no crate.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^= number >> 31;
        usize::try_from(number % (limit.max(1) as u64)).unwrap_or_default()
    }
}

/// The seeds of a target with their names, in the order of these.
pub(crate) fn seeds(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut seeds: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("a seed"))
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{} has no seeds", folder.display());
    seeds
}

/// Something else than a seed, but like it.
pub(crate) fn changed(seeds: &[(String, Vec<u8>)], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].1.clone();
    for _ in 0..=numbers.below(4) {
        let place = numbers.below(bytes.len() + 1);
        let end = bytes.len().min(place + 1 + numbers.below(40));
        match numbers.below(7) {
            0 => drop(bytes.drain(place..end)),
            1 => {
                let again = bytes[place..end].to_vec();
                bytes.splice(place..place, again);
            }
            2 => drop(bytes.splice(place..place, TOKENS[numbers.below(TOKENS.len())].iter().copied())),
            3 => drop(bytes.splice(place..end, TOKENS[numbers.below(TOKENS.len())].iter().copied())),
            4 => {
                let other = &seeds[numbers.below(seeds.len())].1;
                let from = numbers.below(other.len() + 1);
                bytes.truncate(place);
                bytes.extend(&other[from..]);
            }
            5 => {
                let many = TOKENS[numbers.below(TOKENS.len())].repeat(1 + numbers.below(2000));
                bytes.splice(place..place, many);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << numbers.below(8);
                }
            }
        }
    }
    bytes
}
