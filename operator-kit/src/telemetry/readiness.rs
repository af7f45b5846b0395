//! Whether the process is ready, and what it still waits for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A set of gates that all must be open. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    gates: Arc<Mutex<BTreeMap<&'static str, bool>>>,
}

/// One thing that must be done before the process is ready. Dropping it leaves it as it is.
#[derive(Clone, Debug)]
pub struct Gate {
    readiness: Readiness,
    name: &'static str,
}

impl Readiness {
    /// Adds a closed gate. The name says what is waited for, in words for `/readyz`: `watches of cluster stacks`.
    pub fn gate(&self, name: &'static str) -> Gate {
        self.set(name, false);
        Gate {
            readiness: self.clone(),
            name,
        }
    }

    /// The names of the gates that are still closed, sorted. Ready means: none.
    pub fn missing(&self) -> Vec<&'static str> {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates
            .iter()
            .filter(|(_, open)| !**open)
            .map(|(name, _)| *name)
            .collect()
    }

    fn set(&self, name: &'static str, open: bool) {
        self.gates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name, open);
    }
}

impl Gate {
    /// What was waited for is there. Opening again does nothing.
    pub fn open(&self) {
        self.readiness.set(self.name, true);
    }

    /// What is waited for has to come again.
    pub fn close(&self) {
        self.readiness.set(self.name, false);
    }
}
