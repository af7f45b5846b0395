//! That the fake is what the facts say of the real services.

#[cfg(test)]
mod asking;

use std::path::PathBuf;

use openstack_lab::{
    Site,
    facts::facts,
    fake::{Fake, FakeOptions},
    real::Installed,
};

use crate::asking::ask;

/// All facts in this order, and the last, that nothing is left behind, once more after the others came backwards: none may live on what another
/// one left.
#[cfg(test)]
async fn ask_in_both_orders(site: &Site) {
    let mut all = facts();
    let last = all.pop().unwrap();
    assert_eq!(last.name, "nothing is left behind");
    let backwards = all.iter().rev().copied().collect::<Vec<_>>();
    ask(site, all.into_iter().chain([last]).chain(backwards).chain([last])).await;
}

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
    ask_in_both_orders(fake.site()).await;
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
    ask_in_both_orders(fake.site()).await;
}

#[tokio::test]
async fn facts_have_names_of_their_own() {
    let mut names: Vec<_> = facts().iter().map(|fact| fact.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 47);
}
