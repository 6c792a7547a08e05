#include "bench/tenants/open_tenant.h"

static const size_t SCRATCH_MOST = (size_t)1 << 34;

static Err add_rounded(OpenTenant *t, const Tensor *inputs, Host *h) {
    PreparedModel *base = &t->rounded[0];
    PrepareOptions o = {.like = base, .background = true, .shapes = inputs, .scratch = &t->scratch};
    if (t->n_rounded == OPEN_ROUNDED) return err_set(ERR_LIMIT, "too many rounded lengths");
    TRY(prepared_model_make(&t->rounded[t->n_rounded], base->source, h, &o));
    t->n_rounded++;
    return ERR_OK;
}

static Err add_length(OpenTenant *t, const Network *n, int64_t length, Arena *a) {
    OpenLength *l = &t->lengths[length];
    l->rounded = t->n_rounded - 1;
    l->inputs = arena_new(a, Tensor, n->model.graph->n_inputs);
    l->own = prepared_shape_round(length) != length;
    network_inputs_at(n, length, l->inputs);
    if (!l->own) return ERR_OK;
    TRY(prepared_shape_make(&l->prepared, &t->rounded[l->rounded], l->inputs, &t->scratch,
                            &l->own));
    if (l->own) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "length %lld has other layers than length %lld",
                   (long long)length, (long long)prepared_shape_round(length));
}

Err open_tenant_make(OpenTenant *t, const char *file, int64_t longest, Host *h,
                     const PrepareOptions *o, Arena *a) {
    Network *n = arena_new(a, Network, 1);
    int64_t  last = prepared_shape_round(longest), made = 1;
    if (longest > OPEN_LENGTHS)
        return err_set(ERR_LIMIT, "%s: a length of %lld; at most %d", file, (long long)longest,
                       OPEN_LENGTHS);
    TRY(network_read(file, last, a, n));
    TRY(arena_init_growing(&t->scratch, 1 << 23, SCRATCH_MOST));
    TRY(prepared_model_load(&t->rounded[0], file, h, o));
    t->n_rounded = 1;
    t->lengths = arena_new(a, OpenLength, (size_t)longest + 1);
    Tensor *inputs = arena_new(a, Tensor, n->model.graph->n_inputs);
    for (int64_t i = 1; i <= longest; i++) {
        if (prepared_shape_round(i) != made) {
            made = prepared_shape_round(i);
            network_inputs_at(n, made, inputs);
            TRY(add_rounded(t, inputs, h));
        }
        TRY(add_length(t, n, i, a));
    }
    return ERR_OK;
}
