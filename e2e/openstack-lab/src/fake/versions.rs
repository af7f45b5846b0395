//! What the services say of their versions to clients that look around first.

use serde_json::{Value, json};

use super::Shared;

/// Keystone's, at its root.
pub(super) fn identity(shared: &Shared) -> Value {
    json!({ "versions": { "values": [identity_version(shared)] } })
}

/// Keystone's, at `/v3`.
pub(super) fn identity_v3(shared: &Shared) -> Value {
    json!({ "version": identity_version(shared) })
}

fn identity_version(shared: &Shared) -> Value {
    json!({
        "id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
        "links": [{ "rel": "self", "href": format!("{}/", shared.keystone) }],
        "media-types": [{ "base": "application/json", "type": "application/vnd.openstack.identity-v3+json" }],
    })
}

/// Glance's, whose links leave the prefix out.
pub(super) fn images(shared: &Shared) -> Value {
    let glance = shared.glance.strip_suffix("/image").unwrap_or(&shared.glance);
    let versions = [("v2.17", "CURRENT"), ("v2.16", "SUPPORTED"), ("v2.0", "SUPPORTED")];
    let versions = versions.map(|(id, status)| {
        json!({ "id": id, "status": status, "links": [{ "rel": "self", "href": format!("{glance}/v2/") }] })
    });
    json!({ "versions": versions })
}
