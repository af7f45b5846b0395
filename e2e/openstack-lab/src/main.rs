//! `openstack-lab up`: a real Keystone and a real Glance for people, for as long as it runs.

use std::{env, fs, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use openstack_lab::real::{Installed, Real, RealOptions};
use tokio::signal;

const USAGE: &str = "\
Usage: openstack-lab up [OPTIONS]

Starts a Keystone and a Glance on loopback, says where they are and who may log in, and ends them with ctrl-c.
What they need is installed by `cargo xtask setup`.

Options:
  --prefix             serve below /identity and /image
  --tls                serve https, by an authority of its own
  --token-ttl SECONDS  how long tokens are good for [default: 3600]";

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = understood(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match up(&options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn understood(mut words: impl Iterator<Item = String>) -> Option<RealOptions> {
    let mut options = RealOptions::default();
    if words.next()? != "up" {
        return None;
    }
    while let Some(word) = words.next() {
        match word.as_str() {
            "--prefix" => options.prefix = true,
            "--tls" => options.tls = true,
            "--token-ttl" => options.token_ttl = Duration::from_secs(words.next()?.parse().ok()?),
            _ => return None,
        }
    }
    Some(options)
}

async fn up(options: &RealOptions) -> Result<()> {
    let Some(installed) = Installed::find()? else {
        bail!("this machine has no Keystone and Glance");
    };
    let real = Real::start(&installed, options).await?;
    let site = real.site();
    let ca = site.ca.as_ref().map(|_| real.folder().join("ca.pem"));
    let clouds = real.folder().join("clouds.yaml");
    fs::write(&clouds, site.clouds_yaml(ca.as_deref()))
        .with_context(|| format!("failed to write {}", clouds.display()))?;
    let names: Vec<_> = site.clouds.keys().map(String::as_str).collect();
    eprintln!("Keystone  {}\nGlance    {}", site.keystone, site.glance);
    eprintln!("clouds    {}", names.join(", "));
    eprintln!("logs      {}", real.folder().display());
    eprintln!("\nexport OS_CLIENT_CONFIG_FILE={} OS_CLOUD=openstack", clouds.display());
    eprintln!("python    {}", installed.python().display());
    eprintln!("\nctrl-c ends both, and all images are gone.");
    signal::ctrl_c().await.context("failed to wait for ctrl-c")
}
