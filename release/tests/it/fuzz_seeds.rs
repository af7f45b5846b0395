//! Good and bad signatures as fuzzing starts from them, and whom it trusts: the keys that sign are known here alone.

use std::{env, fs, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use release::{Digest, SUMS};
use serde_json::{Value, json};

use crate::sigstore::{Key, Log, Signing, Sigstore, sign_with};

const FILES: [(&str, &[u8]); 4] = [
    ("cluster-addon-values.yaml", b"values"),
    ("docker-harbor-1-34-cluster-addon-v1.tgz", b"addon"),
    ("docker-harbor-1-34-cluster-class-v1.tgz", b"class"),
    ("metadata.yaml", b"metadata"),
];

fn list(files: &[(&str, &[u8])]) -> Vec<u8> {
    let lines = files
        .iter()
        .map(|(name, content)| format!("{}  {name}\n", Digest::of(content).hex()));
    lines.collect::<String>().into_bytes()
}

fn manifest(files: &[(&str, &[u8])]) -> Vec<u8> {
    let layers = files.iter().map(|(name, content)| {
        let annotations = json!({ "org.opencontainers.image.title": name });
        let digest = Digest::of(content).to_string();
        json!({ "mediaType": "text/plain", "digest": digest, "size": content.len(), "annotations": annotations })
    });
    let layers: Vec<_> = layers.collect();
    let text = json!({ "artifactType": "application/vnd.scs.cluster-stacks.v1", "layers": layers });
    text.to_string().into_bytes()
}

fn evidence(statement: (&str, &[u8]), of: &str, proof: &Value) -> Vec<u8> {
    let (place, bytes) = statement;
    let mut evidence = json!({ "manifest": null, "sums": null, "is_cut": false });
    evidence[place] = json!(BASE64.encode(bytes));
    evidence["signatures"] = json!([{ "of": of, "proof": proof }]);
    evidence.to_string().into_bytes()
}

fn simple_signing(key: &Key, manifest: &[u8]) -> Value {
    let critical = json!({
        "identity": { "docker-reference": "registry.example.com/kaas/stacks" },
        "image": { "docker-manifest-digest": Digest::of(manifest).to_string() },
        "type": "cosign container image signature",
    });
    let payload = json!({ "critical": critical, "optional": null }).to_string();
    let signature = BASE64.encode(key.sign(payload.as_bytes()));
    json!({ "SimpleSigning": { "payload": BASE64.encode(payload), "signature": signature } })
}

/// Whom to trust, and what is no such thing.
fn secrets(root: &Value, key: &Key, other: &Key) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = |json: &Value| json.to_string().into_bytes();
    vec![
        ("fuzz/seeds/keys/good", key.pem().into_bytes()),
        (
            "fuzz/seeds/keys/good-two",
            [key.pem(), other.pem()].concat().into_bytes(),
        ),
        (
            "fuzz/seeds/keys/bad-private",
            key.pem().replace("PUBLIC", "ENCRYPTED SIGSTORE PRIVATE").into_bytes(),
        ),
        ("fuzz/seeds/keys/bad-password", b"gate-of-the-harbor-1834".to_vec()),
        ("fuzz/seeds/root/good", bytes(root)),
        (
            "fuzz/seeds/root/bad-password",
            b"{\"password\": \"gate-of-the-harbor-1834\"}".to_vec(),
        ),
        (
            "fuzz/seeds/root/bad-certificate",
            bytes(
                &json!({ "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", "tlogs": "gate-of-the-harbor-1834" }),
            ),
        ),
    ]
}

