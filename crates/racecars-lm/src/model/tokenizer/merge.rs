//! Merging neighbouring symbols of a text, the first in rank first and, of equal ones, the leftmost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Symbols, in a list that is linked in both directions. They begin as characters.
struct Symbols {
    /// Where each begins and ends; empty if it was merged into the one before.
    places: Vec<(usize, usize)>,
    previous: Vec<Option<usize>>,
    next: Vec<Option<usize>>,
}

/// The parts of a text after all merges. `rank` gets where a pair begins, where its second symbol does, and
/// where it ends, and returns `None` if it is not to be merged.
pub(super) fn merge(
    text: &str,
    rank: impl Fn(usize, usize, usize) -> Option<i64>,
) -> impl Iterator<Item = &str> {
    let places: Vec<_> = text.char_indices().map(|(at, char)| (at, at + char.len_utf8())).collect();
    let count = places.len();
    let previous = (0..count).map(|i| i.checked_sub(1)).collect();
    let next = (0..count).map(|i| Some(i + 1).filter(|i| *i < count)).collect();
    let mut symbols = Symbols { places, previous, next };
    let mut queue = BinaryHeap::new();
    let push = |queue: &mut BinaryHeap<_>, symbols: &Symbols, left: usize| {
        if let Some(right) = symbols.next[left] {
            let ((at, middle), (_, end)) = (symbols.places[left], symbols.places[right]);
            if let Some(rank) = rank(at, middle, end) {
                queue.push(Reverse((rank, left, middle, end)));
            }
        }
    };
    for i in 0..count {
        push(&mut queue, &symbols, i);
    }
    while let Some(Reverse((_, left, middle, end))) = queue.pop() {
        let Some(right) = symbols.next[left] else { continue };
        // One of the pair may have been merged with another since.
        if symbols.places[left].1 != middle || symbols.places[right].1 != end {
            continue;
        }
        symbols.places[left].1 = end;
        symbols.places[right] = (end, end);
        symbols.next[left] = symbols.next[right];
        symbols.next[right] = None;
        if let Some(after) = symbols.next[left] {
            symbols.previous[after] = Some(left);
        }
        if let Some(before) = symbols.previous[left] {
            push(&mut queue, &symbols, before);
        }
        push(&mut queue, &symbols, left);
    }
    symbols.places.into_iter().filter(|(at, end)| at < end).map(|(at, end)| &text[at..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::random::Random;

    /// Against the definition: as long as there is a pair with a rank, merge the leftmost of the lowest rank.
    #[test]
    fn merges_follow_the_definition() {
        let mut random = Random::new(5);
        for _ in 0..300 {
            let ranks: Vec<(String, i64)> = (0..12)
                .map(|_| {
                    let length = 2 + random.index(4);
                    let letter = |_| ['a', 'b', 'é'][random.index(3)];
                    ((0..length).map(letter).collect(), random.index(6) as i64)
                })
                .collect();
            let rank = |pair: &str| ranks.iter().find(|(text, _)| text == pair).map(|(_, r)| *r);
            let text: String =
                (0..random.index(20)).map(|_| ['a', 'b', 'é'][random.index(3)]).collect();
            let mut parts: Vec<String> = text.chars().map(String::from).collect();
            let best = |parts: &[String]| {
                let pairs = parts.windows(2).enumerate();
                pairs.filter_map(|(i, pair)| Some((rank(&pair.concat())?, i))).min()
            };
            while let Some((_, i)) = best(&parts) {
                let right = parts.remove(i + 1);
                parts[i] += &right;
            }
            let merged: Vec<&str> = merge(&text, |at, _, end| rank(&text[at..end])).collect();
            assert_eq!(merged, parts, "{text} {ranks:?}");
        }
    }
}
