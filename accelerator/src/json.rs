//! Passes over JSON as far as it is plain. Each function gives what follows, `None` where the text is irregular.
//!
//! Guarantees: nothing recurses deeper than `DEEPEST`; what is accepted is valid JSON in ASCII.

use wide::i8x16;

const DEEPEST: u32 = 32;
const MOST_INTEGER_DIGITS: usize = 18;
const MOST_TIME_DIGITS: usize = 16;
const MOST_DECIMALS: usize = 6;
pub const LARGEST: u64 = 1 << 62;
/// Nanoseconds from which on a duration has no further decimals: the reader has it from a double, which is not so fine.
pub const FINEST_DURATION: u64 = 1_000_000_000_000;
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A piece of the text; empty where the event does not say it.
pub type Piece<'t> = &'t [u8];

#[inline(always)]
pub fn byte(text: &[u8], at: usize) -> u8 {
    // No value of JSON holds a zero byte.
    text.get(at).copied().unwrap_or(0)
}

#[inline(always)]
fn eight(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?))
}

/// Where the bytes that fulfil a condition end: sixteen are looked at with a few instructions, `fails` says which do not.
#[inline(always)]
fn run(text: &[u8], mut at: usize, fails: impl Fn(i8x16) -> i8x16) -> usize {
    while let Some(chunk) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let mask = fails(i8x16::new(chunk.map(|one| one as i8))).to_bitmask();
        if mask != 0 {
            return at + mask.trailing_zeros() as usize;
        }
        at += 16;
    }
    last_run(text, at, fails)
}

/// The same near the end of the text, where there are fewer.
#[cold]
#[inline(never)]
fn last_run(text: &[u8], at: usize, fails: impl Fn(i8x16) -> i8x16) -> usize {
    let mut chunk = [0; 16];
    let rest = text.get(at..).unwrap_or_default();
    for (to, from) in chunk.iter_mut().zip(rest) {
        *to = *from as i8;
    }
    let mask = fails(i8x16::new(chunk)).to_bitmask();
    at + (mask.trailing_zeros() as usize).min(rest.len())
}

#[inline(always)]
pub fn skip_space(text: &[u8], at: usize) -> usize {
    match text.get(at..) {
        Some([one, ..]) if *one > b' ' => at,
        Some([b' ', one, ..]) if *one > b' ' => at + 1,
        _ => skip_spaces(text, at),
    }
}

#[inline(always)]
fn skip_spaces(text: &[u8], at: usize) -> usize {
    let of = |one: u8| i8x16::splat(one as i8);
    run(text, at, |x| !(x.simd_eq(of(b' ')) | x.simd_eq(of(b'\n')) | x.simd_eq(of(b'\t')) | x.simd_eq(of(b'\r'))))
}

/// To the first byte that is a quote, a backslash, a control character or beyond ASCII, which are negative.
#[inline(always)]
fn skip_plain(text: &[u8], at: usize) -> usize {
    let of = |one: u8| i8x16::splat(one as i8);
    run(text, at, |x| x.simd_eq(of(b'"')) | x.simd_eq(of(b'\\')) | x.simd_lt(of(b' ')))
}

/// A string without escapes; `at` is that of its quote.
#[inline(always)]
pub fn plain_string(text: &[u8], at: usize) -> Option<(Piece<'_>, usize)> {
    let close = skip_plain(text, at + 1);
    (byte(text, close) == b'"').then(|| (&text[at + 1..close], close + 1))
}

#[inline(always)]
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = skip_plain(text, at);
        match byte(text, at) {
            b'"' => return Some(at + 1),
            b'\\' if b"\"\\/bfnrt".contains(&byte(text, at + 1)) => at += 2,
            _ => return None,
        }
    }
}

