//! A Keystone and a Glance in this process, the real ones as processes beside it, and the facts that hold for both alike.
//!
//! Whoever tests a client of OpenStack starts a [`fake::Fake`] or a [`real::Real`] and knows nothing but its [`Site`]. That the fake does what
//! the real services do is what the [`facts`] are for: they are asked over plain HTTP, through a client of their own, so that no mistake is
//! shared with what they test. Beside them is what else is on the way of an image: a [`source`] of files, and a [`proxy`] by which a network fails.
//! All of them, and whatever else a test plays on a port, begin with [`listening`].

mod authority;
pub mod client;
pub mod disk;
pub mod facts;
pub mod fake;
pub mod file;
pub mod listening;
pub mod proxy;
pub mod real;
mod site;
pub mod source;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use authority::Pair;
pub use site::{Kind, Limits, Login, Site};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
