//! The arguments of an event, as far as a column is made of them.
//!
//! Guarantees: as json.rs; a key that stands twice makes the event irregular, since the last would count.

use crate::json::{Piece, byte, count, plain_string, scalar, skip_space, skip_value, value_at};

pub const SAYS_COLLECTIVE: u8 = 1;
pub const SAYS_DIMENSIONS: u8 = 2;
/// What a collective is read of; the keys of `EventArgs` that fleetprof_analyzer.reading.columns.collective looks at.
const OF_COLLECTIVE: [&[u8]; 13] = [
    b"Collective name",
    b"In msg nelems",
    b"Out msg nelems",
    b"Group size",
    b"dtype",
    b"Process Group Name",
    b"Process Group Ranks",
    b"Global rank start",
    b"Global rank stride",
    b"Src Rank",
    b"Dst Rank",
    b"Seq",
    b"Input Dims",
];

pub struct Arguments<'t> {
    pub external_id: i64,
    pub sequence_number: i64,
    pub correlation: i64,
    pub bytes: i64,
    pub total_allocated: i64,
    pub total_reserved: i64,
    pub device: Piece<'t>,
    pub stream: Piece<'t>,
    pub grid: Piece<'t>,
    pub block: Piece<'t>,
    pub device_type: Piece<'t>,
    pub device_id: Piece<'t>,
    pub dimensions: Piece<'t>,
    pub types: Piece<'t>,
    pub values: Piece<'t>,
    /// `SAYS_*`
    pub says: u8,
}

impl Arguments<'_> {
    #[inline(always)]
    pub fn none() -> Self {
        Arguments {
            external_id: -1,
            sequence_number: -1,
            correlation: -1,
            bytes: -1,
            total_allocated: -1,
            total_reserved: -1,
            device: &[],
            stream: &[],
            grid: &[],
            block: &[],
            device_type: &[],
            device_id: &[],
            dimensions: &[],
            types: &[],
            values: &[],
            says: 0,
        }
    }
}

#[derive(Clone, Copy)]
enum Key {
    ExternalId,
    SequenceNumber,
    Correlation,
    Bytes,
    TotalAllocated,
    TotalReserved,
    Device,
    Stream,
    DeviceType,
    DeviceId,
    Grid,
    Block,
    CollectiveName,
    InputDims,
    InputTypes,
    InputValues,
}

/// The key that begins here, behind its first quote, and its length with the second; `None` for another.
#[inline(always)]
fn key_of(text: &[u8]) -> Option<(Key, usize)> {
    let is = |key, word: &'static [u8]| text.starts_with(word).then_some((key, word.len()));
    match byte(text, 0) {
        b'E' => is(Key::ExternalId, b"External id\""),
        b'S' => is(Key::SequenceNumber, b"Sequence number\""),
        b'c' => is(Key::Correlation, b"correlation\""),
        b'b' => is(Key::Block, b"block\"").or_else(|| is(Key::Bytes, b"bytes\"")),
        b'T' => is(Key::TotalAllocated, b"Total Allocated\"").or_else(|| is(Key::TotalReserved, b"Total Reserved\"")),
        b'd' => is(Key::Device, b"device\""),
        b's' => is(Key::Stream, b"stream\""),
        b'D' => is(Key::DeviceType, b"Device Type\"").or_else(|| is(Key::DeviceId, b"Device Id\"")),
        b'g' => is(Key::Grid, b"grid\""),
        b'C' => is(Key::CollectiveName, b"Collective name\"").or_else(|| is(Key::InputValues, b"Concrete Inputs\"")),
        b'I' => is(Key::InputDims, b"Input Dims\"").or_else(|| is(Key::InputTypes, b"Input type\"")),
        _ => None,
    }
}

