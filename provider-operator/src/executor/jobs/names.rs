//! How Jobs and what belongs to them are called: by the object alone, so that two operators who mean the same meet at one name. Asks nobody.

use crds::{PROVIDER_GROUP, VERSION, labels};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::objects::ObjectId;

/// Hexadecimal digits of a name.
const DIGITS: usize = 12;

/// The Job of one attempt.
pub(super) fn job(object: &ObjectId, attempt: u32) -> String {
    format!("{}-{attempt}", access(object))
}

/// The service account, role and binding of all of the object's Jobs.
pub(super) fn access(object: &ObjectId) -> String {
    let digest = hex::encode(Sha256::digest(&object.uid));
    format!("img-{}", &digest[..DIGITS])
}

/// The value of the label by which Jobs are known as an object's.
pub(super) fn label(object: &ObjectId) -> String {
    let kind = object.provider.definition().image_kind;
    labels::part_of(kind, &object.namespace, &object.name)
}

/// Who owns a Job: with it the Job goes too. No controller, of which there may be one.
pub(super) fn owner(object: &ObjectId) -> Value {
    json!({
        "apiVersion": format!("{PROVIDER_GROUP}/{VERSION}"),
        "kind": object.provider.definition().image_kind,
        "name": object.name,
        "uid": object.uid,
    })
}

/// The command by which people see what its build, or else its worker, says.
pub(crate) fn logs(object: &ObjectId, job: &str, builds: bool) -> String {
    let container = if builds {
        super::template::BUILD
    } else {
        super::template::WORKER
    };
    let namespace = &object.namespace;
    format!("kubectl logs -n {namespace} job/{job} -c {container}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins::object;

    #[test]
    fn names_are_of_the_object_and_its_attempt_alone_and_short_enough_for_pods() {
        let (one, mut other) = (object("fleet", "ubuntu"), object("fleet", "ubuntu"));
        assert_eq!(job(&one, 3), job(&other, 3));
        assert_ne!(job(&one, 3), job(&one, 4));
        other.uid = "another life".to_owned();
        assert_ne!(job(&one, 3), job(&other, 3));
        assert_eq!(label(&one), label(&other), "whoever it is for stays the same");
        // A Pod has the name of its Job and six more letters, and as a host name at most 63.
        assert!(job(&one, u32::MAX).len() < 57);
        assert_eq!(
            logs(&one, "img-1-3", true),
            "kubectl logs -n fleet job/img-1-3 -c build"
        );
    }
}
