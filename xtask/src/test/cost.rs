//! What a test program took: of the time of those who wait, and of the processors. Where a run spends its time is seen in its summary.

use std::{
    fs,
    process::Child,
    thread,
    time::{Duration, Instant},
};

/// How long a program that has closed its output may go on before what it computed is told without its end.
const END: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// Linux counts in these, whatever its own clock does (`USER_HZ`, time(7)).
const TICKS_IN_A_SECOND: u64 = 100;

/// What one program took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) elapsed: Duration,
    /// What it and those whose ends it waited for had of the processors; nothing where the system does not tell. Control planes that end with it, and not
    /// before, are not among them.
    pub(super) computed: Option<Duration>,
}

impl Cost {
    /// Of a program that was started then and whose end was not asked for yet: afterwards nobody can tell.
    pub(super) fn of(child: &Child, begin: Instant) -> Self {
        Self {
            elapsed: begin.elapsed(),
            computed: computed(child),
        }
    }

    /// `at least 2212 s of processors`
    pub(super) fn told(self) -> String {
        match self.computed {
            Some(computed) => format!("at least {} s of processors", computed.as_secs()),
            None => String::new(),
        }
    }
}

fn computed(child: &Child) -> Option<Duration> {
    let end = Instant::now() + END;
    let path = format!("/proc/{}/stat", child.id());
    loop {
        let status = fs::read_to_string(&path).ok()?;
        let (state, computed) = read(&status)?;
        if state == "Z" || Instant::now() >= end {
            return Some(computed);
        }
        thread::sleep(POLL);
    }
}

/// The state of a process, and what it and its children that have ended computed: fields 3 and 14 to 17 of `proc_pid_stat(5)`. The second one, its name in
/// brackets, may have anything in it.
fn read(status: &str) -> Option<(&str, Duration)> {
    let (_, fields) = status.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    let ticks: u64 = ticks.sum::<Option<u64>>()?;
    Some((
        fields.first()?,
        Duration::from_millis(ticks * (1000 / TICKS_IN_A_SECOND)),
    ))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_program_waits_for_is_counted_with_it() {
        let begin = Instant::now();
        // The shell itself computes next to nothing.
        let script = "sh -c 'n=0; while [ $n -lt 200000 ]; do n=$((n + 1)); done'; exit 0";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let cost = Cost::of(&child, begin);
        assert!(child.wait().unwrap().success());
        assert!(cost.computed.unwrap() > Duration::from_millis(20), "{cost:?}");
    }

    #[test]
    fn a_name_with_brackets_and_blanks_moves_no_field() {
        let line = "7 (a) b) Z 1 7 7 0 -1 4 0 0 0 0 100 20 3 4 20 0 1 0";
        assert_eq!(read(line), Some(("Z", Duration::from_millis(1270))));
        assert_eq!(read("7 (a) Z 1"), None);
    }
}
