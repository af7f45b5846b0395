//! Which shard an object belongs to: the same for a stack, its releases, and every other stack that could want them.

use crds::names::ReleaseTag;
use crds::{ClusterStack, ClusterStackRelease};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

/// The shard, counted from 0, of what is called `stack` in this namespace, among `count` shards.
///
/// The first eight bytes of the SHA-256 of `<namespace>/<stack>` as a number (big endian), modulo `count`. Versions of the operator work side by side
/// during an upgrade, so this never changes.
pub fn shard_of(namespace: &str, stack: &str, count: u16) -> u16 {
    let digest = Sha256::digest(format!("{namespace}/{stack}"));
    let number = digest
        .iter()
        .take(8)
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // Smaller than `count`, so that it fits.
    u16::try_from(number % u64::from(count.max(1))).unwrap_or_default()
}

/// The shard of a stack: by what it is a stack of (`<provider>-<name>`), not by the name of the object, which its releases do not know, nor by its
/// version of Kubernetes, which people edit.
pub fn shard_of_stack(stack: &ClusterStack, count: u16) -> u16 {
    let called = format!("{}-{}", stack.spec.provider, stack.spec.name);
    shard_of(namespace(&stack.metadata), &called, count)
}

/// The shard of a release: by its name alone, so that it stays the same when the stack is gone or another one takes the release over.
pub fn shard_of_release(release: &ClusterStackRelease, count: u16) -> u16 {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    let called = match name.parse::<ReleaseTag>() {
        Ok(tag) => format!("{}-{}", tag.provider(), tag.name()),
        // No stack can want it.
        Err(_) => name.to_owned(),
    };
    shard_of(namespace(&release.metadata), &called, count)
}

fn namespace(metadata: &ObjectMeta) -> &str {
    metadata.namespace.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crds::{ClusterStackReleaseSpec, ClusterStackSpec};
    use serde_json::json;

    use super::*;

    fn release(tag: &str) -> ClusterStackRelease {
        let mut release = ClusterStackRelease::new(tag, ClusterStackReleaseSpec::default());
        release.metadata.namespace = Some("fleet".to_owned());
        release
    }

    fn stack(object: &str, name: &str, kubernetes: &str) -> ClusterStack {
        let spec = json!({ "provider": "docker", "name": name, "kubernetesVersion": kubernetes });
        let spec: ClusterStackSpec = serde_json::from_value(spec).unwrap();
        let mut stack = ClusterStack::new(object, spec);
        stack.metadata.namespace = Some("fleet".to_owned());
        stack
    }

    #[test]
    fn the_hash_is_the_same_in_every_version() {
        let table = [
            ("fleet", "docker-harbor", 6, 2),
            ("fleet", "docker-harbor", 1, 0),
            ("fleet", "openstack-scs", 6, 2),
            ("team-a", "docker-harbor", 6, 3),
            ("", "", 64, 3),
        ];
        for (namespace, stack, count, shard) in table {
            assert_eq!(
                shard_of(namespace, stack, count),
                shard,
                "{namespace}/{stack} of {count}"
            );
        }
    }

    #[test]
    fn all_that_may_want_a_release_is_in_its_shard() {
        const COUNT: u16 = 61;
        let one = shard_of_stack(&stack("harbor", "harbor", "1.34"), COUNT);
        assert_eq!(shard_of_stack(&stack("rival", "harbor", "1.34"), COUNT), one);
        assert_eq!(shard_of_stack(&stack("harbor", "harbor", "1.35"), COUNT), one);
        for tag in ["docker-harbor-1-34-v1", "docker-harbor-1-35-v0-sha-abc"] {
            assert_eq!(shard_of_release(&release(tag), COUNT), one, "{tag}");
        }
        assert_ne!(shard_of_stack(&stack("harbor", "other", "1.34"), COUNT), one);
        let strange = shard_of_release(&release("strange"), COUNT);
        assert_eq!(strange, shard_of("fleet", "strange", COUNT));
    }

    #[test]
    fn many_stacks_are_spread_over_all_shards() {
        let mut counts = [0; 8];
        for number in 0..800 {
            counts[usize::from(shard_of("fleet", &format!("docker-s{number}"), 8))] += 1;
        }
        assert!(counts.iter().all(|count| (60..150).contains(count)), "{counts:?}");
    }
}
