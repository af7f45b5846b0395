//! A server for tokens that a real registry believes: it signs what the specification of tokens asks for.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::stub::{Asked, Reply};

/// Signs tokens, in the name `stub`, for the registry `stub`.
pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    /// As it stands in the header of a token.
    certificate: String,
}

impl Issuer {
    /// One with a new key, whose certificate is written to `path` for the registry.
    pub(crate) fn new(path: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap();
        fs::write(path, certificate.pem()).unwrap();
        Self {
            key: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der()).unwrap(),
            certificate: BASE64_STANDARD.encode(certificate.der()),
        }
    }

    /// A token for the right that it is asked for, if that is to pull from one repository, and for nothing if not.
    pub(crate) fn answer(&self, asked: &Asked) -> Reply {
        let scope = asked
            .target
            .split("scope=")
            .nth(1)
            .unwrap_or_default()
            .replace("%3A", ":")
            .replace("%2F", "/");
        let name = scope
            .strip_prefix("repository:")
            .and_then(|rest| rest.strip_suffix(":pull"));
        let access: Vec<Value> = name
            .map(|name| json!({"type": "repository", "name": name, "actions": ["pull"]}))
            .into_iter()
            .collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({
            "iss": "stub", "sub": "", "aud": "stub", "jti": "1", "access": access,
            "exp": now + 300, "nbf": now - 60, "iat": now
        });
        let head = json!({"typ": "JWT", "alg": "ES256", "x5c": [self.certificate]});
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(&claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        let token = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        Reply::of(200, &[], json!({"access_token": token, "expires_in": 300}).to_string())
    }
}
