#include "policy/chip/relmas_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "learn/weights.h"

enum { HIDDEN_MAX = 256 };

static char *facts_of(Arena *a) {
    return arena_printf(a, "policy=relmas\nfeatures=%d\noutputs=%d\n", RELMAS_FEATURES,
                        RELMAS_SAYS);
}

static Err read_shipped(Arena *a, const char *expect, Weights *out) {
    const RelmasShipped *s = relmas_shipped;
    if (s->name == NULL)
        return err_set(ERR_CONFIG, "this program was built without weights for relmas; train some "
                                   "with 'cotenant chip train' and name them with relmas.weights");
    return weights_parse(s->name, s->bytes, s->len, expect, 0, a, out);
}

Err relmas_file_load(const char *what, Arena *a, RelmasLoaded *out) {
    Weights     w;
    RelmasNet   net = {.in = RELMAS_FEATURES, .out = RELMAS_SAYS};
    const char *expect = facts_of(a);
    if (strcmp(what, "none") == 0) {
        *out = (RelmasLoaded){.net = net};
        return ERR_OK;
    }
    Err e = *what == '\0' ? read_shipped(a, expect, &w) : weights_load(what, expect, 0, a, &w);
    if (e != ERR_OK)
        return err_add(e, "weights of relmas (train others with 'cotenant chip train')");
    const char *hidden = weights_fact(&w, "hidden", a);
    net.hidden = hidden != NULL ? (uint32_t)strtoul(hidden, NULL, 10) : 0;
    if (net.hidden < 1 || net.hidden > HIDDEN_MAX || relmas_net_params(net) != w.block.n)
        return err_set(ERR_INVALID,
                       "weights of relmas %s: %zu numbers do not make a network of %u hidden ones; "
                       "train others with 'cotenant chip train'",
                       what, w.block.n, net.hidden);
    *out = (RelmasLoaded){.net = net, .w = w.block.at};
    return ERR_OK;
}

Err relmas_file_save(const char *path, RelmasNet net, Block w, const char *facts, Arena *scratch) {
    size_t mark = scratch->used;
    char  *all =
        arena_printf(scratch, "%shidden=%" PRIu32 "\n%s", facts_of(scratch), net.hidden, facts);
    Err e = weights_save(path, all, w);
    arena_rewind(scratch, mark);
    return e;
}
