//! The rows of a picture as lines of a tree, in the columns and lines that there are. Pure: knows no terminal.

use super::{
    picture::{Row, Tone},
    text::{count, cut, cut_front, printable, shorten, width, wrap},
};

/// From this width on, names stand in full.
const WIDE: usize = 112;
/// Where states begin: behind the longest usual kind and name, in full or without what the name shares with its release.
const STATE_COLUMN: usize = 72;
const NARROW_STATE_COLUMN: usize = 52;
/// Mark, space and the states of objects.
const STATE_WIDTH: usize = 10;
/// Always as long, so that it grows and never shrinks.
const BAR: usize = 24;
/// A note that does not fit beside its state gets at most so many lines below it.
const NOTE_LINES: usize = 4;

/// How a piece of a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    /// Less important than what is beside it.
    Faint,
    Of(Tone),
}

/// One line on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<(Ink, String)>);

impl Line {
    /// Columns that it takes.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| width(text)).sum()
    }

    /// The same in at most so many columns.
    fn within(mut self, columns: usize) -> Self {
        let mut room = columns;
        for (_, text) in &mut self.0 {
            *text = cut(text, room);
            room -= width(text);
        }
        self
    }
}

/// The whole tree. When it is higher than `height`, the objects of releases that are well are counted instead of shown, the
/// oldest release first.
pub(super) fn lines(rows: &[Row], columns: usize, height: usize) -> Vec<Line> {
    let mut rows = rows.to_vec();
    loop {
        let mut lines = drawn(&rows, columns);
        if lines.len() > height {
            if fold_one(&mut rows) {
                continue;
            }
            let hidden = lines.len() - height.saturating_sub(1);
            lines.truncate(height.saturating_sub(1));
            lines.push(Line(vec![(
                Ink::Faint,
                format!("  … and {} more", count(hidden, "line")),
            )]));
        }
        return lines.into_iter().map(|line| line.within(columns)).collect();
    }
}

/// Counts the objects of the first release of which all objects are well and there is nothing to tell; false when there is none.
fn fold_one(rows: &mut Vec<Row>) -> bool {
    let mut start = 0;
    while start < rows.len() {
        let is_object = |row: &&Row| row.depth == 2 && !row.is_image;
        let length = rows[start..].iter().take_while(is_object).count();
        let well = |row: &Row| row.tone == Tone::Good && row.note.is_empty();
        if length > 1 && rows[start..start + length].iter().all(well) {
            let folded = Row {
                id: (count(length, "object"), String::new()),
                ..rows[start].clone()
            };
            rows.splice(start..start + length, [folded]);
            return true;
        }
        start += length.max(1);
    }
    false
}

fn drawn(rows: &[Row], columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for index in 0..rows.len() {
        lines.extend(lines_of(&rows[index], &Branch::of(rows, index), columns));
    }
    lines
}

fn lines_of(row: &Row, branch: &Branch, columns: usize) -> Vec<Line> {
    let wide = columns >= WIDE;
    let column = if wide {
        STATE_COLUMN
    } else {
        NARROW_STATE_COLUMN.min(columns * 2 / 3)
    };
    let (kind, name) = &row.id;
    let room = column.saturating_sub(width(&branch.first) + width(kind) + 2);
    let name = match name.strip_prefix(&branch.release) {
        Some(rest) if !wide && row.depth == 2 && !rest.is_empty() => cut_front(&format!("…{rest}"), room),
        _ => cut_front(name, room),
    };
    let used = width(&branch.first) + width(kind) + 1 + width(&name);
    let mark = match row.tone {
        Tone::Good => "✓",
        Tone::Busy => "•",
        Tone::Bad => "✗",
    };
    let state = format!(
        "{mark} {}",
        cut(&printable(&row.state), columns.saturating_sub(column + 2))
    );
    let gap = STATE_WIDTH.saturating_sub(width(&state)).max(1);
    let note_column = column + width(&state) + gap;
    let mut line = Line(vec![
        (Ink::Faint, branch.first.clone()),
        (Ink::Faint, format!("{kind} ")),
        (Ink::Plain, name),
        (Ink::Plain, " ".repeat(column.saturating_sub(used))),
        (Ink::Of(row.tone), state),
    ]);
    if let Some(percent) = row.percent {
        return vec![line, progress(row, percent, &branch.next, columns)];
    }
    if row.note.is_empty() {
        return vec![line];
    }
    let beside = wrap(&row.note, columns.saturating_sub(note_column));
    if let [note] = beside.as_slice()
        && !note.contains('…')
    {
        line.0.push((Ink::Faint, format!("{}{note}", " ".repeat(gap))));
        return vec![line];
    }
    let below = wrap(&row.note, columns.saturating_sub(width(&branch.next) + 1));
    let notes = shorten(below, NOTE_LINES)
        .into_iter()
        .map(|text| Line(vec![(Ink::Faint, branch.next.clone()), (Ink::Of(row.tone), text)]));
    [line].into_iter().chain(notes).collect()
}

/// A bar, and behind it in words what it shows; on a narrow terminal the words alone.
fn progress(row: &Row, percent: u8, before: &str, columns: usize) -> Line {
    let room = columns.saturating_sub(width(before) + 1);
    let words = printable(&row.note);
    if width(&words) + 1 + BAR > room {
        return Line(vec![
            (Ink::Faint, before.to_owned()),
            (Ink::Of(row.tone), cut(&words, room)),
        ]);
    }
    let done = BAR * usize::from(percent.min(100)) / 100;
    Line(vec![
        (Ink::Faint, before.to_owned()),
        (Ink::Of(row.tone), "━".repeat(done)),
        (Ink::Faint, "─".repeat(BAR - done)),
        (Ink::Plain, format!(" {words}")),
    ])
}

/// How a row hangs on the tree: before its own line, and before the lines that follow it.
struct Branch {
    first: String,
    next: String,
    /// The release that the row belongs to.
    release: String,
}

impl Branch {
    fn of(rows: &[Row], index: usize) -> Self {
        let row = &rows[index];
        let continues = |depth: usize| {
            let mut after = rows[index + 1..].iter().map(|row| row.depth);
            after.find(|found| *found <= depth) == Some(depth)
        };
        let release = rows[..=index].iter().rev().find(|row| row.depth == 1);
        let release = release.map(|row| row.id.1.clone()).unwrap_or_default();
        let stem = if continues(1) { "│  " } else { "   " };
        let twig = |last: bool| if last { "└─ " } else { "├─ " };
        let leaf = if continues(2) { "│  " } else { "   " };
        let (first, next) = match row.depth {
            0 => (String::new(), if continues(1) { "│  " } else { "   " }.to_owned()),
            1 => (twig(!continues(1)).to_owned(), format!("{stem}{leaf}")),
            _ => (format!("{stem}{}", twig(!continues(2))), format!("{stem}{leaf}")),
        };
        Self {
            first: format!("  {first}"),
            next: format!("  {next}"),
            release,
        }
    }
}
