//! Tasks and the objects that their handles name: endpoints, notifications.

use crate::queue::{Queue, ThreadId};
use crate::space::Space;
use crate::supervision::Supervision;
use kyozon_abi::layer::MAX_TASKS;
use kyozon_abi::task::*;

/// Endpoints per task. Number `t * TASK_ENDPOINTS` exists from the start of task `t`.
pub const TASK_ENDPOINTS: usize = 1 + TASK_OBJECTS as usize;
/// Endpoints of all tasks.
pub const ENDPOINTS: usize = MAX_TASKS * TASK_ENDPOINTS;
/// Notifications of all tasks.
pub const NOTIFICATIONS: usize = MAX_TASKS * TASK_OBJECTS as usize;

/// The object that a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// None: the handle is free.
    None,
    /// This endpoint.
    Endpoint(u8),
    /// This notification.
    Notification(u8),
}

/// One of a task's handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The named object.
    pub object: Object,
    /// `HANDLE_*`.
    pub rights: u8,
    /// Badge of the messages sent with it.
    pub badge: u64,
}

impl Handle {
    /// A free handle.
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
    /// Whether it has not ended.
    pub alive: bool,
    /// `RIGHT_*`.
    pub rights: u64,
    /// Highest priority of its threads.
    pub max_priority: u8,
    /// Its address space.
    pub space: Space,
    /// Its handles.
    pub handles: [Handle; TASK_HANDLES as usize],
    /// The endpoint where faults of its threads go.
    pub fault_handler: Option<u8>,
    /// Endpoints that it made.
    pub endpoints: u8,
    /// Notifications that it made.
    pub notifications: u8,
    /// Whether and how it is started again.
    pub supervision: Supervision,
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
        supervision: Supervision::NONE,
    };

    /// The handle with this number, if there is one.
    #[inline]
    pub fn handle(&self, number: u64) -> Option<&Handle> {
        self.handles.get(usize::try_from(number).ok()?).filter(|h| h.object != Object::None)
    }

    /// The endpoint of handle `number` and the handle's badge, if it has all of `rights`.
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

    /// The notification of handle `number`, if it has all of `rights`.
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

/// A queue of either senders or receivers.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// Whether its task has not ended.
    pub alive: bool,
    /// Whether the queued threads receive; otherwise they send.
    pub receiving: bool,
    /// Waiting threads.
    pub queue: Queue,
}

impl Endpoint {
    /// An unused endpoint.
    pub const NONE: Self = Self { alive: false, receiving: false, queue: Queue::EMPTY };

    /// The first receiver, if one waits.
    #[inline]
    pub fn receiver(&self) -> Option<ThreadId> {
        (self.receiving && !self.queue.is_empty()).then(|| self.queue.head())
    }

    /// Whether a sender waits.
    #[inline]
    pub fn has_sender(&self) -> bool {
        !self.receiving && !self.queue.is_empty()
    }
}

/// Pending bits, or threads waiting for bits.
#[derive(Clone, Copy)]
pub struct Notification {
    /// Whether its task has not ended.
    pub alive: bool,
    /// Pending bits.
    pub bits: u64,
    /// Threads waiting for a bit.
    pub queue: Queue,
}

impl Notification {
    /// An unused notification.
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
