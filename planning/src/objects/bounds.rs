//! How many objects an owner may have: the inventory has to fit into its status, and a status that does not fit is refused as a whole.

use std::collections::BTreeSet;

use crds::resource::Resource;

use super::inventory::key_of;
use super::set::ObjectSet;
use crate::object_key::ObjectKey;
use crate::shortening::shorten;

/// Room for the rows without their errors. An API server stores at most 1.5 MiB (the default of etcd's `--max-request-bytes`) of an object with
/// its spec, its conditions, the errors of its rows and the escapes of JSON.
const INVENTORY_BYTES: usize = 896 * 1024;

/// What a row takes besides the names of its object: field names and punctuation, digest, states, and the name of a field manager or of a release.
const ROW_BYTES: usize = 288;

impl ObjectSet<'_> {
    /// Says why what is wanted cannot be installed, when there are more objects than a status can list.
    pub fn too_large(&self) -> Option<String> {
        let intents = self.intents?;
        // During a change the inventory names the objects of both renderings.
        let mut keys: BTreeSet<ObjectKey> = self.rows.iter().map(key_of).collect();
        keys.extend(intents.keys().cloned());
        let bytes: usize = keys.iter().map(row_bytes).sum();
        if bytes <= INVENTORY_BYTES {
            return None;
        }
        let (owner, objects) = (self.owner, keys.len());
        Some(format!(
            "the {owner} has {objects} objects, whose inventory needs {} KiB of its status; at most {} KiB fit, some {} objects like these; \
             make the {owner} smaller",
            bytes.div_ceil(1024),
            INVENTORY_BYTES / 1024,
            INVENTORY_BYTES / bytes.div_ceil(objects)
        ))
    }
}

fn row_bytes(key: &ObjectKey) -> usize {
    ROW_BYTES + key.group.len() + key.kind.len() + key.namespace.len() + key.name.len()
}

/// Shortens the errors where all of them together are too long.
pub(super) fn shorten_errors(rows: &mut [Resource]) {
    shorten(rows.iter_mut().map(|row| &mut row.error));
}

#[cfg(test)]
mod tests {
    use crds::resource::{Health, Left, SyncStatus};

    use super::*;

    /// As long as a row with these names gets, its error without an escape left to add.
    fn row(number: usize) -> Resource {
        Resource {
            group: "infrastructure.cluster.x-k8s.io".to_owned(),
            version: "v1beta1".to_owned(),
            kind: "OpenStackMachineTemplate".to_owned(),
            namespace: "cluster-stacks".to_owned(),
            name: format!("openstack-scs-1-34-v7-{number:0200}"),
            status: Some(SyncStatus::NotSynced),
            error: "\"".repeat(crds::conditions::MESSAGE_BYTES),
            digest: format!("sha256:{}", "0".repeat(64)),
            health: Some(Health::Terminating),
            manager: "a-rather-long-controller".to_owned(),
            left: Some(Left::InNewerForm),
            prune_approved: true,
            ..Resource::default()
        }
    }

    #[test]
    fn the_largest_inventory_fits_into_what_an_api_server_stores() {
        let mut rows: Vec<Resource> = Vec::new();
        while rows.iter().map(|row| row_bytes(&key_of(row))).sum::<usize>() < INVENTORY_BYTES {
            rows.push(row(rows.len()));
        }
        shorten_errors(&mut rows);
        let bytes = serde_json::to_vec(&rows).expect("JSON").len();
        assert!(
            rows.len() > 1500 && bytes < 1_450_000,
            "{} rows are {bytes} bytes",
            rows.len()
        );
    }

    #[test]
    fn a_few_errors_stay_whole() {
        let mut rows = vec![row(1), row(2)];
        shorten_errors(&mut rows);
        assert_eq!(rows, [row(1), row(2)]);
    }
}
