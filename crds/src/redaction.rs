//! Words of others without what nobody may read: plain, encoded or escaped, whole or in part. Pure.
//!
//! Servers repeat in their errors what they were told: a token as it is, `Authorization` as a whole, a URL, a piece of JSON, the beginning of a value.

use std::collections::HashMap;
use std::fmt::Write;

use k8s_openapi::ByteString;
use serde_json::Value;

/// In the place of what was cut out.
pub const HIDDEN: &str = "(not shown)";

/// Shorter values are found in too many words that are none.
const SHORTEST: usize = 3;

/// Parts of values that are shorter are found in words that have nothing to do with them, such as the names of fields.
const SHORTEST_PART: usize = 16;

/// Most bytes of values that are looked for: all their parts in all their forms take time and memory.
pub const MOST: usize = 64 << 10;

/// Most bytes of words that are looked through for all values together, each in all its forms.
const MOST_LOOKED_THROUGH: usize = 4 << 20;

/// Words of others without these values and their usual other forms; `None` where the values have more than [`MOST`] bytes, or are too many for so many
/// words, so that the words must not be told at all.
pub fn without<'a>(words: &str, values: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let (mut hidden, mut places) = (vec![false; words.len()], places(words));
    let (mut left, mut looks) = (MOST, MOST_LOOKED_THROUGH);
    for value in values {
        left = left.checked_sub(value.len())?;
        looks = looks.checked_sub(words.len())?;
        // One form at a time: some have three times the bytes of the value.
        for form in FORMS {
            hide(words, &form(value), &mut places, &mut hidden);
        }
    }
    let mut told = String::with_capacity(words.len());
    for (place, letter) in words.char_indices() {
        match hidden[place] {
            false => told.push(letter),
            true if place == 0 || !hidden[place - 1] => told.push_str(HIDDEN),
            true => {}
        }
    }
    Some(told)
}

/// A value as others write it.
const FORMS: [fn(&str) -> String; 11] = [
    str::to_owned,
    quoted,
    // Parsers quote what was quoted.
    |value| quoted(&quoted(value)),
    base64,
    bare_base64,
    |value| bare_base64(value).replace('+', "-").replace('/', "_"),
    |value| percent_encoded(&base64(value)),
    percent_encoded,
    // A form writes blanks otherwise than a path, some write the digits small, and hosts are all small.
    |value| percent_encoded(value).replace("%20", "+"),
    |value| with_small_digits(&percent_encoded(value)),
    |value| match value.len() {
        ..SHORTEST_PART => String::new(),
        _ => value.to_lowercase(),
    },
];

fn base64(value: &str) -> String {
    match serde_json::to_value(ByteString(value.as_bytes().to_vec())) {
        Ok(Value::String(base64)) => base64,
        _ => String::new(),
    }
}

fn bare_base64(value: &str) -> String {
    base64(value).trim_end_matches('=').to_owned()
}

/// A text as JSON and Go's `%q` write it between quotes.
fn quoted(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A text as a part of a URL: what RFC 3986 does not call unreserved is encoded.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Nothing fails that is written to a text.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn with_small_digits(percent_encoded: &str) -> String {
    let mut after_percent = 0_u8;
    let small = |letter: char| {
        let digit = after_percent > 0;
        after_percent = if letter == '%' {
            2
        } else {
            after_percent.saturating_sub(1)
        };
        if digit { letter.to_ascii_lowercase() } else { letter }
    };
    percent_encoded.chars().map(small).collect()
}

/// Where in the words each piece of this length is.
type Places<'words> = HashMap<&'words [u8], Vec<usize>>;

fn places(words: &str) -> Places<'_> {
    let mut places = Places::new();
    for (place, window) in words.as_bytes().windows(SHORTEST_PART).enumerate() {
        places.entry(window).or_default().push(place);
    }
    places
}

