//! What a process uses of the machine, as the kernel counts it.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Ticks a second in `/proc/PID/stat`: fixed for programs, whatever the kernel's own rate.
const TICKS_PER_SECOND: u32 = 100;

/// Memory and processor time of a process up to one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Usage {
    pub(super) resident_mib: f64,
    pub(super) peak_mib: f64,
    /// In user and system mode, of all threads.
    pub(super) cpu: Duration,
}

impl Usage {
    /// Of a running process.
    pub(super) fn of(process: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))
        };
        let status = read("status")?;
        Ok(Self {
            resident_mib: mebibytes(&status, "VmRSS:").context("its memory is not told")?,
            peak_mib: mebibytes(&status, "VmHWM:").context("its highest memory is not told")?,
            cpu: cpu(&read("stat")?).context("its processor time is not told")?,
        })
    }
}

fn mebibytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(super::rounded(kibibytes / 1024.0, 1))
}

fn cpu(stat: &str) -> Option<Duration> {
    // The second field is the program's name in parentheses and may contain anything.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(Duration::from_secs(1) * (ticks()? + ticks()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 4 0 0 0 0";
        assert_eq!(cpu(stat), Some(Duration::from_secs(3)));
    }

    #[test]
    fn memory_is_told_in_mebibytes() {
        assert_eq!(mebibytes("VmHWM:\t  2048 kB\nVmRSS:\t  1536 kB\n", "VmRSS:"), Some(1.5));
    }
}
