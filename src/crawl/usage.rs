//! What this process has used: CPU time and the most memory it ever held. Zero where the system does not say.

/// Use of resources by this process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) cpu_us: u64,
    pub(super) peak_rss: u64,
}

/// Clock ticks a second in `/proc/self/stat` (fixed at 100 by the kernel's user interface).
const TICKS: u64 = 100;

pub(super) fn now() -> Usage {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Usage {
        cpu_us: cpu_ticks(&stat).unwrap_or(0) * (1_000_000 / TICKS),
        peak_rss: peak_kib(&status).unwrap_or(0) * 1024,
    }
}

/// Bytes of memory that this process holds now.
#[must_use]
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kib(&status, "VmRSS:").unwrap_or(0) * 1024
}

/// Bytes of memory that the system could still give; nothing where it does not say.
pub(super) fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    available_kib(&info).map(|kib| kib * 1024)
}

fn available_kib(info: &str) -> Option<u64> {
    let line = info.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// utime + stime: fields 14 and 15, counted after the name in parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn peak_kib(status: &str) -> Option<u64> {
    kib(status, "VmHWM:")
}

fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found() {
        let stat = "1 (a ) name) S 0 1 1 0 -1 4194560 1 1 0 0 17 5 0 0 20 0 1 0 10 1 1 18446744073709551615";
        assert_eq!(cpu_ticks(stat), Some(22));
        assert_eq!(peak_kib("Name:\tx\nVmHWM:\t    1234 kB\n"), Some(1234));
        assert_eq!(available_kib("MemFree: 7 kB\nMemAvailable:   42 kB\n"), Some(42));
        assert_eq!(cpu_ticks(""), None);
    }
}
