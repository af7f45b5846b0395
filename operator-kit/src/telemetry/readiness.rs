//! Whether the process is ready, and what it still waits for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A set of gates that all must be open. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    closed: Arc<Mutex<BTreeMap<String, Option<String>>>>,
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
        let told = |(name, cause): (&String, &Option<String>)| match cause {
            Some(cause) => format!("{name}: {cause}"),
            None => name.clone(),
        };
        self.closed().iter().map(told).collect()
    }

    fn closed(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// What was waited for is there. Opening again does nothing.
    pub fn open(&self) {
        self.readiness.closed().remove(&self.name);
    }

    /// What is waited for has to come again.
    pub fn close(&self) {
        self.readiness.closed().insert(self.name.clone(), None);
    }

    /// What is waited for cannot come, for this cause.
    pub fn close_for(&self, cause: &str) {
        self.readiness
            .closed()
            .insert(self.name.clone(), Some(cause.to_owned()));
    }
}
