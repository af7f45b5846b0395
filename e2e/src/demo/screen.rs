//! Where the story is told: on a terminal, with the tree below it, which is drawn again in place; elsewhere in plain lines, one
//! for each change.
//!
//! Decides nothing about content. A frame is one write, goes over the last one without clearing it first, and never wraps: so
//! nothing flickers.

use std::{
    env,
    io::{IsTerminal, Write, stdout},
    time::{Duration, Instant},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::time::interval;

use super::{
    changes::Changes,
    picture::{Row, Tone},
    text::{cut, printable, short, width, wrap},
    tree::{self, Ink, Line},
};

/// When the terminal does not tell its size.
const USUAL_SIZE: (usize, usize) = (80, 24);
/// Longer lines of prose are hard to read.
const WIDEST_PROSE: usize = 100;
const INDENT: &str = "  ";
const FACT_WIDTH: usize = 10;
/// What the tree leaves of the terminal's height.
const STORY_LINES: usize = 10;
/// Often enough to look alive.
const FRAME: Duration = Duration::from_millis(80);
const SPINNER: [&str; 8] = ["⣾", "⣽", "⣻", "⢿", "⡿", "⣟", "⣯", "⣷"];

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Terminals that know these two show what is between them at once; the others ignore them.
const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

pub(super) struct Screen {
    /// When the part began that is told.
    started: Instant,
    coloured: bool,
    /// Present on a terminal.
    live: Option<Live>,
    rows: Vec<Row>,
    /// What is to be told without a terminal.
    changes: Changes,
}

/// What stands on the terminal below the story.
struct Live {
    /// The widths of its lines.
    drawn: Vec<usize>,
    drawn_at: Instant,
    /// What is being done, since when.
    activity: Option<(String, Instant)>,
    frames: usize,
    _terminal: Option<Quiet>,
}

impl Screen {
    pub(super) fn new() -> Self {
        let is_terminal = stdout().is_terminal() && env::var_os("TERM").is_some_and(|name| name != "dumb");
        Self {
            started: Instant::now(),
            coloured: AutoStream::choice(&stdout()) != ColorChoice::Never,
            live: is_terminal.then(|| Live::on(Some(Quiet::begin()))),
            rows: Vec::new(),
            changes: Changes::default(),
        }
    }

    /// Whether somebody watches as it happens.
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// How long those who watch are given to read; nobody else waits.
    pub(super) fn pause(&self, seconds: u64) -> Duration {
        Duration::from_secs(if self.is_live() { seconds } else { 0 })
    }

    /// Begins a part. It has a clock of its own, by which changes are told and the part is measured in the end.
    pub(super) fn begin(&mut self, title: &str) {
        self.heading(title);
        self.started = Instant::now();
        if self.live.is_none() {
            self.say("The seconds at the left are counted from here.");
        }
    }

    /// How long the part has taken.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Begins a chapter.
    pub(super) fn heading(&mut self, text: &str) {
        let text = self.painted(BOLD, text);
        self.gap();
        self.put(&[text]);
    }

    /// Leaves a line empty.
    pub(super) fn gap(&mut self) {
        self.put(&[String::new()]);
    }

    /// Tells something in prose.
    pub(super) fn say(&mut self, text: &str) {
        let lines: Vec<_> = wrap(text, self.prose())
            .iter()
            .map(|line| format!("{INDENT}{line}"))
            .collect();
        self.put(&lines);
    }

    /// Shows commands, YAML, the words of others; what is too long for a line goes on in the next.
    pub(super) fn quote(&mut self, text: &str) {
        let room = self.prose() - 2;
        let lines = text.lines().flat_map(|line| {
            let line = printable(line);
            if width(&line) <= room {
                vec![line]
            } else {
                wrap(&line, room)
            }
        });
        let lines = lines.map(|line| format!("{INDENT}  {}", self.painted(colour(AnsiColor::Cyan), &line)));
        self.put(&lines.collect::<Vec<_>>());
    }

    /// Tells one of several facts that stand below each other.
    pub(super) fn fact(&mut self, name: &str, text: &str) {
        let room = self.prose() - FACT_WIDTH;
        let lines = wrap(text, room).into_iter().enumerate().map(|(index, line)| {
            let name = if index == 0 { name } else { "" };
            format!("{INDENT}{}{line}", self.painted(FAINT, &format!("{name:FACT_WIDTH$}")))
        });
        self.put(&lines.collect::<Vec<_>>());
    }

    /// Columns for prose. A pipe has as many as one likes.
    fn prose(&self) -> usize {
        let room = if self.live.is_some() { size().0 } else { WIDEST_PROSE };
        room.min(WIDEST_PROSE) - INDENT.len()
    }

    /// Tells that something came out well.
    pub(super) fn good(&mut self, text: &str) {
        self.marked("✓", Tone::Good, text);
    }

    /// Tells that something did not.
    pub(super) fn bad(&mut self, text: &str) {
        self.marked("✗", Tone::Bad, text);
    }

    fn marked(&mut self, mark: &str, tone: Tone, text: &str) {
        let room = self.prose() - 2;
        let mark = self.painted(style(Ink::Of(tone)), mark);
        let lines = text.lines().flat_map(|line| wrap(line, room)).enumerate();
        let lines: Vec<_> = lines
            .map(|(index, line)| {
                let start = if index == 0 { mark.as_str() } else { " " };
                format!("{INDENT}{start} {line}")
            })
            .collect();
        self.put(&lines);
    }

    /// Does something that takes a while, and tells how long it took.
    pub(super) async fn step<T>(&mut self, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let started = Instant::now();
        if self.live.is_none() {
            self.put(&[format!("{INDENT}• {what} …")]);
        }
        self.working(Some(what));
        let mut work = Box::pin(work);
        let mut frames = interval(FRAME);
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                _ = frames.tick() => self.refresh(),
            }
        };
        self.working(None);
        let took = self.painted(FAINT, &format!("({})", short(started.elapsed())));
        match &outcome {
            Ok(_) => self.put(&[format!(
                "{INDENT}{} {what} {took}",
                self.painted(colour(AnsiColor::Green), "✓")
            )]),
            Err(_) => self.bad(what),
        }
        outcome
    }

    /// What is being done, for those who watch.
    pub(super) fn working(&mut self, what: Option<&str>) {
        if let Some(live) = &mut self.live {
            live.activity = what.map(|what| (what.to_owned(), Instant::now()));
        }
    }

    /// Shows how things are now.
    pub(super) fn show(&mut self, rows: Vec<Row>) {
        let before = std::mem::replace(&mut self.rows, rows);
        if self.live.is_none() {
            self.changes.take(&before, &self.rows, self.elapsed());
            self.refresh();
        } else if before != self.rows {
            self.refresh();
        }
    }

    /// Draws the next frame, or tells what changed, when it is time for that.
    pub(super) fn refresh(&mut self) {
        let is_time = match &self.live {
            Some(live) => live.drawn.is_empty() || live.drawn_at.elapsed() >= FRAME,
            None => self.changes.are_due(self.elapsed()),
        };
        if is_time {
            self.put(&[]);
        }
    }

    /// Takes the tree away: nothing happens any more.
    pub(super) fn leave(&mut self) {
        self.working(None);
        if self.live.is_some() {
            self.rows.clear();
            self.put(&[]);
        }
    }

    /// Writes lines of the story, and the tree below them.
    fn put(&mut self, lines: &[String]) {
        write(&self.composed(lines, size()));
    }

    /// What has to be written for that, on a terminal of this size.
    fn composed(&mut self, lines: &[String], (columns, height): (usize, usize)) -> String {
        let Some(live) = &mut self.live else {
            let changes = self.changes.tell(WIDEST_PROSE);
            let text: Vec<_> = changes.iter().chain(lines).flat_map(|line| [line, "\n"]).collect();
            return text.concat();
        };
        let up = live.rows_drawn(columns);
        let frame = live.frame(&self.rows, columns, height);
        let mut text = String::from(BEGIN_FRAME);
        if up > 0 {
            text += &up_by(up);
        }
        for line in lines.iter().cloned().chain(frame.iter().map(|line| self.paint(line))) {
            text += &line;
            text += CLEAR_LINE;
            text += "\n";
        }
        text + CLEAR_BELOW + END_FRAME
    }

    fn paint(&self, line: &Line) -> String {
        let pieces = line.0.iter().map(|(ink, text)| self.painted(style(*ink), text));
        pieces.collect()
    }

    fn painted(&self, style: Style, text: &str) -> String {
        if self.coloured && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

impl Live {
    fn on(terminal: Option<Quiet>) -> Self {
        Self {
            drawn: Vec::new(),
            drawn_at: Instant::now(),
            activity: None,
            frames: 0,
            _terminal: terminal,
        }
    }

    /// How far up the first line of the last frame is. A terminal that was made narrower has wrapped what it shows.
    fn rows_drawn(&self, columns: usize) -> usize {
        self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum()
    }

    /// What is to stand below the story now: lower than the terminal, or its first line could not be reached again.
    fn frame(&mut self, rows: &[Row], columns: usize, height: usize) -> Vec<Line> {
        let room = height.saturating_sub(STORY_LINES).max(height / 2);
        let tree = tree::lines(rows, columns, room);
        let rule = (!tree.is_empty()).then(|| {
            let rule = "─".repeat(columns.min(WIDEST_PROSE) - 2 * INDENT.len());
            Line(vec![(Ink::Faint, format!("{INDENT}{rule}"))])
        });
        let spinner = SPINNER[self.frames % SPINNER.len()];
        let activity = self.activity.as_ref().map(|(what, since)| {
            // Whoever waits looks at the seconds: a long text must not push them out.
            let since = short(since.elapsed());
            let text = cut(
                &format!("{INDENT}{spinner} {what}"),
                columns.saturating_sub(since.len() + 1),
            );
            Line(vec![(Ink::Faint, format!("{text} {since}"))])
        });
        let frame: Vec<_> = rule.into_iter().chain(tree).chain(activity).collect();
        self.drawn = frame.iter().map(Line::width).collect();
        self.drawn_at = Instant::now();
        self.frames += 1;
        frame
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A terminal without cursor and echo: neither a blinking block nor a key pressed meanwhile may stand in the tree. Dropped, it
/// is as before.
struct Quiet {
    before: Option<Termios>,
}

impl Quiet {
    fn begin() -> Self {
        write(HIDE_CURSOR);
        let before = tcgetattr(stdout()).ok();
        if let Some(before) = &before {
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            // The worst that an error leaves is an echo.
            let _ = tcsetattr(stdout(), OptionalActions::Now, &silent);
        }
        Self { before }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdout(), OptionalActions::Now, before);
        }
        write(SHOW_CURSOR);
    }
}

/// To the beginning of the line so many above.
fn up_by(rows: usize) -> String {
    format!("\x1b[{rows}A\r")
}

fn style(ink: Ink) -> Style {
    match ink {
        Ink::Plain => Style::new(),
        Ink::Faint => FAINT,
        Ink::Of(Tone::Good) => colour(AnsiColor::Green),
        Ink::Of(Tone::Busy) => colour(AnsiColor::Yellow),
        Ink::Of(Tone::Bad) => colour(AnsiColor::Red),
    }
}

fn colour(colour: AnsiColor) -> Style {
    colour.on_default()
}

/// Columns and lines; small enough ones count as unknown.
fn size() -> (usize, usize) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col >= 20 && size.ws_row >= 5 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL_SIZE,
    }
}

fn write(text: &str) {
    // Whoever closed the pipe does not want to know.
    let _ = stdout().write_all(text.as_bytes());
    let _ = stdout().flush();
}

#[cfg(test)]
mod tests;
