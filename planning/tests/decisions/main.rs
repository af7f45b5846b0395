//! The decisions in a modelled world: scenarios as golden text, and properties of every history.

mod scenarios;
mod world;
