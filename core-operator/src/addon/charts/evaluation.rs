//! Executes the templates of values, which may take seconds, beside the reactor: two clusters at a time, and the namespaces take turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crds::ClusterAddon;
use crds::policy::HelmProfile;
use futures::channel::mpsc::UnboundedSender;
use kube::runtime::reflector::ObjectRef;
use operator_kit::failure::chain;
use operator_kit::turns::Turns;
use planning::addon::are_for_charts;
use rendering::{ErrorClass, Renderer};
use tokio::task::spawn_blocking;

use super::bundle::{Bundle, Template};
use super::given::{self, Given};
use super::hidden::Hidden;
use super::roots::{self, RootObjects};
use super::values::{Evaluated, Occasion, Unmade};
use crate::errands::{Errands, Teller};
use crate::objects::Place;

/// How many clusters have their templates executed at once.
const AT_WORK: usize = 2;

/// How long a look waits for values. Real templates take microseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the values of all charts of a cluster may have together, in bytes of JSON: they are kept for as long as it is there.
pub(super) const MAX_VALUES: usize = 1 << 20;

/// What the values of a cluster are made of, and by whom.
pub(super) struct ValuesSource {
    pub(super) renderer: Arc<Renderer>,
    pub(super) management: Place,
    pub(super) namespace: String,
    pub(super) cluster: String,
    pub(super) bundle: Arc<Bundle>,
    pub(super) profile: HelmProfile,
}

type Outcome = Result<Arc<Evaluated>, Unmade>;

/// Executes the templates of all clusters.
pub(crate) struct Evaluations {
    turns: Arc<Turns>,
    errands: Arc<Errands<ObjectRef<ClusterAddon>, Outcome>>,
}

impl Evaluations {
    /// Wakes through this queue those who did not wait.
    pub(crate) fn new(woken: UnboundedSender<ObjectRef<ClusterAddon>>) -> Self {
        // A closed queue means that the process is about to end.
        let wake = move |addon: &ObjectRef<ClusterAddon>| drop(woken.unbounded_send(addon.clone()));
        Self {
            turns: Arc::new(Turns::new(AT_WORK)),
            errands: Errands::new(is_final, wake),
        }
    }

    /// The values of all charts of a cluster; `None` where it takes long: the add-on is woken when it is over.
    pub(super) async fn of(
        &self,
        addon: &ObjectRef<ClusterAddon>,
        occasion: &Occasion,
        source: ValuesSource,
    ) -> Option<Outcome> {
        // Not what the objects are now: they may have changed again before the values are there.
        let wanted = format!("{} {}", occasion.decided, occasion.happened);
        let (turns, line) = (Arc::clone(&self.turns), source.namespace.clone());
        let work = move |teller: Teller<Outcome>| async move {
            // Told to nobody.
            let unwanted = || Unmade::for_now("nobody wants the values any more");
            let roots = roots::read(
                &source.management,
                (&source.namespace, &source.cluster),
                source.bundle.cluster_api_version,
            );
            let roots = teller.while_wanted(roots).await.ok_or_else(unwanted)?;
            let roots = roots.map_err(|error| Unmade {
                message: chain(&error),
                transient: error.is_transient(),
            })?;
            let given = given::read(&source.management.client, &source.namespace, roots.cluster());
            let given = teller.while_wanted(given).await.ok_or_else(unwanted)?;
            let given = given.map_err(|error| Unmade {
                message: chain(&error),
                transient: error.is_transient(),
            })?;
            // A turn is not for waiting.
            let turn = teller.while_wanted(turns.take(&line)).await;
            let _turn = turn.ok_or_else(unwanted)?;
            let work = move || evaluate(&source, &roots, &given);
            let evaluated = spawn_blocking(work).await;
            evaluated.map_err(|_| Unmade::for_now("the operator ends"))?
        };
        self.errands.ask(addon, &wanted, PATIENCE, work).await
    }

    /// A ClusterAddon is gone, and wants nothing any more.
    pub(crate) fn forget(&self, addon: &ObjectRef<ClusterAddon>) {
        self.errands.abandon(|one| one == addon);
    }
}

/// Whether nothing else would come of the same objects.
fn is_final(outcome: &Outcome) -> bool {
    outcome.as_ref().is_ok_and(|evaluated| !evaluated.may_pass)
}

fn evaluate(source: &ValuesSource, roots: &RootObjects, given: &Given) -> Outcome {
    let are_for = are_for_charts(given.named(), source.bundle.charts.keys());
    are_for.map_err(|error| Unmade::for_good(&error))?;
    // Of one that cannot be read nothing gets into values, and the charts that it is for fail by it.
    let read = given
        .documents()
        .filter_map(|document| document.read(source.profile).ok());
    let hidden = Hidden::of(&read.collect::<Vec<_>>());
    let (mut charts, mut failed, mut may_pass) = (BTreeMap::new(), BTreeMap::new(), false);
    let mut bytes = 0;
    for (chart, template) in &source.bundle.charts {
        let over = match given.of(chart) {
            Ok(over) => over,
            Err(error) => {
                may_pass |= error.is_transient();
                failed.insert(chart.clone(), chain(error));
                continue;
            }
        };
        let template = template.as_ref().map(Template::of);
        let values = source.renderer.values(template, &over, roots.roots(), source.profile);
        let values = match values {
            Ok(values) => values,
            Err(error) if error.class() == ErrorClass::Transient => return Err(Unmade::for_now(&chain(&error))),
            // The others have stages of their own.
            Err(error) => {
                failed.insert(chart.clone(), chain(&error));
                continue;
            }
        };
        bytes += values.values.to_string().len();
        if bytes > MAX_VALUES {
            return Err(Unmade {
                message: format!("the values of the charts have more than {MAX_VALUES} bytes together: shorten them"),
                transient: false,
            });
        }
        charts.insert(chart.clone(), Arc::new(values));
    }
    Ok(Arc::new(Evaluated {
        may_pass,
        ..Evaluated::of(charts, failed, hidden, roots.note.clone())
    }))
}
