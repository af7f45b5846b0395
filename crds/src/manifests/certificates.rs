//! The certificates of the webhooks and of the hook server, for cert-manager to make and to renew.
//!
//! The authority in between lives long: were the certificate its own authority, each renewal would change what the API server trusts before the
//! Pods have the new files. Written as JSON: cert-manager's types are those of its own CRDs, which a test holds these against.

use serde_json::{Value, json};

use super::{hooks, webhooks};

/// Mounted into the Pods of the operator, as the Go operator has it.
const SECRET: &str = "cso-webhook-server-cert";
/// The Certificate of that name, whose authority cert-manager writes into the configuration.
pub(super) const CERTIFICATE: &str = "cso-serving-cert";
/// The same of the hook server. Cluster API reads the authority from there.
pub(super) const HOOK_SECRET: &str = "cso-hook-server-server-cert";
const HOOK_CERTIFICATE: &str = "cso-hook-server-cert";
const AUTHORITY: &str = "cso-webhook-ca";
const SELF_SIGNED: &str = "cso-selfsigned-issuer";
const ISSUER: &str = "cso-webhook-issuer";
const API_VERSION: &str = "cert-manager.io/v1";
/// Ten years.
const LIFE_OF_THE_AUTHORITY: &str = "87600h";

/// Who signs the authority, the authority, who signs with it, and the certificates of webhooks and hooks, in this order.
pub(super) fn certificates(namespace: &str) -> [Value; 5] {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": API_VERSION, "kind": kind,
            "metadata": { "name": name, "namespace": namespace },
            "spec": spec,
        })
    };
    let issuer = |name: &str| json!({ "group": "cert-manager.io", "kind": "Issuer", "name": name });
    let authority = json!({
        "isCA": true,
        "commonName": AUTHORITY,
        "duration": LIFE_OF_THE_AUTHORITY,
        "secretName": AUTHORITY,
        "issuerRef": issuer(SELF_SIGNED),
    });
    let certificate = |service: &str, secret: &str| {
        let host = format!("{service}.{namespace}.svc");
        json!({
            "secretName": secret,
            "dnsNames": [host, format!("{host}.cluster.local")],
            "issuerRef": issuer(ISSUER),
        })
    };
    [
        object("Issuer", SELF_SIGNED, json!({ "selfSigned": {} })),
        object("Certificate", AUTHORITY, authority),
        object("Issuer", ISSUER, json!({ "ca": { "secretName": AUTHORITY } })),
        object("Certificate", CERTIFICATE, certificate(webhooks::SERVICE, SECRET)),
        object(
            "Certificate",
            HOOK_CERTIFICATE,
            certificate(hooks::SERVICE, HOOK_SECRET),
        ),
    ]
}
