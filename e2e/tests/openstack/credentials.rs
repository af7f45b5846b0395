//! Who the operator is in a cloud: somebody who may do little, as the page for users says; and nobody, whose credentials a cloud does not take: that is told, the
//! cloud is not asked over and over, and good ones in the same Secret are all that it takes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    eventually,
    journey::SOON,
    provider_operator::identity,
    stage::{DISK, SECRET, message_of, on_a_stage_for, on_stage, small},
};
use http::Method;
use openstack_lab::{
    Login, Site,
    source::{Article, sha256},
};
use serde_json::{Value, json};

/// Where users read how it is done.
const PAGE: &str = include_str!("../../../docs/how-to/node-images.md");

/// Tries to log in, of two identities in all the time that this takes: one each, one more when it is refused, and when they are good, one again;
/// and the one of whoever looks for orphans.
const LOGINS_AT_MOST: usize = 10;

/// The same site for somebody else.
fn as_somebody(site: &Site, login: Login) -> Site {
    Site {
        clouds: BTreeMap::from([("openstack".to_owned(), login)]),
        ..site.clone()
    }
}

/// Who logs in with a secret that was never his, and who does with a credential that is not there any more.
fn strangers(site: &Site) -> Result<[(&'static str, Login); 2]> {
    let login = site.clouds.get("openstack").context("nobody may log in")?;
    let Login::ApplicationCredential { id, secret } = login.clone() else {
        bail!("an application credential is what operators have");
    };
    let nobody = "0".repeat(id.len());
    let (wrong, unknown) = (format!("not-{secret}"), secret);
    Ok([
        ("wrong-secret", Login::ApplicationCredential { id, secret: wrong }),
        (
            "no-such-credential",
            Login::ApplicationCredential {
                id: nobody,
                secret: unknown,
            },
        ),
    ])
}

#[test]
fn refused_credentials_are_told_of_with_few_logins_and_good_ones_in_the_secret_are_noticed() -> Result<()> {
    on_stage(async |stage| {
        let site = stage.proxy.site().clone();
        stage.source.put(DISK, Article::of(small(1)));
        let strangers = strangers(&site)?;
        for (name, login) in &strangers {
            let known = as_somebody(&site, login.clone());
            stage.journey.apply(identity(name, &known)).await?;
            let spec = json!({ "identityRef": { "kind": "Secret", "name": name } });
            stage.want(name, DISK, spec).await?;
        }
        stage.operate().await?;
        for (name, _) in &strangers {
            let message = message_of(&stage.not_ready(name, "CredentialsRejected").await?);
            ensure!(!message.is_empty(), "{name}: nothing is told");
        }
        ensure!(
            stage.proxy.count(&Method::POST, "/v2/images") == 0,
            "something was made: {:?}",
            stage.proxy.passed()
        );

        // And nothing else: nobody asks for another look.
        for (name, _) in &strangers {
            stage.journey.apply(identity(name, &site)).await?;
        }
        let mut ids = Vec::new();
        for (name, _) in &strangers {
            ids.push(stage.id(name).await?);
        }
        let logins = stage.proxy.count(&Method::POST, "/auth/tokens");
        ensure!(logins <= LOGINS_AT_MOST, "{logins} logins");
        Ok(ids)
    })
}

/// The first part of the page in this language that has these words.
fn part(language: &str, words: &str) -> Result<&'static str> {
    let begin = format!("```{language}\n");
    let mut parts = PAGE.split(begin.as_str()).filter_map(|part| part.split("```").next());
    let part = parts.find(|part| part.contains(words));
    part.with_context(|| format!("the page has no {language} with {words:?}"))
}

#[test]
fn the_credential_and_the_template_of_the_page_are_enough() -> Result<()> {
    let rules: Value = serde_json::from_str(part("json", "\"service\"")?)?;
    on_a_stage_for(&rules, async |stage| {
        let mut template: Value = serde_yaml::from_str(part("yaml", "kind: OpenStackClusterStackReleaseTemplate")?)?;
        template["metadata"]["namespace"] = stage.journey.namespace.as_str().into();
        let mut template = stage.journey.apply(template).await?;
        let reference = template.data["spec"]["template"]["spec"]["identityRef"].take();
        ensure!(reference == json!({ "kind": "Secret", "name": SECRET }), "{reference}");
        let clouds: Value = serde_yaml::from_str(part("yaml", "clouds:")?)?;
        let auth = clouds["clouds"]["openstack"]["auth"].as_object();
        let keys: Vec<&str> = auth.context("a login")?.keys().map(String::as_str).collect();
        let written = stage.proxy.site().clouds_yaml(None);
        ensure!(keys.iter().all(|key| written.contains(*key)), "{keys:?}");

        // Every way into a cloud, and what is done with images there.
        let options = |disk: u64| json!({ "image": { "createOpts": { "min_disk": disk, "protected": true } } });
        stage.source.put(DISK, Article::of(small(1)));
        for via in ["Upload", "ServerSide", "Staged"] {
            let digest = json!({ "image": { "digest": sha256(&small(1)) }, "transfer": { "via": via } });
            stage.want(&via.to_lowercase(), DISK, digest).await?;
        }
        stage.want("amended", DISK, options(1)).await?;
        stage.operate().await?;
        for name in ["upload", "serverside", "staged", "amended"] {
            stage.id(name).await?;
        }
        stage.want("amended", DISK, options(2)).await?;
        let id = stage.id("amended").await?;
        eventually(SOON, "the option in the cloud", async || {
            let image = stage.cloud.image(&id).await?;
            ensure!(image["min_disk"] == 2, "{image}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        for name in ["upload", "serverside", "staged", "amended"] {
            stage.delete(name).await?;
        }
        Ok(Vec::new())
    })
}
