//! A small world in which decisions are made again and again: an API server, a source of releases, the operator's process with its memory,
//! and a driver for each kind that performs plans as their types say. Everything may fail or crash at every write.

pub(crate) mod api;
pub(crate) mod commands;
pub(crate) mod faults;
pub(crate) mod journal;
pub(crate) mod live;
pub(crate) mod marks;
pub(crate) mod release_driver;
pub(crate) mod schedule;
pub(crate) mod stack_driver;

use std::collections::BTreeMap;

use jiff::Timestamp;
use planning::object_key::ObjectKey;
use planning::objects::ObjectMemory;
use planning::release::ReleaseObserved;
use planning::stack::{ActionFailure, StackObserved};
use planning::unlisted::Unlisted;

use api::Api;
use faults::Faults;
use journal::Journal;
use live::Body;

/// A release at the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Files {
    pub(crate) kubernetes_version: String,
    pub(crate) published_at: Option<Timestamp>,
    /// Stands for the bytes: other bytes, another number.
    pub(crate) revision: u64,
    /// The objects that the class chart renders.
    pub(crate) objects: BTreeMap<ObjectKey, Body>,
    pub(crate) flaw: Option<Flaw>,
}

/// What is wrong with a release.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Flaw {
    Files(String),
    Chart(String),
}

/// Where releases come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// What it says instead of an answer.
    pub(crate) outage: Option<String>,
    /// Since when it says that.
    pub(crate) silent_since: Option<Timestamp>,
    /// Whether what a release was pinned to stays in the store when the tag is moved, as it does of remote sources.
    pub(crate) keeps: bool,
    pub(crate) releases: BTreeMap<String, Files>,
}

/// What an object's memory was made from; a change of the object makes `read` void.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    pub(crate) memory: ObjectMemory,
    /// Resource version at the last read, and whether the watch shows the object; nothing is heard of unmarked ones.
    pub(crate) read_at: Option<u64>,
}

/// The operator's process: what a crash loses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) objects: BTreeMap<(String, ObjectKey), Remembered>,
    pub(crate) status_written_at: BTreeMap<String, Timestamp>,
    /// The same of releases.
    pub(crate) release_status_written_at: BTreeMap<String, Timestamp>,
    /// What stacks failed to do, by stack and subject.
    pub(crate) failures: BTreeMap<String, BTreeMap<String, ActionFailure>>,
    /// Whether the source and the watches have answered; always so when they answer at once.
    pub(crate) asked: bool,
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) api: Api,
    pub(crate) source: Source,
    /// Releases that were downloaded; survives the process.
    pub(crate) store: BTreeMap<String, Files>,
    pub(crate) process: Process,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    /// Whether a new process makes decisions before it has heard of the source and of what it watches.
    pub(crate) slow_caches: bool,
    /// Whether what drivers observe is kept in `recorded`.
    pub(crate) recording: bool,
    pub(crate) recorded: Vec<Record>,
}

/// What a decision was made from.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Stack(Box<StackObserved>, Timestamp),
    Release(Box<ReleaseObserved>, Timestamp),
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
            api: Api::default(),
            source: Source::default(),
            store: BTreeMap::new(),
            process: Process::default(),
            faults: Faults::default(),
            journal: Journal::default(),
            slow_caches: false,
            recording: false,
            recorded: Vec::new(),
        }
    }

    /// That nothing has been listed a moment ago.
    pub(crate) fn unlisted(&self) -> Unlisted {
        Unlisted {
            since: self.now,
            error: None,
        }
    }

    /// Whether this process has heard of the source and of everything that it watches.
    pub(crate) fn has_listed(&self) -> bool {
        !self.slow_caches || self.process.asked
    }
}
