// LSTM, attention, layer norm and Adam step by step against PyTorch, by against_torch.py. Exit 77,
// skipped, where Debian's python3-torch is not installed.
#include "tests/learn/gradient.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/npy.h"
#include "learn/adam.h"
#include "learn/transformer.h"
#include "learn/lstm.h"
#include "tests/runner.h"

static char folder[] = "/tmp/torch_test_XXXXXX";

static void save(const char *name, const char *part, const float *x, int32_t rank, int64_t d0,
                 int64_t d1, int64_t d2, int64_t d3) {
    char    path[200];
    int64_t dims[] = {d0, d1, d2, d3};
    Tensor  t = tensor_of(DT_F32, rank, dims, (void *)(uintptr_t)x);
    snprintf(path, sizeof path, "%s/%s_%s.npy", folder, name, part);
    assert_int_equal(npy_write(path, &t), ERR_OK);
}

static float *filled(Arena *a, Rng *rng, size_t n) {
    float *x = float_vec_new(a, n).at;
    gradient_fill(rng, x, n, 1);
    return x;
}

// Rows of a ragged batch as one padded block [seqs][steps][cols], by sequence number.
static float *padded(Arena *a, const Ragged *r, uint32_t steps, const float *m, size_t cols) {
    float *to = float_vec_new(a, (size_t)r->n_seqs * steps * cols).at;
    for (uint32_t i = 0; i < r->n_seqs; i++)
        for (uint32_t t = 0; t < r->len[r->rank[i]]; t++)
            memcpy(to + ((size_t)i * steps + t) * cols, m + ragged_row(r, i, t) * cols,
                   cols * sizeof *to);
    return to;
}

// States [2][seqs][hidden], h and c, from ranks to sequence numbers.
static float *unranked(Arena *a, const Ragged *r, LstmState s, size_t hidden) {
    size_t n = r->n_seqs * hidden;
    float *to = float_vec_new(a, 2 * n).at;
    for (uint32_t i = 0; i < r->n_seqs; i++) {
        memcpy(to + i * hidden, s.h + r->rank[i] * hidden, hidden * sizeof *to);
        memcpy(to + n + i * hidden, s.c + r->rank[i] * hidden, hidden * sizeof *to);
    }
    return to;
}

static void write_lstm(Arena *a, const char *name, Lstm l, const uint32_t *len, uint32_t n,
                       uint64_t seed) {
    Rng    rng = {seed};
    Ragged r = {.start = arena_new(a, uint32_t, 32),
                .rank = arena_new(a, uint32_t, n),
                .len = arena_new(a, uint32_t, n)};
    ragged_make(&r, len, n);
    size_t    rows = r.n_rows, hidden = l.hidden, s = n * hidden, steps = r.n_steps;
    float    *x = filled(a, &rng, rows * l.in), *w = filled(a, &rng, lstm_params(l));
    float    *pull = filled(a, &rng, rows * hidden), *h = float_vec_new(a, rows * hidden).at;
    float    *dx = float_vec_new(a, rows * l.in).at, *gw = float_vec_new(a, lstm_params(l)).at;
    float    *cache = float_vec_new(a, lstm_cache_size(l, rows, n)).at, lens[32];
    LstmState first = {filled(a, &rng, s), filled(a, &rng, s)};
    LstmState dlast = {filled(a, &rng, s), filled(a, &rng, s)};
    LstmState last = {float_vec_new(a, s).at, float_vec_new(a, s).at};
    LstmState dfirst = {float_vec_new(a, s).at, float_vec_new(a, s).at};
    lstm_forward(l, w, &r, mat(x, l.in), &first, mat_out(h, hidden), &last, cache);
    lstm_backward(l, w, gw, &r, mat(x, l.in), &first, mat(pull, hidden), &dlast, mat_out(dx, l.in),
                  &dfirst, cache);
    for (uint32_t i = 0; i < n; i++) lens[i] = (float)len[i];
    int64_t seqs = n, in = l.in, out = l.hidden, t = (int64_t)steps;
    int64_t params = (int64_t)lstm_params(l);
    save(name, "len", lens, 1, seqs, 0, 0, 0);
    save(name, "w", w, 1, params, 0, 0, 0);
    save(name, "gw", gw, 1, params, 0, 0, 0);
    save(name, "x", padded(a, &r, r.n_steps, x, l.in), 3, seqs, t, in, 0);
    save(name, "dx", padded(a, &r, r.n_steps, dx, l.in), 3, seqs, t, in, 0);
    save(name, "h", padded(a, &r, r.n_steps, h, hidden), 3, seqs, t, out, 0);
    save(name, "pull", padded(a, &r, r.n_steps, pull, hidden), 3, seqs, t, out, 0);
    save(name, "first", unranked(a, &r, first, hidden), 3, 2, seqs, out, 0);
    save(name, "last", unranked(a, &r, last, hidden), 3, 2, seqs, out, 0);
    save(name, "dlast", unranked(a, &r, dlast, hidden), 3, 2, seqs, out, 0);
    save(name, "dfirst", unranked(a, &r, dfirst, hidden), 3, 2, seqs, out, 0);
}

