//! Arbitrary and damaged input never panics, and accepted input works.
//!
//! `PROPTEST_CASES=100000 cargo test --release --test fuzz` runs more cases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::bowl;
use common::strategies::{config, space};
use proptest::prelude::*;
use racecars::random::Random;
use racecars::{
    Algorithm, Candidate, ErrorKind, FailureKind, Optimizer, Outcome, Rank, Space, load,
};

/// Asserts that a space can be searched by every algorithm that takes it.
fn assert_searchable(space: &Space) {
    // Large spaces are slow.
    if space.dimension() > 500 {
        return;
    }
    let mut point = vec![0.0; space.dimension()];
    space.draw(&mut Random::new(1), &mut point);
    space.check(&point).unwrap();
    space.encode(space.view(&point).assignments()).unwrap();
    for name in Algorithm::NAMES {
        let algorithm: Algorithm = name.parse().unwrap();
        if let Ok(mut optimizer) = algorithm.optimizer(space, Some(30), 1) {
            assert_working(&mut *optimizer, 30);
        }
    }
}

/// Asks and tells until the space is exhausted.
fn assert_working(optimizer: &mut dyn Optimizer, steps: usize) {
    for _ in 0..steps {
        let told = optimizer.told();
        let Some(candidate) = optimizer.ask() else {
            assert!(optimizer.space().is_discrete());
            return;
        };
        optimizer.space().check(candidate.point()).unwrap();
        let value = bowl(optimizer.space(), candidate.point());
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
        assert_eq!(optimizer.told(), told + 1);
        let best = optimizer.best().unwrap().rank.value().unwrap();
        assert!(best <= value);
    }
}

/// Changes to a text that often leave it almost valid.
#[derive(Debug, Clone)]
enum Edit {
    Delete(prop::sample::Index),
    Duplicate(prop::sample::Index),
    Replace(prop::sample::Index, char),
    Number(prop::sample::Index, &'static str),
}

/// Magic, version and checksum of a saved optimizer.
const HEADER_BYTES: usize = 8 + 2 + 4;

const NUMBERS: [&str; 24] = [
    "0",
    "-0.0",
    "1",
    "-1",
    "2",
    "3",
    "0.1",
    "1e-300",
    "1e300",
    "5e-324",
    "1e-320",
    "1e308",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "1e999",
    "nan",
    "inf",
    "9007199254740992",
    "-9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1000000000000",
];

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let index = any::<prop::sample::Index>;
    let edit = prop_oneof![
        index().prop_map(Edit::Delete),
        index().prop_map(Edit::Duplicate),
        (index(), any::<char>()).prop_map(|(i, c)| Edit::Replace(i, c)),
        (index(), "[0-9a-z\"{}\\[\\]:,.=\n-]".prop_map(|s| s.chars().next().unwrap()))
            .prop_map(|(i, c)| Edit::Replace(i, c)),
        (index(), prop::sample::select(&NUMBERS[..])).prop_map(|(i, n)| Edit::Number(i, n)),
        (index(), prop::sample::select(&NUMBERS[..])).prop_map(|(i, n)| Edit::Number(i, n)),
    ];
    prop::collection::vec(edit, 1..4)
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for edit in edits {
        if text.is_empty() {
            break;
        }
        match edit {
            Edit::Delete(at) => drop(text.remove(at.index(text.len()))),
            Edit::Duplicate(at) => {
                let at = at.index(text.len());
                text.insert(at, text[at]);
            }
            Edit::Replace(at, new) => {
                let at = at.index(text.len());
                text[at] = *new;
            }
            Edit::Number(at, number) => replace_number(&mut text, at, number),
        }
    }
    text.into_iter().collect()
}

/// Replaces a number in the text.
fn replace_number(text: &mut Vec<char>, which: &prop::sample::Index, number: &str) {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e');
    let starts: Vec<usize> = (0..text.len())
        .filter(|&i| text[i].is_ascii_digit() || text[i] == '-')
        .filter(|&i| i == 0 || !is_part(text[i - 1]))
        .collect();
    if !starts.is_empty() {
        let start = starts[which.index(starts.len())];
        let length = text[start..].iter().take_while(|&&c| is_part(c)).count();
        text.splice(start..start + length, number.chars());
    }
}

