//! Text of a confined kernel, for messages. It may contain anything.

/// Maximum characters of a message's part.
const MAX: usize = 300;

/// Text without control characters, which could change a terminal, and not too long.
pub fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().chars().map(|c| if c.is_control() { '?' } else { c }).take(MAX).collect()
}

/// The last line of a log that is not empty. The line that names a panic comes before its call trace and wins.
pub fn last_words(log: &[u8]) -> String {
    let lines = || log.split(|&byte| byte == b'\n').rev().map(printable);
    let panic = lines().find(|line| line.contains("Kernel panic") && !line.contains("---["));
    panic.or_else(|| lines().find(|line| !line.is_empty())).unwrap_or_default()
}

#[cfg(test)]
mod tests;
