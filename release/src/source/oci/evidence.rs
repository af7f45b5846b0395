//! The signatures of a manifest, where cosign puts them: under a tag made from its digest, and as what refers to it. Finds, and believes
//! nothing.
//!
//! Facts: the "cosign signature specification" (`sha256-<digest>.sig`, simple signing), and the OCI distribution specification 1.1 ("listing
//! referrers", and the tag `sha256-<digest>` for registries that cannot).

use serde::Deserialize;

use super::{MAX_PAGES_OF_REFERRERS, OciError, Shared, Wanted, manifest, tags, tags::Next};
use crate::{
    Digest, Evidence,
    http::{Redirects, StatusCode},
    trust::{Bytes, MAX_PAYLOAD, MAX_SIGNATURE, MAX_SIGNATURES, Proof, Statement, bundle::MAX_BUNDLE_BYTES},
};

/// Media types of manifests, as they are asked for.
const MANIFEST: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
/// That of a list of manifests.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// That of a text that cosign signs; its signature is an annotation.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// What cosign calls an artifact with such texts when it attaches it as a referrer.
const CLASSIC_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// What those of bundles begin with, in all their versions.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// Of what a bundle speaks that is a signature; others are attestations of other matters.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

#[derive(Deserialize)]
struct Index {
    manifests: Option<Vec<Referrer>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Referrer {
    digest: String,
    artifact_type: Option<String>,
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Manifest {
    layers: Option<Vec<Layer>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Layer {
    media_type: String,
    digest: String,
    size: u64,
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "dev.cosignproject.cosign/signature")]
    signature: Option<String>,
    #[serde(rename = "dev.sigstore.bundle.predicateType")]
    predicate: Option<String>,
}

/// One search for signatures.
struct Search<'shared> {
    shared: &'shared Shared,
    /// The tag of the release, for messages.
    tag: String,
    evidence: &'shared mut Evidence,
    /// No more fit in.
    is_full: bool,
    /// The first thing that went wrong. Whoever may write into the registry can put a bad signature beside a good one.
    trouble: Option<OciError>,
}

impl Shared {
    /// Adds the signatures of a manifest, and the manifest, by digest.
    pub(super) async fn find<Tag: ToString>(
        &self,
        tag: &Tag,
        manifest: Digest,
        evidence: &mut Evidence,
    ) -> Result<(), OciError> {
        let mut search = Search {
            shared: self,
            tag: tag.to_string(),
            evidence,
            is_full: false,
            trouble: None,
        };
        let classic = search.classic(manifest).await;
        search.pass(classic);
        let referrers = search.referrers(manifest).await;
        search.pass(referrers);
        match search.trouble.take() {
            Some(error) if search.evidence.is_empty() => return Err(error),
            Some(error) => {
                let error = self.registry.without_secrets(&error.to_string());
                tracing::debug!(error, repository = %self.repository(), "unable to read every signature of a release");
                search.evidence.cut();
            }
            None => {}
        }
        if !search.evidence.is_empty() {
            let signed = search.manifest(&manifest.to_string(), Some(manifest)).await?;
            let signed = signed.ok_or_else(|| search.wrong("their release is gone"))?;
            search.evidence.state(Statement::Manifest, signed);
        }
        Ok(())
    }
}

