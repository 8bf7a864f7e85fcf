//! Strided reads and writes: an array in another order, as extents and steps of positions.

use crate::formats::MAX_RANK;
use std::ops::AddAssign;

/// The largest number of axes: an axis that is repeated counts twice.
const AXES: usize = 2 * MAX_RANK;

/// For each axis of a result, its extent and by how much the position in the source grows along it.
///
/// Axes of one element are left out, and neighbours that lie as one axis would are merged, so that
/// a run (the last axis) is as long as it can be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided {
    start: isize,
    extents: [usize; AXES],
    steps: [isize; AXES],
    rank: usize,
}

impl Strided {
    /// One element, at a position of the source.
    pub(crate) fn at(start: usize) -> Self {
        Strided { start: start as isize, extents: [1; AXES], steps: [0; AXES], rank: 0 }
    }

    /// One more axis, inside of those before.
    #[must_use]
    pub(crate) fn axis(mut self, extent: usize, step: isize) -> Self {
        if extent == 1 {
            return self;
        }
        if self.rank > 0 {
            let last = self.rank - 1;
            if self.steps[last] == step * extent as isize {
                self.extents[last] *= extent;
                self.steps[last] = step;
                return self;
            }
        }
        self.extents[self.rank] = extent;
        self.steps[self.rank] = step;
        self.rank += 1;
        self
    }

    /// The number of elements.
    pub(crate) fn size(&self) -> usize {
        self.extents[..self.rank].iter().product()
    }

    /// Calls `visit` with each position of the result where a run starts, and that of the source; a
    /// run is the last axis.
    #[inline]
    fn for_each_run(&self, mut visit: impl FnMut(usize, isize)) {
        if self.extents[..self.rank].contains(&0) {
            return;
        }
        let outer = self.rank.saturating_sub(1);
        let run = self.run();
        let (mut target, mut source, mut index) = (0, self.start, [0; AXES]);
        loop {
            visit(target, source);
            target += run;
            // Counting up the index, the last axis first.
            let mut axis = outer;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                source += self.steps[axis];
                if index[axis] < self.extents[axis] {
                    break;
                }
                index[axis] = 0;
                source -= self.steps[axis] * self.extents[axis] as isize;
            }
        }
    }

    /// As the `strided` of the kernels of a GPU: where it starts, extents and steps, outermost
    /// first.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> [u64; 1 + 2 * AXES] {
        let mut numbers = [0; 1 + 2 * AXES];
        numbers[0] = self.start as u64;
        for axis in 0..self.rank {
            numbers[1 + axis] = self.extents[axis] as u64;
            numbers[1 + AXES + axis] = self.steps[axis] as u64;
        }
        numbers
    }

    /// The number of axes, at least 1: of one element there are none.
    #[cfg(feature = "cuda")]
    pub(crate) fn axes(&self) -> usize {
        self.rank.max(1)
    }

    /// The axes along which elements of the source are not repeated, and those along which they
    /// are, as positions in the result.
    #[cfg(feature = "cuda")]
    pub(crate) fn kept_and_repeated(&self) -> [Self; 2] {
        let mut step = 1;
        let mut of_result = [0; AXES];
        for axis in (0..self.rank).rev() {
            of_result[axis] = step;
            step *= self.extents[axis] as isize;
        }
        [false, true].map(|repeated| {
            let axes = (0..self.rank).filter(|axis| (self.steps[*axis] == 0) == repeated);
            axes.fold(Strided::at(0), |of, axis| of.axis(self.extents[axis], of_result[axis]))
        })
    }

    fn run(&self) -> usize {
        if self.rank == 0 { 1 } else { self.extents[self.rank - 1] }
    }

    fn step(&self) -> isize {
        if self.rank == 0 { 1 } else { self.steps[self.rank - 1] }
    }

    /// Copies the elements: `target` is the result, row major.
    pub(crate) fn gather<T: Copy>(&self, target: &mut [T], source: &[T]) {
        let (run, step) = (self.run(), self.step());
        self.for_each_run(|to, from| {
            let target = &mut target[to..to + run];
            match step {
                0 => target.fill(source[from as usize]),
                1 => target.copy_from_slice(&source[from as usize..from as usize + run]),
                step => {
                    for (index, target) in target.iter_mut().enumerate() {
                        *target = source[(from + index as isize * step) as usize];
                    }
                }
            }
        });
    }

    /// The other way: adds the elements of `result` to where each came from. One that was repeated
    /// is a sum, which belongs into the accumulator.
    pub(crate) fn scatter<T: Copy, S: AddAssign>(
        &self,
        source: &mut [S],
        result: &[T],
        widen: impl Fn(T) -> S,
    ) {
        let (run, step) = (self.run(), self.step());
        self.for_each_run(|to, from| {
            let result = &result[to..to + run];
            for (index, value) in result.iter().enumerate() {
                source[(from + index as isize * step) as usize] += widen(*value);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(strided: Strided, source: &[u32]) -> Vec<u32> {
        let mut target = vec![99; strided.size()];
        strided.gather(&mut target, source);
        target
    }

    #[test]
    fn orders() {
        let source: Vec<u32> = (0..12).collect();
        let whole = Strided::at(0).axis(3, 4).axis(4, 1);
        assert_eq!((whole.rank, gathered(whole, &source)), (1, source.clone()));
        let transposed = Strided::at(0).axis(4, 1).axis(3, 4);
        assert_eq!(gathered(transposed, &source), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        let reversed = Strided::at(11).axis(3, -4).axis(4, -1);
        assert_eq!(gathered(reversed, &source)[..3], [11, 10, 9]);
        let repeated = Strided::at(4).axis(2, 1).axis(2, 0);
        assert_eq!(gathered(repeated, &source), [4, 4, 5, 5]);
        assert_eq!(gathered(Strided::at(7), &source), [7]);
        assert_eq!(gathered(Strided::at(0).axis(2, 4).axis(0, 1).axis(2, 1), &source), [0u32; 0]);
    }

    #[test]
    fn scattering_adds_what_was_repeated() {
        let mut source = [0; 3];
        Strided::at(0).axis(2, 0).axis(3, 1).scatter(&mut source, &[1, 2, 3, 10, 20, 30], |x| x);
        assert_eq!(source, [11, 22, 33]);
        Strided::at(2).scatter(&mut source, &[5], |x| x);
        assert_eq!(source, [11, 22, 38]);
    }
}
