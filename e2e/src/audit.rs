//! The API server's audit log as data: what was asked, by whom, with which outcome.
//!
//! The log is the API server's word, not the client's: a test that counts writes counts what was really done.

use std::{
    io::SeekFrom,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use jiff::Timestamp;
use kube::Client;
use memchr::memmem::{find, rfind};
use serde::Deserialize;
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
};

use crate::{control_plane::get, eventually};

/// The API server writes an event while it answers, so this is never waited for on a healthy machine.
const SETTLE_DEADLINE: Duration = Duration::from_secs(30);
/// A path that every API server answers, with a query that nobody else uses.
const MARKER: &str = "/version?e2e-audit-marker=";

/// Makes markers of one process different; the process id makes those of several processes so.
static NEXT_MARKER: AtomicU64 = AtomicU64::new(0);

/// The log of one API server.
#[derive(Clone)]
pub struct AuditLog {
    path: PathBuf,
    client: Client,
}

/// A moment in the log.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Where in the file the marker request ends.
    offset: u64,
    /// When it arrived. A request whose effect was seen already may still be without its line.
    received: Timestamp,
}

impl AuditLog {
    /// The log at `path` of the API server that `client` talks to.
    pub fn new(path: PathBuf, client: Client) -> Self {
        Self { path, client }
    }

    /// Now: everything that arrived so far lies before this mark.
    pub async fn mark(&self) -> Result<Mark> {
        // The line of what is asked for now comes behind all that is there: a log of many journeys is not read from its beginning.
        let (begin, text) = self.settled(self.end()?.offset).await?;
        let line = text.lines().next_back().context("the marker has no line")?;
        Ok(Mark {
            offset: begin + text.len() as u64,
            received: parse(line)?.request_received_timestamp,
        })
    }

    /// Now, without waiting for the lines of what was answered already: for those who look for what somebody does who has not begun.
    pub fn end(&self) -> Result<Mark> {
        let what = || format!("unable to find {}", self.path.display());
        Ok(Mark {
            offset: std::fs::metadata(&self.path).with_context(what)?.len(),
            received: Timestamp::MIN,
        })
    }

    /// Everything since the start of the API server.
    pub async fn all(&self) -> Result<AuditEvents> {
        let start = Mark {
            offset: 0,
            received: Timestamp::MIN,
        };
        self.since(start).await
    }

    /// What was asked after `mark`, in the order of the log, complete up to now: each request that was answered
    /// before this call is in it. A watch counts from its beginning.
    pub async fn since(&self, mark: Mark) -> Result<AuditEvents> {
        self.told(mark, "").await
    }

    /// The same, of one user only: of a log that many write to, most is not even parsed.
    pub async fn since_by(&self, mark: Mark, user: &str) -> Result<AuditEvents> {
        let events = self.told(mark, user).await?;
        Ok(events.filter(|event| event.user == user))
    }

    /// The events since `mark` whose lines contain a word: what is in no such line is not even parsed.
    pub async fn told(&self, mark: Mark, word: &str) -> Result<AuditEvents> {
        let (_, text) = self.settled(mark.offset).await?;
        let events: Vec<AuditEvent> = text
            .lines()
            .filter(|line| find(line.as_bytes(), word.as_bytes()).is_some())
            .filter_map(|line| parse(line).map(Line::into_event).transpose())
            .collect::<Result<_>>()?;
        Ok(AuditEvents { events }.filter(|event| event.received >= mark.received))
    }

    /// The log from `start` to a marker request made now, and where in the file that begins. The log has its events in the order in which answers
    /// ended, so every earlier answer lies before the marker.
    async fn settled(&self, start: u64) -> Result<(u64, String)> {
        let number = NEXT_MARKER.fetch_add(1, Ordering::Relaxed);
        let marker = format!("{MARKER}{}-{number}\"", std::process::id());
        let path = marker.trim_end_matches('"');
        self.client
            .request_text(get(path)?)
            .await
            .context("failed to mark the audit log")?;
        let what = format!("{path} to be in the audit log");
        let (begin, text) = eventually(SETTLE_DEADLINE, what, async || {
            let (begin, mut text) = self.whole_lines(start).await?;
            let position = rfind(&text, marker.as_bytes()).ok_or_else(|| anyhow!("{} bytes without it", text.len()))?;
            let end = find(&text[position..], b"\n").ok_or_else(|| anyhow!("half of its line"))?;
            text.truncate(position + end + 1);
            Ok::<_, anyhow::Error>((begin, text))
        })
        .await?;
        Ok((begin, String::from_utf8(text).context("the audit log is not text")?))
    }

    /// The lines that begin at `start` or later, and where the first does: the end of the file, when somebody looked for it, may have been in the middle
    /// of a line.
    async fn whole_lines(&self, start: u64) -> Result<(u64, Vec<u8>)> {
        let mut file = File::open(&self.path).await?;
        let mut text = Vec::new();
        let Some(before) = start.checked_sub(1) else {
            file.read_to_end(&mut text).await?;
            return Ok((0, text));
        };
        file.seek(SeekFrom::Start(before)).await?;
        file.read_to_end(&mut text).await?;
        let first = find(&text, b"\n").ok_or_else(|| anyhow!("half of a line"))?;
        Ok((start + first as u64, text.split_off(first + 1)))
    }
}

