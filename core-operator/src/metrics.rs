//! What the process counts of its work. The list for people is in docs/reference/operating.md, and held against a running operator.
//!
//! Labels are of a few words that are known here: never a name, a tag or an address of somebody's.

mod page;
mod supply;
mod work;

use std::time::Duration;

use operator_kit::apply::ApplyError;
use operator_kit::failure::Class;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

pub(crate) use self::supply::Supply;
pub(crate) use self::work::{Outcome, Work};

/// Seconds that separate what is usual from what is slow, for everything that lasts.
const SECONDS: [f64; 10] = [0.001, 0.005, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0, 600.0];

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

/// One series of what comes out in several ways.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// What the drivers count. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) stacks: Work,
    pub(crate) releases: Work,
    pub(crate) addons: Work,
    applies: Family<OutcomeLabels, Counter>,
    apply_seconds: Histogram,
    render_seconds: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let [stacks, releases, addons] = work::register(registry);
        let metrics = Self {
            stacks,
            releases,
            addons,
            applies: Family::default(),
            apply_seconds: seconds(),
            render_seconds: seconds(),
        };
        registry.register(
            "stackwright_applies",
            "Objects of releases that were to be written, by what came of it",
            metrics.applies.clone(),
        );
        registry.register(
            "stackwright_apply_duration_seconds",
            "How long the API server took to write one object of a release",
            metrics.apply_seconds.clone(),
        );
        registry.register(
            "stackwright_render_duration_seconds",
            "How long a rendering took, with the wait for its turn",
            metrics.render_seconds.clone(),
        );
        metrics
    }

    /// The same apply, counted when it has an answer.
    pub(crate) async fn applied<T>(
        &self,
        applying: impl Future<Output = Result<T, ApplyError>>,
    ) -> Result<T, ApplyError> {
        let begun = Instant::now();
        let answer = applying.await;
        let outcome = match &answer {
            Ok(_) => "stored",
            // Whoever asked goes on with what is there.
            Err(ApplyError::AlreadyThere) => return answer,
            Err(ApplyError::Conflict { .. }) => "conflict",
            Err(error) => match error.class() {
                Class::Terminal => "refused",
                Class::Waiting => "waiting",
                Class::Transient => "failed",
            },
        };
        self.applies.get_or_create(&OutcomeLabels { outcome }).inc();
        self.apply_seconds.observe(begun.elapsed().as_secs_f64());
        answer
    }

    /// A chart was rendered, or not.
    pub(crate) fn rendered(&self, took: Duration) {
        self.render_seconds.observe(took.as_secs_f64());
    }
}
