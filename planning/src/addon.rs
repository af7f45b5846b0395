//! What is decided about the add-ons of one workload cluster: whether there is a ClusterAddon, what the cluster shall have, which stages lead there and
//! which of them is at work, and what a lifecycle hook of Cluster API is answered.
//!
//! A call of a hook is never what starts something. What is due is derived from the Cluster and its control plane; a call is a question about that. So a
//! hook that is never called, called twice, on another replica or with an old object changes nothing. In the status is only what cannot be seen any more
//! (that a condition held once, since when something is waited for), so losing it costs time.
//!
//! A driver uses it so:
//!
//! 1. [`presence()`] says whether there is a ClusterAddon; of one that is there, [`plan()`] decides everything else, its end included.
//! 2. It fills an [`AddonObserved`]: [`wanted()`], [`kind()`] and [`charts_needed()`] tell which charts have to be rendered, and [`AddonWaiting::Condition`] of the
//!    last plan what has to be evaluated. In `objects` is all that the inventory names, these charts ask for, or a watch shows with our mark.
//! 3. It performs the steps; [`AddonPlan::charts`] says whose form of an object is meant. It looks again, and writes the status when no step is left.

mod action;
mod answer;
mod belongings;
mod cluster;
mod control_plane;
mod course;
mod deadline;
mod findings;
mod hold;
mod hook;
mod hook_set;
mod layout;
mod marks;
mod moment;
mod notes;
mod observed;
mod outdated;
mod outlook;
mod plan;
mod presence;
mod schemas;
mod stage;
mod status;
mod target;
mod values_from;
mod waiting;
mod work;

pub use self::{
    action::{AddonAction, Step},
    answer::{Call, HookAnswer, HookStatus, Listed, ReleaseListed, Unmade, answer},
    cluster::{ClusterSeen, PausedBy},
    control_plane::ControlPlaneSeen,
    course::{
        Course, CourseInput, Kind, SINGLE_STAGE, Stage, StageKey, Stages, charts_needed, charts_that_stay, course,
        kind, stages,
    },
    hold::Waits,
    hook::Hook,
    hook_set::{FailurePolicy, Handler, HookSet},
    marks::{CreatedWith, HookCalled, Marks, noted},
    moment::due,
    notes::{notes, overridden, stray},
    observed::{AddonObserved, ChartSeen, Connection, Layout, MemoSeen, StageConditions},
    outdated::outdated,
    plan::{AddonPlan, plan},
    presence::{AddonSeen, ClassOwner, Pausing, Presence, is_begun, may_be_reached, presence},
    schemas::{Checked, SCHEMAS_PAUSE, SCHEMAS_SETTLE, SchemasSeen, Verdict, checked, is_outlived},
    stage::{ConditionSeen, StageSeen, StageState, Work},
    target::{Change, ReleaseSeen, Target, Values, Wanted, change, needs_ready_release, wanted},
    values_from::{Holder, HolderKind, ValuesFrom, ValuesFromError, Withheld, are_for_charts, is_given, values_from},
    waiting::AddonWaiting,
};
