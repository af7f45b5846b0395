//! That the facts are what the real services do, and that these come and go as tests need them.

#[cfg(test)]
mod asking;

use std::{fs, path::PathBuf, time::Duration};

use http::Method;
use openstack_lab::{
    Kind,
    client::{Client, whole},
    facts::{Tenant, Visitor, facts},
    real::{Installed, Real, RealOptions},
};
use serde_json::json;
use tokio::{
    sync::OnceCell,
    time::{self, Instant},
};
use url::Url;

use crate::asking::ask;

/// One for those that leave it as it is; it ends with the program.
#[cfg(test)]
static SHARED: OnceCell<Option<Real>> = OnceCell::const_new();

#[cfg(test)]
async fn shared() -> Option<&'static Real> {
    SHARED.get_or_init(|| real(RealOptions::default())).await.as_ref()
}

/// None where this machine cannot have one.
#[cfg(test)]
async fn real(options: RealOptions) -> Option<Real> {
    let installed = Installed::find().unwrap()?;
    Some(Real::start(&installed, &options).await.unwrap())
}

#[cfg(test)]
async fn status(tenant: &Tenant<'_>, id: &str) -> String {
    let image = tenant.image(id).await.unwrap();
    image["status"].as_str().unwrap_or("gone").to_owned()
}

#[tokio::test]
async fn all_facts_hold_on_the_real_services() {
    let Some(real) = shared().await else {
        return;
    };
    assert_eq!(real.site().kind, Kind::Real);
    ask(real.site(), facts()).await;
}

#[tokio::test]
async fn all_facts_hold_on_the_real_services_below_a_prefix_and_by_tls() {
    let options = RealOptions {
        prefix: true,
        tls: true,
        ..RealOptions::default()
    };
    let Some(real) = real(options).await else {
        return;
    };
    ask(real.site(), facts()).await;
}

#[tokio::test]
async fn a_killed_glance_keeps_what_it_has_and_forgets_what_it_did() {
    let Some(mut real) = real(RealOptions::default()).await else {
        return;
    };
    let site = real.project("crash").await.unwrap();
    let visitor = Visitor::new(&site).await.unwrap();
    let owner = visitor.tenant("openstack").await.unwrap();
    let whole_image = owner.new_image(json!({})).await.unwrap();
    let sent = owner
        .put(&whole_image, "file", whole(visitor.disk.clone()))
        .await
        .unwrap();
    assert_eq!(sent.status, 204, "{}", sent.text());
    let half_image = owner.new_image(json!({})).await.unwrap();
    let uri = visitor.origin.url("/held");
    let body = json!({ "method": { "name": "web-download", "uri": uri } }).to_string();
    let path = format!("/images/{half_image}/import");
    let json = Some("application/json");
    let asked = owner.call(Method::POST, &path, json, whole(body)).await.unwrap();
    assert_eq!(asked.status, 202, "{}", asked.text());
    let end = Instant::now() + Duration::from_secs(30);
    while status(&owner, &half_image).await != "importing" {
        assert!(Instant::now() < end, "the import does not begin");
        time::sleep(Duration::from_millis(20)).await;
    }

    real.kill_glance().await.unwrap();
    assert!(owner.image(&whole_image).await.is_err(), "nobody answers");
    real.restart_glance().await.unwrap();

    assert_eq!(status(&owner, &whole_image).await, "active");
    assert_eq!(status(&owner, &half_image).await, "importing", "for ever");
}

#[tokio::test]
async fn projects_do_not_see_each_other() {
    let Some(real) = shared().await else {
        return;
    };
    let (first, second) = (
        real.project("first").await.unwrap(),
        real.project("second").await.unwrap(),
    );
    let (first, second) = (
        Visitor::new(&first).await.unwrap(),
        Visitor::new(&second).await.unwrap(),
    );
    let first = first.tenant("openstack").await.unwrap();
    let second = second.tenant("openstack").await.unwrap();
    assert_ne!(first.project, second.project);
    let id = first.new_image(json!({})).await.unwrap();
    assert_eq!(status(&first, &id).await, "queued");
    assert_eq!(second.image(&id).await.unwrap()["status"], 404);
}

#[tokio::test]
async fn dropped_services_are_gone_with_their_folder() {
    let Some(real) = real(RealOptions::default()).await else {
        return;
    };
    let (site, folder) = (real.site().clone(), PathBuf::from(real.folder()));
    let client = Client::new(None).unwrap();
    drop(real);
    assert!(!folder.exists(), "{:?}", fs::read_dir(&folder));
    for url in [site.keystone.as_str(), site.glance.as_str()] {
        let url = Url::parse(url).unwrap();
        let answer = client.send(Method::GET, &url, &[], whole("")).await;
        assert!(answer.is_err(), "{url} still answers");
    }
}
