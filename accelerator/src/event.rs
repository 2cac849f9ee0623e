//! One event as a row, as an allocator's word, or as an instant that the reader looks at itself.

use crate::arguments::{Arguments, Next, next, parse_arguments};
use crate::json::{
    FINEST_DURATION, LARGEST, Piece, byte, microseconds, plain_string, scalar, skip_value, skip_word, value_at,
};
use crate::texts::Texts;

/// What is kept, as the reader says.
pub struct Kept {
    /// (category as the trace writes it, its code)
    pub categories: Vec<(Vec<u8>, i8)>,
    /// How the names of instants begin that the reader looks at.
    pub instants: Vec<Vec<u8>>,
    /// Categories up to this one are work of a device, at (device, stream); others stand at (process, thread).
    pub last_on_device: i8,
    /// That of calls into the driver.
    pub call: i8,
    /// That of operators, whose inputs are kept where their text is no longer than this.
    pub operator: i8,
    pub longest_inputs: usize,
    /// How the names of operators begin whose inputs' values are kept as well.
    pub valued: Vec<u8>,
}

/// Marks of the two kinds of shapes.
const LAUNCH: u8 = 0;
const INPUTS: u8 = 1;

#[derive(Clone, Copy)]
pub struct Row {
    pub start_ns: i64,
    pub duration_ns: i64,
    pub correlation: i64,
    pub detail: i64,
    pub external_id: i64,
    /// Numbers of `Vocabulary`; later the reader's.
    pub name: u32,
    pub place: u32,
    /// Of a kernel grid and block, of an operator its inputs.
    pub shape: Option<u32>,
    /// Where its arguments stand in the text.
    pub arguments: (u32, u32),
    pub category: i8,
    pub says: u8,
}

pub struct Memory {
    pub at_ns: i64,
    pub device: u32,
    pub allocated: i64,
    pub reserved: i64,
}

pub struct Vocabulary {
    pub names: Texts,
    pub places: Texts,
    pub shapes: Texts,
    pub devices: Texts,
    /// Types and values of an operator's inputs, as one text.
    rest: Vec<u8>,
    /// Of the host, and of devices: mostly the next row's as well.
    latest: [u32; 2],
}

/// What a block holds.
#[derive(Default)]
pub struct Block {
    pub rows: Vec<Row>,
    pub memories: Vec<Memory>,
    /// (where it begins, where it ends)
    pub instants: Vec<(usize, usize)>,
    pub events: usize,
}

impl Vocabulary {
    pub fn new() -> Self {
        let [names, places, shapes, devices] = std::array::from_fn(|_| Texts::new());
        Vocabulary { names, places, shapes, devices, rest: Vec::new(), latest: [0; 2] }
    }

    pub fn counts(&self) -> [usize; 4] {
        [self.names.count(), self.places.count(), self.shapes.count(), self.devices.count()]
    }

    pub fn forget(&mut self, counts: [usize; 4]) {
        self.names.forget(counts[0]);
        self.places.forget(counts[1]);
        self.shapes.forget(counts[2]);
        self.devices.forget(counts[3]);
    }

    #[inline(always)]
    fn place_of(&mut self, on_device: bool, first: Piece, second: Piece) -> Option<u32> {
        let latest = self.latest[usize::from(on_device)];
        if (latest as usize) < self.places.count() && self.places.is(latest, 0, first, second) {
            return Some(latest);
        }
        let found = self.places.number_of(0, first, second)?;
        self.latest[usize::from(on_device)] = found;
        Some(found)
    }
}

impl Kept {
    #[inline(always)]
    fn category_of(&self, text: Piece) -> Option<i8> {
        self.categories.iter().find(|(one, _)| one == text).map(|(_, code)| *code)
    }

    #[inline(always)]
    fn says_inputs(&self, dimensions: Piece) -> bool {
        !dimensions.is_empty() && dimensions.len() <= self.longest_inputs
    }

    /// The number of what an operator was given; `None` where there is no room for it.
    #[inline(always)]
    fn number_inputs(&self, vocabulary: &mut Vocabulary, name: Piece, arguments: &Arguments) -> Option<u32> {
        let short = |text: Piece<'_>| !text.is_empty() && text.len() <= self.longest_inputs;
        let types = if short(arguments.types) { arguments.types } else { &[] };
        if !(short(arguments.values) && name.starts_with(&self.valued)) {
            return vocabulary.shapes.number_of(INPUTS, arguments.dimensions, types);
        }
        let Vocabulary { shapes, rest, .. } = vocabulary;
        rest.clear();
        rest.extend_from_slice(types);
        rest.push(0);
        rest.extend_from_slice(arguments.values);
        shapes.number_of(INPUTS, arguments.dimensions, rest)
    }

    #[inline(always)]
    fn is_instant(&self, name: Piece) -> bool {
        self.instants.iter().any(|one| name.starts_with(one))
    }
}

