mod disarm;

use super::*;
use crate::table::MAX_OPEN;
use crate::watch::MAX_WATCHED;
use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use core::cell::{Cell, RefCell};
use core::sync::atomic::AtomicU64;
use kyozon_abi::events::EVENT_FAULT;
use kyozon_abi::layer::{
    RepairRequest, RepairWord, Write, Writes, MAX_REPAIR_WORDS, REPAIR_BUSY, REPAIR_CHANGED,
    REPAIR_DONE, REPAIR_INVALID,
};
use kyozon_monitor::check::About;
use kyozon_monitor::class::Class;
use kyozon_monitor::finding::{Links, MarkedWord, Marking, Repair, Verdict};
use kyozon_monitor::memory::Page;
use kyozon_monitor::profile::Profile;

/// Linux's memory: a page of zeros that ends with a one.
struct Nothing;

impl KernelMemory for Nothing {
    fn page(&self, physical: u64) -> Option<&Page> {
        static FIRST: Page = {
            let mut words = [const { AtomicU64::new(0) }; 512];
            words[511] = AtomicU64::new(1);
            words
        };
        (physical == 0).then_some(&FIRST)
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
    beats: Vec<MonitorStatus>,
    restarts: u32,
    /// Those without the crash kernel.
    resets: u32,
    watched: Vec<Watched>,
    sees_writes: bool,
    writes: Vec<Write>,
    lost: u64,
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
    fn publish_monitor(&mut self, status: &MonitorStatus) {
        self.beats.push(*status);
    }
    fn repair(&mut self, request: &RepairRequest) -> i64 {
        self.repaired.push(request.words[0].address);
        self.answers.pop().unwrap_or(REPAIR_DONE)
    }
    fn watch(&mut self, watched: &Watched) -> bool {
        self.watched.push(watched.clone());
        self.sees_writes
    }
    fn writes(&mut self) -> Writes {
        let mut writes = Writes::NONE;
        let count = self.writes.len().min(MAX_WRITES);
        for (to, from) in writes.writes.iter_mut().zip(self.writes.drain(..count)) {
            *to = from;
        }
        (writes.count, writes.lost) = (count as u64, self.lost);
        writes
    }
    fn restart(&mut self, uses_crash_kernel: bool) {
        self.restarts += 1;
        self.resets += u32::from(!uses_crash_kernel);
    }
}

/// Addresses of which the check says that its finding stands.
type Standing = Rc<RefCell<Vec<u64>>>;
/// The results of a check's next steps; the next one is last.
type Script = Rc<RefCell<Vec<(Vec<Finding>, Step)>>>;

/// What the check sees at the links of repairs.
type Verdicts = Rc<RefCell<Verdict>>;

struct Scripted(Script, Rc<Cell<u32>>, Standing, Verdicts, &'static About);

impl Scripted {
    fn new(script: Script, steps: Rc<Cell<u32>>, standing: Standing) -> Self {
        Self(script, steps, standing, Rc::new(RefCell::new(Verdict::Consistent)), &WHOLE)
    }

    fn about(self, about: &'static About) -> Self {
        let Self(script, steps, standing, verdicts, _) = self;
        Self(script, steps, standing, verdicts, about)
    }
}

/// What a check of these tests declares, with this share.
const fn about(share: u64, repairs: Repairs) -> About {
    About { name: "scripted", wants: &[], share, pass_ms: 0, repairs }
}

static WHOLE: About = about(100, Repairs::Always);
static QUARTER: About = about(25, Repairs::Always);
static REST: About = about(75, Repairs::Always);
static LIMITED: About = About { pass_ms: 100, ..about(10, Repairs::Always) };
static NOTHING: About = about(0, Repairs::Always);
static CAREFUL: About = about(0, Repairs::OnIntactCode);

impl Check<Nothing> for Scripted {
    fn about(&self) -> &'static About {
        self.4
    }
    fn stands(&self, _: &str, address: u64) -> bool {
        self.2.borrow().contains(&address)
    }
    fn forget(&mut self, address: u64) {
        self.2.borrow_mut().retain(|known| *known != address);
    }
    fn verify(&self, _: &Kernel<'_, Nothing>, _: &Links) -> Verdict {
        self.3.borrow().clone()
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

fn links(address: u64) -> Links {
    Links { object: address, node: address + 8, ..Links::default() }
}

fn finding(address: u64, words: usize) -> Finding {
    let word = RepairWord { address, expected: 1, value: 2 };
    Finding {
        what: "hidden process".into(),
        address,
        symbol: "evil, pid 7".into(),
        expected: "in the list".into(),
        found: "not there".into(),
        repairs: vec![Repair { words: vec![word; words], links: Some(links(address)) }],
        ..Finding::new(Class::ProcessHidden)
    }
}

fn add(server: &mut Server<'static, Nothing>, check: Scripted) {
    server.add(Box::new(check)).expect("room for another check");
}

struct Bench {
    server: Server<'static, Nothing>,
    script: Script,
    standing: Standing,
    verdicts: Verdicts,
    system: Fake,
    profile: Vec<u8>,
}

impl Bench {
    fn new(repairs: bool) -> Self {
        Self::with(if repairs { Policy::default() } else { Policy::REPORT })
    }

    fn with(policy: Policy) -> Self {
        let (script, standing) = (Script::default(), Standing::default());
        let mut server = Server::new(policy, 1, &[]);
        let check = Scripted::new(script.clone(), Rc::default(), standing.clone());
        let verdicts = check.3.clone();
        add(&mut server, check);
        let profile = kyozon_monitor::profile::build::empty();
        Self { server, script, standing, verdicts, system: Fake::default(), profile }
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
fn tasks_are_not_put_back_while_changed_code_is_open() {
    let mut b = Bench::new(true);
    let tasks = Script::default();
    let check = Scripted::new(tasks.clone(), Rc::default(), Standing::default());
    add(&mut b.server, check.about(&CAREFUL));
    b.system.answers = vec![REPAIR_DONE, REPAIR_DONE, REPAIR_CHANGED, REPAIR_CHANGED];
    tasks.borrow_mut().push((vec![finding(0x200, 1)], Step::Spent));
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    for _ in 0..5 {
        b.tick(vec![], Step::Spent);
    }
    // The code first, when the layer has accepted it; then the task.
    assert_eq!(b.system.repaired, [0x100, 0x100, 0x100, 0x200]);
    let notes = b.system.lines.iter().filter(|line| line.2.contains("changed code is open"));
    assert_eq!(notes.count(), 1);
}

#[test]
fn finding_is_reported_once_and_repaired() {
    let mut b = Bench::new(true);
    // Linux holds a lock at first.
    b.system.answers = vec![REPAIR_DONE, REPAIR_CHANGED, REPAIR_CHANGED];
    b.standing.borrow_mut().push(0x100);
    b.tick(vec![finding(0x100, 2)], Step::Spent);
    assert_eq!(
        b.system.lines,
        [(
            EVENT_FINDING,
            Class::event_code(Some(Class::ProcessHidden), 0),
            "hidden process: evil, pid 7 at 0x100: expected in the list, found not there".into()
        )]
    );
    b.tick(vec![finding(0x100, 2)], Step::Spent);
    b.tick(vec![], Step::Spent);
    b.tick(vec![], Step::Done(9));
    assert_eq!(b.kinds(), [EVENT_FINDING, EVENT_REPAIR, EVENT_NOTE, EVENT_NOTE]);
    assert_eq!(b.system.repaired, [0x100; 3]);
    assert!(b.standing.borrow().is_empty(), "the check still counts it as reported");
    let (_, last) = b.system.published.last().expect("something was published");
    assert_eq!((last.passes, last.findings, last.repairs, last.items), (1, 1, 1, 9));
    assert!(last.pass_tsc > 0 && last.pass_tsc == last.total_tsc && last.last_tsc > 0);
    assert!(!b.kinds().contains(&EVENT_FAULT));
}

#[test]
fn watching_is_announced_after_every_first_pass() {
    let mut b = Bench::new(true);
    let slow = Script::default();
    let check = Scripted::new(slow.clone(), Rc::default(), Standing::default());
    add(&mut b.server, check.about(&NOTHING));
    let lines = |b: &Bench| -> Vec<String> { b.system.lines.iter().map(|l| l.2.clone()).collect() };
    b.tick(vec![], Step::Spent);
    assert_eq!(lines(&b), [""; 0]);
    b.tick(vec![], Step::Done(1));
    assert_eq!(lines(&b), ["learning: scripted 100 %"], "the second check still learns");
    slow.borrow_mut().push((vec![], Step::Done(1)));
    b.tick(vec![], Step::Spent);
    assert_eq!(lines(&b)[1..], ["learning: scripted 100 %", "monitoring Linux none"]);
    for check in 0..2 {
        let last = b.system.published.iter().rfind(|(number, _)| *number == check);
        assert_eq!(last.map(|(_, status)| status.learned), Some(100));
    }
    slow.borrow_mut().push((vec![], Step::Done(1)));
    b.tick(vec![], Step::Done(1));
    assert_eq!(lines(&b).len(), 3, "announced once");
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
    assert_eq!(b.kinds(), [EVENT_FINDING, EVENT_NOTE, EVENT_NOTE]);
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
fn checks_have_most_ticks_while_linux_does_not_stand_still() {
    let mut b = Bench::new(true);
    b.system.answers = vec![REPAIR_BUSY; 1000];
    b.tick(vec![finding(0x100, 1), finding(0x200, 1)], Step::Spent);
    (0..80).for_each(|_| b.tick(vec![], Step::Spent));
    assert_eq!(b.system.repaired.len(), 10);
}

#[test]
fn many_findings_take_bounded_memory_and_time() {
    let mut b = Bench::new(true);
    let count = 2 * MAX_OPEN as u64;
    let flood = (1..=count).map(|n| finding(n * 0x100, 1)).collect();
    b.tick(flood, Step::Spent);
    assert!(b.system.repaired.len() <= REPAIRS_PER_TICK);
    let reported = b.system.lines.iter().filter(|line| line.0 == EVENT_FINDING).count();
    assert_eq!(reported as u64, count);
    let status = b.system.published.last().expect("a status").1;
    assert_eq!((status.open, status.unlisted), (MAX_OPEN as u64, MAX_OPEN as u64));
    for _ in 0..MAX_OPEN {
        b.tick(vec![], Step::Spent);
    }
    assert_eq!(b.system.repaired.len(), MAX_OPEN);
}

/// The lines of kind `kind`.
fn lines(b: &Bench, kind: u32) -> Vec<&str> {
    b.system.lines.iter().filter(|line| line.0 == kind).map(|line| line.2.as_str()).collect()
}

#[test]
fn another_object_at_the_same_address_is_another_finding() {
    for repairs in [false, true] {
        let mut b = Bench::new(repairs);
        let second = || Finding { symbol: "worse, pid 8".into(), ..finding(0x100, 0) };
        b.standing.borrow_mut().push(0x100);
        b.tick(vec![Finding { repairs: vec![], ..finding(0x100, 0) }], Step::Done(1));
        b.tick(vec![Finding { repairs: vec![], ..second() }], Step::Done(1));
        b.tick(vec![Finding { repairs: vec![], ..second() }], Step::Done(1));
        let found = lines(&b, EVENT_FINDING);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("hidden process: worse, pid 8 at 0x100"));
    }
}

#[test]
fn another_value_of_an_open_finding_is_news() {
    let mut b = Bench::new(true);
    b.standing.borrow_mut().push(0x100);
    let redirected = |found: &str| Finding {
        found: found.into(),
        repairs: vec![],
        class: Class::ProgramRedirected,
        ..finding(0x100, 0)
    };
    for path in ["/tmp/a", "/tmp/a", "/tmp/b", "/tmp/b", "/tmp/a"] {
        b.tick(vec![redirected(path)], Step::Done(1));
    }
    let found = lines(&b, EVENT_FINDING);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].ends_with("found /tmp/b"));
    // An intruder cannot fill the ring with one finding.
    for number in 0..100 {
        b.tick(vec![redirected(&format!("/tmp/{number}"))], Step::Done(1));
    }
    assert_eq!(lines(&b, EVENT_FINDING).len(), 16);
    assert_eq!(b.server.entries[0].open.count(), 1);
    // Of other classes, a value can change by itself.
    let mut b = Bench::new(true);
    for found in ["in one list", "in another"] {
        b.tick(vec![Finding { found: found.into(), ..finding(0x100, 17) }], Step::Done(1));
    }
    assert_eq!(lines(&b, EVENT_FINDING).len(), 1);
}

#[test]
fn findings_that_cannot_be_repaired_stay_open() {
    let mut b = Bench::new(true);
    let evil = || Finding { repairs: vec![], ..finding(0x100, 0) };
    b.standing.borrow_mut().push(0x100);
    for _ in 0..10 {
        b.tick(vec![evil()], Step::Done(1));
        b.tick(vec![], Step::Done(1));
    }
    assert_eq!(lines(&b, EVENT_FINDING).len(), 1);
    assert_eq!(b.system.published.last().expect("a status").1.open, 1);
    // It ends when the check no longer sees it, and is new after that.
    b.standing.borrow_mut().clear();
    b.tick(vec![], Step::Done(1));
    b.tick(vec![], Step::Done(1));
    assert_eq!(b.system.published.last().expect("a status").1.open, 0);
    assert_eq!(lines(&b, EVENT_NOTE).last(), Some(&"hidden process: evil, pid 7: gone"));
    b.tick(vec![evil()], Step::Done(1));
    assert_eq!(lines(&b, EVENT_FINDING).len(), 2);
}

#[test]
fn open_findings_survive_decoys() {
    let mut b = Bench::new(false);
    b.standing.borrow_mut().extend((1..=300).map(|n| n * 0x100));
    b.tick(vec![finding(0x100, 1)], Step::Done(1));
    b.tick((2..=300).map(|n| finding(n * 0x100, 1)).collect(), Step::Done(1));
    assert_eq!(b.system.published.last().expect("a status").1.open, 300);
    // Its line is not among the last 256 any more. With the next heartbeats it is reported again.
    b.server.beat(&mut b.system, &MonitorStatus::default());
    let tail = &b.system.lines[b.system.lines.len() - 256..];
    let wanted = "still open: hidden process: evil, pid 7 at 0x100: ";
    assert!(tail.iter().any(|line| line.2.starts_with(wanted)));
    for _ in 0..1000 {
        b.server.beat(&mut b.system, &MonitorStatus::default());
    }
    let tail = &b.system.lines[b.system.lines.len() - 256..];
    assert!(tail.iter().any(|line| line.2.starts_with(wanted)), "again and again");
}

#[test]
fn open_findings_survive_a_restart() {
    let kept: Vec<AtomicU64> = (0..512).map(|_| AtomicU64::new(0)).collect();
    let kept: &'static [AtomicU64] = kept.leak();
    let start = |repairs| {
        let mut b = Bench::new(repairs);
        b.server = Server::new(if repairs { Policy::default() } else { Policy::REPORT }, 1, kept);
        let check = Scripted::new(b.script.clone(), Rc::default(), b.standing.clone());
        add(&mut b.server, check);
        b.server.start(&mut b.system);
        b
    };
    let mut b = start(false);
    b.tick(vec![finding(0x100, 1), finding(0x200, 1)], Step::Spent);
    let mut b = start(true);
    assert_eq!(
        lines(&b, EVENT_NOTE)[0],
        "open before the restart: hidden process: evil, pid 7 at 0x100: expected in the list, \
         found not there"
    );
    for _ in 0..5 {
        b.tick(vec![], Step::Done(1));
    }
    assert_eq!(b.system.published.last().expect("a status").1.open, 2, "not seen is not gone");
    b.tick(vec![finding(0x100, 1)], Step::Done(1));
    b.tick(vec![], Step::Done(1));
    assert_eq!(lines(&b, EVENT_FINDING), [""; 0], "it is known");
    assert_eq!(lines(&b, EVENT_REPAIR).len(), 1);
    assert_eq!(start(true).system.published.last().expect("a status").1.open, 1);
}

/// The kept line is shorter than the reported one.
#[test]
fn a_long_line_is_no_news_after_a_restart() {
    let kept: Vec<AtomicU64> = (0..512).map(|_| AtomicU64::new(0)).collect();
    let kept: &'static [AtomicU64] = kept.leak();
    let start = || {
        let mut b = Bench::new(false);
        b.server = Server::new(Policy::REPORT, 1, kept);
        let check = Scripted::new(b.script.clone(), Rc::default(), b.standing.clone());
        add(&mut b.server, check);
        b.server.start(&mut b.system);
        b
    };
    let redirected = |end: &str| Finding {
        found: format!("/tmp/{}{end}", "x".repeat(250)),
        class: Class::ProgramRedirected,
        ..finding(0x100, 0)
    };
    start().tick(vec![redirected("a")], Step::Spent);
    let mut b = start();
    b.tick(vec![redirected("a")], Step::Done(1));
    assert_eq!(lines(&b, EVENT_FINDING), [""; 0]);
    b.tick(vec![redirected("b")], Step::Done(1));
    assert_eq!(lines(&b, EVENT_FINDING).len(), 1);
}

#[test]
fn a_heartbeat_has_the_servers_counts() {
    let mut b = Bench::new(true);
    b.tick(vec![], Step::Spent);
    b.tick(vec![], Step::Done(1));
    b.server.beat(&mut b.system, &MonitorStatus { restarts: 3, ..MonitorStatus::default() });
    let beat = b.system.beats[0];
    assert_eq!((beat.slices, beat.full_slices, beat.restarts), (2, 1, 3));
    assert!(beat.beat_tsc > 0);
    let status = b.system.published.last().expect("a status").1;
    assert!(status.wall_tsc >= status.pass_tsc && status.pass_tsc > 0);
}

#[test]
fn each_check_keeps_to_its_share() {
    let mut server = Server::new(Policy::default(), 1, &[]);
    let (first, second) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let check = |steps: &Rc<Cell<u32>>, about| {
        Scripted::new(Script::default(), steps.clone(), Standing::default()).about(about)
    };
    add(&mut server, check(&first, &QUARTER));
    add(&mut server, check(&second, &REST));
    let bytes = kyozon_monitor::profile::build::empty();
    let profile = Profile::decode(&bytes).expect("an empty profile");
    let kernel = Kernel::new(&profile, &Nothing);
    server.tick(&kernel, &mut Fake::default(), 0, 1000);
    assert!((200..=250).contains(&first.get()), "{}", first.get());
    assert!((700..=750).contains(&second.get()), "{}", second.get());
}

#[test]
fn a_check_whose_passes_take_too_long_gets_more() {
    // Time of a pass of each of two checks, and the percentage that the first one gets: with its limit, a pass has
    // 100 of 1000 in each period for each per cent.
    for (first_pass, second_pass, share) in [
        (0, 0, 10),
        (5, 0, 10),
        (300, 0, 30),
        (300, 600, 30),
        (600, 1200, 30),
        (300, 1_000_000, 10),
    ] {
        let mut server = Server::new(Policy::default(), 10, &[]);
        let steps = Rc::new(Cell::new(0));
        let check = |steps: &Rc<Cell<u32>>| {
            Scripted::new(Script::default(), steps.clone(), Standing::default()).about(&LIMITED)
        };
        add(&mut server, check(&steps));
        add(&mut server, check(&Rc::default()));
        let bytes = kyozon_monitor::profile::build::empty();
        let profile = Profile::decode(&bytes).expect("an empty profile");
        let kernel = Kernel::new(&profile, &Nothing);
        server.tick(&kernel, &mut Fake::default(), 0u64.wrapping_sub(1000), 0);
        server.entries[0].status.pass_tsc = first_pass;
        server.entries[1].status.pass_tsc = second_pass;
        let pace = Pace { slice: 1000, period: 1000, tsc_khz: 10 };
        let needs = server.entries.iter().map(|entry| entry.need(&pace)).sum();
        assert_eq!(server.entries[0].share(&pace, needs), share, "{first_pass} {second_pass}");
        steps.set(0);
        server.tick(&kernel, &mut Fake::default(), 0, 1000);
        let expected = share as u32 * 10 - 50..=share as u32 * 10;
        assert!(expected.contains(&steps.get()), "{first_pass} {second_pass}: {}", steps.get());
    }
    let huge = Pace { slice: 0, period: u64::MAX, tsc_khz: u64::MAX };
    let mut server = Server::new(Policy::default(), 1, &[]);
    add(
        &mut server,
        Scripted::new(Script::default(), Rc::default(), Standing::default()).about(&LIMITED),
    );
    server.entries[0].status.pass_tsc = u64::MAX;
    assert_eq!(server.entries[0].share(&huge, u64::MAX), 10);
}

#[test]
fn long_lines_are_cut_at_a_character() {
    let (mut system, kept, mut lines) = (Fake::default(), Kept::new(&[]), 0);
    let mut journal = Journal { system: &mut system, kept: &kept, lines: &mut lines };
    journal.report(EVENT_NOTE, 0, &"ü".repeat(200));
    journal.report(EVENT_NOTE, 0, &("x".to_string() + &"ü".repeat(200)));
    journal.report(EVENT_NOTE, 0, "short");
    assert_eq!((system.lines[0].2.len(), system.lines[1].2.len()), (256, 255));
    assert_eq!(lines, 5, "a long line takes two records");
}

/// A bench with a finding that was repaired.
fn repaired() -> Bench {
    let mut b = Bench::new(true);
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    b.tick(vec![], Step::Done(1));
    assert_eq!(b.system.repaired, [0x100]);
    b.system.lines.clear();
    b
}

/// Links that are torn, and the transaction that takes the repair back.
fn torn() -> Verdict {
    let word = RepairWord { address: 0x900, expected: 2, value: 1 };
    Verdict::Torn(Some(Repair { words: vec![word], links: None }))
}

#[test]
fn consistent_repair_stays() {
    let mut b = repaired();
    for verdict in [Verdict::Consistent, Verdict::Unknown, torn(), Verdict::Consistent, torn()] {
        // Two looks do not confirm that links are torn.
        *b.verdicts.borrow_mut() = verdict;
        b.tick(vec![], Step::Done(1));
        b.tick(vec![], Step::Done(1));
    }
    assert_eq!((b.system.repaired.as_slice(), b.system.lines.len()), ([0x100].as_slice(), 0));
}

#[test]
fn torn_repair_is_taken_back_once_and_not_made_again() {
    let mut b = repaired();
    *b.verdicts.borrow_mut() = torn();
    // Linux holds a lock at first.
    b.system.answers = vec![REPAIR_DONE, REPAIR_CHANGED];
    for _ in 0..10 {
        b.tick(vec![], Step::Spent);
    }
    assert_eq!(b.system.repaired, [0x100, 0x900, 0x900]);
    let name = "hidden process: evil, pid 7";
    let twice =
        format!("{name}: links contradict each other after the repair, which is taken back");
    assert_eq!(lines(&b, EVENT_NOTE), [twice.as_str()]);
    // The task is hidden once more, and seen again and again.
    *b.verdicts.borrow_mut() = Verdict::Consistent;
    for _ in 0..10 {
        b.tick(vec![finding(0x100, 1)], Step::Spent);
        b.tick(vec![], Step::Spent);
    }
    assert_eq!(b.system.repaired.len(), 3);
    let held = format!("{name}: not repaired: {TORN}");
    assert_eq!(lines(&b, EVENT_NOTE), [twice, held]);
    assert_eq!(lines(&b, EVENT_FINDING).len(), 1);
    assert_eq!(b.system.published.last().expect("a status").1.open, 1);
    // Another object is repaired, and this one's successor in the same memory, too.
    b.tick(vec![finding(0x200, 1)], Step::Spent);
    b.tick(vec![], Step::Spent);
    assert_eq!(b.system.repaired[3..], [0x200]);
    *b.verdicts.borrow_mut() = Verdict::Unknown;
    (0..1000).for_each(|_| b.tick(vec![], Step::Spent));
    b.tick(vec![Finding { symbol: "heir, pid 8".into(), ..finding(0x100, 1) }], Step::Spent);
    b.tick(vec![], Step::Spent);
    assert_eq!(b.system.repaired[4..], [0x100]);
}

#[test]
fn torn_links_that_were_changed_are_only_reported() {
    for answers in [None, Some(vec![REPAIR_CHANGED; 1000]), Some(vec![REPAIR_INVALID])] {
        let mut b = repaired();
        let verdict = if answers.is_some() { torn() } else { Verdict::Torn(None) };
        *b.verdicts.borrow_mut() = verdict;
        b.system.answers = answers.unwrap_or_default();
        for _ in 0..300 {
            b.tick(vec![finding(0x100, 1)], Step::Spent);
        }
        let notes = lines(&b, EVENT_NOTE);
        assert!(notes[0]
            .ends_with("links contradict each other after the repair, which cannot be taken back"));
        assert!(notes[1].ends_with(TORN) && notes.len() == 2, "{notes:?}");
        assert!(b.system.repaired.len() < 200);
    }
}

#[test]
fn object_that_is_gone_is_not_written() {
    let mut b = repaired();
    *b.verdicts.borrow_mut() = torn();
    b.tick(vec![], Step::Spent);
    b.tick(vec![], Step::Spent);
    *b.verdicts.borrow_mut() = Verdict::Unknown;
    (0..1000).for_each(|_| b.tick(vec![], Step::Spent));
    // It is not looked at any more.
    *b.verdicts.borrow_mut() = torn();
    (0..10).for_each(|_| b.tick(vec![], Step::Spent));
    assert_eq!(b.system.repaired, [0x100]);
    assert!(b.system.lines.is_empty());
}

#[test]
fn many_repairs_are_watched_in_bounded_time() {
    let mut b = Bench::new(true);
    let count = 2 * MAX_WATCHED as u64;
    b.tick((1..=count).map(|n| finding(n * 0x100, 1)).collect(), Step::Spent);
    (0..count).for_each(|_| b.tick(vec![], Step::Spent));
    assert_eq!(b.system.repaired.len(), count as usize);
    *b.verdicts.borrow_mut() = torn();
    (0..count).for_each(|_| b.tick(vec![], Step::Spent));
    let taken_back = b.system.repaired[count as usize..].len();
    assert_eq!(taken_back, MAX_WATCHED);
    // All places are taken by objects that are not repaired again: the next one is repaired, and not watched.
    b.tick(vec![finding(0x10_0000, 1)], Step::Spent);
    (0..count).for_each(|_| b.tick(vec![], Step::Spent));
    assert_eq!(b.system.repaired[count as usize + MAX_WATCHED..], [0x10_0000]);
}

#[test]
fn every_check_runs_or_is_refused_by_name() {
    let mut b = Bench::new(true);
    let check = || {
        let script = Rc::new(RefCell::new(vec![(vec![], Step::Done(1))]));
        Scripted::new(script, Rc::default(), Standing::default()).about(&NOTHING)
    };
    for _ in 1..MAX_CHECKS {
        add(&mut b.server, check());
    }
    assert_eq!(b.server.add(Box::new(check())), Err(NoRoom { name: "scripted" }));
    b.tick(vec![], Step::Done(1));
    let done: BTreeSet<usize> =
        b.system.published.iter().filter(|status| status.1.passes == 1).map(|s| s.0).collect();
    assert_eq!(done, (0..MAX_CHECKS).collect());
}

/// A server that has learned, with `action` for hidden processes.
fn learned(action: Action) -> Bench {
    let mut policy = Policy::default();
    policy.set(Class::ProcessHidden, action).expect("a class with a repair");
    let mut b = Bench::with(policy);
    b.tick(vec![], Step::Done(1));
    b.system.lines.clear();
    b
}

#[test]
fn a_restart_follows_the_report_of_its_cause() {
    let mut b = learned(Action::Restart);
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    assert_eq!(b.kinds(), [EVENT_FINDING, EVENT_RESTART, EVENT_RESTART]);
    assert_eq!(b.system.lines[1].2, "hidden process: evil, pid 7: restarting Linux");
    // This machine does not restart. Nothing is repaired, and it is not tried again.
    b.tick(vec![finding(0x100, 1)], Step::Done(1));
    b.tick(vec![], Step::Done(1));
    assert_eq!((b.system.restarts, b.system.repaired.len()), (1, 0));
}

/// A check that says after these many slices whether what a restart starts is sound.
struct Before(u32, bool);

impl Check<Nothing> for Before {
    fn about(&self) -> &'static About {
        &NOTHING
    }
    fn stands(&self, _: &str, _: u64) -> bool {
        false
    }
    fn is_sound(&mut self, _: &Kernel<'_, Nothing>, _: &mut dyn Budget) -> Option<bool> {
        self.0 -= 1;
        (self.0 == 0).then_some(self.1)
    }
    fn step(
        &mut self,
        _: &Kernel<'_, Nothing>,
        _: &mut dyn Budget,
        _: &mut dyn FnMut(Finding),
        _: &mut u64,
    ) -> Step {
        Step::Done(0)
    }
}

#[test]
fn what_a_restart_starts_is_looked_at_before() {
    for sound in [true, false] {
        let mut b = learned(Action::Restart);
        b.server.add(Box::new(Before(3, sound))).expect("room for another check");
        b.tick(vec![finding(0x100, 1)], Step::Spent);
        b.tick(vec![finding(0x200, 1)], Step::Spent);
        assert_eq!(
            (b.kinds(), b.system.restarts),
            (vec![EVENT_FINDING], 0),
            "nothing but the look"
        );
        b.tick(vec![], Step::Spent);
        assert_eq!((b.system.restarts, b.system.resets), (1, u32::from(!sound)));
        let changed =
            b.system.lines[1].2.ends_with("restarting Linux without its changed crash kernel");
        assert_eq!((b.kinds().len(), changed), (3, !sound));
    }
}

#[test]
fn what_is_allowed_is_nothing_but_sensitive() {
    let mut b = learned(Action::Report);
    b.server.policy.allow("falcon").expect("a module's name");
    b.server.policy.allow("bpf_prog_6deef7357e7b4530_a.b").expect("a program's name");
    let hook =
        |class, owner: &str| Finding { address: 0x200, owner: owner.into(), ..Finding::new(class) };
    b.tick(vec![hook(Class::HookSensitive, "module falcon")], Step::Done(1));
    let program = "bpf bpf_prog_6deef7357e7b4530_a.b";
    b.tick(vec![hook(Class::BpfProgramSensitive, program)], Step::Done(1));
    assert_eq!((b.kinds(), b.server.findings()), (vec![], 0));
    for (class, owner) in [
        (Class::HookSensitive, "module falcon2"),
        (Class::HookSensitive, "falcon"),
        (Class::HookModified, "module falcon"),
        (Class::BpfProgramSensitive, "bpf falcon2"),
        (Class::BpfProgramModified, program),
    ] {
        b.system.lines.clear();
        b.tick(vec![hook(class, owner)], Step::Done(1));
        assert_eq!(b.kinds(), [EVENT_FINDING], "{owner}");
        (0..3).for_each(|_| b.tick(vec![], Step::Done(1)));
    }
}

#[test]
fn a_changed_crash_kernel_is_not_started() {
    let changed = Finding { address: 0x200, ..Finding::new(Class::CrashKernelModified) };
    let mut b = learned(Action::Restart);
    b.standing.borrow_mut().push(0x200);
    b.tick(vec![changed.clone()], Step::Spent);
    assert_eq!(b.system.restarts, 0, "it asks for none itself");
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    let line = "hidden process: evil, pid 7: restarting Linux without its changed crash kernel";
    assert!(b.system.lines.iter().any(|(.., text)| text == line), "{:?}", b.system.lines);
    assert_eq!((b.system.restarts, b.system.resets), (1, 1));
    // Another one was loaded in its place.
    let mut b = learned(Action::Restart);
    b.tick(vec![changed], Step::Spent);
    (0..3).for_each(|_| b.tick(vec![], Step::Done(1)));
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    assert_eq!((b.system.restarts, b.system.resets), (1, 0));
}

#[test]
fn a_crash_kernel_whose_lock_is_held_is_not_asked_to_start() {
    for (address, resets) in [("ffffffff81000ff0", 0), ("ffffffff81000ff8", 1)] {
        let mut b = learned(Action::Restart);
        let symbols = format!("ffffffff81000000 T _text\n{address} b __kexec_lock\n");
        b.profile = kyozon_monitor::profile::build::of_symbols(&symbols);
        b.tick(vec![finding(0x100, 1)], Step::Spent);
        assert_eq!((b.system.restarts, b.system.resets), (1, resets));
        assert_eq!(b.system.lines[1].2.ends_with("__kexec_lock is held"), resets == 1);
    }
}

#[test]
fn what_cannot_be_repaired_restarts_if_the_policy_says_so() {
    for (action, restarts) in
        [(Action::Report, 0), (Action::Repair, 0), (Action::RepairOrRestart, 1)]
    {
        let mut b = learned(action);
        b.tick(vec![Finding { repairs: vec![], ..finding(0x100, 0) }], Step::Spent);
        b.tick(vec![], Step::Spent);
        b.tick(vec![], Step::Spent);
        assert_eq!(b.system.restarts, restarts, "{action:?}");
    }
    let mut b = learned(Action::RepairOrRestart);
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    b.tick(vec![], Step::Spent);
    assert_eq!((b.system.restarts, b.system.repaired.len()), (0, 1));
}

#[test]
fn what_may_come_with_every_boot_does_not_restart() {
    let mut policy = Policy::REPORT;
    policy.set(Class::ProcessHidden, Action::Restart).expect("no repair");
    let mut b = Bench::with(policy);
    b.tick(vec![finding(0x100, 1)], Step::Spent);
    assert_eq!((b.kinds(), b.system.restarts), (vec![EVENT_FINDING, EVENT_RESTART], 0));
    assert!(b.system.lines[1].2.contains("not restarted"));
}

#[test]
fn a_process_is_ended_once_and_open_until_it_is_gone() {
    let mut b = learned(Action::Stop);
    let word = MarkedWord { address: 0x900, mask: 0, expected: 0, set: 0x100 };
    let stop = || vec![Marking { words: vec![word] }];
    let lifted = || Finding {
        class: Class::FilterLifted,
        repairs: vec![],
        stop: stop(),
        ..finding(0x300, 0)
    };
    let unrepaired = || Finding { repairs: vec![], stop: stop(), ..finding(0x200, 0) };
    let spared = || Finding { stop: vec![], ..finding(0x500, 1) };
    let all =
        || vec![Finding { stop: stop(), ..finding(0x100, 1) }, lifted(), unrepaired(), spared()];
    b.server.policy.set(Class::FilterLifted, Action::Stop).expect("it is about processes");
    b.standing.borrow_mut().extend([0x100, 0x200, 0x300, 0x500]);
    b.tick(all(), Step::Done(1));
    for _ in 0..20 {
        b.tick(vec![], Step::Done(1));
    }
    b.tick(vec![lifted()], Step::Done(1));
    // What is hidden is repaired first, or not ended.
    b.system.repaired.sort_unstable();
    assert_eq!(b.system.repaired, [0x100, 0x900, 0x900]);
    let ended = "hidden process: evil, pid 7: SIGKILL is pending";
    assert_eq!(lines(&b, EVENT_REPAIR), [ended; 2]);
    assert_eq!(
        lines(&b, EVENT_NOTE),
        ["hidden process: evil, pid 7: not repaired: the process cannot be ended"; 2]
    );
    assert_eq!(lines(&b, EVENT_FINDING).len(), 4);
    b.standing.borrow_mut().clear();
    b.tick(vec![], Step::Done(1));
    b.tick(vec![], Step::Done(1));
    assert_eq!(b.system.published.last().expect("a status").1.open, 0);
}

#[test]
fn each_thread_of_a_process_gets_its_signal() {
    let marking = |address, expected| Marking {
        words: vec![MarkedWord { address, mask: u64::MAX, expected, set: 0x100 }],
    };
    let lifted = |address, stop| Finding {
        class: Class::FilterLifted,
        repairs: vec![],
        stop,
        ..finding(address, 0)
    };
    let mut b = learned(Action::Stop);
    b.server.policy.set(Class::FilterLifted, Action::Stop).expect("it is about processes");
    b.standing.borrow_mut().extend([0x300, 0x400]);
    // The second thread has ended; of another process, the only one has.
    let threads = vec![marking(0x10, 0), marking(0x20, 7), marking(0x30, 0)];
    b.tick(vec![lifted(0x300, threads), lifted(0x400, vec![marking(0x40, 7)])], Step::Done(1));
    for _ in 0..250 {
        b.tick(vec![], Step::Done(1));
    }
    assert_eq!(b.system.repaired, [0x10, 0x30]);
    assert_eq!(lines(&b, EVENT_REPAIR), ["hidden process: evil, pid 7: SIGKILL is pending"]);
    assert_eq!(
        lines(&b, EVENT_NOTE),
        ["hidden process: evil, pid 7: not repaired: the process has ended, or keeps its signals locked"]
    );
}

#[test]
fn only_a_class_with_repairs_is_left_without_a_word() {
    let mut b = learned(Action::Report);
    let hook = Finding {
        class: Class::HookHidden,
        held: "nobody can",
        repairs: vec![],
        ..finding(0x200, 0)
    };
    b.tick(vec![finding(0x100, 1), hook], Step::Spent);
    for _ in 0..3 {
        b.tick(vec![], Step::Spent);
    }
    assert_eq!(lines(&b, EVENT_NOTE), ["hidden process: evil, pid 7: not repaired: nobody can"]);
    assert_eq!(b.system.repaired.len(), 0);
}

/// A check that names memory, and finds something wrong with each write to it. It keeps what it is told of writes.
#[derive(Clone, Default)]
struct Watcher(Rc<RefCell<Vec<bool>>>, Rc<Cell<u32>>);

impl Check<Nothing> for Watcher {
    fn about(&self) -> &'static About {
        &NOTHING
    }
    fn watched(&self, _: &Kernel<'_, Nothing>) -> Vec<Watched> {
        vec![Watched { range: 0x1000..0x3000, space: 0x7000 }]
    }
    fn sees_writes(&mut self, all: bool) {
        self.0.borrow_mut().push(all);
    }
    fn misses_ticks(&mut self) {
        self.1.set(self.1.get() + 1);
    }
    fn judge_writes(
        &mut self,
        _: &Kernel<'_, Nothing>,
        writes: &[Write],
        found: &mut dyn FnMut(Finding),
    ) {
        for write in writes {
            let finding = Finding::new(Class::TextModified);
            found(Finding { what: "written".into(), address: write.address, ..finding });
        }
    }
    fn stands(&self, _: &str, _: u64) -> bool {
        false
    }
    fn step(
        &mut self,
        _: &Kernel<'_, Nothing>,
        _: &mut dyn Budget,
        _: &mut dyn FnMut(Finding),
        _: &mut u64,
    ) -> Step {
        Step::Done(1)
    }
}

#[test]
fn writes_are_judged_where_they_can_be_watched() {
    for sees_writes in [false, true] {
        let mut b = Bench::new(true);
        let watcher = Watcher::default();
        b.server.add(Box::new(watcher.clone())).expect("room for another check");
        b.system.sees_writes = sees_writes;
        b.system.writes = (0..40).map(|n| Write { address: 8 * n, ..Write::default() }).collect();
        b.tick(vec![], Step::Spent);
        assert_eq!((b.system.watched.len(), b.system.writes.len()), (0, 40), "before a first pass");
        b.tick(vec![], Step::Done(1));
        assert_eq!(b.system.watched, [Watched { range: 0x1000..0x3000, space: 0x7000 }]);
        b.tick(vec![], Step::Done(1));
        let left = if sees_writes { 0 } else { 40 };
        assert_eq!((b.system.watched.len(), b.system.writes.len()), (1, left));
        assert_eq!(lines(&b, EVENT_FINDING).len(), 40 - left);
        assert_eq!(watcher.0.take(), [true][..usize::from(sees_writes)]);
    }
}

#[test]
fn a_flood_of_writes_ends_with_the_slice_and_losses_are_noted_once() {
    let mut b = Bench::new(true);
    let watcher = Watcher::default();
    b.server.add(Box::new(watcher.clone())).expect("room for another check");
    b.system.sees_writes = true;
    b.tick(vec![], Step::Done(1));
    b.system.writes = vec![Write::default(); 16 * 1000];
    b.system.lost = 7;
    b.tick(vec![], Step::Spent);
    let left = b.system.writes.len();
    assert!(left > 0 && left < 16 * 1000, "{left}");
    for _ in 0..2 {
        b.server.beat(&mut b.system, &MonitorStatus::default());
    }
    let noted = lines(&b, EVENT_NOTE).iter().filter(|line| line.starts_with("7 writes")).count();
    assert_eq!(noted, 1);
    assert_eq!(watcher.0.take(), [true, false]);
}

#[test]
fn checks_are_told_that_ticks_were_missing() {
    let mut b = Bench::new(true);
    b.server = Server::new(Policy::default(), 1000, &[]);
    let watcher = Watcher::default();
    b.server.add(Box::new(watcher.clone())).expect("room for another check");
    b.system.sees_writes = true;
    for (pause, late) in [(0, 0), (0, 0), (20, 0), (40, 1), (0, 1)] {
        b.system.now.set(b.system.now.get() + 1000 * pause);
        b.tick(vec![], Step::Done(1));
        assert_eq!(watcher.1.get(), late, "after {pause} ms");
    }
}
