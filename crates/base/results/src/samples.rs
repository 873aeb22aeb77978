//! Samples as programs print them: the text that a guest, a cokernel or a task writes and a benchmark reads.

use crate::error::{Error, Result};

/// The samples of a line of numbers, separated by white space.
///
/// # Errors
///
/// A word is not a number.
pub fn parse_samples(text: &str) -> Result<Vec<u64>> {
    text.split_whitespace().map(number).collect()
}

/// The samples of the histogram `name`, from all lines that contain `NAME: VALUExCOUNT VALUExCOUNT ...`; whatever
/// precedes the name on a line is ignored.
///
/// # Errors
///
/// A word after the name is not `VALUExCOUNT`.
pub fn parse_histogram(text: &str, name: &str) -> Result<Vec<u64>> {
    let head = format!("{name}:");
    let mut samples = Vec::new();
    for (_, bins) in text.lines().filter_map(|line| line.split_once(&head)) {
        for bin in bins.split_whitespace() {
            let (value, count) = bin
                .split_once('x')
                .ok_or_else(|| Error::Text(format!("{name}: {bin:?} is not VALUExCOUNT")))?;
            samples.extend(std::iter::repeat_n(number(value)?, number(count)? as usize));
        }
    }
    Ok(samples)
}

fn number(word: &str) -> Result<u64> {
    word.parse().map_err(|_| Error::Text(format!("{word:?} is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_separated_by_white_space() {
        assert_eq!(parse_samples("1 20\n300\n").unwrap(), [1, 20, 300]);
        assert_eq!(parse_samples("1 x").unwrap_err().to_string(), "\"x\" is not a number");
    }

    #[test]
    fn histograms_become_samples() {
        let text = "bench call: 450x2\r\n[1] bench call: 7x1\nbench tick: 1x9\nbench: done\n";
        assert_eq!(parse_histogram(text, "bench call").unwrap(), [450, 450, 7]);
        assert!(parse_histogram(text, "bench none").unwrap().is_empty());
        let error = parse_histogram("bench call: 4 5x1\n", "bench call").unwrap_err();
        assert_eq!(error.to_string(), "bench call: \"4\" is not VALUExCOUNT");
        assert!(parse_histogram("bench call: 4xx\n", "bench call").is_err());
    }
}
