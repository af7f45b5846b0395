//! Amounts of bytes, as people read them. Pure.

/// Names of amounts, each 1024 times the one before; below the first there are bytes.
const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// In the largest unit that fits, rounded down to tenths: never more than there is.
pub(crate) fn amount(bytes: u64) -> String {
    let Some(power) = bytes
        .checked_ilog2()
        .map(|log| (log / 10).min(4))
        .filter(|power| *power > 0)
    else {
        return format!("{bytes} B");
    };
    let tenths = u128::from(bytes) * 10 / (1_u128 << (10 * power));
    let unit = UNITS.get(power as usize - 1).copied().unwrap_or_default();
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_unit_that_fits() {
        let told = [0, 1023, 1024, 1_048_576 * 3 / 2, 1 << 50, u64::MAX].map(amount);
        assert_eq!(
            told,
            ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "1024.0 TiB", "16777215.9 TiB"]
        );
    }
}
