//! Assembles system calls from the blocks that ran: from the software interrupt to the instruction behind it.

use crate::code::Event;
use crate::trip::{describe, Block, Cost};
use std::collections::BTreeMap;

/// Assembles calls. One during which another task calls is left out.
#[derive(Debug, Default)]
pub struct Calls {
    /// Address behind the software interrupt, and the cost since then.
    open: Option<(u64, Cost)>,
    /// Number of calls of each kind.
    calls: BTreeMap<Cost, u64>,
}

impl Calls {
    /// Records that `block` begins.
    pub fn block(&mut self, block: &Block) {
        if let Some((to, mut cost)) = self.open.take() {
            if block.start == to {
                // The last IRET led to a task.
                let back = u32::from(cost.events[Event::Iret as usize] > 0);
                cost.events[Event::Iret as usize] -= back;
                cost.events[Event::IretUser as usize] += back;
                *self.calls.entry(cost).or_default() += 1;
            } else {
                cost.add(block);
                self.open = Some((to, cost));
            }
        }
        if block.events[Event::IntGate as usize] > 0 && block.transfers {
            let mut cost = Cost { instructions: 1, ..Cost::default() };
            cost.events[Event::IntGate as usize] = 1;
            self.open = Some((block.end, cost));
        }
    }

    /// Records a load or store; `mmio` if it was outside RAM.
    pub fn access(&mut self, mmio: bool) {
        if let (true, Some((_, cost))) = (mmio, &mut self.open) {
            cost.events[Event::Mmio as usize] += 1;
        }
    }

    /// One line for each kind of call: `COUNT call INSTRUCTIONS EVENT=N ...`.
    pub fn report(&self) -> String {
        self.calls
            .iter()
            .map(|(cost, count)| format!("{count}{}\n", describe("call", cost)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, instructions: u32, event: Option<Event>) -> Block {
        let end = start + u64::from(instructions);
        let transfers = event.is_some();
        let mut block =
            Block { start, last: end - 1, end, instructions, transfers, ..Block::default() };
        event.into_iter().for_each(|event| block.events[event as usize] = 1);
        block
    }

    #[test]
    fn calls_end_where_their_caller_goes_on() {
        let mut calls = Calls::default();
        for _ in 0..2 {
            calls.block(&block(0x1000, 5, Some(Event::IntGate)));
            calls.block(&block(0x9000, 20, None));
            calls.access(true);
            calls.block(&block(0x9020, 3, Some(Event::Iret)));
            calls.block(&block(0x1005, 4, None));
            calls.access(true);
        }
        calls.block(&block(0x2000, 5, Some(Event::IntGate))); // it does not come back
        calls.block(&block(0x9000, 8, None));
        calls.block(&block(0x1000, 5, Some(Event::IntGate)));
        calls.block(&block(0x9000, 7, Some(Event::Iret)));
        calls.block(&block(0x1005, 1, Some(Event::IntGate)));
        let text = "1 call 8 iretq_user=1 int_gate=1\n2 call 24 iretq_user=1 int_gate=1 mmio=1\n";
        assert_eq!(calls.report(), text);
    }
}
