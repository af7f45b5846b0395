//! What has to be there before objects are written: their bodies, and the API server's word that the release is still wanted.

use std::sync::Arc;

use crds::ClusterStackRelease;
use kube::ResourceExt;
use operator_kit::object::ObjectKey;
use planning::release::{Attempt, Intent, ReleaseAction, Rendering, Step};
use serde_json::Value;

use super::execute::{Failed, Pass};
use super::intent::Intents;
use super::observe::{lock, render};
use crate::lanes::Unrendered;

/// Why a step cannot begin.
pub(super) enum Unprepared {
    /// The API server does not say whether the release is still wanted, or that it is not.
    Refused(Failed),
    /// The bodies take long to render.
    Awaited,
}

/// The bodies of the objects, or why there are none.
pub(super) type Bodies = Result<Arc<Intents>, String>;

impl Pass<'_> {
    /// Before the first object is written, the API server itself is asked whether the release is still wanted, unless it has just taken a write of it.
    pub(super) async fn prepare(
        &self,
        step: &Step,
        release: &ClusterStackRelease,
        sure: &mut bool,
        bodies: &mut Option<Bodies>,
    ) -> Result<(), Unprepared> {
        let has = |is_meant: fn(&ReleaseAction) -> bool| step.actions.iter().any(is_meant);
        let applies = has(|action| matches!(action, ReleaseAction::Apply { .. }));
        if applies && !*sure {
            self.still_wanted(release).await.map_err(Unprepared::Refused)?;
            *sure = true;
        }
        if bodies.is_none() && (applies || has(|action| matches!(action, ReleaseAction::Check { .. }))) {
            *bodies = self.bodies(release).await?;
        }
        Ok(())
    }

    /// The bodies of the objects; rendered again here, because only their digests are kept. Those are forgotten where that takes long: then the
    /// next look tells how far it is.
    async fn bodies(&self, release: &ClusterStackRelease) -> Result<Option<Bodies>, Unprepared> {
        let Some(files) = self.sight.files.as_ref() else {
            return Ok(None);
        };
        let (namespace, name) = (release.namespace().unwrap_or_default(), release.name_any());
        let rendering = render(self.context, release, files, self.part_of);
        let looking = self
            .context
            .looking
            .at("ClusterStackRelease", &namespace, &name, rendering);
        match looking.await {
            Some(Err(Unrendered::Awaited)) => {
                lock(self.memory).rendering = None;
                Err(Unprepared::Awaited)
            }
            Some(Err(Unrendered::Failed(failed))) => Ok(Some(Err(failed.message))),
            Some(Ok(intents)) => Ok(Some(Ok(Arc::new(intents)))),
            None => Ok(None),
        }
    }

    /// The body to apply and the digest that the plan was made for.
    pub(super) fn intent<'b>(
        &self,
        key: &ObjectKey,
        bodies: Option<&'b Bodies>,
    ) -> Result<(&'b str, &'b Value), Failed> {
        let tried = self.intent_of(key);
        let bodies = match bodies {
            Some(Ok(bodies)) => Some(bodies),
            Some(Err(message)) => return Err(self.remember_failure(key, tried, message)),
            None => None,
        };
        let body = bodies.and_then(|bodies| bodies.bodies.get(key).zip(bodies.planned.get(key)));
        match body {
            Some((body, Intent { digest, .. })) if tried == (Attempt::Intent { digest: digest.clone() }) => {
                Ok((digest, body))
            }
            _ => Err(self.remember_failure(key, tried, "the rendering changed in between")),
        }
    }

    /// To make an object hold what the plan was made for.
    pub(super) fn intent_of(&self, key: &ObjectKey) -> Attempt {
        let planned = match &self.sight.observed.rendering {
            Rendering::Rendered { intents } => intents.get(key),
            _ => None,
        };
        Attempt::Intent {
            digest: planned.map(|planned| planned.digest.clone()).unwrap_or_default(),
        }
    }
}
