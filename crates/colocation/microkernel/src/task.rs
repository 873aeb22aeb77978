//! Tasks, and what they may name: handles, endpoints, notifications.

use crate::queue::{Queue, ThreadId};
use crate::space::Space;
use kyozon_abi::layer::MAX_TASKS;
use kyozon_abi::task::*;

/// Endpoints of all tasks: number `t * (1 + TASK_OBJECTS)` is the one that task `t` has at its start.
pub const TASK_ENDPOINTS: usize = 1 + TASK_OBJECTS as usize;
/// Endpoints of all tasks.
pub const ENDPOINTS: usize = MAX_TASKS * TASK_ENDPOINTS;
/// Notifications of all tasks.
pub const NOTIFICATIONS: usize = MAX_TASKS * TASK_OBJECTS as usize;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Nothing.
    None,
    /// This endpoint.
    Endpoint(u8),
    /// This notification.
    Notification(u8),
}

/// One of a task's handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// What it names.
    pub object: Object,
    /// `HANDLE_*`.
    pub rights: u8,
    /// What its messages are sent with.
    pub badge: u64,
}

impl Handle {
    /// None.
    pub const NONE: Self = Self { object: Object::None, rights: 0, badge: 0 };

    /// Whether it has all of these rights.
    #[inline]
    pub fn may(&self, rights: u64) -> bool {
        u64::from(self.rights) & rights == rights
    }
}

/// One task.
#[derive(Clone, Copy)]
pub struct Task {
    /// Whether it has threads.
    pub alive: bool,
    /// `RIGHT_*`.
    pub rights: u64,
    /// Highest priority of its threads.
    pub max_priority: u8,
    /// Where it lives.
    pub space: Space,
    /// Its handles.
    pub handles: [Handle; TASK_HANDLES as usize],
    /// The endpoint where faults of its threads go.
    pub fault_handler: Option<u8>,
    /// Endpoints that it made.
    pub endpoints: u8,
    /// Notifications that it made.
    pub notifications: u8,
}

impl Task {
    /// No task.
    pub const NONE: Self = Self {
        alive: false,
        rights: 0,
        max_priority: 0,
        space: Space::NONE,
        handles: [Handle::NONE; TASK_HANDLES as usize],
        fault_handler: None,
        endpoints: 0,
        notifications: 0,
    };

    /// The handle with this number, if there is one.
    #[inline]
    pub fn handle(&self, number: u64) -> Option<&Handle> {
        self.handles.get(usize::try_from(number).ok()?).filter(|h| h.object != Object::None)
    }

    /// An endpoint that its handle `number` names, if it has these rights.
    #[inline]
    pub fn endpoint(&self, number: u64, rights: u64) -> Result<(u8, u64), i64> {
        match self.handle(number) {
            Some(h) => match h.object {
                Object::Endpoint(e) if h.may(rights) => Ok((e, h.badge)),
                Object::Endpoint(_) => Err(E_RIGHT),
                _ => Err(E_HANDLE),
            },
            None => Err(E_HANDLE),
        }
    }

    /// A notification, likewise.
    pub fn notification(&self, number: u64, rights: u64) -> Result<u8, i64> {
        let handle = self.handle(number).ok_or(E_HANDLE)?;
        match handle.object {
            Object::Notification(n) if handle.may(rights) => Ok(n),
            Object::Notification(_) => Err(E_RIGHT),
            _ => Err(E_HANDLE),
        }
    }

    /// Puts `handle` at the first free number.
    pub fn add(&mut self, handle: Handle) -> Result<u64, i64> {
        let free = self.handles.iter().position(|h| h.object == Object::None).ok_or(E_FULL)?;
        self.handles[free] = handle;
        Ok(free as u64)
    }

    /// Whether [`Task::add`] has room.
    pub fn has_room(&self) -> bool {
        self.handles.iter().any(|h| h.object == Object::None)
    }
}

/// Where senders and receivers meet.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// Its task lives.
    pub alive: bool,
    /// Whether those in the queue receive; else they send.
    pub receiving: bool,
    /// Who waits.
    pub queue: Queue,
}

impl Endpoint {
    /// None.
    pub const NONE: Self = Self { alive: false, receiving: false, queue: Queue::EMPTY };

    /// The first receiver, if one waits.
    #[inline]
    pub fn receiver(&self) -> Option<ThreadId> {
        (self.receiving && !self.queue.is_empty()).then(|| self.queue.head())
    }

    /// Whether somebody waits with a message.
    #[inline]
    pub fn has_sender(&self) -> bool {
        !self.receiving && !self.queue.is_empty()
    }
}

/// Bits that wait for somebody, or the other way round.
#[derive(Clone, Copy)]
pub struct Notification {
    /// Its task lives.
    pub alive: bool,
    /// Those that are set.
    pub bits: u64,
    /// Who waits for one.
    pub queue: Queue,
}

impl Notification {
    /// None.
    pub const NONE: Self = Self { alive: false, bits: 0, queue: Queue::EMPTY };
}

/// The task that made an endpoint.
pub fn owner_of_endpoint(endpoint: u8) -> usize {
    usize::from(endpoint) / TASK_ENDPOINTS
}

/// The task that made a notification.
pub fn owner_of_notification(notification: u8) -> usize {
    usize::from(notification) / TASK_OBJECTS as usize
}
