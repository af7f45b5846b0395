//! What a request may meet. None of it is anything that networks, balancers and services do not do.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::client::{Body, whole};

/// What a request meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing is done, and the connection is closed instead of an answer.
    Sever,
    /// Once so many bytes of its body were passed on, both connections are closed.
    CutRequest(u64),
    /// So many bytes of its body are passed on, and no more. Whoever sent it is cut off, and the service waits for the rest until everything is let go.
    Strand(u64),
    /// So many bytes of its body are passed on, and no more until everything is let go.
    StallRequest(u64),
    /// So many bytes of the answer's body are passed back, and then the connection is closed.
    CutAnswer(u64),
    /// Its work is done, and the answer comes when everything is let go.
    HoldAnswer,
    /// Its work is done, and the connection is closed instead of an answer.
    LoseAnswer,
    /// Nothing is done, and the answer comes when everything is let go: as if it had been asked then.
    Hang,
    /// Nothing is done, and all that was sent is sent back with this status, as pages for programmers do: the token, and the body where it is text.
    Echo(StatusCode),
    /// Nothing is done, and this is answered.
    Answer {
        /// Whether all of its body is read before; else nothing of it is.
        hears: bool,
        /// The status.
        status: StatusCode,
        /// Names and values of headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
}

impl Trouble {
    /// An answer of somebody on the way, before anything of the body is read. Headers that are none are left out.
    pub fn answer(status: StatusCode, headers: &[(&str, &str)], body: &str) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self::Answer {
            hears: false,
            status,
            headers: headers.iter().map(owned).collect(),
            body: body.to_owned(),
        }
    }

    /// The same answer once all of the body is read. Others are as they were.
    #[must_use]
    pub fn once_heard(mut self) -> Self {
        if let Self::Answer { hears, .. } = &mut self {
            *hears = true;
        }
        self
    }

    /// How many bytes of the request's body pass.
    pub(super) fn passes(&self) -> Option<u64> {
        match self {
            Self::CutRequest(bytes) | Self::Strand(bytes) | Self::StallRequest(bytes) => Some(*bytes),
            _ => None,
        }
    }
}

/// Which requests meet it.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) method: Method,
    pub(super) part: String,
    pub(super) left: usize,
    pub(super) trouble: Trouble,
}

impl Rule {
    pub(super) fn is_meant(&self, method: &Method, target: &str) -> bool {
        self.left > 0 && self.method == *method && target.contains(&self.part)
    }
}

pub(super) fn answer(status: StatusCode, headers: &[(String, String)], body: String) -> Response<Body> {
    let mut answer = Response::new(whole(Bytes::from(body)));
    *answer.status_mut() = status;
    let parsed = headers.iter().filter_map(|(name, value)| {
        let name = name.parse::<HeaderName>().ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    *answer.headers_mut() = parsed.collect::<HeaderMap>();
    answer
}
