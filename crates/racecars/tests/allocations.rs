//! In steady state, asking and telling allocate nothing: buffers of points are reused.
#![allow(unsafe_code, clippy::unwrap_used)]

use racecars::{
    Algorithm, Candidate, Direction, Domain, Next, Optimizer, Order, Outcome, Session, Space, Trial,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

/// The system allocator, with a count of allocations per thread.
struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    // Fails only while the thread is being destroyed.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// Keeps `workers` candidates pending: whenever one is told, the next is asked.
fn run(optimizer: &mut dyn Optimizer, out: &mut VecDeque<Candidate>, workers: usize, steps: usize) {
    for _ in 0..steps {
        while out.len() < workers {
            out.push_back(optimizer.ask().unwrap());
        }
        let candidate = out.pop_front().unwrap();
        let value = candidate.point().iter().map(|x| x * x).sum();
        optimizer.tell(candidate, Outcome::Value(value)).unwrap();
    }
}

fn assert_steady(algorithm: &Algorithm, workers: usize) {
    let space = Space::cube(500, -1.0, 1.0).unwrap();
    let mut optimizer = algorithm.optimizer(&space, Some(7000), 1).unwrap();
    let mut out = VecDeque::with_capacity(workers);
    run(&mut *optimizer, &mut out, workers, 2000);
    let before = allocations();
    run(&mut *optimizer, &mut out, workers, 5000);
    assert_eq!(allocations() - before, 0, "{algorithm}, {workers} pending candidates");
}

#[test]
fn allocations_are_counted() {
    let before = allocations();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(allocations() - before, 1);
}

#[test]
fn steady_sracos_allocates_nothing() {
    assert_steady(&Algorithm::sracos(), 1);
}

#[test]
fn steady_race_cars_allocates_nothing() {
    assert_steady(&Algorithm::race_cars(), 1);
}

#[test]
fn steady_random_search_allocates_nothing() {
    assert_steady(&Algorithm::random(), 1);
}

#[test]
fn many_pending_candidates_allocate_nothing() {
    assert_steady(&Algorithm::sracos(), 8);
    assert_steady(&Algorithm::race_cars(), 8);
    assert_steady(&Algorithm::random(), 8);
}

#[test]
fn in_discrete_spaces_only_the_record_of_seen_points_grows() {
    let bits = || Space::builder().array("b", 100, Domain::Boolean);
    let colours = Domain::categorical(["red", "green", "blue"]);
    let mixed = Space::builder().reals("x", 100, -1.0, 1.0).integers("i", 100, -9, 9);
    for builder in [
        bits(),
        Space::builder().integers("i", 400, -9, 9),
        mixed.array("c", 100, colours).array("b", 100, Domain::Boolean),
    ] {
        let space = builder.build().unwrap();
        for algorithm in [Algorithm::sracos(), Algorithm::race_cars()] {
            let mut optimizer = algorithm.optimizer(&space, Some(7000), 1).unwrap();
            let mut out = VecDeque::with_capacity(1);
            run(&mut *optimizer, &mut out, 1, 2000);
            let before = allocations();
            run(&mut *optimizer, &mut out, 1, 5000);
            // By doubling, from 2000 points to 7000.
            assert!(allocations() - before <= 2, "{algorithm}");
        }
    }
}

fn run_session(session: &mut Session, out: &mut VecDeque<Trial>, workers: usize, steps: usize) {
    for _ in 0..steps {
        while out.len() < workers
            && let Next::Evaluate(trial) = session.next(Duration::ZERO).unwrap()
        {
            out.push_back(trial);
        }
        let trial = out.pop_front().unwrap();
        let value: f64 = trial.point().iter().map(|x| x * x).sum();
        session.tell(trial, value).unwrap();
    }
}

#[test]
fn a_steady_session_allocates_nothing() {
    let space = Space::cube(500, -1.0, 1.0).unwrap();
    for (order, workers) in
        [(Order::AsTheyCome, 1), (Order::AsTheyCome, 8), (Order::InOrder { lookahead: 8 }, 8)]
    {
        let optimizer = Algorithm::race_cars().optimizer(&space, Some(7000), 1).unwrap();
        let mut session = Session::new(optimizer, Direction::Maximize);
        session.set_order(order).unwrap();
        let mut out = VecDeque::with_capacity(workers);
        run_session(&mut session, &mut out, workers, 2000);
        let (before, improvements) = (allocations(), session.history().improvements().len());
        run_session(&mut session, &mut out, workers, 5000);
        // Only the history grows, by doubling.
        let grown = session.history().improvements().len().ilog2() - improvements.ilog2();
        assert!(allocations() - before <= u64::from(grown) + 1, "{order:?}");
    }
}
