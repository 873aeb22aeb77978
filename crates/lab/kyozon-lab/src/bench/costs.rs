//! Published costs of expensive events, for several CPUs: `docs/results/costs.toml`.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The part of the file that a model needs; comments and sources are for readers.
#[derive(Debug, Deserialize)]
pub struct Costs {
    cpu: BTreeMap<String, Cpu>,
    substitute: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Cpu {
    order: String,
    instructions_per_cycle: Rate,
    event: BTreeMap<String, Price>,
}

#[derive(Debug, Deserialize)]
struct Rate {
    value: f64,
}

#[derive(Debug, Deserialize)]
struct Price {
    cycles: f64,
    #[serde(default)]
    from_other_cpu: bool,
}

/// Events without a charge: the cost of a VMEXIT is in the figure of its VMRUN.
const LEFT_OUT: [&str; 1] = ["vmexit"];

impl Costs {
    /// Reads the file in folder `results`.
    pub fn read(results: &Path) -> Result<Self> {
        let path = results.join("costs.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Name and order of execution of each CPU.
    pub fn cpus(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cpu.iter().map(|(name, cpu)| (name.as_str(), cpu.order.as_str()))
    }

    /// Modelled cycles: instructions at the CPU's rate, plus each event at its cost.
    pub fn model(
        &self,
        cpu: &str,
        instructions: u64,
        events: &BTreeMap<String, u64>,
    ) -> Result<f64> {
        let rate = self.cpu.get(cpu).context("an unknown CPU")?.instructions_per_cycle.value;
        let mut cycles = instructions as f64 / rate;
        for (event, count) in events.iter().filter(|(event, _)| !LEFT_OUT.contains(&event.as_str()))
        {
            cycles += *count as f64 * self.price(cpu, event)?;
        }
        Ok(cycles)
    }

    /// Whether `cpu` has a figure of its own for `event`, not one that was measured on another CPU.
    pub fn has(&self, cpu: &str, event: &str) -> bool {
        let event = self.substitute.get(event).map_or(event, String::as_str);
        let price = self.cpu.get(cpu).and_then(|cpu| cpu.event.get(event));
        price.is_some_and(|price| !price.from_other_cpu)
    }

    fn price(&self, cpu: &str, event: &str) -> Result<f64> {
        let event = self.substitute.get(event).map_or(event, String::as_str);
        let of = |cpu: &Cpu| cpu.event.get(event).map(|price| price.cycles);
        let others = || self.cpu.values().filter_map(of).reduce(f64::max);
        of(&self.cpu[cpu])
            .or_else(others)
            .with_context(|| format!("costs.toml: no CPU has a figure for {event}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        toml::from_str(
            "[substitute]\nwrfsbase = \"swapgs\"\nmmio = \"lidt\"\n\
             [cpu.a]\norder = \"in-order\"\ninstructions_per_cycle = { value = 1.0 }\n\
             event.lidt.cycles = 40\nevent.swapgs.cycles = 20\n\
             [cpu.b]\norder = \"out-of-order\"\ninstructions_per_cycle = { value = 2.0 }\nevent.lidt.cycles = 30\n",
        )
        .unwrap()
    }

    fn events(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
        list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
    }

    #[test]
    fn models_are_sums() {
        let costs = costs();
        assert_eq!(
            costs.model("a", 100, &events(&[("lidt", 2), ("mmio", 1), ("vmexit", 1)])).unwrap(),
            220.0
        );
        assert_eq!(costs.model("b", 100, &events(&[("lidt", 2)])).unwrap(), 110.0);
        // Charged as another event, with another CPU's figure.
        assert_eq!(costs.model("b", 0, &events(&[("wrfsbase", 1)])).unwrap(), 20.0);
    }

    #[test]
    fn events_without_a_cost_are_errors() {
        let error = costs().model("a", 1, &events(&[("vmrun", 1)])).unwrap_err();
        assert!(error.to_string().contains("vmrun"));
    }

    #[test]
    fn every_counted_event_has_a_cost() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/results");
        let costs = Costs::read(&results).unwrap();
        let counted: &[&str] = &include!("../../../counter/src/events.in");
        assert!(LEFT_OUT.iter().all(|event| counted.contains(event)));
        assert!(costs.has("amd_k8", "vmrun") && !costs.has("core2_t7300", "vmrun"));
        assert!(!costs.has("skylake", "vmrun"), "that figure is another CPU's");
        assert!(costs.cpus().any(|(_, order)| order == "in-order"));
        for (cpu, _) in costs.cpus() {
            for event in counted.iter().filter(|event| !LEFT_OUT.contains(event)) {
                assert!(costs.price(cpu, event).unwrap() > 0.0, "{cpu} {event}");
            }
        }
    }
}
