//! Whether somebody's operator of a provider keeps the contract with the core operator: asked from outside, on a cluster on which it runs.
//!
//! A test does what the core operator does to the release objects of the kind (makes one before it has an owner, gives it owners, deletes it), and holds every
//! version of them that the API server shows against the [rows](rows::Row) of `docs/contract/provider.md`. It knows nothing of the operator, reads neither
//! its log nor its cloud, and takes everything away again that it made.

mod course;
mod ground;
mod history;
mod judgement;
mod kinds;
pub mod rows;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use kube::{Client, api::ApiResource};
use serde_json::Value;
use tokio::sync::OnceCell;

pub use self::rows::{Level, Outcome, Report, Row};
use self::{course::Course, ground::Ground, kinds::Kinds};

/// Field manager of everything that a test does, and the beginning of the names that it makes up.
const US: &str = "conformance-provider";
/// How long the operator under test may keep objects at the end, before they are taken from it.
const CLEAR_DEADLINE: Duration = Duration::from_mins(1);

/// What is tested, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of the release objects.
    pub kind: String,
    /// A release that the operator can get.
    pub release: String,
    /// A second one of the same stack.
    pub other_release: Option<String>,
    /// A namespace that is there; `None`: one is made.
    pub namespace: Option<String>,
    /// The spec of the release objects.
    pub spec: Value,
    /// A command for `sh` that makes an image unusable.
    pub breaking: Option<String>,
    /// For that command.
    pub kubeconfig: PathBuf,
    /// Longest time until a release is ready, or gone.
    pub deadline: Duration,
    /// How long nothing may be written.
    pub rest: Duration,
}

/// A test that may be broken off at any time, and is cleared up after in any case.
pub struct Conformance {
    client: Client,
    plan: Plan,
    ground: Arc<OnceCell<Ground>>,
    image: OnceCell<ApiResource>,
    is_cleared: AtomicBool,
}

impl Conformance {
    /// Makes nothing yet.
    pub fn new(client: Client, plan: Plan) -> Self {
        Self {
            client,
            plan,
            ground: Arc::default(),
            image: OnceCell::new(),
            is_cleared: AtomicBool::new(false),
        }
    }

    /// Tries every row; `step` is told what is done now. The answer has all rows. Whatever comes of it, also when this is dropped,
    /// [`Conformance::clear`] has to follow.
    ///
    /// # Errors
    /// The test itself could not be made: the API server refuses something, or an object of the name is there.
    pub async fn run(&self, step: impl Fn(&str) + Sync) -> Result<Report> {
        let mut report = Report::default();
        step("looks at the kinds");
        let Some(kinds) = Kinds::find(&self.client, &self.plan.kind, &mut report).await? else {
            report.skip_the_rest("there is no kind to make objects of; see M1");
            return Ok(report);
        };
        if let Some(image) = kinds.image.clone() {
            self.image.get_or_init(async || image).await;
        }
        self.enter().await?;
        let ground = self.ground.get().context("the test has no namespace")?;
        let given = (ground.namespace.as_str(), &self.plan.spec);
        kinds.try_template(&self.client, given, &mut report).await;
        Course::begin(&self.plan, ground, &kinds, &step)
            .await?
            .go(&mut report)
            .await?;
        report.skip_the_rest("the course did not come to it");
        Ok(report)
    }

    /// In a task of its own: what is begun is known, also when nobody waits for it any more.
    async fn enter(&self) -> Result<()> {
        let (ground, client) = (Arc::clone(&self.ground), self.client.clone());
        let namespace = self.plan.namespace.clone();
        let entering = tokio::spawn(async move {
            let enter = || Ground::enter(client, namespace.as_deref());
            ground.get_or_try_init(enter).await.map(drop)
        });
        entering.await.context("the beginning ended abnormally")?
    }

    /// Takes everything off the cluster again. The answer names what the operator under test did not let go and what was freed by force: of that something
    /// may be left in its cloud. Once more does nothing.
    ///
    /// # Errors
    /// Something may be left; the error says what.
    pub async fn clear(&self) -> Result<Vec<String>> {
        // Waits for a beginning that is under way.
        let Ok(ground) = self.ground.get_or_try_init(async || Err(())).await else {
            return Ok(Vec::new());
        };
        if self.is_cleared.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let forced = ground
            .clear(self.image.get(), self.plan.deadline.min(CLEAR_DEADLINE))
            .await?;
        self.is_cleared.store(true, Ordering::Relaxed);
        Ok(forced)
    }
}
