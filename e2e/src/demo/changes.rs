//! What changed from one picture to the next, in lines for those without a terminal. Pure: knows no clock.
//!
//! What happens to several objects of a release within a moment is one line.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    picture::{GONE, Id, Row, Tone},
    text::{count, shorten, wrap},
};

/// How long a change waits for others like it: as long as they keep coming, but never so long that anybody who reads along minds.
const MOMENT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_millis(600);
/// What others say may be long; those who want all of it find it where the story goes on.
const LONGEST: usize = 4;
/// Before the further lines of a change.
const INDENT: &str = "            ";

/// Changes that nobody was told yet.
#[derive(Default)]
pub(super) struct Changes {
    groups: Vec<Group>,
    /// When the first of them came.
    first: Duration,
    last: Duration,
}

/// The same change of one row, or of several objects of one release.
struct Group {
    release: String,
    row: Row,
    ids: Vec<Id>,
    /// When the last of them changed, from the beginning of the story.
    at: Duration,
}

impl Changes {
    pub(super) fn take(&mut self, before: &[Row], now: &[Row], at: Duration) {
        let earlier: BTreeMap<&Id, &Row> = before.iter().map(|row| (&row.id, row)).collect();
        // An image is shown with each release that needs it, and told of once.
        let mut seen = BTreeSet::new();
        for (row, release) in with_releases(now).filter(|(row, _)| seen.insert(&row.id)) {
            let is_new = earlier
                .get(&row.id)
                .is_none_or(|before| before.state != row.state || before.note != row.note && !row.note.is_empty());
            if is_new {
                self.add(row.clone(), release, at);
            }
        }
        for (row, release) in with_releases(before) {
            if seen.insert(&row.id) && row.state != GONE {
                let gone = Row {
                    tone: Tone::Busy,
                    state: GONE.to_owned(),
                    note: String::new(),
                    percent: None,
                    ..row.clone()
                };
                self.add(gone, release, at);
            }
        }
    }

    fn add(&mut self, row: Row, release: &str, at: Duration) {
        if self.groups.is_empty() {
            self.first = at;
        }
        self.last = at;
        let like = self.groups.iter_mut().find(|group| {
            let Row { depth, state, note, .. } = &group.row;
            let is_like = *depth == row.depth && !group.row.is_image && !row.is_image;
            is_like && row.depth == 2 && *state == row.state && *note == row.note && group.release == release
        });
        if let Some(group) = like {
            group.ids.push(row.id);
            group.at = at;
        } else {
            self.groups.push(Group {
                release: release.to_owned(),
                ids: vec![row.id.clone()],
                row,
                at,
            });
        }
    }

    /// Whether they have waited long enough.
    pub(super) fn are_due(&self, now: Duration) -> bool {
        !self.groups.is_empty() && (now >= self.last + MOMENT || now >= self.first + LONG)
    }

    /// Tells all of them, in the order of their times, in at most so many columns.
    pub(super) fn tell(&mut self, columns: usize) -> Vec<String> {
        let mut groups = std::mem::take(&mut self.groups);
        groups.sort_by_key(|group| group.at);
        groups.iter().flat_map(|group| group.lines(columns)).collect()
    }
}

impl Group {
    fn lines(&self, columns: usize) -> Vec<String> {
        let Row {
            id, tone, state, note, ..
        } = &self.row;
        let who = match self.ids.as_slice() {
            [_] => format!("{} {}", id.0, id.1),
            several => format!("{} of {}", count(several.len(), "object"), self.release),
        };
        let note = match self.ids.as_slice() {
            // What came of a release is worth its names; on the way there, the number will do.
            [_, _, ..] if note.is_empty() && *tone == Tone::Good => self.kinds(),
            _ => note.clone(),
        };
        let note = if note.is_empty() { note } else { format!(" ({note})") };
        let lines = wrap(&format!("{who}: {state}{note}"), columns - INDENT.len());
        let lines = shorten(lines, LONGEST);
        let time = format!("{:8.2} s  ", self.at.as_secs_f64());
        let starts = [time.as_str()].into_iter().chain(std::iter::repeat(INDENT));
        starts
            .zip(lines)
            .map(|(start, line)| format!("{start}{line}"))
            .collect()
    }

