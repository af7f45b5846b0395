//! Writes what is counted elsewhere onto the page of metrics, when somebody asks for it.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The labels of one series, and its value.
pub(super) type Series<'a> = (Vec<(&'static str, &'a str)>, f64);

/// The page while it is written.
pub(super) struct Page<'a>(pub(super) DescriptorEncoder<'a>);

impl Page<'_> {
    /// What goes up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, series: &[Series<'_>]) -> fmt::Result {
        self.write(name, help, series, |value| Box::new(ConstGauge::new(value)))
    }

    /// What only goes up. On the page `_total` follows the name.
    pub(super) fn counter(&mut self, name: &str, help: &str, series: &[Series<'_>]) -> fmt::Result {
        self.write(name, help, series, |value| Box::new(ConstCounter::new(value)))
    }

    fn write(
        &mut self,
        name: &str,
        help: &str,
        series: &[Series<'_>],
        metric: fn(f64) -> Box<dyn EncodeMetric>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, metric(0.0).metric_type())?;
        if let [(labels, value)] = series
            && labels.is_empty()
        {
            return metric(*value).encode(encoder);
        }
        for (labels, value) in series {
            metric(*value).encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }
}

/// A count as the page has it. Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "the format knows no other numbers")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

/// One series without labels.
pub(super) fn single(value: f64) -> [Series<'static>; 1] {
    [(Vec::new(), value)]
}
