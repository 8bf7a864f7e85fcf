//! A list that lies on the stack where it is short.

/// The elements that lie on the stack.
const FEW: usize = 8;

/// A list that lies on the stack where it is short.
pub(super) struct Few<V> {
    first: [Option<V>; FEW],
    rest: Vec<V>,
    len: usize,
}

impl<V> Few<V> {
    pub(super) fn new() -> Self {
        Few { first: [const { None }; FEW], rest: Vec::new(), len: 0 }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, value: V) {
        match self.first.get_mut(self.len) {
            Some(place) => *place = Some(value),
            None => self.rest.push(value),
        }
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut V> {
        match self.first.get_mut(place) {
            Some(value) => value.as_mut(),
            None => self.rest.get_mut(place - FEW),
        }
    }
}
