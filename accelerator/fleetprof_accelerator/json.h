/* Passes over JSON as far as it is plain. Each function returns what follows, NULL where the text is irregular.
 *
 * Guarantees: reads below `end` only; nothing recurses deeper than DEEPEST; what is accepted is valid JSON in ASCII.
 */
#ifndef FLEETPROF_JSON_H
#define FLEETPROF_JSON_H
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "texts.h"

#define DEEPEST 32
#define MOST_INTEGER_DIGITS 18
#define LARGEST ((int64_t)1 << 62)

static at_t skip_spaces(at_t p, at_t end) {
    for (; p < end; p++)
        if (*p > ' ' || (*p != ' ' && *p != '\n' && *p != '\t' && *p != '\r')) break;
    return p;
}

static inline at_t skip_space(at_t p, at_t end) {
    if (end - p < 2) return skip_spaces(p, end);
    if (*p > ' ') return p;
    if (*p == ' ' && p[1] > ' ') return p + 1;
    return skip_spaces(p, end);
}

/* To the first byte that is a quote, a backslash, a control character or beyond ASCII. */
static inline at_t skip_plain(at_t p, at_t end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\'), space = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)p);
        /* Signed: bytes beyond ASCII are below 0x20 as control characters are. */
        __m128i bad = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, back)),
                                   _mm_cmplt_epi8(x, space));
        int mask = _mm_movemask_epi8(bad);
        if (mask) return p + __builtin_ctz((unsigned)mask);
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20 && *p < 0x80) p++;
    return p;
}

/* A string without escapes; p stands on its quote. */
static inline at_t plain_string(at_t p, at_t end, Span *span) {
    at_t close = skip_plain(p + 1, end);
    if (close >= end || *close != '"') return NULL;
    span->from = p + 1;
    span->to = close;
    return close + 1;
}

static at_t skip_string(at_t p, at_t end) {
    p++;
    for (;;) {
        p = skip_plain(p, end);
        if (p >= end) return NULL;
        if (*p == '"') return p + 1;
        if (*p != '\\' || end - p < 2 || !memchr("\"\\/bfnrt", p[1], 8)) return NULL;
        p += 2;
    }
}

static inline at_t skip_digits(at_t p, at_t end) {
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p;
}

static at_t skip_number(at_t p, at_t end) {
    if (*p == '-') p++;
    at_t digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p - digits > 1) || p - digits > MOST_INTEGER_DIGITS) return NULL;
    if (p < end && *p == '.') {
        at_t fraction = ++p;
        p = skip_digits(p, end);
        if (p == fraction) return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        at_t exponent = p;
        p = skip_digits(p, end);
        if (p == exponent || p - exponent > 2) return NULL;
    }
    return p;
}

static inline at_t skip_word(at_t p, at_t end, const char *word, int64_t length) {
    return end - p >= length && !memcmp(p, word, (size_t)length) ? p + length : NULL;
}

static at_t skip_value(at_t p, at_t end, int depth) {
    if (p >= end) return NULL;
    switch (*p) {
    case '"': return skip_string(p, end);
    case 't': return skip_word(p, end, "true", 4);
    case 'f': return skip_word(p, end, "false", 5);
    case 'n': return skip_word(p, end, "null", 4);
    case '{': case '[': break;
    default: return (*p >= '0' && *p <= '9') || *p == '-' ? skip_number(p, end) : NULL;
    }
    if (depth == DEEPEST) return NULL;
    unsigned char open = *p, close = open == '{' ? '}' : ']';
    p = skip_space(p + 1, end);
    if (p < end && *p == close) return p + 1;
    for (;;) {
        if (open == '{') {
            if (p >= end || *p != '"' || !(p = skip_string(p, end))) return NULL;
            p = skip_space(p, end);
            if (p >= end || *p != ':') return NULL;
            p = skip_space(p + 1, end);
        }
        if (!(p = skip_value(p, end, depth + 1))) return NULL;
        p = skip_space(p, end);
        if (p >= end) return NULL;
        if (*p == close) return p + 1;
        if (*p != ',') return NULL;
        p = skip_space(p + 1, end);
    }
}

/* A string without escapes, an integer, or null: the whole token as a span, empty for null. */
static at_t scalar(at_t p, at_t end, Span *token) {
    at_t begin = p;
    Span inside;
    token->from = token->to = begin;
    if (p >= end) return NULL;
    if (*p == '"') {
        if (!(p = plain_string(p, end, &inside))) return NULL;
    } else if (*p == 'n') {
        return skip_word(p, end, "null", 4);
    } else {
        if (*p == '-') p++;
        at_t digits = p;
        p = skip_digits(p, end);
        if (p == digits || p - digits > MOST_INTEGER_DIGITS || (*digits == '0' && p - begin > 1)) return NULL;
        if (p < end && (*p == '.' || *p == 'e' || *p == 'E')) return NULL;
    }
    token->from = begin;
    token->to = p;
    return p;
}

/* The natural number of a scalar's token, -1 for any other. */
static int64_t natural(Span token) {
    int64_t value = 0;
    if (token.from == token.to || *token.from == '"' || *token.from == '-') return -1;
    for (at_t p = token.from; p < token.to; p++) value = 10 * value + (*p - '0');
    return value < LARGEST ? value : -1;
}

/* Nanoseconds of a number in µs, decimals beyond three cut; *known is 0 where it is written in another way, and where
 * a number of `finest` ns or more has further decimals: the reader has durations from a double, which is not so fine. */
static at_t microseconds(at_t p, at_t end, uint64_t finest, int64_t *nanoseconds, int *known) {
    at_t begin = p;
    uint64_t value = 0;
    *known = 0;
    if (p >= end || *p < '0' || *p > '9') return skip_value(p, end, 0);
    while (p < end && *p >= '0' && *p <= '9') {
        if (p - begin >= 16) return skip_value(begin, end, 0);
        value = 10 * value + (uint64_t)(*p++ - '0');
    }
    if (*begin == '0' && p - begin > 1) return NULL;
    int decimals = 0;
    if (p < end && *p == '.') {
        at_t fraction = ++p;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            if (decimals < 3) {
                value = 10 * value + (uint64_t)(*p - '0');
                decimals++;
            }
        if (p == fraction) return NULL;
        if (p - fraction > 6 || (p - fraction > 3 && value >= finest)) return skip_value(begin, end, 0);
    }
    if (p < end && (*p == 'e' || *p == 'E')) return skip_value(begin, end, 0);
    for (; decimals < 3; decimals++) value *= 10;
    if (value >= (uint64_t)LARGEST) return p;
    *nanoseconds = (int64_t)value;
    *known = 1;
    return p;
}

#endif