/// All files, by their paths in the repository.
fn generated() -> Vec<(&'static str, Vec<u8>)> {
    let (ours, others) = (Sigstore::named("fuzzing"), Sigstore::named("others"));
    let (key, other) = (Key::named("fuzzing"), Key::named("others"));
    // Signs, and nobody trusts it. The others are trusted by somebody, and sign nothing.
    let (strangers, stranger) = (Sigstore::named("strangers"), Key::named("stranger"));
    let (list, manifest) = (list(&FILES), manifest(&FILES));
    let other_list = self::list(&FILES[1..]);
    let detached = |key: &Key, list: &[u8]| json!({ "Detached": BASE64.encode(key.sign(list)) });
    let of_list = || Signing::of(&list);
    let in_second_log = Signing {
        log: Log::Second,
        ..of_list()
    };
    let bundle = |bundle: &Value| json!({ "Bundle": BASE64.encode(bundle.to_string()) });
    let by_key = sign_with(&key, &of_list());
    let manifest_by_key = sign_with(&key, &Signing::of(&manifest).stated());
    let sums = ("sums", list.as_slice());
    let bytes = |json: &Value| json.to_string().into_bytes();
    let mut files = secrets(&ours.trusted_root(), &key, &other);
    files.extend([
        ("release/src/trust/fuzzing/sha256sums.txt", list.clone()),
        ("release/src/trust/fuzzing/manifest.json", manifest.clone()),
        ("release/src/trust/fuzzing/trusted.pub", key.pem().into_bytes()),
        ("release/src/trust/fuzzing/other.pub", other.pem().into_bytes()),
        (
            "release/src/trust/fuzzing/trusted_root.json",
            bytes(&ours.trusted_root()),
        ),
        (
            "release/src/trust/fuzzing/other_root.json",
            bytes(&others.trusted_root()),
        ),
        ("release/src/trust/fuzzing/signed-by-key.json", bytes(&by_key)),
        (
            "release/src/trust/fuzzing/signed-by-identity.json",
            bytes(&ours.sign(&of_list())),
        ),
        ("fuzz/seeds/sums/good", list.clone()),
        ("fuzz/seeds/sums/bad-incomplete", other_list.clone()),
        (
            "fuzz/seeds/sums/bad-comment",
            [list.clone(), format!("# {SUMS}\n").into_bytes()].concat(),
        ),
        (
            "fuzz/seeds/evidence/good-detached",
            evidence(sums, "Sums", &detached(&key, &list)),
        ),
        (
            "fuzz/seeds/evidence/good-bundle",
            evidence(sums, "Sums", &bundle(&by_key)),
        ),
        (
            "fuzz/seeds/evidence/good-keyless",
            evidence(sums, "Sums", &bundle(&ours.sign(&of_list()))),
        ),
        (
            "fuzz/seeds/evidence/good-simple-signing",
            evidence(("manifest", &manifest), "Manifest", &simple_signing(&key, &manifest)),
        ),
        (
            "fuzz/seeds/evidence/good-statement",
            evidence(("manifest", &manifest), "Manifest", &bundle(&manifest_by_key)),
        ),
        (
            "fuzz/seeds/evidence/bad-other-key",
            evidence(sums, "Sums", &detached(&stranger, &list)),
        ),
        (
            "fuzz/seeds/evidence/bad-other-list",
            evidence(("sums", &other_list), "Sums", &detached(&key, &other_list)),
        ),
        ("fuzz/seeds/bundle/good-key", bytes(&by_key)),
        (
            "fuzz/seeds/bundle/good-key-statement",
            bytes(&sign_with(&key, &of_list().stated())),
        ),
        ("fuzz/seeds/bundle/good-keyless", bytes(&ours.sign(&of_list()))),
        (
            "fuzz/seeds/bundle/good-keyless-statement",
            bytes(&ours.sign(&of_list().stated())),
        ),
        (
            "fuzz/seeds/bundle/good-keyless-timestamp",
            bytes(&ours.sign(&in_second_log)),
        ),
        (
            "fuzz/seeds/bundle/bad-other-key",
            bytes(&sign_with(&stranger, &of_list())),
        ),
        ("fuzz/seeds/bundle/bad-other-root", bytes(&strangers.sign(&of_list()))),
    ]);
    files
}

#[test]
fn seeds_of_signatures_are_what_the_signers_of_tests_sign() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let is_wanted = env::var_os("STACKWRIGHT_REGENERATE").is_some();
    for (path, content) in generated() {
        let file = repository.join(path);
        if is_wanted {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &content).unwrap();
        }
        let found = fs::read(&file).unwrap_or_default();
        assert!(found == content, "{path} is another one: run cargo xtask regenerate");
    }
}
