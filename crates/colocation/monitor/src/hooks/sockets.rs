//! Kinds of sockets: the functions behind `connect`, `sendmsg`, `recvmsg` and so on (`include/net/sock.h` of Linux).

use super::source::{offset, see_functions, visit_some, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of a name (`proto.name`).
const NAME_BYTES: usize = 32;

/// The kinds of the image that Linux uses most. The list only serves listings: whoever leaves it goes on working.
const KNOWN: [&str; 12] = [
    "netlink_proto",
    "packet_proto",
    "ping_prot",
    "raw_prot",
    "rawv6_prot",
    "tcp_prot",
    "tcpv6_prot",
    "udp_prot",
    "udplite_prot",
    "udpv6_prot",
    "unix_dgram_proto",
    "unix_stream_proto",
];

#[derive(Debug)]
pub(super) struct Sockets {
    known: Vec<u64>,
    list: List,
    name: u64,
    /// Offsets of a kind's functions.
    functions: Vec<u64>,
}

impl Source for Sockets {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("proto", "accept", Optional),
            ("proto", "backlog_rcv", Optional),
            ("proto", "bind", Optional),
            ("proto", "bind_add", Optional),
            ("proto", "bpf_bypass_getsockopt", Optional),
            ("proto", "close", Optional),
            ("proto", "compat_ioctl", Optional),
            ("proto", "connect", Optional),
            ("proto", "destroy", Optional),
            ("proto", "diag_destroy", Optional),
            ("proto", "disconnect", Optional),
            ("proto", "enter_memory_pressure", Optional),
            ("proto", "forward_alloc_get", Optional),
            ("proto", "get_port", Optional),
            ("proto", "getsockopt", Optional),
            ("proto", "hash", Optional),
            ("proto", "init", Optional),
            ("proto", "ioctl", Optional),
            ("proto", "keepalive", Optional),
            ("proto", "leave_memory_pressure", Optional),
            ("proto", "name", Optional),
            ("proto", "node", Optional),
            ("proto", "pre_connect", Optional),
            ("proto", "psock_update_sk_prot", Optional),
            ("proto", "put_port", Optional),
            ("proto", "recvmsg", Optional),
            ("proto", "rehash", Optional),
            ("proto", "release_cb", Optional),
            ("proto", "sendmsg", Optional),
            ("proto", "sendpage", Optional),
            ("proto", "setsockopt", Optional),
            ("proto", "shutdown", Optional),
            ("proto", "sock_is_readable", Optional),
            ("proto", "splice_eof", Optional),
            ("proto", "stream_memory_free", Optional),
            ("proto", "unhash", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden socket operation";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let kind = |member| offset(profile, "proto", member);
        // Not every version has all of them.
        let functions = Self::WANTS.members.iter();
        let functions = functions.filter(|(_, member, _)| !matches!(*member, "name" | "node"));
        Some(Self {
            known: KNOWN.iter().filter_map(|name| profile.symbol(name)).collect(),
            list: List { head: profile.symbol("proto_list")?, link: kind("node")? },
            name: kind("name")?,
            functions: functions.filter_map(|(_, member, _)| kind(member)).collect(),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let mut kind = |object| see_functions(kernel, object, self.functions.iter().copied(), see);
        match at.list {
            // Each has some thirty functions: a part of its own.
            0 => Some(match self.known.get(at.link as usize) {
                Some(known) => {
                    kind(*known);
                    Cursor { link: at.link + 1, ..at }
                }
                None => at.next_list(),
            }),
            1 => Some(visit_some(kernel, self.list.head, at, 1, |link| {
                let object = link.wrapping_sub(self.list.link);
                if !self.known.contains(&object) {
                    kind(object);
                }
            })),
            _ => None,
        }
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.c_string(object.wrapping_add(self.name), NAME_BYTES);
        format!("sockets of {}", name.unwrap_or_default())
    }
}
