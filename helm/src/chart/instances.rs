//! The charts of one render: which is below which, under which name, and what they share.
//!
//! Helm links charts by pointers, and a chart under an alias is a shallow copy. So one chart may be below several others, and several may
//! hold the same declarations: what is decided for one is seen by all. Decides no dependencies.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use super::metadata::{Dependency, Metadata};
use super::{File, Loaded};
use crate::bounds::{BoundError, hold, note_work};
use crate::profile::{BelowAlias, Profile};
use crate::schema::Schema;
use crate::value::{Map, Value};
use crate::yaml::Node;

/// All charts of one render, by number, those too that take no part in it any more.
pub(crate) struct Instances {
    profile: &'static Profile,
    charts: Vec<Linked>,
    described: Vec<Described>,
    declared: Vec<Declared>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ChartId(usize);

#[derive(Clone, Copy)]
struct DescribedId(usize);

#[derive(Clone, Copy)]
pub(super) struct DeclaredId(usize);

impl ChartId {
    pub(super) const ROOT: Self = Self(0);
}

/// A chart among others.
#[derive(Clone)]
struct Linked {
    chart: Arc<Loaded>,
    described: DescribedId,
    /// Whoever took it as a dependency last.
    parent: Option<ChartId>,
    dependencies: Vec<ChartId>,
    /// Default values, once they are asked for or imports are in them. Not changed from then on.
    values: Rc<OnceCell<Map>>,
}

/// What of its metadata is not as loaded.
#[derive(Clone)]
struct Described {
    /// The alias, if it has one.
    name: String,
    /// Nothing without a list of them in `Chart.yaml`.
    declared: Option<Vec<DeclaredId>>,
}

/// What a chart says about one that it needs.
#[derive(Clone)]
pub(super) struct Declared {
    pub(super) dependency: Dependency,
    /// Whether some chart has had the values that it asks for.
    pub(super) is_imported: bool,
}

impl Instances {
    /// The chart and all below it, as loaded.
    pub(crate) fn new(root: &Arc<Loaded>, profile: &'static Profile) -> Self {
        let mut instances = Self {
            profile,
            charts: Vec::new(),
            described: Vec::new(),
            declared: Vec::new(),
        };
        instances.load(root, None);
        instances
    }

    fn load(&mut self, chart: &Arc<Loaded>, parent: Option<ChartId>) -> ChartId {
        let declared = chart.metadata.dependencies.as_ref().map(|declared| {
            let declared = declared.iter().cloned().map(|dependency| Declared {
                dependency,
                is_imported: false,
            });
            declared.map(|declared| self.add_declared(declared)).collect()
        });
        let described = Described {
            name: chart.metadata.name.clone(),
            declared,
        };
        let linked = Linked {
            chart: Arc::clone(chart),
            described: self.add_described(described),
            parent,
            dependencies: Vec::new(),
            values: Rc::default(),
        };
        let id = self.add_chart(linked);
        let below = chart.dependencies.iter();
        self.charts[id.0].dependencies = below.map(|chart| self.load(chart, Some(id))).collect();
        id
    }

    fn add_chart(&mut self, chart: Linked) -> ChartId {
        self.charts.push(chart);
        ChartId(self.charts.len() - 1)
    }

    fn add_described(&mut self, described: Described) -> DescribedId {
        self.described.push(described);
        DescribedId(self.described.len() - 1)
    }

    fn add_declared(&mut self, declared: Declared) -> DeclaredId {
        self.declared.push(declared);
        DeclaredId(self.declared.len() - 1)
    }

    /// A copy of a chart for one who declares it, under the alias that this one gives it.
    pub(super) fn copy(&mut self, original: ChartId, alias: &str) -> Result<ChartId, BoundError> {
        self.at(original).hold()?;
        let mut linked = self.charts[original.0].clone();
        let mut described = self.described[linked.described.0].clone();
        if !alias.is_empty() {
            alias.clone_into(&mut described.name);
        }
        linked.described = self.add_described(described);
        let copy = self.add_chart(linked);
        if self.profile.below_alias == BelowAlias::Copied {
            self.separate(copy);
        }
        Ok(copy)
    }

    /// Gives a copy declarations of its own and copies of the charts just below it.
    fn separate(&mut self, copy: ChartId) {
        let declared = self.declared_by(copy).map(<[_]>::to_vec);
        let declared = declared.map(|ids| {
            let copies = ids.into_iter().map(|id| self.add_declared(self.declared[id.0].clone()));
            copies.collect()
        });
        self.described[self.charts[copy.0].described.0].declared = declared;
        let below = self.dependencies(copy).to_vec().into_iter();
        let below = below.map(|id| self.add_chart(self.charts[id.0].clone())).collect();
        self.set_dependencies(copy, below);
    }

