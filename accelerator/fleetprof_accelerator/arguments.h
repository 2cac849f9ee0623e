/* The keys of an event and of its arguments, as far as a column is made of them.
 *
 * Guarantees: as json.h; a key that stands twice makes the event irregular, since the last would count.
 */
#ifndef FLEETPROF_ARGUMENTS_H
#define FLEETPROF_ARGUMENTS_H
#include "json.h"

#define PRESENT_COLLECTIVE 1
#define PRESENT_DIMENSIONS 2

/* Whether this key stands at p. Comparing with a word of known length is quicker than looking for the closing quote. */
#define KEY(word) (end - p > (int64_t)sizeof(word) && !memcmp(p, "\"" word "\"", sizeof(word) + 1))
#define AS(word, number) if (KEY(word)) { *after = p + sizeof(word) + 1; return number; }
#define ONCE(number) if (seen & (1u << (number))) return NULL; seen |= 1u << (number)

/* Where a key's value begins; p stands behind the key. */
static inline at_t value_of(at_t p, at_t end) {
    p = skip_space(p, end);
    if (p >= end || *p != ':') return NULL;
    p = skip_space(p + 1, end);
    return p < end ? p : NULL;
}

/* Behind a key that no column is made of. */
static inline at_t other_key(at_t p, at_t end) {
    Span key;
    return plain_string(p, end, &key);
}

typedef struct {
    Span external_id, sequence_number, grid, block, device, stream, correlation, bytes;
    Span total_reserved, total_allocated, device_id, device_type;
    int present;
} Args;

enum {
    OTHER, EXTERNAL_ID, SEQUENCE_NUMBER, GRID, BLOCK, BYTES, DEVICE, STREAM, CORRELATION, COLLECTIVE, DIMENSIONS,
    TOTAL_RESERVED, TOTAL_ALLOCATED, DEVICE_ID, DEVICE_TYPE
};

static inline int argument_at(at_t p, at_t end, at_t *after) {
    if (end - p < 2) return OTHER;
    switch (p[1]) {
    case 'E': AS("External id", EXTERNAL_ID) break;
    case 'S': AS("Sequence number", SEQUENCE_NUMBER) break;
    case 'g': AS("grid", GRID) break;
    case 'b': AS("block", BLOCK) AS("bytes", BYTES) break;
    case 'd': AS("device", DEVICE) break;
    case 's': AS("stream", STREAM) break;
    case 'c': AS("correlation", CORRELATION) break;
    case 'C': AS("Collective name", COLLECTIVE) break;
    case 'I': AS("Input Dims", DIMENSIONS) break;
    case 'T': AS("Total Reserved", TOTAL_RESERVED) AS("Total Allocated", TOTAL_ALLOCATED) break;
    case 'D': AS("Device Id", DEVICE_ID) AS("Device Type", DEVICE_TYPE) break;
    }
    return OTHER;
}

/* The arguments; p stands on their brace. */
static at_t parse_args(at_t p, at_t end, Args *args) {
    unsigned seen = 0;
    p = skip_space(p + 1, end);
    if (p < end && *p == '}') return p + 1;
    for (;;) {
        at_t after = NULL;
        if (p >= end || *p != '"') return NULL;
        int key = argument_at(p, end, &after);
        if (key == OTHER) after = other_key(p, end);
        else if (key != COLLECTIVE && key != DIMENSIONS) { ONCE(key); }
        if (!after || !(p = value_of(after, end))) return NULL;
        switch (key) {
        case EXTERNAL_ID: p = scalar(p, end, &args->external_id); break;
        case SEQUENCE_NUMBER: p = scalar(p, end, &args->sequence_number); break;
        case GRID: args->grid.from = p; p = skip_value(p, end, 0); args->grid.to = p; break;
        case BLOCK: args->block.from = p; p = skip_value(p, end, 0); args->block.to = p; break;
        case BYTES: p = scalar(p, end, &args->bytes); break;
        case DEVICE: p = scalar(p, end, &args->device); break;
        case STREAM: p = scalar(p, end, &args->stream); break;
        case CORRELATION: p = scalar(p, end, &args->correlation); break;
        case TOTAL_RESERVED: p = scalar(p, end, &args->total_reserved); break;
        case TOTAL_ALLOCATED: p = scalar(p, end, &args->total_allocated); break;
        case DEVICE_ID: p = scalar(p, end, &args->device_id); break;
        case DEVICE_TYPE: p = scalar(p, end, &args->device_type); break;
        case COLLECTIVE: args->present |= PRESENT_COLLECTIVE; p = skip_value(p, end, 0); break;
        case DIMENSIONS: args->present |= PRESENT_DIMENSIONS; p = skip_value(p, end, 0); break;
        default: p = skip_value(p, end, 0);
        }
        if (!p) return NULL;
        p = skip_space(p, end);
        if (p >= end) return NULL;
        if (*p == '}') return p + 1;
        if (*p != ',') return NULL;
        p = skip_space(p + 1, end);
    }
}

#endif
