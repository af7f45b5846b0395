//! Jobs that really run: the provider operator as a process, Pods under a real kubelet where the machine can have one and under the stand-in everywhere,
//! images into a directory and into a real cloud. Each test says the same of both; what only the real one can show says so.

mod builds;
mod clouds;
mod contract;
mod place;
mod rights;
mod trouble;

use anyhow::Result;
use e2e::kubelet::{Kind, kinds};

use self::place::{Place, RUNTIME};

/// Runs a test wherever Pods can run.
fn everywhere(test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        for kind in kinds()? {
            within_rights(&*Place::of(kind).await?, &test).await?;
        }
        Ok(())
    })
}

/// Runs a test where containers are containers, if the machine can have such.
fn really(test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        if kinds()?.contains(&Kind::Real) {
            within_rights(&*Place::of(Kind::Real).await?, &test).await?;
        }
        Ok(())
    })
}

async fn within_rights(place: &Place, test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    let log = place.kubelet.control_plane().audit_log();
    // Tests of one place run side by side: what each sees is that of all of them.
    let begun = log.end()?;
    test(place).await?;
    rights::hold(&log.told(begun, rights::AGENTS).await?)
}
