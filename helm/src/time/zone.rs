//! `time.Location`: where a time is told. The local zone is UTC; named zones come from the database that is built in.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A place with its clocks.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    Utc,
    /// The zone of whoever renders: UTC, but with a name of its own.
    Local,
    /// A zone of which nothing is known: UTC, but without a name of its own.
    Unknown,
    /// Always the same offset, under a name that may be empty.
    Fixed(Rc<(Vec<u8>, i64)>),
    /// A zone of the database.
    Zone(TimeZone),
}

/// What clocks show somewhere at some time.
pub(super) struct Clock {
    /// The abbreviation of the zone, empty where it has none.
    pub(super) name: Vec<u8>,
    /// Seconds east of UTC.
    pub(super) offset: i64,
    pub(super) is_summer: bool,
}

impl Location {
    /// A place with an offset of its own.
    pub(crate) fn fixed(name: &[u8], offset: i64) -> Self {
        Self::Fixed(Rc::new((name.to_vec(), offset)))
    }

    /// The place of a name; nothing when the database does not have it. Names are case-sensitive.
    pub(crate) fn by_name(name: &[u8]) -> Option<Self> {
        match name {
            b"" | b"UTC" => return Some(Self::Utc),
            b"Local" => return Some(Self::Local),
            _ => {}
        }
        let name = str::from_utf8(name).ok()?;
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        (zone.iana_name() == Some(name)).then_some(Self::Zone(zone))
    }

    /// What `String()` gives.
    pub(crate) fn name(&self) -> Vec<u8> {
        match self {
            Self::Utc => b"UTC".to_vec(),
            Self::Local => b"Local".to_vec(),
            Self::Unknown => Vec::new(),
            Self::Fixed(fixed) => fixed.0.clone(),
            Self::Zone(zone) => zone.iana_name().unwrap_or_default().as_bytes().to_vec(),
        }
    }

    /// The clock so many seconds after 1970.
    pub(super) fn clock(&self, unix: i64) -> Clock {
        match self {
            Self::Utc | Self::Local | Self::Unknown => Clock {
                name: b"UTC".to_vec(),
                offset: 0,
                is_summer: false,
            },
            Self::Fixed(fixed) => Clock {
                name: fixed.0.clone(),
                offset: fixed.1,
                is_summer: false,
            },
            Self::Zone(zone) => {
                let limits = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
                let within = unix.clamp(*limits.start(), *limits.end());
                let info = zone.to_offset_info(Timestamp::from_second(within).unwrap_or_default());
                Clock {
                    name: info.abbreviation().as_bytes().to_vec(),
                    offset: i64::from(info.offset().seconds()),
                    is_summer: info.dst().is_dst(),
                }
            }
        }
    }

    /// Whether both are the same location to Go, which compares pointers: zones made of the same numbers are two.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Utc, Self::Utc) | (Self::Local, Self::Local) => true,
            (Self::Fixed(first), Self::Fixed(second)) => {
                Rc::ptr_eq(first, second) || (first == second && is_shared(first))
            }
            (Self::Zone(first), Self::Zone(second)) => first == second,
            _ => false,
        }
    }

    /// Whether both are made of the same.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(first), Self::Fixed(second)) => first == second,
            (Self::Unknown, Self::Unknown) => true,
            (first, second) => first.is_same(second),
        }
    }
}

/// Go keeps one location for each whole hour without a name, and TOML one for each kind of time without a zone.
fn is_shared((name, offset): &(Vec<u8>, i64)) -> bool {
    name.ends_with(b"-local") || name.is_empty() && offset % 3600 == 0 && (-12 * 3600..=14 * 3600).contains(offset)
}
