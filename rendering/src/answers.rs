//! What templates ask that chart, values and release do not decide: what is random or tells the time, which a memo answers again as before, and
//! objects of the cluster. One chart for one cluster: answers are secrets of that cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use helm::answers::{Answer, AnswerError, Memo, Question};
use helm::yaml::Node;
use serde_json::Value;

pub use helm::answers::{Entry, Key as Asked, Lookup, Moment, Seeded};

use crate::{Lane, digest, lock, objects};

/// How many different objects one chart may look up. Real charts look up a handful.
const MAX_LOOKUPS: usize = 100;

/// Most bytes of answers that one render may add to a memo, which has to fit into a Secret.
const MAX_NEW_BYTES: usize = 512 << 10;

/// What the names of functions that search for keys begin with: `genCA`, `genPrivateKey`.
const MAKES_KEYS: &str = "gen";

/// About what an entry takes in a Secret beside its texts.
const ENTRY_OVERHEAD: usize = 128;

/// What answers the templates of one chart for one cluster.
#[derive(Clone)]
pub struct Answers {
    /// What was answered before. Order does not matter.
    pub memo: Vec<Entry>,
    /// What was found in the cluster: an object or a list as the API server gives it, or null where there is none.
    pub found: BTreeMap<Lookup, Value>,
    /// Answers what the memo does not.
    pub new: Seeded,
}

impl fmt::Debug for Answers {
    /// Names alone: answers and objects are secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found: Vec<_> = self.found.keys().collect();
        formatter
            .debug_struct("Answers")
            .field("memo", &self.memo)
            .field("found", &found)
            .finish_non_exhaustive()
    }
}

/// What the templates of a rendering asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Questions {
    /// The keys of all entries that a memo needs to give the same rendering again; it may forget every other.
    pub memo: Vec<Asked>,
    /// What was answered anew. Kept nowhere else: it has to be in the memo before anybody uses the objects, or the next rendering has others.
    /// Nothing in a rendering that was found among past ones.
    pub new: Vec<Entry>,
    /// What was looked up in the cluster, and found or found missing.
    pub lookups: Vec<Lookup>,
}

impl Questions {
    /// Whether nothing was asked: then the rendering is that of every cluster with these values. Otherwise it is that of one cluster.
    pub fn is_none(&self) -> bool {
        self.memo.is_empty() && self.lookups.is_empty()
    }
}

/// A digest of what answers a render, as it is part of what past renderings are found by. Entries in any order.
fn digest_of<'e>(entries: impl Iterator<Item = &'e Entry>, found: &BTreeMap<Lookup, Value>) -> String {
    let known = |entry: &Entry| {
        let json = serde_json::to_value(entry).unwrap_or_default();
        digest::of_json(&json)
    };
    let entries: BTreeSet<String> = entries.map(known).collect();
    let found = found.iter().map(|(lookup, object)| {
        let lookup = serde_json::to_value(lookup).unwrap_or_default();
        format!("{} {}", digest::of_json(&lookup), digest::of_json(object))
    });
    let lines: Vec<String> = entries.into_iter().chain(found).collect();
    digest::of_bytes(lines.join("\n").as_bytes())
}

impl Answers {
    /// Changes with everything that a rendering may get from it, but for what is drawn anew.
    pub(crate) fn digest(&self) -> String {
        digest_of(self.memo.iter(), &self.found)
    }

    /// The same once these questions were asked and what is new is in the memo, without what nobody asked.
    pub(crate) fn digest_after(&self, questions: &Questions) -> String {
        let asked: BTreeSet<&Asked> = questions.memo.iter().collect();
        let kept = self.memo.iter().filter(|entry| asked.contains(&entry.key));
        digest_of(kept.chain(&questions.new), &self.found)
    }
}

/// Answers one render, and keeps what it asks.
#[derive(Debug)]
pub(crate) struct Interview {
    memo: Memo,
    known: BTreeSet<Asked>,
    progress: Arc<Progress>,
    found: BTreeMap<Lookup, Found>,
    /// Whether each was answered.
    lookups: Mutex<BTreeMap<Lookup, bool>>,
}

/// How far a render came.
#[derive(Debug, Default)]
struct Progress {
    /// Whether keys have to be made.
    makes_keys: AtomicBool,
    /// Whether they were not made, because that takes too long.
    is_postponed: AtomicBool,
    /// Whether something was looked up that is not known.
    is_uncertain: AtomicBool,
}

/// An object of the cluster, which may be a secret.
struct Found(Node);

impl fmt::Debug for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Found")
    }
}

