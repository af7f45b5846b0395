//! Sizes as Kubernetes writes them, in bytes. Pure.

/// What the letters behind a number mean.
const UNITS: [(&str, u64); 13] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    ("", 1),
];

/// Whole bytes, rounded down; `None` for what is no size of anything, and for what is larger than all disks.
pub(super) fn bytes(quantity: &str) -> Option<u64> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let number = quantity.trim_end_matches(|letter| !is_of_number(letter));
    let unit = &quantity[number.len()..];
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // More places than these are less than a byte of any of them.
    let part = &part[..part.len().min(18)];
    let parts: u128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let places = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let of_part = u64::try_from(u128::from(factor) * parts / places).ok()?;
    whole.checked_mul(factor)?.checked_add(of_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1024", Some(1024)),
            ("64Mi", Some(64 << 20)),
            ("20Gi", Some(20 << 30)),
            ("1.5Gi", Some(3 << 29)),
            ("1.5k", Some(1500)),
            ("2G", Some(2_000_000_000)),
            ("99Ei", None),
            ("much", None),
            ("-1", None),
            ("1e3", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
