//! The hook server: what Cluster API asks at the moments of a cluster's life is answered by `planning`, from what watches have shown. On every replica, whether
//! it leads or not: Cluster API does not know which one does. Nothing is started by a call, and nothing is waited for.

mod answer;
mod apart;
mod minor;
mod notes;
mod sight;

use std::net::Ipv6Addr;
use std::path::PathBuf;

use kube::Client;
use operator_kit::https::{Expiries, ServerOptions, follow};
use operator_kit::serving::Serving;
use operator_kit::telemetry::Readiness;
use planning::addon::{Hook, HookAnswer, HookStatus};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::answer::Desk;
use self::apart::ApartError;
use self::minor::Minor;
use self::notes::Notes;
use self::sight::Sight;
use crate::args::{Args, DEFAULT_HOOK_CERT_DIR};
use crate::certificates;
use crate::clusters::ClusterSight;

/// Seconds that separate answers that are usual from those that are slow: a tenth of a second is the goal for 99 of 100.
const SECONDS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// What the hook server counts. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    answers: Family<AnswerLabels, Counter>,
    durations: Family<HookLabel, Histogram, fn() -> Histogram>,
}

/// One series of the counter of answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    hook: &'static str,
    answer: &'static str,
}

/// One series of the durations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabel {
    hook: &'static str,
}

impl Tally {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let tally = Self {
            answers: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
        };
        registry.register(
            "stackwright_hook_answers",
            "Calls of lifecycle hooks, by hook and answer",
            tally.answers.clone(),
        );
        registry.register(
            "stackwright_hook_duration_seconds",
            "From the head of a call of a lifecycle hook to its answer",
            tally.durations.clone(),
        );
        tally
    }

    fn count(&self, hook: Hook, answer: &HookAnswer, begun: Instant) {
        let hook = hook.name();
        let answer = match answer {
            HookAnswer {
                status: HookStatus::Failure,
                ..
            } => "failure",
            HookAnswer {
                retry_after_seconds: 0, ..
            } => "go-on",
            HookAnswer { .. } => "hold",
        };
        self.answers.get_or_create(&AnswerLabels { hook, answer }).inc();
        let took = begun.elapsed().as_secs_f64();
        self.durations.get_or_create(&HookLabel { hook }).observe(took);
    }
}

/// The folder of the certificate: the one that was named, else the usual one if it is there; `None` where hooks are not to be answered.
pub(crate) async fn directory(args: &Args) -> Option<PathBuf> {
    if !args.cluster_addons {
        return None;
    }
    certificates::directory("hooks", args.hooks.hook_cert_dir.as_deref(), DEFAULT_HOOK_CERT_DIR).await
}

/// What the hook server is told by others, and tells them.
pub(crate) struct Surroundings<'a> {
    /// Reads and writes without having to wait behind the operator's work.
    pub(crate) client: Client,
    pub(crate) sight: &'a ClusterSight,
    pub(crate) readiness: &'a Readiness,
    pub(crate) expiries: &'a Expiries,
    pub(crate) tally: Tally,
}

/// Begins to serve on `--hook-port`, until `stop`.
pub(crate) async fn serve(
    args: &Args,
    directory: PathBuf,
    surroundings: Surroundings<'_>,
    stop: CancellationToken,
) -> Result<Serving, ApartError> {
    let Surroundings {
        client,
        sight,
        readiness,
        expiries,
        tally,
    } = surroundings;
    let desk = Desk {
        minor: Minor::new(args.hooks.hook_set.chosen(), client.clone()),
        notes: Notes::new(client.clone(), &stop),
        sight: Sight::start(&client, sight, &args.scope.namespace, readiness, &stop),
        tally,
    };
    let gate = readiness.gate("certificate of the hooks");
    let options = ServerOptions {
        address: (Ipv6Addr::UNSPECIFIED, args.hooks.hook_port).into(),
        certificates: follow("hooks", directory, gate, expiries, stop.clone()),
    };
    apart::serve(options, answer::router(desk), stop).await
}
