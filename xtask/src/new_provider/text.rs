//! Changes of source texts at places that are found by what stands there. Pure: a place that is not found is an error, and nothing is guessed.

/// A place that a text does not have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("the line {begin:?} is not there")]
    Begin { begin: String },
    #[error("there is no {end:?} after the line {begin:?}")]
    End { begin: String, end: String },
    #[error("no number stands between {before:?} and {after:?}")]
    Number { before: String, after: String },
}

/// The text with lines added at the end of a block: before the first line that begins with `end` (blanks apart) after the line that begins with `begin`.
pub(crate) fn into_block(text: &str, (begin, end): (&str, &str), addition: &str) -> Result<String, PlaceError> {
    let mut lines: Vec<&str> = text.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.trim_start().starts_with(begin))
        .ok_or_else(|| PlaceError::Begin {
            begin: begin.to_owned(),
        })?;
    let length = lines[first + 1..]
        .iter()
        .position(|line| line.trim_start().starts_with(end));
    let length = length.ok_or_else(|| PlaceError::End {
        begin: begin.to_owned(),
        end: end.to_owned(),
    })?;
    let at = first + 1 + length;
    lines.splice(at..at, addition.lines());
    Ok(lines.join("\n") + "\n")
}

/// The text with lines added right after the line that begins with `line` (blanks apart).
pub(crate) fn after(text: &str, line: &str, addition: &str) -> Result<String, PlaceError> {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|found| found.trim_start().starts_with(line));
    let at = at.ok_or_else(|| PlaceError::Begin { begin: line.to_owned() })? + 1;
    lines.splice(at..at, addition.lines());
    Ok(lines.join("\n") + "\n")
}

/// The text with one more item at the end of a list between `begin` and the first `end` after it, wherever in a line both are.
pub(crate) fn into_list(text: &str, (begin, end): (&str, &str), item: &str) -> Result<String, PlaceError> {
    let from = text.find(begin).ok_or_else(|| PlaceError::Begin {
        begin: begin.to_owned(),
    })? + begin.len();
    let to = text[from..].find(end).ok_or_else(|| PlaceError::End {
        begin: begin.to_owned(),
        end: end.to_owned(),
    })? + from;
    let items = text[..to].trim_end();
    let comma = if items.ends_with([',', '[', '{']) { "" } else { "," };
    Ok(format!("{items}{comma} {item}{}", &text[to..]))
}

/// The text with the number between these two one higher, and what it was.
pub(crate) fn counted_up(text: &str, (before, behind): (&str, &str)) -> Result<(String, usize), PlaceError> {
    let missing = || PlaceError::Number {
        before: before.to_owned(),
        after: behind.to_owned(),
    };
    let from = text.find(before).ok_or_else(missing)? + before.len();
    let to = text[from..].find(behind).ok_or_else(missing)? + from;
    let number: usize = text[from..to].parse().map_err(|_| missing())?;
    Ok((format!("{}{}{}", &text[..from], number + 1, &text[to..]), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENUM: &str = "mod a;\n\nenum Kind {\n    One,\n}\n\nconst KINDS: [Kind; 1] = [Kind::One];\n";

    #[test]
    fn a_place_is_found_by_what_stands_there() {
        let added = into_block(ENUM, ("enum Kind {", "}"), "    Two,").expect("a block");
        assert!(added.contains("    One,\n    Two,\n}"), "{added}");
        let added = after(&added, "mod a;", "mod b;").expect("a line");
        assert!(added.starts_with("mod a;\nmod b;\n"), "{added}");
        let (added, before) = counted_up(&added, ("[Kind; ", "]")).expect("a number");
        assert_eq!(before, 1);
        let added = into_list(&added, ("KINDS: [Kind; 2] = [", "]"), "Kind::Two").expect("a list");
        assert!(
            added.ends_with("const KINDS: [Kind; 2] = [Kind::One, Kind::Two];\n"),
            "{added}"
        );
    }

    #[test]
    fn a_place_that_is_not_there_is_an_error() {
        for error in [
            into_block(ENUM, ("enum Other {", "}"), "").expect_err("no block"),
            into_block(ENUM, ("enum Kind {", "]"), "").expect_err("no end"),
            after(ENUM, "mod c;", "").expect_err("no line"),
            counted_up(ENUM, ("[Kind; ", "x")).expect_err("no number"),
            into_list(ENUM, ("= {", "}"), "").expect_err("no list"),
        ] {
            assert!(!error.to_string().is_empty());
        }
    }
}
