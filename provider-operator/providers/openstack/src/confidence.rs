//! Words of a cloud without what was told to it in confidence: services repeat what they were sent. Pure.

use secrecy::{ExposeSecret, SecretString};

/// What stands in the place of a secret.
const HIDDEN: &str = "[hidden]";
/// A shorter secret may be part of any word: then nothing is told.
const SHORTEST: usize = 4;

/// The same words without these secrets, in the forms in which a service can repeat them: as they are, and within JSON.
pub(crate) fn without(words: &str, secrets: &[&SecretString]) -> String {
    let mut told = words.to_owned();
    for secret in secrets.iter().map(|secret| secret.expose_secret()) {
        let quoted = serde_json::Value::from(secret).to_string();
        for form in [secret, quoted.trim_matches('"')] {
            if form.is_empty() || !told.contains(form) {
                continue;
            }
            if form.len() < SHORTEST {
                return HIDDEN.to_owned();
            }
            told = told.replace(form, HIDDEN);
        }
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
        assert_eq!(without("no such user", "hunter22"), "no such user");
        assert_eq!(without("no such user", ""), "no such user");
        assert_eq!(without("no such user", "o"), HIDDEN);
    }
}
