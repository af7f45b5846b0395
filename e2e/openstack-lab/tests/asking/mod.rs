//! Asking the facts of one cloud.

use openstack_lab::{
    Site,
    facts::{Fact, Verdict, Visitor},
};

/// Asks all of these, and says at the end which do not hold. What is asked of another client needs a Python.
pub(crate) async fn ask(site: &Site, facts: impl IntoIterator<Item = Fact>) {
    let visitor = Visitor::new(site).await.unwrap();
    let mut failed = Vec::new();
    for fact in facts {
        // Who waits for a fact that does not end wants to know which.
        println!("{}", fact.name);
        match fact.ask(&visitor).await {
            Verdict::Held => {}
            Verdict::Failed(error) => failed.push(format!("{}: {error:#}", fact.name)),
            Verdict::Reduced(why) => println!("reduced: {}: {why}", fact.name),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
