//! Linux's writes to watched memory: what an instruction has changed, and the queue of changes for the cokernel.
//!
//! While Linux patches code it puts a breakpoint over an instruction, changes the bytes behind it, and then puts the
//! new instruction's first byte in place of the breakpoint. It does that in an address space of its own. There, the
//! first step is not queued: the last one shows all bytes. The second one is: it has an effect if the breakpoint is not
//! where an instruction begins.
//!
//! No more than half of the queue is for Linux's patches: more of them are left out, and counted. Other writes are
//! never left out while the cokernel fetches them: their CPUs wait.

use kyozon_abi::layer::{Write, Writes, MAX_WRITES, WRITE_WORDS};

/// Maximum number of writes that wait for the cokernel.
pub const QUEUE: usize = 256;
/// Room that an instruction needs. Few write more than 64 bytes.
const ROOM: usize = 8;
/// Words of a page.
pub const WORDS: usize = 512;

const BREAKPOINT: u8 = 0xcc;

/// A page that an instruction has changed, and the words around it. The words after the change follow in the order of
/// their addresses.
pub struct Page<'a> {
    /// Physical address.
    pub address: u64,
    /// The contents before the instruction.
    pub before: &'a [u64; WORDS],
    /// The contents after it.
    pub after: &'a [u64; WORDS],
    /// The last word of the page before it, if that is watched too.
    pub ahead: Option<u64>,
    /// The first words of the page behind it, if that is watched too.
    pub behind: Option<[u64; 2]>,
}

impl Page<'_> {
    /// The words of index `at`, 0 for the word ahead of the page: before the instruction, and after it.
    fn words(&self, at: usize) -> [u64; 2] {
        let behind = |at: usize| [self.behind.unwrap_or_default()[at]; 2];
        match at {
            0 => [self.ahead.unwrap_or_default(); 2],
            1..=WORDS => [self.before[at - 1], self.after[at - 1]],
            _ => behind(at - WORDS - 1),
        }
    }

    /// The byte of the page at physical address `at`, after the instruction.
    fn byte(&self, at: u64) -> u8 {
        let offset = (at - self.address) as usize;
        self.after[offset / 8].to_le_bytes()[offset % 8]
    }

    /// The first and the last address of a changed byte.
    fn changed(&self) -> Option<(u64, u64)> {
        let change = |word: usize| self.before[word] ^ self.after[word];
        let start = (0..WORDS).find(|word| change(*word) != 0)?;
        let end = (start..WORDS).rfind(|word| change(*word) != 0)?;
        let first = 8 * start as u64 + u64::from(change(start).trailing_zeros() / 8);
        let last = 8 * end as u64 + 7 - u64::from(change(end).leading_zeros() / 8);
        Some((self.address + first, self.address + last))
    }

    /// Shows the changes from address `first` to `last`, with the address of their first word. A change begins 8 to 15
    /// bytes behind that, so that the instruction is in sight whose end was changed; at the edge of watched memory it
    /// may begin earlier.
    fn changes(
        &self,
        first: u64,
        last: u64,
        mut each: impl FnMut(u64, [u64; WRITE_WORDS], [u64; WRITE_WORDS]),
    ) {
        let lowest = usize::from(self.ahead.is_none());
        let highest = WORDS + 1 + if self.behind.is_some() { 2 } else { 0 } - WRITE_WORDS;
        let index = |address: u64| (address - self.address) as usize / 8;
        let (mut next, end) = (index(first), index(last) + 1);
        while let Some(word) = (next..end).find(|word| self.before[*word] != self.after[*word]) {
            let first = word.clamp(lowest, highest);
            let part = |of: usize| core::array::from_fn(|n| self.words(first + n)[of]);
            each(self.address + 8 * first as u64 - 8, part(0), part(1));
            next = first + WRITE_WORDS - 1;
        }
    }
}

/// The writes that wait, and what they have led up to.
pub struct Queue {
    writes: [Write; QUEUE],
    first: usize,
    count: usize,
    lost: u64,
    fetched_tsc: Option<u64>,
}

impl Queue {
    /// No writes.
    pub const EMPTY: Self = Self {
        writes: [Writes::NONE.writes[0]; QUEUE],
        first: 0,
        count: 0,
        lost: 0,
        fetched_tsc: None,
    };

    /// Whether an instruction that writes is to wait at `now`, unless it is a patch: there is no room, and the cokernel
    /// has fetched something in the last `patience` time-stamp ticks.
    pub fn is_busy(&self, now: u64, patience: u64) -> bool {
        self.count + ROOM > QUEUE
            && self.fetched_tsc.is_some_and(|then| now.wrapping_sub(then) < patience)
    }

    /// Appends the changes of `page`, which `write` describes otherwise. `patches`: in the address space in which Linux
    /// patches this memory.
    pub fn push_page(&mut self, page: &Page<'_>, patches: bool, write: &Write) {
        let Some((first, last)) = page.changed() else { return };
        if patches && first == last && page.byte(first) == BREAKPOINT {
            return;
        }
        if patches && self.count >= QUEUE / 2 {
            self.lost += 1;
            return;
        }
        page.changes(first, last, |address, before, after| {
            self.push(Write { address, before, after, ..*write });
        });
    }

    /// Appends a write, or counts it as lost if there is no room.
    pub fn push(&mut self, write: Write) {
        if self.count == QUEUE {
            self.lost += 1;
            return;
        }
        self.writes[(self.first + self.count) % QUEUE] = write;
        self.count += 1;
    }

