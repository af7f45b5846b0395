//! The elements of Go's layouts: which parts of the reference time stand for what.

/// One element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    Upper,
    Lower,
    Name,
    /// An offset in numbers.
    Offset(Offset),
    /// Digits of a second behind a dot or comma.
    Fraction {
        digits: usize,
        separator: u8,
        /// Zeros at the end are left out.
        trims: bool,
    },
}

/// How an offset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// UTC is `Z`.
    pub(super) has_z: bool,
    pub(super) has_colons: bool,
    /// Two-digit numbers, from 1 to 3.
    pub(super) parts: usize,
}

/// A layout up to and behind its first element.
pub(super) struct Split<'l> {
    pub(super) prefix: &'l [u8],
    /// The element and its text.
    pub(super) element: Option<(Element, &'l [u8])>,
    pub(super) rest: &'l [u8],
}

/// Finds the first element.
pub(super) fn split(layout: &[u8]) -> Split<'_> {
    for start in 0..layout.len() {
        let (prefix, text) = layout.split_at(start);
        let Some((element, length)) = element_at(text) else {
            continue;
        };
        // `_2006` is an underscore before a year.
        let (prefix, text) = if element == Element::LongYear && text[0] == b'_' {
            layout.split_at(start + 1)
        } else {
            (prefix, text)
        };
        let (found, rest) = text.split_at(length);
        return Split {
            prefix,
            element: Some((element, found)),
            rest,
        };
    }
    Split {
        prefix: layout,
        element: None,
        rest: &[],
    }
}

/// The element that a text begins with, and its length.
fn element_at(text: &[u8]) -> Option<(Element, usize)> {
    let starts_lower = |at: usize| text.get(at).is_some_and(u8::is_ascii_lowercase);
    Some(match text {
        [b'J', ..] if text.starts_with(b"January") => (Element::LongMonth, 7),
        [b'J', ..] if text.starts_with(b"Jan") && !starts_lower(3) => (Element::Month, 3),
        [b'M', ..] if text.starts_with(b"Monday") => (Element::LongWeekday, 6),
        [b'M', ..] if text.starts_with(b"Mon") && !starts_lower(3) => (Element::Weekday, 3),
        [b'M', b'S', b'T', ..] => (Element::Name, 3),
        [b'0', b'1', ..] => (Element::ZeroMonth, 2),
        [b'0', b'2', ..] => (Element::ZeroDay, 2),
        [b'0', b'3', ..] => (Element::ZeroHour12, 2),
        [b'0', b'4', ..] => (Element::ZeroMinute, 2),
        [b'0', b'5', ..] => (Element::ZeroSecond, 2),
        [b'0', b'6', ..] => (Element::Year, 2),
        [b'0', b'0', b'2', ..] => (Element::ZeroYearDay, 3),
        [b'1', b'5', ..] => (Element::Hour, 2),
        [b'1', ..] => (Element::NumMonth, 1),
        [b'2', b'0', b'0', b'6', ..] | [b'_', b'2', b'0', b'0', b'6', ..] => (Element::LongYear, 4),
        [b'2', ..] => (Element::Day, 1),
        [b'_', b'2', ..] => (Element::UnderDay, 2),
        [b'_', b'_', b'2', ..] => (Element::UnderYearDay, 3),
        [b'3', ..] => (Element::Hour12, 1),
        [b'4', ..] => (Element::Minute, 1),
        [b'5', ..] => (Element::Second, 1),
        [b'P', b'M', ..] => (Element::Upper, 2),
        [b'p', b'm', ..] => (Element::Lower, 2),
        [b'-' | b'Z', ..] => return offset(text),
        [b'.' | b',', ..] => return fraction(text),
        _ => return None,
    })
}

fn offset(text: &[u8]) -> Option<(Element, usize)> {
    let (first, rest) = text.split_first()?;
    let forms: [(&[u8], bool, usize); 5] = [
        (b"070000", false, 3),
        (b"07:00:00", true, 3),
        (b"0700", false, 2),
        (b"07:00", true, 2),
        (b"07", false, 1),
    ];
    let (form, has_colons, parts) = forms.into_iter().find(|(form, ..)| rest.starts_with(form))?;
    let offset = Offset {
        has_z: *first == b'Z',
        has_colons,
        parts,
    };
    Some((Element::Offset(offset), form.len() + 1))
}

fn fraction(text: &[u8]) -> Option<(Element, usize)> {
    let (separator, rest) = text.split_first()?;
    let digit = rest.first().filter(|digit| matches!(digit, b'0' | b'9'))?;
    let digits = rest.iter().take_while(|other| *other == digit).count();
    if rest.get(digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let fraction = Element::Fraction {
        digits,
        separator: *separator,
        trims: *digit == b'9',
    };
    Some((fraction, digits + 1))
}
