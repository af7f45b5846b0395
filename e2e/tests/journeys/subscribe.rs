//! Versions are listed, dropped and followed.

use anyhow::Result;
use e2e::journey::{journey, status};
use serde_json::json;

#[test]
fn one_listed_version_becomes_usable() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        assert_eq!(status(&release).kubernetes_version.as_deref(), Some("v1.34.0"));
        journey.usable("harbor", "v1").await?;
        Ok(())
    })
}
