//! What ends a long command early: Ctrl-C, or the SIGTERM with which Kubernetes and Slurm announce an end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The first signal asks the command to end with what it has; the second ends the program.
pub fn stop_on_interrupt() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| format!("interrupts cannot be caught: {error}"))?;
    }
    Ok(stop)
}
