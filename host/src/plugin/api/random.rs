//! `botyard:random/random`: randomness that is the same on every attempt.

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::Host;
use crate::plugin::bindings::botyard::random::random as wit;

const MOST: u32 = 65_536;

impl wit::Host for Host {
    fn bytes(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        if length > MOST {
            return Err(wasmtime::Error::msg(format!(
                "asked for {length} random bytes; {MOST} at a time are possible"
            )));
        }
        let mut bytes = vec![0; length as usize];
        if let Some(run) = &mut self.run {
            run.random.get_or_insert_with(|| StdRng::seed_from_u64(run.seed)).fill_bytes(&mut bytes);
        }
        Ok(bytes)
    }
}
