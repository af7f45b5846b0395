//! That the fake is what the facts say of the real services.

#[cfg(test)]
mod asking;

use std::path::PathBuf;

use openstack_lab::{
    facts::facts,
    fake::{Fake, FakeOptions},
    real::Installed,
};

use crate::asking::ask_all;

/// A Python with openstacksdk, where this machine has one.
#[cfg(test)]
fn python() -> Option<PathBuf> {
    Installed::find().unwrap().map(|installed| installed.python())
}

#[tokio::test]
async fn all_facts_hold_on_the_fake() {
    assert_eq!(facts().len(), 47);
    let options = FakeOptions {
        python: python(),
        ..FakeOptions::default()
    };
    let fake = Fake::start(options).await.unwrap();
    ask_all(fake.site()).await;
}

#[tokio::test]
async fn all_facts_hold_below_a_prefix_and_by_tls() {
    let options = FakeOptions {
        prefix: true,
        tls: true,
        python: python(),
        ..FakeOptions::default()
    };
    let fake = Fake::start(options).await.unwrap();
    ask_all(fake.site()).await;
}

#[tokio::test]
async fn facts_have_names_of_their_own() {
    let mut names: Vec<_> = facts().iter().map(|fact| fact.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 47);
}