    /// Moves the oldest writes to `to`.
    pub fn fetch(&mut self, to: &mut Writes, now: u64) {
        let count = self.count.min(MAX_WRITES);
        for write in &mut to.writes[..count] {
            *write = self.writes[self.first];
            self.first = (self.first + 1) % QUEUE;
        }
        self.count -= count;
        (to.count, to.lost) = (count as u64, self.lost);
        self.fetched_tsc = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x5000;

    fn page(bytes: &[(usize, u8)]) -> [u64; WORDS] {
        let mut page = [0x9090_9090_9090_9090_u64; WORDS];
        for &(at, byte) in bytes {
            let mut word = page[at / 8].to_le_bytes();
            word[at % 8] = byte;
            page[at / 8] = u64::from_le_bytes(word);
        }
        page
    }

    /// Queues a change, and returns the distance of each queued one from the page.
    fn push(
        queue: &mut Queue,
        before: &[(usize, u8)],
        after: &[(usize, u8)],
        ahead: Option<u64>,
        patches: bool,
    ) -> Vec<i64> {
        let (before, after) = (page(before), page(after));
        let behind = ahead.map(|_| [7, 8]);
        let page = Page { address: AT, before: &before, after: &after, ahead, behind };
        queue.push_page(&page, patches, &Write { rip: 9, ..Write::default() });
        let mut to = Writes::NONE;
        queue.fetch(&mut to, 0);
        assert!(to.list().iter().all(|write| write.rip == 9 && write.before != write.after));
        to.list().iter().map(|write| write.address as i64 - AT as i64).collect()
    }

    #[test]
    fn a_change_comes_with_the_word_before_it() {
        let mut queue = Queue::EMPTY;
        let mut seen = |after: &[_], ahead| push(&mut queue, &[], after, ahead, false);
        assert_eq!(seen(&[(80, 1)], None), [72]);
        assert_eq!(seen(&[(0, 1)], None), [0]);
        assert_eq!(seen(&[(0, 1)], Some(1)), [-8]);
        assert_eq!(seen(&[(4095, 1)], None), [4064]);
        assert_eq!(seen(&[(4095, 1)], Some(1)), [4080]);
        // More than fits.
        let many: Vec<(usize, u8)> = (800..864).map(|at| (at, 1)).collect();
        assert_eq!(seen(&many, None), [792, 816, 840]);
        assert_eq!(seen(&[], None), []);
    }

    #[test]
    fn a_change_has_the_words_of_neighbouring_pages() {
        let mut queue = Queue::EMPTY;
        let (before, after) = (page(&[]), page(&[(0, 1), (4088, 2)]));
        let page = Page {
            address: AT,
            before: &before,
            after: &after,
            ahead: Some(5),
            behind: Some([7, 8]),
        };
        queue.push_page(&page, false, &Write::default());
        let mut to = Writes::NONE;
        queue.fetch(&mut to, 0);
        let [first, second] = to.list() else { panic!("{to:?}") };
        assert_eq!((first.before[0], first.after[..2].to_vec()), (5, vec![5, after[0]]));
        assert_eq!(second.before[1..], [before[511], 7, 8]);
        assert_eq!(second.after, [before[510], after[511], 7, 8]);
    }

    #[test]
    fn breakpoints_of_linuxs_patches_are_not_seen() {
        let mut queue = Queue::EMPTY;
        let tail: Vec<(usize, u8)> = (101..105).map(|at| (at, at as u8)).collect();
        let stopped = [(100, BREAKPOINT)];
        let ready: Vec<(usize, u8)> = stopped.into_iter().chain(tail.clone()).collect();
        let done: Vec<(usize, u8)> = [(100, 0xe8)].into_iter().chain(tail.clone()).collect();
        assert_eq!(push(&mut queue, &[], &stopped, None, true), []);
        assert_eq!(push(&mut queue, &stopped, &ready, None, true), [88]);
        assert_eq!(push(&mut queue, &ready, &done, None, true), [88]);
        // In another address space, and together with something else.
        assert_eq!(push(&mut queue, &[], &stopped, None, false), [88]);
        assert_eq!(push(&mut queue, &[], &ready, None, true), [88]);
    }

    #[test]
    fn patches_leave_room_for_other_writes() {
        let mut queue = Queue::EMPTY;
        let (before, after) = (page(&[]), page(&[(80, 1)]));
        let page = Page { address: AT, before: &before, after: &after, ahead: None, behind: None };
        for _ in 0..QUEUE {
            queue.push_page(&page, true, &Write::default());
        }
        assert_eq!((queue.count, queue.lost), (QUEUE / 2, QUEUE as u64 / 2));
        queue.push_page(&page, false, &Write::default());
        assert_eq!((queue.count, queue.lost), (QUEUE / 2 + 1, QUEUE as u64 / 2));
    }

    #[test]
    fn the_queue_keeps_the_order_and_counts_what_it_loses() {
        let mut queue = Queue::EMPTY;
        let mut to = Writes::NONE;
        for round in 0..3 {
            for n in 0..QUEUE as u64 + 2 {
                queue.push(Write { address: 8 * n, ..Write::default() });
            }
            assert_eq!(queue.is_busy(1099, 100), round > 0);
            assert!(!queue.is_busy(1100, 100), "the cokernel is gone");
            let mut next = 0;
            loop {
                queue.fetch(&mut to, 1000);
                assert_eq!(to.lost, 2 * (round + 1));
                for write in to.list() {
                    assert_eq!(write.address, 8 * next);
                    next += 1;
                }
                if to.count < MAX_WRITES as u64 {
                    break;
                }
            }
            assert_eq!(next, QUEUE as u64);
            assert!(!queue.is_busy(1000, 100));
        }
    }
}
