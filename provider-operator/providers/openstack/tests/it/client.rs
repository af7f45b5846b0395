//! Logins, calls, lists, and what goes wrong with them.

use std::{sync::Arc, time::Duration};

use futures::future;
use http::{Method, StatusCode};
use openstack_lab::fake::{Fake, FakeOptions};
use provider_openstack::{
    clouds::{Beside, cloud},
    glance::{Glance, Query},
    session::{Need, Session},
    transport::Transport,
};
use provider_plugin::{CloudError, ErrorClass};
use secrecy::SecretString;
use serde_json::json;

use crate::fixture::{Nowhere, fake, fake_with, glance, loopback, made, session, session_at};

const LOGIN: &str = "/auth/tokens";

fn logins(fake: &Fake) -> usize {
    fake.count(&Method::POST, LOGIN)
}

async fn list(glance: &Glance) -> Result<usize, CloudError> {
    Ok(glance.list(&Query::default()).await?.len())
}

#[tokio::test]
async fn fifty_calls_at_once_log_in_once() {
    let fake = fake().await;
    let glance = glance(fake.site(), "openstack");
    let calls = future::try_join_all((0..50).map(|_| list(&glance))).await;
    calls.unwrap();
    assert_eq!(logins(&fake), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once_for_all_who_meet_it() {
    let fake = fake().await;
    let glance = glance(fake.site(), "openstack");
    list(&glance).await.unwrap();
    fake.revoke_tokens();
    future::try_join_all((0..20).map(|_| list(&glance))).await.unwrap();
    assert_eq!(logins(&fake), 2);
}

#[tokio::test]
async fn every_cloud_of_the_file_that_is_good_logs_in() {
    let fake = fake_with(FakeOptions {
        tls: true,
        prefix: true,
        ..FakeOptions::default()
    })
    .await;
    for name in ["openstack", "demo", "images-only", "reader"] {
        let session = session(fake.site(), name);
        assert_eq!(session.project().await.unwrap(), fake.project_id("demo"), "{name}");
        let endpoint = session.image_endpoint().await.unwrap();
        assert_eq!(endpoint.as_str(), format!("{}/v2", fake.site().glance));
    }
}

#[tokio::test]
async fn a_token_that_ends_soon_is_renewed_before_a_body_and_not_before_a_call() {
    let token_ttl = Duration::from_mins(9);
    let fake = fake_with(FakeOptions {
        token_ttl,
        ..FakeOptions::default()
    })
    .await;
    let session = session(fake.site(), "openstack");
    let first = session.token(Need::Usual).await.unwrap();
    let same = session.token(Need::Usual).await.unwrap();
    assert!(Arc::ptr_eq(&first, &same));
    assert_eq!(logins(&fake), 1);
    let fresh = session.token(Need::Fresh(Duration::from_mins(10))).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &fresh));
    assert_eq!(logins(&fake), 2);
    session.token(Need::Fresh(Duration::from_mins(8))).await.unwrap();
    assert_eq!(logins(&fake), 2);
}

#[tokio::test]
async fn tokens_of_eight_seconds_are_used_for_some_of_them() {
    let token_ttl = Duration::from_secs(8);
    let fake = fake_with(FakeOptions {
        token_ttl,
        ..FakeOptions::default()
    })
    .await;
    let glance = glance(fake.site(), "openstack");
    for _ in 0..5 {
        list(&glance).await.unwrap();
    }
    assert_eq!(logins(&fake), 1);
}

#[tokio::test]
async fn wrong_secrets_and_revoked_credentials_are_credentials() {
    let fake = fake().await;
    for name in ["wrong-secret", "no-such-credential"] {
        let error = list(&glance(fake.site(), name)).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Credentials, "{name}: {error}");
    }
    let glance = glance(fake.site(), "openstack");
    list(&glance).await.unwrap();
    fake.revoke_credential("openstack");
    fake.revoke_tokens();
    let error = list(&glance).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Credentials, "{error}");
}

#[tokio::test]
async fn a_new_token_that_is_refused_too_is_credentials_after_one_login() {
    let fake = fake().await;
    let glance = glance(fake.site(), "openstack");
    fake.answer(Method::GET, "/v2/images", StatusCode::UNAUTHORIZED, &[], "", usize::MAX);
    let error = list(&glance).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Credentials, "{error}");
    assert_eq!(logins(&fake), 2);
    assert_eq!(fake.count(&Method::GET, "/v2/images"), 2);
}

