//! Formats of addresses.

use super::refuse;
use crate::format::quote_char;
use crate::number::parse_decimal;
use crate::schema::address::odd_path;
use crate::schema::{Checks, SchemaRules};
use crate::text;
use crate::url::{Url, address};

pub(super) fn ipv4(text: &str) -> Result<(), String> {
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() != 4 {
        return refuse("expected four decimals");
    }
    for group in groups {
        if group.len() > 1 && group.starts_with('0') {
            return refuse("leading zeros");
        }
        if !(0..=255).contains(&parse_decimal(group)?) {
            return refuse("decimal must be between 0 and 255");
        }
    }
    Ok(())
}

pub(super) fn ipv6(text: &str) -> Result<(), String> {
    if !text.contains(':') {
        return refuse("missing colon");
    }
    address::parse(text.as_bytes())?;
    if text.contains('%') {
        return refuse("zone id is not a part of ipv6 address");
    }
    Ok(())
}

pub(super) fn host_name(text: &str) -> Result<(), String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > 253 {
        return refuse("more than 253 characters long");
    }
    for label in text.split('.') {
        if !(1..=63).contains(&label.len()) {
            return refuse("label must be 1 to 63 characters long");
        }
        if label.starts_with('-') {
            return refuse("label starts with hyphen");
        }
        if label.ends_with('-') {
            return refuse("label ends with hyphen");
        }
        let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
        if let Some(other) = label.chars().find(|character| !is_plain(*character)) {
            return Err(format!("invalid character {}", quote_char(other)));
        }
    }
    Ok(())
}

pub(super) fn email(text: &str, rules: SchemaRules) -> Result<(), String> {
    if text.len() > 254 {
        return refuse("more than 255 characters long");
    }
    let Some((local, domain)) = text.rsplit_once('@') else {
        return refuse("missing @");
    };
    if local.len() > 64 {
        return refuse("local part more than 64 characters long");
    }
    match quoted_part(local, rules.checks) {
        Some(inner) if inner.contains(['\\', '"']) => {
            return refuse("backslash and quote are not allowed within quoted local part");
        }
        Some(_) => {}
        None => unquoted(local)?,
    }
    if let Some(address) = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']')) {
        return match address.strip_prefix("IPv6:") {
            Some(address) => ipv6(address).map_err(|problem| format!("invalid ipv6 address: {problem}")),
            None => ipv4(address).map_err(|problem| format!("invalid ipv4 address: {problem}")),
        };
    }
    host_name(domain).map_err(|problem| format!("invalid domain: {problem}"))
}

/// What is quoted, if it is.
fn quoted_part(local: &str, checks: Checks) -> Option<&str> {
    let inner = local.strip_prefix('"').filter(|inner| !inner.is_empty())?;
    match checks {
        // Whatever stands in the place of the other quote.
        Checks::Faulty => inner.char_indices().next_back().map(|(end, _)| &inner[..end]),
        Checks::Mended => inner.strip_suffix('"'),
    }
}

fn unquoted(local: &str) -> Result<(), String> {
    if local.starts_with('.') {
        return refuse("starts with dot");
    }
    if local.ends_with('.') {
        return refuse("ends with dot");
    }
    if local.contains("..") {
        return refuse("consecutive dots");
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(character);
    match local.chars().find(|character| !is_plain(*character)) {
        Some(other) => Err(format!("invalid character {}", quote_char(other))),
        None => Ok(()),
    }
}

fn url(text: &str, rules: SchemaRules) -> Result<Url, String> {
    let url = Url::parse(text.as_bytes(), rules.hosts)?;
    let host = text::lossy(url.host_name());
    if host.contains(':') {
        if !url.host.contains(&b'[') || !url.host.contains(&b']') {
            return Err("ipv6 address not enclosed in brackets".to_owned());
        }
        ipv6(&host).map_err(|problem| format!("invalid ipv6 address: {problem}"))?;
    }
    Ok(url)
}

pub(super) fn uri(text: &str, rules: SchemaRules) -> Result<(), String> {
    if url(text, rules)?.scheme.is_empty() {
        refuse("relative url")
    } else {
        Ok(())
    }
}

pub(super) fn uri_reference(text: &str, rules: SchemaRules) -> Result<(), String> {
    if text.contains('\\') {
        return refuse("contains \\");
    }
    url(text, rules).map(|_| ())
}

/// Only a path that Go would write otherwise is looked at; braces it always would.
pub(super) fn uri_template(text: &str, rules: SchemaRules) -> Result<(), String> {
    url(text, rules)?;
    for part in odd_path(text, rules.hosts)? {
        let mut is_open = false;
        for brace in part.chars().filter(|character| matches!(character, '{' | '}')) {
            if (brace == '{') == is_open {
                return refuse("nested curly braces");
            }
            is_open = !is_open;
        }
        if is_open {
            return refuse("no matching closing brace");
        }
    }
    Ok(())
}
