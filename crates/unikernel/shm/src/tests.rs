use super::*;

fn run_line(line: &str) -> Samples {
    samples(&line.split(' ').map(String::from).collect::<Vec<_>>())
}

#[test]
fn every_experiment_returns_its_samples() {
    for words in [
        "exchange 20",
        "token 20",
        "nap 20",
        "line 5",
        "wake 10 5",
        "wake 3 2000",
        "spawn 4",
        "ring 2 64",
        "ring 2 1048576",
        "place 2 4096",
        "copy 2 4096",
        "across 2 4096",
        "tcp 5",
        "unix 5",
        "pipe 5",
    ] {
        let count: usize = words.split(' ').nth(1).unwrap().parse().unwrap();
        let samples = run_line(words).expect(words);
        assert_eq!(samples.len(), count, "{words}");
        assert!(samples.iter().all(|sample| (1..TIMEOUT).contains(sample)), "{words}: {samples:?}");
    }
}

#[test]
fn invalid_arguments_are_refused() {
    for words in [
        "",
        "exchange",
        "exchange 0",
        "exchange 100001",
        "exchange -1",
        "ring 1 0",
        "ring 1 63",
        "ring 1 8388608",
        "none 1",
    ] {
        assert!(run_line(words).is_err(), "{words}");
    }
}
