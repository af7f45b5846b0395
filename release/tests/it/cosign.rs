//! The real cosign: what it signs, and what it says of signatures.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use rcgen::{KeyPair, SignatureAlgorithm};
use release::{Keys, Trust};
use tempfile::TempDir;
use tokio::{process::Command, time};

use crate::{
    lab::outside,
    registry::{PASSWORD, Registry, USER},
};

/// Nothing here reaches a log of the world, or asks one.
const OFFLINE: [&str; 4] = ["--tlog-upload=false", "--use-signing-config=false", "--yes", "--key"];
const CLASSIC: &str = "--new-bundle-format=false";

/// Cosign answers within a second.
const SOON: Duration = Duration::from_mins(1);

/// A signer with a folder of keys and of what it is given.
pub(crate) struct Cosign {
    folder: TempDir,
}

impl Cosign {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// A new pair of keys of the usual kind.
    pub(crate) async fn key(&self, name: &str) -> Trust {
        let prefix = format!("--output-key-prefix={name}");
        self.does(&["generate-key-pair", &prefix]).await;
        self.keys(&[name])
    }

    /// A new pair of another kind.
    pub(crate) async fn key_of(&self, name: &str, algorithm: &'static SignatureAlgorithm) -> Trust {
        let pair = KeyPair::generate_for(algorithm).unwrap();
        self.file("private.pem", pair.serialize_pem());
        let prefix = format!("--output-key-prefix={name}");
        self.does(&["import-key-pair", "--yes", "--key=private.pem", &prefix])
            .await;
        self.keys(&[name])
    }

    /// The public halves, one text with all of them.
    pub(crate) fn keys(&self, names: &[&str]) -> Trust {
        let texts = names.iter().map(|name| self.public(name));
        Trust::Keys(Keys::from_pem(texts.collect::<Vec<_>>().concat().as_bytes()).unwrap())
    }

    pub(crate) fn public(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(format!("{name}.pub"))).unwrap()
    }

    /// The encrypted private half.
    pub(crate) fn private(&self, name: &str) -> Vec<u8> {
        self.read(&format!("{name}.key"))
    }

    /// Signs something in a registry in the form that was there before bundles.
    pub(crate) async fn sign(&self, registry: &Registry, key: &str, reference: &str) {
        self.sign_with(registry, key, reference, &[CLASSIC]).await;
    }

    /// Signs something in a registry as these arguments say.
    pub(crate) async fn sign_with(&self, registry: &Registry, key: &str, reference: &str, how: &[&str]) {
        let mut arguments = vec!["sign"];
        arguments.extend(how);
        arguments.extend(OFFLINE);
        let key = format!("{key}.key");
        let in_registry = in_registry(registry, reference);
        arguments.push(&key);
        arguments.extend(in_registry.iter().map(String::as_str));
        self.does(&arguments).await;
    }

    /// Whether cosign finds a signature by this key.
    pub(crate) async fn verifies(&self, registry: &Registry, key: &str, reference: &str) -> bool {
        let key = format!("--key={key}.pub");
        let in_registry = in_registry(registry, reference);
        let mut arguments = vec!["verify", CLASSIC, "--insecure-ignore-tlog=true", &key];
        arguments.extend(in_registry.iter().map(String::as_str));
        self.run(&arguments).await.status.success()
    }

    /// Signs a file, and puts the signature beside it.
    pub(crate) async fn sign_file(&self, key: &str, file: &Path) {
        let key = format!("{key}.key");
        let output = format!("--output-signature={}.sig", file.display());
        let mut arguments = vec!["sign-blob", CLASSIC, &output];
        arguments.extend(OFFLINE);
        let file = file.display().to_string();
        arguments.extend([key.as_str(), &file]);
        self.does(&arguments).await;
    }

    /// Gives it a file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// What it has written.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    /// Whether it finds a bundle good, and its words.
    pub(crate) async fn verdict(&self, bundle: &[u8], artifact: &[u8], trust: &[impl AsRef<OsStr>]) -> (bool, String) {
        let bundle = self.file("asked.bundle", bundle);
        let artifact = self.file("asked.artifact", artifact);
        let mut arguments: Vec<&OsStr> = vec!["verify-blob".as_ref(), "--bundle".as_ref(), bundle.as_ref()];
        arguments.extend(trust.iter().map(AsRef::as_ref));
        arguments.push(artifact.as_ref());
        let Output { status, stderr, .. } = self.run(&arguments).await;
        (status.success(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Does it, or fails with its own words.
    pub(crate) async fn does(&self, arguments: &[&str]) {
        let Output { status, stdout, stderr } = self.run(arguments).await;
        let said = [stdout, stderr].concat();
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    }

    async fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Output {
        let process = Command::new(outside())
            .arg("cosign")
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .env("COSIGN_PASSWORD", "canary")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        time::timeout(SOON, process).await.expect("cosign ends").unwrap()
    }
}

fn in_registry(registry: &Registry, reference: &str) -> Vec<String> {
    vec![
        format!("--registry-cacert={}", registry.file("ca.crt").display()),
        format!("--registry-username={USER}"),
        format!("--registry-password={PASSWORD}"),
        registry.reference(reference),
    ]
}
