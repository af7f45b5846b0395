//! Counts the parts of JSON: what it becomes in memory goes by them and not by its bytes, of which eight may take seven hundred.
//!
//! Bytes are counted as they come, before anybody makes anything of them. Only where values begin is looked at; whether it is JSON at all is found out by
//! whoever reads it.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// What a list or a map counts, besides what is in it: a map has room for eleven fields as soon as it has one, and where each element of a list is a whole
/// object to its reader, an empty one takes as much.
const CONTAINER: usize = 4;

/// Most parts of an answer, or of an event of a watch. The worst of so many take 95 MiB (measured: maps of one field 70 MiB, of one field in each other 79, a map of
/// short fields 84, empty objects in a list of metadata 43). No honest object has so many: one of 1.5 MiB, which is the most that etcd takes, has 330,000 if it is a
/// CRD of nothing but the shortest properties; the densest one of Cluster API and its providers has 70,000 a megabyte, and a page of metadata some 50,000.
pub const MOST_PARTS: usize = 500_000;

/// The parts of a text that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    count: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl Parts {
    /// Counts the next piece.
    pub fn take(&mut self, piece: &[u8]) {
        for byte in piece {
            if self.is_in_text {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_text = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.is_in_text = true,
                    b'{' | b'[' => self.count += CONTAINER,
                    b',' => self.count += 1,
                    _ => {}
                }
            }
        }
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// The parts of what was read, as its text has them.
pub fn parts_of(value: &Value) -> usize {
    let within = |count: usize, parts: usize| CONTAINER + count.saturating_sub(1) + parts;
    match value {
        Value::Array(elements) => within(elements.len(), elements.iter().map(parts_of).sum()),
        Value::Object(fields) => within(fields.len(), fields.values().map(parts_of).sum()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// How long a value is as JSON.
pub fn bytes_of(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // JSON that was read can be written; what could not would be too large.
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(pieces: &[&str]) -> usize {
        let mut parts = Parts::default();
        for piece in pieces {
            parts.take(piece.as_bytes());
        }
        parts.count()
    }

    #[test]
    fn lists_maps_and_what_is_in_them_count_and_texts_do_not() {
        for (text, expected) in [
            ("\"a, {b} [c]\"", 0),
            ("7", 0),
            ("{}", 4),
            ("{\"a\":0}", 4),
            ("[1,2,3]", 6),
            ("{\"a\":[{}],\"b\":\"\\\",{\\\\\",\"c\":{}}", 18),
        ] {
            assert_eq!(counted(&[text]), expected, "{text}");
            let value: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(parts_of(&value), expected, "{text}");
        }
    }

    #[test]
    fn it_does_not_matter_where_a_text_is_cut() {
        let text = json!({ "a\\\"{": ["\\", "\\\\\"", { "b": ",," }], "c": [[], [1, 2]] }).to_string();
        for at in 0..=text.len() {
            let (before, after) = text.split_at(at);
            assert_eq!(counted(&[before, after]), counted(&[&text]), "{at}");
        }
    }
}
