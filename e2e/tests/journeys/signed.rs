//! Releases whose policy asks for signatures: refused, warned of, and used when the right key has signed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStackRelease, conditions::ConditionType, labels};
use e2e::{
    cosign::Cosign,
    journey::{Journey, SOON, status},
};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    journey,
    remote::{REPOSITORY, condition, given, source},
    sigstore::{IDENTITY, ISSUER, Signing, Sigstore},
};

/// A stack with the first version, whose releases are to be signed by the keys in the Secret `key`.
pub(crate) fn verified(mode: &str, source: Option<Value>) -> Value {
    let mut spec = json!({
        "versions": ["v1"],
        "interval": "10s",
        "verification": { "mode": mode, "cosign": { "publicKeySecretRef": { "name": "key" } } },
    });
    if let Some(source) = source {
        spec["source"] = source;
    }
    spec
}

pub(crate) async fn trust(journey: &Journey, keys: &[&String]) -> Result<()> {
    let keys: String = keys.iter().map(|key| key.as_str()).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key" }, "stringData": { "cosign.pub": keys },
    });
    journey.apply(secret).await.map(drop)
}

/// Puts the list of the files of a release beside them, signed by the key `ours`.
pub(crate) fn signed_list(cosign: &Cosign, folder: &Path) -> Result<()> {
    list_files(folder)?;
    cosign.sign_file("ours", &folder.join("sha256sums.txt"))
}

/// Waits until a release is refused in these words. Of one that is, nothing was ever rendered or written.
async fn refused(journey: &Journey, tag: &str, words: &str) -> Result<ClusterStackRelease> {
    let is_refused = |release: &ClusterStackRelease| {
        let status = status(release);
        let (reason, message) = condition(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
        !status.ready && reason == Some("VerificationFailed") && message.contains(words)
    };
    journey
        .until_release(tag, &format!("refused: {words}"), is_refused)
        .await
}

async fn untouched(journey: &Journey, release: &ClusterStackRelease) -> Result<()> {
    let kinds = release.annotations().get(labels::CONTAINS_GROUP_KINDS);
    ensure!(kinds.is_none(), "rendered: {kinds:?}");
    ensure!(status(release).resources.is_empty(), "{release:#?}");
    ensure!(status(release).assets.is_none(), "pinned: {release:#?}");
    let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
    let class = classes.get_opt(&release.name_any()).await?;
    ensure!(class.is_none(), "applied: {class:#?}");
    Ok(())
}

fn signer(release: &ClusterStackRelease) -> Option<String> {
    status(release).assets.and_then(|assets| assets.verified_by)
}

/// Puts the list of the files of a release, which is to be signed, beside them.
fn list_files(folder: &Path) -> Result<()> {
    let listed = Command::new("sh")
        .current_dir(folder)
        .args(["-c", "sha256sum * > sha256sums.txt"])
        .status()?;
    ensure!(listed.success(), "{listed}");
    Ok(())
}

/// A stack that trusts an identity, by the trust root of the operator unless it names a Secret.
fn by_identity(identity: &str, issuer: &str, root: Option<&str>) -> Value {
    let mut keyless = json!({ "issuer": issuer, "identity": identity });
    if let Some(name) = root {
        keyless["trustRootSecretRef"] = json!({ "name": name });
    }
    let mut spec = verified("Require", None);
    spec["verification"]["cosign"] = json!({ "keyless": keyless });
    spec
}

/// A Secret with a trust root.
async fn root(journey: &Journey, name: &str, sigstore: &Sigstore) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
        "stringData": { "trusted_root.json": sigstore.trusted_root().to_string() },
    });
    journey.apply(secret).await.map(drop)
}

/// A release whose list of files an identity of this sigstore has signed, as cosign does without a key.
fn signed_by_identity(journey: &Journey, sigstore: &Sigstore) -> Result<String> {
    let tag = journey.releases.publish_harbor("v1", "v1")?;
    let folder = journey.releases.folder_of(&tag);
    list_files(&folder)?;
    let sums = fs::read(folder.join("sha256sums.txt"))?;
    let bundle = sigstore.sign(&Signing::of(&sums)).to_string();
    fs::write(folder.join("sha256sums.txt.sigstore.json"), bundle)?;
    Ok(tag)
}

#[test]
fn f38_a_release_is_used_only_with_the_signature_of_the_identity_that_the_trust_root_in_a_secret_vouches_for()
-> Result<()> {
    journey(async |journey| {
        let (ours, other) = (Sigstore::named("ours"), Sigstore::named("other"));
        let tag = signed_by_identity(journey, &ours)?;
        root(journey, "ours", &ours).await?;
        root(journey, "other", &other).await?;
        journey.operate().await?;
        for (spec, words) in [
            (
                by_identity("somebody@example.com", ISSUER, Some("ours")),
                "the identity that signed is",
            ),
            (
                by_identity(IDENTITY, "https://issuer.example.com", Some("ours")),
                "the issuer",
            ),
            (
                by_identity(IDENTITY, ISSUER, Some("other")),
                "which is not in the trust root",
            ),
            (by_identity(IDENTITY, ISSUER, None), "there is no trust root"),
        ] {
            journey.stack("harbor", spec).await?;
            let release = refused(journey, &tag, words).await?;
            untouched(journey, &release).await?;
        }
        journey
            .stack("harbor", by_identity(IDENTITY, ISSUER, Some("ours")))
            .await?;
        let release = journey.release_ready(&tag).await?;
        ensure!(
            signer(&release) == Some(format!("{IDENTITY} by {ISSUER}")),
            "{release:#?}"
        );
        Ok(())
    })
}

