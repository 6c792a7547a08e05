// How do our convolutions and products compare with oneDNN's, by shape, on one thread? Ours is the
// best version, as tuning would choose it; the two alternate, and the shortest times count.
//
// bench_dnnl [--json] [--quick] [WORD...]: only rows with a word in their family or name. oneDNN
// uses one thread if OMP_NUM_THREADS is 1.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/tensor.h"
#include "bench/dnnl/peer.h"
#include "bench/kernels/timing.h"

enum { ROUNDS = 7, PEER_TYPES = 2 };

typedef Err PeerMake(const Job *j, PeerType type, Peer **out);

static Err conv_peer(const Job *j, PeerType type, Peer **out) {
    return peer_conv(&j->of.conv.shape, type, out);
}

static Err winograd_peer(const Job *j, PeerType type, Peer **out) {
    return peer_conv(&j->of.winograd.call.shape, type, out);
}

static Err gemm_peer(const Job *j, PeerType type, Peer **out) {
    return peer_gemm(&j->of.gemm.shape, type, out);
}

typedef struct Subject {
    const Family *family;
    PeerMake     *make;
} Subject;

static const Subject subjects[] = {
    {&family_conv, conv_peer}, {&family_winograd, winograd_peer}, {&family_gemm, gemm_peer}};

typedef struct Contest {
    Bench   bench;
    Table   table;
    double  log_sum;  // of ratios
    int64_t n;
} Contest;

static Err measure_peer(const Bench *b, Peer *p, TimeNs *shortest) {
    TimeNs end = clock_now(b->clock) + b->budget;
    do {
        TimeNs start = clock_now(b->clock);
        TRY(peer_run(p));
        TimeNs took = clock_now(b->clock) - start;
        if (*shortest == 0 || took < *shortest) *shortest = took;
    } while (clock_now(b->clock) < end);
    return ERR_OK;
}

static Err alternate(Contest *c, Job *j, Peer **peers, TimeNs *theirs) {
    for (uint32_t v = 0; v < j->n_versions; v++) timing_measure(&c->bench, j, v);
    uint32_t best = timing_best(j);
    for (int i = 0; i < ROUNDS; i++) {
        timing_measure(&c->bench, j, best);
        for (int t = 0; t < PEER_TYPES; t++)
            if (peers[t] != NULL) TRY(measure_peer(&c->bench, peers[t], &theirs[t]));
    }
    return ERR_OK;
}

static void report(Contest *c, const Job *j, const char *family, const char *name, Peer **peers,
                   const TimeNs *theirs) {
    Table *t = &c->table;
    double ours = (double)j->shortest[timing_best(j)], ratio = ours / (double)theirs[PEER_F32];
    table_row(t);
    table_text(t, family);
    table_text(t, name);
    table_real(t, ours);
    table_int(t, theirs[PEER_F32]);
    table_real(t, ratio);
    if (peers[PEER_INT8] != NULL)
        table_int(t, theirs[PEER_INT8]);
    else
        table_missing(t);
    table_text(t, peer_implementation(peers[PEER_F32]));
    c->log_sum += log(ratio);
    c->n++;
}

// A shape that oneDNN has no implementation for leaves its cells empty, FP32 is required.
static Err make_peers(const Subject *s, const Job *j, Peer **peers) {
    TRY(s->make(j, PEER_F32, &peers[PEER_F32]));
    Err e = s->make(j, PEER_INT8, &peers[PEER_INT8]);
    return e == ERR_UNSUPPORTED ? ERR_OK : e;
}

static Err contest_row(Contest *c, const Subject *s, const void *row, const char *name) {
    Arena  a = {0};
    Peer  *peers[PEER_TYPES] = {0};
    TimeNs theirs[PEER_TYPES] = {0};
    TRY(arena_init(&a, (size_t)1 << 32));
    Job j = {.arena = &a};
    s->family->make(&c->bench, row, &j);
    j.scratch = arena_alloc(&a, j.scratch_bytes + 1, 1, TENSOR_ALIGN);
    Err e = make_peers(s, &j, peers);
    if (e == ERR_OK) e = alternate(c, &j, peers, theirs);
    if (e == ERR_OK) report(c, &j, s->family->name, name, peers, theirs);
    for (int t = 0; t < PEER_TYPES; t++) peer_free(peers[t]);
    arena_finish(&a);
    return e;
}

static Err contest(Contest *c, int n, char **words) {
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const Family *f = subjects[i].family;
        for (size_t k = 0; k < f->n_rows; k++) {
            const void *row = (const char *)f->rows + k * f->row_bytes;
            const char *name = *(const char *const *)row;
            if (bench_wanted(f->name, name, n, words)) TRY(contest_row(c, &subjects[i], row, name));
        }
    }
    return ERR_OK;
}

static Err show(const Contest *c, bool json) {
    double mean = c->n > 0 ? exp(c->log_sum / (double)c->n) : 0;
    if (!json) {
        TRY(table_print(&c->table, stdout));
        printf("geometric mean of ours / oneDNN: %.2f (%lld shapes, one thread)\n", mean,
               (long long)c->n);
        return ERR_OK;
    }
    json_t *rows = NULL;
    TRY(table_json(&c->table, &rows));
    json_t *all = json_pack("{s:f, s:o}", "geometric_mean", mean, "shapes", rows);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for the JSON text");
    json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return ERR_OK;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "family", .head = "family"},
        {.key = "name", .head = "shape"},
        {.key = "ours_ns", .head = "ours", .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "dnnl_ns", .head = "oneDNN", .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "ratio", .head = "ours / oneDNN", .decimals = 2},
        {.key = "dnnl_int8_ns", .head = "oneDNN INT8", .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "implementation", .head = "oneDNN's kernel"},
    };
    Arena   a = {0};
    Contest c = {0};
    Err     e = arena_init(&a, (size_t)1 << 30);
    table_init(&c.table, &a, cols, sizeof cols / sizeof *cols);
    if (e == ERR_OK) e = timing_start(&a, bench_flag(argc, argv, "--quick"), &c.bench);
    if (e == ERR_OK) e = contest(&c, argc - 1, argv + 1);
    if (e == ERR_OK) e = show(&c, bench_flag(argc, argv, "--json"));
    if (e != ERR_OK) fprintf(stderr, "bench_dnnl: %s\n", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}
