//! The guest's allocator: hands out memory and never sweeps it.
//!
//! An instance lives for one run and is thrown away whole, so freeing would be work for nothing, and a free list would
//! touch pages that a fresh instance otherwise never pays for. Only the newest block is special: it grows, shrinks and
//! is given back in place, which covers the usual growing `String` or `Vec`.
//!
//! The host's memory limit holds as ever: where memory can't grow, the allocation fails and the run ends.
//!
//! To use an allocator of your own: `botyard-sdk = { …, default-features = false }`.
//!
//! This is the only file of the SDK with `unsafe` code. What it rests on: `wasm32-unknown-unknown` without atomics has
//! one thread, so loads and stores of `NEXT` never interleave with another allocation; and linear memory beyond
//! `__heap_base` belongs to nobody else.

#![expect(unsafe_code, reason = "a global allocator can't be written without; the rest of the SDK does without")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PAGE: usize = 64 * 1024;

#[global_allocator]
static ALLOCATOR: Bump = Bump;

/// The first free byte; 0 before the first allocation.
static NEXT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// Where the linker's data and the stack end. Only its address means something.
    static __heap_base: u8;
}

struct Bump;

fn next() -> usize {
    match NEXT.load(Relaxed) {
        0 => &raw const __heap_base as usize,
        next => next,
    }
}

/// Makes `[0, end)` usable; false when the host's limit is reached.
fn reach(end: usize) -> bool {
    let have = core::arch::wasm32::memory_size(0) * PAGE;
    end <= have || core::arch::wasm32::memory_grow(0, (end - have).div_ceil(PAGE)) != usize::MAX
}

// SAFETY: blocks never overlap, since `NEXT` only moves past a block that has been made usable and only moves back over
// the newest block when that is given up; they are aligned, and valid until given up.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(start) = next().checked_next_multiple_of(layout.align()) else { return ptr::null_mut() };
        let Some(end) = start.checked_add(layout.size()) else { return ptr::null_mut() };
        if !reach(end) {
            return ptr::null_mut();
        }
        NEXT.store(end, Relaxed);
        start as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if block as usize + layout.size() == NEXT.load(Relaxed) {
            NEXT.store(block as usize, Relaxed);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let start = block as usize;
        if start + layout.size() == NEXT.load(Relaxed) {
            let Some(end) = start.checked_add(new_size) else { return ptr::null_mut() };
            if !reach(end) {
                return ptr::null_mut();
            }
            NEXT.store(end, Relaxed);
            return block;
        }
        if new_size <= layout.size() {
            return block;
        }
        // SAFETY: `new_size` is the caller's, who keeps it valid for this alignment; the new block lies past `block`
        // and is larger, so the copy is in bounds and does not overlap.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size());
            }
            moved
        }
    }
}
