//! One node image in a modelled cloud: the table of rules, every input at once, golden scenarios, and properties of every history.

#![expect(clippy::panic, reason = "a script with a mistake and a broken rule end the test")]
#![expect(
    clippy::unnecessary_wraps,
    reason = "what goes into an option is made as one, so that a case stays a line"
)]

mod jobs;
mod late;
mod orphans;
mod properties;
mod scenarios;
mod status;
mod sweep;
mod table;
mod told;
mod world;