/// Marks a form of a value and its longer parts. What somebody may write in another way ends a part, so that it is found however the rest is written.
fn hide(words: &str, form: &str, places: &mut Places<'_>, hidden: &mut [bool]) {
    if (SHORTEST..=words.len()).contains(&form.len()) {
        for (place, found) in words.match_indices(form) {
            hidden[place..place + found.len()].fill(true);
        }
    }
    if places.is_empty() {
        return;
    }
    let parts = form.split(is_written_in_many_ways);
    for window in parts.flat_map(|part| part.as_bytes().windows(SHORTEST_PART)) {
        // Each place is hidden once, however often the value repeats itself.
        for place in places.remove(window).unwrap_or_default() {
            hidden[place..place + SHORTEST_PART].fill(true);
        }
    }
}

/// Whether a letter may be escaped, and how depends on by whom.
fn is_written_in_many_ways(letter: char) -> bool {
    !matches!(letter, ' '..='~') || matches!(letter, '"' | '\'' | '\\' | '<' | '>' | '&')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_hidden_in_each_form_in_which_a_server_may_repeat_it() {
        let password = "pa ss/w\"örd+";
        for said in [
            "pa ss/w\"örd+",
            r#"pa ss/w\"örd+"#,
            r#"pa ss/w\\\"örd+"#,
            "cGEgc3MvdyLDtnJkKw==",
            "cGEgc3MvdyLDtnJkKw",
            "cGEgc3MvdyLDtnJkKw%3D%3D",
            "pa%20ss%2Fw%22%C3%B6rd%2B",
            "pa%20ss%2fw%22%c3%b6rd%2b",
            "pa+ss%2Fw%22%C3%B6rd%2B",
        ] {
            let told = without(&format!("the password {said} is wrong"), [password]);
            assert_eq!(told, Some(format!("the password {HIDDEN} is wrong")), "{said}");
        }
        assert_eq!(without("at ??>??>", ["??>??>"]), Some(format!("at {HIDDEN}")));
        assert_eq!(
            without("Pz8-Pz8- in a URL", ["??>??>"]),
            Some(format!("{HIDDEN} in a URL"))
        );
    }

    #[test]
    fn a_part_of_a_value_is_hidden_too_also_where_it_was_cut_or_became_a_host() {
        let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        for said in [&token[..20], &token[10..], &token[5..30], &token.to_lowercase()] {
            let told = without(&format!("https://{said}.example.org/"), [token]);
            assert_eq!(told, Some(format!("https://{HIDDEN}.example.org/")));
        }
    }

    #[test]
    fn other_words_stay_as_they_are_whatever_letters_they_have() {
        for words in [
            "",
            "status 403: no access to ghp",
            "ü is no letter of tokens",
            "(not shown)",
        ] {
            assert_eq!(
                without(words, ["ghp_16C7e42F292c6912", "no", ""]).as_deref(),
                Some(words)
            );
        }
    }

    #[test]
    fn nothing_is_told_where_there_is_too_much_to_look_for() {
        let half = "a".repeat(MOST / 2);
        let told = |values: &[&str]| without("hunter2 is weak", values.iter().copied());
        assert_eq!(told(&[&half, &half]).as_deref(), Some("hunter2 is weak"));
        assert_eq!(told(&[&half, &half, "hunter2"]), None);
        assert_eq!(told(&["hunter2", &half, &half]), None);
    }

    #[test]
    fn nothing_is_told_where_too_many_values_are_to_be_looked_for_in_too_many_words() {
        let values: Vec<String> = (0..16_000).map(|number| format!("{number:x}")).collect();
        let told = |words: &str, values: &[String]| without(words, values.iter().map(String::as_str));
        let words = "ghij ".repeat(11_000);
        assert_eq!(told(&words, &values), None);
        assert_eq!(told(&words, &values[..60]).as_deref(), Some(words.as_str()));
        assert_eq!(told("ghij", &values).as_deref(), Some("ghij"));
    }
}
