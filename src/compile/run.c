#include "compile/run.h"

#include <string.h>

static RunFn *const table[OP_COUNT] = {
#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family)                      \
    [OP_##id] = run_##family,
#include "model/op.def"
#undef XD
};

RunFn *run_find(OpId op) { return table[op]; }

static Err keep_strings(const OpCall *c, Tensor *t, Tensor *copy) {
    Str *s = t->data;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        char *at = arena_try_new(c->keep, char, s[i].len + 1);
        if (at == NULL) return err_set(ERR_LIMIT, "no room for a string of %zu bytes", s[i].len);
        if (s[i].len > 0) memcpy(at, s[i].at, s[i].len);
        s[i].at = at;
    }
    *copy = *t;
    return ERR_OK;
}

Err run_keep(const OpCall *c, const Tensor *t, Tensor *copy) {
    size_t bytes = 0;
    TRY(tensor_measure(t, &bytes));
    Tensor out = *t;
    TRY(tensor_room(&out, c->keep));
    if (bytes > 0) memcpy(out.data, t->data, bytes);
    if (t->dtype == DT_STR) return keep_strings(c, &out, copy);
    if (t->dtype == DT_SEQ || t->dtype == DT_OPT)
        for (int64_t i = 0; i < tensor_count(t); i++)
            TRY(run_keep(c, &((const Tensor *)t->data)[i], &((Tensor *)out.data)[i]));
    *copy = out;
    return ERR_OK;
}

Err run_flow(const OpCall *c, Tensor *out) { return infer_flow(c, out); }

Err run_same(const OpCall *c, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(&out[0], &bytes));
    if (bytes > 0) memcpy(out[0].data, c->in[0]->data, bytes);
    return ERR_OK;
}
