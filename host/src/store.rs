//! (being written)

pub mod rows;
