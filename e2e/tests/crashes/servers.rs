//! The servers that a release with its signature comes from, of each kind of source, each of which can be stopped at any question.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{
    Lab,
    cosign::Cosign,
    github::{Github, TOKEN},
    oci::{self, OciServer},
    releases::Releases,
    web::{IndexServer, WebServer},
};
use serde_json::{Value, json};

pub(crate) const SUMS: &str = "sha256sums.txt";
pub(crate) const SIGNATURE: &str = "sha256sums.txt.sig";
/// Releases of others, which make a second page.
const OTHERS: usize = 120;

/// The kinds of sources that are asked by HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Index,
    Github,
    Registry,
}

impl Kind {
    /// What some of its questions contain, or it is not the journey that was meant.
    pub(crate) fn wanted(self) -> &'static [&'static str] {
        match self {
            Self::Index => &["index.json", "metadata.yaml", SUMS, SIGNATURE],
            Self::Github => &[
                "&page=1",
                "&page=2",
                "/releases/tags/",
                "/releases/assets/",
                "X-Amz-Signature",
            ],
            Self::Registry => &[
                "/token?",
                "/tags/list",
                "/manifests/docker-",
                "/blobs/",
                ".sig",
                "/referrers/",
            ],
        }
    }
}

/// What a question is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A list, a token, what a tag stands for.
    Order,
    /// A file of the release.
    File,
    /// What vouches for it.
    Proof,
    /// The signature itself.
    Signature,
}

/// A release with a signed list of its files beside them, its manifest with a signature, and the key to trust.
pub(crate) struct Signed {
    _folder: tempfile::TempDir,
    release: PathBuf,
    /// Without what vouches for them.
    bare: PathBuf,
    pub(crate) key: String,
    manifest: String,
    payload: String,
    signature: String,
}

static SIGNED: LazyLock<Result<Signed>> = LazyLock::new(|| {
    let folder = tempfile::tempdir()?;
    let releases = Releases::at(folder.path())?;
    let tag = releases.publish_harbor("v1", "v1")?;
    let release = releases.folder_of(&tag);
    let bare = folder.path().join("bare").join(&tag);
    e2e::releases::copy(&release, &bare)?;
    let listing = format!("sha256sum * > {SUMS}");
    let listed = Command::new("sh")
        .current_dir(&release)
        .args(["-c", &listing])
        .status()?;
    ensure!(listed.success(), "{listed}");
    let cosign = Cosign::new(&Lab::load()?, &folder.path().join("cosign"))?;
    let key = cosign.key("ours")?;
    cosign.sign_file("ours", &release.join(SUMS))?;
    let manifest = oci::manifest_of(&bare)?;
    let payload = oci::signing_payload(&manifest);
    let signature = signature_of(&cosign, &payload, &folder.path().join("payload"))?;
    Ok(Signed {
        _folder: folder,
        release,
        bare,
        key,
        manifest,
        payload,
        signature,
    })
});

fn signature_of(cosign: &Cosign, payload: &str, file: &Path) -> Result<String> {
    std::fs::write(file, payload)?;
    cosign.sign_file("ours", file)?;
    std::fs::read_to_string(file.with_extension("sig")).context("failed to read a signature")
}

/// That which all journeys of this program fetch.
pub(crate) fn signed() -> Result<&'static Signed> {
    SIGNED.as_ref().map_err(|error| anyhow!("{error:#}"))
}

/// A running source.
pub(crate) enum Source {
    Index(IndexServer),
    Github(Github),
    Registry(OciServer),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl Source {
    /// Starts one that has the release.
    pub(crate) async fn start(kind: Kind) -> Result<Self> {
        let signed = signed()?;
        Ok(match kind {
            Kind::Index => {
                let server = IndexServer::start().await?;
                server.publish(&signed.release)?;
                Self::Index(server)
            }
            Kind::Github => {
                let server = Github::start().await?;
                server.publish(&signed.release)?;
                server.tag((0..OTHERS).map(|number| format!("nightly-{number}")));
                Self::Github(server)
            }
            Kind::Registry => {
                let server = OciServer::start().await?;
                server.publish(&signed.bare)?;
                server.attach(&signed.manifest, &signed.payload, &signed.signature);
                Self::Registry(server)
            }
        })
    }

    /// The servers that are asked.
    pub(crate) fn servers(&self) -> Vec<&WebServer> {
        match self {
            Self::Index(source) => vec![&source.server],
            Self::Github(source) => vec![&source.api, &source.storage],
            Self::Registry(source) => vec![&source.server],
        }
    }

    /// The one of them that gives the signature.
    pub(crate) fn signer(&self) -> usize {
        self.servers().len() - 1
    }

    /// What a stack names.
    pub(crate) fn source(&self) -> Value {
        match self {
            Self::Index(source) => source.source(),
            Self::Github(source) => source.source("127.0.0.1", Some("token")),
            Self::Registry(source) => source.source(),
        }
    }

    /// A Secret that the stack names, whether or not it does.
    pub(crate) fn secret() -> Value {
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token" }, "stringData": { "token": TOKEN } })
    }

    /// The address by which it is told.
    pub(crate) fn address(&self) -> String {
        self.servers()[0].url("127.0.0.1").replace("http://", "")
    }

    /// What a question to one of the servers is for.
    pub(crate) fn purpose(&self, target: &str) -> Purpose {
        let ends = |end: &str| target.ends_with(end);
        match self {
            Self::Index(_) if ends("index.json") => Purpose::Order,
            Self::Index(_) if ends(SIGNATURE) => Purpose::Signature,
            Self::Index(_) if ends(SUMS) => Purpose::Proof,
            Self::Index(_) => Purpose::File,
            Self::Github(source) => {
                let path = target.split('?').next().unwrap_or_default();
                let Some(name) = path.rsplit('/').next().and_then(|id| source.asset(id.parse().ok()?)) else {
                    return Purpose::Order;
                };
                match name.as_str() {
                    SUMS => Purpose::Proof,
                    // The first of the two servers only says where it is.
                    SIGNATURE if path.contains("/assets/") => Purpose::Proof,
                    SIGNATURE => Purpose::Signature,
                    _ => Purpose::File,
                }
            }
            Self::Registry(_) if ends(".sig") => Purpose::Signature,
            Self::Registry(_) if target.contains("/blobs/") => {
                let payload = signed().map(|signed| signed.payload.as_bytes().to_vec());
                let digest = payload.map(|payload| e2e::web::sha256(&payload)).unwrap_or_default();
                if ends(&digest) { Purpose::Proof } else { Purpose::File }
            }
            Self::Registry(_) if target.contains("/referrers/") => Purpose::Proof,
            Self::Registry(_) => Purpose::Order,
        }
    }

    /// Whether the signature has been given.
    pub(crate) fn has_shown_the_signature(&self) -> bool {
        let visits = self.servers()[self.signer()].visits();
        visits
            .iter()
            .any(|visit| visit.status.is_success() && self.purpose(&visit.target) == Purpose::Signature)
    }
}
