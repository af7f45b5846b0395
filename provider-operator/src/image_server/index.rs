//! Which images there are, as a page for people and as JSON for programs. Text out, nothing in but what is published.

use std::fmt::Write as _;

use jiff::Timestamp;
use provider_filestore::Published;
use serde::Serialize;
use serde_json::json;

use super::path::{path_of, sums_of};

/// One image.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    store: String,
    name: String,
    /// Where its bytes are on this server.
    path: String,
    /// Where its digest is.
    checksum_path: String,
    bytes: u64,
    sha256: String,
    changed: Timestamp,
}

impl Row {
    pub(super) fn of(store: &str, image: Published) -> Self {
        let Published {
            name,
            bytes,
            sha256,
            changed,
        } = image;
        Self {
            store: store.to_owned(),
            path: path_of(store, &name),
            checksum_path: sums_of(store, &name),
            name,
            bytes,
            sha256,
            changed,
        }
    }
}

/// `{"images": […]}`, each with store, name, path, checksumPath, bytes, sha256 and changed.
pub(super) fn json(rows: &[Row]) -> String {
    format!("{:#}\n", json!({ "images": rows }))
}

/// The same as a table.
pub(super) fn page(rows: &[Row]) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Node images</title>\n\
         <style>body { font-family: sans-serif } td, th { padding: .2em 1em; text-align: left } code { font-size: 80% }</style>\n\
         <h1>Node images</h1>\n",
    );
    if rows.is_empty() {
        page += "<p>No image is published yet.</p>\n";
        return page;
    }
    page += "<table>\n<tr><th>Store<th>Image<th>Bytes<th>SHA-256\n";
    for row in rows {
        // Nothing can fail that is written into a text.
        let _ = writeln!(
            page,
            "<tr><td>{}<td><a href=\"{}\">{}</a><td>{}<td><a href=\"{}\"><code>{}</code></a>",
            text(&row.store),
            row.path,
            text(&row.name),
            row.bytes,
            row.checksum_path,
            row.sha256,
        );
    }
    page + "</table>\n<p>Programs find the same as JSON here.</p>\n"
}

/// A text that is none of HTML.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
