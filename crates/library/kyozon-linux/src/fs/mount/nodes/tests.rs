use super::*;
use liblinux::calls::Arg;
use std::cell::RefCell;

/// A kernel whose handle for a descriptor is what the test says.
#[derive(Default)]
struct Fake {
    handles: RefCell<HashMap<i32, u8>>,
    closed: RefCell<Vec<i32>>,
    opened: RefCell<Vec<i32>>,
}

impl Calls for Fake {
    fn call(&self, number: i64, arguments: &mut [Arg<'_>]) -> Result<u64> {
        let fd = |argument: &Arg<'_>| match argument {
            Arg::Number(number) => *number as i32,
            _ => panic!("no descriptor"),
        };
        match number {
            libc::SYS_close => self.closed.borrow_mut().push(fd(&arguments[0])),
            libc::SYS_name_to_handle_at => {
                let handle = *self.handles.borrow().get(&fd(&arguments[0])).expect("a handle");
                let Arg::InOut(bytes) = &mut arguments[2] else { panic!("no handle") };
                bytes[..4].copy_from_slice(&1u32.to_ne_bytes());
                bytes[8] = handle;
            }
            libc::SYS_open_by_handle_at => {
                let Arg::In(handle) = &arguments[1] else { panic!("no handle") };
                let new = 900_000 + i32::from(handle[8]);
                self.opened.borrow_mut().push(new);
                return Ok(new as u64);
            }
            _ => panic!("call {number}"),
        }
        Ok(0)
    }
}

fn status(device: u64, inode: u64) -> libc::stat {
    // SAFETY: a structure of integers; all zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    (status.st_dev, status.st_ino, status.st_mode) = (device, inode, libc::S_IFREG);
    status
}

fn nodes(handles: bool) -> (Fake, Arc<Closing>, Nodes) {
    let closing = Arc::new(Closing::default());
    let nodes = Nodes::new(closing.clone(), Fd(3), &status(7, 2), handles);
    (Fake::default(), closing, nodes)
}

#[test]
fn names_of_one_inode_are_one_node_until_the_host_forgets_each() {
    let (kernel, closing, nodes) = nodes(false);
    let first = nodes.enter(&kernel, Fd(10), &status(7, 12)).expect("a node");
    let second = nodes.enter(&kernel, Fd(11), &status(7, 12)).expect("a node");
    assert_eq!((first.id, second.id, first.generation), (12, 12, second.generation));
    closing.sweep(&kernel);
    assert_eq!(*kernel.closed.borrow(), [11], "the first descriptor is kept");
    drop((first, second));
    nodes.forget(12, 1);
    assert!(nodes.get(12).is_ok());
    nodes.forget(12, 1);
    assert_eq!(nodes.get(12).map(drop), Err(Errno(libc::ESTALE)));
    closing.sweep(&kernel);
    assert_eq!(*kernel.closed.borrow(), [11, 10]);
    let again = nodes.enter(&kernel, Fd(12), &status(7, 12)).expect("a node");
    assert_eq!((again.id, again.generation), (12, 2), "a new life of the number");
}

#[test]
fn the_root_directory_is_never_forgotten() {
    let (kernel, closing, nodes) = nodes(false);
    nodes.forget(ROOT, u64::MAX);
    assert!(nodes.get(ROOT).is_ok());
    assert_eq!(nodes.enter(&kernel, Fd(10), &status(7, 2)).expect("a node").id, ROOT);
    nodes.clear();
    closing.sweep(&kernel);
    assert_eq!(*kernel.closed.borrow(), [10, 3]);
    assert_eq!(closing.open(), 0);
}

#[test]
fn numbers_are_the_images_unless_they_clash() {
    let (kernel, _, nodes) = nodes(false);
    let mut fd = 10;
    let mut id = |device, inode| {
        fd += 1;
        nodes.enter(&kernel, Fd(fd), &status(device, inode)).expect("a node").id
    };
    assert_eq!(id(7, 5), 5);
    assert!(id(7, 1) > OWN, "the host has this number for the root directory");
    assert!(id(7, 0) > OWN);
    assert!(id(7, u64::MAX) > OWN);
    let subvolume = id(8, 5);
    assert_ne!(subvolume, 5);
    assert_eq!(id(8, 5), subvolume);
    assert!(id(8, 1 << 50) > OWN);
    assert_ne!(nodes.nobody(), nodes.nobody());
}

#[test]
fn unused_inodes_are_closed_and_opened_again() {
    let (kernel, closing, nodes) = nodes(true);
    for number in 0..KEEP as u64 + 100 {
        let fd = 10 + number as i32;
        kernel.handles.borrow_mut().insert(fd, (number % 200) as u8);
        nodes.enter(&kernel, Fd(fd), &status(7, 1000 + number)).expect("a node");
    }
    assert!(closing.open() <= KEEP);
    closing.sweep(&kernel);
    let closed = kernel.closed.borrow().len();
    assert!((101..200).contains(&closed), "{closed} closed");
    let node = nodes.get(1000).expect("a node");
    assert_eq!(nodes.open(&kernel, &node).expect("its inode").fd, Fd(900_000));
    assert_eq!(nodes.open(&kernel, &node).expect("its inode").fd, Fd(900_000));
    assert_eq!(*kernel.opened.borrow(), [900_000], "opened once");
}

#[test]
fn a_number_of_a_closed_inode_may_come_to_belong_to_another() {
    let (kernel, _, nodes) = nodes(true);
    let enter = |fd, handle, inode| {
        kernel.handles.borrow_mut().insert(fd, handle);
        nodes.enter(&kernel, Fd(fd), &status(7, inode)).expect("a node")
    };
    let old = enter(10, 1, 50);
    assert!(close(&kernel, &old));
    let same = enter(11, 1, 50);
    assert_eq!(same.id, 50, "the same inode");
    assert!(close(&kernel, &old));
    let other = enter(12, 2, 50);
    assert_ne!(other.id, 50, "an inode that was made later");
    assert!(nodes.get(50).is_ok(), "the host still knows the old one");
    assert_eq!(enter(13, 2, 50).id, other.id);
}

#[test]
fn open_inodes_have_a_bound() {
    let (kernel, closing, nodes) = nodes(false);
    let mut refused = 0;
    for number in 0..MOST as u64 + 10 {
        match nodes.enter(&kernel, Fd(10), &status(7, 1000 + number)) {
            Ok(_) => (),
            Err(error) => {
                assert_eq!(error, Errno(libc::ENFILE));
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && closing.open() <= MOST, "{refused} refused");
}
