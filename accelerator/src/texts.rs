//! Texts by number, in the order in which they were met, and for each the number that the reader gave it.
//!
//! Guarantees: bounded by `MOST_KEY_BYTES`; what was met since some count can be forgotten; where a text lies in the
//! table nobody can foresee, so that no trace makes looking them up slow.

use std::hash::{BuildHasher, RandomState};

const MOST_KEY_BYTES: usize = 512 << 20;
const FIRST_SLOTS: usize = 1024;
/// Not numbered by the reader yet.
pub const UNKNOWN: i32 = -2;

pub struct Texts {
    seed: u64,
    bytes: Vec<u8>,
    known: Vec<Known>,
    slots: Vec<u32>, // number + 1, 0: free
}

struct Known {
    hash: u64,
    end: usize, // in bytes
    numbers: [i32; 2],
}

impl Texts {
    pub fn new() -> Self {
        let seed = RandomState::new().hash_one(0);
        Texts { seed, bytes: Vec::new(), known: Vec::new(), slots: Vec::new() }
    }

    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// The reader's numbers of a text; of what there are two is for who asks to say.
    #[inline(always)]
    pub fn numbers(&mut self, number: u32) -> &mut [i32; 2] {
        &mut self.known[number as usize].numbers
    }

    #[inline(always)]
    fn key(&self, number: usize) -> &[u8] {
        let begin = if number == 0 { 0 } else { self.known[number - 1].end };
        &self.bytes[begin..self.known[number].end]
    }

    /// The two parts of a text, without its mark.
    pub fn parts(&self, number: u32) -> (&[u8], &[u8]) {
        let key = &self.key(number as usize)[1..];
        let border = key.iter().position(|one| *one == 0).unwrap_or(key.len());
        (&key[..border], key.get(border + 1..).unwrap_or_default())
    }

    /// Whether text `number` is made of this mark and these parts.
    #[inline(always)]
    pub fn is(&self, number: u32, mark: u8, first: &[u8], second: &[u8]) -> bool {
        let key = self.key(number as usize);
        key.len() == first.len() + second.len() + 2
            && key[0] == mark
            && key[1..=first.len()] == *first
            && key[first.len() + 1] == 0
            && key[first.len() + 2..] == *second
    }

    /// The number of the text made of a mark and two parts; `None` where there is no room for it.
    #[inline(always)]
    pub fn number_of(&mut self, mark: u8, first: &[u8], second: &[u8]) -> Option<u32> {
        let hash = mix(mix(self.seed ^ u64::from(mark) ^ (first.len() as u64) << 8, first), second);
        if !self.slots.is_empty() {
            let mask = self.slots.len() - 1;
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                let number = self.slots[at] - 1;
                if self.known[number as usize].hash == hash && self.is(number, mark, first, second) {
                    return Some(number);
                }
                at = (at + 1) & mask;
            }
        }
        self.add(hash, mark, first, second)
    }

    #[cold]
    fn add(&mut self, hash: u64, mark: u8, first: &[u8], second: &[u8]) -> Option<u32> {
        let number = self.known.len();
        if self.bytes.len() + first.len() + second.len() + 2 > MOST_KEY_BYTES || number >= i32::MAX as usize - 1 {
            return None;
        }
        self.bytes.push(mark);
        self.bytes.extend_from_slice(first);
        self.bytes.push(0); // in no value of JSON
        self.bytes.extend_from_slice(second);
        self.known.push(Known { hash, end: self.bytes.len(), numbers: [UNKNOWN; 2] });
        if 2 * (number + 1) > self.slots.len() {
            self.fill_slots((2 * self.slots.len()).max(FIRST_SLOTS));
        } else {
            put(&mut self.slots, hash, number);
        }
        Some(number as u32)
    }

    fn fill_slots(&mut self, count: usize) {
        self.slots.clear();
        self.slots.resize(count, 0);
        for (number, known) in self.known.iter().enumerate() {
            put(&mut self.slots, known.hash, number);
        }
    }

    /// Forgets what was met since there were `count`.
    pub fn forget(&mut self, count: usize) {
        if count < self.known.len() {
            self.known.truncate(count);
            self.bytes.truncate(self.known.last().map_or(0, |known| known.end));
            self.fill_slots(self.slots.len());
        }
    }
}

fn put(slots: &mut [u32], hash: u64, number: usize) {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while slots[at] != 0 {
        at = (at + 1) & mask;
    }
    slots[at] = number as u32 + 1;
}

#[inline(always)]
fn mix(mut hash: u64, text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    let last = rest.iter().fold(rest.len() as u64, |last, one| last << 8 | u64::from(*one));
    hash = (hash ^ last).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash ^ hash >> 32
}