impl Search<'_> {
    /// Goes on whatever came of a part of the search.
    fn pass(&mut self, part: Result<(), OciError>) {
        if let Err(error) = part {
            self.trouble.get_or_insert(error);
        }
    }

    async fn classic(&mut self, manifest: Digest) -> Result<(), OciError> {
        let tag = format!("sha256-{}.sig", manifest.hex());
        match self.manifest(&tag, None).await? {
            Some(bytes) => self.layers(&bytes).await,
            None => Ok(()),
        }
    }

    async fn referrers(&mut self, manifest: Digest) -> Result<(), OciError> {
        let mut referrers = Vec::new();
        let mut path = format!("referrers/{manifest}");
        for page in 0.. {
            let Some((bytes, next)) = self.page(&path).await? else {
                let tag = format!("manifests/sha256-{}", manifest.hex());
                if let Some((bytes, _)) = self.page(&tag).await? {
                    referrers.extend(self.index(&bytes)?);
                }
                break;
            };
            referrers.extend(self.index(&bytes)?);
            match next {
                Next::Query(query) if page + 1 < MAX_PAGES_OF_REFERRERS => {
                    path = format!("referrers/{manifest}?{query}");
                }
                Next::End => break,
                Next::Query(_) | Next::Lost => {
                    self.evidence.cut();
                    break;
                }
            }
        }
        let mut wanted = referrers.into_iter().filter(Referrer::is_signature);
        for referrer in wanted.by_ref().take(MAX_SIGNATURES) {
            if self.is_full {
                break;
            }
            let part = self.referrer(&referrer.digest).await;
            self.pass(part);
        }
        if wanted.next().is_some() {
            self.evidence.cut();
        }
        Ok(())
    }

    async fn referrer(&mut self, digest: &str) -> Result<(), OciError> {
        let parsed: Digest = digest.parse().map_err(|_| self.wrong("a digest is not sha256"))?;
        match self.manifest(digest, Some(parsed)).await? {
            Some(bytes) => self.layers(&bytes).await,
            // What was taken away since it was listed is no signature any more.
            None => Ok(()),
        }
    }

    /// A page of a list of manifests; none where the registry has no such list.
    async fn page(&self, path: &str) -> Result<Option<(Vec<u8>, Next)>, OciError> {
        let wanted = || Wanted::Signatures(self.tag.clone());
        let asked = self
            .shared
            .registry
            .get(wanted(), path, INDEX, Redirects::SameHost)
            .await;
        let response = match asked {
            // What the specification did not have before 1.1 is refused in several ways.
            Err(OciError::Status { status, .. })
                if status.is_client_error() || status == StatusCode::NOT_IMPLEMENTED =>
            {
                return Ok(None);
            }
            response => response?,
        };
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let next = tags::next(response.headers());
        let bytes = self
            .shared
            .registry
            .bytes(wanted(), response, manifest::MAX_BYTES)
            .await?;
        Ok(Some((bytes.into(), next)))
    }

    fn index(&self, bytes: &[u8]) -> Result<Vec<Referrer>, OciError> {
        referrers_in(bytes).ok_or_else(|| self.wrong("their list is no index of manifests"))
    }

    /// A manifest by tag, or by digest; none if it is not there.
    async fn manifest(&self, reference: &str, digest: Option<Digest>) -> Result<Option<Vec<u8>>, OciError> {
        let wanted = || Wanted::Signatures(self.tag.clone());
        let path = format!("manifests/{reference}");
        let response = self
            .shared
            .registry
            .get(wanted(), &path, MANIFEST, Redirects::SameHost)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let bytes = self
            .shared
            .registry
            .bytes(wanted(), response, manifest::MAX_BYTES)
            .await?;
        if digest.is_some_and(|digest| digest != Digest::of(&bytes)) {
            return Err(self.wrong("a manifest has another digest than it was asked for by"));
        }
        Ok(Some(bytes.into()))
    }

    /// Takes the signatures of a manifest of signatures.
    async fn layers(&mut self, bytes: &[u8]) -> Result<(), OciError> {
        let layers =
            layers_in(bytes).ok_or_else(|| self.wrong("their manifest is not one of the OCI specification"))?;
        for layer in layers {
            let Some((limit, is_bundle)) = layer.signature() else {
                continue;
            };
            if self.is_full || self.evidence.count() == MAX_SIGNATURES {
                self.evidence.cut();
                return Ok(());
            }
            if !layer.is_within(limit) {
                self.evidence.cut();
                continue;
            }
            let signature = layer.annotations.and_then(|annotations| annotations.signature);
            let bytes = match self.blob(&layer.digest, limit).await {
                Ok(bytes) => Bytes(bytes),
                Err(error) => {
                    self.pass(Err(error));
                    continue;
                }
            };
            let proof = match (is_bundle, signature) {
                (true, _) => Proof::Bundle(bytes),
                (false, signature) => Proof::SimpleSigning {
                    payload: bytes,
                    signature: signature.unwrap_or_default(),
                },
            };
            self.is_full = !self.evidence.add(Statement::Manifest, proof);
        }
        Ok(())
    }

    async fn blob(&self, digest: &str, limit: usize) -> Result<Vec<u8>, OciError> {
        let wanted = || Wanted::Signatures(self.tag.clone());
        let digest: Digest = digest.parse().map_err(|_| self.wrong("a digest is not sha256"))?;
        let path = format!("blobs/{digest}");
        let response = self
            .shared
            .registry
            .get(wanted(), &path, "*/*", Redirects::Anywhere)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(self.wrong("one is listed that is not there"));
        }
        let bytes = self.shared.registry.bytes(wanted(), response, limit).await?;
        if Digest::of(&bytes) != digest {
            return Err(self.wrong("one has another digest than its manifest says"));
        }
        Ok(bytes.into())
    }

    fn wrong(&self, problem: &'static str) -> OciError {
        OciError::Signatures {
            repository: self.shared.repository(),
            tag: self.tag.clone(),
            problem,
        }
    }
}

/// What an index lists.
pub(super) fn referrers_in(index: &[u8]) -> Option<Vec<Referrer>> {
    let index: Index = serde_json::from_slice(index).ok()?;
    Some(index.manifests.unwrap_or_default())
}

/// The layers of a manifest of signatures.
pub(super) fn layers_in(manifest: &[u8]) -> Option<Vec<Layer>> {
    let manifest: Manifest = serde_json::from_slice(manifest).ok()?;
    Some(manifest.layers.unwrap_or_default())
}

impl Layer {
    /// Most bytes of the signature that this is, and whether it is a bundle; none where it is something else.
    pub(super) fn signature(&self) -> Option<(usize, bool)> {
        match self.media_type.as_str() {
            SIMPLE_SIGNING => Some((MAX_PAYLOAD, false)),
            bundle if bundle.starts_with(BUNDLE) => Some((MAX_BUNDLE_BYTES, true)),
            _ => None,
        }
    }

    /// Whether it says of itself that it is no larger than it may be.
    pub(super) fn is_within(&self, limit: usize) -> bool {
        let annotated = self
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.signature.as_ref());
        self.size <= limit as u64 && annotated.is_none_or(|text| text.len() <= MAX_SIGNATURE)
    }
}

impl Referrer {
    /// Whether this is a signature, as far as the list tells.
    pub(super) fn is_signature(&self) -> bool {
        let predicate = self
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.predicate.as_deref());
        match self.artifact_type.as_deref() {
            Some(CLASSIC_ARTIFACT) => true,
            Some(bundle) if bundle.starts_with(BUNDLE) => predicate.is_none_or(|predicate| predicate == SIGNED),
            _ => false,
        }
    }
}
