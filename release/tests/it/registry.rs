//! A real registry, with TLS and passwords, and the real oras to fill it.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use release::{
    http::{Credentials, Network, NetworkOptions},
    source::oci::{OciOptions, OciSource},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task, time,
};

use crate::lab::outside;

pub(crate) const USER: &str = "harbor";
pub(crate) const PASSWORD: &str = "canary-password";
/// The line of htpasswd for these two.
const HTPASSWD: &str = "harbor:$2a$04$HLvPmkNFrKNLYULm7jOU8.27ZONvsrdHdKdsFHRktrGCi19ncGLGu\n";

/// A registry starts in a fraction of a second, and what is asked of one is done in another.
pub(crate) const SOON: Duration = Duration::from_mins(1);
/// Tags that the registry gives in one page, whatever is asked for.
pub(crate) const PAGE: usize = 20;

/// What stands under `auth` in the configuration of a registry with passwords.
const PASSWORDS: &str = "htpasswd: {realm: stub, path: htpasswd}";

/// A running registry. Dropped, it is gone; it ends by itself when this process does.
pub(crate) struct Registry {
    pub(crate) host: String,
    folder: TempDir,
    process: Child,
}

impl Registry {
    /// An empty one with passwords, and a certificate of an authority of its own.
    pub(crate) async fn start() -> Self {
        Self::with_auth(TempDir::new().unwrap(), PASSWORDS).await
    }

    /// The same repositories with another way of knowing who asks.
    pub(crate) async fn restarted(mut self, auth: &str) -> Self {
        self.process.kill().await.unwrap();
        Self::with_auth(self.folder, auth).await
    }