#[tokio::test]
async fn who_may_only_look_is_told_permission() {
    let fake = fake().await;
    let error = glance(fake.site(), "reader")
        .create(&json!({ "name": "a" }))
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Permission, "{error}");
    assert!(error.request_id.unwrap().starts_with("req-"));
}

#[tokio::test]
async fn what_is_no_keystone_is_told_with_where_it_is_written() {
    let fake = fake().await;
    let error = |status: StatusCode, body: &'static str| {
        fake.answer(Method::POST, LOGIN, status, &[("content-type", "text/html")], body, 1);
        let session = session(fake.site(), "openstack");
        async move { session.token(Need::Usual).await.unwrap_err() }
    };
    for status in [StatusCode::OK, StatusCode::NOT_FOUND] {
        let error = error(status, "<html><h1>Welcome</h1>It works</html>").await;
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert!(error.to_string().contains("auth_url"), "{error}");
    }
    let away = error(StatusCode::BAD_GATEWAY, "").await;
    assert_eq!(away.class, ErrorClass::Unavailable, "{away}");
}

#[tokio::test]
async fn pages_are_followed_below_a_prefix_and_by_tls() {
    let fake = fake_with(FakeOptions {
        tls: true,
        prefix: true,
        ..FakeOptions::default()
    })
    .await;
    let glance = glance(fake.site(), "openstack");
    for number in 0..120 {
        made(&glance, json!({ "name": format!("image {number}"), "cs_key": "k" })).await;
    }
    let found = glance.list(&Query::default().with("cs_key", "k")).await.unwrap();
    let mut names: Vec<_> = found.iter().map(|image| image["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 120);
    assert_eq!(fake.count(&Method::GET, "/v2/images?"), 3);
}

#[tokio::test]
async fn lists_end_whatever_they_link_to() {
    let fake = fake().await;
    let glance = glance(fake.site(), "openstack");
    let page = r#"{"images":[],"next":"/v2/images?marker=1"}"#;
    fake.answer(Method::GET, "/v2/images", StatusCode::OK, &[], page, usize::MAX);
    assert_eq!(list(&glance).await.unwrap(), 0);
    assert_eq!(fake.count(&Method::GET, "/v2/images"), 2);
    fake.relent();
    for number in 0..50 {
        let page = format!(r#"{{"images":[],"next":"/v2/images?marker={number}"}}"#);
        fake.answer(Method::GET, "/v2/images", StatusCode::OK, &[], &page, 1);
    }
    let error = list(&glance).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable, "{error}");
}

#[tokio::test]
async fn what_is_no_image_service_is_told() {
    let fake = fake().await;
    fake.answer(Method::GET, "/v2/images", StatusCode::OK, &[], "<html>It works", 1);
    let error = list(&glance(fake.site(), "openstack")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    assert!(error.to_string().contains("not the image service"), "{error}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let fake = fake().await;
    let body = "x".repeat(2 << 20);
    fake.answer(Method::GET, "/v2/images", StatusCode::OK, &[], &body, 1);
    let error = list(&glance(fake.site(), "openstack")).await.unwrap_err();
    assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
    fake.answer(Method::GET, "/v2/images", StatusCode::FORBIDDEN, &[], &body, 1);
    let error = list(&glance(fake.site(), "openstack")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Permission);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let fake = fake().await;
    let to = [("location", "http://127.0.0.1:1/")];
    fake.answer(Method::GET, "/v2/images", StatusCode::FOUND, &to, "", 1);
    let error = list(&glance(fake.site(), "openstack")).await.unwrap_err();
    assert!(error.to_string().contains("the cloud answered 302"), "{error}");
}

#[tokio::test]
async fn a_cloud_that_nobody_vouches_for_is_not_trusted_but_where_the_user_says_so() {
    let fake = fake_with(FakeOptions {
        tls: true,
        ..FakeOptions::default()
    })
    .await;
    let of = |yaml: String| {
        let cloud = cloud(yaml.as_bytes(), "openstack", Beside::default()).unwrap();
        let transport = Transport::new(&cloud.tls, loopback()).unwrap();
        Session::new(cloud, transport)
    };
    let yaml = fake.site().clouds_yaml(None);
    let error = of(yaml.clone()).token(Need::Usual).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    assert!(error.to_string().contains("under the key cacert"), "{error}");
    assert!(fake.requests().is_empty());
    let blind = yaml.replace("  interface: public", "  interface: public\n    verify: false");
    of(blind).token(Need::Usual).await.unwrap();
}

#[tokio::test]
async fn a_cloud_that_asks_for_our_certificate_gets_it_and_without_one_is_told_of_with_where_it_belongs() {
    let fake = fake_with(FakeOptions {
        tls: true,
        asks_for_certificates: true,
        ..FakeOptions::default()
    })
    .await;
    // As people have it on their own machines.
    let paths = "  interface: public\n    cert: ~/ours.pem\n    key: ~/ours.key";
    let yaml = fake.site().clouds_yaml(None).replace("  interface: public", paths);
    let login = async |beside: Beside<'_>| {
        let cloud = cloud(yaml.as_bytes(), "openstack", beside).unwrap();
        let transport = Transport::new(&cloud.tls, loopback()).unwrap();
        Session::new(cloud, transport).token(Need::Usual).await
    };
    let trusted = Beside {
        cacert: fake.site().ca.as_deref(),
        ..Beside::default()
    };
    let error = login(trusted).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    assert!(error.to_string().contains("under the keys cert and key"), "{error}");
    assert_eq!(logins(&fake), 0);

    let ours = fake.client().unwrap();
    let key = SecretString::from(ours.key.clone());
    let shown = Beside {
        cert: Some(&ours.certificate),
        key: Some(&key),
        ..trusted
    };
    login(shown).await.unwrap();
    assert_eq!(logins(&fake), 1);
}

#[tokio::test]
async fn addresses_out_of_bounds_are_never_connected_to() {
    let fake = fake().await;
    let literal = session_at(fake.site(), "openstack", Arc::new(Nowhere));
    let mut site = fake.site().clone();
    site.keystone.set_host(Some("localhost")).unwrap();
    let resolved = session_at(&site, "openstack", Arc::new(Nowhere));
    for session in [literal, resolved] {
        let error = session.token(Need::Usual).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }
    assert!(fake.requests().is_empty());
    session_at(&site, "openstack", loopback())
        .token(Need::Usual)
        .await
        .unwrap_or_else(|error| {
            // Where the name has an address of IPv6 too, that one is out of these bounds.
            panic!("{error:?}");
        });
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_is_left_within_a_minute() {
    let fake = fake().await;
    let glance = glance(fake.site(), "openstack");
    list(&glance).await.unwrap();
    fake.hang(Method::GET, "/v2/images", 1);
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let error = list(&glance).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable, "{error}");
    assert!(begun.elapsed() <= Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let mut site = fake().await.site().clone();
    site.keystone.set_port(Some(1)).unwrap();
    let error = session(&site, "openstack").token(Need::Usual).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    assert!(
        error.to_string().contains("no connection to http://127.0.0.1:1"),
        "{error}"
    );
}

#[tokio::test]
async fn an_error_page_with_the_password_is_told_without_it() {
    let fake = fake().await;
    let secret = match &fake.site().clouds["openstack"] {
        openstack_lab::Login::ApplicationCredential { secret, .. } => secret.clone(),
        openstack_lab::Login::Password { password, .. } => password.clone(),
    };
    let page = format!("<html><h1>500</h1>we got {secret} from you</html>");
    fake.answer(Method::POST, LOGIN, StatusCode::INTERNAL_SERVER_ERROR, &[], &page, 1);
    let glance = glance(fake.site(), "openstack");
    let told = list(&glance).await.unwrap_err();
    assert!(told.to_string().contains("we got [hidden] from you"), "{told}");
    assert!(!format!("{told:?}").contains(&secret), "{told:?}");
    // The token is one that the fake gives first.
    let page = "no such token: gAAAAA-token-1";
    fake.answer(
        Method::GET,
        "/v2/images",
        StatusCode::INTERNAL_SERVER_ERROR,
        &[],
        page,
        1,
    );
    let told = list(&glance).await.unwrap_err();
    assert!(told.to_string().contains("no such token: [hidden]"), "{told}");
    assert!(!format!("{glance:?}").contains(&secret));
}
