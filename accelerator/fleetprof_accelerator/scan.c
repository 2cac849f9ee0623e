/* Scans the events of a PyTorch trace into columns, in one pass over the bytes and without building objects.
 *
 * The reader of fleetprof_analyzer knows everything about damaged traces; this knows only the regular ones. Whatever is
 * not plainly regular (an escape in a name, a byte beyond ASCII, a number with an exponent where a time belongs, a key
 * twice) makes fp_scan answer FP_IRREGULAR and forget the whole block, and the reader decodes it its own way. So the
 * result is the same with and without this file; tests/analyzer/reading/test_accelerator.py holds it to that.
 *
 * Guarantees: reads text[0 .. length) only; memory is bounded (texts.h); no global state, no Python.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "json.h"
#include "texts.h"

#define FP_IRREGULAR (-1)
#define MOST_CATEGORIES 32
#define FINEST_DURATION 1000000000000
enum { NAMES, PLACES, SHAPES, DEVICES, KINDS };

/* What a block holds, one element per kept row; the caller owns the arrays, each of `capacity` elements. */
typedef struct {
    int64_t capacity;
    int8_t *category;
    int32_t *name, *place, *shape;
    int64_t *start_ns, *duration_ns, *correlation, *detail, *external_id;
    int8_t *present;         /* PRESENT_* */
    int32_t *args_at, *args_length; /* where its arguments stand in the text */
    int64_t instant_capacity;
    int32_t *instant_at, *instant_length; /* events the reader looks at itself: "i" with a name that begins so */
    int32_t *memory_device; /* what allocators say, up to `capacity` of them */
    int64_t *memory_at_ns, *memory_allocated, *memory_reserved;
    int64_t rows, instants, memories, events; /* answers */
} Block;

typedef struct {
    Texts texts[KINDS];
    struct { char text[32]; int length; int8_t code; } categories[MOST_CATEGORIES];
    int category_count;
    struct { char text[32]; int length; } instants[8];
    int instant_count;
    int8_t last_device_code, call_code;
    int32_t latest_place[2]; /* of the host and of devices */
} Scanner;

/* ------------------------------------------------------------------ events */

enum { PH = 1, TS, CAT, DUR, PID, TID, NAME, ARGS };

static inline int key_at(at_t p, at_t end, at_t *after) {
    AS("ph", PH) AS("cat", CAT) AS("name", NAME) AS("pid", PID) AS("tid", TID) AS("ts", TS) AS("dur", DUR) AS("args", ARGS)
    return OTHER;
}

static int8_t category_of(const Scanner *s, Span cat) {
    int64_t length = cat.to - cat.from;
    for (int k = 0; k < s->category_count; k++)
        if (s->categories[k].length == length && !memcmp(s->categories[k].text, cat.from, (size_t)length))
            return s->categories[k].code;
    return -1;
}

static int is_instant(const Scanner *s, Span name) {
    for (int k = 0; k < s->instant_count; k++)
        if (name.to - name.from >= s->instants[k].length &&
            !memcmp(s->instants[k].text, name.from, (size_t)s->instants[k].length))
            return 1;
    return 0;
}

/* The number of a place: mostly that of the row before it, of the same kind. */
static int32_t place_of(Scanner *s, int on_device, Span first, Span second) {
    Texts *places = &s->texts[PLACES];
    int32_t *latest = &s->latest_place[on_device];
    if (*latest < places->count && is_text(places, *latest, 0, first, second)) return *latest;
    int32_t found = number_of(places, 0, first, second);
    *latest = found < 0 ? 0 : found;
    return found;
}

