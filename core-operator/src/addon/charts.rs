//! How the add-ons of one cluster become intents: the release of its class, the values that its Cluster gives the charts, what the charts drew at random or
//! looked up before, and the objects that come of all that. Decides what is made again, and nothing about objects.
//!
//! A driver does it so:
//!
//! 1. It opens the release of the class, and [`AddonCharts::usable`] tells what is in it.
//! 2. It asks [`ChartWork::look`] with what it remembers of the cluster in [`ChartMemory`], and makes its plan of what it is told.
//! 3. Where the plan says that the memo has to be recorded, [`ChartMemory::record`] does it, before anything is made of it.
//! 4. Where bodies are needed, [`ChartWork::bodies`] renders them again.

mod bundle;
mod evaluation;
mod given;
mod hidden;
mod lookups;
mod memo;
mod one;
mod roots;
mod values;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::cluster_addon::{AddonMemo, ClusterAddon};
use crds::policy::HelmProfile;
use futures::channel::mpsc::UnboundedSender;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use planning::addon::Values;
use planning::next::Next;
use planning::objects::{RenderAttempts, Rendering};
use release::Admitted;
use rendering::ChartValues;
use rendering::answers::Asked;

pub(crate) use self::bundle::{Bundle, Unusable, Usable, not_ready};
use self::bundle::{Bundles, pinned};
use self::evaluation::{Evaluations, ValuesSource};
pub(crate) use self::hidden::Hidden;
use self::memo::Memo;
pub(crate) use self::memo::MemoError;
use self::one::OneChart;
use self::values::{Due, Evaluated, Unmade, ValuesMemory};
pub(crate) use self::values::{GivenMarks, Occasion};
use crate::charts::Charts;
use crate::lanes::Unrendered;
use crate::objects::{Intents, Place, Scopes};
use crate::sources::Opened;

/// What all add-ons share.
pub(crate) struct AddonCharts {
    bundles: Bundles,
    evaluations: Evaluations,
}

/// What is remembered of the charts of one cluster. All of it can be lost.
#[derive(Default)]
pub(crate) struct ChartMemory {
    values: ValuesMemory,
    memo: Memo,
    /// When and how often in a row the memo could not be read, and what was said.
    unread: Option<(RenderAttempts, String)>,
    charts: BTreeMap<String, OneChart>,
}

/// What one pass over the charts of a cluster is about.
#[derive(Clone, Copy)]
pub(crate) struct ChartWork<'a> {
    pub(crate) shared: &'a AddonCharts,
    pub(crate) charts: &'a Charts,
    /// Where Clusters are.
    pub(crate) management: &'a Place,
    /// Where the objects are, if it can be reached. Without it charts are rendered too, so that nothing is left to do when it can.
    pub(crate) workload: Option<&'a Place>,
    pub(crate) addon: &'a ClusterAddon,
    /// The mark of its objects.
    pub(crate) part_of: &'a str,
    /// Name of the Cluster.
    pub(crate) cluster: &'a str,
    pub(crate) files: &'a Admitted,
    pub(crate) bundle: &'a Arc<Bundle>,
    pub(crate) profile: HelmProfile,
    pub(crate) now: Timestamp,
}

/// What a look at the charts has found.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) values: Values,
    /// By folder: every chart of the release, once there are values.
    pub(crate) charts: BTreeMap<String, Rendering>,
    /// The charts that are made with the values of before, and why others cannot be made.
    pub(crate) held: BTreeMap<String, String>,
    /// What the Secret holds, and what it has to hold; nothing while nobody has read it.
    pub(crate) memo: Option<(Option<AddonMemo>, Option<AddonMemo>)>,
    /// Whether the objects of kinds that the charts bring have namespaces.
    pub(crate) brought: Scopes,
    /// When time alone makes a difference, besides what the renderings say.
    pub(crate) next: Next,
    /// What is otherwise than the release asks for, in words.
    pub(crate) note: Option<String>,
    /// What nobody may read of what the charts were made with, whoever repeats it.
    pub(crate) hidden: Hidden,
    /// Whether a file of the release is not what it was when it was verified.
    pub(crate) unreadable: bool,
}

