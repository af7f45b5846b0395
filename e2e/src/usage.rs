//! What a process uses of the machine, as the kernel counts it.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Ticks a second in `/proc/PID/stat`: fixed for programs, whatever the kernel's own rate.
const TICKS_PER_SECOND: u32 = 100;
/// What makes the kernel forget the highest memory of a process (`proc_pid_clear_refs(5)`).
const FORGET_PEAK: &str = "5";

/// What a process holds and has used up to one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Resident memory, the program's own pages included.
    pub resident_mib: f64,
    /// Of that, what belongs to no file: heap and stacks.
    pub anonymous_mib: f64,
    /// The most that was ever resident, or since [`forget_peak`].
    pub peak_mib: f64,
    /// In user and system mode, of all threads.
    pub cpu: Duration,
    /// Threads.
    pub threads: u32,
    /// Files, sockets and the like that are open.
    pub open_files: u32,
}

impl Usage {
    /// Of a running process.
    pub fn of(process: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))
        };
        let status = read("status")?;
        let memory = |name| mebibytes(&status, name).with_context(|| format!("{name} is not told"));
        let opened = format!("/proc/{process}/fd");
        let opened = fs::read_dir(&opened).with_context(|| format!("failed to list {opened}"))?;
        Ok(Self {
            resident_mib: memory("VmRSS:")?,
            anonymous_mib: memory("RssAnon:")?,
            peak_mib: memory("VmHWM:")?,
            cpu: cpu(&read("stat")?).context("its processor time is not told")?,
            threads: number(&status, "Threads:").context("its threads are not told")?,
            open_files: u32::try_from(opened.count())?,
        })
    }
}

/// The processor time of the thread of a process that used most.
pub fn busiest_thread(process: u32) -> Result<Duration> {
    let threads = format!("/proc/{process}/task");
    let threads = fs::read_dir(&threads).with_context(|| format!("failed to list {threads}"))?;
    // A thread may end while it is looked at.
    let used = threads.filter_map(|thread| cpu(&fs::read_to_string(thread.ok()?.path().join("stat")).ok()?));
    used.max().context("a process has a thread")
}

/// Has the highest memory of a process be what it holds now.
pub fn forget_peak(process: u32) -> Result<()> {
    let path = format!("/proc/{process}/clear_refs");
    fs::write(&path, FORGET_PEAK).with_context(|| format!("failed to write {path}"))
}

/// To so many decimals: more would pretend to be known.
pub fn rounded(number: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (number * scale).round() / scale
}

fn mebibytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(rounded(kibibytes / 1024.0, 1))
}

fn number(status: &str, field: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().parse().ok()
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

    #[test]
    fn highest_memory_is_forgotten() -> Result<()> {
        let own = std::process::id();
        let large = vec![1_u8; 64 << 20];
        let held = Usage::of(own)?.peak_mib;
        drop(large);
        forget_peak(own)?;
        let usage = Usage::of(own)?;
        assert!(usage.peak_mib < held, "{held} before, {usage:?}");
        assert!(usage.threads > 0 && usage.open_files > 2, "{usage:?}");
        Ok(())
    }
}
