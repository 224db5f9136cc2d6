//! The session's promises, whatever shell is around it: order, stop rules, targets under noise, known and
//! start points, resumption, replay.

#![allow(clippy::unwrap_used, clippy::panic)]

use racecars::random::Random;
use racecars::{
    Algorithm, Auto, Counts, Direction, ErrorKind, Flow, Next, Noise, Optimizer, Order, Outcome,
    Session, Space, StopReason, StopRules, Trial, Workers, load, minimize,
};
use std::time::Duration;

fn space() -> Space {
    Space::cube(4, -5.0, 5.0).unwrap()
}

fn sphere(point: &[f64]) -> f64 {
    point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum()
}

fn optimizer(name: &str, budget: u64) -> Box<dyn Optimizer> {
    name.parse::<Algorithm>().unwrap().optimizer(&space(), Some(budget), 3).unwrap()
}

fn rules(set: impl FnOnce(&mut StopRules)) -> StopRules {
    let mut rules = StopRules::default();
    set(&mut rules);
    rules
}

fn in_order(lookahead: u64, budget: u64) -> Session {
    let mut session = Session::new(optimizer("auto", budget), Direction::Minimize);
    session.set_order(Order::InOrder { lookahead }).unwrap();
    session.set_rules(rules(|rules| rules.evaluations = Some(budget))).unwrap();
    session
}

/// Takes all trials that may be evaluated now.
fn take_all(session: &mut Session, out: &mut Vec<Trial>) -> Next {
    loop {
        match session.next(Duration::ZERO).unwrap() {
            Next::Evaluate(trial) => out.push(trial),
            other => return other,
        }
    }
}

/// Runs to the end, `workers` at a time, of which a random one is done first. Returns the points in the
/// order asked.
fn shuffled(mut session: Session, workers: usize, seed: u64) -> (Vec<Vec<f64>>, Session) {
    let mut random = Random::new(seed);
    let (mut out, mut points): (Vec<Trial>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    loop {
        let known = out.len();
        let next = take_all(&mut session, &mut out);
        points.extend(out[known..].iter().map(|trial| trial.point().to_vec()));
        if matches!(next, Next::Stop(_)) {
            return (points, session);
        }
        let trial = out.swap_remove(random.index(out.len().min(workers)));
        let value = sphere(trial.point());
        session.tell(trial, value).unwrap();
    }
}

#[test]
fn in_order_the_points_do_not_depend_on_which_outcome_comes_first() {
    let (points, session) = shuffled(in_order(8, 300), 1, 1);
    assert_eq!(points.len(), 300);
    assert_eq!(session.counts().evaluations, 300);
    for (workers, seed) in [(2, 2), (4, 3), (8, 4)] {
        let (others, other) = shuffled(in_order(8, 300), workers, seed);
        assert!(points == others, "{workers} workers");
        assert_eq!(session.history(), other.history());
        assert_eq!(session.best_trial(), other.best_trial());
    }
    // As `Run::run_on` has them.
    let mut seen = Vec::new();
    minimize(&space())
        .budget(300)
        .seed(3)
        .observe(|progress| {
            seen.push(progress.point.coordinates().to_vec());
            Flow::Continue
        })
        .run_on(Workers::Deterministic { threads: 3, lookahead: 8 }, |point| {
            sphere(point.coordinates())
        })
        .unwrap();
    assert!(points == seen);
}

/// A line of a journal.
enum Line {
    Ask { point: Vec<f64>, told: u64 },
    Tell { trial: u64, value: f64 },
}

#[test]
fn a_session_replays_from_its_asks_and_tells() {
    let mut session = in_order(5, 120);
    let mut random = Random::new(9);
    let mut journal = Vec::new();
    let mut out: Vec<Trial> = Vec::new();
    loop {
        match session.next(Duration::ZERO).unwrap() {
            Next::Evaluate(trial) => {
                let (point, told) = (trial.point().to_vec(), session.counts().evaluations);
                journal.push(Line::Ask { point, told });
                out.push(trial);
            }
            Next::Stop(reason) => break assert_eq!(reason, StopReason::Evaluations),
            _ => {
                let trial = out.swap_remove(random.index(out.len()));
                let value = sphere(trial.point());
                journal.push(Line::Tell { trial: trial.number(), value });
                session.tell(trial, value).unwrap();
            }
        }
    }
    let mut replay = in_order(5, 120);
    replay.set_rules(StopRules::default()).unwrap();
    let mut out: Vec<Trial> = Vec::new();
    for line in journal {
        match line {
            Line::Ask { point, told } => {
                let trial = replay.replay_ask(Some(told)).unwrap().unwrap();
                assert_eq!(trial.point(), point);
                out.push(trial);
            }
            Line::Tell { trial, value } => {
                let place = out.iter().position(|out| out.number() == trial).unwrap();
                replay.tell(out.swap_remove(place), value).unwrap();
            }
        }
    }
    replay.set_rules(rules(|rules| rules.evaluations = Some(120))).unwrap();
    assert_eq!(replay.next(Duration::ZERO).unwrap(), Next::Stop(StopReason::Evaluations));
    assert_eq!(session.optimizer().save(), replay.optimizer().save());
    assert_eq!((session.history(), session.best_trial()), (replay.history(), replay.best_trial()));
    let error = replay.replay_ask(Some(500)).unwrap_err();
    assert!(error.to_string().contains("outcome of trial 120, which is missing"), "{error}");
}

#[test]
fn a_resumed_session_goes_on_as_if_it_had_not_stopped() {
    let (whole, _) = shuffled(in_order(4, 200), 3, 5);
    let mut session = in_order(4, 200);
    let (mut points, mut out) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        take_all(&mut session, &mut out);
        let trial: Trial = out.remove(0);
        points.push(trial.point().to_vec());
        let value = sphere(trial.point());
        session.tell(trial, value).unwrap();
    }
    take_all(&mut session, &mut out);
    // The outcome of trial 102 has come in, but 100 and 101 are told first.
    let trial = out.remove(2);
    session.tell(trial, 0.0).unwrap();
    let counts: Counts = session.counts();
    let mut pending: Vec<&Trial> = out.iter().chain(session.incoming()).collect();
    pending.sort_by_key(|trial| trial.number());
    let pending: Vec<_> = pending.iter().map(|trial| trial.candidate().clone()).collect();
    assert_eq!(session.queued().count(), 0);
    assert_eq!((counts.evaluations, pending.len()), (100, 4));
    let restored = load(&session.optimizer().save()).unwrap();
    let mut session = Session::new(restored, Direction::Minimize);
    session.set_order(Order::InOrder { lookahead: 4 }).unwrap();
    session.set_rules(rules(|rules| rules.evaluations = Some(200))).unwrap();
    session.resume(counts, pending).unwrap();
    assert_eq!(session.queued().count(), 4);
    let (rest, session) = shuffled(session, 2, 8);
    points.extend(rest);
    assert!(points == whole);
    assert_eq!(session.counts().evaluations, 200);
}

