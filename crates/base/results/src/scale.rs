//! The axis of a plot.

/// If a scale around a centre spans more than this factor, it is logarithmic.
const WIDE: f64 = 5.0;
/// If the largest figure of a distribution is more than this many times the smallest, the scale is logarithmic.
const SPREAD: f64 = 20.0;
/// The part of a scale that is left free at an end without zero.
const PADDING: f64 = 0.04;
/// Maximum number of ticks.
const TICKS: usize = 8;

/// The mapping from figures to pixels.
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Pixels of `low` and of `high`.
    ends: (i32, i32),
}

impl Scale {
    /// A linear scale that contains zero, for bars.
    pub(crate) fn from_zero(figures: &[f64], ends: (i32, i32)) -> Self {
        let (low, high) = range(figures, 0.0);
        let high = if low == high { 1.0 } else { high };
        Self { low, high, log: false, ends }
    }

    /// A scale that contains `centre`, for figures that are compared with it.
    pub(crate) fn around(centre: f64, figures: &[f64], ends: (i32, i32)) -> Self {
        let (low, high) = range(figures, centre);
        if low > 0.0 && high / low > WIDE {
            return Self::log(low, high, ends);
        }
        let padding = if low == high { 1.0 } else { (high - low) * PADDING };
        Self { low: low - padding, high: high + padding, log: false, ends }
    }

    /// A scale for figures of any magnitude; linear ones contain zero.
    pub(crate) fn spread(figures: &[f64], ends: (i32, i32)) -> Self {
        let (low, high) = range(figures, figures.first().copied().unwrap_or(0.0));
        if low > 0.0 && high / low > SPREAD {
            return Self::log(low, high, ends);
        }
        Self::from_zero(figures, ends)
    }

    /// A logarithmic scale with free space at both ends.
    fn log(low: f64, high: f64, ends: (i32, i32)) -> Self {
        let padding = (high / low).powf(PADDING);
        Self { low: low / padding, high: high * padding, log: true, ends }
    }

    /// What the axis says about the scale.
    pub(crate) fn remark(&self) -> &'static str {
        if self.log {
            ", logarithmic"
        } else {
            ""
        }
    }

    pub(crate) fn pixel(&self, figure: f64) -> i32 {
        let map = |figure: f64| if self.log { figure.log10() } else { figure };
        let part = (map(figure) - map(self.low)) / (map(self.high) - map(self.low));
        let (from, to) = self.ends;
        from + (part * f64::from(to - from)).round() as i32
    }

    /// A few round figures within the scale.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log {
            return self.log_ticks();
        }
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let (low, high) = ((self.low / step).ceil() as i32, (self.high / step).floor() as i32);
        (low..=high).map(|i| f64::from(i) * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().floor() as i32;
        let within = |figure: &f64| (self.low..=self.high).contains(figure);
        let ticks = |factors: &[f64]| -> Vec<f64> {
            let decade = |power| factors.iter().map(move |factor| factor * 10f64.powi(power));
            powers.clone().flat_map(decade).filter(within).collect()
        };
        let fine = ticks(&[1.0, 2.0, 5.0]);
        if fine.len() <= TICKS {
            return fine;
        }
        let decades = ticks(&[1.0]);
        let step = decades.len() / TICKS + 1;
        decades.into_iter().step_by(step).collect()
    }
}

/// The smallest and the largest of the figures and `also`.
fn range(figures: &[f64], also: f64) -> (f64, f64) {
    let fold = |with: fn(f64, f64) -> f64| figures.iter().copied().fold(also, with);
    (fold(f64::min), fold(f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_start_at_zero() {
        let scale = Scale::from_zero(&[1.0, 50.0], (100, 200));
        assert_eq!([0.0, 25.0, 50.0].map(|figure| scale.pixel(figure)), [100, 150, 200]);
        assert_eq!(scale.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(Scale::from_zero(&[0.0], (0, 400)).pixel(0.0), 0);
        assert_eq!(Scale::from_zero(&[0.0, 10.0], (300, 0)).pixel(10.0), 0);
    }

    #[test]
    fn ratios_are_around_one() {
        let scale = Scale::around(1.0, &[1.5, 2.0], (0, 108));
        assert_eq!([1.0, 2.0].map(|figure| scale.pixel(figure)), [4, 104]);
        let scale = Scale::around(1.0, &[0.5, 50.0], (0, 108));
        assert_eq!([0.5, 5.0, 50.0].map(|figure| scale.pixel(figure)), [4, 54, 104]);
        assert_eq!(scale.remark(), ", logarithmic");
        assert_eq!(scale.ticks(), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Scale::around(1.0, &[1.0], (0, 100)).pixel(1.0), 50);
    }

    #[test]
    fn wide_spreads_are_logarithmic() {
        assert_eq!(Scale::spread(&[10.0, 100.0], (0, 400)).remark(), "");
        assert_eq!(Scale::spread(&[0.0, 1e6], (0, 400)).remark(), "");
        let scale = Scale::spread(&[1.0, 1e12], (0, 400));
        assert_eq!(scale.ticks(), [1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]);
    }
}
