//! What the operating system says of this process's memory.

/// A field of Linux's `/proc/self/status`, as `VmRSS` and `VmHWM`, in kilobytes; `None` where the system does not
/// say.
pub fn kilobytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().split(' ').next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_no_more_than_its_most() {
        let (now, most) = (kilobytes("VmRSS").unwrap(), kilobytes("VmHWM").unwrap());
        assert!(0 < now && now <= most, "{now} {most}");
        assert_eq!(kilobytes("Vm"), None);
    }
}
