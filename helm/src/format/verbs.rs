//! Go's `fmt.Sprintf`: reads a format string, finds the operand of each verb, and reports what does not fit as Go does.

use super::{Flags, FormatError, Printer};
use crate::bounds::beyond;
use crate::text::{first_rune, push_char};
use crate::value::Value;

/// The largest width and precision. Go takes written ones up to ten times that.
pub(super) const MAX_NUMBER: i64 = 1_000_000;

/// Formats the operands.
pub(crate) fn sprintf(format: &[u8], operands: &[Value]) -> Result<Vec<u8>, FormatError> {
    let mut formatter = Formatter {
        printer: Printer::default(),
        rest: format,
        operands,
        next: 0,
        is_reordered: false,
        is_good_index: true,
        follows_index: false,
    };
    formatter.run()?;
    Ok(formatter.printer.out)
}

struct Formatter<'a> {
    printer: Printer,
    rest: &'a [u8],
    operands: &'a [Value],
    next: usize,
    is_reordered: bool,
    is_good_index: bool,
    /// The item before was an index such as `[3]`.
    follows_index: bool,
}

impl Formatter<'_> {
    fn run(&mut self) -> Result<(), FormatError> {
        while let Some(percent) = memchr::memchr(b'%', self.rest) {
            self.printer.out.extend_from_slice(&self.rest[..percent]);
            self.rest = &self.rest[percent + 1..];
            self.is_good_index = true;
            self.follows_index = false;
            self.printer.flags = Flags::default();
            self.flags();
            self.index();
            self.width();
            self.precision();
            if !self.follows_index {
                self.index();
            }
            let Some(verb) = first_rune(self.rest) else {
                self.write(b"%!(NOVERB)");
                break;
            };
            self.rest = &self.rest[verb.bytes.len()..];
            self.verb(verb.or_replacement())?;
        }
        self.printer.out.extend_from_slice(self.rest);
        self.extra()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.printer.out.extend_from_slice(bytes);
    }

    fn flags(&mut self) {
        while let Some((first, rest)) = self.rest.split_first() {
            let flags = &mut self.printer.flags;
            match first {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => return,
            }
            self.rest = rest;
        }
    }

    /// An explicit operand index, `[3]`.
    fn index(&mut self) {
        self.follows_index = false;
        if !self.rest.starts_with(b"[") {
            return;
        }
        self.is_reordered = true;
        if self.rest.len() < "[1]".len() {
            self.is_good_index = false;
            self.rest = &self.rest[1..];
            return;
        }
        let Some(end) = self.rest.iter().position(|byte| *byte == b']') else {
            self.is_good_index = false;
            self.rest = &self.rest[1..];
            return;
        };
        let number = str::from_utf8(&self.rest[1..end])
            .ok()
            .filter(|number| !number.starts_with('+'))
            .and_then(|number| number.parse::<usize>().ok());
        self.rest = &self.rest[end + 1..];
        self.follows_index = number.is_some();
        match number
            .and_then(|number| number.checked_sub(1))
            .filter(|index| *index < self.operands.len())
        {
            Some(index) => self.next = index,
            None => self.is_good_index = false,
        }
    }

    fn width(&mut self) {
        if let Some(rest) = self.rest.strip_prefix(b"*") {
            self.rest = rest;
            match self.number_operand() {
                Some(width) => {
                    self.printer.flags.width = usize::try_from(width.unsigned_abs()).ok();
                    if width < 0 {
                        self.printer.flags.minus = true;
                        self.printer.flags.zero = false;
                    }
                }
                None => self.write(b"%!(BADWIDTH)"),
            }
            self.follows_index = false;
            return;
        }
        self.printer.flags.width = self.number();
        if self.follows_index && self.printer.flags.width.is_some() {
            self.is_good_index = false;
        }
    }

    fn precision(&mut self) {
        let Some(rest) = self.rest.strip_prefix(b".").filter(|rest| !rest.is_empty()) else {
            return;
        };
        self.rest = rest;
        if self.follows_index {
            self.is_good_index = false;
        }
        self.index();
        if let Some(rest) = self.rest.strip_prefix(b"*") {
            self.rest = rest;
            self.printer.flags.precision = self
                .number_operand()
                .and_then(|precision| usize::try_from(precision).ok());
            if self.printer.flags.precision.is_none() {
                self.write(b"%!(BADPREC)");
            }
            self.follows_index = false;
        } else {
            self.printer.flags.precision = Some(self.number().unwrap_or(0));
        }
    }

    fn number_operand(&mut self) -> Option<i64> {
        let operand = self.operands.get(self.next)?;
        self.next += 1;
        match operand {
            Value::Int(bits, int_type) if int_type.number(*bits).unsigned_abs() <= MAX_NUMBER.unsigned_abs().into() => {
                Some(*bits)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<usize> {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(length);
        let number = str::from_utf8(digits).ok()?.parse::<i64>();
        if length > 0 && !matches!(number, Ok(number) if number / 10 <= MAX_NUMBER) {
            // Go gives up on the whole format.
            self.rest = &[];
            return None;
        }
        self.rest = rest;
        number.ok().and_then(|number| usize::try_from(number).ok())
    }

    fn verb(&mut self, verb: char) -> Result<(), FormatError> {
        let flags = &self.printer.flags;
        let largest = flags
            .width
            .max(flags.precision)
            .and_then(|number| i64::try_from(number).ok());
        if largest > Some(MAX_NUMBER) {
            return Err(beyond(FormatError::TooWide));
        }
        if verb == '%' {
            self.write(b"%");
        } else if !self.is_good_index {
            self.report(verb, b"(BADINDEX)");
        } else if let Some(operand) = self.operands.get(self.next) {
            self.next += 1;
            let flags = &mut self.printer.flags;
            if matches!(verb, 'v' | 'w') {
                flags.sharp_v = std::mem::take(&mut flags.sharp);
                flags.plus_v = std::mem::take(&mut flags.plus);
            }
            self.printer.argument(operand, verb)?;
        } else {
            self.report(verb, b"(MISSING)");
        }
        Ok(())
    }

    fn report(&mut self, verb: char, what: &[u8]) {
        self.write(b"%!");
        push_char(&mut self.printer.out, verb);
        self.write(what);
    }

    /// Operands that no verb asked for, unless operands were picked by index.
    fn extra(&mut self) -> Result<(), FormatError> {
        if self.is_reordered || self.next >= self.operands.len() {
            return Ok(());
        }
        self.printer.flags = Flags::default();
        self.write(b"%!(EXTRA ");
        for (index, operand) in self.operands[self.next..].iter().enumerate() {
            if index > 0 {
                self.write(b", ");
            }
            if !matches!(operand, Value::Nil) {
                self.write(operand.type_name().as_bytes());
                self.write(b"=");
            }
            self.printer.argument(operand, 'v')?;
        }
        self.write(b")");
        Ok(())
    }
}
