//! One chart of the add-ons of one cluster: rendered when its values, its bytes, what it drew or what it looks up are others than they were.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use operator_kit::failure::chain;
use planning::digest::digest_of_everything;
use planning::objects::{RenderAttempts, Rendering};
use rendering::answers::{Answers, Asked, Lookup, Seeded};
use rendering::{ChartValues, Rendered};

use super::ChartWork;
use super::hidden::Hidden;
use super::lookups::Lookups;
use super::memo::Memo;
use crate::charts::{ADDON_NAMESPACE, AddonChart, Plate};
use crate::lanes::{Failed, Unrendered};
use crate::objects::{Intents, Marks, Place, Remembered, Scopes};

/// How often a chart is rendered with what it looked up before, which may make it look up more.
const ROUNDS: usize = 4;

/// What is remembered of a chart.
#[derive(Default)]
pub(super) struct OneChart {
    /// The last rendering: what it was made from, and what its templates asked.
    made_from: Option<String>,
    /// Digest of the objects of that.
    digest: Option<String>,
    asked: Vec<Asked>,
    /// What the objects are in the cluster, once it could be reached.
    intents: Option<Remembered>,
    /// The last rendering that failed: what it was made from, what was said, and how often it was tried, if the reason may pass.
    unrendered: Option<(String, String, Option<RenderAttempts>)>,
    lookups: Lookups,
    /// Whether it is being rendered. What it looked up stays the same meanwhile: whoever wants something else each time never has his turn.
    is_awaited: bool,
}

/// What a look at a chart has found.
pub(super) struct Seen {
    pub(super) rendering: Rendering,
    pub(super) brought: Scopes,
    pub(super) unreadable: bool,
}

impl Seen {
    fn of(rendering: Rendering) -> Self {
        Self {
            rendering,
            brought: Scopes::new(),
            unreadable: false,
        }
    }
}

/// A rendering that is known to be the last, and what it was made from.
struct Done {
    made_from: String,
    rendered: Arc<Rendered>,
}

impl OneChart {
    /// What its templates asked of the memo, if it was rendered.
    pub(super) fn asked(&self) -> Option<BTreeSet<&Asked>> {
        self.made_from.is_some().then(|| self.asked.iter().collect())
    }

    /// What nobody may read of what it looked up, whoever repeats it.
    pub(super) fn hidden(&self) -> &Hidden {
        self.lookups.hidden()
    }

    pub(super) fn try_again(&mut self) {
        self.unrendered = None;
        self.lookups.changes.forget();
    }

    fn failed(&mut self, made_from: String, failed: &Failed, now: Timestamp) -> Seen {
        let before = self.unrendered.take().filter(|(from, ..)| *from == made_from);
        let before = before.and_then(|(.., attempts)| attempts);
        let transient = failed.transient.then(|| RenderAttempts {
            attempts: before.map_or(0, |before| before.attempts).saturating_add(1),
            at: now,
        });
        let message = failed.message.clone();
        self.unrendered = Some((made_from, message.clone(), transient));
        Seen {
            unreadable: failed.unreadable,
            ..Seen::of(Rendering::Failed { message, transient })
        }
    }

    /// A rendering is there. Where nothing but what was found in the cluster has made other objects of it, that is noted.
    fn rendered(&mut self, done: &Done, is_by_lookup: bool, now: Timestamp) {
        let Done { made_from, rendered } = done;
        let is_other = self.digest.as_ref().is_some_and(|digest| *digest != rendered.digest);
        if is_other && is_by_lookup {
            self.lookups.changes.note(now);
        }
        self.made_from = Some(made_from.clone());
        self.digest = Some(rendered.digest.clone());
        self.asked.clone_from(&rendered.questions.memo);
        self.unrendered = None;
    }
}

