//! That the fake is what the facts say of the real services.

use std::path::PathBuf;

use openstack_lab::{
    Site,
    facts::{Verdict, Visitor, facts},
    fake::{Fake, FakeOptions},
};

/// Asks all facts, in both orders: none may live on what another one left.
#[cfg(test)]
async fn ask_all(site: &Site) {
    let visitor = Visitor::new(site).await.unwrap();
    let mut all = facts();
    let last = all.pop().unwrap();
    assert_eq!(last.name, "nothing is left behind");
    let backwards = all.iter().rev().copied();
    let mut failed = Vec::new();
    for fact in all.iter().copied().chain([last]).chain(backwards).chain([last]) {
        match fact.ask(&visitor).await {
            Verdict::Held => {}
            Verdict::Failed(error) => failed.push(format!("{}: {error:#}", fact.name)),
            Verdict::Reduced(why) => println!("reduced: {}: {why}", fact.name),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A Python with openstacksdk, where this machine has one.
#[cfg(test)]
fn python() -> Option<PathBuf> {
    std::env::var_os("STACKWRIGHT_OPENSTACK_PYTHON").map(PathBuf::from)
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
