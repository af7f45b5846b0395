//! The end of the Leases of a process that the harness has killed: at once, as if their time had passed.
//!
//! So journeys can have Leases as long as in production, which no busy machine loses, and wait for none of the dead. What is left out is the wait for a
//! Lease that runs out by itself, which the tests of replicas and of shards prove. It knows how operators write Leases, and decides nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use crds::labels;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};

use crate::{Journey, eventually, journey::SOON};

/// Lets every Lease in the namespace of a journey lapse that names this process, which has to be dead, and strikes it off the list of those that share
/// shards.
pub async fn lapse(journey: &Journey, process: u32) -> Result<()> {
    let leases: Api<Lease> = journey.api();
    let listed = leases.list(&ListParams::default()).await;
    for lease in listed.context("failed to list the Leases of a journey")? {
        let name = lease.name_any();
        eventually(SOON, format!("the Lease {name} to lapse"), async || {
            let Some(mut lease) = leases.get_opt(&name).await? else {
                return Ok(());
            };
            if !strike_off(&mut lease, process) {
                return Ok(());
            }
            // Refused when the living have written since, and then looked at again.
            leases.replace(&name, &PostParams::default(), &lease).await.map(drop)
        })
        .await?;
    }
    Ok(())
}

/// Whether something of the process was there.
fn strike_off(lease: &mut Lease, process: u32) -> bool {
    // An identity is host, process and time of its start.
    let mark = format!("_{process}_");
    let mut found = false;
    if let Some(spec) = &mut lease.spec
        && spec
            .holder_identity
            .as_deref()
            .is_some_and(|holder| holder.contains(&mark))
    {
        spec.holder_identity = Some(String::new());
        found = true;
    }
    if let Some(list) = lease.annotations_mut().get_mut(labels::MEMBERS) {
        // What is no list is replaced by the next sign of life.
        let mut members: BTreeMap<String, u64> = serde_json::from_str(list).unwrap_or_default();
        let count = members.len();
        members.retain(|member, _| !member.contains(&mark));
        if members.len() < count {
            *list = members.into_iter().collect::<serde_json::Value>().to_string();
            found = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;

    use super::*;

    fn lease(holder: &str, members: &str) -> Lease {
        let mut lease = Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        lease
            .annotations_mut()
            .insert(labels::MEMBERS.to_owned(), members.to_owned());
        lease
    }

    #[test]
    fn the_dead_hold_nothing_and_are_no_members_and_the_living_stay() {
        let both = r#"{"host_12_900":4,"host_123_901":7}"#;
        let cases = [
            ("host_12_900", both, Some(("", r#"{"host_123_901":7}"#))),
            ("host_123_901", "{}", None),
            (
                "2 shards, 15 s",
                both,
                Some(("2 shards, 15 s", r#"{"host_123_901":7}"#)),
            ),
            ("2 shards, 15 s", "no list", None),
        ];
        for (holder, members, left) in cases {
            let mut found = lease(holder, members);
            assert_eq!(strike_off(&mut found, 12), left.is_some(), "{holder}");
            let (holder, members) = left.unwrap_or((holder, members));
            assert_eq!(found, lease(holder, members));
        }
    }
}
