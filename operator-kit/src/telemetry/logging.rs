//! Logs to stderr, as text for people or JSON for machines; the level can be changed while the process runs. Lines are logged, spans are
//! traced: neither sees the other, so that the level of the log says nothing of traces.

use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, FilterFn, LevelFilter, ParseError, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use super::traces::Traces;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    ///
    /// Coloured when stderr is a terminal.
    Text,
}

/// Logging cannot be set up or changed.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The level is not one.
    #[error("unable to log at {level:?}; use error, warn, info, debug, trace, or directives such as info,kube=debug")]
    Level {
        /// What was asked for.
        level: String,
        /// Why.
        #[source]
        source: ParseError,
    },
    /// A word alone is neither a level nor a directive. The filter would take it for the name of a part and log nothing else.
    #[error(
        "unable to log at {word:?}; use error, warn, info, debug, trace or off, or PART=LEVEL such as info,kube=debug"
    )]
    Word {
        /// The word.
        word: String,
    },
    /// Somebody set up logging already.
    #[error("failed to set up logging a second time")]
    Install(#[source] tracing_subscriber::util::TryInitError),
    /// Logging has been torn down.
    #[error("failed to change the level: logging is gone")]
    Reload(#[source] reload::Error),
}

/// The level of the running process. Clones share it.
#[derive(Clone)]
pub struct LogLevel {
    handle: reload::Handle<EnvFilter, Registry>,
}

impl LogLevel {
    /// Replaces the level; see [`init_logging`] for what one is.
    pub fn set(&self, level: &str) -> Result<(), LoggingError> {
        self.handle.reload(filter(level)?).map_err(LoggingError::Reload)
    }

    /// One of no logger, with what keeps it alive.
    #[cfg(test)]
    pub(super) fn detached(level: &str) -> (Self, reload::Layer<EnvFilter, Registry>) {
        let (layer, handle) = reload::Layer::new(EnvFilter::new(level));
        (Self { handle }, layer)
    }

    /// The directives in force.
    pub fn current(&self) -> String {
        self.handle.with_current(ToString::to_string).unwrap_or_default()
    }
}

/// Installs the process's one logger, and what sends its spans, if any. `level` is a level (`info`) or directives (`info,kube_client=debug`).
pub fn init_logging(format: LogFormat, level: &str, traces: Option<&Traces>) -> Result<LogLevel, LoggingError> {
    let (filter, handle) = reload::Layer::new(filter(level)?);
    let lines = match format {
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(std::io::stderr)
            .boxed(),
        LogFormat::Text => {
            let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
            fmt::layer().with_ansi(colour).with_writer(std::io::stderr).boxed()
        }
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter.and(is_line())))
        .with(traces.map(traced))
        .try_init()
        .map_err(LoggingError::Install)?;
    Ok(LogLevel { handle })
}

fn is_line() -> FilterFn {
    // Neither an event nor a span is the question whether a level is logged.
    let is_line: fn(&Metadata<'_>) -> bool = |metadata| !metadata.is_span();
    filter_fn(is_line).with_max_level_hint(LevelFilter::TRACE)
}

/// The spans of our own rooms.
pub(super) fn traced<S>(traces: &Traces) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    const ROOMS: [&str; 3] = ["core_operator", "operator_kit", "release"];
    let is_ours = |metadata: &Metadata<'_>| {
        let room = metadata.target().split("::").next().unwrap_or_default();
        metadata.is_span() && ROOMS.contains(&room)
    };
    tracing_opentelemetry::layer()
        .with_tracer(traces.tracer())
        .with_location(false)
        .with_threads(false)
        .with_filter(filter_fn(is_ours).with_max_level_hint(LevelFilter::INFO))
}

/// Whether [`init_logging`] takes this as a level, for command lines.
pub fn check_level(level: &str) -> Result<(), LoggingError> {
    filter(level).map(drop)
}

fn filter(level: &str) -> Result<EnvFilter, LoggingError> {
    let is_level = |word: &str| word.contains('=') || word.parse::<LevelFilter>().is_ok();
    if let Some(word) = level.split(',').find(|word| !is_level(word)) {
        return Err(LoggingError::Word { word: word.to_owned() });
    }
    // kube logs every refused request as an error, also those that we expect, every attempt of a watch that is not allowed, and answers whole, with
    // what is in Secrets; ours say more. OpenTelemetry says with every batch that nobody takes it; we say it once. A later directive wins.
    let directives = format!("kube_client::client=off,kube_runtime::watcher=off,opentelemetry=off,{level}");
    EnvFilter::builder()
        .parse(directives)
        .map_err(|source| LoggingError::Level {
            level: level.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_changes_while_the_process_runs() {
        let (_filter, handle) = reload::Layer::new(filter("info").unwrap());
        let level = LogLevel { handle };
        level.set("debug,hyper=warn").unwrap();
        assert!(level.current().contains("hyper=warn"), "{}", level.current());
        assert!(level.set("x=loud").is_err());
        assert!(level.current().contains("hyper=warn"), "a bad level changes nothing");
    }

    #[test]
    fn levels_and_directives_are_understood_and_nonsense_is_refused() {
        assert!(filter("info").is_ok());
        assert!(filter("warn,operator_kit=debug").is_ok());
        let error = filter("operator_kit=loud").unwrap_err();
        assert!(error.to_string().contains("operator_kit=loud"), "{error}");
        for word in ["loud", "info,kube"] {
            assert!(matches!(filter(word), Err(LoggingError::Word { .. })), "{word}");
        }
    }
}
