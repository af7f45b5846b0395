//! Whether something grows: the slope of a line through samples, and how far it can be from zero by chance. Pure.

/// Fewer samples say nothing.
const FEWEST: usize = 8;
/// By so many standard errors a slope differs from zero by chance in about one of a thousand series.
const ERRORS: f64 = 3.0;
/// What comes after each other is alike: a series of which nothing else is left is as good as no series.
const MOST_ALIKE: f64 = 0.99;
const SECONDS_IN_AN_HOUR: f64 = 3_600.0;

/// How fast something grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Slope of the line with the least squares.
    pub per_hour: f64,
    /// What may be found where nothing grows. Infinite when the samples are too alike to say.
    pub noise: f64,
}

impl Trend {
    /// Through points `(seconds, value)`, in the order of time. `unit` is the least that counts: what grows by less in all of the time does not
    /// grow. `None` for fewer than eight points, or when no time passes.
    ///
    /// Neighbours are not independent: memory that was high a moment ago still is. So the series counts as a shorter one, by the correlation of
    /// what is left of each point with that of the next (Santer et al. 2000, "Statistical significance of trends", equation 6).
    pub fn of(points: &[(f64, f64)], unit: f64) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let hours = (last.0 - first.0) / SECONDS_IN_AN_HOUR;
        if points.len() < FEWEST || hours <= 0.0 {
            return None;
        }
        let count = f64::from(u32::try_from(points.len()).ok()?);
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (time, value) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - time).powi(2)).sum();
        let common: f64 = points.iter().map(|point| (point.0 - time) * (point.1 - value)).sum();
        let slope = common / spread;
        let left = points.iter().map(|point| point.1 - value - slope * (point.0 - time));
        let left: Vec<f64> = left.collect();
        let squares: f64 = left.iter().map(|left| left * left).sum();
        let neighbours: f64 = left.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let alike = if squares > 0.0 { neighbours / squares } else { 0.0 };
        let alike = alike.clamp(0.0, MOST_ALIKE);
        let independent = count * (1.0 - alike) / (1.0 + alike) - 2.0;
        let error = if squares <= 0.0 {
            0.0
        } else if independent > 0.0 {
            (squares / independent / spread).sqrt()
        } else {
            f64::INFINITY
        };
        Some(Self {
            per_hour: slope * SECONDS_IN_AN_HOUR,
            noise: (ERRORS * error * SECONDS_IN_AN_HOUR).max(unit / hours),
        })
    }

    /// Whether it grows by more than chance explains.
    pub fn grows(&self) -> bool {
        self.per_hour > self.noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point every ten seconds for an hour.
    fn series(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..360)
            .map(|number| f64::from(number) * 10.0)
            .map(|at| (at, value(at)))
            .collect()
    }

    #[test]
    fn what_goes_up_and_down_does_not_grow() {
        let waves = series(|at| 40.0 + 5.0 * (at / 50.0).sin());
        let trend = Trend::of(&waves, 1.0).expect("enough points");
        assert!(!trend.grows(), "{trend:?}");
        let jumps = series(|at| if (at / 10.0) % 7.0 < 1.0 { 48.0 } else { 40.0 });
        let trend = Trend::of(&jumps, 1.0).expect("enough points");
        assert!(!trend.grows() && trend.noise < 5.0, "{trend:?}");
    }

    #[test]
    fn slow_growth_is_seen_through_larger_jumps() {
        let leak = series(|at| 40.0 + 8.0 * at / 3_600.0 + if (at / 10.0) % 7.0 < 1.0 { 8.0 } else { 0.0 });
        let trend = Trend::of(&leak, 1.0).expect("enough points");
        assert!(trend.grows(), "{trend:?}");
        assert!((trend.per_hour - 8.0).abs() < trend.noise, "{trend:?}");
    }

    #[test]
    fn what_shrinks_or_grows_by_less_than_counts_does_not_grow() {
        let shrinks = Trend::of(&series(|at| 40.0 - at / 100.0), 1.0).expect("enough points");
        let barely = Trend::of(&series(|at| 40.0 + at / 7_200.0), 1.0).expect("enough points");
        assert!(!shrinks.grows() && !barely.grows(), "{shrinks:?} {barely:?}");
        let steady = Trend::of(&series(|at| 40.0 + at / 1_800.0), 1.0).expect("enough points");
        assert!(steady.grows(), "{steady:?}");
    }

    #[test]
    fn few_points_say_nothing() {
        assert_eq!(Trend::of(&series(|at| at)[..7], 1.0), None);
        assert_eq!(Trend::of(&[(5.0, 1.0); 20], 1.0), None);
    }
}
