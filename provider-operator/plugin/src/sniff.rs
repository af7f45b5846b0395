//! What bytes are, by their beginning: pages and listings that were sent instead of an image, packed files, and formats of disks. Looks at
//! bytes alone, never at names.

use crate::{Compression, ContentError, ErrorClass, Format};

/// So many first bytes are looked at.
pub(crate) const ENOUGH: usize = 4096;

/// A magic, where it is, and what it is of.
const DISKS: [(usize, &[u8], Format); 7] = [
    (0, b"QFI\xfb", Format::Qcow2),
    (0, b"KDMV", Format::Vmdk),
    (0, b"# Disk DescriptorFile", Format::Vmdk),
    (0, b"conectix", Format::Vhd),
    (0, b"vhdxfile", Format::Vhdx),
    (64, b"\x7f\x10\xda\xbe", Format::Vdi),
    (0, b"COWD", Format::Vmdk),
];

const PACKED: [(&[u8], Compression); 4] = [
    (b"\x1f\x8b\x08", Compression::Gzip),
    (b"\xfd7zXZ\0", Compression::Xz),
    (b"BZh", Compression::Bzip2),
    (b"\x28\xb5\x2f\xfd", Compression::Zstd),
];

/// Refuses what is not an image of the promised format. `first`: the beginning of the image, unpacked, at most [`ENOUGH`] bytes and less only
/// where there are no more. `content_type`: what the source called it.
///
/// A raw disk may begin with anything, so it is refused only where it begins like something else that is known.
pub(crate) fn check(first: &[u8], content_type: Option<&str>, promised: Option<&Format>) -> Result<(), ContentError> {
    if first.is_empty() {
        return Err(refusal("the file is empty"));
    }
    let found = disk(first);
    if found.is_none()
        && let Some(page) = page(first, content_type)
    {
        return Err(refusal(format!(
            "the file is {page} and no image; give the address that leads to the image itself"
        )));
    }
    let Some(promised) = promised else { return Ok(()) };
    let is_as_promised = match promised {
        Format::Raw => found.is_none() && packed(first).is_none(),
        // Of CDs the magic comes later than what is looked at, and of other formats none is known.
        Format::Iso | Format::Other(_) => true,
        // The older kind of these disks has its magic at the end when it is of fixed size.
        Format::Vhd => found.is_none() || found == Some(Format::Vhd),
        known => found.as_ref() == Some(known),
    };
    if is_as_promised {
        return Ok(());
    }
    let found = found.map(|format| format.to_string());
    let found =
        found.or_else(|| packed(first).map(|packed| format!("packed with {}", packed.to_string().to_lowercase())));
    let found = found.as_deref().unwrap_or("something unknown");
    Err(refusal(format!(
        "the format of the image shall be {promised}, and the file is {found}; correct the format, or the address"
    )))
}

/// How a file is packed, by its first bytes.
pub(crate) fn packed(first: &[u8]) -> Option<Compression> {
    let (_, compression) = PACKED.iter().find(|(magic, _)| first.starts_with(magic))?;
    // Any text may begin with the letters of bzip2; a file has its level and the number of its first block after them.
    let is_bzip2 = || first.get(3).is_some_and(u8::is_ascii_digit) && matches!(first.get(4), Some(0x31 | 0x17));
    (*compression != Compression::Bzip2 || is_bzip2()).then_some(*compression)
}

fn disk(first: &[u8]) -> Option<Format> {
    let has = |at: usize, magic: &[u8]| first.get(at..).is_some_and(|rest| rest.starts_with(magic));
    let (.., format) = DISKS.iter().find(|(at, magic, _)| has(*at, magic))?;
    Some(format.clone())
}

/// What page or listing it is.
fn page(first: &[u8], content_type: Option<&str>) -> Option<&'static str> {
    if packed(first).is_some() {
        return None;
    }
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let media = media.trim().to_ascii_lowercase();
    match media.as_str() {
        "text/html" | "application/xhtml+xml" => return Some("a web page"),
        "application/json" => return Some("JSON"),
        "text/xml" | "application/xml" => return Some("XML"),
        _ => {}
    }
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let begins = |word: &str| {
        let beginning = text.get(..word.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(word.as_bytes()))
    };
    if begins("<!doctype html") || begins("<html") {
        return Some("a web page");
    }
    if begins("<?xml") || begins("<error") {
        return Some("XML");
    }
    if !is_text(first) {
        return None;
    }
    Some(if matches!(text.first(), Some(b'{' | b'[')) {
        "JSON"
    } else {
        "text"
    })
}

