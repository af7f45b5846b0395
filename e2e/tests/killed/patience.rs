//! Statements that take a minute or two, because somebody of whom nothing is heard has to be given up first: made side by side, for none of them keeps the
//! machine busy meanwhile. Each is a test, which says what became of it; whichever comes first makes all of them, because no more tests than the machine has
//! cores run at once.

use std::{collections::BTreeMap, sync::LazyLock};

use anyhow::{Context, Error, Result, anyhow};
use e2e::lanes::side_by_side;

use super::{cloud, effects, lease};

/// Its name, and what makes it.
type Statement = (&'static str, fn() -> Result<()>);
/// By their names, why they do not hold, if they do not.
type Outcomes = BTreeMap<&'static str, Result<(), String>>;

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

static OUTCOMES: LazyLock<Result<Outcomes>> = LazyLock::new(|| {
    let name = |(name, _): &Statement| (*name).to_owned();
    let outcomes = side_by_side(STATEMENTS.len(), STATEMENTS.to_vec(), name, |(name, statement)| {
        (name, statement().map_err(|error| format!("{error:#}")))
    })?;
    Ok(outcomes.into_iter().collect())
});

/// Waits until all of them are made; fails if this one does not hold.
fn outcome_of(name: &str) -> Result<()> {
    let outcomes = OUTCOMES.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let outcome = outcomes.get(name).with_context(|| format!("nobody made {name}"))?;
    outcome.clone().map_err(Error::msg)
}

#[test]
fn a_kill_at_any_change_on_the_way_of_an_image_that_the_cloud_fetches_leads_to_the_same_end() -> Result<()> {
    outcome_of("a_kill_at_any_change_on_the_way_of_an_image_that_the_cloud_fetches_leads_to_the_same_end")
}

#[test]
fn a_kill_at_any_change_on_the_way_of_an_image_by_the_stage_leads_to_the_same_end() -> Result<()> {
    outcome_of("a_kill_at_any_change_on_the_way_of_an_image_by_the_stage_leads_to_the_same_end")
}

#[test]
fn what_a_process_had_under_way_in_the_cloud_when_it_was_stopped_past_its_lease_does_no_harm() -> Result<()> {
    outcome_of("what_a_process_had_under_way_in_the_cloud_when_it_was_stopped_past_its_lease_does_no_harm")
}

#[test]
fn images_that_the_cloud_was_taking_when_it_was_killed_are_there_in_the_end() -> Result<()> {
    outcome_of("images_that_the_cloud_was_taking_when_it_was_killed_are_there_in_the_end")
}

#[test]
fn a_cloud_that_takes_no_more_of_an_image_is_told_of_and_not_waited_for() -> Result<()> {
    outcome_of("a_cloud_that_takes_no_more_of_an_image_is_told_of_and_not_waited_for")
}

#[test]
fn what_lies_on_a_stage_and_nobody_takes_off_is_given_up_and_the_image_sent() -> Result<()> {
    outcome_of("what_lies_on_a_stage_and_nobody_takes_off_is_given_up_and_the_image_sent")
}
