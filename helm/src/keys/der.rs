//! The distinguished encoding of ASN.1 (X.690): elements written and taken apart. Knows no structure made of them.

use num_bigint::BigUint;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
pub(super) const OBJECT: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of a field of that number that holds other elements.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// The tag of a field of that number that holds bytes.
pub(super) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// One element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    if let Some(length) = u8::try_from(content.len()).ok().filter(|length| *length < 0x80) {
        bytes.push(length);
    } else {
        let length = content.len().to_be_bytes();
        let zeros = length.iter().take_while(|byte| **byte == 0).count();
        let digits = &length[zeros..];
        bytes.push(0x80 | u8::try_from(digits.len()).unwrap_or(8));
        bytes.extend_from_slice(digits);
    }
    bytes.extend_from_slice(content);
    bytes
}

/// Elements within one.
pub(super) fn wrap(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    wrap(SEQUENCE, parts)
}

pub(super) fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_some_and(|byte| *byte >= 0x80) {
        bytes.insert(0, 0);
    }
    element(INTEGER, &bytes)
}

pub(super) fn small(number: u8) -> Vec<u8> {
    integer(&BigUint::from(number))
}

pub(super) fn octets(bytes: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, bytes)
}

/// A string of bits that are all in use.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// An object identifier, given in its encoding.
pub(super) fn object(identifier: &[u8]) -> Vec<u8> {
    element(OBJECT, identifier)
}

pub(super) fn null() -> Vec<u8> {
    element(NULL, &[])
}

/// An element that was read.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// Tag and length included.
    pub(super) whole: &'a [u8],
}

/// Elements one after another.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next element, if one is there and whole.
    pub(super) fn next(&mut self) -> Option<Element<'a>> {
        let bytes = self.0;
        let (tag, first) = (*bytes.first()?, *bytes.get(1)?);
        let (start, length) = if first < 0x80 {
            (2, usize::from(first))
        } else {
            let digits = bytes.get(2..2 + usize::from(first & 0x7f))?;
            if !(1..=4).contains(&digits.len()) || digits[0] == 0 {
                return None;
            }
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            (2 + digits.len(), Some(length).filter(|length| *length >= 0x80)?)
        };
        let end = start.checked_add(length)?;
        let whole = bytes.get(..end)?;
        self.0 = &bytes[end..];
        let content = &whole[start..];
        Some(Element { tag, content, whole })
    }

    /// The next element, if it has that tag. Otherwise the reader stays where it is.
    pub(super) fn take(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.next().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    pub(super) fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(|element| Reader(element.content))
    }

    /// The next element, if it is a number that is not negative.
    pub(super) fn integer(&mut self) -> Option<BigUint> {
        let content = self.take(INTEGER)?.content;
        let first = content.first()?;
        (*first < 0x80).then(|| BigUint::from_bytes_be(content))
    }

    /// The next element, if it is a string of whole bytes.
    pub(super) fn bits(&mut self) -> Option<&'a [u8]> {
        match self.take(BIT_STRING)?.content.split_first()? {
            (0, bytes) => Some(bytes),
            _ => None,
        }
    }
}