/// Whether it is nothing but text: UTF-8 (cut anywhere) without control characters.
fn is_text(first: &[u8]) -> bool {
    let text = match str::from_utf8(first) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default(),
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

fn refusal(words: impl AsRef<str>) -> ContentError {
    ContentError::new(ErrorClass::SourceNotAnImage, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(first: &[u8], content_type: Option<&str>, promised: Option<&Format>) -> Option<String> {
        let error = check(first, content_type, promised).err()?;
        assert_eq!(error.class, ErrorClass::SourceNotAnImage);
        Some(error.message)
    }

    fn beginning(at: usize, magic: &[u8]) -> Vec<u8> {
        let mut first = vec![0; ENOUGH];
        first[at..at + magic.len()].copy_from_slice(magic);
        first
    }

    #[test]
    fn pages_and_listings_are_no_images_by_what_they_are_called_or_how_they_begin() {
        let disk = [0_u8, 1, 2, 3, 0xff];
        for (first, content_type, word) in [
            (&b"<!DOCTYPE HTML PUBLIC"[..], None, "a web page"),
            (b"\xef\xbb\xbf \n<html lang=de>", None, "a web page"),
            (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code>", None, "XML"),
            (b"{\"message\": \"not found\"}", None, "JSON"),
            (b"404 page not found\n", None, "text"),
            ("zu spät".as_bytes(), None, "text"),
            (&disk, Some("text/html; charset=utf-8"), "a web page"),
            (&disk, Some("Application/JSON"), "JSON"),
        ] {
            for promised in [None, Some(&Format::Raw), Some(&Format::Qcow2)] {
                let words = refused(first, content_type, promised).expect(word);
                assert!(words.contains(&format!("the file is {word} and no image")), "{words}");
            }
        }
        assert_eq!(refused(b"", None, None).unwrap(), "the file is empty");
    }

    #[test]
    fn a_disk_is_one_whatever_the_source_calls_it() {
        let qcow2 = beginning(0, b"QFI\xfb");
        assert_eq!(refused(&qcow2, Some("text/html"), Some(&Format::Qcow2)), None);
        assert_eq!(refused(&[0, 1, 2], Some("text/plain"), Some(&Format::Raw)), None);
        assert_eq!(refused(&[0, 1, 2], Some("application/octet-stream"), None), None);
    }

    #[test]
    fn a_format_is_that_which_was_promised() {
        let raw = beginning(510, b"\x55\xaa");
        for (at, magic, format) in &DISKS {
            let first = beginning(*at, magic);
            assert_eq!(refused(&first, None, Some(format)), None, "{format}");
            assert_eq!(refused(&first, None, None), None, "{format}");
            let words = refused(&first, None, Some(&Format::Raw)).unwrap();
            assert!(
                words.contains(&format!("shall be raw, and the file is {format};")),
                "{words}"
            );
            if *format != Format::Vhd {
                let words = refused(&raw, None, Some(format)).unwrap();
                assert!(words.contains("the file is something unknown"), "{words}");
            }
        }
        for format in [Format::Raw, Format::Iso, Format::Vhd, Format::Other("ploop".to_owned())] {
            assert_eq!(refused(&raw, None, Some(&format)), None, "{format}");
        }
        let words = refused(&beginning(0, b"\xfd7zXZ\0"), None, Some(&Format::Raw)).unwrap();
        assert!(words.contains("the file is packed with xz"), "{words}");
    }

    #[test]
    fn how_a_file_is_packed_is_seen_by_its_first_bytes() {
        assert_eq!(packed(b"\x1f\x8b\x08\0"), Some(Compression::Gzip));
        assert_eq!(packed(b"\xfd7zXZ\0\0"), Some(Compression::Xz));
        assert_eq!(packed(b"BZh91AY&SY"), Some(Compression::Bzip2));
        assert_eq!(packed(b"BZh is a word"), None);
        assert_eq!(packed(b"\x28\xb5\x2f\xfd\x04"), Some(Compression::Zstd));
        assert_eq!(packed(b"QFI\xfb"), None);
        assert_eq!(packed(b""), None);
    }
}
