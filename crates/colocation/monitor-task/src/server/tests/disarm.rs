use super::*;
use crate::disarm::{MAX_JOBS, MAX_ROUNDS};
use kyozon_monitor::disarm::{Culprit, Left, Plan, Removal};

/// A check whose passes take one step each, and whose plans have as many hooks as the script says.
#[derive(Clone, Default)]
struct Planner {
    /// Hooks of each plan; the next one is last.
    hooks: Rc<RefCell<Vec<usize>>>,
    asked: Rc<RefCell<Vec<u64>>>,
    plans: Rc<RefCell<Vec<Plan>>>,
    /// Maximum number of plans that wait.
    room: Rc<Cell<usize>>,
    /// The name of the module that is there.
    name: Rc<Cell<u64>>,
    findings: Rc<RefCell<Vec<Finding>>>,
}

impl Check<Nothing> for Planner {
    fn about(&self) -> &'static About {
        &WHOLE
    }
    fn stands(&self, _: &str, _: u64) -> bool {
        true
    }
    fn culprit(&self, _: &Kernel<'_, Nothing>, address: u64) -> Option<Culprit> {
        let (start, name) = (address & !0xfff, self.name.get());
        (start != OWN).then_some(Culprit { start, address, name, code: name })
    }
    fn disarm(&mut self, culprit: Culprit) -> bool {
        if self.plans.borrow().len() == self.room.get() {
            return false;
        }
        self.asked.borrow_mut().push(culprit.address);
        let removal = |number| Removal {
            hook: format!("hook {number}"),
            repair: Repair {
                words: vec![RepairWord { address: 8 * number, expected: 1, value: 2 }],
                links: None,
            },
        };
        let count = self.hooks.borrow_mut().pop().unwrap_or(0) as u64;
        self.plans.borrow_mut().push(Plan {
            culprit,
            owner: "module evil".into(),
            removals: (1..=count).map(removal).collect(),
            left: vec![Left { hook: "thread".into(), why: "it runs" }],
            omitted: 0,
        });
        true
    }
    fn plan(&mut self) -> Option<Plan> {
        self.plans.borrow_mut().pop()
    }
    fn step(
        &mut self,
        _: &Kernel<'_, Nothing>,
        _: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _: &mut u64,
    ) -> Step {
        self.findings.borrow_mut().drain(..).for_each(found);
        Step::Done(1)
    }
}

/// Where the cokernel's own module is.
const OWN: u64 = 0x50_0000;

fn blamed(address: u64, culprit: u64) -> Finding {
    let what = "sensitive function hooked".into();
    Finding { what, address, culprit, ..Finding::new(Class::HookSensitive) }
}

struct Disarm {
    bench: Bench,
    planner: Planner,
}

impl Disarm {
    fn new(action: Action, hooks: &[usize]) -> Self {
        let mut policy = Policy::REPORT;
        policy.set(Class::HookSensitive, action).expect("an action of the class");
        let mut bench = Bench::with(policy);
        let planner = Planner { room: Rc::new(Cell::new(usize::MAX)), ..Planner::default() };
        planner.hooks.borrow_mut().extend(hooks.iter().rev());
        bench.server.add(Box::new(planner.clone())).expect("room");
        Self { bench, planner }
    }

    /// Some ticks, of which the first one finds `findings`. Returns the lines about hooks.
    fn ticks(&mut self, findings: Vec<Finding>, count: usize) -> Vec<String> {
        self.planner.findings.borrow_mut().extend(findings);
        self.bench.system.lines.clear();
        (0..count).for_each(|_| self.bench.tick(vec![], Step::Spent));
        let lines = self.bench.system.lines.iter().map(|line| &line.2);
        let lines = lines.filter(|line| line.contains("module evil") || line.contains("disarmed"));
        lines.cloned().collect()
    }
}

