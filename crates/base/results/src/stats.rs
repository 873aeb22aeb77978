//! The summary of a set of samples: median with its confidence interval, tail, average.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// `f64` represents every integer up to this one exactly.
const EXACT: u64 = 1 << 53;

/// A number that can be a sample.
pub trait Sample: Copy {
    /// The value, or `None` if it is infinite, not a number, or above 2^53 and so not exact.
    fn value(self) -> Option<f64>;
}

impl Sample for f64 {
    fn value(self) -> Option<f64> {
        self.is_finite().then_some(self)
    }
}

impl Sample for u64 {
    fn value(self) -> Option<f64> {
        (self <= EXACT).then_some(self as f64)
    }
}

/// The 99th percentile of fewer samples than this says no more than the largest sample.
pub(crate) const ENOUGH_FOR_P99: usize = 100;

/// The parts of the samples, from none to all, for which [`Stats::quantiles`] gives a figure.
const LEVELS: [f64; 33] = [
    0.0, 0.001, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6,
    0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.98, 0.985, 0.99, 0.995, 0.998, 0.999,
    0.9995, 1.0,
];

/// Summary of at least one sample, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Number of samples, or of rounds.
    pub n: u64,
    /// Middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// 99th percentile by nearest rank: always a sample. `None` for fewer than 100 samples.
    pub p99: Option<f64>,
    /// 95 % confidence interval of the median, `[low, high]`: two order statistics, so it assumes nothing about the
    /// distribution. Fewer than six samples cannot give 95 %: then it is the smallest and the largest sample.
    pub ci95: [f64; 2],
    /// Arithmetic mean.
    pub avg: f64,
    /// Largest sample.
    pub worst: f64,
}

impl Stats {
    /// Summarises `samples`, in any order.
    ///
    /// # Errors
    ///
    /// There is no sample, or one has no exact finite `f64`.
    pub fn of<S: Sample>(samples: &[S]) -> Result<Self> {
        let sorted = sorted(samples)?;
        let n = sorted.len();
        let (best, worst) = (sorted[0], sorted[n - 1]);
        let rank = median_rank(n);
        // Rounding must not move the mean outside the samples.
        let avg = (sorted.iter().sum::<f64>() / n as f64).clamp(best, worst);
        Ok(Self {
            n: n as u64,
            median: f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
            p99: (n >= ENOUGH_FOR_P99).then(|| sorted[(n * 99).div_ceil(100) - 1]),
            ci95: [sorted[rank - 1], sorted[n - rank]],
            avg,
            worst,
        })
    }

    /// Summarises rounds of samples. Samples of one round depend on each other, so `n`, the median and its interval are
    /// of the rounds' medians; the tail and the mean are of all samples.
    ///
    /// # Errors
    ///
    /// There is no round, or as [`Stats::of`] for a round.
    pub fn of_rounds<S: Sample>(rounds: &[impl AsRef<[S]>]) -> Result<Self> {
        let medians = |round| Ok(Self::of(AsRef::<[S]>::as_ref(round))?.median);
        let medians = rounds.iter().map(medians).collect::<Result<Vec<f64>>>()?;
        let all: Vec<S> = rounds.iter().flat_map(|round| round.as_ref()).copied().collect();
        let Self { n, median, ci95, .. } = Self::of(&medians)?;
        Ok(Self { n, median, ci95, ..Self::of(&all)? })
    }

    /// The distribution of `samples` in at most 33 points: the part of the samples, as a decimal fraction, and the
    /// smallest sample that this part does not exceed.
    ///
    /// # Errors
    ///
    /// As [`Stats::of`].
    pub fn quantiles<S: Sample>(samples: &[S]) -> Result<BTreeMap<String, f64>> {
        let sorted = sorted(samples)?;
        // A product such as 0.07 * 100 is above the integer by an error of rounding.
        let rank = |level: f64| (level * sorted.len() as f64 - 1e-6).ceil().max(1.0) as usize;
        Ok(LEVELS.iter().map(|level| (level.to_string(), sorted[rank(*level) - 1])).collect())
    }
}

fn sorted<S: Sample>(samples: &[S]) -> Result<Vec<f64>> {
    if samples.is_empty() {
        return Err(Error::NoSamples);
    }
    let value = |(index, sample): (usize, &S)| sample.value().ok_or(Error::Sample { index });
    let mut sorted = samples.iter().enumerate().map(value).collect::<Result<Vec<f64>>>()?;
    sorted.sort_by(f64::total_cmp);
    Ok(sorted)
}

