//! One deed, done: the only code that calls an image store. It is the same wherever it runs, asks no Kubernetes and remembers nothing; when it is done,
//! and what follows, others decide.

mod failure;
mod plan;
mod read_back;
mod sums;
mod work;

pub(crate) use self::failure::{Failed, Whose};
pub(crate) use self::plan::{ContentSpec, Found, WorkPlan, Worked};
pub(crate) use self::work::work;
