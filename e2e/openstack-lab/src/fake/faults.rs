//! What a test has the services do instead of their work, and what they were asked. It knows paths, and nothing of what they mean.

use std::{io, sync::Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;

use super::answers::Answer;
use crate::lock;

/// One request, and what came of it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: Method,
    /// Path and query, without the prefix of the service.
    pub target: String,
    /// What `Content-Length` said.
    pub content_length: Option<u64>,
    /// Whether the body came in chunks.
    pub chunked: bool,
    /// Bytes of an image that came, so far.
    pub received: u64,
    /// The status of the answer; none until there is one.
    pub status: Option<StatusCode>,
}

/// What is done instead of the work.
#[derive(Clone, Debug)]
enum Instead {
    /// Nothing, and no answer.
    Hang,
    /// This, before any body was read.
    Answer {
        status: StatusCode,
        headers: HeaderMap,
        body: String,
    },
    /// The work, without telling.
    Lose,
}

#[derive(Clone, Debug)]
struct Rule {
    method: Method,
    part: String,
    left: usize,
    instead: Instead,
}

/// What is to be done with one request.
#[derive(Debug)]
pub(super) enum Verdict {
    Serve,
    Hang,
    Answer(Box<Answer>),
    Lose,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: Mutex<Vec<Rule>>,
    asked: Mutex<Vec<Asked>>,
}

impl Faults {
    /// What is to be done with a request, which is counted with that.
    pub(super) fn judge(&self, method: &Method, target: &str) -> Verdict {
        let mut rules = lock(&self.rules);
        let rule = rules.iter_mut().find(|rule| rule.is_meant(method, target));
        let Some(rule) = rule else {
            return Verdict::Serve;
        };
        rule.left = rule.left.saturating_sub(1);
        match rule.instead.clone() {
            Instead::Hang => Verdict::Hang,
            Instead::Lose => Verdict::Lose,
            Instead::Answer { status, headers, body } => {
                let mut answer = Response::new(Full::new(Bytes::from(body)));
                *answer.status_mut() = status;
                *answer.headers_mut() = headers;
                Verdict::Answer(Box::new(answer))
            }
        }
    }

    pub(super) fn hang(&self, method: Method, part: &str, times: usize) {
        self.add(method, part, times, Instead::Hang);
    }

    pub(super) fn lose(&self, method: Method, part: &str, times: usize) {
        self.add(method, part, times, Instead::Lose);
    }

    pub(super) fn answer(
        &self,
        method: Method,
        part: &str,
        status: StatusCode,
        headers: &[(&str, &str)],
        body: &str,
        times: usize,
    ) {
        let parsed = headers.iter().filter_map(|(name, value)| {
            let name = name.parse::<HeaderName>().ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
        let instead = Instead::Answer {
            status,
            headers: parsed.collect(),
            body: body.to_owned(),
        };
        self.add(method, part, times, instead);
    }

    fn add(&self, method: Method, part: &str, left: usize, instead: Instead) {
        let part = part.to_owned();
        lock(&self.rules).push(Rule {
            method,
            part,
            left,
            instead,
        });
    }

    pub(super) fn relent(&self) {
        lock(&self.rules).clear();
    }

    /// Takes note of a request; its number is what later notes go by.
    pub(super) fn note(&self, method: &Method, target: &str, headers: &HeaderMap) -> usize {
        let text = |name: HeaderName| headers.get(name)?.to_str().ok();
        let mut asked = lock(&self.asked);
        asked.push(Asked {
            method: method.clone(),
            target: target.to_owned(),
            content_length: text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok()),
            chunked: text(header::TRANSFER_ENCODING).is_some_and(|coding| coding.contains("chunked")),
            received: 0,
            status: None,
        });
        asked.len() - 1
    }

    pub(super) fn received(&self, number: usize, bytes: usize) {
        if let Some(asked) = lock(&self.asked).get_mut(number) {
            asked.received += bytes as u64;
        }
    }

    pub(super) fn answered(&self, number: usize, status: StatusCode) {
        if let Some(asked) = lock(&self.asked).get_mut(number) {
            asked.status = Some(status);
        }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        lock(&self.asked).clone()
    }

    pub(super) fn lost() -> io::Error {
        io::Error::other("the answer is lost")
    }
}

impl Rule {
    fn is_meant(&self, method: &Method, target: &str) -> bool {
        self.left > 0 && self.method == *method && target.contains(&self.part)
    }
}
