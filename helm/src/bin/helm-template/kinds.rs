//! What the arguments of flags must look like, in the words of Go's `strconv` and `time` and of Helm. Knows no flags.

/// `strconv.ParseBool`.
pub(crate) fn truth(text: &str) -> Result<&'static str, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok("true"),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok("false"),
        _ => Err(number_fault("ParseBool", text, INVALID)),
    }
}

const INVALID: &str = "invalid syntax";
const OUT_OF_RANGE: &str = "value out of range";

fn number_fault(function: &str, text: &str, fault: &str) -> String {
    format!("strconv.{function}: parsing {text:?}: {fault}")
}

/// `strconv.ParseInt` for 64 bits, the base from the prefix.
pub(crate) fn integer(text: &str) -> Result<(), String> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let bases = [("0x", 16), ("0b", 2), ("0o", 8)];
    let prefixed = bases
        .iter()
        .find_map(|(prefix, base)| Some((lower.strip_prefix(prefix)?, *base)));
    let (digits, base, is_prefixed) = match prefixed {
        Some((digits, base)) => (digits, base, true),
        None => match lower.strip_prefix('0') {
            Some(digits) if !digits.is_empty() => (digits, 8, true),
            _ => (lower.as_str(), 10, false),
        },
    };
    // An underscore stands between digits, the prefix being one.
    let groups = digits.strip_prefix('_').filter(|_| is_prefixed).unwrap_or(digits);
    let is_group = |group: &str| !group.is_empty() && group.chars().all(|digit| digit.is_digit(base));
    if !groups.split('_').all(is_group) {
        return Err(number_fault("ParseInt", text, INVALID));
    }
    let limit = (1_u64 << 63) - u64::from(!is_negative);
    match u64::from_str_radix(&groups.replace('_', ""), base) {
        Ok(number) if number <= limit => Ok(()),
        _ => Err(number_fault("ParseInt", text, OUT_OF_RANGE)),
    }
}

/// `strconv.ParseFloat` for 32 bits, without hexadecimal digits.
pub(crate) fn float(text: &str) -> Result<(), String> {
    let is_named = text.contains(['i', 'I']);
    match text.parse::<f32>() {
        Ok(number) if number.is_infinite() && !is_named => Err(number_fault("ParseFloat", text, OUT_OF_RANGE)),
        Ok(_) => Ok(()),
        Err(_) => Err(number_fault("ParseFloat", text, INVALID)),
    }
}

/// `time.ParseDuration`.
pub(crate) fn duration(text: &str) -> Result<(), String> {
    helm::check_duration(text)
}

/// What Helm 4 may wait for, and what it says of those words that it will not know for ever.
pub(crate) fn wait(text: &str) -> Result<Option<String>, String> {
    let instead = match text {
        "watcher" | "legacy" | "hookOnly" => return Ok(None),
        "true" => "watcher",
        "false" => "hookOnly",
        _ => {
            return Err(format!(
                "invalid wait input {text:?}. Valid inputs are watcher, hookOnly, and legacy"
            ));
        }
    };
    Ok(Some(format!(
        "level=WARN msg=\"--wait={text} is deprecated (boolean value) and can be replaced with --wait={instead}\""
    )))
}
