use super::*;
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec;
use core::cell::{Cell, RefCell};
use kyozon_abi::events::EVENT_FAULT;
use kyozon_abi::layer::{
    RepairRequest, RepairWord, MAX_REPAIR_WORDS, REPAIR_CHANGED, REPAIR_DONE, REPAIR_INVALID,
};
use kyozon_monitor::finding::Repair;
use kyozon_monitor::memory::Page;
use kyozon_monitor::profile::Profile;

struct Nothing;

impl KernelMemory for Nothing {
    fn page(&self, _: u64) -> Option<&Page> {
        None
    }
}

/// A system whose clock advances by one per reading and whose layer gives scripted answers.
#[derive(Default)]
struct Fake {
    now: Cell<u64>,
    lines: Vec<(u32, u32, String)>,
    published: Vec<(usize, CheckStatus)>,
    answers: Vec<i64>,
    repaired: Vec<u64>,
}

impl System for Fake {
    fn now(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }
    fn report(&mut self, kind: u32, check: u32, line: &str) {
        self.lines.push((kind, check, line.to_string()));
    }
    fn publish(&mut self, check: usize, status: &CheckStatus) {
        self.published.push((check, *status));
    }
    fn repair(&mut self, request: &RepairRequest) -> i64 {
        self.repaired.push(request.words[0].address);
        self.answers.pop().unwrap_or(REPAIR_DONE)
    }
}

/// The results of a check's next steps; the next one is last.
type Script = Rc<RefCell<Vec<(Vec<Finding>, Step)>>>;

struct Scripted(Script, Rc<Cell<u32>>);

impl Check<Nothing> for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn step(
        &mut self,
        _: &Kernel<'_, Nothing>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _: &mut u64,
    ) -> Step {
        while !budget.spent() {
            self.1.set(self.1.get() + 1);
        }
        let (findings, step) = self.0.borrow_mut().pop().unwrap_or((vec![], Step::Spent));
        findings.into_iter().for_each(found);
        step
    }
}

fn finding(address: u64, words: usize) -> Finding {
    let word = RepairWord { address, expected: 1, value: 2 };
    Finding {
        what: "hidden process".into(),
        address,
        symbol: "evil, pid 7".into(),
        owner: "nobody".into(),
        expected: "in the list".into(),
        found: "not there".into(),
        repairs: vec![Repair { words: vec![word; words] }],
    }
}

struct Bench {
    server: Server<Nothing>,
    script: Script,
    system: Fake,
    profile: Vec<u8>,
}

impl Bench {
    fn new(repairs: bool) -> Self {
        let script = Script::default();
        let mut server = Server::new(repairs);
        server.add(Box::new(Scripted(script.clone(), Rc::default())), 100);
        let profile = kyozon_monitor::profile::build::empty();
        Self { server, script, system: Fake::default(), profile }
    }

    fn tick(&mut self, findings: Vec<Finding>, step: Step) {
        self.script.borrow_mut().push((findings, step));
        let profile = Profile::decode(&self.profile).expect("an empty profile");
        let kernel = Kernel::new(&profile, &Nothing);
        let began = self.system.now();
        self.server.tick(&kernel, &mut self.system, began, 100);
    }

    fn kinds(&self) -> Vec<u32> {
        self.system.lines.iter().map(|line| line.0).collect()
    }
}

#[test]
fn finding_is_reported_once_and_repaired() {
    let mut b = Bench::new(true);
    // Linux holds a lock at first.
    b.system.answers = vec![REPAIR_DONE, REPAIR_CHANGED, REPAIR_CHANGED];
    b.tick(vec![finding(0x100, 2)], Step::Spent);
    assert_eq!(
        b.system.lines,
        [(
            EVENT_FINDING,
            0,
            "hidden process: evil, pid 7 at 0x100: expected in the list, found not there".into()
        )]
    );
    b.tick(vec![finding(0x100, 2)], Step::Spent);
    b.tick(vec![], Step::Spent);
    b.tick(vec![], Step::Done(9));
    assert_eq!(b.kinds(), [EVENT_FINDING, EVENT_REPAIR]);
    assert_eq!(b.system.repaired, [0x100; 3]);
    let (_, last) = b.system.published.last().expect("something was published");
    assert_eq!((last.passes, last.findings, last.repairs, last.items), (1, 1, 1, 9));
    assert!(last.pass_tsc > 0 && last.pass_tsc == last.total_tsc && last.last_tsc > 0);
    assert!(!b.kinds().contains(&EVENT_FAULT));
}