#[test]
fn f38_the_trust_root_of_an_operator_is_a_file_that_counts_where_a_stack_names_none() -> Result<()> {
    journey(async |journey| {
        let (ours, other) = (Sigstore::named("ours"), Sigstore::named("other"));
        let tag = signed_by_identity(journey, &ours)?;
        let file = journey.folder().join("root.json");
        fs::write(&file, other.trusted_root().to_string())?;
        let flag = format!("--trusted-root-file={}", file.display());
        journey.options.flags.push(flag.into());
        journey.operate().await?;
        journey.stack("harbor", by_identity(IDENTITY, ISSUER, None)).await?;
        let release = refused(journey, &tag, "which is not in the trust root").await?;
        untouched(journey, &release).await?;
        // Another file counts without a restart.
        fs::write(&file, ours.trusted_root().to_string())?;
        journey.ask_stack("harbor", "ours").await?;
        let release = journey.release_ready(&tag).await?;
        ensure!(
            signer(&release) == Some(format!("{IDENTITY} by {ISSUER}")),
            "{release:#?}"
        );
        // Whoever names a Secret does not get the file.
        root(journey, "other", &other).await?;
        journey
            .stack("harbor", by_identity(IDENTITY, ISSUER, Some("other")))
            .await?;
        refused(journey, &tag, "which is not in the trust root").await?;
        Ok(())
    })
}

#[test]
fn f38_a_release_of_a_registry_is_refused_until_a_trusted_key_has_signed_it() -> Result<()> {
    journey(async |journey| {
        let (mut registry, tag) = given(journey).await?;
        let cosign = Cosign::new(journey.lab(), &journey.folder().join("cosign"))?;
        let (ours, next) = (cosign.key("ours")?, cosign.key("next")?);
        journey
            .stack("harbor", verified("Require", Some(source(&registry))))
            .await?;
        let release = refused(journey, &tag, "there is no Secret").await?;
        untouched(journey, &release).await?;
        trust(journey, &[&ours]).await?;
        let release = refused(journey, &tag, "is not signed (yet)").await?;
        untouched(journey, &release).await?;
        cosign.sign("next", &registry, REPOSITORY, &tag)?;
        let release = refused(journey, &tag, "none of the 1 signatures").await?;
        untouched(journey, &release).await?;
        cosign.sign("ours", &registry, REPOSITORY, &tag)?;
        let release = journey.release_ready(&tag).await?;
        let by_ours = signer(&release).context("a signer")?;

        // Another process verifies it while the registry is away.
        registry.stop().await?;
        journey.kill_operator().await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        classes.delete(&tag, &DeleteParams::default()).await?;
        journey.operate().await?;
        let class = e2e::eventually(SOON, "the class to be back", async || classes.get(&tag).await).await?;

        // A key that is not trusted any more: nothing more is written, and what there is stays.
        trust(journey, &[&"no key".to_owned()]).await?;
        journey.ask_stack("harbor", "other key").await?;
        refused(journey, &tag, "gives no public keys").await?;
        let kept = classes.get(&tag).await?;
        ensure!(kept.uid() == class.uid(), "{kept:#?}");
        trust(journey, &[&next]).await?;
        let release = journey.release_ready(&tag).await?;
        ensure!(signer(&release).is_some_and(|signer| signer != by_ours), "{release:#?}");
        Ok(())
    })
}

#[test]
fn a_release_that_is_used_with_a_warning_says_what_is_wrong_with_its_signature() -> Result<()> {
    journey(async |journey| {
        let (registry, tag) = given(journey).await?;
        let cosign = Cosign::new(journey.lab(), &journey.folder().join("cosign"))?;
        trust(journey, &[&cosign.key("ours")?]).await?;
        journey
            .stack("harbor", verified("Warn", Some(source(&registry))))
            .await?;
        let is_warned = |release: &ClusterStackRelease| {
            let status = status(release);
            let (reason, message) = condition(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
            status.ready && reason == Some("VerificationFailed") && message.contains("is not signed (yet)")
        };
        let release = journey.until_release(&tag, "used with a warning", is_warned).await?;
        ensure!(signer(&release).is_none(), "{release:#?}");
        cosign.sign("ours", &registry, REPOSITORY, &tag)?;
        let is_verified = |release: &ClusterStackRelease| {
            let status = status(release);
            let (reason, _) = condition(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
            status.ready && reason.is_none() && signer(release).is_some()
        };
        journey.until_release(&tag, "verified", is_verified).await?;
        Ok(())
    })
}

#[test]
fn a_signed_list_beside_the_files_of_a_directory_is_taken_and_a_changed_file_is_not() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let cosign = Cosign::new(journey.lab(), &journey.folder().join("cosign"))?;
        trust(journey, &[&cosign.key("ours")?]).await?;
        journey.operate().await?;
        journey.stack("harbor", verified("Require", None)).await?;
        let release = refused(journey, &tag, "is not signed (yet)").await?;
        untouched(journey, &release).await?;

        let folder = journey.releases.folder_of(&tag);
        signed_list(&cosign, &folder)?;
        let images = folder.join("node-images.yaml");
        let content = fs::read(&images)?;
        fs::write(&images, [content.as_slice(), b"# changed\n"].concat())?;
        let release = refused(journey, &tag, "the file node-images.yaml has the digest").await?;
        untouched(journey, &release).await?;
        fs::write(&images, content)?;
        let release = journey.release_ready(&tag).await?;
        ensure!(signer(&release).is_some(), "{release:#?}");
        Ok(())
    })
}
