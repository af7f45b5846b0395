//! What stands around the operator on its machine, and concerns others: variables and files by which OpenStack's own tools find their cloud.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    Operator,
    built::Program,
    provider_operator::ProviderOptions,
    stage::{DISK, message_of, on_a_fake, small},
};
use memchr::memmem;
use openstack_lab::{
    Login, Site,
    facts::Visitor,
    fake::{Fake, FakeOptions},
};
use serde_json::json;

/// Words by which such tools ask their surroundings.
const ASKED: [&str; 6] = [
    "OS_AUTH_URL",
    "OS_CLOUD",
    "OS_CLIENT_CONFIG_FILE",
    "OS_PASSWORD",
    "/etc/openstack",
    ".config/openstack",
];

/// Gives a command everything that would lead it to another cloud, and let it in there.
fn plant(command: &mut Command, folder: &Path, trap: &Site) -> Result<()> {
    let Some(Login::Password {
        user,
        password,
        project,
    }) = trap.clouds.get("demo")
    else {
        bail!("demo has a password");
    };
    let clouds = trap.clouds_yaml(None);
    let home = folder.join("home");
    for place in [
        folder.to_owned(),
        home.join(".config/openstack"),
        home.join("openstack"),
    ] {
        fs::create_dir_all(&place).with_context(|| format!("failed to make {}", place.display()))?;
        fs::write(place.join("clouds.yaml"), &clouds).context("failed to write a clouds.yaml")?;
    }
    command.current_dir(folder).envs([
        ("OS_AUTH_URL", trap.keystone.as_str()),
        ("OS_USERNAME", user),
        ("OS_PASSWORD", password),
        ("OS_PROJECT_NAME", project),
        ("OS_USER_DOMAIN_NAME", "Default"),
        ("OS_PROJECT_DOMAIN_NAME", "Default"),
        ("OS_REGION_NAME", &trap.region),
        ("OS_IMAGE_ENDPOINT_OVERRIDE", &trap.glance),
        ("OS_CLOUD", "openstack"),
    ]);
    command.env("OS_CLIENT_CONFIG_FILE", folder.join("clouds.yaml"));
    command.env("HOME", &home).env("XDG_CONFIG_HOME", &home);
    Ok(())
}

/// Starts one amid all that.
async fn operate(options: &ProviderOptions, lab: &'static e2e::Lab, folder: &Path, trap: &Site) -> Result<Operator> {
    let mut command = options.command()?;
    plant(&mut command, folder, trap)?;
    let mut operator = Operator::start_as(lab, &command, &options.log())?;
    operator.ready().await?;
    Ok(operator)
}

#[test]
fn neither_the_environment_nor_files_of_the_machine_lead_to_a_cloud() -> Result<()> {
    on_a_fake(async |stage, _| {
        let trap = Fake::start(FakeOptions::default()).await?;
        stage.want_disk("ubuntu", &small(1)).await?;
        // What is missing here, those tools would take from around them.
        let half = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "half" },
            "stringData": { "clouds.yaml": "clouds: { openstack: { auth: {} } }" },
        });
        let none = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "none" }, "stringData": { "other": "things" },
        });
        for (name, secret) in [("half", half), ("none", none)] {
            stage.journey.apply(secret).await?;
            let spec = json!({ "identityRef": { "kind": "Secret", "name": name } });
            stage.want(name, DISK, spec).await?;
        }
        let folder = stage.journey.folder().join("surroundings");
        let options = stage.options(&[]).await?;
        let _operator = operate(&options, stage.journey.lab(), &folder, trap.site()).await?;
        let id = stage.id("ubuntu").await?;
        for (name, words) in [("half", "auth_url"), ("none", "clouds.yaml")] {
            let message = message_of(&stage.not_ready(name, "CredentialsRejected").await?);
            ensure!(message.contains(words), "{name}: {message}");
        }
        ensure!(trap.requests().is_empty(), "the trap was asked: {:?}", trap.requests());
        // It would have let them in.
        Visitor::new(trap.site()).await?.tenant("demo").await?;
        ensure!(!trap.requests().is_empty(), "nobody notices who asks the trap");
        Ok(vec![id])
    })
}

/// Files below `/etc` are nobody's to make for a test: that the program knows of none it says itself.
#[test]
fn the_operator_does_not_know_by_what_names_other_tools_find_their_cloud() -> Result<()> {
    let program = fs::read(Program::ProviderOperator.path()?).context("failed to read the operator")?;
    for word in ASKED {
        let found = memmem::find(&program, word.as_bytes());
        ensure!(found.is_none(), "it knows {word}");
    }
    Ok(())
}