#[test]
fn time_of_other_code_is_excluded() {
    let mut b = Bench::new(true);
    b.tick(vec![], Step::Spent);
    let took = b.server.entries[0].status.total_tsc;
    b.server.exclude_time_away(30);
    assert_eq!(b.server.entries[0].status.total_tsc, took - 30);
    b.server.exclude_time_away(u64::MAX);
    b.server.exclude_time_away(u64::MAX);
    assert_eq!(b.server.entries[0].status.total_tsc, 0);
    b.tick(vec![], Step::Done(1));
    assert_eq!(b.system.published[0].1.total_tsc, b.server.entries[0].last_step_tsc);
}

#[test]
fn report_only_repairs_nothing() {
    let mut b = Bench::new(false);
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    b.tick(vec![finding(0x100, 1)], Step::Done(1));
    assert_eq!(b.kinds(), [EVENT_FINDING]);
    assert!(b.system.repaired.is_empty());
}

#[test]
fn failed_repair_is_noted_once() {
    let mut b = Bench::new(true);
    b.system.answers = vec![REPAIR_INVALID];
    b.tick(
        vec![
            finding(0x100, 1),
            finding(0x200, MAX_REPAIR_WORDS + 1),
            Finding { repairs: vec![], ..finding(0x300, 1) },
        ],
        Step::Spent,
    );
    for _ in 0..5 {
        b.tick(vec![], Step::Spent);
    }
    assert_eq!(b.kinds(), [EVENT_FINDING, EVENT_FINDING, EVENT_FINDING, 1, 1, 1]);
    assert_eq!(b.system.repaired, [0x100]);
}

#[test]
fn tries_end_until_the_next_confirmation() {
    let mut b = Bench::new(true);
    b.system.answers = vec![REPAIR_CHANGED; 1000];
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    for _ in 0..500 {
        b.tick(vec![], Step::Spent);
    }
    let tries = b.system.repaired.len();
    assert!((50..200).contains(&tries), "{tries}");
    b.system.answers.clear();
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    b.tick(vec![], Step::Spent);
    assert_eq!(b.kinds(), [EVENT_FINDING, EVENT_REPAIR]);
}

#[test]
fn many_findings_take_bounded_memory_and_time() {
    let mut b = Bench::new(true);
    let flood = (1..=200).map(|n| finding(n * 0x100, 1)).collect();
    b.tick(flood, Step::Spent);
    assert!(b.system.repaired.len() <= REPAIRS_PER_TICK);
    assert_eq!(b.system.lines.iter().filter(|line| line.0 == EVENT_FINDING).count(), 200);
    for _ in 0..100 {
        b.tick(vec![], Step::Spent);
    }
    assert_eq!(b.system.repaired.len(), MAX_CASES);
}

#[test]
fn each_check_keeps_to_its_share() {
    let mut server = Server::new(true);
    let (first, second) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    server.add(Box::new(Scripted(Script::default(), first.clone())), 25);
    server.add(Box::new(Scripted(Script::default(), second.clone())), 75);
    let bytes = kyozon_monitor::profile::build::empty();
    let profile = Profile::decode(&bytes).expect("an empty profile");
    let kernel = Kernel::new(&profile, &Nothing);
    server.tick(&kernel, &mut Fake::default(), 0, 1000);
    assert!((200..=250).contains(&first.get()), "{}", first.get());
    assert!((700..=750).contains(&second.get()), "{}", second.get());
}

#[test]
fn long_lines_are_cut_at_a_character() {
    let mut system = Fake::default();
    report(&mut system, EVENT_NOTE, 0, &"ü".repeat(200));
    assert_eq!(system.lines[0].2.len(), 256);
    report(&mut system, EVENT_NOTE, 0, &("x".to_string() + &"ü".repeat(200)));
    assert_eq!(system.lines[1].2.len(), 255);
}
