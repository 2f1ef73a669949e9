//! The log of a simulation: lines bear simulated time, process and actor, never the wall clock.

use std::fmt;
use std::io::IsTerminal as _;

use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Name of the span in which the simulator handles an event; its fields are time and place.
pub const SPAN: &str = "handle";

/// Filter of `--log` without `RUST_LOG`.
const DEFAULT: &str = "revenant=info,revenant_sim=info";

/// Logs to standard error from now on, if `RUST_LOG` or `wanted` says so.
pub fn init(wanted: bool) {
    let filter = match EnvFilter::try_from_default_env() {
        Ok(filter) => filter,
        Err(_) if wanted => EnvFilter::new(DEFAULT),
        Err(_) => return,
    };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let subscriber = subscriber.with_ansi(std::io::stderr().is_terminal());
    // A subscriber that someone else has set stays.
    let _ = subscriber.event_format(SimulatedTime).try_init();
}

/// `at=0.012345s by=job-manager/1:master INFO …`
#[derive(Clone, Copy, Debug)]
pub struct SimulatedTime;

impl<S, N> FormatEvent<S, N> for SimulatedTime
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        for span in context.event_scope().into_iter().flatten().filter(|span| span.name() == SPAN) {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                write!(writer, "{fields} ")?;
            }
        }
        write!(writer, "{} ", event.metadata().level())?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
