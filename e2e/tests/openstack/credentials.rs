//! Who the operator is in a cloud: somebody who may do little, as the page for users says; and nobody, whose credentials a cloud does not take: that is told, the
//! cloud is not asked over and over, and good ones in the same Secret are all that it takes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    eventually,
    journey::SOON,
    provider_operator::identity,
    stage::{DISK, SECRET, Stage, message_of, on_a_stage_for, on_a_stage_of_its_own, on_stage, small},
};
use http::Method;
use openstack_lab::{
    Login, Site,
    real::RealOptions,
    source::{Article, sha256},
};
use serde_json::{Value, json};

/// Where users read how it is done.
const PAGE: &str = include_str!("../../../docs/how-to/node-images.md");

/// Every way into a cloud.
const WAYS: [&str; 3] = ["Upload", "ServerSide", "Staged"];

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

        every_way(stage).await?;
        ensure!(stage.proxy.count(&Method::POST, "/import") == 2, "it was sent");
        all_go(stage).await?;
        Ok(Vec::new())
    })
}

/// Every way into a cloud, and what is done with images there.
async fn every_way(stage: &mut Stage<'_>) -> Result<()> {
    let options = |disk: u64| json!({ "image": { "createOpts": { "min_disk": disk, "protected": true } } });
    stage.source.put(DISK, Article::of(small(1)));
    for via in WAYS {
        let digest = json!({ "image": { "digest": sha256(&small(1)) }, "transfer": { "via": via } });
        stage.want(&via.to_lowercase(), DISK, digest).await?;
    }
    stage.want("amended", DISK, options(1)).await?;
    stage.operate().await?;
    for via in WAYS {
        stage.id(&via.to_lowercase()).await?;
    }
    stage.id("amended").await?;
    stage.want("amended", DISK, options(2)).await?;
    let id = stage.id("amended").await?;
    eventually(SOON, "the option in the cloud", async || {
        let image = stage.cloud.image(&id).await?;
        ensure!(image["min_disk"] == 2, "{image}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// All of them are deleted.
async fn all_go(stage: &Stage<'_>) -> Result<()> {
    stage.delete("amended").await?;
    for via in WAYS {
        stage.delete(&via.to_lowercase()).await?;
    }
    Ok(())
}

/// The rules where the endpoint of images has this prefix.
fn below(prefix: &str, rules: &Value) -> Result<Value> {
    let mut rules = rules.clone();
    for rule in rules.as_array_mut().context("a list of rules")? {
        let path = rule["path"].as_str().context("a path")?;
        rule["path"] = format!("{prefix}{path}").into();
    }
    Ok(rules)
}

#[test]
fn below_a_prefix_each_rule_of_the_page_begins_with_it_and_what_the_cloud_does_not_fetch_is_sent() -> Result<()> {
    const PREFIX: &str = "/image";
    ensure!(PAGE.contains("`/image/v2/images`"), "the page says nothing of a prefix");
    let rules: Value = serde_json::from_str(part("json", "\"service\"")?)?;
    let options = RealOptions {
        prefix: true,
        methods: &["glance-direct"],
        ..RealOptions::default()
    };
    on_a_stage_of_its_own(&options, Some(&below(PREFIX, &rules)?), async |stage, real| {
        // As they stand there they are for a cloud without one.
        let site = real.project_for("without-a-prefix", Some(&rules)).await?;
        let login = site.clouds.get("openstack").context("a login")?.clone();
        let known = as_somebody(stage.proxy.site(), login);
        stage.journey.apply(identity("without", &known)).await?;
        stage.source.put(DISK, Article::of(small(1)));
        let spec = json!({ "identityRef": { "kind": "Secret", "name": "without" } });
        stage.want("without", DISK, spec).await?;
        every_way(stage).await?;
        stage.not_ready("without", "CredentialsRejected").await?;

        let status = stage.status("serverside").await?;
        let failure = status.last_failure.context("why it was sent")?;
        let is_it = failure.reason == "Unsupported" && failure.message.contains("web-download");
        ensure!(
            is_it && status.attempt == Some(1),
            "{failure:?}, attempt {:?}",
            status.attempt
        );
        let count = |method, part| stage.proxy.count(&method, part);
        ensure!(count(Method::POST, "/import") == 1, "{:?}", stage.proxy.passed());
        ensure!(count(Method::PUT, "/stage") == 1 && count(Method::PUT, "/file") == 3);
        all_go(stage).await?;
        Ok(Vec::new())
    })
}
