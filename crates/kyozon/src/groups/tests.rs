use super::*;
use kyozon_join::message::RegionInfo;

fn listings() -> Vec<Listing> {
    let peer = PeerInfo {
        peer: 3,
        pid: 77,
        image: "hello.elf".into(),
        backend: "kvm".into(),
        state: "running".into(),
        memory: 64 << 20,
        regions: vec![("board".into(), "rw".into()), ("read".into(), "r".into())],
        age_ms: 61_000,
    };
    let board =
        RegionInfo { name: "board".into(), address: 1 << 38, bytes: 8192, ..RegionInfo::default() };
    let group = Listing {
        group: "g".into(),
        keeper: 70,
        memory: 65 << 20,
        memory_limit: None,
        peers_limit: 64,
        regions: vec![board],
        peers: vec![peer],
    };
    vec![group]
}

#[test]
fn each_peer_is_one_row() {
    let lines = text(&listings(), |_| Some(3 << 20));
    let words: Vec<Vec<_>> = lines.lines().map(|l| l.split_whitespace().collect()).collect();
    let want =
        ["g", "3", "77", "kvm", "running", "64M", "3072K", "61s", "hello.elf", "board:rw,read:r"];
    assert_eq!((words[0].len(), &words[1][..]), (10, &want[..]));
    assert_eq!(text(&[], |_| None).lines().count(), 1);
}

#[test]
fn json_lists_groups_regions_and_peers() {
    let value: serde_json::Value = serde_json::from_str(&json(&listings(), |_| None)).unwrap();
    assert_eq!(value[0]["peers"][0]["regions"][1]["rights"], "r");
    assert_eq!(value[0]["peers"][0]["resident"], json!(null));
    assert_eq!(value[0]["regions"][0]["address"], json!(1_u64 << 38));
}

#[test]
fn ages_have_at_most_three_characters() {
    let ages = [0, 99, 100, 6000, 200_000].map(|s| age(s * 1000));
    assert_eq!(ages, ["0s", "99s", "1m", "1h", "2d"]);
}
