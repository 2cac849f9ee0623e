//! What the reader calls: a block in three steps, so that it can count and refuse in between.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{SAYS_COLLECTIVE, select_collective};
use crate::event::{Block, Kept, Row, Vocabulary, parse_event};
use crate::json::skip_space;
use crate::rows::{Column, Memories, Rows};
use crate::texts::{Texts, UNKNOWN};

/// (where it begins, where it ends)
type Place = (usize, usize);

/// What of a text the reader is asked for.
const NUMBER: usize = 0;
const FRAME_CLASS: usize = 1;
/// In the place of a category: a frame that is not kept.
const LEFT_OUT: i8 = -1;

/// Of one trace. `numbering` answers with the reader's numbers of texts that are new here, in the order of the rows.
#[pyclass]
pub struct Scanner {
    kept: Kept,
    frame: i8,
    shortest_frame_ns: i64,
    frame_kept_long: i8,
    frame_left_out: i32,
    numbered: Vec<i8>,
    vocabulary: Vocabulary,
    collectives: Texts,
    block: Block,
    rows: Rows,
    memories: Memories,
    object: Vec<u8>,
}

#[pymethods]
impl Scanner {
    /// `categories` are the kept ones and their codes, `last_on_device`, `call` and `frame` three of these; `instants`
    /// how the names of instants begin that `scan` gives the places of. Inputs of `operator` are numbered where their text
    /// has at most `longest_inputs` bytes, with values where the name begins with `valued`. Of frames the class is asked for: those of
    /// `frame_left_out` are not kept, of `frame_kept_long` only those of `shortest_frame_ns`. `numbered` are the
    /// categories whose external ids are handed over.
    #[new]
    #[pyo3(signature = (*, categories, instants, last_on_device, call, operator, longest_inputs, valued, frame,
                        shortest_frame_ns, frame_kept_long, frame_left_out, numbered))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        categories: Vec<(Vec<u8>, i8)>,
        instants: Vec<Vec<u8>>,
        last_on_device: i8,
        call: i8,
        operator: i8,
        longest_inputs: usize,
        valued: Vec<u8>,
        frame: i8,
        shortest_frame_ns: i64,
        frame_kept_long: i8,
        frame_left_out: i32,
        numbered: Vec<i8>,
    ) -> Self {
        Scanner {
            kept: Kept { categories, instants, last_on_device, call, operator, longest_inputs, valued },
            frame,
            shortest_frame_ns,
            frame_kept_long,
            frame_left_out,
            numbered,
            vocabulary: Vocabulary::new(),
            collectives: Texts::new(),
            block: Block::default(),
            rows: Rows::default(),
            memories: Memories::default(),
            object: Vec::new(),
        }
    }

    /// Scans text[..length], events with commas between them: how many, how many words of allocators, and where the
    /// instants stand; None where something is irregular, and then nothing is kept of it.
    fn scan(&mut self, text: &[u8], length: usize) -> PyResult<Option<(usize, usize, Vec<Place>)>> {
        let Some(text) = text.get(..length).filter(|text| text.len() <= i32::MAX as usize) else {
            return Ok(None);
        };
        let taken = guard(|| self.parse(text))?;
        Ok(taken.then(|| (self.block.events, self.block.memories.len(), std::mem::take(&mut self.block.instants))))
    }

    /// Leaves out frames that are not kept; how many rows are left. `classify` is asked for new names of frames.
    fn choose(&mut self, classify: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(|| self.choose_frames(classify))??;
        Ok(self.block.rows.len())
    }

    /// Adds the rows that are left to those to hand over; how many these are. `text` is what was scanned.
    fn add(&mut self, text: &[u8], numbering: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(|| self.add_block(text, numbering))??;
        Ok(self.rows.count + self.memories.count)
    }

    /// The rows' columns in the order of `Rows`, then external ids above 0; forgets them here.
    fn hand_over_rows<'py>(&mut self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let rows = &mut self.rows;
        rows.count = 0;
        let columns = [
            &mut rows.category,
            &mut rows.name,
            &mut rows.place,
            &mut rows.start_ns,
            &mut rows.duration_ns,
            &mut rows.correlation,
            &mut rows.shape,
            &mut rows.collective,
            &mut rows.detail,
            &mut rows.external_id,
        ];
        columns.into_iter().map(|column| hand_over(py, column)).collect()
    }

    /// What allocators say: times, devices, allocated and reserved bytes; forgets it here.
    fn hand_over_memory<'py>(&mut self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let of = &mut self.memories;
        of.count = 0;
        let columns = [&mut of.at_ns, &mut of.device, &mut of.allocated, &mut of.reserved];
        columns.into_iter().map(|column| hand_over(py, column)).collect()
    }
}

impl Scanner {
    fn parse(&mut self, text: &[u8]) -> bool {
        let before = self.vocabulary.counts();
        self.block.rows.clear();
        self.block.memories.clear();
        self.block.instants.clear();
        self.block.events = 0;
        let taken = self.parse_events(text).is_some();
        if !taken {
            self.vocabulary.forget(before);
        }
        taken
    }

