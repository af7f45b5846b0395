//! Facts about logging in, and about who may do what.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;
use url::Url;

use super::{Fact, Visitor, fact, tenant::log_in};
use crate::client::whole;

pub(super) const FACTS: &[Fact] = &[
    fact!("application credential gives a project-scoped token", scoped),
    fact!("the catalog holds the image endpoint", catalog),
    fact!("a wrong secret answers 401", wrong_secret),
    fact!("an unknown application credential answers 404", unknown),
    fact!("a bad token answers 401, in HTML", bad_token),
    fact!("an access-ruled credential may list images", access_rules),
    fact!("web-download and glance-direct are enabled", methods),
    fact!("reader may not create (403)", reader),
];

async fn scoped(visitor: &Visitor<'_>) -> Result<()> {
    let reply = log_in(visitor, "openstack").await?;
    let token = reply.json()?;
    ensure!(reply.status == 201, "{} {token}", reply.status);
    ensure!(token["token"]["project"]["name"] == "demo", "{token}");
    ensure!(
        reply.header("x-subject-token").is_some(),
        "no token in {:?}",
        reply.headers
    );
    Ok(())
}

async fn catalog(visitor: &Visitor<'_>) -> Result<()> {
    let token = log_in(visitor, "openstack").await?.json()?;
    let services = token["token"]["catalog"].as_array().into_iter().flatten();
    let images = services.filter(|service| service["type"] == "image");
    let endpoints = images.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
    let ours = endpoints.filter(|endpoint| endpoint["interface"] == "public");
    let mut ours = ours.filter(|endpoint| endpoint["region_id"] == visitor.site.region.as_str());
    let holds = ours.all(|endpoint| endpoint["url"] == visitor.site.glance.as_str());
    ensure!(
        holds && token["token"]["catalog"].to_string().contains(&visitor.site.glance),
        "{token}"
    );
    Ok(())
}

async fn wrong_secret(visitor: &Visitor<'_>) -> Result<()> {
    let reply = log_in(visitor, "wrong-secret").await?;
    ensure!(reply.status == 401, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn unknown(visitor: &Visitor<'_>) -> Result<()> {
    let reply = log_in(visitor, "no-such-credential").await?;
    ensure!(reply.status == 404, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn bad_token(visitor: &Visitor<'_>) -> Result<()> {
    let url = Url::parse(&format!("{}/v2/images", visitor.site.glance))?;
    let token = ("X-Auth-Token", "stale");
    // Clients accept everything, and say so; to others it is told in plain text.
    let askers: [(&[_], _); 2] = [(&[token, ("Accept", "*/*")], "text/html"), (&[token], "text/plain")];
    for (headers, expected) in askers {
        let reply = visitor.client.send(Method::GET, &url, headers, whole("")).await?;
        ensure!(reply.status == 401, "{} {}", reply.status, reply.text());
        let kind = reply.header("content-type").unwrap_or_default();
        ensure!(kind.starts_with(expected), "{kind} {}", reply.text());
    }
    Ok(())
}

async fn access_rules(visitor: &Visitor<'_>) -> Result<()> {
    let reply = visitor.tenant("images-only").await?.read("/images").await?;
    ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn methods(visitor: &Visitor<'_>) -> Result<()> {
    let info = visitor.tenant("openstack").await?.read("/info/import").await?.json()?;
    let methods = info["import-methods"]["value"].as_array().cloned().unwrap_or_default();
    for method in ["web-download", "glance-direct"] {
        ensure!(methods.iter().any(|found| found == method), "{info}");
    }
    Ok(())
}

async fn reader(visitor: &Visitor<'_>) -> Result<()> {
    let reply = visitor.tenant("reader").await?.create(json!({})).await?;
    ensure!(reply.status == 403, "{} {}", reply.status, reply.text());
    Ok(())
}
