//! The whole plan of a ClusterAddon in a modelled world.

mod cluster;
mod driver;
mod histories;
mod journeys;
mod observing;
mod releases;
mod rules;
mod told;
mod world;
