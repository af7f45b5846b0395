//! The patterns of `.Files.Glob`: the Go library gobwas/glob with `/` as separator.

use std::fmt::Write as _;

use regex::bytes::Regex;

use crate::bounds::spend;

/// The longest pattern.
const MAX_PATTERN: usize = 4 << 10;

/// How many steps of a template take about as long as compiling a byte of a pattern.
const STEPS_PER_BYTE: u64 = 8;

/// Compiles a pattern. One that cannot be read matches everything, as in Helm; one that is too large is an error.
pub(crate) fn compile(pattern: &str) -> Result<Option<Regex>, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("glob is longer than {MAX_PATTERN} bytes"));
    }
    spend(STEPS_PER_BYTE * (1 + pattern.len() as u64))?;
    let Some(translated) = translate(pattern) else {
        return Ok(None);
    };
    let regex = Regex::new(&translated).map_err(|_| "glob is not supported".to_owned())?;
    Ok(Some(regex))
}

fn translate(pattern: &str) -> Option<String> {
    let mut regex = String::from("(?s-u)^");
    let mut open_groups = 0;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '*' if characters.next_if_eq(&'*').is_some() => {
                while characters.next_if_eq(&'*').is_some() {}
                regex.push_str(".*");
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("(?u:[^/])"),
            '\\' => push_literal(&mut regex, characters.next()?),
            '{' => {
                open_groups += 1;
                regex.push_str("(?:");
            }
            '}' if open_groups > 0 => {
                open_groups -= 1;
                regex.push(')');
            }
            ',' if open_groups > 0 => regex.push('|'),
            '[' => regex.push_str(&class(&mut characters)?),
            literal => push_literal(&mut regex, literal),
        }
    }
    regex.push('$');
    (open_groups == 0).then_some(regex)
}

/// `[abc]`, `[a-z]`, `[!abc]`.
fn class(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut class = String::from("(?u:[");
    if characters.next_if_eq(&'!').is_some() {
        class.push('^');
    }
    let mut members = 0;
    loop {
        match characters.next()? {
            ']' if members > 0 => break,
            ']' => return None,
            '-' if members == 1 && characters.peek() != Some(&']') => class.push('-'),
            '\\' => class.push_str(&regex::escape(&characters.next()?.to_string())),
            member => class.push_str(&regex::escape(&member.to_string())),
        }
        members += 1;
    }
    class.push_str("])");
    Some(class)
}

fn push_literal(regex: &mut String, literal: char) {
    // Writing to a string cannot fail.
    let _ = write!(regex, "(?u:{})", regex::escape(literal.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_unless_doubled() {
        for (pattern, path, matches) in [
            ("conf/*", "conf/a.txt", true),
            ("conf/*", "conf/x/y.txt", false),
            ("conf/**", "conf/x/y.txt", true),
            ("**.bin", "a/z.bin", true),
            ("*.{yaml,yml}", "a.yml", true),
            ("*.{yaml,yml}", "a.yaml.txt", false),
            ("file[a-c]?", "fileb1", true),
            ("file[!a-c]?", "fileb1", false),
            ("a.b", "axb", false),
        ] {
            let found = compile(pattern).unwrap().unwrap().is_match(path.as_bytes());
            assert_eq!(found, matches, "{pattern} {path}");
        }
        assert!(compile("a{b").unwrap().is_none());
        assert!(compile("a[b").unwrap().is_none());
    }
}
