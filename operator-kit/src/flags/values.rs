//! How values of flags are written, and what is said of those that are not written so.

use std::net::SocketAddr;
use std::time::Duration;

use crate::telemetry::check_level;

/// Where to listen; `None` when nothing is to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub Option<SocketAddr>);

/// `15s`, `1m30s`, `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let friendly: jiff::SignedDuration = text
        .parse()
        .map_err(|_| format!("{text:?} is not a duration; write it like 15s, 500ms or 1m30s"))?;
    Duration::try_from(friendly).map_err(|_| "a duration cannot be negative".to_owned())
}

/// `1048576`, `512Mi`, `2Gi`, as Kubernetes writes sizes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => Some(1),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        "Ti" => Some(1_u64 << 40),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .ok_or_else(|| format!("{text:?} is not a size; write it like 512Mi or 2Gi"))
}

/// A namespace as the API server takes it, or nothing.
pub fn namespace(text: &str) -> Result<String, String> {
    let outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if is_word(text, outer, b"-") {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is no name of a namespace; write at most {LONGEST_WORD} lower-case letters, digits and dashes, letters or digits at both ends"
    ))
}

/// A value of a label as the API server takes it, or nothing.
pub fn label_value(text: &str) -> Result<String, String> {
    if is_word(text, |byte| byte.is_ascii_alphanumeric(), b"-_.") {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is no value of a label; write at most {LONGEST_WORD} letters, digits, dashes, underscores and dots, letters or digits at both ends"
    ))
}

/// Bytes of a namespace's name and of a label's value (`k8s.io/apimachinery/pkg/util/validation`).
const LONGEST_WORD: usize = 63;

/// Whether a text is empty, or short enough and made of `outer` bytes with some of `between` in its midst.
fn is_word(text: &str, outer: impl Fn(u8) -> bool, between: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= LONGEST_WORD
        && ends.into_iter().flatten().all(|byte| outer(*byte))
        && bytes.iter().all(|byte| outer(*byte) || between.contains(byte))
}

pub(super) fn log_level(text: &str) -> Result<String, String> {
    match check_level(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// `:8080` as Go writes "every address", `127.0.0.1:8080`, or `0` for none.
pub fn address(text: &str) -> Result<Address, String> {
    if text == "0" {
        return Ok(Address(None));
    }
    let full = if text.starts_with(':') {
        format!("[::]{text}")
    } else {
        text.to_owned()
    };
    full.parse().map(|address| Address(Some(address))).map_err(|_| {
        format!("{text:?} is not an address; write it like :8080 or 127.0.0.1:8080, or 0 to serve nothing")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_are_not_negative() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("soon").unwrap_err().contains("15s, 500ms or 1m30s"));
        assert!(duration("-1s").unwrap_err().contains("negative"));
    }

    #[test]
    fn an_address_may_be_every_one_or_none() {
        let port = |text: &str| address(text).unwrap().0.map(|address| address.port());
        assert_eq!(port(":8080"), Some(8080));
        assert_eq!(port("127.0.0.1:9440"), Some(9440));
        assert_eq!(port("0"), None);
        assert!(address("eighty").unwrap_err().contains(":8080 or 127.0.0.1:8080"));
    }

    #[test]
    fn a_level_of_the_log_is_one() {
        assert_eq!(log_level("info,kube=debug").as_deref(), Ok("info,kube=debug"));
        assert!(log_level("loud").unwrap_err().contains("loud"));
    }

    #[test]
    fn namespaces_and_values_of_labels_are_what_the_api_server_takes() {
        for (good, bad) in [("", "-"), ("fleet-1", "Fleet"), ("7", "fleet_1"), ("a", "fleet-")] {
            assert_eq!(namespace(good).as_deref(), Ok(good));
            assert!(namespace(bad).is_err(), "{bad}");
        }
        for (good, bad) in [
            ("", "blue green"),
            ("Blue_1.x-y", ".blue"),
            ("7", "blue,x=y"),
            ("a", "ä"),
        ] {
            assert_eq!(label_value(good).as_deref(), Ok(good));
            assert!(label_value(bad).is_err(), "{bad}");
        }
        let longest = "x".repeat(LONGEST_WORD);
        assert!(namespace(&longest).is_ok() && label_value(&longest).is_ok());
        let longer = "x".repeat(LONGEST_WORD + 1);
        assert!(namespace(&longer).is_err() && label_value(&longer).is_err());
    }
}
