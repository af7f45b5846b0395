//! Where the paths that a container sees are on this machine. Pure.

use std::path::{Path, PathBuf};

/// Paths of a container and what plays them.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths(Vec<(String, PathBuf)>);

impl Paths {
    pub(super) fn add(&mut self, seen: &str, here: &Path) {
        self.0.push((seen.trim_end_matches('/').to_owned(), here.to_owned()));
        // `/work/out` is not a file in the volume `/work` when it is a volume itself.
        self.0.sort_by_key(|(seen, _)| std::cmp::Reverse(seen.len()));
    }

    /// The text with every path replaced that stands in it as a whole or as the beginning of one.
    pub(super) fn translate(&self, text: &str) -> String {
        let mut translated = String::new();
        let mut rest = text;
        let mut before = None;
        while let Some(next) = rest.chars().next() {
            let found = self.0.iter().find(|(seen, _)| {
                !seen.is_empty()
                    && !before.is_some_and(belongs_to_a_path)
                    && rest
                        .strip_prefix(seen.as_str())
                        .is_some_and(|after| !after.starts_with(|next| next != '/' && belongs_to_a_path(next)))
            });
            let length = if let Some((seen, here)) = found {
                translated.push_str(&here.to_string_lossy());
                seen.len()
            } else {
                translated.push(next);
                next.len_utf8()
            };
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
        translated
    }
}

fn belongs_to_a_path(character: char) -> bool {
    character.is_alphanumeric() || "/._-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_replaced_where_it_begins_and_nowhere_else() {
        let mut paths = Paths::default();
        paths.add("/work", Path::new("/here/work"));
        paths.add("/work/out/", Path::new("/here/out"));
        for (text, expected) in [
            ("/work", "/here/work"),
            ("--plan=/work/plan.json", "--plan=/here/work/plan.json"),
            (
                "cat '/work/a' >/work/out/b; ls /work",
                "cat '/here/work/a' >/here/out/b; ls /here/work",
            ),
            (
                "/workshop /at/work https://host/work",
                "/workshop /at/work https://host/work",
            ),
        ] {
            assert_eq!(paths.translate(text), expected);
        }
    }
}
