//! Jobs that really run: the provider operator as a process, Pods under a real kubelet where the machine can have one and under the stand-in everywhere,
//! images into a directory. Each test says the same of both; what only the real one can show says so.

mod builds;
mod contract;
mod place;

use anyhow::Result;
use e2e::kubelet::{Kind, kinds};

use self::place::{Place, RUNTIME};

/// Runs a test wherever Pods can run.
fn everywhere(test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        for kind in kinds()? {
            test(&*Place::of(kind).await?).await?;
        }
        Ok(())
    })
}

/// Runs a test where containers are containers, if the machine can have such.
fn really(test: impl AsyncFn(&Place) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        if kinds()?.contains(&Kind::Real) {
            test(&*Place::of(Kind::Real).await?).await?;
        }
        Ok(())
    })
}
