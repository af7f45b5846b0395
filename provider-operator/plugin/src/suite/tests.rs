//! The suite passes a store that does everything right, and notices each thing that one can do wrong.

use strum::IntoEnumIterator;

use super::{
    Held, facts,
    memory::{Memory, Wrong},
};

crate::provider_suite!(Memory::default());

#[tokio::test(start_paused = true)]
async fn every_statement_is_tried_on_a_cloud_that_has_everything() {
    for (name, fact) in facts::<Memory>() {
        let held = fact(&Memory::new(None)).await;
        assert_eq!(held.map_err(|broken| format!("{broken:?}")), Ok(Held::Holds), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_thing_that_a_store_can_do_wrong_is_noticed() {
    let mut unnoticed = Vec::new();
    for wrong in Wrong::iter() {
        let mut is_noticed = false;
        for (_, fact) in facts::<Memory>() {
            is_noticed = is_noticed || fact(&Memory::new(Some(wrong))).await.is_err();
        }
        if !is_noticed {
            unnoticed.push(wrong);
        }
    }
    assert_eq!(unnoticed, []);
}
