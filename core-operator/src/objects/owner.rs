//! Whose objects are worked on: what is asked of the owner before and between the writes, and what is done to it.

use kube::Resource;
use operator_kit::object::ObjectKey;
use planning::objects::{OwnAction, OwnerKind};

use super::bodies::{Bodies, Unprepared};
use super::execute::Failed;

/// The owner of objects, as one pass has it. Its own object may be in another API server than they are.
pub(crate) trait Owner: Sync {
    /// Of what type the owner is. In the course of a pass there are newer states of it.
    type Object: Resource<DynamicType = ()> + Send + Sync;
    /// What a plan does to the owner.
    type Action: OwnAction + Sync;

    /// Of what kind it is, for words.
    fn kind(&self) -> OwnerKind;

    /// What may be told of words that somebody else said about an object: all of it, unless its bodies are made of what nobody may read.
    fn told(&self, words: &str) -> String {
        words.to_owned()
    }

    /// The namespace that an object has to be in, if its kind has namespaces.
    fn namespace_of<'k>(&'k self, key: &'k ObjectKey) -> &'k str;

    /// Fails when the API server does not say that the owner is there and not to go, whatever a watch shows. Asked before the first object is written:
    /// what would be made for it now, nobody would ever remove.
    fn still_wanted(&self, object: &Self::Object) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Does something to the owner; gives the state that it has then, where it was written.
    fn perform(
        &self,
        object: &Self::Object,
        action: &Self::Action,
    ) -> impl Future<Output = Result<Option<Self::Object>, Failed>> + Send;

    /// Takes note of a newer state, which a watch may show later.
    fn note(&self, newer: &Self::Object);

    /// The bodies of what the plan wants, which only their digests are kept of; nothing where nobody can have them now.
    fn bodies(&self, object: &Self::Object) -> impl Future<Output = Result<Option<Bodies>, Unprepared>> + Send;

    /// Whether another owner is there that marks objects so, and that this process does not look after or cannot see here; an error in words for people
    /// where nobody can tell.
    fn is_elsewhere(&self, key: &ObjectKey, part_of: &str) -> impl Future<Output = Result<bool, String>> + Send;

    /// Renames the fields of the owner's status that the Go operator manages to our field manager; an error in words for people.
    fn take_over_status(&self, object: &Self::Object) -> impl Future<Output = Result<(), String>> + Send;
}
