//! Whether the policy of a release admits it: brings together what its source shows and whom the policy trusts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::names::ReleaseTag;
use crds::policy::{Verification as Policy, VerificationMode};
use kube::ResourceExt;
use operator_kit::failure::chain;
use release::{ErrorClass, Unverified, Verdict, Verification, admit};

use super::keys::{KeyPlace, KeyRing};
use super::opened::{Found, Opened, Signatures};
use super::verdicts::Verdicts;

/// What a release says of signatures, if anybody is to look at them.
pub(super) fn policy(release: &ClusterStackRelease) -> Option<&Policy> {
    let policy = release.spec.policy.as_ref()?.verification.as_ref()?;
    (policy.mode != VerificationMode::Off).then_some(policy)
}

/// Whom a policy of this namespace trusts.
pub(super) fn key_place(policy: &Policy, namespace: &str) -> Option<KeyPlace> {
    Some(KeyPlace {
        namespace: namespace.to_owned(),
        cosign: policy.cosign.clone()?,
    })
}

/// The keys that releases name, with those that do.
pub(super) fn needed(releases: &[Arc<ClusterStackRelease>]) -> HashMap<KeyPlace, HashSet<ReleaseTag>> {
    let mut needed: HashMap<KeyPlace, HashSet<ReleaseTag>> = HashMap::new();
    for release in releases {
        let namespace = release.namespace().unwrap_or_default();
        let place = policy(release).and_then(|policy| key_place(policy, &namespace));
        if let (Some(place), Ok(tag)) = (place, release.name_any().parse()) {
            needed.entry(place).or_default().insert(tag);
        }
    }
    needed
}

/// What came of looking at the signatures that a source has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nobody wanted to, or could.
    Nothing,
    /// They are good enough.
    Good,
    /// They are not.
    Bad,
}

impl Looked {
    fn at(verdict: &Verdict) -> Self {
        match verdict {
            Ok(_) => Self::Good,
            // It says nothing of the signatures.
            Err(Unverified::NotChecked { .. }) => Self::Nothing,
            Err(_) => Self::Bad,
        }
    }
}

/// Admits what was found, as far as the policy allows.
pub(super) async fn admitted(
    keys: &Arc<KeyRing>,
    verdicts: &Verdicts,
    release: &ClusterStackRelease,
    tag: &ReleaseTag,
    opened: Opened<Found>,
) -> (Opened, Looked) {
    let (source, moved_to, found) = match opened {
        Opened::Ready {
            source,
            moved_to,
            files,
        } => (source, moved_to, files),
        Opened::Missing { message, outage } => return (Opened::Missing { message, outage }, Looked::Nothing),
        Opened::Broken { message } => return (Opened::Broken { message }, Looked::Nothing),
        Opened::Refused { message, awaited } => return (Opened::Refused { message, awaited }, Looked::Nothing),
    };
    let mut looked = Looked::Nothing;
    let verification = match policy(release) {
        None => Verification::Off,
        Some(policy) => {
            if let (VerificationMode::Require, Signatures::Awaited { message }) = (policy.mode, &found.signatures) {
                let message = message.clone();
                return (Opened::Missing { message, outage: None }, Looked::Nothing);
            }
            let namespace = release.namespace().unwrap_or_default();
            let verdict = verdict(keys, verdicts, policy, &namespace, tag, &found).await;
            looked = Looked::at(&verdict);
            match policy.mode {
                VerificationMode::Warn => Verification::Warn(verdict),
                VerificationMode::Off | VerificationMode::Require => Verification::Require(verdict),
            }
        }
    };
    let opened = match admit(found.release, verification) {
        Ok(files) => Opened::Ready {
            source,
            moved_to,
            files,
        },
        Err(refused) => Opened::Refused {
            message: chain(&refused),
            awaited: refused.class() != ErrorClass::Terminal,
        },
    };
    (opened, looked)
}

async fn verdict(
    keys: &Arc<KeyRing>,
    verdicts: &Verdicts,
    policy: &Policy,
    namespace: &str,
    tag: &ReleaseTag,
    found: &Found,
) -> Verdict {
    let not_checked = |why: &str| Unverified::NotChecked { why: why.to_owned() };
    let Some(place) = key_place(policy, namespace) else {
        return Err(not_checked(
            "spec.verification.cosign does not say whose signatures are good; set its publicKeySecretRef, or keyless",
        ));
    };
    let trust = keys.keys(&place, tag).await?;
    let evidence = match &found.signatures {
        Signatures::Shown(evidence) => evidence,
        Signatures::Awaited { message } => return Err(not_checked(message)),
        Signatures::Unwanted => return Err(not_checked("nobody has looked for its signatures yet")),
    };
    verdicts.on(namespace, &found.release, trust, evidence).await
}
