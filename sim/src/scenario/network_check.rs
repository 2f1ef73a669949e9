//! Whether the faults of the network can happen at all: what `load` asks of them.

use std::time::Duration;

use revenant::actor::Time;

use super::{Action, Fault, MessageFault, MessageTrigger, NetworkFault, Scenario, Span, Trigger, is_late};

impl Scenario {
    /// Whether what a fault of the network needs is there.
    pub(super) fn check_network_fault(&self, fault: &Fault, what: NetworkFault) -> Result<(), String> {
        for process in what.route().into_iter().flat_map(super::Route::processes) {
            self.check_process(process)?;
        }
        if matches!(what, NetworkFault::Message(_)) && !matches!(fault.at, Trigger::Message(_)) {
            return Err(format!(
                "'{what}' befalls one message: write at = 'message SubmitTask#1 from job-manager', or which it is"
            ));
        }
        if what.is_heal() && !self.faults.iter().any(|other| can_heal(fault, what, other)) {
            let between = what.route().map_or_else(String::new, |_| " between the two".to_owned());
            return Err(format!(
                "nothing is broken that '{what}' could heal: no earlier fault partition, cut, slow or drop of a \
                 kind stands{between}"
            ));
        }
        Ok(())
    }

    /// By how much a fault can make a message late.
    pub fn longest_lateness(&self) -> Duration {
        let network = &self.network;
        let rates = [
            (network.delay_rate, network.delay_by),
            (network.overtake_rate, network.overtake_by),
            (network.duplicate_rate, network.duplicate_after),
        ];
        let rates = rates.into_iter().filter(|(rate, _)| !rate.is_never()).map(|(_, range)| range.max);
        let faults = self.faults.iter().filter_map(|fault| match fault.action {
            Action::Network(
                NetworkFault::Message(
                    MessageFault::Delay(Span(by))
                    | MessageFault::Overtake(Span(by))
                    | MessageFault::Duplicate(Span(by)),
                )
                | NetworkFault::Slow(_, Span(by)),
            ) => Some(by),
            _ => None,
        });
        rates.chain(faults).max().unwrap_or_default()
    }

    pub(super) fn check_message(&self, trigger: &MessageTrigger) -> Result<(), String> {
        trigger.route.processes().try_for_each(|process| self.check_process(process))
    }

    /// Whether the keys of `[network]` fit together; the error is of the key.
    pub(super) fn check_rates(&self) -> Result<(), (&'static str, String)> {
        let network = &self.network;
        let ranges = [
            ("duplicate-after", network.duplicate_after, "duplicate-rate", network.duplicate_rate),
            ("delay-by", network.delay_by, "delay-rate", network.delay_rate),
            ("overtake-by", network.overtake_by, "overtake-rate", network.overtake_rate),
        ];
        for (key, range, of, rate) in ranges {
            if rate.is_never() && !is_late(&range) {
                return Err((key, format!("{key} has no effect: set {of}")));
            }
        }
        let Some(Span(until)) = network.rates_until else { return Ok(()) };
        if !network.has_rates() {
            let message =
                "rates-until ends nothing: set drop-rate, duplicate-rate, delay-rate or overtake-rate";
            return Err(("rates-until", message.to_owned()));
        }
        if until > self.cluster.time_limit.0 {
            let message =
                format!("the run ends after time-limit = '{}', before this", self.cluster.time_limit);
            return Err(("rates-until", message));
        }
        Ok(())
    }
}

/// Whether the heal can come after that fault, and ends it.
fn can_heal(heal: &Fault, what: NetworkFault, other: &Fault) -> bool {
    let later = match (&heal.at, &other.at) {
        (Trigger::Time(heal), Trigger::Time(fault)) => heal > fault,
        (Trigger::Time(Time(0)), _) => false,
        _ => true,
    };
    later && matches!(other.action, Action::Network(other) if what.heals(other))
}
