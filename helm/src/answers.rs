//! What templates ask that a text, values and a release do not decide: random letters, keys, the time, objects of a cluster.
//!
//! Every such call is a [`Question`], and the [`Answers`] of a render say what it gives. Nothing here draws randomness or reads a clock:
//! who renders brings both.
//!
//! - [`Refusing`] answers nothing, so that no render is random by accident. It is the default.
//! - [`Seeded`] answers from 32 bytes and a time: the same question, the same answer. With bytes drawn for the one render and the time of
//!   the day, it answers as Helm does.
//! - [`Memo`] repeats what was answered before, asks others for the rest, and can be kept between renders.

mod ask;
mod digest;
mod draw;
mod memo;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use ask::{Ask, Asker, wrong_kind};
pub use draw::{Draw, Moment};
pub use memo::{Entry, Memo};

use crate::yaml::Node;

/// Answers the questions of a render. Asked on the thread of the templates, in the order of their execution.
pub trait Answers: fmt::Debug + Send + Sync {
    /// The answer to one question. The same answers must follow from the same questions for a render to be reproducible.
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError>;
}

/// Where and how often something is asked. Two renders of a chart ask under the same keys as far as they run through the same calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The path within the chart of the file being rendered, as `templates/name.yaml` or `charts/part/templates/name.yaml`; not of the helper that asks. The
    /// chart itself may be called otherwise in its next version.
    pub template: String,
    /// The function called.
    pub function: String,
    /// SHA-256 over the types and contents of the arguments, in hexadecimal digits: arguments may be passwords.
    pub arguments: String,
    /// How many times the same was asked before in the file.
    pub occurrence: u32,
}

/// What a call of `lookup` asks for: one object, or all of a kind where it has no name. The arguments as the template gives them: a namespace may be
/// given for a kind that has none, and none of this need exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lookup {
    /// Group and version, as in a manifest.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for objects of the whole cluster, and for lists of all namespaces.
    pub namespace: String,
    /// The name; empty for a list.
    pub name: String,
}

/// One call of a function that is random or reads the world.
pub struct Question<'a> {
    /// Which call it is.
    pub key: &'a Key,
    /// What is looked up, where the function is `lookup`. Arguments of other functions may be passwords, and are shown to nobody.
    pub lookup: Option<&'a Lookup>,
    make: &'a dyn Fn(&mut Draw) -> Made,
}

/// An answer made from randomness and time, or the text of the function's Go error.
type Made = Result<Answer, String>;

impl Question<'_> {
    /// Makes the answer as Helm would, given randomness and the time. It may take long: keys of RSA are searched for.
    pub fn make(&self, draw: &mut Draw) -> Result<Answer, AnswerError> {
        (self.make)(draw).map_err(AnswerError::Failed)
    }
}

/// What a function gives.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// A text: letters, a hash, a key.
    Text(String),
    /// A number.
    Number(i64),
    /// A certificate and its key, both as PEM.
    Certificate {
        /// The certificate.
        certificate: String,
        /// The private key.
        key: String,
    },
    /// A time.
    Time(Moment),
    /// An object of a cluster, or an empty one. Serialised as a text of JSON.
    #[serde(with = "object")]
    Object(Node),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Whoever renders does not answer such questions.
    #[error("nothing answers this function in this render: set `RenderOptions::answers`")]
    Refused,
    /// The function fails; the text is Go's.
    #[error("{0}")]
    Failed(String),
}

impl fmt::Debug for Answer {
    /// The kind alone: answers are secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text(_) => "Text",
            Self::Number(_) => "Number",
            Self::Certificate { .. } => "Certificate",
            Self::Time(_) => "Time",
            Self::Object(_) => "Object",
        })
    }
}

/// Finds no object in any cluster, as `helm template`, and refuses everything else.
#[derive(Clone, Copy, Debug)]
pub struct Refusing;

impl Answers for Refusing {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        if question.lookup.is_some() {
            Ok(Answer::Object(Node::empty_map()))
        } else {
            Err(AnswerError::Refused)
        }
    }
}

/// Answers from a seed and a time: equal seeds, times and questions give equal answers. `lookup` finds nothing, as in `helm template`.
///
/// Answers as new as those of Helm in each render:
///
/// ```
/// use std::sync::Arc;
/// use std::time::{SystemTime, UNIX_EPOCH};
///
/// use helm::RenderOptions;
/// use helm::answers::Seeded;
///
/// // 32 bytes of the system's randomness, from whatever crate draws yours.
/// # fn random_bytes() -> [u8; 32] { [7; 32] }
/// let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
/// let answers = Seeded::new(random_bytes(), now.into());
/// let options = RenderOptions {
///     answers: Arc::new(answers),
///     ..RenderOptions::new("shop", "production")
/// };
/// # Ok::<(), std::time::SystemTimeError>(())
/// ```
#[derive(Clone)]
pub struct Seeded {
    seed: [u8; 32],
    now: Moment,
}

impl Seeded {
    /// Who knows the seed knows every password and key made from it.
    pub const fn new(seed: [u8; 32], now: Moment) -> Self {
        Self { seed, now }
    }
}

impl fmt::Debug for Seeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Seeded")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Answers for Seeded {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        question.make(&mut Draw::new(digest::of_question(&self.seed, question.key), self.now))
    }
}

/// Nodes as texts of JSON.
mod object {
    use serde::{Deserialize as _, Deserializer, Serializer, de, ser};

    use crate::json::{self, Escape};
    use crate::yaml::Node;

    pub(super) fn serialize<S: Serializer>(node: &Node, serializer: S) -> Result<S::Ok, S::Error> {
        let text = json::encode(&node.to_value(), Escape::Minimal).map_err(ser::Error::custom)?;
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let text = String::deserialize(deserializer)?;
        json::decode(text.as_bytes()).map_err(de::Error::custom)
    }
}