    /// `ClusterClass, 3×DockerMachineTemplate`
    fn kinds(&self) -> String {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (kind, _) in &self.ids {
            *kinds.entry(kind).or_default() += 1;
        }
        let words = kinds.into_iter().map(|(kind, number)| match number {
            1 => kind.to_owned(),
            _ => format!("{number}×{kind}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Each row with the name of the release that it belongs to, empty for the stack.
fn with_releases(rows: &[Row]) -> impl Iterator<Item = (&Row, &str)> {
    rows.iter().scan("", |release, row| {
        if row.depth == 1 {
            *release = &row.id.1;
        }
        Some((row, *release))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(depth: usize, id: (&str, &str), state: &str, note: &str) -> Row {
        Row {
            depth,
            id: (id.0.to_owned(), id.1.to_owned()),
            tone: if state == "synced" { Tone::Good } else { Tone::Busy },
            state: state.to_owned(),
            note: note.to_owned(),
            is_image: false,
            percent: None,
        }
    }

    fn release(state: &str) -> Vec<Row> {
        vec![
            row(1, ("Release", "v1"), "ready", ""),
            row(2, ("Class", "v1"), state, ""),
            row(2, ("Template", "v1-a"), state, ""),
            row(2, ("Template", "v1-b"), state, ""),
        ]
    }

    #[test]
    fn same_change_of_several_objects_is_one_line() {
        let mut changes = Changes::default();
        let at = Duration::from_millis;
        changes.take(&[], &release("waiting"), at(1000));
        let mut half = release("waiting");
        half[1].state = "applied".to_owned();
        changes.take(&release("waiting"), &half, at(1010));
        changes.take(&half, &release("applied"), at(1020));
        changes.take(&release("applied"), &release("synced"), at(1030));
        assert!(!changes.are_due(at(1179)) && changes.are_due(at(1180)));
        assert_eq!(
            changes.tell(80),
            [
                "    1.00 s  Release v1: ready",
                "    1.00 s  3 objects of v1: waiting",
                "    1.02 s  3 objects of v1: applied",
                "    1.03 s  3 objects of v1: synced (Class, 2×Template)",
            ]
        );
        assert!(!changes.are_due(at(9999)) && changes.tell(80).is_empty());
        changes.take(&release("synced"), &release("synced")[..2], at(2000));
        assert!(!changes.are_due(at(2100)));
        changes.take(&release("synced")[..2], &[], at(2010));
        assert_eq!(
            changes.tell(80),
            ["    2.01 s  3 objects of v1: gone", "    2.01 s  Release v1: gone"]
        );
    }

    #[test]
    fn object_with_something_to_tell_has_lines_of_its_own_and_of_many_the_first_and_the_last() {
        let mut changes = Changes::default();
        let mut after = release("synced");
        after[1].note = "mended after 49 ms".to_owned();
        after[2].note = "for a reason that takes many words ".repeat(9) + "at /spec/the/place";
        changes.take(&release("synced"), &after, Duration::from_secs(7));
        assert_eq!(
            changes.tell(60),
            [
                "    7.00 s  Class v1: synced (mended after 49 ms)",
                "    7.00 s  Template v1-a: synced (for a reason that takes",
                "            many words for a reason that takes many words…",
                "            that takes many words for a reason that takes",
                "            many words at /spec/the/place)",
            ]
        );
    }

    #[test]
    fn an_image_of_two_releases_is_told_of_once() {
        let with_image = |state: &str| {
            let image = |release: &str| {
                let row = row(2, ("Image", "disk"), state, "");
                [
                    Row {
                        is_image: true,
                        ..self::row(1, ("Release", release), "ready", "")
                    },
                    Row { is_image: true, ..row },
                ]
            };
            [image("v1"), image("v2")].concat()
        };
        let mut changes = Changes::default();
        changes.take(&with_image("sending"), &with_image("ready"), Duration::ZERO);
        assert_eq!(changes.tell(80), ["    0.00 s  Image disk: ready"]);
        changes.take(&with_image("ready"), &[], Duration::ZERO);
        assert_eq!(changes.tell(80).len(), 3, "the image and both releases");
    }
}
