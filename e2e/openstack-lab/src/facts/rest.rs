//! That another client finds its way, and that nothing is left behind.

use std::fs;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::{Fact, Needs, Visitor, fact, tenant::NAME_OF_SDK};

pub(super) const FACTS: &[Fact] = &[
    Fact {
        name: "openstacksdk uploads through clouds.yaml",
        needs: Needs::Python,
        check: |visitor| Box::pin(another_client(visitor)),
    },
    fact!("nothing is left behind", nothing_left),
];

/// What the other client does.
const PROGRAM: &str = "
import openstack, sys
name, disk = sys.argv[1:]
sdk = openstack.connect(cloud='openstack')
image = sdk.create_image(name, filename=disk, disk_format='qcow2', container_format='bare', wait=True, allow_duplicates=True)
print(sdk.image.get_image(image.id).status)
sdk.delete_image(image.id)
";

async fn another_client(visitor: &Visitor<'_>) -> Result<()> {
    let python = visitor.site.python.as_ref().context("there is no Python")?;
    let folder = tempfile::tempdir().context("failed to make a folder")?;
    let at = |name: &str| folder.path().join(name);
    let ca = visitor.site.ca.as_ref().map(|_| at("ca.pem"));
    fs::write(at("ca.pem"), visitor.site.ca.as_deref().unwrap_or_default())?;
    fs::write(at("clouds.yaml"), visitor.site.clouds_yaml(ca.as_deref()))?;
    fs::write(at("disk.qcow2"), &visitor.disk)?;
    let ran = Command::new(python)
        .args(["-c", PROGRAM, NAME_OF_SDK])
        .arg(at("disk.qcow2"))
        .env("OS_CLIENT_CONFIG_FILE", at("clouds.yaml"))
        .kill_on_drop(true)
        .output()
        .await
        .context("failed to start Python")?;
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    ensure!(
        ran.status.success() && out.trim() == "active",
        "{}: {out}{err}",
        ran.status
    );
    Ok(())
}

async fn nothing_left(visitor: &Visitor<'_>) -> Result<()> {
    for cloud in ["openstack", "tiny"] {
        let left = visitor.tenant(cloud).await?.mine().await?;
        ensure!(left.is_empty(), "{cloud} still has {left:?}");
    }
    Ok(())
}