/// (value of up to eight digits that begin here, how many they are)
#[inline(always)]
fn few_digits(text: &[u8], at: usize) -> (u64, usize) {
    let Some(word) = eight(text, at) else {
        return last_digits(text, at);
    };
    let digits = word ^ 0x3030_3030_3030_3030;
    // Of a byte that is no digit the highest bit; a carry goes into bytes behind the first of these only.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let count = others.trailing_zeros() as usize / 8;
    if count == 0 {
        return (0, 0);
    }
    // Zeros before them make them eight.
    let digits = digits << (64 - 8 * count);
    let pairs = (digits & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    ((fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32, count)
}

#[cold]
fn last_digits(text: &[u8], at: usize) -> (u64, usize) {
    let count = text[at.min(text.len())..].iter().take(8).take_while(|one| one.is_ascii_digit()).count();
    let value = text[at.min(text.len())..][..count].iter().fold(0, |value, one| 10 * value + u64::from(one - b'0'));
    (value, count)
}

/// (value of the digits that begin here, what follows them); `None` where there are none, or more than `most`.
#[inline(always)]
fn digits(text: &[u8], at: usize, most: usize) -> Option<(u64, usize)> {
    let (mut value, mut count) = few_digits(text, at);
    let mut all = count;
    while count == 8 {
        let next;
        (next, count) = few_digits(text, at + all);
        all += count;
        if all > most {
            return None;
        }
        value = value * TENS[count] + next;
    }
    (all != 0 && all <= most).then_some((value, at + all))
}

/// An integer's digits: no zero before others.
#[inline(always)]
fn natural(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, end) = digits(text, at, MOST_INTEGER_DIGITS)?;
    (byte(text, at) != b'0' || end == at + 1).then_some((value, end))
}

fn skip_digits(text: &[u8], mut at: usize) -> usize {
    while byte(text, at).is_ascii_digit() {
        at += 1;
    }
    at
}

#[inline(always)]
fn skip_number(text: &[u8], at: usize) -> Option<usize> {
    let at = at + usize::from(byte(text, at) == b'-');
    let (_, at) = natural(text, at)?;
    match byte(text, at) {
        b'.' | b'e' | b'E' => skip_fraction(text, at),
        _ => Some(at),
    }
}

fn skip_fraction(text: &[u8], mut at: usize) -> Option<usize> {
    if byte(text, at) == b'.' {
        let end = skip_digits(text, at + 1);
        if end == at + 1 {
            return None;
        }
        at = end;
    }
    if byte(text, at) | 0x20 == b'e' {
        at += 1;
        at += usize::from(matches!(byte(text, at), b'+' | b'-'));
        let end = skip_digits(text, at);
        if end == at || end - at > 2 {
            return None;
        }
        at = end;
    }
    Some(at)
}

#[inline(always)]
pub fn skip_word(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    text.get(at..)?.starts_with(word).then_some(at + word.len())
}

#[inline(always)]
pub fn skip_value(text: &[u8], at: usize) -> Option<usize> {
    match byte(text, at) {
        b'"' => skip_string(text, at),
        b'0'..=b'9' | b'-' => skip_number(text, at),
        _ => skip_nested(text, at, 0),
    }
}

fn skip_nested(text: &[u8], at: usize, depth: u32) -> Option<usize> {
    let open = byte(text, at);
    let close = match open {
        b'"' => return skip_string(text, at),
        b'0'..=b'9' | b'-' => return skip_number(text, at),
        b't' => return skip_word(text, at, b"true"),
        b'f' => return skip_word(text, at, b"false"),
        b'n' => return skip_word(text, at, b"null"),
        b'{' => b'}',
        b'[' => b']',
        _ => return None,
    };
    if depth == DEEPEST {
        return None;
    }
    let mut at = skip_space(text, at + 1);
    if byte(text, at) == close {
        return Some(at + 1);
    }
    loop {
        if open == b'{' {
            if byte(text, at) != b'"' {
                return None;
            }
            at = value_at(text, skip_string(text, at)?)?;
        }
        at = skip_space(text, skip_nested(text, at, depth + 1)?);
        match byte(text, at) {
            b',' => at = skip_space(text, at + 1),
            one if one == close => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Where a key's value begins; `at` is behind the key.
#[inline(always)]
pub fn value_at(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..) {
        Some([b':', b' ', one, ..]) if *one > b' ' => Some(at + 2),
        Some([b':', ..]) => Some(skip_space(text, at + 1)),
        _ => colon_at(text, at).map(|at| skip_space(text, at + 1)),
    }
}

#[cold]
fn colon_at(text: &[u8], at: usize) -> Option<usize> {
    let at = skip_space(text, at);
    (byte(text, at) == b':').then_some(at)
}

/// A string without escapes, an integer, or null: the token as it stands, empty for null.
#[inline(always)]
pub fn scalar(text: &[u8], at: usize) -> Option<(Piece<'_>, usize)> {
    let end = match byte(text, at) {
        b'"' => plain_string(text, at)?.1,
        b'n' => return Some((&[], skip_word(text, at, b"null")?)),
        _ => skip_integer(text, at)?.1,
    };
    Some((&text[at..end], end))
}

/// As `scalar`: the natural number that it is, -1 for all else.
#[inline(always)]
pub fn count(text: &[u8], at: usize) -> Option<(i64, usize)> {
    match byte(text, at) {
        b'"' => Some((-1, plain_string(text, at)?.1)),
        b'n' => Some((-1, skip_word(text, at, b"null")?)),
        _ => skip_integer(text, at),
    }
}

/// An integer and nothing that goes on: its value, -1 where it is negative.
#[inline(always)]
fn skip_integer(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = byte(text, at) == b'-';
    let (value, end) = natural(text, at + usize::from(negative))?;
    if matches!(byte(text, end), b'.' | b'e' | b'E') || (negative && value == 0) {
        return None;
    }
    // 18 digits are below `LARGEST`.
    Some((if negative { -1 } else { value as i64 }, end))
}

/// Nanoseconds of a number in µs, decimals beyond the third cut; `None` inside where it is written in another way, and
/// where a number of `finest` ns or more has such decimals.
#[inline(always)]
pub fn microseconds(text: &[u8], at: usize, finest: u64) -> Option<(Option<i64>, usize)> {
    let Some((whole, end)) = digits(text, at, MOST_TIME_DIGITS) else {
        return Some((None, skip_value(text, at)?));
    };
    if byte(text, at) == b'0' && end > at + 1 {
        return None;
    }
    let (mut thousandths, mut after) = (0, end);
    if byte(text, end) == b'.' {
        let (part, count) = few_digits(text, end + 1);
        if count == 0 {
            return None;
        }
        after = end + 1 + count;
        if count > MOST_DECIMALS {
            return Some((None, skip_value(text, at)?));
        }
        thousandths = if count <= 3 { part * TENS[3 - count] } else { part / TENS[count - 3] };
        if count > 3 && whole * 1000 + thousandths >= finest {
            return Some((None, skip_value(text, at)?));
        }
    }
    if byte(text, after) | 0x20 == b'e' {
        return Some((None, skip_value(text, at)?));
    }
    let value = whole.checked_mul(1000).and_then(|value| value.checked_add(thousandths));
    Some((value.filter(|value| *value < LARGEST).map(|value| value as i64), after))
}
