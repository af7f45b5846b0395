//! Statements that take a minute or two, because somebody of whom nothing is heard has to be given up first: made side by side, for none of them keeps the
//! machine busy meanwhile.

use anyhow::{Result, ensure};
use e2e::lanes::side_by_side;

use super::{cloud, effects, lease};

/// Its name, and what makes it.
type Statement = (&'static str, fn() -> Result<()>);

const STATEMENTS: [Statement; 6] = [
    (
        "a_kill_at_any_change_on_the_way_of_an_image_that_the_cloud_fetches_leads_to_the_same_end",
        effects::a_kill_at_any_change_on_the_way_of_an_image_that_the_cloud_fetches_leads_to_the_same_end,
    ),
    (
        "a_kill_at_any_change_on_the_way_of_an_image_by_the_stage_leads_to_the_same_end",
        effects::a_kill_at_any_change_on_the_way_of_an_image_by_the_stage_leads_to_the_same_end,
    ),
    (
        "what_a_process_had_under_way_in_the_cloud_when_it_was_stopped_past_its_lease_does_no_harm",
        lease::what_a_process_had_under_way_in_the_cloud_when_it_was_stopped_past_its_lease_does_no_harm,
    ),
    (
        "images_that_the_cloud_was_taking_when_it_was_killed_are_there_in_the_end",
        cloud::images_that_the_cloud_was_taking_when_it_was_killed_are_there_in_the_end,
    ),
    (
        "a_cloud_that_takes_no_more_of_an_image_is_told_of_and_not_waited_for",
        cloud::a_cloud_that_takes_no_more_of_an_image_is_told_of_and_not_waited_for,
    ),
    (
        "what_lies_on_a_stage_and_nobody_takes_off_is_given_up_and_the_image_sent",
        cloud::what_lies_on_a_stage_and_nobody_takes_off_is_given_up_and_the_image_sent,
    ),
];

#[test]
fn whoever_is_not_heard_of_any_more_is_given_up() -> Result<()> {
    let name = |(name, _): &Statement| (*name).to_owned();
    let outcomes = side_by_side(STATEMENTS.len(), STATEMENTS.to_vec(), name, |(name, statement)| {
        statement().map_err(|error| format!("{name}: {error:#}"))
    })?;
    let failed: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    ensure!(failed.is_empty(), "{failed:#?}");
    Ok(())
}
