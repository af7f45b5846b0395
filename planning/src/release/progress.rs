//! How far a provider is, as a message tells it.

use super::observed::ProviderProgress;

/// How far a provider is: in per cent where it says what there is to do.
pub(super) fn progress_of_provider(progress: &ProviderProgress) -> String {
    let ProviderProgress { done, total, unit } = progress;
    let of_what = if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    };
    match total.filter(|total| *total > 0) {
        None => format!("{done}{of_what} so far"),
        Some(100) if matches!(unit.as_str(), "%" | "percent") => format!("{done} %"),
        Some(total) => {
            let percent = u128::from(*done.min(&total)) * 100 / u128::from(total);
            format!("{percent} % ({done} of {total}{of_what})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_per_cent_where_the_whole_is_known() {
        for (done, total, unit, expected) in [
            (10, Some(100), "%", "10 %"),
            (3, Some(5), "images", "60 % (3 of 5 images)"),
            (1, Some(3), "", "33 % (1 of 3)"),
            (7, None, "images", "7 images so far"),
            (7, Some(0), "", "7 so far"),
            (u64::MAX, Some(1), "bytes", "100 % (18446744073709551615 of 1 bytes)"),
        ] {
            let unit = unit.to_owned();
            assert_eq!(progress_of_provider(&ProviderProgress { done, total, unit }), expected);
        }
    }
}
