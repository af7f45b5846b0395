//! Asking all facts of one cloud.

use openstack_lab::{
    Site,
    facts::{Verdict, Visitor, facts},
};

/// Asks all facts, in both orders: none may live on what another one left.
pub(crate) async fn ask_all(site: &Site) {
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
