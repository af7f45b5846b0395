//! Keeps apart what would come at the same moment: images of one cloud that failed together are not tried again together. Reads neither clock nor chance.

use std::time::Duration;

use crate::digest::digest_of_everything;

/// Between nothing and `most`, to the millisecond. It follows from the image's key and from how often it is asked for, so that the same is decided of the
/// same, and two images that came together once do not always.
pub(super) fn spread(key: &str, count: u32, most: Duration) -> Duration {
    let digest = digest_of_everything(&(key, count));
    let digits = digest.rsplit(':').next().and_then(|hex| hex.get(..8));
    let part = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    let millis = u128::from(most) * u128::from(part.unwrap_or_default()) / u128::from(u32::MAX);
    Duration::from_millis(u64::try_from(millis).unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_at_once_is_spread_over_the_whole_time() {
        let most = Duration::from_mins(2);
        let all: Vec<Duration> = (0..200_u32)
            .map(|image| spread(&format!("image {image}"), 1, most))
            .collect();
        assert_eq!(spread("image 7", 1, most), all[7]);
        assert!(all.iter().all(|one| *one <= most), "{all:?}");
        for tenth in 0..10_u32 {
            let (from, to) = (most * tenth / 10, most * (tenth + 1) / 10);
            assert!(
                all.iter().any(|one| (from..=to).contains(one)),
                "nothing from {from:?} to {to:?}"
            );
        }
        assert_eq!(spread("image 7", 1, Duration::ZERO), Duration::ZERO);
    }
}