/// By chart, in words that may be told.
fn told(words: &BTreeMap<String, String>, hidden: &Hidden) -> BTreeMap<String, String> {
    let words = words.iter();
    words
        .map(|(folder, words)| (folder.clone(), hidden.without(words)))
        .collect()
}

impl AddonCharts {
    /// Wakes add-ons through this queue.
    pub(crate) fn new(woken: UnboundedSender<ObjectRef<ClusterAddon>>) -> Self {
        Self {
            bundles: Bundles::default(),
            evaluations: Evaluations::new(woken),
        }
    }

    /// The add-ons of a release, as far as its bytes are those that it is pinned to. Equal releases are read once, wherever they come from.
    pub(crate) async fn usable(
        &self,
        charts: &Charts,
        release: &ClusterStackRelease,
        opened: Opened,
    ) -> Result<Usable, Unusable> {
        let files = pinned(release, opened)?;
        let bundle = self.bundles.of(charts, &files).await?;
        Ok(Usable { files, bundle })
    }

    /// A ClusterAddon is gone.
    pub(crate) fn forget(&self, charts: &Charts, addon: &ObjectRef<ClusterAddon>) {
        self.evaluations.forget(addon);
        charts.forget_addon(addon);
    }
}

impl ChartMemory {
    /// Writes what the charts drew into its Secret. Nothing may be made of it before.
    pub(crate) async fn record(&mut self, management: &Place, addon: &ClusterAddon) -> Result<(), MemoError> {
        self.memo.write(&management.client, addon).await
    }

    /// The target is reached: what none of the charts that were rendered for it asks for goes with the next write.
    pub(crate) fn settle(&mut self, bundle: &Bundle) {
        let asked: BTreeMap<&str, BTreeSet<&Asked>> = self
            .charts
            .iter()
            .filter_map(|(folder, chart)| Some((folder.as_str(), chart.asked()?)))
            .collect();
        self.memo.keep(|folder| bundle.charts.contains_key(folder), &asked);
    }

    /// Somebody asks for a look now: what failed is tried again, and the memo is read again.
    pub(crate) fn try_again(&mut self) {
        self.values.try_again();
        self.memo.doubt();
        self.unread = None;
        for chart in self.charts.values_mut() {
            chart.try_again();
        }
    }
}

