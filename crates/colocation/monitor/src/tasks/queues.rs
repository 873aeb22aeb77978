//! The tasks that have a CPU or wait for one: what Linux needs to run a task, whatever else lacks it.
//!
//! Sources: Linux, `kernel/sched/sched.h`, `struct rq` and the queues of the scheduling classes in it.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{is_in_mask, Areas, ListWalk, Lists, Trees};

/// Maximum number of entities of a CPU that a pass visits: a queue is walked in one go, since it changes all the time.
/// The tree is walked from the one that runs next, so a task of a longer queue gets its turn.
const MAX_ENTITIES: u32 = 32;
/// Maximum number of groups of tasks that wait to be visited.
const MAX_GROUPS: usize = 16;

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("rq", "curr", Optional),
        ("rq", "idle", Optional),
        ("rq", "cfs", Optional),
        ("rq", "rt.active.bitmap", Optional),
        ("rq", "rt.active.queue", Optional),
        ("rq", "dl.root.rb_root.rb_node", Optional),
        ("rq", "scx.runnable_list", Optional),
        ("cfs_rq", "curr", Optional),
        ("cfs_rq", "tasks_timeline.rb_root.rb_node", Optional),
        ("sched_entity", "run_node", Optional),
        ("sched_entity", "my_q", Optional),
        ("sched_rt_entity", "my_q", Optional),
        ("sched_rt_entity", "run_list", Optional),
        ("task_struct", "se", Optional),
        ("task_struct", "rt", Optional),
        ("task_struct", "dl.rb_node", Optional),
        ("task_struct", "scx.runnable_node", Optional),
        ("rb_node", "rb_left", Optional),
        ("rb_node", "rb_right", Optional),
        ("rb_node", "__rb_parent_color", Optional),
    ],
    constants: &[],
};

/// The class of fair tasks. Its entities are tasks, and groups with a queue of their own.
#[derive(Clone, Copy, Debug)]
struct Fair {
    /// Offset in a run queue.
    queue: u64,
    /// Offsets in such a queue: the entity that runs, which is not in the tree, and the tree's root.
    current: u64,
    root: u64,
    /// Offsets in an entity: its node, and its queue if it is a group.
    node: u64,
    group: Option<u64>,
    /// Offset of the entity in a task.
    entity: u64,
}

/// The class of real-time tasks: a list for each priority, and a bitmap of those that have entries.
#[derive(Clone, Copy, Debug)]
struct RealTime {
    bitmap: u64,
    words: u64,
    lists: u64,
    levels: u64,
    /// Offsets in an entity, and of the entity in a task.
    node: u64,
    group: Option<u64>,
    entity: u64,
}

/// Where the run queues lie.
#[derive(Clone, Copy, Debug)]
pub struct QueueLayout {
    areas: Areas,
    /// Address of the mask of CPUs that can be there.
    possible: Option<u64>,
    trees: Trees,
    /// Offset of the run queue in a CPU's area, and its size.
    queue: u64,
    bytes: u64,
    // Offsets in it.
    running: u64,
    idle: u64,
    fair: Fair,
    real_time: Option<RealTime>,
    /// The tree of tasks with deadlines: offsets of its root, and of the node in a task.
    deadline: Option<(u64, u64)>,
    /// The list of tasks that a BPF program schedules: offsets of its head, and of the node in a task.
    extensible: Option<(u64, u64)>,
}

impl QueueLayout {
    /// `None` if the kernel does not describe them.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let member = |structure, member| profile.field(structure, member);
        let offset = |structure, path| member(structure, path).map(|field| field.offset);
        let real_time = || {
            let (bitmap, lists) =
                (member("rq", "rt.active.bitmap")?, member("rq", "rt.active.queue")?);
            let levels = lists.bytes / profile.size_of("list_head").unwrap_or(16).max(1);
            Some(RealTime {
                bitmap: bitmap.offset,
                words: (bitmap.bytes / 8).min(4),
                lists: lists.offset,
                levels,
                node: offset("sched_rt_entity", "run_list")?,
                group: offset("sched_rt_entity", "my_q"),
                entity: offset("task_struct", "rt")?,
            })
        };
        Some(Self {
            areas: Areas::new(profile)?,
            possible: profile.symbol("__cpu_possible_mask"),
            trees: Trees::new(profile).ok()?,
            queue: profile.symbol("runqueues")?,
            bytes: profile.size_of("rq")?,
            running: offset("rq", "curr")?,
            idle: offset("rq", "idle")?,
            fair: Fair {
                queue: offset("rq", "cfs")?,
                current: offset("cfs_rq", "curr")?,
                root: offset("cfs_rq", "tasks_timeline.rb_root.rb_node")?,
                node: offset("sched_entity", "run_node")?,
                group: offset("sched_entity", "my_q"),
                entity: offset("task_struct", "se")?,
            },
            real_time: real_time(),
            deadline: offset("rq", "dl.root.rb_root.rb_node")
                .zip(offset("task_struct", "dl.rb_node")),
            extensible: offset("rq", "scx.runnable_list")
                .zip(offset("task_struct", "scx.runnable_node")),
        })
    }

    /// Calls `found` with what is in the place of a task in the queues of CPU `number`, idle tasks left out; returns
    /// whether there is such a CPU or one after it.
    pub fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        lists: &Lists,
        number: u64,
        found: &mut dyn FnMut(u64),
    ) -> bool {
        let Some(area) = self.areas.of(kernel, number) else { return false };
        if self.possible.is_some_and(|mask| is_in_mask(kernel, mask, number) != Some(true)) {
            return true;
        }
        let queue = area.wrapping_add(self.queue);
        let idle = kernel.u64(queue.wrapping_add(self.idle));
        let mut visit = Visit {
            kernel,
            lists,
            queue,
            left: MAX_ENTITIES,
            found: &mut |task| {
                if Some(task) != idle {
                    found(task);
                }
            },
        };
        visit.running(self);
        visit.deadline(self);
        visit.real_time(self);
        visit.fair(self);
        visit.extensible(self);
        true
    }
}

