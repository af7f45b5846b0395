//! Placeholders in the texts of a stack: `<< .ClusterClassVersion >>` and its like become versions.
//!
//! Only `<<`, a name that begins with a dot, and `>>` make a placeholder; other uses of the marks (`cat << EOF >> file`) are none of ours. Others have
//! placeholders of their own that look like it: the chart of prometheus-adapter writes `<<.Series>>`, without blanks, which csctl leaves alone.

use crds::release_files::Metadata;
use expressions::nearest;
use strum::{EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

/// Whose version can be written between the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, EnumString, IntoStaticStr)]
pub(super) enum Placeholder {
    #[strum(serialize = ".ClusterClassVersion")]
    ClusterClass,
    #[strum(serialize = ".ClusterAddonVersion")]
    ClusterAddon,
    #[strum(serialize = ".NodeImageVersion")]
    NodeImage,
}

impl Placeholder {
    /// All of them as one writes them, for messages.
    pub(super) fn known() -> String {
        let all: Vec<String> = Self::iter()
            .map(|known| format!("<< {} >>", <&str>::from(known)))
            .collect();
        all.join(", ")
    }

    fn value(self, versions: &Metadata) -> String {
        let Metadata {
            cluster_stack,
            kubernetes: _,
            cluster_addon,
            node_image,
        } = versions;
        match self {
            Self::ClusterClass => cluster_stack.to_string(),
            Self::ClusterAddon => cluster_addon.to_string(),
            Self::NodeImage => node_image.as_ref().map_or_else(String::new, ToString::to_string),
        }
    }
}

/// A placeholder of an unknown name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    /// From 1.
    pub(super) line: usize,
    /// With its marks.
    pub(super) found: String,
}

/// A piece of a text.
enum Piece<'text> {
    Text(&'text str),
    Placeholder { marked: &'text str, name: &'text str },
}

/// The text with every placeholder replaced.
pub(super) fn fill(text: &str, versions: &Metadata) -> Result<String, Unknown> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Placeholder { marked, name } => {
                match name.parse::<Placeholder>() {
                    Ok(placeholder) => filled.push_str(&placeholder.value(versions)),
                    Err(_) if is_of_others(marked, name) => filled.push_str(marked),
                    Err(_) => {
                        return Err(Unknown {
                            // Values have no line breaks, so that lines are counted alike before and after filling.
                            line: 1 + filled.matches('\n').count(),
                            found: marked.to_owned(),
                        });
                    }
                }
            }
        }
    }
    Ok(filled)
}

/// Whether an unknown name is one of another program: written without blanks, and not as if it were meant as one of ours.
fn is_of_others(marked: &str, name: &str) -> bool {
    let known = Placeholder::iter().map(<&str>::from);
    !marked.contains([' ', '\t']) && nearest(name, known).is_empty()
}

/// Whether the text quotes this value.
pub(super) fn mentions(text: &str, placeholder: Placeholder) -> bool {
    pieces(text).any(|piece| matches!(piece, Piece::Placeholder { name, .. } if name == <&str>::from(placeholder)))
}

fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        let opening = rest
            .match_indices("<<")
            .find_map(|(start, _)| Some((start, placeholder_at(&rest[start..])?)));
        let piece;
        (piece, rest) = match opening {
            None if rest.is_empty() => return None,
            None => (Piece::Text(rest), ""),
            Some((0, (length, name))) => (
                Piece::Placeholder {
                    marked: &rest[..length],
                    name,
                },
                &rest[length..],
            ),
            Some((start, _)) => (Piece::Text(&rest[..start]), &rest[start..]),
        };
        Some(piece)
    })
}

/// Length and name of the placeholder with which the text begins.
fn placeholder_at(text: &str) -> Option<(usize, &str)> {
    let blank = [' ', '\t'];
    let inner = text.strip_prefix("<<")?.trim_start_matches(blank);
    let end = inner
        .find(|c: char| !(c == '.' || c == '_' || c.is_ascii_alphanumeric()))
        .unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let after = rest.trim_start_matches(blank).strip_prefix(">>")?;
    (name.len() > 1 && name.starts_with('.')).then_some((text.len() - after.len(), name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn versions() -> Metadata {
        Metadata {
            cluster_stack: "v3".parse().unwrap(),
            kubernetes: "v1.34.2".to_owned(),
            cluster_addon: "v0-sha.abc".parse().unwrap(),
            node_image: None,
        }
    }

    #[test]
    fn versions_take_the_place_of_placeholders() {
        let text = "a << .ClusterClassVersion >>, <<.ClusterAddonVersion>><< .NodeImageVersion >>!\n";
        assert_eq!(fill(text, &versions()).unwrap(), "a v3, v0-sha.abc!\n");
    }

    #[test]
    fn texts_of_shells_and_of_other_programs_stay_as_they_are() {
        for text in [
            "cat << EOF >> /etc/file\nEOF\n",
            "1 << 2",
            "<<",
            "<< . >>",
            "<< .ClusterClassVersion",
            "a <<< b >>",
            "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
        ] {
            assert_eq!(fill(text, &versions()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn unknown_placeholder_is_told_with_its_line() {
        for marked in ["<< .ClusterClasVersion >>", "<<.ClusterClasVersion>>", "<< .Series >>"] {
            let unknown = fill(&format!("\n<< .ClusterClassVersion >>\n  {marked}\n"), &versions());
            let (line, found) = (3, marked.to_owned());
            assert_eq!(unknown, Err(Unknown { line, found }));
        }
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text(text in "([<>. a-zA-Z\n]|<< |<< \\.A| >>){0,40}") {
            let joined: String = pieces(&text).map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Placeholder { marked, .. } => marked,
            }).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
