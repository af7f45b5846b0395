//! Files of a storage that may hang: never on the threads of the runtime, in bounded time, number and size.
//!
//! A call to such a storage cannot be ended, only left alone: the thread that made it is lost until the storage answers. So each purpose has
//! its own few places, and who comes when all of them hang is told so instead of being given one more thread.
//!
//! Knows how to read a file and how to bound work, and nothing of what is in the files.

mod file;
mod work;

pub use self::file::ReadError;
pub use self::work::{BlockingWork, Place, Unanswered};
