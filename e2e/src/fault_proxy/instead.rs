//! What the proxy itself says to whoever asks for certain paths: the API server does not see these requests, and all else is as it has it.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{
    Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

/// The answers, by path.
#[derive(Debug, Default)]
pub(super) struct Instead(Mutex<HashMap<String, Said>>);

/// A body that is called JSON, whatever it is.
#[derive(Clone, Debug)]
struct Said {
    encoding: Option<&'static str>,
    body: Bytes,
}

impl Instead {
    /// The later of two answers for a path replaces the earlier.
    pub(super) fn say(&self, path: &str, encoding: Option<&'static str>, body: Vec<u8>) {
        let said = Said {
            encoding,
            body: body.into(),
        };
        self.answers().insert(path.to_owned(), said);
    }

    /// The answer for a path, if there is one.
    pub(super) fn answer(&self, path: &str) -> Option<io::Result<Response<Bytes>>> {
        let Said { encoding, body } = self.answers().get(path)?.clone();
        let mut answer = Response::builder().header(CONTENT_TYPE, "application/json");
        if let Some(encoding) = encoding {
            answer = answer.header(CONTENT_ENCODING, encoding);
        }
        Some(answer.body(body).map_err(io::Error::other))
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<String, Said>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