impl ChartWork<'_> {
    /// What comes of a chart; rendered only where that is not known.
    pub(super) async fn see(
        &self,
        folder: &str,
        values: &Arc<ChartValues>,
        chart: &mut OneChart,
        memo: &mut Memo,
    ) -> Seen {
        let before = self.made_from(folder, values, chart, memo);
        if let Err(failed) = self.refresh(chart).await {
            return chart.failed(before, &failed, self.now);
        }
        let made_from = self.made_from(folder, values, chart, memo);
        if let Some(seen) = self.known(&made_from, chart).await {
            return seen;
        }
        let is_by_lookup = before != made_from && chart.made_from.as_ref() == Some(&before);
        let rendered = self.render(folder, values, chart, memo).await;
        chart.is_awaited = matches!(rendered, Err(Unrendered::Awaited));
        // With what was looked up meanwhile.
        let made_from = self.made_from(folder, values, chart, memo);
        match rendered {
            Ok(done) => {
                chart.rendered(&done, is_by_lookup, self.now);
                self.intended(folder, chart, done).await
            }
            Err(Unrendered::Awaited) => {
                let failed = chart.unrendered.as_ref().filter(|(from, ..)| *from == made_from);
                let failed = failed.map(|(_, message, _)| message.clone());
                Seen::of(Rendering::Awaited { failed })
            }
            Err(Unrendered::Failed(failed)) => chart.failed(made_from, &failed, self.now),
        }
    }

    /// Looks again for what the chart looked up, if it is time. While the cluster does not answer, what was found is believed.
    async fn refresh(&self, chart: &mut OneChart) -> Result<(), Failed> {
        let is_due = !chart.is_awaited && chart.lookups.is_due(self.now);
        let Some(place) = self.workload.filter(|_| is_due) else {
            return Ok(());
        };
        match chart.lookups.refresh(place, self.now).await {
            Ok(()) => {
                chart.unrendered = None;
                Ok(())
            }
            Err(error) if error.is_transient() => Ok(()),
            Err(error) => Err(Failed::for_good(chain(&error))),
        }
    }

    /// The bodies of what was told of a chart; none of what it drew and is in no Secret yet.
    pub(super) async fn bodies_of(
        &self,
        folder: &str,
        values: &Arc<ChartValues>,
        chart: &mut OneChart,
        memo: &mut Memo,
    ) -> Result<Intents, Unrendered> {
        let place = self.workload.ok_or(Unrendered::Awaited)?;
        let done = match self.render(folder, values, chart, memo).await {
            Ok(done) => done,
            Err(unrendered) => {
                // The next look tells how far it is.
                chart.intents = None;
                chart.made_from = None;
                chart.is_awaited = matches!(unrendered, Unrendered::Awaited);
                return Err(unrendered);
            }
        };
        if !done.rendered.questions.memo.is_empty() && memo.drawn() != memo.stored() {
            let message = "what the chart drew at random is to be recorded first";
            return Err(Unrendered::Failed(Failed::for_now(message)));
        }
        Ok(self.intents(place, folder, &done.rendered).await)
    }

    /// What is known of a chart that is made from this.
    async fn known(&self, made_from: &str, chart: &OneChart) -> Option<Seen> {
        if let Some((from, message, transient)) = &chart.unrendered
            && from == made_from
            && transient.is_none_or(|attempts| attempts.retry_at(self.now).is_some())
        {
            let (message, transient) = (message.clone(), *transient);
            return Some(Seen::of(Rendering::Failed { message, transient }));
        }
        let Some(place) = self.workload else {
            let is_rendered = chart.made_from.as_deref() == Some(made_from);
            return is_rendered.then(|| Seen::of(Rendering::NotRendered));
        };
        let known = chart.intents.as_ref()?;
        let mut scopes = Scopes::new();
        for kind in &known.unknown {
            scopes.insert(kind.clone(), place.kind(kind).await.scope());
        }
        let holds = known.holds(made_from, |kind| scopes.get(kind).copied().unwrap_or_default());
        holds.then(|| Seen {
            brought: known.brought.clone(),
            ..Seen::of(Rendering::Rendered {
                intents: known.intents.as_ref().clone(),
            })
        })
    }

    /// What is wanted in the cluster of what was rendered.
    async fn intended(&self, folder: &str, chart: &mut OneChart, done: Done) -> Seen {
        let Some(place) = self.workload else {
            return Seen::of(Rendering::NotRendered);
        };
        let intents = self.intents(place, folder, &done.rendered).await;
        chart.intents = Some(intents.remembered(done.made_from));
        Seen {
            brought: intents.brought,
            ..Seen::of(Rendering::Rendered {
                intents: intents.planned,
            })
        }
    }

    async fn intents(&self, place: &Place, folder: &str, rendered: &Rendered) -> Intents {
        let marks = Marks {
            namespace: ADDON_NAMESPACE,
            part_of: self.part_of,
            stage: Some(folder),
        };
        let rows = self.addon.status.as_ref().map(|status| &status.resources[..]);
        let values = rendered.objects.iter().map(|object| &object.value);
        place.intents(values, marks, rows.unwrap_or_default()).await
    }

    /// Everything that the objects of a chart depend on.
    fn made_from(&self, folder: &str, values: &ChartValues, chart: &mut OneChart, memo: &mut Memo) -> String {
        let answers = (memo.digest(folder), chart.lookups.digest());
        let kubernetes = &self.bundle.kubernetes_version;
        let profile = self.profile.to_string();
        digest_of_everything(&(
            self.bundle.identity(folder),
            kubernetes,
            profile,
            &values.digest,
            answers,
        ))
    }

    /// Renders a chart, and answers what it looks up. What it draws is in the memo then, but in no Secret.
    async fn render(
        &self,
        folder: &str,
        values: &Arc<ChartValues>,
        chart: &mut OneChart,
        memo: &mut Memo,
    ) -> Result<Done, Unrendered> {
        let addon = ObjectRef::from_obj(self.addon);
        for _ in 0..ROUNDS {
            let wanted = AddonChart {
                folder: folder.to_owned(),
                is_staged: self.bundle.is_staged(),
                identity: self.made_from(folder, values, chart, memo),
                chart: self.bundle.identity(folder),
                kubernetes_version: self.bundle.kubernetes_version.clone(),
                profile: self.profile,
                values: Arc::clone(values),
                answers: Arc::new(self.answers(folder, chart, memo)?),
            };
            let plate = self.charts.render_addon(&addon, self.files, wanted).await?;
            match &*plate {
                Plate::Rendered(rendered) => {
                    let drawn = memo.draw(folder, &rendered.questions);
                    drawn.map_err(|error| Unrendered::Failed(Failed::for_good(error.to_string())))?;
                    chart.lookups.keep(&rendered.questions.lookups);
                    return Ok(Done {
                        made_from: self.made_from(folder, values, chart, memo),
                        rendered: Arc::clone(rendered),
                    });
                }
                Plate::Needs(needed) => self.look_up(chart, needed).await?,
            }
        }
        let message = format!("the chart looks up other objects each time it is rendered, {ROUNDS} times in a row");
        Err(Unrendered::Failed(Failed::for_good(message)))
    }

    async fn look_up(&self, chart: &mut OneChart, needed: &[Lookup]) -> Result<(), Unrendered> {
        // Whoever works on it is woken when it can be reached.
        let place = self.workload.ok_or(Unrendered::Awaited)?;
        let added = chart.lookups.add(place, needed, self.now).await;
        added.map_err(|error| {
            Unrendered::Failed(Failed {
                message: chain(&error),
                transient: error.is_transient(),
                unreadable: false,
            })
        })
    }

    fn answers(&self, folder: &str, chart: &OneChart, memo: &Memo) -> Result<Answers, Unrendered> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| {
            let message = format!("the system has no randomness for the chart: {error}");
            Unrendered::Failed(Failed::for_now(&message))
        })?;
        let now = Duration::try_from(self.now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
        Ok(Answers {
            memo: memo.of(folder),
            found: chart.lookups.found().clone(),
            new: Seeded::new(seed, now.into()),
        })
    }
}
