// What does a tensor in JSON cost? Parsing an image of 150,528 numbers in the formats of common
// clients, with the server's reader and with jansson, beside binary data; and writing as many.
// bench_json_tensor [--json] [REPEATS]: minimum CPU time of REPEATS alternating runs, which other
// load affects less.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/table.h"
#include "net/exchange.h"
#include "serve/tensor/infer_request.h"

enum { NUMBERS = 3 * 224 * 224, ROW = 224, NUMBER_BYTES = 32, REPEATS = 15 };

typedef struct Style {  // number format of a client
    const char *name, *comma;
    int (*print)(char *out, float v);
    float lo, hi;
    bool  nested;
} Style;

static int print_9g(char *out, float v) { return snprintf(out, NUMBER_BYTES, "%.9g", (double)v); }
static int print_17g(char *out, float v) { return snprintf(out, NUMBER_BYTES, "%.17g", (double)v); }
static int print_4f(char *out, float v) { return snprintf(out, NUMBER_BYTES, "%.4f", (double)v); }
static int print_2f(char *out, float v) { return snprintf(out, NUMBER_BYTES, "%.2f", (double)v); }
static int print_0f(char *out, float v) { return snprintf(out, NUMBER_BYTES, "%.0f", (double)v); }

static const Style styles[] = {
    {"9 digits, flat", ",", print_9g, -2.5F, 2.5F, false},
    {"9 digits, nested, spaces", ", ", print_9g, -2.5F, 2.5F, true},
    {"doubles of floats, spaces", ", ", print_17g, 0, 1, false},
    {"4 decimals, flat", ",", print_4f, -2.5F, 2.5F, false},
    {"2 decimals, flat", ",", print_2f, 0, 1, false},
    {"bytes as whole numbers", ",", print_0f, 0, 255, false},
};

typedef struct Bench {
    Clock  clock;
    Arena  arena;
    float *truth, *copy;
    char  *body;
    size_t len;
    double ours_ms, jansson_ms, memcpy_ms;
} Bench;

static TimeNs processor_time(void *state) {
    (void)state;
    struct timespec t = {0};
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double ms_since(const Bench *b, TimeNs t) {
    return (double)(clock_now(b->clock) - t) * 1e-6;
}
static void keep_least(double *best, double ms) { *best = ms < *best ? ms : *best; }

static void write_body(Bench *b, const Style *s) {
    Rng   rng = {7};
    char *p = b->body;
    p += sprintf(
        p, "{\"inputs\":[{\"name\":\"x\",\"shape\":[3,224,224],\"datatype\":\"FP32\",\"data\":[");
    for (int i = 0; i < NUMBERS; i++) {
        char text[NUMBER_BYTES];
        if (i > 0 && !(s->nested && i % ROW == 0)) p += sprintf(p, "%s", s->comma);
        if (s->nested && i % ROW == 0)
            p += sprintf(p, "%s", i == 0 ? "[[" : i % (ROW * ROW) == 0 ? "]],[[" : "],[");
        int n = s->print(text, s->lo + rng_unit(&rng) * (s->hi - s->lo));
        b->truth[i] = strtof(text, NULL);
        memcpy(p, text, (size_t)n);
        p += n;
    }
    p += sprintf(p, "%s]}]}", s->nested ? "]]" : "");
    b->len = (size_t)(p - b->body);
}

static void time_ours(Bench *b) {
    InferRequest r;
    TimeNs       t = clock_now(b->clock);
    CHECK(infer_json_decode((unsigned char *)b->body, b->len, SIZE_MAX, &b->arena, &r) == ERR_OK);
    keep_least(&b->ours_ms, ms_since(b, t));
    CHECK(memcmp(r.inputs[0].t.data, b->truth, NUMBERS * sizeof(float)) == 0);
    arena_rewind(&b->arena, 0);
}

static float *copy_numbers(const json_t *v, float *out) {
    size_t  i;
    json_t *e;
    if (!json_is_array(v)) {
        *out = (float)json_number_value(v);
        return out + 1;
    }
    json_array_foreach(v, i, e) out = copy_numbers(e, out);
    return out;
}

// Freeing the document is not timed.
static void time_jansson(Bench *b) {
    json_error_t why;
    TimeNs       t = clock_now(b->clock);
    json_t      *doc = json_loadb(b->body, b->len, 0, &why);
    CHECK(doc != NULL);
    const json_t *input = json_array_get(json_object_get(doc, "inputs"), 0);
    CHECK(copy_numbers(json_object_get(input, "data"), b->copy) == b->copy + NUMBERS);
    keep_least(&b->jansson_ms, ms_since(b, t));
    json_decref(doc);
}

static void time_memcpy(Bench *b) {
    TimeNs t = clock_now(b->clock);
    memcpy(b->copy, b->truth, NUMBERS * sizeof(float));
    __asm__ volatile("" : : "r"(b->copy) : "memory");
    keep_least(&b->memcpy_ms, ms_since(b, t));
}

static void time_encode(Bench *b) {
    const TensorSpec spec = {.name = "y"};
    const Tensor     t = tensor_of(DT_F32, 1, (int64_t[]){NUMBERS}, b->truth);
    const bool       binary = false;
    InferResponse    r = {.model = "m", .specs = &spec, .tensors = &t, .binary = &binary, .n = 1};
    struct iovec     pieces[EXCHANGE_PIECES];
    uint32_t         n;
    size_t           header;
    TimeNs           begin = clock_now(b->clock);
    CHECK(infer_json_encode(&r, SIZE_MAX / 2, &b->arena, pieces, &n, &header) == ERR_OK);
    keep_least(&b->ours_ms, ms_since(b, begin));
    arena_rewind(&b->arena, 0);
}

// Builds jansson's array and its text.
static void time_dumps(Bench *b) {
    TimeNs  t = clock_now(b->clock);
    json_t *list = json_array();
    CHECK(list != NULL);
    for (int i = 0; i < NUMBERS; i++)
        CHECK(json_array_append_new(list, json_real((double)b->truth[i])) == 0);
    char *text = json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(9));
    CHECK(text != NULL);
    keep_least(&b->jansson_ms, ms_since(b, t));
    free(text);
    json_decref(list);
}

