//! URLs as Go's `net/url` takes them apart and puts them together. What it refuses, it refuses in Go's words.

pub(crate) mod address;
mod escape;

use address::Address;
use escape::{Part, escape, unescape};

use crate::format::quote;
use crate::text;

/// The parts of a URL. Texts are unescaped unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: Vec<u8>,
    /// What follows the scheme where that is no path; still escaped.
    pub(crate) opaque: Vec<u8>,
    pub(crate) user: Option<User>,
    /// With its port.
    pub(crate) host: Vec<u8>,
    pub(crate) path: Vec<u8>,
    /// Still escaped.
    pub(crate) query: Vec<u8>,
    pub(crate) fragment: Vec<u8>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// Which hosts a version of Go takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostRule {
    /// Anything between brackets, and colons anywhere else.
    Any,
    /// Between brackets only an address of IPv6, and no other brackets.
    Addresses,
    /// Likewise, and for the web no colon but that of the port.
    AddressesAndOneColon,
}

impl Url {
    /// Takes a URL apart; the error is Go's text.
    pub(crate) fn parse(text: &[u8], rule: HostRule) -> Result<Self, String> {
        let (before, fragment) = cut(text, b'#');
        let refused = |url: &[u8], problem: &str| format!("parse {}: {problem}", text::lossy(&quote(url)));
        let mut url = parse_without_fragment(before, rule).map_err(|problem| refused(before, &problem))?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment, Part::Fragment).map_err(|problem| refused(text, &problem))?;
        }
        Ok(url)
    }

    /// The host without its port and the brackets of an address.
    pub(crate) fn host_name(&self) -> &[u8] {
        let mut host = self.host.as_slice();
        if let Some(colon) = memchr::memrchr(b':', host)
            && is_port(&host[colon..])
        {
            host = &host[..colon];
        }
        let inner = host.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]"));
        inner.unwrap_or(host)
    }

    /// Puts the parts together.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if !self.scheme.is_empty() {
            text.extend_from_slice(&self.scheme);
            text.push(b':');
        }
        if self.opaque.is_empty() {
            self.write_authority_and_path(&mut text);
        } else {
            text.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            text.push(b'?');
            text.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            text.push(b'#');
            text.extend_from_slice(&escape(&self.fragment, Part::Fragment));
        }
        text
    }

    fn write_authority_and_path(&self, text: &mut Vec<u8>) {
        let has_host = !self.host.is_empty();
        let is_absolute = !self.scheme.is_empty() || has_host || self.user.is_some();
        if is_absolute && (has_host || !self.path.is_empty() || self.user.is_some()) {
            text.extend_from_slice(b"//");
        }
        if let Some(user) = &self.user {
            text.extend_from_slice(&user.text());
            text.push(b'@');
        }
        text.extend_from_slice(&escape(&self.host, Part::Host));
        let path = if self.path == b"*" {
            b"*".to_vec()
        } else {
            escape(&self.path, Part::Path)
        };
        if has_host && path.first().is_some_and(|first| *first != b'/') {
            text.push(b'/');
        }
        // A colon in the first segment would end a scheme.
        if text.is_empty() && cut(&path, b'/').0.contains(&b':') {
            text.extend_from_slice(b"./");
        }
        text.extend_from_slice(&path);
    }
}

impl User {
    /// Both parts, escaped.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            text.push(b':');
            text.extend_from_slice(&escape(password, Part::User));
        }
        text
    }
}

/// The text before a byte, and what follows it.
fn cut(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(separator, text) {
        Some(position) => (&text[..position], Some(&text[position + 1..])),
        None => (text, None),
    }
}

fn parse_without_fragment(text: &[u8], rule: HostRule) -> Result<Url, String> {
    if text.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    if text == b"*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = cut(rest, b'?');
    url.query = query.unwrap_or_default().to_vec();
    if !rest.starts_with(b"/") {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !url.scheme.is_empty() || !rest.starts_with(b"///");
    if let Some(authority) = rest.strip_prefix(b"//").filter(|_| has_authority) {
        let end = memchr::memchr(b'/', authority).unwrap_or(authority.len());
        let (authority, path) = authority.split_at(end);
        rest = path;
        let is_web = matches!(url.scheme.as_slice(), b"http" | b"https");
        let rule = if is_web { rule } else { rule.min(HostRule::Addresses) };
        (url.user, url.host) = parse_authority(authority, rule)?;
    }
    url.path = unescape(rest, Part::Path)?;
    Ok(url)
}

/// The scheme without its colon, empty where there is none, and what follows.
fn scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (position, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if position > 0 => {}
            b':' if position == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..position], &text[position + 1..])),
            _ => break,
        }
    }
    Ok((b"", text))
}

fn parse_authority(authority: &[u8], rule: HostRule) -> Result<(Option<User>, Vec<u8>), String> {
    let Some(at) = memchr::memrchr(b'@', authority) else {
        return Ok((None, parse_host(authority, rule)?));
    };
    let host = parse_host(&authority[at + 1..], rule)?;
    let user = &authority[..at];
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
    if !user.iter().all(is_allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = cut(user, b':');
    let user = User {
        name: unescape(name, Part::User)?,
        password: password.map(|password| unescape(password, Part::User)).transpose()?,
    };
    Ok((Some(user), host))
}

fn parse_host(host: &[u8], rule: HostRule) -> Result<Vec<u8>, String> {
    let check_port = |port: &[u8]| {
        if is_port(port) {
            Ok(())
        } else {
            Err(format!("invalid port {} after host", text::lossy(&quote(port))))
        }
    };
    if rule > HostRule::Any && memchr::memrchr(b'[', host).is_some_and(|bracket| bracket > 0) {
        return Err("invalid IP-literal".to_owned());
    }
    if host.starts_with(b"[") {
        let end = memchr::memrchr(b']', host).ok_or("missing ']' in host")?;
        check_port(&host[end + 1..])?;
        let unescaped = unescape_literal(host, end)?;
        if rule > HostRule::Any {
            check_address(&unescaped)?;
        }
        return Ok(unescaped);
    }
    let colon = match rule {
        HostRule::AddressesAndOneColon => memchr::memchr(b':', host),
        HostRule::Any | HostRule::Addresses => memchr::memrchr(b':', host),
    };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    unescape(host, Part::Host)
}

/// A host that begins with a bracket. Its zone escapes more than the rest.
fn unescape_literal(host: &[u8], end: usize) -> Result<Vec<u8>, String> {
    let Some(zone) = memchr::memmem::find(&host[..end], b"%25") else {
        return unescape(host, Part::Host);
    };
    let mut unescaped = unescape(&host[..zone], Part::Host)?;
    unescaped.extend(unescape(&host[zone..end], Part::Zone)?);
    unescaped.extend(unescape(&host[end..], Part::Host)?);
    Ok(unescaped)
}

/// Between the brackets, of which the last is the one before the port.
fn check_address(host: &[u8]) -> Result<(), String> {
    let end = memchr::memrchr(b']', host).unwrap_or(host.len());
    match address::parse(host.get(1..end).unwrap_or_default()) {
        Ok(Address::V6) => Ok(()),
        Ok(Address::V4) => Err("invalid IP-literal".to_owned()),
        Err(problem) => Err(format!("invalid host: {problem}")),
    }
}

/// Nothing, or a colon and digits.
fn is_port(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
