//! Which images are ours: the id that follows from what an image is of, and the marks on it. Pure.

use std::sync::LazyLock;

use provider_plugin::{Attempt, ContentKey, ImageId, ImageSpec, OwnerId};
use serde_json::Value;
use uuid::Uuid;

/// What the image is of.
pub const KEY: &str = "cs_key";
/// Which installation owns it.
pub const OWNER: &str = "cs_owner";
/// The object that it belongs to.
pub const OBJECT: &str = "cs_object";
/// Its number among those of the object.
pub const ATTEMPT: &str = "cs_attempt";
/// Which installation works on it, where that is not its owner any more.
pub const HOLDER: &str = "cs_holder";
/// The digest at the source, for people.
pub const SOURCE_DIGEST: &str = "cs_source_digest";
/// The digest that it was found to have.
pub const VERIFIED: &str = "cs_verified";
/// An import was begun. Old clouds show nothing else of it.
pub const IMPORT: &str = "cs_import";
/// By which people find all of ours.
pub const TAG: &str = "stackwright";

/// The last attempt that is believed: nobody makes so many, and after the greatest number there would be no other one.
const MOST: Attempt = Attempt::MAX / 2;

/// All marks, as they are taken off.
pub const MARKS: [&str; 8] = [KEY, OWNER, OBJECT, ATTEMPT, HOLDER, SOURCE_DIGEST, VERIFIED, IMPORT];

/// Of ids that follow from marks. It must never change: an earlier version would not find its images.
static NAMESPACE: LazyLock<Uuid> = LazyLock::new(|| Uuid::new_v5(&Uuid::NAMESPACE_DNS, b"image.clusterstack.x-k8s.io"));

/// The id of an attempt: the same for whoever asks for the same, so that making it is what only one can do.
pub fn image_id(project: &str, owner: &OwnerId, key: &ContentKey, attempt: Attempt) -> ImageId {
    let name = format!("{project}\n{owner}\n{key}\n{attempt}");
    ImageId(Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string())
}

/// The marks of an attempt.
pub fn marks(image: &ImageSpec, attempt: Attempt) -> Vec<(&'static str, String)> {
    let subject = &image.subject;
    let digest = image.source_digest.as_ref();
    let digest = digest.map(|digest| (SOURCE_DIGEST, digest.to_string()));
    let marks = [
        (KEY, subject.key.to_string()),
        (OWNER, subject.owner.to_string()),
        (OBJECT, subject.object.clone()),
        (ATTEMPT, attempt.to_string()),
    ];
    marks.into_iter().chain(digest).collect()
}

/// What an image says of itself by its marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Which installation owns it.
    pub owner: OwnerId,
    /// The object that it belongs to.
    pub object: String,
    /// What it is of.
    pub key: ContentKey,
    /// Its number.
    pub attempt: Attempt,
    /// Which installation works on it.
    pub holder: OwnerId,
}

impl Marks {
    /// The marks of an image; none where they are not whole.
    pub fn of(image: &Value) -> Option<Self> {
        let text = |mark: &str| image[mark].as_str();
        let owner = OwnerId::parse(text(OWNER)?)?;
        let holder = match &image[HOLDER] {
            Value::Null => owner.clone(),
            holder => holder.as_str().and_then(OwnerId::parse).or_else(somebody)?,
        };
        Some(Self {
            holder,
            owner,
            object: text(OBJECT)?.to_owned(),
            key: ContentKey::parse(text(KEY)?)?,
            attempt: text(ATTEMPT)?
                .parse::<Attempt>()
                .ok()
                .filter(|attempt| *attempt <= MOST)?,
        })
    }
}

/// Whoever holds what nobody can read the holder of. It is of some installation's all the same: the one that has its object takes it over again, and no
/// other one deletes it.
fn somebody() -> Option<OwnerId> {
    OwnerId::parse("nobody.can.tell.who")
}

/// Whether an image carries this owner, whatever else is wrong with its marks.
pub fn is_owned(image: &Value, owner: &OwnerId) -> bool {
    image[OWNER] == owner.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: &str) -> ContentKey {
        ContentKey::parse(&digit.repeat(64)).unwrap()
    }

    fn whole() -> Value {
        serde_json::json!({
            "cs_owner": "mine", "cs_object": "fleet/one", "cs_key": "a".repeat(64), "cs_attempt": "3",
        })
    }

    #[test]
    fn ids_follow_from_project_owner_key_and_attempt_and_never_change() {
        let owner = OwnerId::parse("mine").unwrap();
        let id = image_id("p", &owner, &key("a"), 1);
        assert_eq!(id, image_id("p", &owner, &key("a"), 1));
        let other = OwnerId::parse("other").unwrap();
        let others = [
            image_id("q", &owner, &key("a"), 1),
            image_id("p", &other, &key("a"), 1),
            image_id("p", &owner, &key("b"), 1),
            image_id("p", &owner, &key("a"), 2),
        ];
        assert!(!others.contains(&id), "{others:?}");
        assert_eq!(Uuid::parse_str(&id.0).unwrap().get_version_num(), 5);
    }

    #[test]
    fn a_holder_that_nobody_can_read_is_somebody_else_and_hides_nothing() {
        let marks = Marks::of(&whole()).unwrap();
        for unreadable in [Value::from("no holder!"), "".into(), "x".repeat(65).into(), 7.into()] {
            let mut held = whole();
            held[HOLDER] = unreadable.clone();
            let found = Marks::of(&held).unwrap();
            assert_ne!(found.holder, marks.owner, "{unreadable}");
            let holder = marks.owner.clone();
            assert_eq!(Marks { holder, ..found }, marks, "{unreadable}");
        }
        let mut held = whole();
        held[HOLDER] = Value::Null;
        assert_eq!(Marks::of(&held), Some(marks));
    }

    #[test]
    fn marks_that_are_not_whole_are_none() {
        let whole = whole();
        let marks = Marks::of(&whole).unwrap();
        assert_eq!((marks.object.as_str(), marks.attempt), ("fleet/one", 3));
        assert_eq!(marks.holder, marks.owner);
        let mut held = whole.clone();
        held[HOLDER] = "there".into();
        assert_eq!(Marks::of(&held).unwrap().holder.as_str(), "there");
        for (mark, value) in [
            (OWNER, "no owner!"),
            (KEY, "short"),
            (ATTEMPT, "-1"),
            (ATTEMPT, "many"),
            (ATTEMPT, "4294967295"),
        ] {
            let mut broken = whole.clone();
            broken[mark] = value.into();
            assert_eq!(Marks::of(&broken), None, "{mark}");
            broken.as_object_mut().unwrap().remove(mark);
            assert_eq!(Marks::of(&broken), None, "{mark}");
        }
        assert!(is_owned(&whole, &OwnerId::parse("mine").unwrap()));
        assert!(!is_owned(&whole, &OwnerId::parse("min").unwrap()));
    }
}