#[test]
fn a_lucky_value_is_not_the_target() {
    let noisy = |noise: Noise, seed: u64| {
        let mut random = Random::new(seed);
        minimize(&space())
            .algorithm(Algorithm::Auto(Auto::default().noise(noise)))
            .budget(1500)
            .seed(seed)
            .target(-1.0)
            .run(|point| sphere(point.coordinates()) + random.normal())
            .unwrap()
    };
    // No point is better than 0, and the noise has deviation 1.
    for seed in 0..8 {
        for noise in [Noise::Yes, Noise::Detect] {
            let solution = noisy(noise, seed);
            assert_eq!(solution.stop(), StopReason::Evaluations, "seed {seed}: {solution}");
            assert!(solution.best_evaluations() > 1);
        }
        // Who does not know of the noise takes the value for what it is.
        assert_eq!(noisy(Noise::No, seed).stop(), StopReason::Target);
    }
    // A target that can be reached is reached, by a mean.
    let mut random = Random::new(1);
    let mut told = (0, 0.0);
    let solution = minimize(&space())
        .algorithm(Algorithm::Auto(Auto::default().noise(Noise::Yes)))
        .budget(3000)
        .target(1.0)
        .observe(|progress| {
            told = (progress.best_evaluations, progress.best.unwrap());
            Flow::Continue
        })
        .run(|point| sphere(point.coordinates()) + 0.5 * random.normal())
        .unwrap();
    assert_eq!(solution.stop(), StopReason::Target);
    assert!(solution.best_evaluations() >= StopRules::NOISY_TARGET_EVALUATIONS);
    assert_eq!(told, (solution.best_evaluations(), solution.value().unwrap()));
}

