// What does a new size of an open dimension cost? A model is compiled for every length of its last
// open dimension up to LENGTHS, with shared weights; CPU time of one thread.
// bench_open_shapes FILE.onnx [LENGTHS]; bench/open_shapes.py writes such a file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/stats.h"
#include "compile/program.h"
#include "node/source.h"

enum { LENGTHS = 128, LENGTHS_MOST = 4096, INPUTS = 16, OUTPUTS = 16, RUNS = 3, SKIPPED = 77 };

typedef struct Size {
    Arena        arena;
    ShapedGraph *shaped;
    Program      program;
    Tensor       inputs[INPUTS];
} Size;

typedef struct Costs {
    double make_ms[LENGTHS_MOST], first_ms[LENGTHS_MOST], known_ms[LENGTHS_MOST];
    double ratio[LENGTHS_MOST];
} Costs;

static double cpu_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double resident_mb(void) {
    long  all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return 0;
    if (fscanf(f, "%ld %ld", &all, &resident) != 2) resident = 0;  // NOLINT(cert-err34-c)
    (void)fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

// Other open dimensions are 1. Integers are 1, which is valid as an index and as a mask.
static Err fill(const Graph *g, int64_t length, Size *s) {
    if (g->n_inputs > INPUTS || g->n_outputs > OUTPUTS)
        return err_set(ERR_LIMIT, "more than %d inputs or outputs", INPUTS);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = &s->inputs[i];
        bool    last = true;
        *t = g->values[g->inputs[i]].type;
        for (int32_t d = t->rank; d-- > 0;)
            if (t->dims[d] < 0) t->dims[d] = last ? length : 1, last = false;
        TRY(tensor_alloc(t, &s->arena));
        for (int64_t k = 0; k < tensor_count(t); k++) tensor_set(t, k, 1);
    }
    return ERR_OK;
}

static Err compile(const Source *from, Size *s, const Program *like, Arena *scratch) {
    ProgramOptions o = {.packed = from->packed, .scratch = scratch, .like = like};
    if (like != NULL) o.caches = like->caches;
    TRY(shaped_graph_make(from->model.graph, s->inputs, interp_eval, &s->arena, &s->shaped));
    return program_make(&s->program, s->shaped, &o);
}

static Err run(Size *s, RunMemory *mem, double *ms) {
    Tensor out[OUTPUTS];
    double began = cpu_ms();
    TRY(program_run(&s->program, mem, NULL, s->inputs, NULL, out));
    *ms = cpu_ms() - began;
    return ERR_OK;
}

static Err measure(const Source *from, Size *all, uint32_t i, Arena *scratch, Costs *c) {
    Size     *s = &all[i];
    RunMemory mem;
    TRY(arena_init_growing(&s->arena, 1 << 18, (size_t)1 << 34));
    TRY(fill(from->model.graph, (int64_t)i + 1, s));
    double began = cpu_ms();
    TRY(compile(from, s, i > 0 ? &all[0].program : NULL, scratch));
    c->make_ms[i] = cpu_ms() - began;
    TRY(run_memory_init(&mem, &s->program, 1));
    Err e = run(s, &mem, &c->first_ms[i]);
    c->known_ms[i] = c->first_ms[i];
    for (int k = 0; e == ERR_OK && k < RUNS; k++) {
        double ms = 0;
        e = run(s, &mem, &ms);
        if (ms < c->known_ms[i]) c->known_ms[i] = ms;
    }
    run_memory_finish(&mem);
    c->ratio[i] = (c->make_ms[i] + c->first_ms[i]) / c->known_ms[i];
    return e;
}

static Err tell_spread(const char *what, const double *x, uint32_t n, Arena *a) {
    double *sorted = NULL;
    TRY(stats_sort(a, x, n, &sorted));
    printf("%-34s %9.2f %9.2f\n", what, stats_percentile(sorted, n, 50),
           stats_percentile(sorted, n, 90));
    return ERR_OK;
}

static Err tell(const Source *from, const Costs *c, uint32_t n, double grown_mb, Arena *a) {
    printf("%-34s %9.2f\n", "first length: compile [ms]", c->make_ms[0]);
    TRY(tell_spread("others: compile p50, p90 [ms]", c->make_ms + 1, n - 1, a));
    TRY(tell_spread("known: run p50, p90 [ms]", c->known_ms, n, a));
    TRY(tell_spread("new over known p50, p90", c->ratio + 1, n - 1, a));
    printf("%-34s %9.2f\n", "packed weights [MB]",
           (double)packed_weights_bytes(from->packed) / (1 << 20));
    printf("%-34s %9.2f\n", "memory beyond the first [MB]", grown_mb);
    return ERR_OK;
}

static Err bench(const char *file, uint32_t n) {
    static Size   all[LENGTHS_MOST];
    static Costs  c;
    Source        from;
    Arena         scratch;
    double        before = 0;
    SourceOptions o = {0};
    TRY(source_read(&from, file, &o));
    if (from.packed == NULL) return err_set(ERR_ARG, "%s has no open dimension", file);
    TRY(arena_init_growing(&scratch, 1 << 23, (size_t)1 << 37));
    for (uint32_t i = 0; i < n; i++) {
        TRY(measure(&from, all, i, &scratch, &c));
        if (i == 0) before = resident_mb();
    }
    TRY(tell(&from, &c, n, resident_mb() - before, &scratch));
    for (uint32_t i = 0; i < n; i++) {
        program_finish(&all[i].program);
        arena_finish(&all[i].arena);
    }
    arena_finish(&scratch);
    source_finish(&from);
    return ERR_OK;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        printf("no model: make bench-open-shapes writes one\n");
        return SKIPPED;
    }
    long n = argc > 2 ? strtol(argv[2], NULL, 10) : LENGTHS;
    if (n < 2 || n > LENGTHS_MOST) n = LENGTHS;
    if (bench(argv[1], (uint32_t)n) == ERR_OK) return 0;
    (void)fprintf(stderr, "%s\n", err_why());
    return 1;
}
