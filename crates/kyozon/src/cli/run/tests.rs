use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;

fn run(words: &[&str]) -> Result<RunOptions, clap::Error> {
    let words = ["kyozon", "run"].iter().chain(words);
    match Cli::try_parse_from(words)?.command {
        Command::Run(options) => Ok(options),
        other => panic!("{other:?}"),
    }
}

#[test]
fn disk_and_network_options_are_parsed() {
    let disk = "name=disk,file=/x.img,ro,vm=1";
    let words = ["--block", disk, "--net", "name=lan", "--net", "name=up,tap=t0,mtu=9000", "x.elf"];
    let devices = run(&words).unwrap().options().devices;
    let (name, file) = ("disk".to_owned(), "/x.img".into());
    assert_eq!(devices.blocks, [BlockOption { name, file, write: false, guest: Some(1) }]);
    assert_eq!(devices.nets[0], NetOption { name: "lan".into(), host: None, mtu: 1500 });
    assert_eq!(devices.nets[1].host, Some(HostOption::Tap("t0".into())));
    for bad in [
        ["--block", "name=disk"],
        ["--block", "file=x"],
        ["--block", "name=a,file=x,rw"],
        ["--block", "name=a,file=x,vm=one"],
        ["--net", "socket=x"],
        ["--net", "name=a,socket=x,tap=y"],
        ["--net", "name=a,mtu=67"],
        ["--net", "name=a,mtu=65536"],
        ["--net", "name=a,bridge=x"],
    ] {
        assert!(run(&[bad[0], bad[1], "x.elf"]).is_err(), "{bad:?}");
    }
}

#[test]
fn region_options_and_arguments_are_parsed() {
    let plain = run(&["x.elf"]).unwrap().options();
    assert_eq!((plain.backend, plain.memory, plain.vms), (None, 64 << 20, 1));
    assert!(plain.regions.is_empty() && plain.arguments.is_empty());
    let board = "name=board,size=4M,at=0x4000000000,ro";
    let words = ["--region", board, "--time-limit", "0.5", "--vms", "2", "x.elf", "--", "--a", "b"];
    let full = run(&words).unwrap().options();
    let want = RegionOption {
        name: "board".into(),
        bytes: 4 << 20,
        address: Some(0x40_0000_0000),
        write: false,
    };
    assert_eq!((full.regions, full.arguments), (vec![want], vec!["--a".into(), "b".into()]));
    assert_eq!(full.time_limit, Some(Duration::from_millis(500)));
    for bad in [
        ["--region", "name=x"],
        ["--region", "size=4M"],
        ["--region", "name=x,size=4M,rw"],
        ["--region", "name=x,size=4M,at=board"],
        ["--time-limit", "0"],
        ["--time-limit", "-1"],
        ["--time-limit", "1e99"],
        ["--vms", "0"],
        ["--vms", "65"],
        ["--backend", "none"],
        ["--group", "a/b"],
        ["--group", ""],
        ["--group-memory", "x"],
        // Needs --group.
        ["--group-peers", "3"],
    ] {
        assert!(run(&[bad[0], bad[1], "x.elf"]).is_err(), "{bad:?}");
    }
    assert!(run(&[]).is_err());
}

#[test]
fn group_options_are_parsed() {
    let words = ["--group", "g", "--group-memory", "1G", "--group-peers", "8", "x.elf"];
    let meeting = Meeting { name: "g".into(), memory: Some(1 << 30), peers: Some(8) };
    assert_eq!(run(&words).unwrap().options().group, Some(meeting));
}

#[test]
fn threads_have_a_default_that_depends_on_the_group() {
    assert_eq!(run(&["x.elf"]).unwrap().options().threads, None);
    let words = ["--group", "g", "--threads", "9", "x.elf"];
    assert_eq!(run(&words).unwrap().options().threads, Some(9));
    assert!(run(&["--threads", "65", "x.elf"]).is_err());
}