    /// The path of a file in the folder in which the registry runs.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn with_auth(folder: TempDir, auth: &str) -> Self {
        certify(folder.path());
        fs::write(folder.path().join("htpasswd"), HTPASSWD).unwrap();
        let configuration = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\nstorage: {{filesystem: {{rootdirectory: storage}}}}\ntags: {{maxtags: {PAGE}}}\n\
             http: {{addr: '127.0.0.1:0', secret: stub, tls: {{certificate: server.crt, key: server.key}}}}\nauth: {{{auth}}}\n"
        );
        fs::write(folder.path().join("config.yml"), configuration).unwrap();
        let mut process = Command::new(outside())
            .current_dir(folder.path())
            .args(["--exit-with-stdin", "registry", "serve", "config.yml"])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let listening = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some((_, rest)) = line.split_once("listening on ") {
                    return rest.split(',').next().unwrap().to_owned();
                }
                said += &line;
            }
            panic!("the registry ended before it listened: {said}");
        };
        let host = time::timeout(SOON, listening).await.expect("the registry listens");
        // A pipe that nobody empties would stop it.
        task::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { host, folder, process }
    }

    /// The certificate of its authority, in PEM.
    pub(crate) fn authority(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("ca.crt")).unwrap()
    }

    /// How a source asks for this repository.
    pub(crate) fn options(&self, name: &str) -> OciOptions {
        OciOptions {
            repository: self.repository(name).parse().unwrap(),
            plain_http: false,
            credentials: Some(password(PASSWORD)),
            certificates: Some(self.authority()),
            token_hosts: Vec::new(),
        }
    }

    pub(crate) fn source(&self, name: &str) -> OciSource {
        OciSource::new(&network(), self.options(name)).unwrap()
    }

    fn repository(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    /// Pushes the files of a directory in one of the ways that are in use.
    pub(crate) async fn push(&self, directory: &Path, reference: &str, way: Way) {
        let mut arguments: Vec<String> = match way {
            Way::Csctl => vec![
                "--artifact-type=application/vnd.scs.cluster-stacks.v1".into(),
                "--annotation=kubernetesVersion=v1.34.2".into(),
                "--annotation=hash=0123456".into(),
            ],
            Way::BuildScript => vec!["--artifact-type=application/vnd.clusterstack.release".into()],
            Way::Plain => vec![],
            Way::OldPlain => vec!["--image-spec=v1.0".into()],
        };
        let mut files: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        arguments.push(self.repository(reference));
        arguments.extend(files.into_iter().map(|file| match way {
            Way::Csctl => format!("{file}{}", media_type(&file)),
            _ => file,
        }));
        self.oras(directory, "push", &arguments).await;
    }

    /// Runs oras in this folder, in the name of somebody who may push.
    pub(crate) async fn oras<Argument: AsRef<OsStr>>(&self, folder: &Path, verb: &str, arguments: &[Argument]) {
        let authority = self.folder.path().join("ca.crt").display().to_string();
        let mut all: Vec<&OsStr> = ["--ca-file", &authority, "--username", USER, "--password", PASSWORD]
            .map(OsStr::new)
            .to_vec();
        all.extend(arguments.iter().map(AsRef::as_ref));
        self.run(folder, verb, &all).await;
    }

    async fn run<Argument: AsRef<OsStr>>(&self, folder: &Path, verb: &str, arguments: &[Argument]) {
        let process = Command::new(outside())
            .current_dir(folder)
            // Whoever runs the test may have passwords of his own.
            .env("HOME", self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .arg("oras")
            .args(verb.split(' '))
            .args(arguments)
            .kill_on_drop(true)
            .output();
        let ended = time::timeout(SOON, process).await.expect("oras ends");
        let Output { status, stdout, stderr } = ended.unwrap();
        let said = [stdout, stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat();
        assert!(status.success(), "oras {verb}: {said}");
    }

    /// Copies something from one name to another, as whoever keeps a mirror does.
    pub(crate) async fn copy(&self, from: &str, to: &str) {
        let (authority, pair) = (self.file("ca.crt").display().to_string(), [from, to]);
        let mut arguments = Vec::new();
        for side in ["from", "to"] {
            arguments.extend([format!("--{side}-ca-file={authority}")]);
            arguments.extend([
                format!("--{side}-username={USER}"),
                format!("--{side}-password={PASSWORD}"),
            ]);
        }
        arguments.extend(pair.map(|name| self.repository(name)));
        self.run(self.folder.path(), "cp", &arguments).await;
    }

    /// The name of something in the registry, as oras takes it.
    pub(crate) fn reference(&self, name: &str) -> String {
        self.repository(name)
    }
}

/// A way to push a release.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// As csctl: types for the whole and for every file, annotations.
    Csctl,
    /// As the build script of the public cluster stacks: a type for the whole.
    BuildScript,
    /// As `oras push` does when it is told nothing.
    Plain,
    /// The same for old registries: the type is that of the configuration.
    OldPlain,
}

/// What csctl calls the files of a release, as oras takes it behind their names.
fn media_type(file: &str) -> &'static str {
    match file {
        "metadata.yaml" => ":application/vnd.scs.metadata.layer.v1+yaml",
        "clusteraddon.yaml" => ":application/vnd.scs.cluster-addon.config.layer.v1+yaml",
        "node-images.yaml" => ":application/vnd.scs.node-image.config.layer.v1+yaml",
        "hashes.json" => ":application/vnd.scs.hashes.layer.v1+yaml",
        _ if file.contains("cluster-class") => ":application/vnd.scs.cluster-class.v1.tar+gzip",
        "cluster-addon-values.yaml" => "",
        _ if file.contains("cluster-addon") => ":application/vnd.scs.cluster-addon.layer.v1.tar+gzip",
        _ => "",
    }
}

pub(crate) fn password(password: &str) -> Credentials {
    Credentials::Basic {
        username: USER.to_owned(),
        password: password.into(),
    }
}

/// A network that reaches this machine.
pub(crate) fn network() -> Network {
    let networks = vec!["127.0.0.0/8".parse().unwrap()];
    Network::new(NetworkOptions {
        networks,
        ..NetworkOptions::default()
    })
    .unwrap()
}

/// Puts an authority and what it signed for this machine into a folder.
fn certify(folder: &Path) {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(folder.join("ca.crt"), authority.self_signed(&key).unwrap().pem()).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&server_key, &Issuer::new(authority, key)).unwrap();
    fs::write(folder.join("server.crt"), server.pem()).unwrap();
    fs::write(folder.join("server.key"), server_key.serialize_pem()).unwrap();
}
