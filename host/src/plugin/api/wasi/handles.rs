//! What a guest holds of WASI's: a table with an end, so that it can't make the host remember without one.

use wasmtime::component::Resource;
use wasmtime::{Error, Result};

/// At once.
const MOST: usize = 1_000;

/// What is behind a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handle {
    /// The standard input, which is at its end.
    Input,
    /// The standard output.
    Output,
    /// The standard error output.
    Errors,
    /// A network in which nothing can be reached.
    Network,
    /// This time of the monotonic clock, to wait for.
    Due(u64),
}

impl Handle {
    /// When whoever waits for it need not wait any longer.
    pub(super) fn due(self) -> u64 {
        if let Self::Due(when) = self { when } else { 0 }
    }
}

/// Those of one instance. A place that is given back is used again.
#[derive(Debug, Default)]
pub(super) struct Handles(Vec<Option<Handle>>);

impl Handles {
    pub(super) fn hand_out(&mut self, handle: Handle) -> Result<Resource<Handle>> {
        let free = self.0.iter().position(Option::is_none);
        let place = free.unwrap_or(self.0.len());
        if place >= MOST {
            return Err(Error::msg(format!("the plugin holds {MOST} handles of WASI, and more can't be had")));
        }
        match self.0.get_mut(place) {
            Some(free) => *free = Some(handle),
            None => self.0.push(Some(handle)),
        }
        Ok(Resource::new_own(u32::try_from(place)?))
    }

    pub(super) fn get(&self, handle: &Resource<Handle>) -> Result<Handle> {
        let found = self.0.get(handle.rep() as usize).copied().flatten();
        found.ok_or_else(|| Error::msg("there is no such handle"))
    }

    pub(super) fn give_back(&mut self, number: u32) {
        if let Some(place) = self.0.get_mut(number as usize) {
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_have_an_end() {
        let mut handles = Handles::default();
        for n in 0..10 * MOST as u64 {
            let handle = handles.hand_out(Handle::Due(n)).unwrap();
            assert_eq!(handles.get(&handle).unwrap(), Handle::Due(n));
            handles.give_back(handle.rep());
            assert!(handles.get(&handle).is_err());
        }
        let held: Vec<_> = (0..MOST).map(|_| handles.hand_out(Handle::Output).unwrap()).collect();
        assert!(handles.hand_out(Handle::Output).is_err());
        handles.give_back(held[3].rep());
        assert_eq!(handles.hand_out(Handle::Input).unwrap().rep(), held[3].rep());
        handles.give_back(5_000);
    }
}
