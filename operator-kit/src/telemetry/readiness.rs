//! Whether the process is ready, and what it still waits for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A set of gates that all must be open. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    /// Gates of which there is something to say, by name.
    states: Arc<Mutex<BTreeMap<String, State>>>,
}

#[derive(Clone, Debug)]
enum State {
    Closed,
    /// With the cause.
    ClosedFor(String),
    /// With a remark.
    OpenBut(String),
}

/// One thing that must hold while the process is ready. Dropping it leaves it as it is.
#[derive(Clone, Debug)]
pub struct Gate {
    readiness: Readiness,
    name: String,
}

impl Readiness {
    /// Adds a closed gate. The name says what is waited for, in words for `/readyz`: `watches of cluster stacks`.
    pub fn gate(&self, name: &str) -> Gate {
        let gate = self.open_gate(name);
        gate.close();
        gate
    }

    /// Adds an open gate, for what is taken for granted until the contrary shows.
    pub fn open_gate(&self, name: &str) -> Gate {
        Gate {
            readiness: self.clone(),
            name: name.to_owned(),
        }
    }

    /// What is still waited for, sorted, with the cause where one is known. Ready means: nothing.
    pub fn missing(&self) -> Vec<String> {
        let told = |(name, state): (&String, &State)| match state {
            State::Closed => Some(name.clone()),
            State::ClosedFor(cause) => Some(format!("{name}: {cause}")),
            State::OpenBut(_) => None,
        };
        self.states().iter().filter_map(told).collect()
    }

    /// What somebody should look after although it is not waited for, sorted.
    pub fn remarks(&self) -> Vec<String> {
        let told = |(name, state): (&String, &State)| match state {
            State::OpenBut(remark) => Some(format!("{name}: {remark}")),
            State::Closed | State::ClosedFor(_) => None,
        };
        self.states().iter().filter_map(told).collect()
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// What was waited for is there. Opening again does nothing.
    pub fn open(&self) {
        self.readiness.states().remove(&self.name);
    }

    /// What was waited for is there, and this should be looked after.
    pub fn open_but(&self, remark: &str) {
        self.set(State::OpenBut(remark.to_owned()));
    }

    /// What is waited for has to come again.
    pub fn close(&self) {
        self.set(State::Closed);
    }

    /// What is waited for cannot come, for this cause.
    pub fn close_for(&self, cause: &str) {
        self.set(State::ClosedFor(cause.to_owned()));
    }

    fn set(&self, state: State) {
        self.readiness.states().insert(self.name.clone(), state);
    }
}