    fn parse_events(&mut self, text: &[u8]) -> Option<()> {
        let mut at = skip_space(text, 0);
        while text.get(at) == Some(&b'{') {
            at = parse_event(text, at, &self.kept, &mut self.vocabulary, &mut self.block)?;
            self.block.events += 1;
            at = skip_space(text, at);
            if at == text.len() {
                return Some(());
            }
            if text[at] != b',' {
                return None;
            }
            at = skip_space(text, at + 1);
        }
        None
    }

    fn add_block(&mut self, text: &[u8], numbering: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut rows = std::mem::take(&mut self.block.rows);
        for row in rows.drain(..) {
            self.add_row(text, &row, numbering)?;
        }
        self.block.rows = rows;
        for one in self.block.memories.drain(..) {
            let device = known_or(&mut self.vocabulary.devices, one.device, NUMBER, |kind, number| {
                numbering.call_method1("device", (kind, number))?.extract()
            })?;
            self.memories.count += 1;
            self.memories.at_ns.push_i64(one.at_ns);
            self.memories.device.push_i64(i64::from(device));
            self.memories.allocated.push_i64(one.allocated);
            self.memories.reserved.push_i64(one.reserved);
        }
        Ok(())
    }

    fn choose_frames(&mut self, classify: &Bound<'_, PyAny>) -> PyResult<()> {
        let names = &mut self.vocabulary.names;
        let mut all_kept = true;
        for row in self.block.rows.iter_mut().filter(|row| row.category == self.frame) {
            let kind = known_or(names, row.name, FRAME_CLASS, |name, _| classify.call1((name,))?.extract())?;
            let is_long = row.duration_ns >= self.shortest_frame_ns;
            let is_kept = kind != self.frame_left_out && (is_long || kind != i32::from(self.frame_kept_long));
            row.category = if is_kept { kind as i8 } else { LEFT_OUT };
            all_kept &= is_kept;
        }
        if !all_kept {
            self.block.rows.retain(|row| row.category != LEFT_OUT);
        }
        Ok(())
    }

    #[inline(always)]
    fn add_row(&mut self, text: &[u8], row: &Row, numbering: &Bound<'_, PyAny>) -> PyResult<()> {
        let words = &mut self.vocabulary;
        let name = known_or(&mut words.names, row.name, NUMBER, |name, _| {
            let (number, communicates): (i32, bool) = numbering.call_method1("name", (name,))?.extract()?;
            Ok(2 * number + i32::from(communicates))
        })?;
        let place = known_or(&mut words.places, row.place, NUMBER, |first, second| {
            numbering.call_method1("place", (first, second))?.extract()
        })?;
        let shape = row.shape.map_or(Ok(-1), |shape| {
            known_or(&mut words.shapes, shape, NUMBER, |first, second| match row.category == self.kept.operator {
                true => numbering.call_method1("inputs", (first, second))?.extract(),
                false => numbering.call_method1("shape", (first, second))?.extract(),
            })
        })?;
        let communicates = name % 2 != 0;
        let collective = match row.says & SAYS_COLLECTIVE != 0 || (row.says != 0 && communicates) {
            true => self.number_collective(text, row, communicates, numbering)?,
            false => -1,
        };
        let rows = &mut self.rows;
        rows.count += 1;
        rows.category.push_i8(row.category);
        rows.name.push_i32(name / 2);
        rows.place.push_i32(place);
        rows.start_ns.push_i64(row.start_ns);
        rows.duration_ns.push_i64(row.duration_ns);
        rows.correlation.push_i64(row.correlation);
        rows.shape.push_i32(shape);
        rows.collective.push_i32(collective);
        rows.detail.push_i64(row.detail);
        if row.external_id > 0 && self.numbered.contains(&row.category) {
            rows.external_id.push_i64(row.external_id);
        }
        Ok(())
    }

    #[cold]
    fn number_collective(
        &mut self,
        text: &[u8],
        row: &Row,
        communicates: bool,
        numbering: &Bound<'_, PyAny>,
    ) -> PyResult<i32> {
        let (from, to) = row.arguments;
        let mut object = std::mem::take(&mut self.object);
        select_collective(&text[from as usize..to as usize], &mut object);
        let found = self.collectives.number_of(u8::from(communicates), &object, &[]);
        let ask = |object: &[u8]| numbering.call_method1("collective", (object, communicates))?.extract();
        let number = match found {
            Some(found) => known_or(&mut self.collectives, found, NUMBER, |object, _| ask(object)),
            None => ask(&object),
        };
        self.object = object;
        number
    }
}

/// The reader's number of a text; it is asked for the first time only.
#[inline(always)]
fn known_or(
    texts: &mut Texts,
    text: u32,
    which: usize,
    ask: impl FnOnce(&[u8], &[u8]) -> PyResult<i32>,
) -> PyResult<i32> {
    let known = texts.numbers(text)[which];
    if known != UNKNOWN {
        return Ok(known);
    }
    let (first, second) = texts.parts(text);
    let answer = ask(first, second)?;
    texts.numbers(text)[which] = answer;
    Ok(answer)
}

fn hand_over<'py>(py: Python<'py>, column: &mut Column) -> Bound<'py, PyBytes> {
    let bytes = PyBytes::new(py, &column.0);
    column.0.clear();
    bytes
}

/// A fault in here is the trace's, not the process's.
fn guard<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| PyRuntimeError::new_err("the scanner met a fault of its own"))
}
