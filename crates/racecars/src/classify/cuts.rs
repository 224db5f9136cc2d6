//! The learned box: the part of each axis that it covers, for the few coordinates in which it is smaller than the space.

use crate::space::{Axis, Interval};

/// The part of an axis that a box covers.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) index: usize,
    /// The remaining part of a continuous or ordered axis.
    pub(super) interval: Interval,
    /// Whether an unordered axis is restricted to x+'s value.
    pub(super) is_fixed: bool,
}

/// The cuts of a box, at most one per coordinate, in the order in which they were made. They are looked up by coordinate
/// without a search, whose branches nobody predicts.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    cuts: Vec<Cut>,
    /// By coordinate: the box that a cut belongs to, and the place of the cut.
    places: Vec<(u32, u32)>,
    /// The number of boxes before this one.
    boxes: u32,
}

impl Cuts {
    /// Starts a box that is the whole space.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.cuts.clear();
        self.boxes = self.boxes.wrapping_add(1);
        if self.boxes == 0 {
            self.places.clear();
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Cut> {
        // Coordinates without a cut have box 0.
        let &(of, place) = self.places.get(index)?;
        (of == self.boxes && of > 0).then(|| &self.cuts[place as usize])
    }

    /// Whether coordinate `index` is restricted to x+'s value.
    #[inline]
    pub(super) fn fixes(&self, index: usize) -> bool {
        self.get(index).is_some_and(|cut| cut.is_fixed)
    }

    /// The cut of coordinate `index`; a new one spans the whole axis.
    #[inline]
    pub(super) fn at(&mut self, index: usize, axis: Axis) -> &mut Cut {
        if index >= self.places.len() {
            self.places.resize((index + 1).next_power_of_two(), (0, 0));
        }
        let (of, place) = &mut self.places[index];
        if *of != self.boxes || *of == 0 {
            (*of, *place) = (self.boxes, self.cuts.len() as u32);
            self.cuts.push(Cut { index, interval: axis.extent(), is_fixed: false });
        }
        &mut self.cuts[*place as usize]
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Cut> {
        self.cuts.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_those_since_the_box_began() {
        let axis = Axis::Unordered { last: 4.0 };
        let mut cuts = Cuts::default();
        for _ in 0..3 {
            cuts.clear();
            assert!(cuts.get(2).is_none() && !cuts.fixes(7));
            cuts.at(7, axis).is_fixed = true;
            cuts.at(2, axis).interval.high = 1.0;
            cuts.at(2, axis).interval.low = 1.0;
            assert!(cuts.fixes(7) && !cuts.fixes(2) && cuts.get(1).is_none());
            assert!(cuts.iter().map(|cut| cut.index).eq([7, 2]));
            assert_eq!(cuts.get(2).unwrap().interval, Interval { low: 1.0, high: 1.0 });
        }
    }
}
