// beliefs [TRACE] [NAME=WEIGHTS...]: predicted durations of a trace's last 40 % and predicted
// speeds, by hand and by attention; "-" instead of a trace: speeds only.
#include <stdio.h>
#include <string.h>

#include "bench/beliefs/beliefs.h"
#include "policy/embedded_weights.h"

static Err load(const char *name, const char *path, Arena *a, Weights *out) {
    WeightsFile f;
    TRY(embedded_weights_load(path, "beliefs", "cluster", BELIEF_FACTS, a, &f));
    if (f.params.n != belief_net_params()) return err_set(ERR_INVALID, "%s: other weights", path);
    *out = (Weights){name, f.params.at};
    return ERR_OK;
}

static Err run(int argc, char **argv, Arena *a) {
    Weights  w[BELIEFS_MODELS / 2];
    uint32_t n = 0;
    if (argc < 3) TRY(load("shipped", "", a, &w[n++]));
    for (int i = 2; i < argc && n < BELIEFS_MODELS / 2; i++) {
        char *path = strchr(argv[i], '=');
        if (path == NULL) return err_set(ERR_ARG, "%s: NAME=FILE is expected", argv[i]);
        *path++ = '\0';
        TRY(load(argv[i], path, a, &w[n++]));
    }
    if (argc > 1 && strcmp(argv[1], "-") != 0) TRY(durations_table(argv[1], w, n, a));
    TRY(speeds_table(w, n, false, a));
    return speeds_table(w, n, true, a);
}

int main(int argc, char **argv) {
    Arena a;
    Err   e = arena_init(&a, (size_t)1 << 34);
    if (e == ERR_OK) e = run(argc, argv, &a);
    if (e != ERR_OK) (void)fprintf(stderr, "%s\n", err_why());
    return e == ERR_OK ? 0 : 1;
}
