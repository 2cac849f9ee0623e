//! Scans the events of a PyTorch trace into columns, in one pass over the bytes and without an object per event.
//!
//! The reader of fleetprof_analyzer knows everything about damaged traces; this knows only the regular ones. Whatever
//! is not plainly regular (an escape in a name, a byte beyond ASCII, a number with an exponent where a time belongs, a
//! key twice) makes `Scanner.scan` take nothing of the block, and the reader decodes it its own way. So the result is
//! the same with and without this; tests/analyzer/reading/test_accelerator.py holds it to that.
//!
//! Guarantees: no `unsafe`; memory is that of one block, of the rows not yet handed over, and of the distinct texts
//! (texts.rs); a fault in here is an error of Python, never the end of the process.
#![forbid(unsafe_code)]

mod arguments;
mod event;
mod json;
mod rows;
mod scanner;
mod texts;

use pyo3::prelude::*;

#[pymodule]
fn _scan(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<scanner::Scanner>()
}