impl ChartWork<'_> {
    /// Looks at the charts for this occasion: makes values where they may be others, and renders what they make others.
    pub(crate) async fn look(&self, memory: &mut ChartMemory, occasion: &Occasion) -> Sight {
        let mut sight = Sight {
            values: self.values(&mut memory.values, occasion).await,
            charts: BTreeMap::new(),
            held: BTreeMap::new(),
            memo: None,
            brought: Scopes::new(),
            next: memory.values.next(occasion, self.now),
            note: None,
            hidden: Hidden::default(),
            unreadable: false,
        };
        let is_known = matches!(sight.values, Values::Known { .. });
        let Some(evaluated) = memory.values.usable(self.now).filter(|_| is_known).cloned() else {
            return sight;
        };
        sight.note.clone_from(&evaluated.note);
        sight.hidden.clone_from(&evaluated.hidden);
        sight.held = told(&evaluated.held, &sight.hidden);
        for (folder, message) in told(&evaluated.failed, &sight.hidden) {
            let transient = None;
            sight.charts.insert(folder, Rendering::Failed { message, transient });
        }
        if let Err(rendering) = self.read_memo(memory).await {
            let charts = evaluated.charts.keys();
            let charts = charts.map(|folder| (folder.clone(), rendering.clone()));
            sight.charts.extend(charts);
            return sight;
        }
        let is_of_release =
            |folder: &str| evaluated.charts.contains_key(folder) || evaluated.failed.contains_key(folder);
        memory.charts.retain(|folder, _| is_of_release(folder));
        for (folder, values) in &evaluated.charts {
            let chart = memory.charts.entry(folder.clone()).or_default();
            let rendering = self
                .rendering(folder, values, chart, &mut memory.memo, &mut sight)
                .await;
            sight.charts.insert(folder.clone(), rendering);
        }
        sight.memo = Some((memory.memo.stored(), memory.memo.drawn()));
        // API servers and conditions repeat it as well.
        let looked_up = memory.charts.values().map(OneChart::hidden);
        let hidden = sight.hidden.with(memory.memo.hidden());
        sight.hidden = looked_up.fold(hidden, |hidden, other| hidden.with(other));
        sight
    }

    /// The objects of a chart with their bodies, of what the last look has told.
    pub(crate) async fn bodies(&self, memory: &mut ChartMemory, folder: &str) -> Result<Intents, Unrendered> {
        let made = memory.values.usable(self.now);
        let values = made.and_then(|made| Some((made.charts.get(folder).cloned()?, made.hidden.clone())));
        match (values, memory.charts.get_mut(folder)) {
            (Some((values, hidden)), Some(chart)) => {
                let bodies = self.bodies_of(folder, &values, chart, &mut memory.memo).await;
                let hidden = hidden.with(memory.memo.hidden()).with(chart.hidden());
                bodies.map_err(|unrendered| hidden.unrendered(unrendered))
            }
            _ => Err(Unrendered::Awaited),
        }
    }

    async fn values(&self, memory: &mut ValuesMemory, occasion: &Occasion) -> Values {
        let Due::Now { holds } = memory.due(occasion, self.now) else {
            return memory.seen(self.now);
        };
        match self.evaluated(occasion).await {
            Some(outcome) => {
                memory.made(occasion.clone(), outcome, self.now);
                memory.seen(self.now)
            }
            None if holds => memory.seen(self.now),
            None => Values::Awaited,
        }
    }

    /// Makes the values; `None` where it takes long.
    async fn evaluated(&self, occasion: &Occasion) -> Option<Result<Arc<Evaluated>, Unmade>> {
        let source = ValuesSource {
            renderer: self.charts.renderer(),
            management: self.management.clone(),
            namespace: self.addon.namespace().unwrap_or_default(),
            cluster: self.cluster.to_owned(),
            bundle: Arc::clone(self.bundle),
            profile: self.profile,
        };
        let addon = ObjectRef::from_obj(self.addon);
        self.shared.evaluations.of(&addon, occasion, source).await
    }

    /// Reads the memo, or says of all charts why they cannot be rendered: without it, what they draw would be drawn anew.
    async fn read_memo(&self, memory: &mut ChartMemory) -> Result<(), Rendering> {
        if let Some((attempts, message)) = &memory.unread
            && attempts.retry_at(self.now).is_some()
        {
            return Err(Rendering::Failed {
                message: message.clone(),
                transient: Some(*attempts),
            });
        }
        let read = memory.memo.read(&self.management.client, self.addon, self.now).await;
        let Err(error) = read else {
            memory.unread = None;
            return Ok(());
        };
        let before = memory.unread.as_ref().map_or(0, |(attempts, _)| attempts.attempts);
        let attempts = RenderAttempts {
            attempts: before.saturating_add(1),
            at: self.now,
        };
        let message = error.to_string();
        memory.unread = Some((attempts, message.clone()));
        Err(Rendering::Failed {
            message,
            transient: Some(attempts),
        })
    }

    async fn rendering(
        &self,
        folder: &str,
        values: &Arc<ChartValues>,
        chart: &mut OneChart,
        memo: &mut Memo,
        sight: &mut Sight,
    ) -> Rendering {
        let seen = self.see(folder, values, chart, memo).await;
        sight.brought.extend(seen.brought);
        sight.unreadable |= seen.unreadable;
        // What was remembered of the chart as well as what it has drawn just now.
        let hidden = sight.hidden.with(memo.hidden()).with(chart.hidden());
        hidden.rendering(seen.rendering)
    }
}
