//! The standard library of Rust on a host.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::catch_unwind;
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

thread_local! {
    static LOCAL: Cell<u32> = const { Cell::new(7) };
    static DROPPED: Dropped = const { Dropped };
}
static ONCE: OnceLock<String> = OnceLock::new();
static DROPS: Mutex<u32> = Mutex::new(0);

struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        *DROPS.lock().unwrap() += 1;
    }
}

fn locks_and_local_data() {
    let map = Arc::new(Mutex::new(HashMap::new()));
    let barrier = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4u32)
        .map(|number| {
            let (map, barrier) = (map.clone(), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                DROPPED.with(|_| ());
                LOCAL.set(LOCAL.get() + number);
                ONCE.get_or_init(|| "once".into());
                for key in 0..1000 {
                    *map.lock().unwrap().entry(key % 10).or_insert(0) += number;
                }
                LOCAL.get()
            })
        })
        .collect();
    let results: Vec<u32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(results, [7, 8, 9, 10]);
    assert_eq!((LOCAL.get(), ONCE.get().unwrap().as_str(), *DROPS.lock().unwrap()), (7, "once", 4));
    assert_eq!(map.lock().unwrap().values().sum::<u32>(), 6000);
    assert_eq!(*RwLock::new(1).read().unwrap(), 1);
}

fn panics() {
    let joined = thread::spawn(|| panic!("on purpose")).join();
    assert_eq!(joined.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
    let nothing: Vec<u32> = Vec::new();
    assert!(catch_unwind(|| nothing[env::args().count()]).is_err());
}

fn channels() {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..3 {
            let sender = sender.clone();
            scope.spawn(move || sender.send(number).unwrap());
        }
    });
    drop(sender);
    let mut got: Vec<i32> = receiver.iter().collect();
    got.sort();
    assert_eq!(got, [0, 1, 2]);
}

fn time() {
    let start = Instant::now();
    let pair = (Mutex::new(()), Condvar::new());
    let limit = Duration::from_millis(10);
    assert!(pair.1.wait_timeout(pair.0.lock().unwrap(), limit).unwrap().1.timed_out());
    thread::sleep(Duration::from_millis(5));
    assert!(start.elapsed() >= Duration::from_millis(15));
}

fn files_and_sockets() {
    let path = env::temp_dir().join("file");
    fs::write(&path, "text").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    fs::remove_file(&path).unwrap();
    assert!(fs::metadata(&path).is_err());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"ping"));
    let mut got = String::new();
    listener.accept().unwrap().0.read_to_string(&mut got).unwrap();
    client.join().unwrap().unwrap();
    assert_eq!(got, "ping");
}

fn main() {
    assert_eq!(env::args().nth(1).as_deref(), Some("argument"));
    assert!(thread::available_parallelism().is_ok());
    locks_and_local_data();
    panics();
    channels();
    time();
    files_and_sockets();
    println!("done");
    process::exit(5);
}
