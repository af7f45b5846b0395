//! A program that serves, and does in its work what the request tells it to.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::process::{self, Command};
use std::{env, thread};

use isolation::{Limits, serve};

const LIMITS: Limits = Limits {
    memory: 64 << 20,
    processor_seconds: 1,
};

fn main() {
    serve("misbehave", LIMITS, |request, answer| {
        misbehave(&String::from_utf8_lossy(&request), answer)
    });
    // Nobody has asked for it: this is what would happen if a program did not serve.
    eprintln!("this program serves, and does nothing else");
    process::exit(64);
}

fn misbehave(request: &str, answer: &mut dyn Write) -> io::Result<()> {
    let (what, rest) = request.split_once(' ').unwrap_or((request, ""));
    match what {
        "echo" => return answer.write_all(rest.as_bytes()),
        "arguments" => {
            return write!(
                answer,
                "{:?} {:?}",
                env::args().collect::<Vec<_>>(),
                env::vars().collect::<Vec<_>>()
            );
        }
        "answer-and-spin" => {
            answer.write_all(rest.as_bytes())?;
            answer.flush()?;
            loop {
                black_box(());
            }
        }
        "answer-and-panic" => {
            answer.write_all(rest.as_bytes())?;
            answer.flush()?;
            #[expect(clippy::panic, reason = "this is what is asked for")]
            {
                panic!("as told");
            }
        }
        "wait" => loop {
            thread::park();
        },
        "flood" => loop {
            answer.write_all(&[b'a'; 4096])?;
        },
        "allocate" => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        "allocate-at-once" => return write!(answer, "{}", black_box(vec![1_u8; 1 << 30]).len()),
        "recurse" => return write!(answer, "{}", depth(0)),
        "open" => return tell(answer, File::open("/etc/hostname").map(drop)),
        "write" => return tell(answer, File::create("/tmp/isolation-misbehaving").map(drop)),
        "connect" => return tell(answer, std::net::UdpSocket::bind("127.0.0.1:0").map(drop)),
        "start" => return tell(answer, Command::new("/bin/true").status().map(drop)),
        "thread" => return tell(answer, thread::Builder::new().spawn(|| ()).map(drop)),
        _ => {}
    }
    process::exit(1);
}

fn tell(answer: &mut dyn Write, done: io::Result<()>) -> io::Result<()> {
    match done {
        Ok(()) => write!(answer, "done"),
        Err(error) => write!(answer, "refused: {error}"),
    }
}

/// Uses stack until there is none.
#[expect(unconditional_recursion, reason = "this is what is asked for")]
fn depth(level: u64) -> u64 {
    let local = black_box([level; 128]);
    depth(level + 1) + local[0]
}
