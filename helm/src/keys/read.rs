//! Structures of ASN.1 read as Go's `encoding/asn1` reads them, with its errors.

use super::der::Reader;

/// The elements of a structure, and what follows it. `name` is Go's type.
pub(super) fn structure<'a>(bytes: &'a [u8], name: &str) -> Result<(Reader<'a>, &'a [u8]), String> {
    let mut reader = Reader(bytes);
    let content = field(&mut reader, super::der::SEQUENCE, name)?;
    Ok((Reader(content), reader.0))
}

/// The next element, which must have that tag. `name` is Go's type.
pub(super) fn field<'a>(reader: &mut Reader<'a>, tag: u8, name: &str) -> Result<&'a [u8], String> {
    if reader.is_empty() {
        return Err("asn1: syntax error: sequence truncated".to_owned());
    }
    let header = Header::of(reader.0).ok_or("asn1: syntax error: truncated tag or length")?;
    if header.tag != tag {
        return Err(format!(
            "asn1: structure error: tags don't match ({} vs {{class:{} tag:{} length:{} isCompound:{}}}) {NO_PARAMETERS} {name} @{}",
            tag & 0x1f,
            header.tag >> 6,
            header.tag & 0x1f,
            header.length,
            header.tag & 0x20 != 0,
            header.size,
        ));
    }
    let element = reader.take(tag).ok_or("asn1: syntax error: data truncated")?;
    Ok(element.content)
}

/// How Go prints that a field has no tags of its own.
const NO_PARAMETERS: &str = "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}";

struct Header {
    tag: u8,
    length: usize,
    /// Bytes of tag and length.
    size: usize,
}

impl Header {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (tag, first) = (*bytes.first()?, *bytes.get(1)?);
        let digits = if first < 0x80 { 0 } else { usize::from(first & 0x7f) };
        let length = match digits {
            0 => usize::from(first & 0x7f),
            1..=4 => bytes
                .get(2..2 + digits)?
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit)),
            _ => return None,
        };
        let size = 2 + digits;
        Some(Self { tag, length, size })
    }
}