/// Reads arguments into `found`; `at` is that of their brace.
#[inline(always)]
pub fn parse_arguments<'t>(text: &'t [u8], at: usize, found: &mut Arguments<'t>) -> Option<usize> {
    let mut seen = 0u32;
    let mut at = skip_space(text, at + 1);
    if byte(text, at) == b'}' {
        return Some(at + 1);
    }
    loop {
        if byte(text, at) != b'"' {
            return None;
        }
        // Comparing with words of known length is quicker than looking for the closing quote.
        let Some((key, length)) = key_of(&text[at + 1..]) else {
            let (_, after) = plain_string(text, at)?;
            at = skip_value(text, value_at(text, after)?)?;
            match next(text, at)? {
                Next::Key(key) => at = key,
                Next::End(end) => return Some(end),
            }
            continue;
        };
        if seen & 1 << key as u32 != 0 {
            return None;
        }
        seen |= 1 << key as u32;
        at = value_at(text, at + 1 + length)?;
        match key {
            Key::ExternalId => (found.external_id, at) = count(text, at)?,
            Key::SequenceNumber => (found.sequence_number, at) = count(text, at)?,
            Key::Correlation => (found.correlation, at) = count(text, at)?,
            Key::Bytes => (found.bytes, at) = count(text, at)?,
            Key::TotalAllocated => (found.total_allocated, at) = count(text, at)?,
            Key::TotalReserved => (found.total_reserved, at) = count(text, at)?,
            Key::Device => (found.device, at) = scalar(text, at)?,
            Key::Stream => (found.stream, at) = scalar(text, at)?,
            Key::DeviceType => (found.device_type, at) = scalar(text, at)?,
            Key::DeviceId => (found.device_id, at) = scalar(text, at)?,
            Key::Grid => (found.grid, at) = whole(text, at)?,
            Key::Block => (found.block, at) = whole(text, at)?,
            Key::CollectiveName => {
                found.says |= SAYS_COLLECTIVE;
                at = skip_value(text, at)?;
            }
            Key::InputDims => {
                found.says |= SAYS_DIMENSIONS;
                (found.dimensions, at) = whole(text, at)?;
            }
            Key::InputTypes => (found.types, at) = whole(text, at)?,
            Key::InputValues => (found.values, at) = whole(text, at)?,
        }
        match next(text, at)? {
            Next::Key(key) => at = key,
            Next::End(end) => return Some(end),
        }
    }
}

pub enum Next {
    Key(usize),
    End(usize),
}

/// What follows a value in an object.
#[inline(always)]
pub fn next(text: &[u8], at: usize) -> Option<Next> {
    if let Some([b',', b' ', b'"', ..]) = text.get(at..) {
        return Some(Next::Key(at + 2));
    }
    let at = skip_space(text, at);
    match byte(text, at) {
        b',' => Some(Next::Key(skip_space(text, at + 1))),
        b'}' => Some(Next::End(at + 1)),
        _ => None,
    }
}

#[inline(always)]
fn whole(text: &[u8], at: usize) -> Option<(Piece<'_>, usize)> {
    let end = skip_value(text, at)?;
    Some((&text[at..end], end))
}

/// The arguments that say what a collective is, as an object of JSON into `object`; `text` was read as arguments before.
pub fn select_collective(text: &[u8], object: &mut Vec<u8>) -> Option<()> {
    let mut values: [Piece; OF_COLLECTIVE.len()] = [&[]; OF_COLLECTIVE.len()];
    let mut at = skip_space(text, 1);
    while byte(text, at) == b'"' {
        let (key, after) = plain_string(text, at)?;
        let (value, after) = whole(text, value_at(text, after)?)?;
        if let Some(number) = OF_COLLECTIVE.iter().position(|one| *one == key) {
            values[number] = value;
        }
        match next(text, after)? {
            Next::Key(key) => at = key,
            Next::End(_) => break,
        }
    }
    object.clear();
    for (key, value) in OF_COLLECTIVE.iter().zip(values).filter(|(_, value)| !value.is_empty()) {
        object.extend_from_slice(if object.is_empty() { b"{\"" } else { b",\"" });
        object.extend_from_slice(key);
        object.extend_from_slice(b"\":");
        object.extend_from_slice(value);
    }
    object.push(b'}');
    Some(())
}
