//! The real cosign, with keys of its own, as publishers sign with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    Lab,
    registry::{PASSWORD, Registry, USER},
};

/// Nothing reaches a log of the world, or asks one; the form of signatures is the one without bundles.
const CLASSIC: [&str; 4] = [
    "--new-bundle-format=false",
    "--tlog-upload=false",
    "--use-signing-config=false",
    "--yes",
];

/// A signer.
#[derive(Debug)]
pub struct Cosign {
    program: PathBuf,
    folder: PathBuf,
}

impl Cosign {
    /// One that keeps its keys in this folder.
    pub fn new(lab: &Lab, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        Ok(Self {
            program: lab.outside()?.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// Makes a pair of keys and gives the public one, in PEM.
    pub fn key(&self, name: &str) -> Result<String> {
        self.run(&["generate-key-pair", &format!("--output-key-prefix={name}")])?;
        let path = self.folder.join(format!("{name}.pub"));
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    }

    /// Signs what is under a tag of a registry with a key.
    pub fn sign(&self, key: &str, registry: &Registry, repository: &str, tag: &str) -> Result<()> {
        let mut arguments = vec!["sign"];
        arguments.extend(CLASSIC);
        let rest = [
            format!("--key={key}.key"),
            format!("--registry-cacert={}", registry.authority_file().display()),
            format!("--registry-username={USER}"),
            format!("--registry-password={PASSWORD}"),
            format!("{}:{tag}", registry.repository(repository)),
        ];
        arguments.extend(rest.iter().map(String::as_str));
        self.run(&arguments)
    }

    /// Signs a file with a key, and puts the signature beside it.
    pub fn sign_file(&self, key: &str, file: &Path) -> Result<()> {
        let mut arguments = vec!["sign-blob"];
        arguments.extend(CLASSIC);
        let rest = [
            format!("--key={key}.key"),
            format!("--output-signature={}.sig", file.display()),
            file.display().to_string(),
        ];
        arguments.extend(rest.iter().map(String::as_str));
        self.run(&arguments)
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let output = Command::new(&self.program)
            .current_dir(&self.folder)
            // Whoever runs the test may have passwords of his own.
            .env("HOME", &self.folder)
            .env("DOCKER_CONFIG", &self.folder)
            .env("COSIGN_PASSWORD", "canary")
            .arg("cosign")
            .args(arguments)
            .output()
            .context("failed to start cosign")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cosign {}: {said}", arguments[0]);
        Ok(())
    }
}
