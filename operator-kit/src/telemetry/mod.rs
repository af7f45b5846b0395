//! What the process tells about itself: logs, traces, metrics, health. It decides nothing and knows no kinds.

mod logging;
mod news;
mod process;
mod readiness;
mod server;
mod traces;

use prometheus_client::registry::Registry;

pub use self::logging::{LogFormat, LogLevel, LoggingError, check_level, init_logging};
pub use self::news::{Change, log_readiness, log_refusal};
pub use self::readiness::{Gate, Readiness};
pub use self::server::{serve_health, serve_metrics};
pub use self::traces::{Collector, Traces, TracesError, trace_id};

/// A registry with the process's own metrics (`process_*`). Register everything else below a prefix of its own.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(process::Process));
    registry
}
