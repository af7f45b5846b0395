//! The driver of ClusterStack: observe, plan, execute, write the status, say when to look again.

mod execute;
mod memory;
mod observe;
mod orphans;

use std::sync::Arc;
use std::time::Duration;

use crds::{ClusterStack, labels};
use kube::{Api, Resource, ResourceExt};
use operator_kit::events::EventType;
use operator_kit::failure::chain;
use operator_kit::status::{StatusWrite, replace_status};
use operator_kit::telemetry::{Change, log_readiness, log_refusal};
use planning::election::shard_of_stack;
use planning::stack::{Note, StackPlan, plan};

pub(crate) use self::memory::StackMemories;
pub(crate) use self::observe::handles;

use self::execute::execute;
use self::observe::observe;
use crate::context::Context;
use crate::driver::Look;
use crate::spans::reconciled;

/// Reconciles one stack, if it is in a shard of this process.
pub(crate) async fn reconcile(context: Arc<Context>, namespace: String, name: String) -> Look {
    context.releases.listed().await;
    let Some(stack) = context.stacks.get(&namespace, &name) else {
        return Look::Done(None);
    };
    let Some(pass) = context.tenure.enter(shard_of_stack(&stack, context.tenure.count())) else {
        return Look::NotOurs;
    };
    let uid = stack.uid().unwrap_or_default();
    let requested_at = stack.annotations().get(labels::REQUESTED_AT);
    context.stack_memories.begin(&uid, pass.term(), requested_at);
    let work = Box::pin(work_on(&context, stack, &namespace, &name));
    Look::Done(reconciled("ClusterStack", &namespace, &name, work).await)
}

/// Reconciles one stack; `None` means that only a change can change the decision.
async fn work_on(context: &Context, stack: Arc<ClusterStack>, namespace: &str, name: &str) -> Option<Duration> {
    let now = context.now();
    let look = |stack| async move {
        let looking = context
            .looking
            .at("ClusterStack", namespace, name, observe(context, stack));
        looking.await
    };
    let observed = look(&stack).await?;
    let plan = plan(&observed, now);
    if let Some(recorder) = &context.recorder {
        recorder.record("stack", &observed, now, &plan);
    }
    let failed = execute(context, &stack, &plan.actions).await;
    if !failed {
        tell(context, &stack, &plan.notes);
    }
    let acted = !plan.actions.is_empty();
    let plan = if acted {
        planning::stack::plan(&look(&stack).await?, context.now())
    } else {
        plan
    };
    if plan.status_due && !write_status(context, &stack, &plan).await {
        let uid = stack.uid().unwrap_or_default();
        return Some(context.stack_memories.status_refused(&uid));
    }
    if acted && !plan.actions.is_empty() {
        return Some(Duration::ZERO);
    }
    context.until(plan.next)
}

/// False when the status could not be written.
async fn write_status(context: &Context, stack: &ClusterStack, plan: &StackPlan) -> bool {
    // What is not looked at keeps what it has, even if that is nothing.
    let before = stack.status.clone().unwrap_or_default();
    if before == plan.status {
        return true;
    }
    let api: Api<ClusterStack> = Api::namespaced(
        context.management.client.clone(),
        &stack.namespace().unwrap_or_default(),
    );
    let wanted = ClusterStack {
        status: Some(plan.status.clone()),
        ..stack.clone()
    };
    match replace_status(&api, stack, &wanted, labels::STATUS_FIELD_MANAGER).await {
        Ok(StatusWrite::Written(written)) => {
            let uid = stack.uid().unwrap_or_default();
            context.stack_memories.status_written(&uid, context.now());
            let change = Change {
                before: &before.conditions,
                after: &plan.status.conditions,
                // They change with each of its releases.
                by_words: false,
                objects: None,
            };
            log_readiness("ClusterStack", stack, change, context.now());
            context.warn(&stack.object_ref(&()), change.before, change.after);
            context.stacks.note(*written);
            true
        }
        Ok(StatusWrite::Unchanged | StatusWrite::Gone) => true,
        Ok(StatusWrite::Conflict) => false,
        Err(error) => {
            let uid = stack.uid().unwrap_or_default();
            let refusals = context.stack_memories.of(&uid).status_refusals + 1;
            log_refusal("ClusterStack", stack, refusals, &chain(&error));
            false
        }
    }
}

fn tell(context: &Context, stack: &ClusterStack, notes: &[Note]) {
    for note in notes {
        let kind = if note.warning {
            EventType::Warning
        } else {
            EventType::Normal
        };
        context
            .events
            .publish(stack.object_ref(&()), kind, note.reason, &note.message);
    }
}
