//! Words of a cloud without what was told to it in confidence: services repeat what they were sent. Pure.

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

/// What stands in the place of a secret.
const HIDDEN: &str = "[hidden]";
/// A shorter secret may be part of any word: then nothing is told.
const SHORTEST: usize = 4;

/// The same words without these secrets, in the forms in which a service can repeat them: as they are, within JSON, and within a URL or a form.
pub(crate) fn without(words: &str, secrets: &[&SecretString]) -> String {
    let mut told = words.to_owned();
    for secret in secrets.iter().map(|secret| secret.expose_secret()) {
        for form in forms(secret) {
            if form.is_empty() || !told.contains(&form) {
                continue;
            }
            if form.len() < SHORTEST {
                return HIDDEN.to_owned();
            }
            told = told.replace(&form, HIDDEN);
        }
    }
    told
}

fn forms(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let quoted = quoted[1..quoted.len() - 1].to_owned();
    let form: String = byte_serialize(secret.as_bytes()).collect();
    let query = form.replace('+', "%20");
    // In a path a slash may stand as it is.
    let path = query.replace("%2F", "/");
    let of_url = [form, query, path];
    let lower = of_url.clone().map(|form| with_lower_digits(&form));
    let as_text = [secret.to_owned(), within_ascii(&quoted), quoted];
    as_text.into_iter().chain(of_url).chain(lower).collect()
}

/// Many services write JSON without any other character.
fn within_ascii(quoted: &str) -> String {
    let mut told = String::new();
    for c in quoted.chars() {
        if c.is_ascii() {
            told.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            told.extend(["\\u", format!("{unit:04x}").as_str()]);
        }
    }
    told
}

/// The digits of what is escaped, as some write them.
fn with_lower_digits(escaped: &str) -> String {
    let mut parts = escaped.split('%');
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        told.extend(["%", digits.to_ascii_lowercase().as_str(), rest]);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_of_words_in_whatever_form_they_are_repeated() {
        let without = |words: &str, secret: &str| without(words, &[&SecretString::from(secret)]);
        assert_eq!(
            without("no user with hunter22 and hunter22", "hunter22"),
            "no user with [hidden] and [hidden]"
        );
        assert_eq!(
            without(r#"{"password":"a\"b\\c"}"#, r#"a"b\c"#),
            r#"{"password":"[hidden]"}"#
        );
        for told in [
            "said=a+b%2Fc%C3%A9!",
            "said=a%20b%2Fc%C3%A9!",
            "said=a%20b/c%c3%a9!",
            r#"{"said":"a b/c\u00e9!"}"#,
        ] {
            let without = without(told, "a b/cé");
            assert!(without.contains("[hidden]!"), "{without}");
        }
        assert_eq!(without("no such user", "hunter22"), "no such user");
        assert_eq!(without("no such user", ""), "no such user");
        assert_eq!(without("no such user", "o"), HIDDEN);
    }
}
