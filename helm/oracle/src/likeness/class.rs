//! Drawn values as strings of characters: which ones, and how many.

const DIGIT: u16 = 1;
const HEX_LOWER: u16 = 1 << 1;
const LOWER: u16 = 1 << 2;
const HEX_UPPER: u16 = 1 << 3;
const UPPER: u16 = 1 << 4;
/// What base64 has beside letters and digits, in both its alphabets.
const BASE64: u16 = 1 << 5;
const BASE64_OF_URLS: u16 = 1 << 6;
const PRINTABLE: u16 = 1 << 7;
const OTHER: u16 = 1 << 8;

/// So many drawn characters have a digit, a small and a capital letter among them if they can: of 62 equally likely ones, 10 are missing in one
/// of 6,000 values of this length.
const TELLING: usize = 48;

/// Why a value is not alike to the real ones.
pub(super) fn check(theirs: &[Vec<u8>], ours: &[u8]) -> Result<(), String> {
    let shortest = theirs.iter().map(Vec::len).min().unwrap_or(0);
    let longest = theirs.iter().map(Vec::len).max().unwrap_or(0);
    if !(shortest..=longest).contains(&ours.len()) {
        return Err(format!(
            "{} characters were drawn where Helm draws {shortest} to {longest}",
            ours.len()
        ));
    }
    let allowed = theirs.iter().fold(0, |allowed, value| allowed | reach(classes(value)));
    let found = classes(ours);
    if found & !allowed != 0 {
        return Err("characters of another class were drawn than Helm draws".to_owned());
    }
    let expected = theirs.first().map(|value| kinds(classes(value)));
    let always = theirs.iter().all(|value| Some(kinds(classes(value))) == expected);
    if always && shortest >= TELLING && Some(kinds(found)) != expected {
        return Err("fewer classes of characters were drawn than Helm always draws".to_owned());
    }
    Ok(())
}

/// Whether there are digits, small letters, capital letters and others: the kinds that no long value lacks by chance. One without the six letters
/// of hexadecimal numbers is no rarity.
fn kinds(classes: u16) -> [bool; 4] {
    [DIGIT, HEX_LOWER | LOWER, HEX_UPPER | UPPER, OTHER].map(|kind| classes & kind != 0)
}

fn classes(value: &[u8]) -> u16 {
    value.iter().fold(0, |classes, byte| {
        classes
            | match byte {
                b'0'..=b'9' => DIGIT,
                b'a'..=b'f' => HEX_LOWER,
                b'g'..=b'z' => LOWER,
                b'A'..=b'F' => HEX_UPPER,
                b'G'..=b'Z' => UPPER,
                b'+' | b'/' | b'=' => BASE64,
                b'-' | b'_' => BASE64_OF_URLS,
                b' '..=b'~' => PRINTABLE,
                _ => OTHER,
            }
    })
}

/// The classes that one who draws these can draw.
fn reach(classes: u16) -> u16 {
    let mut reach = classes;
    if classes & LOWER != 0 {
        reach |= HEX_LOWER;
    }
    if classes & UPPER != 0 {
        reach |= HEX_UPPER;
    }
    if classes & PRINTABLE != 0 {
        reach |= BASE64 | BASE64_OF_URLS;
    }
    reach
}
