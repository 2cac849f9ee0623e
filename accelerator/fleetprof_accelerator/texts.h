/* Texts by number, in the order in which they were met; a number is found again by hashing.
 *
 * Guarantees: bounded by MOST_KEY_BYTES; what was met since some count can be forgotten.
 */
#ifndef FLEETPROF_TEXTS_H
#define FLEETPROF_TEXTS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KEY_BYTES ((int64_t)512 << 20)

typedef const unsigned char *at_t;

typedef struct { at_t from, to; } Span;

typedef struct {
    unsigned char *bytes;
    int64_t used, room;
    int64_t *end; /* of text k in bytes */
    uint64_t *hash;
    int64_t count, many;
    int32_t *slots; /* number + 1, 0: free */
    int64_t slot_count;
} Texts;

static uint64_t hash_of(uint64_t hash, const unsigned char *p, int64_t n) {
    while (n >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
        p += 8;
        n -= 8;
    }
    uint64_t rest = (uint64_t)n << 56;
    for (int64_t k = 0; k < n; k++) rest |= (uint64_t)p[k] << (8 * k);
    hash = (hash ^ rest) * 0xBF58476D1CE4E5B9ull;
    return hash ^ (hash >> 32);
}

static int rebuild(Texts *t, int64_t slot_count) {
    int32_t *slots = calloc((size_t)slot_count, sizeof *slots);
    if (!slots) return -1;
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    for (int64_t k = 0; k < t->count; k++) {
        uint64_t at = t->hash[k] & (uint64_t)(slot_count - 1);
        while (slots[at]) at = (at + 1) & (uint64_t)(slot_count - 1);
        slots[at] = (int32_t)k + 1;
    }
    return 0;
}

static int more_room(Texts *t, int64_t bytes) {
    if (t->count == t->many) {
        int64_t many = t->many ? 2 * t->many : 256;
        int64_t *end = realloc(t->end, (size_t)many * sizeof *end);
        if (!end) return -1;
        t->end = end;
        uint64_t *hash = realloc(t->hash, (size_t)many * sizeof *hash);
        if (!hash) return -1;
        t->hash = hash;
        t->many = many;
    }
    if (t->used + bytes > t->room) {
        int64_t room = 2 * (t->used + bytes) + 4096;
        if (t->used + bytes > MOST_KEY_BYTES) return -1;
        unsigned char *moved = realloc(t->bytes, (size_t)room);
        if (!moved) return -1;
        t->bytes = moved;
        t->room = room;
    }
    if (2 * (t->count + 1) > t->slot_count) return rebuild(t, t->slot_count ? 2 * t->slot_count : 1024);
    return 0;
}

/* Whether text `number` is made of this mark and these spans. */
static inline int is_text(const Texts *t, int64_t number, unsigned char mark, Span a, Span b) {
    int64_t first = a.to - a.from, second = b.to - b.from, begin = number ? t->end[number - 1] : 0;
    const unsigned char *key = t->bytes + begin;
    return t->end[number] - begin == first + second + 2 && key[0] == mark && !memcmp(key + 1, a.from, (size_t)first) &&
           key[1 + first] == 0 && !memcmp(key + 2 + first, b.from, (size_t)second);
}

/* The number of the text made of a mark and two spans; -1 where there is no memory for it. */
static int32_t number_of(Texts *t, unsigned char mark, Span a, Span b) {
    int64_t first = a.to - a.from, second = b.to - b.from;
    uint64_t hash = hash_of(hash_of(mark + ((uint64_t)first << 8), a.from, first), b.from, second);
    int64_t bytes = first + second + 2;
    if (t->slot_count) {
        uint64_t at = hash & (uint64_t)(t->slot_count - 1);
        for (int32_t found; (found = t->slots[at]); at = (at + 1) & (uint64_t)(t->slot_count - 1)) {
            int64_t k = found - 1;
            if (t->hash[k] == hash && is_text(t, k, mark, a, b)) return (int32_t)k;
        }
    }
    if (t->count >= INT32_MAX - 1 || more_room(t, bytes)) return -1;
    unsigned char *key = t->bytes + t->used;
    key[0] = mark;
    memcpy(key + 1, a.from, (size_t)first);
    key[1 + first] = 0; /* in no value of JSON */
    memcpy(key + 2 + first, b.from, (size_t)second);
    t->used += bytes;
    t->hash[t->count] = hash;
    t->end[t->count] = t->used;
    uint64_t at = hash & (uint64_t)(t->slot_count - 1);
    while (t->slots[at]) at = (at + 1) & (uint64_t)(t->slot_count - 1);
    t->slots[at] = (int32_t)++t->count;
    return (int32_t)t->count - 1;
}

static void forget(Texts *t, int64_t count) {
    if (t->count == count) return;
    t->count = count;
    t->used = count ? t->end[count - 1] : 0;
    if (t->slots) {
        memset(t->slots, 0, (size_t)t->slot_count * sizeof *t->slots);
        for (int64_t k = 0; k < count; k++) {
            uint64_t at = t->hash[k] & (uint64_t)(t->slot_count - 1);
            while (t->slots[at]) at = (at + 1) & (uint64_t)(t->slot_count - 1);
            t->slots[at] = (int32_t)k + 1;
        }
    }
}

#endif
