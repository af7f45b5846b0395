//! What both operators need of the world: apply, discovery, lease, status, telemetry
