//! Processes that misbehave: each is over within its limits, and who asked is told how it ended.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use isolation::{AskError, Bounds, Death, Program};

/// More than anything here takes that is to end by itself.
const PATIENT: Bounds = Bounds {
    deadline: Duration::from_mins(1),
    answer: 1 << 20,
};

const HASTY: Bounds = Bounds {
    deadline: Duration::from_millis(200),
    ..PATIENT
};

fn program() -> Program {
    Program::at(env!("CARGO_BIN_EXE_isolation-misbehaving"), "misbehave")
}

fn ask(request: &str, bounds: Bounds) -> Result<Vec<u8>, AskError> {
    program().ask(request.as_bytes(), bounds, &AtomicBool::new(false))
}

fn answer(request: &str) -> String {
    String::from_utf8(ask(request, PATIENT).unwrap()).unwrap()
}

/// How the process ended, and what it had said.
fn death(request: &str) -> (Death, Vec<u8>) {
    match ask(request, PATIENT) {
        Err(AskError::Died { death, said }) => (death, said),
        other => panic!("{request}: {other:?}"),
    }
}

#[test]
fn what_is_asked_comes_back_however_long_it_is() {
    for length in [0, 1, 100_000, (1 << 20) - 5] {
        let text = "x".repeat(length);
        assert!(answer(&format!("echo {text}")) == text, "{length}");
    }
}

#[test]
fn nothing_of_the_environment_and_the_arguments_is_passed_on() {
    assert_eq!(
        answer("arguments"),
        r#"["misbehave", "--serve-isolated=misbehave"] [("MIMALLOC_DISALLOW_ARENA_ALLOC", "1")]"#
    );
}

#[test]
fn work_that_does_not_end_is_stopped_at_its_deadline_and_what_it_said_is_known() {
    let error = ask("answer-and-spin begun", HASTY).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the process did not end within 200ms, so it was stopped"
    );
    assert!(matches!(error, AskError::Deadline { said, .. } if said == b"begun"));
}

#[test]
fn work_that_nobody_stops_runs_out_of_processor_time() {
    assert_eq!(
        death("answer-and-spin begun"),
        (Death::ProcessorTime, b"begun".to_vec())
    );
}

#[test]
fn work_that_nobody_waits_for_is_stopped() {
    let patient = Bounds {
        deadline: Duration::from_hours(1),
        ..PATIENT
    };
    let stop = AtomicBool::new(false);
    let (asked, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let asked = asked;
            asked.send(program().ask(b"wait", patient, &stop)).unwrap();
        });
        stop.store(true, Ordering::Relaxed);
        let answer = ended.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(matches!(answer, Err(AskError::Stopped)), "{answer:?}");
    });
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let error = ask("flood", PATIENT).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the process answers more than 1048576 bytes, so it was stopped"
    );
    assert!(matches!(error, AskError::TooLong { said, .. } if said == vec![b'a'; 1 << 20]));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_ends_where_it_is_allowed_to() {
    for request in ["allocate", "allocate-at-once", "recurse"] {
        assert_eq!(death(request), (Death::Exhausted, Vec::new()), "{request}");
    }
}

#[test]
fn files_and_sockets_are_refused() {
    for request in ["open", "write", "connect"] {
        let answer = answer(request);
        assert!(answer.starts_with("refused: "), "{request}: {answer}");
    }
}

#[test]
fn processes_and_threads_are_refused_but_to_root() {
    let expected = if rustix::process::getuid().is_root() {
        "done"
    } else {
        "refused: "
    };
    for request in ["start", "thread"] {
        let answer = answer(request);
        assert!(answer.starts_with(expected), "{request}: {answer}");
    }
}

#[test]
fn a_panic_is_told_from_an_answer() {
    assert_eq!(death("answer-and-panic half"), (Death::Panicked, b"half".to_vec()));
}

#[test]
fn a_program_that_does_not_serve_is_not_started_as_if_it_did() {
    let error = Program::itself("misbehave").ask(b"echo a", PATIENT, &AtomicBool::new(false));
    assert_eq!(
        error.unwrap_err().to_string(),
        "this program does no work of the name \"misbehave\""
    );
}

#[test]
fn what_is_not_there_cannot_be_started() {
    let error = Program::at("/nonexistent", "misbehave").ask(b"", PATIENT, &AtomicBool::new(false));
    assert!(matches!(error, Err(AskError::Start(_))), "{error:?}");
}

#[test]
fn started_by_a_person_the_program_does_what_it_always_does() {
    for arguments in [
        &[][..],
        &["--serve-isolated=other"],
        &["other", "--serve-isolated=misbehave"],
    ] {
        let answer = Command::new(env!("CARGO_BIN_EXE_isolation-misbehaving"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(answer.status.code(), Some(64), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_is_left_behind() {
    for request in ["wait", "flood", "echo x", "answer-and-panic x"] {
        let _ = ask(request, HASTY);
    }
    // Those that this thread has started, ended ones that nobody has heard of among them.
    assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap(), "");
}