#[test]
fn known_points_are_no_evaluations_and_start_points_are() {
    let mut session = Session::new(optimizer("race-cars", 20), Direction::Maximize);
    session.known(vec![1.0; 4], 7.0).unwrap();
    session.start(vec![2.0; 4]).unwrap();
    session.set_rules(rules(|rules| rules.evaluations = Some(3))).unwrap();
    assert_eq!((session.value(), session.best_trial()), (Some(7.0), None));
    let mut out = Vec::new();
    take_all(&mut session, &mut out);
    assert_eq!(out.iter().map(Trial::number).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(out[0].point(), [2.0; 4]);
    assert!(session.known(vec![9.0; 4], 1.0).is_err() && session.start(vec![9.0; 4]).is_err());
    for (trial, outcome) in out.into_iter().zip([9.0.into(), Outcome::infeasible(1.0), 8.0.into()])
    {
        session.tell(trial, outcome).unwrap();
    }
    assert_eq!(session.next(Duration::ZERO).unwrap(), Next::Stop(StopReason::Evaluations));
    assert_eq!((session.value(), session.best_trial()), (Some(9.0), Some(0)));
    assert_eq!(session.history().improvements(), [(0, 7.0), (1, 9.0)]);
    let counts = session.counts();
    assert_eq!((counts.evaluations, counts.infeasible, counts.failures), (3, 1, 0));
}

#[test]
fn a_point_can_become_known_amid_a_session_and_be_the_best() {
    let mut session = Session::new(optimizer("race-cars", 20), Direction::Minimize);
    session.set_rules(rules(|rules| rules.patience = Some(3))).unwrap();
    let tell = |session: &mut Session, value: f64| {
        let Next::Evaluate(trial) = session.next(Duration::ZERO).unwrap() else {
            panic!("stopped")
        };
        session.tell(trial, value).unwrap();
    };
    tell(&mut session, 5.0);
    tell(&mut session, 6.0);
    session.known(vec![1.0; 4], 2.0).unwrap();
    assert_eq!((session.value(), session.best_trial()), (Some(2.0), None));
    assert_eq!((session.counts().evaluations, session.counts().improved_at), (2, 2));
    tell(&mut session, 3.0);
    tell(&mut session, 1.0);
    assert_eq!((session.value(), session.best_trial()), (Some(1.0), Some(3)));
    session.known(vec![2.0; 4], 4.0).unwrap();
    assert_eq!(session.best_trial(), Some(3));
}

#[test]
fn points_that_become_known_suit_every_algorithm_and_replay() {
    enum Event {
        Ask(Vec<f64>),
        Tell(u64, f64),
        Known(Vec<f64>, f64, u64),
    }
    let (lookahead, budget) = (3, 60);
    let mut names: Vec<String> = Algorithm::NAMES.iter().map(ToString::to_string).collect();
    names.extend(["auto(noise=yes)", "auto(noise=no)"].map(String::from));
    for name in names {
        let Ok(algorithm) = name.parse::<Algorithm>() else { continue };
        let open = || {
            let optimizer = algorithm.optimizer(&space(), Some(budget), 3).ok()?;
            let mut session = Session::new(optimizer, Direction::Minimize);
            session.set_order(Order::InOrder { lookahead }).unwrap();
            Some(session)
        };
        let Some(mut session) = open() else { continue };
        session.set_rules(rules(|rules| rules.evaluations = Some(budget))).unwrap();
        let (mut random, mut events, mut out) = (Random::new(5), Vec::new(), Vec::<Trial>::new());
        loop {
            match session.next(Duration::ZERO).unwrap() {
                Next::Evaluate(trial) => {
                    events.push(Event::Ask(trial.point().to_vec()));
                    out.push(trial);
                }
                Next::Stop(_) => break,
                _ => {
                    let trial = out.swap_remove(random.index(out.len()));
                    let value = sphere(trial.point()) + random.normal();
                    events.push(Event::Tell(trial.number(), value));
                    session.tell(trial, value).unwrap();
                }
            }
            if random.index(5) == 0 {
                let mut point = vec![0.0; 4];
                space().draw(&mut random, &mut point);
                let (value, told) = (sphere(&point) / 3.0, session.counts().evaluations);
                session.known(point.clone(), value).unwrap();
                events.push(Event::Known(point, value, told));
            }
        }
        assert_eq!(session.counts().evaluations, budget, "{name}");
        let mut replayed = open().unwrap();
        for event in events {
            match event {
                Event::Ask(point) => {
                    let trial = replayed.replay_ask(None).unwrap().unwrap();
                    assert_eq!(trial.point(), point, "{name}");
                    out.push(trial);
                }
                Event::Tell(number, value) => {
                    let place = out.iter().position(|trial| trial.number() == number).unwrap();
                    replayed.tell(out.remove(place), value).unwrap();
                }
                Event::Known(point, value, told) => {
                    replayed.replay_tells(Some(told)).unwrap();
                    replayed.known(point, value).unwrap();
                }
            }
        }
        replayed.settle().unwrap();
        assert_eq!(replayed.counts(), session.counts(), "{name}");
        assert_eq!(
            (replayed.value(), replayed.best_trial()),
            (session.value(), session.best_trial())
        );
    }
}

#[test]
fn patience_does_not_count_improvements_below_the_tolerance_until_they_add_up() {
    let values = [10.0, 9.5, 9.0, 8.9, 8.8, 8.7, 8.6, 8.5];
    let run = |tolerance: f64, sign: f64| {
        let direction = if sign > 0.0 { Direction::Minimize } else { Direction::Maximize };
        let mut session = Session::new(optimizer("race-cars", 20), direction);
        let set = |rules: &mut StopRules| {
            (rules.patience, rules.patience_tolerance) = (Some(3), tolerance);
        };
        session.set_rules(rules(set)).unwrap();
        for value in values {
            let Next::Evaluate(trial) = session.next(Duration::ZERO).unwrap() else { break };
            session.tell(trial, sign * value).unwrap();
        }
        session
    };
    for sign in [1.0, -1.0] {
        let evaluations = |tolerance| run(tolerance, sign).counts().evaluations;
        assert_eq!(evaluations(0.0), 8);
        // 9.0 is the last that is better by 1 than what counted before.
        assert_eq!(evaluations(1.0), 6);
        assert_eq!(evaluations(0.25), 8);
        assert_eq!(evaluations(100.0), 4);
        // Another tolerance counts anew.
        let mut session = run(0.0, sign);
        let set = |rules: &mut StopRules| {
            (rules.patience, rules.patience_tolerance) = (Some(5), 1.0);
        };
        session.set_rules(rules(set)).unwrap();
        assert_eq!(session.stop_reason(), Some(StopReason::NoImprovement));
    }
    let mut session = run(0.0, 1.0);
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let error = session.set_rules(rules(|rules| rules.patience_tolerance = wrong)).unwrap_err();
        assert!(error.to_string().contains("at least 0"), "{error}");
    }
}

