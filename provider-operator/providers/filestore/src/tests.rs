//! A directory keeps what the suite says of every provider, and what it says of itself.

mod crash;
mod lab;
mod naming;
mod published;
mod resuming;

use self::lab::Lab;

provider_plugin::provider_suite!(Lab::new());