static void add_row(Table *t, const Bench *b, const char *what, const char *name) {
    table_row(t);
    table_text(t, what);
    table_text(t, name);
    table_real(t, b->ours_ms);
    table_real(t, b->ours_ms * 1e6 / NUMBERS);
    table_real(t, b->jansson_ms);
    table_real(t, b->memcpy_ms);
    table_real(t, b->jansson_ms / b->ours_ms);
}

static void measure(Bench *b, Table *t, int repeats) {
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        b->ours_ms = b->jansson_ms = b->memcpy_ms = 1e9;
        write_body(b, &styles[i]);
        for (int k = 0; k < repeats; k++) {
            time_ours(b);
            time_jansson(b);
            time_memcpy(b);
        }
        add_row(t, b, "read", styles[i].name);
    }
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        b->ours_ms = b->jansson_ms = b->memcpy_ms = 1e9;
        write_body(b, &styles[i]);
        for (int k = 0; k < repeats; k++) {
            time_encode(b);
            time_dumps(b);
            time_memcpy(b);
        }
        add_row(t, b, "write", styles[i].name);
    }
}

static Err show(const Table *t, bool json) {
    if (!json) return table_print(t, stdout);
    json_t *rows = NULL;
    TRY(table_json(t, &rows));
    Err e = json_write(stdout, rows);
    json_decref(rows);
    return e;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "what", .head = "what"},
        {.key = "numbers", .head = "numbers"},
        {.key = "ours_ms", .head = "ours", .unit = "ms", .decimals = 2},
        {.key = "number_ns", .head = "a number", .unit = "ns", .decimals = 1},
        {.key = "jansson_ms", .head = "jansson", .unit = "ms", .decimals = 1},
        {.key = "memcpy_ms", .head = "binary", .unit = "ms", .decimals = 3},
        {.key = "ratio", .head = "jansson / ours", .decimals = 1},
    };
    const bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const int  repeats = argc > 1 + json ? atoi(argv[1 + json]) : REPEATS;
    Bench      b = {.clock = {processor_time, NULL}};
    Arena      a;
    Table      t;
    CHECK(arena_init(&a, 1 << 24) == ERR_OK && arena_init(&b.arena, 1 << 26) == ERR_OK);
    b.truth = arena_new(&a, float, NUMBERS);
    b.copy = arena_new(&a, float, NUMBERS);
    b.body = arena_new(&a, char, NUMBERS *NUMBER_BYTES);
    table_init(&t, &a, cols, sizeof cols / sizeof *cols);
    measure(&b, &t, repeats > 0 ? repeats : REPEATS);
    Err e = show(&t, json);
    if (e != ERR_OK) (void)fprintf(stderr, "bench_json_tensor: %s\n", err_why());
    arena_finish(&b.arena);
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}