/// A visit of one CPU's queues.
struct Visit<'a, 'k, M> {
    kernel: &'a Kernel<'k, M>,
    lists: &'a Lists,
    /// Address of the run queue.
    queue: u64,
    /// Entities that it may still visit.
    left: u32,
    found: &'a mut dyn FnMut(u64),
}

impl<M: KernelMemory> Visit<'_, '_, M> {
    fn at(&self, offset: u64) -> u64 {
        self.queue.wrapping_add(offset)
    }

    /// Counts one entity; false if there were too many.
    fn count(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    fn running(&mut self, layout: &QueueLayout) {
        if let Some(task) = self.kernel.u64(self.at(layout.running)) {
            (self.found)(task);
        }
    }

    /// Tasks, and groups of tasks with a queue of their own.
    fn fair(&mut self, layout: &QueueLayout) {
        let QueueLayout { fair, trees, .. } = layout;
        let kernel = self.kernel;
        let mut groups = [0; MAX_GROUPS];
        groups[0] = self.at(fair.queue);
        let mut waiting = 1;
        while waiting > 0 {
            waiting -= 1;
            let queue = groups[waiting];
            let current = kernel.u64(queue.wrapping_add(fair.current)).filter(|it| *it != 0);
            let mut node = trees.first(kernel, queue.wrapping_add(fair.root));
            let nodes = core::iter::from_fn(|| {
                let at = node?;
                node = trees.next(kernel, at);
                Some(at.wrapping_sub(fair.node))
            });
            for entity in current.into_iter().chain(nodes) {
                if !self.count() {
                    return;
                }
                let group = fair.group.and_then(|at| kernel.u64(entity.wrapping_add(at)));
                match group.unwrap_or(0) {
                    0 => (self.found)(entity.wrapping_sub(fair.entity)),
                    group if waiting < MAX_GROUPS => {
                        groups[waiting] = group;
                        waiting += 1;
                    }
                    _ => {}
                }
            }
        }
    }

    fn real_time(&mut self, layout: &QueueLayout) {
        let Some(class) = &layout.real_time else { return };
        let kernel = self.kernel;
        for word in 0..class.words {
            let mut bits = kernel.u64(self.at(class.bitmap + 8 * word)).unwrap_or(0);
            while bits != 0 {
                let level = 64 * word + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                // The bit behind the last level is always set.
                if level >= class.levels {
                    return;
                }
                let head = self.at(class.lists + 16 * level);
                let mut walk = ListWalk::new(head, self.left);
                while let Ok(Some(node)) = walk.next(kernel, self.lists) {
                    if !self.count() {
                        return;
                    }
                    let entity = node.wrapping_sub(class.node);
                    let group = class.group.and_then(|at| kernel.u64(entity.wrapping_add(at)));
                    if group.unwrap_or(0) == 0 {
                        (self.found)(entity.wrapping_sub(class.entity));
                    }
                }
            }
        }
    }

    fn deadline(&mut self, layout: &QueueLayout) {
        let Some((root, in_task)) = layout.deadline else { return };
        let mut node = layout.trees.first(self.kernel, self.at(root));
        while let Some(at) = node.filter(|_| self.count()) {
            // Since 6.8, the run queue has entities of its own, by which other classes get their share.
            if at.wrapping_sub(self.queue) >= layout.bytes {
                (self.found)(at.wrapping_sub(in_task));
            }
            node = layout.trees.next(self.kernel, at);
        }
    }

    fn extensible(&mut self, layout: &QueueLayout) {
        let Some((head, in_task)) = layout.extensible else { return };
        let mut walk = ListWalk::new(self.at(head), self.left);
        while let Ok(Some(node)) = walk.next(self.kernel, self.lists) {
            (self.found)(node.wrapping_sub(in_task));
        }
    }
}
