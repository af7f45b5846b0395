//! How the services say things: JSON where all is well, and pages or Keystone's errors where it is not.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

/// What goes out.
pub(super) type Answer = Response<Full<Bytes>>;

/// Why somebody does not get what he asked for.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) words: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self {
            status,
            words: words.into(),
        }
    }

    pub(super) fn conflict(words: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, words)
    }

    pub(super) fn forbidden(words: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, words)
    }

    pub(super) fn bad(words: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, words)
    }

    pub(super) fn not_found(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("Failed to find image {id} to delete, or to show"),
        )
    }

    /// As Glance tells it to whoever accepts everything: a page.
    pub(super) fn page(&self) -> Answer {
        let Self { status, words } = self;
        let body = format!(
            "<html>\n <head>\n  <title>{status}</title>\n </head>\n <body>\n  <h1>{status}</h1>\n  {}<br /><br />\n\n\n\n </body>\n</html>",
            escaped(words)
        );
        numbered(with(*status, "text/html; charset=UTF-8", body))
    }

    /// As Glance tells it to whoever does not say what he accepts.
    pub(super) fn plain(&self) -> Answer {
        let Self { status, words } = self;
        let body = format!("{status}\n\n{words}\n\n   ");
        numbered(with(*status, "text/plain; charset=UTF-8", body))
    }

    /// As Keystone tells it.
    pub(super) fn error(&self) -> Answer {
        let Self { status, words } = self;
        let title = status.canonical_reason().unwrap_or_default();
        json_answer(
            *status,
            &json!({ "error": { "code": status.as_u16(), "message": words, "title": title } }),
        )
    }
}

/// The name of a request, for people who look it up in the logs of the service.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");

fn numbered(mut answer: Answer) -> Answer {
    let id = HeaderValue::from_static("req-00000000-0000-4000-8000-000000000000");
    answer.headers_mut().insert(REQUEST_ID, id);
    answer
}

pub(super) fn json_answer(status: StatusCode, body: &Value) -> Answer {
    with(status, "application/json", body.to_string())
}

pub(super) fn ok(body: &Value) -> Answer {
    json_answer(StatusCode::OK, body)
}

pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

pub(super) fn with(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

fn escaped(words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    words.replace('\'', "&#x27;").replace('"', "&quot;")
}
