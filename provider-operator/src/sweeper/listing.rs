//! The command `orphans`: the images of ours that no object is for, as a list for people, and deleted where that is asked for. Works beside an operator, and
//! needs no Lease: what it deletes nobody works on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use kube::Client;
use planning::image::{OwnedImage, SweepDeed, listed};
use provider_plugin::OwnerId;

use super::survey::{Scope, Sight, Survey};
use super::table::{Row, table};
use crate::args::Args;
use crate::clock::Steady;
use crate::executor::{Bounds, InProcess};
use crate::identity::{Connections, Secrets};
use crate::kinds::Kind;
use crate::owner::known_as;
use crate::progress::Ledgers;

/// What a list comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// For people.
    pub(crate) text: String,
    /// Orphans that are still there.
    pub(crate) orphans: usize,
    /// What could not be found out or done, a sentence each.
    pub(crate) troubles: BTreeSet<String>,
}

/// Lists orphans, and deletes those that may go where `is_deleting`. `now` is the time by which they are old enough.
///
/// # Errors
/// The flags cannot be used together, or not all objects can be listed: then nothing is known to be an orphan, and nothing was deleted.
pub(crate) async fn list(
    args: &Args,
    client: &Client,
    owner: &OwnerId,
    is_deleting: bool,
    now: Timestamp,
) -> anyhow::Result<Left> {
    let registry = args.registry(None).map_err(anyhow::Error::msg)?;
    let connections = Connections::new(registry.clone(), args.clouds.addresses());
    let ledgers = Ledgers::new(client.clone(), String::new());
    let asking = InProcess::new(Bounds::default(), Steady::start(), ledgers, Arc::new(|_| ()));
    let survey = Survey {
        client,
        secrets: &Secrets::new(client.clone()),
        connections: &connections,
        asking: &asking,
        owner,
        namespace: &args.scope.namespace,
        watch_filter: &args.scope.watch_filter,
    };
    let mut list = List {
        survey,
        with_verified: args.clouds.sweep_verified,
        is_deleting,
        now,
        rows: Vec::new(),
        clouds: BTreeSet::new(),
        listed: BTreeMap::new(),
        troubles: BTreeSet::new(),
    };
    for kind in registry.names().filter_map(Kind::of) {
        list.provider(kind).await?;
    }
    let text = table(&list.rows, list.clouds.len(), is_deleting, now);
    let failed = list.rows.iter().filter_map(|row| row.outcome.as_ref()?.as_ref().err());
    list.troubles.extend(failed.cloned());
    Ok(Left {
        text,
        orphans: list.rows.iter().filter(|row| row.is_left()).count(),
        troubles: list.troubles,
    })
}

struct List<'a> {
    survey: Survey<'a>,
    with_verified: bool,
    is_deleting: bool,
    now: Timestamp,
    rows: Vec<Row>,
    clouds: BTreeSet<(String, String)>,
    /// Which row is about an image, by its cloud and id: two identities may see one project.
    listed: BTreeMap<(String, String), usize>,
    troubles: BTreeSet<String>,
}

impl List<'_> {
    async fn provider(&mut self, kind: &'static Kind) -> anyhow::Result<()> {
        let words = || format!("failed to list all objects {}", kind.definition().image_kind);
        let first = self.survey.objects(kind).await.with_context(words)?;
        let seen = self.survey.clouds(kind, &first.objects).await;
        let live = self.survey.objects(kind).await.with_context(words)?.names;
        self.troubles.extend(seen.unasked);
        for (scope, sight) in seen.sights {
            let owned = match &sight.owned {
                Ok(owned) => owned,
                Err(failure) => {
                    self.troubles.insert(format!("{}: {}", scope.cloud, failure.message));
                    continue;
                }
            };
            self.clouds.insert((kind.name(), scope.cloud.clone()));
            for deed in listed(owned, &live, self.now, self.with_verified) {
                let (may_go, image) = (deed.delete, deed.image.clone());
                let at = self.row(kind, &scope, deed);
                // What one of them may only look at the other may delete.
                let is_gone = !self.rows[at].is_left();
                if self.is_deleting && may_go && !is_gone {
                    self.rows[at].outcome = Some(self.discard(&scope, &sight, &image).await);
                }
            }
        }
        Ok(())
    }

    /// Where the row of this image is; it is made where there is none yet.
    fn row(&mut self, kind: &Kind, scope: &Scope, deed: SweepDeed) -> usize {
        let key = (scope.cloud.clone(), deed.image.id.clone());
        *self.listed.entry(key).or_insert_with(|| {
            self.rows.push(Row {
                provider: kind.name(),
                cloud: scope.cloud.clone(),
                deed,
                outcome: None,
            });
            self.rows.len() - 1
        })
    }

    async fn discard(&self, scope: &Scope, sight: &Sight, image: &OwnedImage) -> Result<(), String> {
        let Survey { asking, owner, .. } = self.survey;
        let marked = sight.marked(image, owner);
        let discarded = asking
            .discard(scope.provider, &sight.connection, &image.id, &marked)
            .await;
        discarded.map(drop).map_err(|failure| failure.message)
    }
}

/// Whose images are looked for: as flags say, else as this cluster is known.
///
/// # Errors
/// The API server does not say it.
pub(crate) async fn owner(args: &Args, client: &Client) -> anyhow::Result<OwnerId> {
    if let Some(owner) = args.clouds.owner().map_err(anyhow::Error::msg)? {
        return Ok(owner);
    }
    let known = known_as(client).await;
    let known = known.context("the namespace kube-system cannot be read; allow it, or use --installation")?;
    known.context("the namespace kube-system has no uid; use --installation")
}