/* One event; p stands on its brace. */
static at_t parse_event(Scanner *s, at_t text, at_t p, at_t end, Block *out) {
    at_t begin = p;
    Span nothing = {p, p}, ph = nothing, cat = nothing, name = nothing, pid = nothing, tid = nothing;
    Args args = {nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing,
                 nothing, nothing, nothing, nothing, 0};
    Span args_text = nothing;
    int64_t start = 0, duration = 0;
    int start_known = 0, duration_known = 0;
    unsigned seen = 0;
    p = skip_space(p + 1, end);
    if (p < end && *p == '}') return p + 1;
    for (;;) {
        at_t after = NULL;
        if (p >= end || *p != '"') return NULL;
        int key = key_at(p, end, &after);
        if (key == OTHER) after = other_key(p, end);
        else { ONCE(key); }
        if (!after || !(p = value_of(after, end))) return NULL;
        switch (key) {
        case PH: p = *p == '"' ? plain_string(p, end, &ph) : NULL; break;
        case TS: p = microseconds(p, end, LARGEST, &start, &start_known); break;
        case CAT: p = *p == 'n' ? skip_word(p, end, "null", 4) : *p == '"' ? plain_string(p, end, &cat) : NULL; break;
        case DUR:
            /* The reader's decoder refuses these. */
            if (memchr("tf[{", *p, 4)) return NULL;
            p = microseconds(p, end, FINEST_DURATION, &duration, &duration_known);
            break;
        case PID: p = scalar(p, end, &pid); break;
        case TID: p = scalar(p, end, &tid); break;
        case NAME: p = *p == '"' ? plain_string(p, end, &name) : NULL; break;
        case ARGS:
            if (*p == '{') {
                args_text.from = p;
                p = parse_args(p, end, &args);
                args_text.to = p;
            } else {
                p = skip_word(p, end, "null", 4);
            }
            break;
        default: p = skip_value(p, end, 0);
        }
        if (!p) return NULL;
        p = skip_space(p, end);
        if (p >= end) return NULL;
        if (*p == '}') break;
        if (*p != ',') return NULL;
        p = skip_space(p + 1, end);
    }
    p++;
    if (ph.to - ph.from != 1) return p;
    if (*ph.from == 'i' && name.to - name.from == 8 && !memcmp(name.from, "[memory]", 8)) {
        if (!start_known || out->memories == out->capacity) return NULL;
        int64_t one = out->memories++;
        out->memory_at_ns[one] = start;
        out->memory_allocated[one] = natural(args.total_allocated);
        out->memory_reserved[one] = natural(args.total_reserved);
        out->memory_device[one] = number_of(&s->texts[DEVICES], 0, args.device_type, args.device_id);
        return out->memory_device[one] < 0 ? NULL : p;
    }
    if (*ph.from == 'i' && is_instant(s, name)) {
        if (out->instants == out->instant_capacity) return NULL;
        out->instant_at[out->instants] = (int32_t)(begin - text);
        out->instant_length[out->instants++] = (int32_t)(p - begin);
        return p;
    }
    int8_t code;
    if (*ph.from != 'X' || (code = category_of(s, cat)) < 0) return p;
    if (!start_known || !duration_known || out->rows == out->capacity) return NULL;
    int64_t row = out->rows++;
    int on_device = code <= s->last_device_code;
    Span first = on_device && args.device.to != args.device.from ? args.device : pid;
    Span second = on_device && args.stream.to != args.stream.from ? args.stream : tid;
    out->category[row] = code;
    out->start_ns[row] = start;
    out->duration_ns[row] = duration;
    out->name[row] = number_of(&s->texts[NAMES], (unsigned char)code, name, nothing);
    out->place[row] = place_of(s, on_device, first, second);
    int shaped = on_device && args.grid.from != args.grid.to;
    out->shape[row] = -1;
    if (shaped) out->shape[row] = number_of(&s->texts[SHAPES], 0, args.grid, args.block);
    int launches = code == s->call_code;
    out->correlation[row] = on_device || launches ? natural(args.correlation) : -1;
    out->detail[row] = launches ? -1 : natural(on_device ? args.bytes : args.sequence_number);
    out->external_id[row] = natural(args.external_id);
    out->present[row] = (int8_t)args.present;
    out->args_at[row] = (int32_t)(args_text.from - text);
    out->args_length[row] = (int32_t)(args_text.to - args_text.from);
    if (out->name[row] < 0 || out->place[row] < 0 || (shaped && out->shape[row] < 0))
        return NULL;
    return p;
}

/* ------------------------------------------------------------------ what the reader calls */

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

/* What the reader must know of this file; it is changed with `Block` or with a function's arguments. */
PUBLIC int fp_version(void) { return 1; }

/* Categories up to `last_device_code` are device work, at (device, stream); others stand at (process, thread), and
 * `call_code` is that of calls into the driver. */
PUBLIC Scanner *fp_new(int8_t last_device_code, int8_t call_code) {
    Scanner *s = calloc(1, sizeof *s);
    if (s) {
        s->last_device_code = last_device_code;
        s->call_code = call_code;
    }
    return s;
}

PUBLIC void fp_free(Scanner *s) {
    if (!s) return;
    for (int k = 0; k < KINDS; k++) {
        free(s->texts[k].bytes);
        free(s->texts[k].end);
        free(s->texts[k].hash);
        free(s->texts[k].slots);
    }
    free(s);
}

/* Rows of this category are kept, with this code. 0, or -1: no room. */
PUBLIC int fp_keep_category(Scanner *s, const char *text, int length, int8_t code) {
    if (s->category_count == MOST_CATEGORIES || length < 0 || length > 32) return -1;
    memcpy(s->categories[s->category_count].text, text, (size_t)length);
    s->categories[s->category_count].length = length;
    s->categories[s->category_count++].code = code;
    return 0;
}

/* Instants whose name begins so are listed. 0, or -1: no room. */
PUBLIC int fp_keep_instant(Scanner *s, const char *text, int length) {
    if (s->instant_count == 8 || length < 0 || length > 32) return -1;
    memcpy(s->instants[s->instant_count].text, text, (size_t)length);
    s->instants[s->instant_count++].length = length;
    return 0;
}

/* Scans events with commas between them into `out`. The number of rows, or FP_IRREGULAR: nothing was taken. */
PUBLIC int64_t fp_scan(Scanner *s, const unsigned char *text, int64_t length, Block *out) {
    at_t p = text, end = text + length;
    int64_t before[KINDS];
    for (int k = 0; k < KINDS; k++) before[k] = s->texts[k].count;
    out->rows = out->instants = out->memories = out->events = 0;
    if (length > INT32_MAX) return FP_IRREGULAR;
    for (;;) {
        p = skip_space(p, end);
        if (p >= end || *p != '{' || !(p = parse_event(s, text, p, end, out))) break;
        out->events++;
        p = skip_space(p, end);
        if (p == end) return out->rows;
        if (*p != ',') break;
        p++;
    }
    for (int k = 0; k < KINDS; k++) forget(&s->texts[k], before[k]);
    return FP_IRREGULAR;
}

/* How many texts of a kind (NAMES, ...) there are. */
PUBLIC int64_t fp_text_count(const Scanner *s, int kind) { return s->texts[kind].count; }

/* Text `number`: a byte (the category's code of a name, else 0), the first part, a zero byte, the second part. */
PUBLIC const unsigned char *fp_text(const Scanner *s, int kind, int64_t number, int64_t *length) {
    const Texts *t = &s->texts[kind];
    int64_t begin = number ? t->end[number - 1] : 0;
    *length = t->end[number] - begin;
    return t->bytes + begin;
}