#[test]
fn a_stopped_session_waits_for_what_is_out_and_goes_on_under_other_rules() {
    let mut session = in_order(3, 100);
    let mut out = Vec::new();
    assert_eq!(take_all(&mut session, &mut out), Next::Wait);
    session.stop(StopReason::Interrupted);
    session.stop(StopReason::Observer);
    for left in [2, 1, 0] {
        session.tell(out.pop().unwrap(), 1.0).unwrap();
        assert_eq!(session.out(), left);
        let next = session.next(Duration::ZERO).unwrap();
        assert_eq!(next == Next::Wait, left > 0);
    }
    assert_eq!(session.stop_reason(), Some(StopReason::Interrupted));
    assert_eq!(session.counts().evaluations, 3);
    session.set_rules(rules(|rules| rules.time = Some(Duration::from_secs(1)))).unwrap();
    assert!(matches!(session.next(Duration::ZERO).unwrap(), Next::Evaluate(_)));
    assert_eq!(session.next(Duration::from_secs(1)).unwrap(), Next::Wait);
    assert_eq!(session.stop_reason(), Some(StopReason::Time));
}

#[test]
fn trials_of_other_sessions_are_refused() {
    let mut session = in_order(3, 100);
    let mut other = in_order(3, 100);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    take_all(&mut session, &mut ours);
    take_all(&mut other, &mut theirs);
    let error =
        session.tell(theirs.pop().unwrap(), 1.0).and(session.tell(ours.pop().unwrap(), 1.0));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Repeated);
    let mut fresh = in_order(3, 100);
    assert_eq!(fresh.tell(theirs.pop().unwrap(), 1.0).unwrap_err().kind(), ErrorKind::Unasked);
}
