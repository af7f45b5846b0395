//! The decisions in a modelled world: scenarios as golden text, and properties of every history.

#![expect(clippy::panic, reason = "a script with a mistake and a broken rule end the test")]

mod histories;
mod inputs;
mod journeys;
mod scenarios;
mod world;
