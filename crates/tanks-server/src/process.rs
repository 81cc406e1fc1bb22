//! What the system says of this process: its CPU time and its memory. Linux only; elsewhere nothing is known.

use std::fs;
use std::time::Duration;

/// CPU time of all threads together, in steps of 10 ms.
pub(crate) fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything: the 12th and 13th are user and system time, in hundredths.
    let fields = text.rsplit_once(')')?.1.split_whitespace();
    let hundredths: Vec<u64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Some(Duration::from_millis(hundredths.iter().sum::<u64>() * 10))
}

/// Memory that is really there, bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    status("VmRSS:").map(|kilobytes| kilobytes * 1_024)
}

pub(crate) fn threads() -> Option<u64> {
    status("Threads:")
}

/// Open file descriptors: sockets and files.
pub(crate) fn open_fds() -> Option<u64> {
    // One of them reads this folder.
    fs::read_dir("/proc/self/fd").ok().map(|entries| (entries.count() as u64).saturating_sub(1))
}

/// How many it may have open.
pub(crate) fn max_fds() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn status(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_plausible() {
        let mut work = 1u64;
        while cpu_time().unwrap() < Duration::from_millis(10) {
            work = (0..1_000_000).fold(work, |work, more| work.wrapping_mul(31).wrapping_add(more));
        }
        assert!(resident_bytes().unwrap() > 1 << 20, "{work}");
        assert!(threads().unwrap() >= 1);
        let before = open_fds().unwrap();
        let file = fs::File::open("/proc/self/status").unwrap();
        // Tests run beside each other: another may open or close something meanwhile.
        assert!(before >= 3 && open_fds().unwrap() >= 3, "{before} {file:?}");
        assert!(max_fds().unwrap() >= open_fds().unwrap());
    }
}
