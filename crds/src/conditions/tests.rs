//! Tables for merge, summary, lint and the cutting of messages.
