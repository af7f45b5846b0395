//! Which part of a file wrote which bytes of its output. Kept as pairs of offsets, one for each text and action of the file itself; what
//! they include or call is theirs.

use std::sync::Arc;

use crate::text::Lines;

/// From here on, the output is what a part of the file wrote.
#[derive(Clone, Copy, Debug)]
struct Mark {
    output: u32,
    /// Where the part begins in the file.
    part: u32,
    /// The output is the same bytes as in the file; else all of it is of that place.
    is_text: bool,
}

/// The parts in the order in which they wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Vec<Mark>);

impl Origins {
    /// Notes who writes next. What lies beyond four gigabytes is not told apart.
    pub(super) fn add(&mut self, output: usize, part: usize, is_text: bool) {
        self.0.push(Mark {
            output: u32::try_from(output).unwrap_or(u32::MAX),
            part: u32::try_from(part).unwrap_or(u32::MAX),
            is_text,
        });
    }

    /// Follows the removal of a text wherever it was in the output.
    pub(super) fn remove(&mut self, output: &[u8], removed: &[u8]) {
        let marks = std::mem::take(&mut self.0);
        let mut places = memchr::memmem::find_iter(output, removed).peekable();
        let (mut gone, mut gone_to) = (0, 0);
        let ends = marks.iter().skip(1).map(|mark| mark.output as usize);
        for (mark, end) in marks.iter().zip(ends.chain([output.len()])) {
            let start = mark.output as usize;
            let part = |from: usize| mark.part as usize + if mark.is_text { from - start } else { 0 };
            let from = start.max(gone_to);
            self.add(from - gone, part(from), mark.is_text);
            while let Some(place) = places.next_if(|place| *place < end) {
                gone += removed.len();
                gone_to = place + removed.len();
                self.add(gone_to - gone, part(gone_to), mark.is_text);
            }
        }
    }

    /// Where in the file the byte of the output comes from.
    fn part(&self, output: usize) -> Option<usize> {
        let behind = self.0.partition_point(|mark| mark.output as usize <= output);
        let mark = self.0[..behind].last()?;
        let within = if mark.is_text { output - mark.output as usize } else { 0 };
        Some(mark.part as usize + within)
    }
}

/// The output of one file, and where it comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) text: Vec<u8>,
    pub(crate) origin: Arc<Origin>,
}

/// A file, and which part of it wrote what. Empty for a language that does not tell.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    pub(crate) file: Arc<[u8]>,
    pub(crate) parts: Origins,
}

impl Origin {
    /// The line of the file, from 1, that a byte of its output comes from.
    pub(crate) fn line(&self, output: usize) -> Option<usize> {
        let part = self.parts.part(output)?;
        Some(Lines::of(&self.file).position(part).0)
    }
}
