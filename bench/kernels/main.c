// How close is each kernel to the machine's peak? GFLOP/s per family and shape: of the first
// version (chosen without measuring) and of the best version.
//
// bench_kernels [--json] [--quick] [WORD...]: only rows with a word in their family or name.
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "base/tensor.h"
#include "bench/kernels/timing.h"

static void report(const Bench *b, const Job *j, const char *family, const char *name, Table *t) {
    uint32_t       best = timing_best(j);
    const Version *v = &j->versions[best];
    double first = j->flops / (double)j->shortest[0], top = j->flops / (double)j->shortest[best];
    table_row(t);
    table_text(t, family);
    table_text(t, name);
    table_int(t, j->shortest[0]);
    table_real(t, first);
    table_real(t, first / b->peak);
    table_real(t, top);
    table_real(t, top / b->peak);
    table_int(t, j->n_versions);
    table_textf(t, "%s %ux%u r%u c%u d%u%s%s", algo_name(v->algo), v->tile_rows, v->tile_vecs,
                v->rows, v->columns, v->depth, v->order == ORDER_INPUT_STATIONARY ? " input" : "",
                v->pack > 0 ? " packed" : "");
}

static Err bench_row(Bench *b, const Family *f, const void *row, const char *name, Table *t) {
    Arena a = {0};
    TRY(arena_init(&a, (size_t)1 << 32));
    Job j = {.arena = &a};
    f->make(b, row, &j);
    j.scratch = arena_alloc(&a, j.scratch_bytes + 1, 1, TENSOR_ALIGN);
    for (uint32_t v = 0; v < j.n_versions; v++) {
        timing_measure(b, &j, v);
        if (v % 8 == 7 || v + 1 == j.n_versions) timing_measure(b, &j, 0);
    }
    report(b, &j, f->name, name, t);
    arena_finish(&a);
    return ERR_OK;
}

static Err bench_all(Bench *b, int n, char **words, Table *t) {
    static const Family *const all[] = {&family_conv, &family_gemm,     &family_attention,
                                        &family_rnn,  &family_winograd, &family_deconv};
    for (size_t f = 0; f < sizeof all / sizeof *all; f++)
        for (size_t i = 0; i < all[f]->n_rows; i++) {
            const void *row = (const char *)all[f]->rows + i * all[f]->row_bytes;
            const char *name = *(const char *const *)row;
            if (bench_wanted(all[f]->name, name, n, words)) TRY(bench_row(b, all[f], row, name, t));
        }
    return ERR_OK;
}

static Err show(const Bench *b, const Table *t, bool json) {
    if (!json) {
        printf("%s, FMA peak %.1f GFLOP/s\n", b->isa->name, b->peak);
        return table_print(t, stdout);
    }
    json_t *rows = NULL;
    TRY(table_json(t, &rows));
    json_t *all = json_pack("{s:s, s:f, s:o}", "isa", b->isa->name, "fma_peak_gflops", b->peak,
                            "kernels", rows);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for the JSON text");
    json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return ERR_OK;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "family", .head = "family"},
        {.key = "name", .head = "shape"},
        {.key = "guess_ns", .head = "first", .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "guess_gflops", .head = "GFLOP/s", .decimals = 1},
        {.key = "guess_share", .head = "of peak", .unit = "%", .scale = 0.01, .decimals = 1},
        {.key = "best_gflops", .head = "best", .decimals = 1},
        {.key = "best_share", .head = "of peak", .unit = "%", .scale = 0.01, .decimals = 1},
        {.key = "versions", .head = "versions"},
        {.key = "best", .head = "best version"},
    };
    Arena a = {0};
    Bench b = {0};
    Table t;
    Err   e = arena_init(&a, (size_t)1 << 30);
    table_init(&t, &a, cols, sizeof cols / sizeof *cols);
    if (e == ERR_OK) e = timing_start(&a, bench_flag(argc, argv, "--quick"), &b);
    if (e == ERR_OK) e = bench_all(&b, argc - 1, argv + 1, &t);
    if (e == ERR_OK) e = show(&b, &t, bench_flag(argc, argv, "--json"));
    if (e != ERR_OK) fprintf(stderr, "bench_kernels: %s\n", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}
