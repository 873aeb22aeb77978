//! The axis of a plot.

use crate::row::Row;

/// If the largest figure is more than this many times the smallest, the scale is logarithmic.
const SPREAD: f64 = 50.0;

/// The mapping from figures to horizontal pixels.
pub(crate) struct Scale {
    low: f64,
    high: f64,
    /// Whether it is logarithmic.
    pub(crate) log: bool,
    left: i32,
    right: i32,
}

impl Scale {
    pub(crate) fn of(rows: &[&Row], left: i32, right: i32) -> Self {
        let drawn =
            |row: &&Row| [row.median, row.p99.unwrap_or(row.median), row.ci95[0], row.ci95[1]];
        let drawn: Vec<f64> = rows.iter().flat_map(drawn).collect();
        let low = drawn.iter().copied().fold(f64::INFINITY, f64::min);
        let high = drawn.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > 0.0 && high / low > SPREAD {
            // Below the smallest figure, so that its bar has a length.
            let low = (low.log10() - 0.1).floor();
            return Self { low: 10f64.powf(low), high, log: true, left, right };
        }
        let (low, high) = (low.min(0.0), high.max(0.0));
        let high = if low == high { 1.0 } else { high };
        Self { low, high, log: false, left, right }
    }

    /// The figure at which bars start.
    pub(crate) fn base(&self) -> f64 {
        if self.log {
            self.low
        } else {
            0.0
        }
    }

    pub(crate) fn pixel(&self, figure: f64) -> i32 {
        let map = |figure: f64| if self.log { figure.log10() } else { figure };
        let part = (map(figure) - map(self.low)) / (map(self.high) - map(self.low));
        self.left + (part * f64::from(self.right - self.left)).round() as i32
    }

    /// At most nine round figures within the scale.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (low, high) = (self.low.log10().round() as i32, self.high.log10().floor() as i32);
            let step = ((high - low) / 8 + 1) as usize;
            return (low..=high).step_by(step).map(|power| 10f64.powi(power)).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let (low, high) = ((self.low / step).ceil() as i32, (self.high / step).floor() as i32);
        (low..=high).map(|i| f64::from(i) * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, unit: &str, samples: &[f64]) -> Row {
        Row::from_samples(name, unit, samples).unwrap()
    }

    #[test]
    fn scales() {
        let (one, many) = (row("one", "us", &[1.0]), row("many", "us", &[50.0]));
        let linear = Scale::of(&[&one, &many], 100, 200);
        assert!(!linear.log);
        assert_eq!([0.0, 25.0, 50.0].map(|figure| linear.pixel(figure)), [100, 150, 200]);
        assert_eq!(linear.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);

        let more = row("more", "us", &[1000.0]);
        let log = Scale::of(&[&one, &more], 0, 400);
        assert!(log.log);
        assert_eq!([0.1, 1.0, 1000.0].map(|figure| log.pixel(figure)), [0, 100, 400]);
        assert_eq!(log.ticks().len(), 5);

        let zero = row("zero", "us", &[0.0]);
        assert_eq!(Scale::of(&[&zero], 0, 400).pixel(0.0), 0);
    }
}
