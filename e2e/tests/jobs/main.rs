//! Jobs that really run: the provider operator as a process, Pods under a real kubelet where the machine can have one and under the stand-in everywhere,
//! images into a directory and into a real cloud. Each test says the same of both; what only the real one can show says so.

mod builds;
mod clouds;
mod contract;
mod killed;
mod may;
mod place;
mod rights;
mod trouble;

use std::sync::Arc;

use anyhow::Result;
use e2e::kubelet::{Kind, kinds};
use futures::future::try_join_all;

use self::place::{Place, RUNTIME};

/// Runs a test wherever Pods can run: in all places at once, because most of it is waiting.
#[expect(clippy::needless_pass_by_value, reason = "a test is written down where it is given")]
fn everywhere(test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        let places = places().await?;
        let tests = places.iter().map(|(_, place)| within_rights(place, &test));
        try_join_all(tests).await.map(drop)
    })
}

/// Runs a test where containers are containers, if the machine can have such.
#[expect(clippy::needless_pass_by_value, reason = "a test is written down where it is given")]
fn really(test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        for (kind, place) in places().await? {
            if kind == Kind::Real {
                within_rights(&place, &test).await?;
            }
        }
        Ok(())
    })
}

/// All of them, also those that a test does not need: they last as long as tests follow each other, and are started once.
async fn places() -> Result<Vec<(Kind, Arc<Place>)>> {
    try_join_all(
        kinds()?
            .into_iter()
            .map(async |kind| Ok((kind, Place::of(kind).await?))),
    )
    .await
}

async fn within_rights(place: &Place, test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    let log = place.kubelet.control_plane().audit_log();
    // Tests of one place run side by side: what each sees is that of all of them.
    let begun = log.end()?;
    test(place).await?;
    rights::hold(&log.told(begun, rights::AGENTS).await?)
}