fn parse(line: &str) -> Result<Line> {
    serde_json::from_str(line).with_context(|| format!("unable to read the audit event {line:?}"))
}

/// A list of requests; each method narrows it.
#[derive(Clone, Debug, Default)]
pub struct AuditEvents {
    events: Vec<AuditEvent>,
}

impl AuditEvents {
    /// Those for which `keep` answers true.
    #[must_use]
    pub fn filter(mut self, keep: impl FnMut(&AuditEvent) -> bool) -> Self {
        self.events.retain(keep);
        self
    }

    /// Those of programs whose user agent begins like this (`core-operator`).
    #[must_use]
    pub fn of_agent(self, prefix: &str) -> Self {
        self.filter(|event| event.user_agent.starts_with(prefix))
    }

    /// Those that could change something, whether they did or were refused: Leases and dry runs left out.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(|event| event.is_write() && !event.is_lease())
    }

    /// The renewals and takings of Leases, which [`AuditEvents::writes`] leaves out.
    #[must_use]
    pub fn lease_writes(self) -> Self {
        self.filter(|event| event.is_write() && event.is_lease())
    }

    /// Gets and lists of objects, discovery and dry runs: everything that costs the API server without being a watch
    /// or a write. Leases are left out.
    #[must_use]
    pub fn reads_other_than_watch(self) -> Self {
        self.filter(|event| !event.is_write() && event.verb != "watch" && !event.is_lease())
    }
}

impl From<Vec<AuditEvent>> for AuditEvents {
    fn from(events: Vec<AuditEvent>) -> Self {
        Self { events }
    }
}

impl std::ops::Deref for AuditEvents {
    type Target = [AuditEvent];

    fn deref(&self) -> &[AuditEvent] {
        &self.events
    }
}

impl IntoIterator for AuditEvents {
    type Item = AuditEvent;
    type IntoIter = std::vec::IntoIter<AuditEvent>;

    fn into_iter(self) -> Self::IntoIter {
        self.events.into_iter()
    }
}

/// One request that was answered, or one watch that began.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    /// As RBAC has it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for paths
    /// that are no objects the method in lower case.
    pub verb: String,
    /// In whose name: the impersonated user, where there is one.
    pub user: String,
    /// As sent by the client; empty when it sent none.
    pub user_agent: String,
    /// What it was about; absent for discovery, health and the like.
    pub object: Option<ObjectReference>,
    /// The HTTP status.
    pub code: u16,
    /// Path and query as they were sent.
    pub request_uri: String,
    /// The request asked for no effect.
    pub dry_run: bool,
    /// When it arrived, by the API server's clock.
    pub received: Timestamp,
    /// When it was answered; of a watch, when it began.
    pub answered: Timestamp,
    /// The JSON that was sent, where the log has it ([`crate::Options::audit_bodies`]).
    pub body: Option<Box<str>>,
}

/// Which object or collection a request named. Absent parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// The group; empty for the core group.
    pub api_group: String,
    /// The plural.
    pub resource: String,
    /// `status`, `scale`, `token` and so on.
    pub subresource: String,
    /// Empty for what is in no namespace, and for requests about all of them.
    pub namespace: String,
    /// Empty for collections, and for creations whose name was in the body.
    pub name: String,
}

impl AuditEvent {
    /// Whether its verb changes objects and the request meant it. Reviews of access and tokens are created but never
    /// stored: they are questions.
    pub fn is_write(&self) -> bool {
        const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
        const QUESTIONS: [&str; 2] = ["authorization.k8s.io", "authentication.k8s.io"];
        let question = self
            .object
            .as_ref()
            .is_some_and(|object| QUESTIONS.contains(&object.api_group.as_str()));
        WRITES.contains(&self.verb.as_str()) && !self.dry_run && !question
    }

    /// Whether it is about a Lease.
    pub fn is_lease(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.resource == "leases")
    }
}

/// An event as the API server writes it (`audit.k8s.io/v1`), as far as we read it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectReference>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
    request_object: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Line {
    /// `None` for the second line of a watch and for our own markers.
    fn into_event(self) -> Option<AuditEvent> {
        let code = self.response_status.map_or(0, |status| status.code);
        // A refused watch has one line, a granted one has two.
        let end_of_watch = self.verb == "watch" && self.stage == "ResponseComplete" && code == 200;
        if end_of_watch || self.request_uri.starts_with(MARKER) {
            return None;
        }
        let query = self.request_uri.split_once('?').map_or("", |(_, query)| query);
        Some(AuditEvent {
            dry_run: query.split('&').any(|pair| pair == "dryRun=All"),
            verb: self.verb,
            user: self.impersonated_user.unwrap_or(self.user).username,
            user_agent: self.user_agent,
            object: self.object_ref,
            code,
            request_uri: self.request_uri,
            received: self.request_received_timestamp,
            answered: self.stage_timestamp,
            // As text it takes a tenth of the memory, and most readers never look.
            body: self.request_object.map(|body| body.to_string().into()),
        })
    }
}
