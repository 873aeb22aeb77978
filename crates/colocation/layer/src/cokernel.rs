//! What surrounds the cokernel in every mode: its first trip, the services that it calls, and the interrupts that
//! reach it.
//!
//! Two kinds of code run here. *Services* are called by the cokernel, on its stack. *Interrupts* have stacks of their
//! own and may interrupt a service halfway; so they touch only the trip and atomics, and never call back into the state
//! of a service. Each static says which kind of code owns it.
//!
//! | module | contents |
//! |---|---|
//! | `state` | the module's structures, and the cokernel's address ranges |
//! | `start` | the first trip, and the choice of the mode |
//! | `services` | the table of services, and those that all modes share |
//! | `linux` | reading and parking the Linux beside the cokernel |
//! | `reports` | the event ring and the serial line |
//! | [`user_mode`] | entry into the cokernel's user mode, and the state that is switched for it |
//! | `interrupts` | non-maskable interrupts, machine checks and exceptions while the cokernel runs |
//! | `pending` | the tick that waits for the cokernel |
//! | `guard` | the clock, and the timer that guards the budget |
//! | `stop` | a trip that ends in the middle of the cokernel |

pub(crate) mod guard;
pub(crate) mod interrupts;
pub(crate) mod linux;
pub(crate) mod pending;
pub(crate) mod reports;
pub(crate) mod services;
pub(crate) mod start;
pub(crate) mod state;
pub mod stop;
pub(crate) mod user_mode;
