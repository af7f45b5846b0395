//! Servers that repeat in their answers what they were told in confidence: nothing of it may be in what we say.

use std::error::Error;

use base64::{Engine, prelude::BASE64_STANDARD};
use release::{
    http::Credentials,
    source::{GithubOptions, GithubSource, HttpOptions, HttpSource, ReleaseSource},
};
use serde_json::json;

use crate::{
    fixture::{TAG, chain, tag},
    oci_stub::{MANIFEST, source_of},
    stub::{Asked, Reply, Stub, authority, network},
};

/// With letters that JSON and URLs write in other ways, and without a part that is long enough to be found in spite of that.
const PASSWORD: &str = "canary/\"mist\"+fog7";
const TOKEN: &str = "canary_16C7e42F292c6912E7710c838347Ae178B4a";
const MINTED: &str = "canary-eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9";

/// Pieces of the credentials above in any form, none of which may be told.
const PIECES: &[&str] = &[
    "canary",
    "mist",
    "fog7",
    "292c6912E7710c83",
    // Of `me:` and the password, of the password, and of the token.
    "bWU6Y2FuYXJ5",
    "Y2FuYXJ5",
    "YW5hcnlf",
    "eyJhbGciOiJFUzI1NiIs",
];

fn password() -> Credentials {
    Credentials::Basic {
        username: "me".to_owned(),
        password: PASSWORD.into(),
    }
}

/// What a request proves its name with, in the ways in which servers repeat that.
fn repeated(asked: &Asked) -> Vec<String> {
    let authorization = asked.header("authorization").unwrap_or_default();
    let Some((_, value)) = authorization.split_once(' ') else {
        return Vec::new();
    };
    let pair = BASE64_STANDARD.decode(value).ok();
    let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
    let secret = match &pair {
        Some(pair) => pair.split_once(':').unwrap().1,
        None => value,
    };
    let encoded = secret.replace('/', "%2F").replace('"', "%22").replace('+', "%2B");
    vec![
        format!("who is {authorization}"),
        format!("{secret} is wrong"),
        format!("{{\"token\": {}}}", json!(secret)),
        format!("no user at https://me:{encoded}@api.example.org/"),
        format!("base64 of it is {}", BASE64_STANDARD.encode(secret)),
        // The end is cut off by us.
        format!("{}{secret}", "x".repeat(180)),
    ]
}

fn assert_silent(told: &str) {
    for piece in PIECES {
        assert!(!told.contains(piece), "{piece}: {told}");
    }
}

/// Nothing is told of the credentials where the source is asked for words about an error; that the error as it is has them says that the test can fail.
fn assert_hidden(source: &dyn ReleaseSource, error: &dyn Error) {
    let known = chain(error);
    assert!(PIECES.iter().any(|piece| known.contains(piece)), "{known}");
    let told = source.without_secrets(&known);
    assert!(told.contains("(not shown)"), "{told}");
    assert_silent(&told);
}

#[tokio::test]
async fn words_of_github_are_told_without_the_token_that_they_repeat() {
    for form in 0..6 {
        let stub = Stub::new(move |asked| {
            let body = json!({ "message": repeated(asked)[form], "documentation_url": "https://docs.github.com" });
            Reply::of(403, &[("Content-Type", "application/json")], body.to_string())
        })
        .await;
        let options = GithubOptions {
            owner: "octo".to_owned(),
            repository: "stacks".to_owned(),
            api_url: Some(stub.url("/").to_string()),
            token: Some(TOKEN.into()),
            certificates: Some(authority().to_vec()),
        };
        let source = GithubSource::new(options, &network()).unwrap();
        let error = source.list().await.unwrap_err();
        let told = chain(&error);
        assert!(
            told.contains("denies access (") && told.contains("(not shown)"),
            "{told}"
        );
        assert_silent(&told);
    }
}

#[tokio::test]
async fn what_a_web_server_repeats_instead_of_its_index_is_not_told() {
    for form in 0..6 {
        for credentials in [password(), Credentials::Bearer(TOKEN.into())] {
            let stub = Stub::new(move |asked| Reply::of(200, &[], json!(repeated(asked)[form]).to_string())).await;
            let options = HttpOptions {
                url: stub.url("/stacks").to_string(),
                credentials: Some(credentials),
                certificates: Some(authority().to_vec()),
            };
            let source = HttpSource::new(&options, &network()).unwrap();
            assert_hidden(&source, &source.list().await.unwrap_err());
        }
    }
}

#[tokio::test]
async fn what_a_registry_repeats_of_a_password_is_not_told() {
    for form in 0..6 {
        let stub = Stub::new(move |asked| match repeated(asked).get(form) {
            None => Reply::of(401, &[("WWW-Authenticate", "Basic realm=\"stacks\"")], ""),
            Some(words) => Reply::of(200, &[], json!(words).to_string()),
        })
        .await;
        let source = source_of(&stub, &network(), Some(password()));
        assert_hidden(&source, &source.list().await.unwrap_err());
    }
}

#[tokio::test]
async fn what_a_registry_repeats_of_a_token_that_was_made_for_us_is_not_told() {
    let stub = Stub::new(|asked| {
        if asked.target.starts_with("/token") {
            return Reply::of(200, &[], json!({ "token": MINTED, "expires_in": 300 }).to_string());
        }
        let challenge = "Bearer realm=\"/token\",service=\"stacks\"";
        match asked.header("authorization") {
            None => {
                let host = asked.header("host").unwrap();
                let challenge = challenge.replace("/token", &format!("https://{host}/token"));
                Reply::of(401, &[("WWW-Authenticate", &challenge)], "")
            }
            // In a header.
            Some(authorization) => {
                let digest = authorization.replace("Bearer ", "sha256:");
                let headers = [("Content-Type", MANIFEST), ("Docker-Content-Digest", digest.as_str())];
                Reply::of(200, &headers, "{}")
            }
        }
    })
    .await;
    let source = source_of(&stub, &network(), Some(password()));
    assert_hidden(&source, &source.resolve(&tag(TAG)).await.unwrap_err());
}