fn checksummed(mut saved: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&saved[HEADER_BYTES..]);
    saved[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    saved
}

/// Saved runs of every algorithm, with pending candidates.
fn saves() -> Vec<Vec<u8>> {
    let spaces = [
        Space::builder().reals("x", 3, -1.0, 1.0),
        Space::builder().integer("i", 0, 3).categorical("c", ["a", "b", "c"]).boolean("b"),
        (Space::builder().real("x", 0.0, 1.0).log_integer("l", 1, 64))
            .categorical("c", ["a", "b", "c"]),
        Space::builder().integers("i", 3, -(1 << 52), 1 << 52).array(
            "b",
            4,
            racecars::Domain::Boolean,
        ),
    ];
    let mut saves = Vec::new();
    for space in spaces.map(|builder| builder.build().unwrap()) {
        for name in Algorithm::NAMES.iter().chain(&["cma-es(surrogate=true)"]) {
            let algorithm: Algorithm = name.parse().unwrap();
            for steps in [0, 3, 20] {
                let Ok(mut optimizer) = algorithm.optimizer(&space, Some(40), 1) else { continue };
                assert_working(&mut *optimizer, steps);
                optimizer.ask();
                optimizer.ask();
                saves.push(optimizer.save());
            }
        }
    }
    saves
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn arbitrary_text_is_refused_or_a_working_space(text in "\\PC{0,200}") {
        if let Ok(space) = serde_json::from_str::<Space>(&text) {
            assert_searchable(&space);
        }
        if let Ok(space) = toml::from_str::<Space>(&text) {
            assert_searchable(&space);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_work(
        bytes in prop::collection::vec(any::<u8>(), 0..300)
    ) {
        if let Ok(space) = serde_json::from_slice::<Space>(&bytes) {
            assert_searchable(&space);
        }
        prop_assert!(load(&bytes).is_err());
        // With a valid header, so that the bytes reach the decoder.
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        let saved = Algorithm::random().optimizer(&space, None, 1).unwrap().save();
        let headed = [&saved[..HEADER_BYTES], &bytes[..]].concat();
        match load(&checksummed(headed)) {
            Ok(mut optimizer) => assert_working(&mut *optimizer, 20),
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::Saved);
                prop_assert!(!error.to_string().contains("format"), "{}", error);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_damaged_json_file_is_refused_or_a_working_space(space in space(), edits in edits()) {
        let text = edited(&serde_json::to_string(&space).unwrap(), &edits);
        if let Ok(space) = serde_json::from_str::<Space>(&text) {
            assert_searchable(&space);
        }
    }

    #[test]
    fn a_damaged_toml_file_is_refused_or_a_working_space(space in space(), edits in edits()) {
        let text = edited(&toml::to_string(&space).unwrap(), &edits);
        if let Ok(space) = toml::from_str::<Space>(&text) {
            assert_searchable(&space);
        }
    }
}

/// Asserts that the bytes are refused as damaged, or load an optimizer that works.
fn assert_refused_or_working(bytes: &[u8]) {
    match load(bytes) {
        Ok(mut optimizer) => {
            if let Some(best) = optimizer.best() {
                assert!(!best.rank.is_failure());
                assert!(best.rank.value().is_none_or(f64::is_finite));
                optimizer.space().check(best.point).unwrap();
            }
            if optimizer.space().dimension() > 500 {
                return;
            }
            for i in 0..20 {
                let Some(candidate) = optimizer.ask() else { break };
                optimizer.space().check(candidate.point()).unwrap();
                optimizer.tell(candidate, Outcome::from(f64::from(i * 7 % 5))).unwrap();
            }
            let name = optimizer.name();
            let again = load(&optimizer.save()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(again.told(), optimizer.told());
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Saved, "{error}"),
    }
}

#[test]
fn a_truncated_save_is_refused() {
    for save in saves() {
        for length in 0..save.len() {
            assert!(load(&save[..length]).is_err());
            if length >= 14 {
                let error = load(&checksummed(save[..length].to_vec())).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Saved, "{error}");
            }
        }
        let longer = [&save[..], &[0]].concat();
        assert!(load(&longer).is_err());
        assert!(load(&checksummed(longer)).is_err());
    }
}

#[test]
fn a_save_with_a_flipped_bit_is_refused() {
    for save in saves().into_iter().step_by(13) {
        for bit in 0..8 * save.len() {
            let mut damaged = save.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(load(&damaged).err().unwrap().kind(), ErrorKind::Saved);
        }
    }
}

/// The places of each save that are damaged, unless more cases are asked for: a damaged model takes a while to work.
const PLACES: usize = 300;

#[test]
fn a_save_with_a_flipped_bit_and_a_valid_checksum_is_refused_or_works() {
    for save in saves().into_iter().step_by(11) {
        // An odd step comes to every bit of a byte.
        let step = sampled(save.len() / PLACES + 1) | 1;
        for bit in (8 * HEADER_BYTES..8 * save.len()).step_by(step) {
            let mut damaged = save.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_refused_or_working(&checksummed(damaged));
        }
    }
}

/// Bytes are replaced by the longest varint, which encodes the largest numbers.
#[test]
fn a_save_with_a_huge_number_is_refused_or_works() {
    const LARGEST: [u8; 10] = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    for save in saves().into_iter().step_by(11) {
        for place in (HEADER_BYTES..save.len()).step_by(sampled(save.len() / PLACES + 1)) {
            for (length, number) in [(1, &LARGEST[..]), (2, &LARGEST), (10, &LARGEST), (8, &[0])] {
                let end = (place + length).min(save.len());
                let damaged = [&save[..place], number, &save[end..]].concat();
                assert_refused_or_working(&checksummed(damaged));
            }
        }
    }
}

/// Numbers of a state are 8 bytes each. Every 8 bytes are replaced where more cases are asked for, and otherwise
/// at some hundred places of each save.
#[test]
fn a_save_with_a_number_that_is_not_finite_or_extreme_is_refused_or_works() {
    const EXTREMES: [f64; 7] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 0.0, 5e-324];
    for save in saves().into_iter().skip(2).step_by(sampled(7)) {
        let step = sampled(save.len() / PLACES + 1);
        for place in (HEADER_BYTES..save.len() - 7).step_by(step) {
            for number in EXTREMES {
                let mut damaged = save.clone();
                damaged[place..place + 8].copy_from_slice(&number.to_le_bytes());
                assert_refused_or_working(&checksummed(damaged));
            }
        }
    }
}

/// Every `step`-th, or all when more cases are asked for.
fn sampled(step: usize) -> usize {
    if std::env::var_os("PROPTEST_CASES").is_some() { 1 } else { step }
}

/// A generator whose state is all zeros only returns zeros, so rejection sampling would not terminate.
#[test]
fn a_save_with_an_all_zero_random_generator_is_refused() {
    let space = Space::cube(10, 0.0, 1.0).unwrap();
    for name in Algorithm::NAMES {
        let algorithm: Algorithm = name.parse().unwrap();
        let Ok(optimizer) = algorithm.optimizer(&space, None, 1) else { continue };
        let save = optimizer.save();
        // The generator of the seed, after the draws at construction.
        let mut generator = Random::new(1);
        let states = std::iter::repeat_with(|| {
            let state = postcard::to_stdvec(&generator).unwrap();
            generator.bits();
            state
        });
        let found = states.take(100).find_map(|state| {
            let place = save.windows(state.len()).position(|window| window == state)?;
            Some((place, state.len()))
        });
        let (place, length) = found.expect("the generator is saved");
        let dead = [&save[..place], &[0; 4], &save[place + length..]].concat();
        let error = load(&checksummed(dead)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Saved, "{error}");
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn a_save_with_several_wrong_bytes_is_refused_or_works(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let saves = saves_once();
        let mut damaged = saves[which.index(saves.len())].clone();
        for (at, byte) in changes {
            let at = 14 + at.index(damaged.len() - 14);
            damaged[at] = byte;
        }
        assert_refused_or_working(&checksummed(damaged));
    }
}

fn saves_once() -> &'static [Vec<u8>] {
    static SAVES: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
    SAVES.get_or_init(saves)
}

/// The operations of a driver.
#[derive(Debug, Clone)]
enum Operation {
    Ask,
    Tell(prop::sample::Index, Outcome),
    TellAgain(prop::sample::Index),
    TellKnown(u64, Outcome),
    Drop(prop::sample::Index),
    SaveAndLoad,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => (-1e3..1e3f64).prop_map(Outcome::from),
        1 => any::<f64>().prop_map(Outcome::Value),
        1 => any::<f64>().prop_map(|violation| Outcome::Infeasible { violation, value: None }),
        1 => "\\PC{0,9}".prop_map(Outcome::failed),
        1 => Just(Outcome::failure(FailureKind::Timeout, "late")),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => Just(Operation::Ask),
        5 => (index(), outcome()).prop_map(|(i, o)| Operation::Tell(i, o)),
        1 => index().prop_map(Operation::TellAgain),
        1 => (any::<u64>(), outcome()).prop_map(|(seed, o)| Operation::TellKnown(seed, o)),
        1 => index().prop_map(Operation::Drop),
        1 => Just(Operation::SaveAndLoad),
    ]
}

/// The expected state of any optimizer.
#[derive(Default)]
struct Model {
    told: u64,
    pending: usize,
    best: Option<Rank>,
}

impl Model {
    fn learn(&mut self, outcome: &Outcome) {
        self.told += 1;
        let rank = outcome.rank();
        if !rank.is_failure() {
            self.best = Some(self.best.map_or(rank, |best| best.min(rank)));
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn counts_and_best_are_right_after_any_sequence_of_operations(
        space in space(),
        name in prop::sample::select(Algorithm::NAMES),
        budget in prop::option::of(1u64..200),
        seed: u64,
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let algorithm: Algorithm = name.parse().unwrap();
        let Ok(mut optimizer) = algorithm.optimizer(&space, budget, seed) else { return Ok(()) };
        let (mut out, mut done) = (Vec::<Candidate>::new(), Vec::<Candidate>::new());
        let mut model = Model::default();
        for operation in operations {
            match operation {
                Operation::Ask => match optimizer.ask() {
                    Some(candidate) => {
                        space.check(candidate.point()).unwrap();
                        model.pending += 1;
                        out.push(candidate);
                    }
                    None => prop_assert!(space.is_discrete()),
                },
                Operation::Tell(which, outcome) if !out.is_empty() => {
                    let candidate = out.swap_remove(which.index(out.len()));
                    done.push(candidate.clone());
                    model.learn(&outcome);
                    model.pending -= 1;
                    optimizer.tell(candidate, outcome).unwrap();
                }
                Operation::TellAgain(which) if !done.is_empty() => {
                    let candidate = done[which.index(done.len())].clone();
                    let error = optimizer.tell(candidate, Outcome::from(-1e9)).unwrap_err();
                    prop_assert_eq!(error.kind(), ErrorKind::Repeated);
                }
                Operation::TellKnown(seed, outcome) => {
                    let mut point = vec![0.0; space.dimension()];
                    space.draw(&mut Random::new(seed), &mut point);
                    model.learn(&outcome);
                    optimizer.tell(Candidate::known(point), outcome).unwrap();
                }
                Operation::Drop(which) if !out.is_empty() => {
                    out.swap_remove(which.index(out.len()));
                }
                Operation::SaveAndLoad => optimizer = load(&optimizer.save()).unwrap(),
                _ => {}
            }
            prop_assert_eq!(optimizer.told(), model.told);
            prop_assert_eq!(optimizer.pending(), model.pending);
            prop_assert_eq!(optimizer.best().map(|best| best.rank), model.best);
        }
    }
}
