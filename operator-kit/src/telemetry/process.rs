//! Memory and processor time of this process, read from `/proc` when somebody asks, and the tasks of its runtime.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Ticks a second in `/proc/self/stat`: fixed for programs on every architecture that we build for, whatever the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// Linux only; elsewhere the metrics are absent.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(bytes) = fs::read_to_string("/proc/self/status")
            .ok()
            .as_deref()
            .and_then(resident_bytes)
        {
            let metric = ConstGauge::new(bytes);
            let descriptor = encoder.encode_descriptor(
                "process_resident_memory_bytes",
                "Resident memory",
                None,
                metric.metric_type(),
            )?;
            metric.encode(descriptor)?;
        }
        if let Some(seconds) = fs::read_to_string("/proc/self/stat")
            .ok()
            .as_deref()
            .and_then(cpu_seconds)
        {
            let metric = ConstCounter::new(seconds);
            let descriptor = encoder.encode_descriptor(
                "process_cpu_seconds",
                "Processor time in user and system mode",
                None,
                metric.metric_type(),
            )?;
            metric.encode(descriptor)?;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let tasks = i64::try_from(runtime.metrics().num_alive_tasks()).unwrap_or(i64::MAX);
            let metric = ConstGauge::new(tasks);
            let descriptor = encoder.encode_descriptor(
                "stackwright_runtime_tasks",
                "Tasks of the runtime that have not ended",
                None,
                metric.metric_type(),
            )?;
            metric.encode(descriptor)?;
        }
        Ok(())
    }
}

fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the program's name in parentheses and may contain anything.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            resident_bytes("Name:\tx\nVmRSS:\t   1024 kB\nRssAnon:\t 1 kB\n"),
            Some(1 << 20)
        );
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(2.0));
    }

    #[tokio::test]
    async fn the_running_process_has_memory_time_and_tasks() {
        let _one = tokio::spawn(std::future::pending::<()>());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &crate::telemetry::registry()).unwrap();
        assert!(text.contains("process_resident_memory_bytes "), "{text}");
        assert!(text.contains("process_cpu_seconds_total "), "{text}");
        assert!(text.contains("stackwright_runtime_tasks 1\n"), "{text}");
    }
}
