//! A registry of our own, which does what the specification says until a test tells it to do something else.

use std::{collections::BTreeMap, path::Path};

use release::{
    Digest,
    http::{Credentials, Network, NetworkOptions},
    source::oci::{OciOptions, OciSource},
};
use serde_json::{Value, json};

use crate::{
    source_contract::files_of,
    stub::{Asked, NAMES, Reply, Stub, authority, options},
};

/// The path of the repository in every stub.
pub(crate) const NAME: &str = "kaas/stacks";

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// One repository with one release.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) tags: Vec<String>,
    /// By tag.
    pub(crate) manifests: BTreeMap<String, String>,
    /// By digest.
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
}

/// The manifest of these files, as csctl makes it but for the media types of the files.
pub(crate) fn manifest(files: &BTreeMap<String, Vec<u8>>) -> Value {
    let layers: Vec<Value> = files
        .iter()
        .map(|(name, content)| {
            json!({
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                "digest": Digest::of(content).to_string(),
                "size": content.len(),
                "annotations": {"org.opencontainers.image.title": name}
            })
        })
        .collect();
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": "application/vnd.scs.cluster-stacks.v1",
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": Digest::of(b"{}").to_string(),
            "size": 2
        },
        "layers": layers
    })
}

impl Content {
    /// The release in this directory under this tag.
    pub(crate) fn of(directory: &Path, tag: &str) -> Self {
        let files = files_of(directory);
        let blobs = files
            .values()
            .map(|content| (Digest::of(content).to_string(), content.clone()));
        Self {
            tags: vec![tag.to_owned()],
            manifests: BTreeMap::from([(tag.to_owned(), manifest(&files).to_string())]),
            blobs: blobs.collect(),
        }
    }

    /// What a registry answers. Pages of tags are as long as they are asked for.
    pub(crate) fn answer(&self, asked: &Asked) -> Reply {
        let path = asked.target.strip_prefix(&format!("/v2/{NAME}/")).unwrap_or_default();
        if let Some(query) = path.strip_prefix("tags/list?") {
            return self.page(query);
        }
        if let Some(manifest) = path.strip_prefix("manifests/").and_then(|tag| self.manifests.get(tag)) {
            let digest = Digest::of(manifest.as_bytes()).to_string();
            return Reply::of(
                200,
                &[("Content-Type", MANIFEST), ("Docker-Content-Digest", &digest)],
                manifest,
            );
        }
        match path.strip_prefix("blobs/").and_then(|digest| self.blobs.get(digest)) {
            Some(blob) => Reply::of(200, &[], blob),
            None => Reply::of(404, &[], r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#),
        }
    }

    fn page(&self, query: &str) -> Reply {
        let parameter = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let length = parameter("n").unwrap().parse().unwrap();
        let after = |tag: &&String| parameter("last").is_none_or(|last| tag.as_str() > last);
        let mut tags: Vec<_> = self.tags.iter().filter(after).collect();
        tags.sort();
        let more = tags.len() > length;
        tags.truncate(length);
        let body = json!({"name": NAME, "tags": tags}).to_string();
        match tags.last().filter(|_| more) {
            Some(last) => {
                let link = format!("</v2/{NAME}/tags/list?n={length}&last={last}>; rel=\"next\"");
                Reply::of(200, &[("Link", &link)], body)
            }
            None => Reply::of(200, &[], body),
        }
    }
}

/// How a source asks for the repository of a stub.
pub(crate) fn options_of(stub: &Stub, credentials: Option<Credentials>) -> OciOptions {
    let url = stub.url("/");
    OciOptions {
        repository: format!("{}:{}/{NAME}", NAMES[0], url.port().unwrap()).parse().unwrap(),
        plain_http: url.scheme() == "http",
        credentials,
        certificates: Some(authority().to_vec()),
        token_hosts: Vec::new(),
    }
}

/// A source that reads the repository of a stub.
pub(crate) fn source_of(stub: &Stub, network: &Network, credentials: Option<Credentials>) -> OciSource {
    OciSource::new(network, options_of(stub, credentials)).unwrap()
}

/// A network that also reaches stubs without TLS.
pub(crate) fn plain_network() -> Network {
    Network::new(NetworkOptions {
        plain_http: true,
        ..options()
    })
    .unwrap()
}
