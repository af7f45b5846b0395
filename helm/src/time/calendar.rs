//! The Gregorian calendar without zones: from days to dates and back.

/// The names of the months.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The names of the days of a week.
pub(crate) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const DAYS_PER_ERA: i128 = 146_097;
/// Days from the first of March of the year 0 to the first day of the year 1.
const FIRST_DAY: i128 = 306;

/// A day of the calendar. Months and days count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Date {
    /// The date so many days after the first day of the year 1.
    pub(super) fn of_days(days: i64) -> Self {
        let days = i128::from(days) + FIRST_DAY;
        let (era, day) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
        let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        // Years begin in March here, so that the leap day is their last.
        let month = (5 * day + 2) / 153;
        let is_next = month >= 10;
        Self {
            year: narrow(year + era * 400 + i128::from(is_next)),
            month: narrow(if is_next { month - 9 } else { month + 3 }),
            day: narrow(day - (153 * month + 2) / 5 + 1),
        }
    }

    /// Days since the first day of the year 1. The day may lie outside of its month, the month may not.
    pub(super) fn days(year: i128, month: i128, day: i128) -> i128 {
        let year = if month <= 2 { year - 1 } else { year };
        let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
        let month = (month + 9) % 12;
        era * DAYS_PER_ERA + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - FIRST_DAY
    }

    /// The day of the year, from 1.
    pub(super) fn day_of_year(self) -> i64 {
        (1..self.month)
            .map(|month| days_in_month(self.year, month))
            .sum::<i64>()
            + self.day
    }
}

pub(super) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What does not fit wraps, as in Go.
#[expect(clippy::cast_possible_truncation, reason = "wrapping is Go's behaviour")]
pub(super) const fn narrow(number: i128) -> i64 {
    number as i64
}
