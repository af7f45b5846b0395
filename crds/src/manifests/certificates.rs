//! The certificate of the webhooks, for cert-manager to make and to renew.
//!
//! The authority in between lives long: were the certificate its own authority, each renewal would change what the API server trusts before the
//! Pods have the new files. Written as JSON: cert-manager's types are those of its own CRDs, which a test holds these against.

use serde_json::{Value, json};

use super::webhooks::SERVICE;

/// Mounted into the Pods of the operator, as the Go operator has it.
const SECRET: &str = "cso-webhook-server-cert";
/// The Certificate of that name, whose authority cert-manager writes into the configuration.
pub(super) const CERTIFICATE: &str = "cso-serving-cert";
const AUTHORITY: &str = "cso-webhook-ca";
const SELF_SIGNED: &str = "cso-selfsigned-issuer";
const ISSUER: &str = "cso-webhook-issuer";
const API_VERSION: &str = "cert-manager.io/v1";
/// Ten years.
const LIFE_OF_THE_AUTHORITY: &str = "87600h";

/// Who signs the authority, the authority, who signs with it, and the certificate, in this order.
pub(super) fn webhook_certificates(namespace: &str) -> [Value; 4] {
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
    let host = format!("{SERVICE}.{namespace}.svc");
    let certificate = json!({
        "secretName": SECRET,
        "dnsNames": [host, format!("{host}.cluster.local")],
        "issuerRef": issuer(ISSUER),
    });
    [
        object("Issuer", SELF_SIGNED, json!({ "selfSigned": {} })),
        object("Certificate", AUTHORITY, authority),
        object("Issuer", ISSUER, json!({ "ca": { "secretName": AUTHORITY } })),
        object("Certificate", CERTIFICATE, certificate),
    ]
}
