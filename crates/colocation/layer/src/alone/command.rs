//! The command line, with the options that `kyozon load` has beside Linux.

/// Maximum ticks a second.
const HZ_MAX: u64 = 2000;
/// Budgets, microseconds: as the module has them.
const BUDGET_US: (u64, u64) = (20, 10_000);
/// Memory of a cokernel, bytes: as the module has it.
const MEMORY: (u64, u64) = (64 << 10, 1 << 30);
const PAGE: u64 = 4096;

/// The operator's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `hz=`: ticks a second, 1..=2000.
    pub hz: u32,
    /// `budget=`: microseconds that the cokernel may run before it is cut off.
    pub budget_us: u32,
    /// `parameter=`: a number for the cokernel.
    pub parameter: u64,
    /// `memory=`: bytes for the cokernel, a multiple of 4096; the suffixes K, M and G are understood.
    pub memory: u64,
    /// `ticks=`: the machine is switched off after this many, without the one that starts the cokernel; 0 for never.
    pub ticks: u64,
}

impl Default for Options {
    /// As `kyozon load` without options.
    fn default() -> Self {
        Self { hz: 100, budget_us: 200, parameter: 0, memory: 4 << 20, ticks: 0 }
    }
}

/// A word of the command line that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadWord<'a> {
    /// The word.
    pub word: &'a str,
    /// What is valid instead.
    pub wanted: &'static str,
}

/// Reads words of the form `name=value`, separated by blanks. If a name comes twice, the last counts.
pub fn parse(line: &str) -> Result<Options, BadWord<'_>> {
    let mut options = Options::default();
    for word in line.split_ascii_whitespace() {
        let bad = |wanted| BadWord { word, wanted };
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = |min, max, wanted| match number(value) {
            Some(n) if (min..=max).contains(&n) => Ok(n),
            _ => Err(bad(wanted)),
        };
        match name {
            "hz" => options.hz = number(1, HZ_MAX, "1 to 2000 ticks a second")? as u32,
            "budget" => {
                options.budget_us =
                    number(BUDGET_US.0, BUDGET_US.1, "20 to 10000 microseconds")? as u32;
            }
            "parameter" => options.parameter = number(0, u64::MAX, "a number")?,
            "ticks" => options.ticks = number(0, u64::MAX, "a number")?,
            "memory" => {
                options.memory = number(MEMORY.0, MEMORY.1, "64K to 1G")?;
                if options.memory % PAGE != 0 {
                    return Err(bad("a multiple of 4096 bytes"));
                }
            }
            _ => return Err(bad("hz=, budget=, parameter=, memory= or ticks=")),
        }
    }
    Ok(options)
}

fn number(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (digits, 10),
    };
    // `from_str_radix` takes a sign, too.
    if !digits.as_bytes().first()?.is_ascii_hexdigit() {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_set_options() {
        assert_eq!(parse("").unwrap(), Options::default());
        assert_eq!(
            parse("hz=1000  budget=50 parameter=0x103 memory=2M ticks=7\n").unwrap(),
            Options { hz: 1000, budget_us: 50, parameter: 0x103, memory: 2 << 20, ticks: 7 }
        );
        assert_eq!(parse("hz=1 hz=2").unwrap().hz, 2);
    }

    #[test]
    fn bad_words_are_named() {
        for line in [
            "hz=0",
            "hz=2001",
            "hz=+5",
            "hz=-1",
            "hz",
            "hz=",
            "budget=19",
            "budget=10001",
            "memory=65537",
            "memory=0",
            "memory=2G",
            "memory=99999999999G",
            "memory=K",
            "parameter=0x",
            "parameter=0x1ffffffffffffffff",
            "ticks=é",
            "ticks=Kß",
            "quiet",
            "=",
        ] {
            assert_eq!(parse(line).unwrap_err().word, line);
        }
        assert_eq!(parse("hz=5 nonsense ticks=1").unwrap_err().word, "nonsense");
    }
}