/// Largest `k >= 1` for which the `k`-th smallest and the `k`-th largest of `n` samples enclose the
/// median with 95 % confidence, or 1 if none does.
///
/// The number of samples below the median has the distribution B(n, 1/2), and the interval misses the median unless
/// that number is within `k..=n - k`. The weights are those of B relative to the middle one, so those that matter
/// neither overflow nor underflow.
fn median_rank(n: usize) -> usize {
    let middle = n / 2;
    let mut weights = vec![1.0];
    for below in (1..=middle).rev() {
        let next = weights[weights.len() - 1] * below as f64 / (n - below + 1) as f64;
        if next < 1e-20 {
            break;
        }
        weights.push(next);
    }
    // An even n has one count in the middle, and an odd n has two.
    let middle_weight = if n.is_multiple_of(2) { 1.0 } else { 2.0 };
    let outer: f64 = weights[1..].iter().rev().sum();
    let needed = 0.95 * (middle_weight + 2.0 * outer);
    let mut inside = middle_weight;
    let mut k = middle;
    for weight in &weights[1..] {
        if inside >= needed {
            break;
        }
        inside += 2.0 * weight;
        k -= 1;
    }
    k.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From published tables of order statistics for the median: n = 10 gives 2 and 9 (97.9 %),
    /// n = 20 gives 6 and 15 (95.9 %), n = 50 gives 18 and 33 (96.7 %), n = 100 gives 40 and 61
    /// (96.5 %).
    #[test]
    fn interval_ranks() {
        let known = [(6, 1), (8, 1), (9, 2), (10, 2), (11, 2), (12, 3), (20, 6), (50, 18)];
        for (n, k) in known.into_iter().chain([(100, 40), (1, 1), (2, 1), (5, 1)]) {
            assert_eq!(median_rank(n), k, "n = {n}");
        }
        // The normal approximation: n/2 - 1.96 * sqrt(n)/2 + 1/2.
        assert!(median_rank(1_000_000).abs_diff(499_020) <= 1);
    }

    #[test]
    fn ten_samples_in_any_order() {
        let stats = Stats::of(&[70u64, 20, 30, 100, 50, 60, 10, 80, 90, 40]).unwrap();
        let expected =
            Stats { n: 10, median: 55.0, p99: None, ci95: [20.0, 90.0], avg: 55.0, worst: 100.0 };
        assert_eq!(stats, expected);
    }

    #[test]
    fn nearest_rank() {
        let samples: Vec<u64> = (1..=200).collect();
        assert_eq!(Stats::of(&samples).unwrap().p99, Some(198.0));
        assert_eq!(Stats::of(&samples[..101]).unwrap().p99, Some(100.0));
        assert_eq!(Stats::of(&samples[..100]).unwrap().p99, Some(99.0));
    }

    #[test]
    fn fewer_than_a_hundred_samples_have_no_p99() {
        let samples: Vec<u64> = (1..=99).collect();
        assert_eq!(Stats::of(&samples).unwrap().p99, None);
    }

    #[test]
    fn rounds_count_once_however_many_samples_they_have() {
        let rounds: Vec<Vec<u64>> = (1..=8).map(|round| vec![round; 100]).collect();
        let stats = Stats::of_rounds(&rounds).unwrap();
        assert_eq!((stats.n, stats.median, stats.ci95), (8, 4.5, [1.0, 8.0]));
        assert_eq!((stats.p99, stats.worst, stats.avg), (Some(8.0), 8.0, 4.5));
        let tail = Stats::of_rounds(&[vec![1u64, 1, 9], vec![2, 2, 2]]).unwrap();
        assert_eq!((tail.n, tail.median, tail.p99, tail.worst), (2, 1.5, None, 9.0));
        assert!(Stats::of_rounds::<u64>(&[vec![1], vec![]]).is_err());
        assert!(Stats::of_rounds::<u64>(&Vec::<Vec<u64>>::new()).is_err());
    }

    #[test]
    fn quantiles_are_samples_in_order() {
        let samples: Vec<u64> = (1..=1000).collect();
        let quantiles = Stats::quantiles(&samples).unwrap();
        assert_eq!(quantiles.len(), LEVELS.len());
        for (level, expected) in
            [("0", 1.0), ("0.15", 150.0), ("0.5", 500.0), ("0.99", 990.0), ("1", 1000.0)]
        {
            assert_eq!(quantiles[level], expected, "{level}");
        }
        assert!(quantiles.values().is_sorted());
    }

    #[test]
    fn one_sample() {
        let stats = Stats::of(&[2.5]).unwrap();
        assert_eq!((stats.n, stats.median, stats.ci95), (1, 2.5, [2.5, 2.5]));
        assert_eq!((stats.p99, stats.avg, stats.worst), (None, 2.5, 2.5));
    }

    #[test]
    fn mean_stays_among_the_samples() {
        assert_eq!(Stats::of(&[0.1; 3]).unwrap().avg, 0.1);
    }

    #[test]
    fn inexact_samples_are_refused() {
        assert_eq!(Stats::of::<u64>(&[]).unwrap_err().to_string(), "no samples");
        assert!(Stats::of(&[1.0, f64::NAN]).unwrap_err().to_string().starts_with("sample 1 "));
        assert!(Stats::of(&[EXACT]).is_ok());
        assert!(Stats::of(&[EXACT + 1]).is_err());
    }
}
