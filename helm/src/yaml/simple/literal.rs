//! Literal blocks: `|`, `|-` and `|+`.

use super::scalar::without_blanks;
use super::{Reader, Simple};
use crate::yaml::node::Node;

/// What becomes of the line breaks at the end.
enum Chomping {
    One,
    None,
    All,
}

impl Reader<'_> {
    /// The block whose header was read; the lines at hand are those behind it. It stands deeper than the column.
    pub(super) fn literal(&mut self, header: &str, column: usize) -> Simple<Node> {
        let chomping = match header.trim_end_matches(' ') {
            "|" => Chomping::One,
            "|-" => Chomping::None,
            "|+" => Chomping::All,
            _ => return None,
        };
        let indent = self.indent().filter(|&indent| indent > column)?;
        let mut text = String::new();
        let mut content = 0;
        while self.position < self.text.len() {
            let (line, next) = self.raw_line();
            let blanks = line.len() - without_blanks(line).len();
            let is_empty = blanks == line.len() && blanks <= indent;
            if !is_empty && blanks < indent {
                // A tab in the indentation is wrong.
                if line[blanks..].starts_with('\t') {
                    return None;
                }
                break;
            }
            if self.keeps {
                if !is_empty {
                    text.push_str(&line[indent..]);
                    content = text.len();
                }
                if self.text.as_bytes()[next - 1] == b'\n' {
                    text.push('\n');
                }
            }
            self.position = next;
        }
        if !self.keeps {
            return Some(Node::Null);
        }
        match chomping {
            Chomping::One => text.truncate(text.len().min(content + 1)),
            Chomping::None => text.truncate(content),
            Chomping::All => {}
        }
        Some(Node::Text(text))
    }

    /// Where the content stands, which the first line that is not empty says. Emptier lines before it must not stand deeper.
    fn indent(&self) -> Simple<usize> {
        let mut deepest = 0;
        for line in self.text[self.position..].split('\n') {
            let content = without_blanks(line);
            let blanks = line.len() - content.len();
            if !content.is_empty() {
                return (blanks >= deepest && !content.starts_with('\t')).then_some(blanks);
            }
            deepest = deepest.max(blanks);
        }
        None
    }
}
