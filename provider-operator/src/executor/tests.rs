//! The executor with clouds of clay in paused time, and with real counterparts.

mod bench;
mod ends;
mod gates;
mod real;
mod turns;