static void write_attend(Arena *a) {
    enum { BATCH = 3, QUERIES = 5, KEYS = 6, WIDTH = 12, HEADS = 3 };
    static const uint32_t len[BATCH] = {6, 1, 4};
    const float           lens[BATCH] = {6, 1, 4}, heads = HEADS;
    uint8_t               hide[QUERIES * KEYS];
    float                 hidden[QUERIES * KEYS];
    Rng                   rng = {7};
    MultiHeadAttention    t = {WIDTH, HEADS};
    AttentionShape        size = {
               .batch = BATCH, .queries = QUERIES, .keys = KEYS, .len = len, .hide = hide};
    size_t params = mha_params(t);
    for (uint32_t i = 0; i < QUERIES * KEYS; i++) {  // the first key is visible to all
        hide[i] = i % KEYS > 0 && rng_below(&rng, 3) == 0;
        hidden[i] = hide[i];
    }
    float *w = filled(a, &rng, params), *gw = float_vec_new(a, params).at;
    float *x = filled(a, &rng, BATCH * QUERIES * WIDTH),
          *dx = float_vec_new(a, BATCH * QUERIES * WIDTH).at;
    float *y = filled(a, &rng, BATCH * KEYS * WIDTH);
    float *dy = float_vec_new(a, BATCH * KEYS * WIDTH).at;
    float *out = float_vec_new(a, BATCH * QUERIES * WIDTH).at;
    float *pull = filled(a, &rng, BATCH * QUERIES * WIDTH);
    float *cache = float_vec_new(a, mha_cache_size(t, &size)).at;
    mha_forward(t, w, &size, x, y, out, cache);
    save("attend", "share", mha_weights(t, &size, cache, 0, 0, 0), 4, BATCH, HEADS, QUERIES, KEYS);
    mha_backward(t, w, gw, &size, x, y, pull, dx, dy, cache);
    save("attend", "heads", &heads, 1, 1, 0, 0, 0);
    save("attend", "len", lens, 1, BATCH, 0, 0, 0);
    save("attend", "hide", hidden, 2, QUERIES, KEYS, 0, 0);
    save("attend", "w", w, 1, (int64_t)params, 0, 0, 0);
    save("attend", "gw", gw, 1, (int64_t)params, 0, 0, 0);
    save("attend", "x", x, 3, BATCH, QUERIES, WIDTH, 0);
    save("attend", "dx", dx, 3, BATCH, QUERIES, WIDTH, 0);
    save("attend", "y", y, 3, BATCH, KEYS, WIDTH, 0);
    save("attend", "dy", dy, 3, BATCH, KEYS, WIDTH, 0);
    save("attend", "out", out, 3, BATCH, QUERIES, WIDTH, 0);
    save("attend", "pull", pull, 3, BATCH, QUERIES, WIDTH, 0);
}

static void write_norm(Arena *a) {
    enum { ROWS = 9, N = 21 };
    Rng       rng = {8};
    LayerNorm l = {N};
    float    *w = filled(a, &rng, layer_norm_params(l)),
          *gw = float_vec_new(a, layer_norm_params(l)).at;
    float *x = filled(a, &rng, ROWS * N), *dx = float_vec_new(a, ROWS * N).at;
    float *y = float_vec_new(a, ROWS * N).at, *pull = filled(a, &rng, ROWS * N);
    float *cache = float_vec_new(a, layer_norm_cache_size(l, ROWS)).at;
    layer_norm_forward(l, w, ROWS, x, y, cache);
    layer_norm_backward(l, w, gw, ROWS, pull, dx, cache);
    save("norm", "w", w, 1, 2 * N, 0, 0, 0);
    save("norm", "gw", gw, 1, 2 * N, 0, 0, 0);
    save("norm", "x", x, 2, ROWS, N, 0, 0);
    save("norm", "dx", dx, 2, ROWS, N, 0, 0);
    save("norm", "y", y, 2, ROWS, N, 0, 0);
    save("norm", "pull", pull, 2, ROWS, N, 0, 0);
}

static void write_adam(Arena *a, const char *name, float decay) {
    enum { N = 33, STEPS = 30 };
    Rng         rng = {9};
    AdamOptions o = {.rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-6f};
    FloatVec    m = float_vec_new(a, N), v = float_vec_new(a, N), w = {filled(a, &rng, N), N};
    float      *g = filled(a, &rng, (size_t)STEPS * N),
          *reached = float_vec_new(a, (size_t)STEPS * N).at;
    o.decay = decay;
    save(name, "start", w.at, 1, N, 0, 0, 0);
    save(name, "g", g, 2, STEPS, N, 0, 0);
    for (uint32_t i = 0; i < STEPS; i++) {
        adam_step(&o, i + 1, w, (FloatVec){g + i * N, N}, m, v);
        memcpy(reached + i * N, w.at, N * sizeof *reached);
    }
    save(name, "w", reached, 2, STEPS, N, 0, 0);
}

static int compare(const char *src) {
    char script[4096];
    int  status = 0;
    snprintf(script, sizeof script, "%s/tests/learn/against_torch.py", src);
    pid_t child = fork();
    if (child == 0) {
        execl("/usr/bin/python3", "python3", script, folder, (char *)NULL);
        _exit(77);  // no Python: no PyTorch
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    return WEXITSTATUS(status);
}

static void clear(void) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d != NULL) closedir(d);
    rmdir(folder);
}

TEST_MAIN() {
    static const uint32_t len[] = {4, 9, 1, 6, 9}, one[] = {3};
    const char           *src = getenv("SRC");
    Arena                 a;
    if (src == NULL || mkdtemp(folder) == NULL || arena_init(&a, (size_t)1 << 26) != ERR_OK) {
        puts("skipped: SRC does not name the source");
        return 77;
    }
    write_lstm(&a, "lstm_a", (Lstm){7, 11, false}, len, 5, 5);
    write_lstm(&a, "lstm_b", (Lstm){1, 2, false}, one, 1, 6);
    write_attend(&a);
    write_norm(&a);
    write_adam(&a, "adam", 0);
    write_adam(&a, "adamw", 0.1f);
    fflush(stdout);
    int status = compare(src);
    clear();
    arena_finish(&a);
    return status;
}
