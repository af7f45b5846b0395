//! What is said in the log, for unit tests.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, set_default};

/// Listens to nobody, for ever. Which of the messages are wanted is decided for all threads at once, when each is first met: one that is met by
/// another test just before a log begins would not be wanted there.
static LISTENER: LazyLock<Dispatch> = LazyLock::new(|| {
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    everything.with_writer(io::sink).finish().into()
});

/// The log of this thread from its making on, from level `INFO`.
pub(crate) struct Told {
    text: Text,
    _until_dropped: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Told {
    pub(crate) fn begin() -> Self {
        LazyLock::force(&LISTENER);
        let text = Text::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || writer.clone())
            .without_time()
            .with_target(false)
            .with_ansi(false)
            .finish();
        Self {
            text,
            _until_dropped: set_default(subscriber),
        }
    }

    /// Levels and messages.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = self.text.0.lock().expect("no writer panicked").clone();
        let text = String::from_utf8(text).expect("the log is text");
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}
