//! The text that a classic signature of cosign is of: which manifest somebody meant when he signed.
//!
//! As `cosign verify` does, we hold its digest against the manifest and believe no name in it: `docker-reference` says where the release lay
//! when it was signed, and a release that is copied to another registry with its signatures is as good there. What it is copied for is in its
//! files, which the digest covers. Source: `SimpleClaimVerifier` in cosign 3.1, and containers-signature(5).

use serde::Deserialize;

/// What cosign calls such a text; of other tools' texts nobody knows what they promise.
const TYPE: &str = "cosign container image signature";

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    type_: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The digest of the manifest that was signed, as it is written; none where the text is not such a one.
pub(super) fn signed_digest(payload: &[u8]) -> Option<String> {
    let Payload { critical } = serde_json::from_slice(payload).ok()?;
    (critical.type_ == TYPE).then_some(critical.image.digest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digest_is_read_from_the_texts_of_cosign_and_of_nobody_else() {
        let payload = |type_: &str| {
            let identity = json!({ "docker-reference": "registry.example.com/kaas/stacks" });
            let image = json!({ "docker-manifest-digest": "sha256:00" });
            json!({ "critical": { "identity": identity, "image": image, "type": type_ }, "optional": null }).to_string()
        };
        assert_eq!(signed_digest(payload(TYPE).as_bytes()).as_deref(), Some("sha256:00"));
        assert_eq!(signed_digest(payload("atomic container signature").as_bytes()), None);
        for text in ["", "{}", "[]", "null", &payload(TYPE)[1..], &"[".repeat(100_000)] {
            assert_eq!(signed_digest(text.as_bytes()), None);
        }
    }
}