/// Adds the event whose brace is at `begin` to the block; what follows it.
#[inline(always)]
pub fn parse_event(
    text: &[u8],
    begin: usize,
    kept: &Kept,
    vocabulary: &mut Vocabulary,
    block: &mut Block,
) -> Option<usize> {
    let mut arguments = Arguments::none();
    let (mut phase, mut category, mut name): (Piece, Piece, Piece) = (&[], &[], &[]);
    let (mut process, mut thread): (Piece, Piece) = (&[], &[]);
    let (mut start, mut duration) = (None, None);
    let mut arguments_at = (0, 0);
    let mut seen = 0u32;
    let mut at = crate::json::skip_space(text, begin + 1);
    if byte(text, at) == b'}' {
        return Some(at + 1);
    }
    let end = loop {
        if byte(text, at) != b'"' {
            return None;
        }
        let rest = &text[at + 1..];
        let mut once = |number: u32| {
            let is_new = seen & 1 << number == 0;
            seen |= 1 << number;
            is_new.then_some(())
        };
        // An empty word is another key.
        macro_rules! value {
            ($word:literal, $number:literal) => {{
                once($number)?;
                value_at(text, at + $word.len() + 2)?
            }};
        }
        if rest.starts_with(b"ph\"") {
            at = value!("ph", 0);
            (phase, at) = plain_text(text, at)?;
        } else if rest.starts_with(b"cat\"") {
            at = value!("cat", 1);
            if byte(text, at) == b'n' {
                at = skip_word(text, at, b"null")?;
            } else {
                (category, at) = plain_text(text, at)?;
            }
        } else if rest.starts_with(b"name\"") {
            at = value!("name", 2);
            (name, at) = plain_text(text, at)?;
        } else if rest.starts_with(b"pid\"") {
            at = value!("pid", 3);
            (process, at) = scalar(text, at)?;
        } else if rest.starts_with(b"tid\"") {
            at = value!("tid", 4);
            (thread, at) = scalar(text, at)?;
        } else if rest.starts_with(b"ts\"") {
            at = value!("ts", 5);
            (start, at) = microseconds(text, at, LARGEST)?;
        } else if rest.starts_with(b"dur\"") {
            at = value!("dur", 6);
            // The reader's decoder refuses these.
            if b"tf[{".contains(&byte(text, at)) {
                return None;
            }
            (duration, at) = microseconds(text, at, FINEST_DURATION)?;
        } else if rest.starts_with(b"args\"") {
            at = value!("args", 7);
            if byte(text, at) == b'{' {
                arguments_at.0 = at;
                at = parse_arguments(text, at, &mut arguments)?;
                arguments_at.1 = at;
            } else {
                at = skip_word(text, at, b"null")?;
            }
        } else {
            let (_, after) = plain_string(text, at)?;
            at = skip_value(text, value_at(text, after)?)?;
        }
        match next(text, at)? {
            Next::Key(key) => at = key,
            Next::End(end) => break end,
        }
    };
    match phase {
        b"X" => {}
        b"i" if name == b"[memory]" => {
            block.memories.push(Memory {
                at_ns: start?,
                device: vocabulary.devices.number_of(0, arguments.device_type, arguments.device_id)?,
                allocated: arguments.total_allocated,
                reserved: arguments.total_reserved,
            });
            return Some(end);
        }
        b"i" if kept.is_instant(name) => {
            block.instants.push((begin, end));
            return Some(end);
        }
        _ => return Some(end),
    }
    let Some(code) = kept.category_of(category) else {
        return Some(end);
    };
    let on_device = code <= kept.last_on_device;
    let calls = code == kept.call;
    let said = |said: Piece<'_>| on_device && !said.is_empty();
    let first = if said(arguments.device) { arguments.device } else { process };
    let second = if said(arguments.stream) { arguments.stream } else { thread };
    block.rows.push(Row {
        start_ns: start?,
        duration_ns: duration?,
        correlation: if on_device || calls { arguments.correlation } else { -1 },
        detail: match (calls, on_device) {
            (true, _) => -1,
            (_, true) => arguments.bytes,
            _ => arguments.sequence_number,
        },
        external_id: arguments.external_id,
        name: vocabulary.names.number_of(code as u8, name, &[])?,
        place: vocabulary.place_of(on_device, first, second)?,
        shape: if said(arguments.grid) {
            Some(vocabulary.shapes.number_of(LAUNCH, arguments.grid, arguments.block)?)
        } else if code == kept.operator && kept.says_inputs(arguments.dimensions) {
            Some(kept.number_inputs(vocabulary, name, &arguments)?)
        } else {
            None
        },
        arguments: (arguments_at.0 as u32, arguments_at.1 as u32),
        category: code,
        says: if calls { 0 } else { arguments.says },
    });
    Some(end)
}

#[inline(always)]
fn plain_text(text: &[u8], at: usize) -> Option<(Piece<'_>, usize)> {
    if byte(text, at) == b'"' { plain_string(text, at) } else { None }
}