impl Interview {
    pub(crate) fn new(answers: &Answers, lane: Lane) -> Self {
        let progress = Arc::<Progress>::default();
        let draws = Draws {
            new: answers.new.clone(),
            lane,
            bytes: AtomicUsize::default(),
            progress: Arc::clone(&progress),
        };
        let found = answers.found.iter().map(|(lookup, object)| {
            let node = match object {
                Value::Null => Node::empty_map(),
                object => objects::to_node_of_object(object),
            };
            (lookup.clone(), Found(node))
        });
        Self {
            memo: Memo::new(answers.memo.iter().cloned(), Arc::new(draws)),
            known: answers.memo.iter().map(|entry| entry.key.clone()).collect(),
            progress,
            found: found.collect(),
            lookups: Mutex::default(),
        }
    }

    /// Whether keys are made. That may take long, and does so once: the next rendering has them from the memo.
    pub(crate) fn makes_keys(&self) -> bool {
        self.progress.makes_keys.load(Ordering::Relaxed)
    }

    /// Whether they were not made, because others wait.
    pub(crate) fn is_postponed(&self) -> bool {
        self.progress.is_postponed.load(Ordering::Relaxed)
    }

    /// What was looked up and is not known: what was rendered without is worth nothing.
    pub(crate) fn unanswered(&self) -> Vec<Lookup> {
        let lookups = lock(&self.lookups);
        let unanswered = lookups.iter().filter(|(_, is_answered)| !**is_answered);
        unanswered.map(|(lookup, _)| lookup.clone()).collect()
    }

    /// All that was asked.
    pub(crate) fn questions(&self) -> Questions {
        let unasked: BTreeSet<Asked> = self.memo.unasked().into_iter().collect();
        let asked = self.memo.entries().into_iter();
        let asked: Vec<Entry> = asked.filter(|entry| !unasked.contains(&entry.key)).collect();
        let new = asked.iter().filter(|entry| !self.known.contains(&entry.key));
        Questions {
            new: new.cloned().collect(),
            memo: asked.iter().map(|entry| entry.key.clone()).collect(),
            lookups: lock(&self.lookups).keys().cloned().collect(),
        }
    }

    /// What is not known is nothing for now, so that one render asks for all that it can.
    fn look_up(&self, lookup: &Lookup) -> Result<Answer, AnswerError> {
        let mut lookups = lock(&self.lookups);
        if lookups.len() >= MAX_LOOKUPS && !lookups.contains_key(lookup) {
            let limit = format!("a chart may look up {MAX_LOOKUPS} different objects, not more");
            return Err(AnswerError::Failed(limit));
        }
        let found = self.found.get(lookup);
        lookups.insert(lookup.clone(), found.is_some());
        if found.is_none() {
            self.progress.is_uncertain.store(true, Ordering::Relaxed);
        }
        let object = found.map_or_else(Node::empty_map, |Found(node)| node.clone());
        Ok(Answer::Object(object))
    }
}

impl helm::answers::Answers for Interview {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        match question.lookup {
            Some(lookup) => self.look_up(lookup),
            None => self.memo.answer(question),
        }
    }
}

/// New answers, no more than a memo can hold.
#[derive(Debug)]
struct Draws {
    new: Seeded,
    lane: Lane,
    bytes: AtomicUsize,
    progress: Arc<Progress>,
}

impl helm::answers::Answers for Draws {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        let Asked {
            template,
            function,
            arguments,
            ..
        } = question.key;
        if function.starts_with(MAKES_KEYS) {
            self.progress.makes_keys.store(true, Ordering::Relaxed);
            // Who has yet to look for objects may find that there are keys.
            if self.lane == Lane::Quick || self.progress.is_uncertain.load(Ordering::Relaxed) {
                self.progress.is_postponed.store(true, Ordering::Relaxed);
                return Err(AnswerError::Failed("keys are made later".to_owned()));
            }
        }
        let answer = self.new.answer(question)?;
        let of_answer = match &answer {
            Answer::Text(text) => text.len(),
            Answer::Certificate { certificate, key } => certificate.len() + key.len(),
            Answer::Number(_) | Answer::Time(_) | Answer::Object(_) => 0,
        };
        let bytes = template.len() + function.len() + arguments.len() + ENTRY_OVERHEAD + of_answer;
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if all > MAX_NEW_BYTES {
            let limit = format!("a chart may ask for {MAX_NEW_BYTES} bytes of random answers, not more");
            return Err(AnswerError::Failed(limit));
        }
        Ok(answer)
    }
}
