//! Orphans in words: one sentence each for events and the log, and a table for whoever asks for the list. Decides nothing.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use planning::image::{OwnedImage, SweepDeed};

use crate::amount::amount;

/// Between two columns.
const GAP: usize = 2;

const HEADINGS: [&str; 8] = [
    "PROVIDER", "CLOUD", "IMAGE", "MADE FOR", "AGE", "SIZE", "VERIFIED", "MAY GO",
];

/// Is told when it is found for the first time.
pub(super) fn found(image: &OwnedImage, with_verified: bool) -> String {
    let OwnedImage {
        id, object, attempt, ..
    } = image;
    let then = match (image.verified, with_verified) {
        (true, false) => {
            "it was verified, so it stays until somebody deletes it, or the operator is started with --sweep-verified"
        }
        _ => "it is deleted if it is still an orphan in half an hour or later",
    };
    format!(
        "the cloud has the image {id} of ours, made for {object} (attempt {attempt}), which is not there any more; {then}"
    )
}

/// Is told when it is gone.
pub(super) fn deleted(image: &OwnedImage) -> String {
    let OwnedImage {
        id, object, attempt, ..
    } = image;
    format!("deleted the image {id} from the cloud, made for {object} (attempt {attempt}), which is not there any more")
}

/// One orphan in the list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) provider: String,
    pub(super) cloud: String,
    pub(super) deed: SweepDeed,
    /// What became of deleting it, if that was asked for.
    pub(super) outcome: Option<Result<(), String>>,
}

impl Row {
    /// Whether it is still there.
    pub(super) fn is_left(&self) -> bool {
        !matches!(self.outcome, Some(Ok(())))
    }

    fn cells(&self, now: Timestamp) -> [String; 8] {
        let OwnedImage {
            id,
            object,
            attempt,
            created,
            verified,
            size,
            // Such are in no list.
            held_elsewhere: _,
        } = &self.deed.image;
        let fate = match &self.outcome {
            Some(Ok(())) => "deleted",
            Some(Err(_)) => "failed",
            None if self.deed.delete => "yes",
            None => "no",
        };
        [
            self.provider.clone(),
            self.cloud.clone(),
            id.clone(),
            format!("{object} #{attempt}"),
            age(now.duration_since(*created)),
            size.map_or_else(|| "-".to_owned(), amount),
            if *verified { "yes" } else { "no" }.to_owned(),
            fate.to_owned(),
        ]
    }
}

/// The list with what it means, for people.
pub(super) fn table(rows: &[Row], clouds: usize, is_deleting: bool, now: Timestamp) -> String {
    let mut text = String::new();
    let clouds = plural(clouds, "cloud");
    if rows.is_empty() {
        return format!("No orphans: every image of ours in {clouds} belongs to an object.\n");
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| row.cells(now)));
    let width = |column: usize| {
        lines
            .iter()
            .map(|cells| cells[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    for cells in &lines {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _infallible = write!(line, "{cell:<width$}", width = width + GAP);
        }
        let _infallible = writeln!(text, "{}", line.trim_end());
    }
    for row in rows {
        if let Some(Err(words)) = &row.outcome {
            let _infallible = writeln!(text, "{}: {words}", row.deed.image.id);
        }
    }
    let _infallible = writeln!(text, "\n{}", summary(rows, &clouds, is_deleting));
    text
}

fn summary(rows: &[Row], clouds: &str, is_deleting: bool) -> String {
    let all = plural(rows.len(), "orphan");
    let size: u64 = rows.iter().filter_map(|row| row.deed.image.size).sum();
    let found = format!("{all} with {} in {clouds}", amount(size));
    let count = |is_counted: fn(&&Row) -> bool| rows.iter().filter(is_counted).count();
    let kept = count(|row| !row.deed.delete);
    let also = match kept {
        0 => String::new(),
        _ => " Verified ones go only with --sweep-verified.".to_owned(),
    };
    if is_deleting {
        let gone = count(|row| !row.is_left());
        return format!("{found}; {gone} deleted, {} left.{also}", rows.len() - gone);
    }
    match rows.len() - kept {
        0 => format!("{found}; nothing was deleted.{also}"),
        most => format!("{found}; nothing was deleted. With --delete {most} of them would be.{also}"),
    }
}

fn plural(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// In the largest unit that fits.
fn age(age: SignedDuration) -> String {
    let hours = age.as_hours().max(0);
    match hours / 24 {
        0 => format!("{hours}h"),
        days => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, verified: bool, outcome: Option<Result<(), String>>) -> Row {
        let image = OwnedImage {
            id: id.to_owned(),
            object: "fleet/ubuntu".to_owned(),
            attempt: 2,
            created: "2026-01-01T09:00:00Z".parse().unwrap(),
            verified,
            size: Some(1_610_612_736),
            held_elsewhere: false,
        };
        Row {
            provider: "openstack".to_owned(),
            cloud: "keystone.example".to_owned(),
            deed: SweepDeed {
                image,
                delete: !verified,
                is_new: false,
            },
            outcome,
        }
    }

    fn told(rows: &[Row], is_deleting: bool) -> String {
        table(rows, 1, is_deleting, "2026-01-01T12:30:00Z".parse().unwrap())
    }

    #[test]
    fn a_list_says_what_is_there_and_what_would_become_of_it() {
        let rows = [row("5d0c", false, None), row("77aa", true, None)];
        let expected = "\
PROVIDER   CLOUD             IMAGE  MADE FOR         AGE  SIZE     VERIFIED  MAY GO
openstack  keystone.example  5d0c   fleet/ubuntu #2  3h   1.5 GiB  no        yes
openstack  keystone.example  77aa   fleet/ubuntu #2  3h   1.5 GiB  yes       no

2 orphans with 3.0 GiB in 1 cloud; nothing was deleted. With --delete 1 of them would be. Verified ones go only with --sweep-verified.
";
        assert_eq!(told(&rows, false), expected);
        assert_eq!(
            told(&[], false),
            "No orphans: every image of ours in 1 cloud belongs to an object.\n"
        );
    }

    #[test]
    fn what_could_not_be_deleted_is_said_with_why() {
        let rows = [
            row("5d0c", false, Some(Ok(()))),
            row("77aa", false, Some(Err("a machine uses it".to_owned()))),
        ];
        let told = told(&rows, true);
        assert!(told.contains("77aa: a machine uses it\n"), "{told}");
        assert!(
            told.ends_with("2 orphans with 3.0 GiB in 1 cloud; 1 deleted, 1 left.\n"),
            "{told}"
        );
    }
}