    pub(super) fn at(&self, id: ChartId) -> Instance<'_> {
        Instance { all: self, id }
    }

    pub(crate) fn root(&self) -> Instance<'_> {
        self.at(ChartId::ROOT)
    }

    pub(super) fn dependencies(&self, id: ChartId) -> &[ChartId] {
        &self.charts[id.0].dependencies
    }

    /// Puts charts below another one, which is their parent from then on.
    pub(super) fn set_dependencies(&mut self, parent: ChartId, charts: Vec<ChartId>) {
        for chart in &charts {
            self.charts[chart.0].parent = Some(parent);
        }
        self.charts[parent.0].dependencies = charts;
    }

    pub(super) fn set_values(&mut self, id: ChartId, values: Map) {
        self.charts[id.0].values = Rc::new(values.into());
    }

    /// What a chart declares, if it has a list of that.
    pub(super) fn declared_by(&self, id: ChartId) -> Option<&[DeclaredId]> {
        self.described[self.charts[id.0].described.0].declared.as_deref()
    }

    /// Leaves some of what a chart declares. Where nothing is left, there is no list either.
    pub(super) fn set_declared_by(&mut self, id: ChartId, declared: Vec<DeclaredId>) {
        let described = &mut self.described[self.charts[id.0].described.0];
        described.declared = (!declared.is_empty()).then_some(declared);
    }

    pub(super) fn declared(&self, id: DeclaredId) -> &Dependency {
        &self.declared[id.0].dependency
    }

    pub(super) fn declared_mut(&mut self, id: DeclaredId) -> &mut Declared {
        &mut self.declared[id.0]
    }
}

/// A chart as one render uses it.
#[derive(Clone, Copy)]
pub(crate) struct Instance<'a> {
    all: &'a Instances,
    id: ChartId,
}

impl<'a> Instance<'a> {
    fn linked(self) -> &'a Linked {
        &self.all.charts[self.id.0]
    }

    fn described(self) -> &'a Described {
        &self.all.described[self.linked().described.0]
    }

    pub(crate) fn profile(self) -> &'static Profile {
        self.all.profile
    }

    /// The alias, if it has one.
    pub(crate) fn name(self) -> &'a str {
        &self.described().name
    }

    pub(super) fn version(self) -> &'a str {
        &self.linked().chart.metadata.version
    }

    pub(crate) fn is_library(self) -> bool {
        self.linked().chart.metadata.is_library()
    }

    pub(crate) fn is_root(self) -> bool {
        self.linked().parent.is_none()
    }

    pub(crate) fn dependencies(self) -> impl Iterator<Item = Self> + 'a {
        let ids = self.linked().dependencies.iter();
        ids.map(move |&id| Self { all: self.all, id })
    }

    /// What `Chart.yaml` says, with the alias as name and with what has become of the dependencies.
    pub(crate) fn metadata(self) -> Cow<'a, Metadata> {
        let Described { name, declared, .. } = self.described();
        let loaded = &*self.linked().chart.metadata;
        if loaded.dependencies.is_none() && *name == loaded.name {
            return Cow::Borrowed(loaded);
        }
        let mut metadata = loaded.clone();
        metadata.name.clone_from(name);
        metadata.dependencies = declared.as_ref().map(|ids| {
            let declared = ids.iter().map(|&id| self.all.declared(id).clone());
            declared.collect()
        });
        Cow::Owned(metadata)
    }

    /// Where its files are: from the root chart on, by names.
    pub(crate) fn path(self) -> String {
        match self.linked().parent {
            Some(parent) => format!("{}/charts/{}", self.all.at(parent).path(), self.name()),
            None => self.name().to_owned(),
        }
    }

    /// The default values, to be copied where they are used.
    pub(crate) fn default_values(self) -> &'a Map {
        let Linked { chart, values, .. } = self.linked();
        values.get_or_init(
            || match chart.values.read_as(self.all.profile.values_files).map(Node::to_value) {
                Ok(Value::Map(values)) => values,
                _ => Map::new(),
            },
        )
    }

    pub(crate) fn templates(self) -> &'a [File] {
        &self.linked().chart.templates
    }

    pub(crate) fn files(self) -> &'a Arc<[File]> {
        &self.linked().chart.files
    }

    pub(crate) fn schema(self) -> Option<&'a Schema> {
        self.linked().chart.schema.as_ref()
    }

    /// Holds what a render takes for it and all charts below it, as often as they are there.
    fn hold(self) -> Result<(), BoundError> {
        note_work(1);
        hold(self.linked().chart.memory)?;
        self.dependencies().try_for_each(Self::hold)
    }
}
