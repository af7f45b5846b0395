//! A registry that a test plays: the part of the OCI distribution specification by which artifacts are read, behind a server of tokens as the public
//! registries have it. What has to be shown of real registries is shown with one ([`crate::registry`]); this one can be stopped at any question.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use serde_json::{Value, json};

use crate::web::{Answer, WebServer, answer, files_of, lock, sha256};

const REPOSITORY: &str = "kaas/stacks";
const TOKEN: &str = "canary-registry-token";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// A running registry with one repository.
#[derive(Debug)]
pub struct OciServer {
    /// What was asked of it, questions for tokens too.
    pub server: WebServer,
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    /// By tag and by digest.
    manifests: BTreeMap<String, Bytes>,
    /// By digest.
    blobs: BTreeMap<String, Bytes>,
}

/// The manifest of the files of a release, which is what its publisher signs.
pub fn manifest_of(release: &Path) -> Result<String> {
    let layers = files_of(release)?.into_iter().map(|(name, content)| {
        let mut layer = layer("application/vnd.oci.image.layer.v1.tar", &content);
        layer["annotations"] = json!({ "org.opencontainers.image.title": name });
        layer
    });
    Ok(manifest(
        "application/vnd.scs.cluster-stacks.v1",
        &layers.collect::<Vec<_>>(),
    ))
}

/// What cosign signs of a manifest.
pub fn signing_payload(manifest: &str) -> String {
    let image = json!({ "docker-manifest-digest": format!("sha256:{}", sha256(manifest.as_bytes())) });
    let identity = json!({ "docker-reference": REPOSITORY });
    let critical = json!({ "identity": identity, "image": image, "type": "cosign container image signature" });
    json!({ "critical": critical, "optional": null }).to_string()
}

fn layer(media_type: &str, content: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", sha256(content)), "size": content.len() })
}

fn manifest(artifact: &str, layers: &[Value]) -> String {
    let config = layer("application/vnd.oci.empty.v1+json", b"{}");
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": artifact, "config": config, "layers": layers });
    manifest.to_string()
}

impl OciServer {
    /// Starts one without artifacts.
    pub async fn start() -> Result<Self> {
        let content = Arc::<Mutex<Content>>::default();
        let shown = Arc::clone(&content);
        let server = WebServer::start(move |request| lock(&shown).answer(request)).await?;
        Ok(Self { server, content })
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        self.server.url("127.0.0.1").replace("http://", "")
    }

    /// What a stack names.
    pub fn source(&self) -> Value {
        json!({ "oci": { "repository": format!("{}/{REPOSITORY}", self.host()), "plainHttp": true } })
    }

    /// Pushes the files of a folder under its name.
    pub fn publish(&self, release: &Path) -> Result<()> {
        let tag = release.file_name().context("a release has a name")?.to_string_lossy();
        let manifest = manifest_of(release)?;
        let mut content = lock(&self.content);
        let files = files_of(release)?.into_values();
        content
            .blobs
            .extend(files.map(|file| (format!("sha256:{}", sha256(&file)), file)));
        content.push(&tag, manifest);
        Ok(())
    }

    /// Puts a signature of a manifest where cosign puts it; `payload` is what was signed.
    pub fn attach(&self, manifest_of_release: &str, payload: &str, signature: &str) {
        let mut signed = layer(SIMPLE_SIGNING, payload.as_bytes());
        signed["annotations"] = json!({ "dev.cosignproject.cosign/signature": signature.trim() });
        let mut content = lock(&self.content);
        let digest = format!("sha256:{}", sha256(payload.as_bytes()));
        content.blobs.insert(digest, payload.to_owned().into());
        let tag = format!("sha256-{}.sig", sha256(manifest_of_release.as_bytes()));
        content.push(
            &tag,
            manifest("application/vnd.dev.cosign.artifact.sig.v1+json", &[signed]),
        );
    }
}

impl Content {
    fn push(&mut self, tag: &str, manifest: String) {
        let manifest = Bytes::from(manifest);
        self.manifests
            .insert(format!("sha256:{}", sha256(&manifest)), manifest.clone());
        self.manifests.insert(tag.to_owned(), manifest);
    }

    fn answer(&self, request: &Request<Bytes>) -> Answer {
        if request.uri().path() == "/token" {
            let body = json!({ "token": TOKEN, "expires_in": 300 }).to_string();
            return answer(StatusCode::OK, &[], body);
        }
        let sent = request.headers().get(header::AUTHORIZATION);
        if sent.is_none_or(|sent| sent.as_bytes() != format!("Bearer {TOKEN}").as_bytes()) {
            let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
            let realm = format!("http://{}/token", host.unwrap_or_default());
            let challenge = format!("Bearer realm=\"{realm}\",service=\"e2e\"");
            return answer(StatusCode::UNAUTHORIZED, &[("www-authenticate", challenge)], "");
        }
        let root = format!("/v2/{REPOSITORY}/");
        let path = request.uri().path().strip_prefix(&root).unwrap_or_default();
        match path.split_once('/') {
            Some(("tags", "list")) => {
                let tags: Vec<&String> = self.manifests.keys().filter(|name| !name.contains(':')).collect();
                let body = json!({ "name": REPOSITORY, "tags": tags }).to_string();
                answer(StatusCode::OK, &[], body)
            }
            Some(("manifests", name)) => found(self.manifests.get(name), MANIFEST),
            Some(("blobs", digest)) => found(self.blobs.get(digest), "application/octet-stream"),
            Some(("referrers", _)) => {
                let media_type = "application/vnd.oci.image.index.v1+json";
                let body = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": [] }).to_string();
                answer(StatusCode::OK, &[("content-type", media_type.to_owned())], body)
            }
            _ => found(None, ""),
        }
    }
}

fn found(content: Option<&Bytes>, media_type: &str) -> Answer {
    match content {
        Some(content) => {
            let digest = format!("sha256:{}", sha256(content));
            let headers = [
                ("content-type", media_type.to_owned()),
                ("docker-content-digest", digest),
            ];
            answer(StatusCode::OK, &headers, content.clone())
        }
        None => answer(
            StatusCode::NOT_FOUND,
            &[],
            json!({ "errors": [{ "code": "MANIFEST_UNKNOWN" }] }).to_string(),
        ),
    }
}