#[test]
fn the_hooks_of_a_blamed_module_are_taken_out_and_looked_for_again() {
    let mut d = Disarm::new(Action::Disarm, &[6, 0]);
    // Two findings about the same module.
    let lines = d.ticks(vec![blamed(0x100, 0x5010), blamed(0x200, 0x5020)], 10);
    let mut expected = vec![String::from("module evil: left: thread: it runs")];
    expected.extend((1..=6).map(|number| format!("module evil: taken out: hook {number}")));
    expected.push("module evil: disarmed: 6 hooks taken out, 1 left".into());
    assert_eq!(lines, expected);
    assert_eq!(d.bench.system.repaired, [8, 16, 24, 32, 40, 48]);
    assert_eq!(*d.planner.asked.borrow(), [0x5010, 0x5010], "one plan, and one to verify it");
    let about = Class::event_code(Some(Class::HookSensitive), 1);
    let lines = &d.bench.system.lines;
    assert!(lines.iter().filter(|it| it.2.contains("taken")).all(|it| it.1 == about));
    let status = d.bench.system.published.iter().rfind(|(number, _)| *number == 1);
    assert_eq!(status.map(|(_, status)| status.repairs), Some(6));
    let notes = d.bench.system.lines.iter().filter(|line| line.2.contains("not repaired"));
    assert_eq!(notes.count(), 0);
    // The same findings again are no news, others are.
    assert_eq!(d.ticks(vec![blamed(0x100, 0x5010)], 5), [""; 0]);
    let lines = d.ticks(vec![blamed(0x300, 0x5030)], 5);
    let expected = [
        "module evil: left: thread: it runs",
        "module evil: not disarmed: none of its 1 hooks can be taken out",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn other_policies_take_no_hook_out() {
    for action in [Action::Report, Action::Restart] {
        let mut d = Disarm::new(action, &[6]);
        assert_eq!(d.ticks(vec![blamed(0x100, 0x5010)], 5), [""; 0]);
        assert!(d.planner.asked.borrow().is_empty());
    }
    // A finding that blames the cokernel's own module.
    let mut d = Disarm::new(Action::Disarm, &[6]);
    let note = "0x500010: not disarmed: nothing is there, or the cokernel's own module";
    assert_eq!(d.ticks(vec![blamed(0x100, OWN + 0x10)], 5), [note]);
    assert!(d.planner.asked.borrow().is_empty());
    // A finding that blames nobody.
    let mut d = Disarm::new(Action::Disarm, &[6]);
    assert_eq!(d.ticks(vec![blamed(0x100, 0)], 5), [""; 0]);
}

#[test]
fn a_module_that_puts_its_hooks_back_is_reported_and_left() {
    let mut d = Disarm::new(Action::Disarm, &[1; 20]);
    let lines = d.ticks(vec![blamed(0x100, 0x5010)], 40);
    assert_eq!(lines.len(), 1 + MAX_ROUNDS as usize + 1, "{lines:?}");
    assert_eq!(
        lines.last().expect("a last line"),
        "module evil: 1 hooks are there again after 8 rounds, and are left"
    );
    // Nor does another finding about it bring more.
    assert_eq!(d.ticks(vec![blamed(0x200, 0x5010)], 10), [""; 0]);
    assert_eq!(d.bench.system.repaired.len(), MAX_ROUNDS as usize);
    // Another module comes to its place.
    d.planner.name.set(7);
    assert_eq!(d.ticks(vec![blamed(0x300, 0x5010)], 40).len(), 1 + MAX_ROUNDS as usize + 1);
}

#[test]
fn a_hook_that_changed_or_cannot_be_taken_out_is_named() {
    let mut d = Disarm::new(Action::Disarm, &[3, 1, 0]);
    // Answers in reverse: busy twice, then done; changed; rejected; and all is well in the second round.
    d.bench.system.answers =
        vec![REPAIR_DONE, REPAIR_INVALID, REPAIR_CHANGED, REPAIR_DONE, REPAIR_BUSY, REPAIR_BUSY];
    let lines = d.ticks(vec![blamed(0x100, 0x5010)], 30);
    let expected = [
        "module evil: left: thread: it runs",
        "module evil: taken out: hook 1",
        "module evil: changed meanwhile: hook 2",
        "module evil: not taken out: hook 3: the layer rejected the step",
        "module evil: taken out: hook 1",
        "module evil: disarmed: 2 hooks taken out, 1 left",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn hooks_are_left_if_linux_does_not_stand_still() {
    let mut d = Disarm::new(Action::Disarm, &[9]);
    d.bench.system.answers = vec![REPAIR_BUSY; 1000];
    let lines = d.ticks(vec![blamed(0x100, 0x5010)], 8 * 200);
    let last = "module evil: 9 hooks are left: Linux does not stand still";
    assert_eq!(lines, ["module evil: left: thread: it runs", last]);
    assert_eq!(d.bench.system.repaired, [8; 101]);
}

#[test]
fn modules_whose_plans_have_to_wait_are_disarmed_later() {
    let mut d = Disarm::new(Action::Disarm, &[]);
    d.planner.room.set(3);
    let findings = (1..=10).map(|number| blamed(number, 0x1000 * number)).collect();
    let lines = d.ticks(findings, 60);
    let ended = lines.iter().filter(|line| line.contains("not disarmed: none of its 1 hooks"));
    assert_eq!(ended.count(), 10, "{lines:?}");
}

#[test]
fn the_number_of_modules_and_of_lines_is_bounded() {
    let mut d = Disarm::new(Action::Disarm, &[200, 0]);
    assert_eq!(d.ticks(vec![blamed(0x100, 0x5010)], 80).len(), 48 + 1);
    let mut d = Disarm::new(Action::Disarm, &[]);
    let count = MAX_JOBS as u64 + 1;
    let findings = (1..=count).map(|number| blamed(number, 0x1000 * number)).collect();
    let lines = d.ticks(findings, 1);
    assert_eq!(lines, ["too many modules are being disarmed: this one is left"]);
}
