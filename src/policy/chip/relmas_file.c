#include "policy/chip/relmas_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "policy/shipped.h"

static char *facts_of(Arena *a) {
    return arena_printf(a, "policy=relmas\nfeatures=%d\noutputs=%d\n", RELMAS_FEATURES,
                        RELMAS_SAYS);
}

Err relmas_file_load(const char *what, Arena *a, RelmasLoaded *out) {
    Weights     w;
    const char *expect = facts_of(a);
    if (strcmp(what, "none") == 0) {
        *out = (RelmasLoaded){.w = NULL};
        return ERR_OK;
    }
    TRY(shipped_load(what, "relmas", "chip", expect, a, &w));
    const char *fact = weights_fact(&w, "hidden", a);
    uint32_t    hidden = fact != NULL ? (uint32_t)strtoul(fact, NULL, 10) : 0;
    Actor       actor = relmas_actor(hidden);
    if (hidden < 1 || hidden > RELMAS_HIDDEN_MAX || actor_params(actor) != w.block.n)
        return err_set(ERR_INVALID,
                       "weights of relmas %s: %zu numbers do not make a network of %u hidden ones; "
                       "train others with 'cotenant chip train'",
                       what, w.block.n, hidden);
    *out = (RelmasLoaded){.actor = actor, .w = w.block.at};
    return ERR_OK;
}

Err relmas_file_save(const char *path, uint32_t hidden, Block w, const char *facts,
                     Arena *scratch) {
    size_t mark = scratch->used;
    char *all = arena_printf(scratch, "%shidden=%" PRIu32 "\n%s", facts_of(scratch), hidden, facts);
    Err   e = weights_save(path, all, w);
    arena_rewind(scratch, mark);
    return e;
}
