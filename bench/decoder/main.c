// Tokens per second of a decoder, generated greedily one by one, of cotenant and of ONNX Runtime on
// the same file, in turns. The caches have fixed capacity: one compiled shape serves all steps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/decoder/generator.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"

enum { TOKENS = 128, MAX_TOKENS = 512, SKIPPED = 77, ENGINES = 2 };

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static Err find_io(DecoderFile *f) {
    const Graph *g = f->model.graph;
    uint32_t     caches = 0;
    f->ids = f->mask = f->logits = UINT32_MAX;
    if (g->n_inputs > GENERATOR_MAX_IO || g->n_outputs > GENERATOR_MAX_IO)
        return err_set(ERR_LIMIT, "too many inputs or outputs");
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const char *name = g->values[g->inputs[i]].name;
        if (strcmp(name, "input_ids") == 0) f->ids = i;
        if (strcmp(name, "attention_mask") == 0) f->mask = i;
        if (begins(name, "past_key_values.")) f->past[caches++] = i;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const char *name = g->values[g->outputs[i]].name;
        if (strcmp(name, "logits") == 0) f->logits = i;
        if (begins(name, "present.")) f->present[f->n_caches++] = i;
    }
    if (f->ids == UINT32_MAX || f->mask == UINT32_MAX || f->logits == UINT32_MAX ||
        caches != f->n_caches)
        return err_set(ERR_INVALID, "lacks input_ids, attention_mask, logits or caches");
    return ERR_OK;
}

Err decoder_file_read(DecoderFile *f, const char *path) {
    *f = (DecoderFile){.path = path};
    TRY(onnx_read(path, &f->model));
    TRY(find_io(f));
    const Graph  *g = f->model.graph;
    const Tensor *mask = &g->values[g->inputs[f->mask]].type;
    const Tensor *logits = &g->values[g->outputs[f->logits]].type;
    if (!tensor_known(mask) || !tensor_known(logits) || logits->rank != 3)
        return err_set(ERR_INVALID, "has open shapes; write it without --open");
    f->capacity = mask->dims[1];
    f->words = logits->dims[2];
    return fold_constants(&f->model, interp_eval);
}

static int64_t highest(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

typedef struct Side {
    const Generator *engine;
    void            *state;
    int64_t          tokens[MAX_TOKENS];
    TimeNs           best;
} Side;

static Err generate(const DecoderFile *f, Side *s, int64_t n) {
    const float *logits = NULL;
    int64_t      next = 1;
    TimeNs       begin = clock_monotonic_ns();
    for (int64_t i = 0; i < n; i++) {
        TRY(s->engine->step(s->state, next, i, &logits));
        s->tokens[i] = next = highest(logits, f->words);
    }
    TimeNs took = clock_monotonic_ns() - begin;
    if (s->best == 0 || took < s->best) s->best = took;
    return ERR_OK;
}

static int64_t same_tokens(const Side *a, const Side *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a->tokens[i] != b->tokens[i]) return i;
    return n;
}

static Err compare(const char *path, const char *lib, int threads, int rounds) {
    DecoderFile f;
    Arena       a;
    Side        side[ENGINES] = {{.engine = &generator_ours}, {.engine = &generator_ort}};
    TRY(decoder_file_read(&f, path));
    TRY(arena_init_growing(&a, 1 << 20, (size_t)1 << 34));
    int64_t n = f.capacity < TOKENS ? f.capacity : TOKENS;
    for (int i = 0; i < ENGINES; i++)
        TRY(side[i].engine->open(&f, lib, threads, &a, &side[i].state));
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < ENGINES; i++) TRY(generate(&f, &side[i], n));
    double rate[ENGINES];
    for (int i = 0; i < ENGINES; i++) rate[i] = (double)n / ((double)side[i].best / 1e9);
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    printf("%-20s %d  %8.0f  %8.0f  %5.2f  %lld of %lld\n", name, threads, rate[0], rate[1],
           rate[0] / rate[1], (long long)same_tokens(&side[0], &side[1], n), (long long)n);
    for (int i = 0; i < ENGINES; i++) side[i].engine->close(side[i].state);
    arena_finish(&a);
    model_finish(&f.model);
    return ERR_OK;
}

int main(int argc, char **argv) {
    const char *lib = NULL;
    int         rounds = 15, option;
    while ((option = getopt(argc, argv, "l:r:")) != -1) {
        if (option == 'l') lib = optarg;
        if (option == 'r') rounds = atoi(optarg);
        if (option == '?') return 2;
    }
    if (lib == NULL || optind == argc) {
        puts("usage: bench_decoder -l libonnxruntime.so [-r ROUNDS] FILE.onnx ...");
        return SKIPPED;
    }
    puts("decoder          threads  cotenant  ONNX Runtime tokens/s  ratio  equal tokens");
    for (int i = optind; i < argc; i++)
        for (int threads = 1; threads <= 2; threads++)
            if (compare(argv[i], lib, threads, rounds < 1 ? 1 : rounds) != ERR_OK) {
                fprintf(stderr, "%s: %s\n", argv[i], err_why());
                return 1;
            }
    return 0;
}
